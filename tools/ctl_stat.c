/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtlanectl stat: one screen with everything. With --watch the same screen
 * shows the difference between two answers, per second of the daemon's own
 * clock.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"
#include "stats/counters.h"

/* Two answers: what is shown is now - before, over @seconds. */
struct view {
	struct json_object *now, *before; /* before: NULL without --watch */
	double seconds;
};

/* A counter of queue @part: in all, or per second between the answers. */
static double value(const struct view *v, size_t i, const char *part,
		    const char *key)
{
	double now = ctl_number(ctl_pair_part(v->now, i, part), key);

	if (!v->before)
		return now;
	return (now - ctl_number(ctl_pair_part(v->before, i, part), key)) /
	       v->seconds;
}

static void show_header(const struct view *v)
{
	struct json_object *o = v->now;
	double up = ctl_number(o, "uptime_ns") / 1e9;
	char a[CTL_TEXT];

	printf("%s   link %s   engine %s   offered MAC %s   "
	       "up %.0fh %02.0fm %02.0fs\n",
	       ctl_text(o, "backend"), ctl_text(o, "link"),
	       ctl_text(o, "engine"), ctl_text(o, "mac"), floor(up / 3600),
	       fmod(floor(up / 60), 60), fmod(floor(up), 60));
	printf("front-end %s   sessions %.0f   protocol errors %.0f   "
	       "guest memory %.1f MiB in %.0f regions\n",
	       ctl_is_true(o, "connected") ? "connected" : "not connected",
	       ctl_number(o, "sessions"), ctl_number(o, "protocol_errors"),
	       ctl_number(o, "guest_memory") / 1048576,
	       ctl_number(o, "memory_regions"));
	printf("features %s   MTU %s   control commands %s",
	       ctl_text(o, "features"),
	       ctl_number(o, "mtu") > 0 ? ctl_text(o, "mtu") : "not set",
	       ctl_brief(ctl_number(o, "ctrl_commands"), a));
	printf(" (%s refused)\n\n", ctl_brief(ctl_number(o, "ctrl_errors"), a));
}

static const char *queue_state(struct json_object *q)
{
	if (ctl_is_true(q, "broken"))
		return "broken";
	return ctl_is_true(q, "running") ? "running" : "stopped";
}

/* All reasons together; both tables call them drop_... */
static double drops(const struct view *v, size_t i, const char *part)
{
	bool tx = !strcmp(part, "tx");
	const struct vl_counter *table =
		tx ? vl_tx_counter_table : vl_rx_counter_table;
	size_t n = tx ? vl_tx_counter_count : vl_rx_counter_count;
	double sum = 0;

	for (size_t k = 0; k < n; k++) {
		if (!strncmp(table[k].name, "drop_", 5))
			sum += value(v, i, part, table[k].name);
	}
	return sum;
}

static void show_queue(const struct view *v, size_t i, const char *part)
{
	struct json_object *q = ctl_pair_part(v->now, i, part);
	struct json_object *latency = ctl_member(q, "latency_ns");
	double packets =
		value(v, i, "tx", "packets") + value(v, i, "rx", "packets");
	char a[CTL_TEXT], b[CTL_TEXT], name[16];

	snprintf(name, sizeof(name), "%s%zu", part, i);
	printf("%-5s %-8s", name, queue_state(q));
	printf("%8s", ctl_brief(value(v, i, part, "packets"), a));
	if (v->before)
		printf("%9.1f", value(v, i, part, "bytes") * 8 / 1e6);
	else
		printf("%9s", ctl_brief(value(v, i, part, "bytes"), a));
	printf("%8s%8s", ctl_brief(drops(v, i, part), a),
	       ctl_brief(ctl_number(q, "pending"), b));
	printf("%9s%9s", ctl_brief(value(v, i, part, "notifications_sent"), a),
	       ctl_brief(value(v, i, part, "notifications_suppressed"), b));
	/* One worker serves both queues of the pair: said once. */
	if (strcmp(part, "tx") || packets <= 0)
		printf("%9s", "");
	else
		printf("%9.3f", value(v, i, "worker", "syscalls") / packets);
	printf("%9s%9s\n", ctl_duration(ctl_number(latency, "p50"), a),
	       ctl_duration(ctl_number(latency, "p99"), b));
}

static void show_queues(const struct view *v)
{
	printf("%-5s %-8s%8s%9s%8s%8s%9s%9s%9s%9s%9s\n", "queue", "state",
	       v->before ? "pkt/s" : "packets", v->before ? "Mbit/s" : "bytes",
	       v->before ? "drop/s" : "drops", "pending",
	       v->before ? "notif/s" : "notified",
	       v->before ? "suppr/s" : "suppress", "sys/pkt", "p50", "p99");
	for (size_t i = 0; i < ctl_pair_count(v->now); i++) {
		show_queue(v, i, "tx");
		show_queue(v, i, "rx");
	}
}

/* Whether a counter of this name says why something was done. */
static bool is_reason(const char *name)
{
	return !strncmp(name, "drop_", 5) || !strncmp(name, "copy_", 5) ||
	       !strcmp(name, "zc_copied");
}

/* Reasons with a count, each with its sentence. */
static void show_reasons(const struct view *v)
{
	static const char *const parts[] = { "tx", "rx" };
	const char *title = "\n";
	char a[CTL_TEXT];

	for (size_t row = 0; row < 2 * ctl_pair_count(v->now); row++) {
		const char *part = parts[row % 2];
		bool tx = row % 2 == 0;
		const struct vl_counter *table =
			tx ? vl_tx_counter_table : vl_rx_counter_table;
		size_t n = tx ? vl_tx_counter_count : vl_rx_counter_count;

		for (size_t k = 0; k < n; k++) {
			double x = value(v, row / 2, part, table[k].name);

			if (!is_reason(table[k].name) || x <= 0)
				continue;
			printf("%s%s%zu %-14s %8s%s  %s\n", title, part,
			       row / 2, table[k].name, ctl_brief(x, a),
			       v->before ? "/s" : "", table[k].help);
			title = "";
		}
	}
}

/* Whether any lane but express is or was in use. */
static bool has_lanes(const struct view *v, size_t i)
{
	struct json_object *pair = ctl_element(v->now, "queue_pairs", i);

	for (size_t k = 1; k < ctl_count(pair, "lanes"); k++) {
		struct json_object *lane = ctl_element(pair, "lanes", k);

		if (ctl_number(lane, "destinations") > 0 ||
		    ctl_number(lane, "moves") > 0)
			return true;
	}
	return false;
}

static void show_dests(struct json_object *lane)
{
	size_t named = ctl_count(lane, "busiest");
	double more = ctl_number(lane, "destinations") - (double)named;

	for (size_t i = 0; i < named; i++)
		printf("%s%s", i ? ", " : "  ", ctl_dest(lane, i));
	if (more > 0)
		printf("%s%.0f more", named ? ", " : "  ", more);
	printf("\n");
}

static void show_lane(const struct view *v, size_t i, size_t k)
{
	struct json_object *pair = ctl_element(v->now, "queue_pairs", i);
	struct json_object *lane = ctl_element(pair, "lanes", k);
	double packets = ctl_number(lane, "packets");
	double bytes = ctl_number(lane, "bytes");
	double drop = ctl_lane_drops(lane);
	char a[CTL_TEXT], b[CTL_TEXT];

	if (v->before) {
		struct json_object *was = ctl_element(
			ctl_element(v->before, "queue_pairs", i), "lanes", k);

		packets = (packets - ctl_number(was, "packets")) / v->seconds;
		bytes = (bytes - ctl_number(was, "bytes")) / v->seconds;
		drop = (drop - ctl_lane_drops(was)) / v->seconds;
	}
	snprintf(a, sizeof(a), "tx%zu/%zu", i, k);
	printf("%-7s %-8s", a, ctl_text(lane, "state"));
	printf("%8s", ctl_brief(packets, a));
	if (v->before)
		printf("%9.1f", bytes * 8 / 1e6);
	else
		printf("%9s", ctl_brief(bytes, a));
	printf("%8s%8s", ctl_brief(drop, a),
	       ctl_brief(ctl_number(lane, "parked_packets"), b));
	printf("%9.1f%9s", ctl_number(lane, "drain_rate") / 1e6,
	       ctl_duration(ctl_number(lane, "queue_delay_ns"), a));
	show_dests(lane);
}

/* The lanes of each pair that has or had more than express in use. */
static void show_lanes(const struct view *v)
{
	for (size_t i = 0; i < ctl_pair_count(v->now); i++) {
		struct json_object *pair =
			ctl_element(v->now, "queue_pairs", i);
		struct json_object *held = ctl_member(pair, "held");

		if (!has_lanes(v, i))
			continue;
		printf("\n%-7s %-8s%8s%9s%8s%8s%9s%9s  %s\n", "lane", "state",
		       v->before ? "pkt/s" : "packets",
		       v->before ? "Mbit/s" : "bytes",
		       v->before ? "drop/s" : "drops", "parked", "drain M",
		       "delay", "destinations");
		for (size_t k = 0; k < ctl_count(pair, "lanes"); k++)
			show_lane(v, i, k);
		printf("waiting packets hold %.0f of %.0f descriptors and "
		       "%.0f of %.0f KiB\n",
		       ctl_number(held, "descriptors"),
		       ctl_number(held, "descriptors_max"),
		       ctl_number(held, "pool_bytes") / 1024,
		       ctl_number(held, "pool_bytes_max") / 1024);
	}
}

/* What is sent without a copy, of each pair where that is possible. */
static void show_zerocopy(const struct view *v)
{
	for (size_t i = 0; i < ctl_pair_count(v->now); i++) {
		struct json_object *zc = ctl_pair_part(v->now, i, "zerocopy");
		char a[CTL_TEXT];

		if (!zc || !strcmp(ctl_text(zc, "mode"), "off"))
			continue;
		printf("\nzero-copy tx%zu (%s): %s packets%s, ", i,
		       ctl_text(zc, "mode"),
		       ctl_brief(value(v, i, "tx", "zc_packets"), a),
		       v->before ? "/s" : "");
		printf("pending %.0f (at most %.0f) in %.0f (%.0f) of %.0f "
		       "descriptors, oldest %s; ",
		       ctl_number(zc, "pending_packets"),
		       ctl_number(zc, "pending_packets_max"),
		       ctl_number(zc, "pending_descriptors"),
		       ctl_number(zc, "pending_descriptors_max"),
		       ctl_number(zc, "window"),
		       ctl_duration(ctl_number(zc, "oldest_ns"), a));
		printf("%s out of order\n",
		       ctl_brief(value(v, i, "tx", "out_of_order"), a));
	}
}

/* What the tunnel of each pair did so far, each with its sentence. */
static void show_tunnel(const struct view *v)
{
	char a[CTL_TEXT];

	for (size_t i = 0; i < ctl_pair_count(v->now); i++) {
		const char *title = "\n";

		for (size_t k = 0; k < vl_tunnel_counter_count; k++) {
			const struct vl_counter *c =
				&vl_tunnel_counter_table[k];
			double x = value(v, i, "tunnel", c->name);

			if (x <= 0)
				continue;
			printf("%stunnel%zu %-14s %8s%s  %s\n", title, i,
			       c->name, ctl_brief(x, a), v->before ? "/s" : "",
			       c->help);
			title = "";
		}
	}
}

static void show_cost(const struct view *v)
{
	double bits = 0, cycles = 0;
	double cpu = ctl_number(v->now, "cpu_ns");

	for (size_t i = 0; i < ctl_pair_count(v->now); i++) {
		bits += value(v, i, "tx", "bytes") * 8 +
			value(v, i, "rx", "bytes") * 8;
		cycles += value(v, i, "worker", "cycles");
	}
	if (v->before)
		printf("\nCPU %.1f %% of one core",
		       (cpu - ctl_number(v->before, "cpu_ns")) / v->seconds /
			       1e7);
	else
		printf("\nCPU %.2f s", cpu / 1e9);
	printf("   %.3f bits per cycle (cycles: %s)%s\n",
	       cycles > 0 ? bits / cycles : 0,
	       ctl_text(v->now, "cycles_source"),
	       v->before ? "   p50, p99: since start" : "");
}

static void show(const struct view *v)
{
	if (v->before && isatty(STDOUT_FILENO))
		printf("\033[H\033[J");
	show_header(v);
	show_queues(v);
	show_lanes(v);
	show_zerocopy(v);
	show_reasons(v);
	show_tunnel(v);
	show_cost(v);
	if (v->before && !isatty(STDOUT_FILENO))
		printf("\n");
}

/* Shows one answer. *before is the last one, replaced by this one. */
static int step(const struct options *opt, const char *line,
		struct json_object **before)
{
	struct view v = { .now = json_tokener_parse(line), .before = *before };

	if (!ctl_is_stat(v.now)) {
		int status = ctl_no_stat(opt->socket, v.now);

		json_object_put(v.now);
		return status;
	}
	if (opt->json) {
		puts(line);
		json_object_put(v.now);
		return EXIT_OK;
	}
	if (v.before)
		v.seconds = (ctl_number(v.now, "uptime_ns") -
			     ctl_number(v.before, "uptime_ns")) /
			    1e9;
	if (v.seconds <= 0)
		v.before = NULL;
	if (v.before || opt->watch_s <= 0)
		show(&v);
	json_object_put(*before);
	*before = v.now;
	return EXIT_OK;
}

int ctl_stat(const struct options *opt)
{
	struct json_object *before = NULL;
	struct timespec pause = {
		.tv_sec = (time_t)opt->watch_s,
		.tv_nsec = (long)((opt->watch_s - floor(opt->watch_s)) * 1e9),
	};
	int fd = ctl_connect(opt->socket);
	char *line = NULL;
	size_t size = 0;
	int err = 0, status = EXIT_OK;

	if (fd < 0)
		return EXIT_FAILED;
	while (!ctl_interrupted) {
		err = ctl_ask(fd, &line, &size);
		if (err || ctl_interrupted)
			break;
		status = step(opt, line, &before);
		if (fflush(stdout))
			status = EXIT_FAILED;
		if (status || opt->watch_s <= 0)
			break;
		nanosleep(&pause, NULL);
	}
	if (err && !ctl_interrupted)
		status = ctl_no_answer(opt->socket, err);
	json_object_put(before);
	free(line);
	close(fd);
	return status;
}
