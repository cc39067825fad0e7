/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtlanectl: shows what a running virtlane tells on its stats socket.
 *
 * The daemon answers with one line of JSON (virtlanectl(1)); this program
 * turns it into a screen for people. With --watch the same screen shows the
 * difference between two answers, per second of the daemon's own clock.
 */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "stats/counters.h"

#define ANSWER_MAX (4u << 20)
#define PATIENCE_S 5

enum exit_status {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

struct options {
	const char *socket;
	bool json;
	double watch_s; /* 0: once */
};

/* Two answers: what is shown is now - before, over @seconds. */
struct view {
	struct json_object *now, *before; /* before: NULL without --watch */
	double seconds;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

static const char usage[] =
	"Usage: virtlanectl stat SOCKET [--json] [--watch[=SECONDS]]\n"
	"\n"
	"Shows counters of the virtlane that was started with --stats=SOCKET.\n"
	"\n"
	"  --json             the answer of the daemon as it is, one line\n"
	"  --watch[=SECONDS]  again and again, as rates per second (default: "
	"1)\n"
	"  --version          print the version and exit\n"
	"  --help             print this text and exit (or -h)\n"
	"\n"
	"Exit status: 0 shown, 1 no answer, 2 wrong arguments.\n";

/* A connected socket, or -1 after it was said what is wrong. */
static int connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_S };
	const char *advice = "is the path right?";
	struct stat st;
	int fd;

	if (!path[0] || strlen(path) >= sizeof(addr.sun_path)) {
		fprintf(stderr,
			"virtlanectl: %s: a socket path has 1 to %zu "
			"characters\n",
			path, sizeof(addr.sun_path) - 1);
		return -1;
	}
	memcpy(addr.sun_path, path, strlen(path));
	/* Connecting to a file is refused like to a socket left behind. */
	if (!stat(path, &st) && !S_ISSOCK(st.st_mode)) {
		fprintf(stderr,
			"virtlanectl: %s: is no socket; give the path that "
			"virtlane got as --stats\n",
			path);
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 &&
	    !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			sizeof(patience)) &&
	    !connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	if (errno == ENOENT)
		advice = "start virtlane with --stats=PATH and give the same "
			 "path here";
	else if (errno == ECONNREFUSED)
		advice = "the virtlane that made it has ended; start it again";
	else if (errno == EACCES)
		advice = "run virtlanectl as the user of virtlane, or as root";
	fprintf(stderr, "virtlanectl: %s: %s; %s\n", path, strerror(errno),
		advice);
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Reads up to the newline into *buf, which grows. Returns 0 or -errno. */
static int read_line(int fd, char **buf, size_t *size)
{
	size_t used = 0;

	for (;;) {
		ssize_t n;

		if (used + 1 >= *size) {
			size_t more = *size ? *size * 2 : 65536;
			char *p =
				more > ANSWER_MAX ? NULL : realloc(*buf, more);

			if (!p)
				return -ENOMEM;
			*buf = p;
			*size = more;
		}
		n = read(fd, *buf + used, *size - used - 1);
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ECONNRESET;
		used += (size_t)n;
		(*buf)[used] = '\0';
		if ((*buf)[used - 1] == '\n') {
			(*buf)[used - 1] = '\0';
			return 0;
		}
	}
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(o, key, &value) ? value : NULL;
}

static double number(struct json_object *o, const char *key)
{
	return json_object_get_double(member(o, key));
}

static const char *text(struct json_object *o, const char *key)
{
	const char *s = json_object_get_string(member(o, key));

	return s ? s : "?";
}

static bool is_true(struct json_object *o, const char *key)
{
	return json_object_get_boolean(member(o, key));
}

/* Queue pair @i of an answer, or its part @part. */
static struct json_object *pair_part(struct json_object *top, size_t i,
				     const char *part)
{
	struct json_object *pairs = member(top, "queue_pairs");

	if (!pairs || !json_object_is_type(pairs, json_type_array))
		return NULL;
	return member(json_object_array_get_idx(pairs, i), part);
}

static size_t pair_count(struct json_object *top)
{
	struct json_object *pairs = member(top, "queue_pairs");

	return pairs && json_object_is_type(pairs, json_type_array)
		       ? json_object_array_length(pairs)
		       : 0;
}

/* A counter of queue @part: in all, or per second between the answers. */
static double value(const struct view *v, size_t i, const char *part,
		    const char *key)
{
	double now = number(pair_part(v->now, i, part), key);

	if (!v->before)
		return now;
	return (now - number(pair_part(v->before, i, part), key)) / v->seconds;
}

/* At most 7 characters: 99999, 123.4k, 12.34M. */
static const char *brief(double x, char buf[32])
{
	static const char unit[] = " kMGTP";
	int u = 0;

	if (x < 99999.5) {
		snprintf(buf, 32, x < 10 && x != floor(x) ? "%.2f" : "%.0f", x);
		return buf;
	}
	while (x >= 999.95 && unit[u + 1]) {
		x /= 1000;
		u++;
	}
	snprintf(buf, 32, "%.*f%c", x < 100 ? 2 : 1, x, unit[u]);
	return buf;
}

static const char *duration(double ns, char buf[32])
{
	if (ns <= 0)
		snprintf(buf, 32, "-");
	else if (ns < 1e3)
		snprintf(buf, 32, "%.0fns", ns);
	else if (ns < 1e6)
		snprintf(buf, 32, "%.1fus", ns / 1e3);
	else if (ns < 1e9)
		snprintf(buf, 32, "%.1fms", ns / 1e6);
	else
		snprintf(buf, 32, "%.1fs", ns / 1e9);
	return buf;
}

static void show_header(const struct view *v)
{
	struct json_object *o = v->now;
	double up = number(o, "uptime_ns") / 1e9;
	char a[32];

	printf("%s   link %s   engine %s   offered MAC %s   "
	       "up %.0fh %02.0fm %02.0fs\n",
	       text(o, "backend"), text(o, "link"), text(o, "engine"),
	       text(o, "mac"), floor(up / 3600), fmod(floor(up / 60), 60),
	       fmod(floor(up), 60));
	printf("front-end %s   sessions %.0f   protocol errors %.0f   "
	       "guest memory %.1f MiB in %.0f regions\n",
	       is_true(o, "connected") ? "connected" : "not connected",
	       number(o, "sessions"), number(o, "protocol_errors"),
	       number(o, "guest_memory") / 1048576,
	       number(o, "memory_regions"));
	printf("features %s   MTU %s   control commands %s",
	       text(o, "features"),
	       number(o, "mtu") > 0 ? text(o, "mtu") : "not set",
	       brief(number(o, "ctrl_commands"), a));
	printf(" (%s refused)\n\n", brief(number(o, "ctrl_errors"), a));
}

static const char *queue_state(struct json_object *q)
{
	if (is_true(q, "broken"))
		return "broken";
	return is_true(q, "running") ? "running" : "stopped";
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
	struct json_object *q = pair_part(v->now, i, part);
	struct json_object *latency = member(q, "latency_ns");
	double packets =
		value(v, i, "tx", "packets") + value(v, i, "rx", "packets");
	char a[32], b[32], name[16];

	snprintf(name, sizeof(name), "%s%zu", part, i);
	printf("%-5s %-8s", name, queue_state(q));
	printf("%8s", brief(value(v, i, part, "packets"), a));
	if (v->before)
		printf("%9.1f", value(v, i, part, "bytes") * 8 / 1e6);
	else
		printf("%9s", brief(value(v, i, part, "bytes"), a));
	printf("%8s%8s", brief(drops(v, i, part), a),
	       brief(number(q, "pending"), b));
	printf("%9s%9s", brief(value(v, i, part, "notifications_sent"), a),
	       brief(value(v, i, part, "notifications_suppressed"), b));
	/* One worker serves both queues of the pair: said once. */
	if (strcmp(part, "tx") || packets <= 0)
		printf("%9s", "");
	else
		printf("%9.3f", value(v, i, "worker", "syscalls") / packets);
	printf("%9s%9s\n", duration(number(latency, "p50"), a),
	       duration(number(latency, "p99"), b));
}

static void show_queues(const struct view *v)
{
	printf("%-5s %-8s%8s%9s%8s%8s%9s%9s%9s%9s%9s\n", "queue", "state",
	       v->before ? "pkt/s" : "packets", v->before ? "Mbit/s" : "bytes",
	       v->before ? "drop/s" : "drops", "pending",
	       v->before ? "notif/s" : "notified",
	       v->before ? "suppr/s" : "suppress", "sys/pkt", "p50", "p99");
	for (size_t i = 0; i < pair_count(v->now); i++) {
		show_queue(v, i, "tx");
		show_queue(v, i, "rx");
	}
}

/* Reasons with a count, each with its sentence. */
static void show_reasons(const struct view *v)
{
	static const char *const parts[] = { "tx", "rx" };
	const char *title = "\n";
	char a[32];

	for (size_t row = 0; row < 2 * pair_count(v->now); row++) {
		const char *part = parts[row % 2];
		bool tx = row % 2 == 0;
		const struct vl_counter *table =
			tx ? vl_tx_counter_table : vl_rx_counter_table;
		size_t n = tx ? vl_tx_counter_count : vl_rx_counter_count;

		for (size_t k = 0; k < n; k++) {
			double x = value(v, row / 2, part, table[k].name);

			if (strncmp(table[k].name, "drop_", 5) || x <= 0)
				continue;
			printf("%s%s%zu %-14s %8s%s  %s\n", title, part,
			       row / 2, table[k].name, brief(x, a),
			       v->before ? "/s" : "", table[k].help);
			title = "";
		}
	}
}

static void show_cost(const struct view *v)
{
	double bits = 0, cycles = 0;
	double cpu = number(v->now, "cpu_ns");

	for (size_t i = 0; i < pair_count(v->now); i++) {
		bits += value(v, i, "tx", "bytes") * 8 +
			value(v, i, "rx", "bytes") * 8;
		cycles += value(v, i, "worker", "cycles");
	}
	if (v->before)
		printf("\nCPU %.1f %% of one core",
		       (cpu - number(v->before, "cpu_ns")) / v->seconds / 1e7);
	else
		printf("\nCPU %.2f s", cpu / 1e9);
	printf("   %.3f bits per cycle (cycles: %s)%s\n",
	       cycles > 0 ? bits / cycles : 0, text(v->now, "cycles_source"),
	       v->before ? "   p50, p99: since start" : "");
}

static void show(const struct view *v)
{
	if (v->before && isatty(STDOUT_FILENO))
		printf("\033[H\033[J");
	show_header(v);
	show_queues(v);
	show_reasons(v);
	show_cost(v);
	if (v->before && !isatty(STDOUT_FILENO))
		printf("\n");
}

/* Asks once. Returns the answer in *line, or an exit status above 0. */
static int ask(int fd, const char *path, char **line, size_t *size)
{
	static const char request[] = "stat\n";
	int err = 0;

	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
		err = -errno;
	/* When the daemon has hung up, it may have said why. */
	if (!err || err == -EPIPE)
		err = read_line(fd, line, size);
	if (!err || (err == -EINTR && interrupted))
		return EXIT_OK;
	if (err == -EAGAIN)
		fprintf(stderr,
			"virtlanectl: %s: no answer for %d s; virtlane is "
			"stopped or overloaded, or this is its --socket-path; "
			"give the path of --stats\n",
			path, PATIENCE_S);
	else
		fprintf(stderr,
			"virtlanectl: %s: no answer: %s; virtlane has ended, "
			"or this is another program's socket\n",
			path, strerror(-err));
	return EXIT_FAILED;
}

/* Parses an answer, or says why not. */
static struct json_object *parse(const char *path, const char *line)
{
	struct json_object *o = json_tokener_parse(line);
	const char *error = NULL;

	if (o && member(o, "error"))
		error = text(o, "error");
	else if (!pair_part(o, 0, "tx"))
		error = "the answer is none of virtlane's";
	if (!error)
		return o;
	fprintf(stderr, "virtlanectl: %s: %s\n", path, error);
	json_object_put(o);
	return NULL;
}

/* Shows one answer. *before is the last one, replaced by this one. */
static int step(const struct options *opt, const char *line,
		struct json_object **before)
{
	struct view v = { .now = parse(opt->socket, line), .before = *before };

	if (!v.now)
		return EXIT_FAILED;
	if (opt->json) {
		puts(line);
		json_object_put(v.now);
		return EXIT_OK;
	}
	if (v.before)
		v.seconds = (number(v.now, "uptime_ns") -
			     number(v.before, "uptime_ns")) /
			    1e9;
	if (v.seconds <= 0)
		v.before = NULL;
	if (v.before || opt->watch_s <= 0)
		show(&v);
	json_object_put(*before);
	*before = v.now;
	return EXIT_OK;
}

static int command_stat(const struct options *opt)
{
	struct json_object *before = NULL;
	struct timespec pause = {
		.tv_sec = (time_t)opt->watch_s,
		.tv_nsec = (long)((opt->watch_s - floor(opt->watch_s)) * 1e9),
	};
	int fd = connect_to(opt->socket);
	char *line = NULL;
	size_t size = 0;
	int status;

	if (fd < 0)
		return EXIT_FAILED;
	for (;;) {
		status = ask(fd, opt->socket, &line, &size);
		if (status || interrupted)
			break;
		status = step(opt, line, &before);
		if (fflush(stdout))
			status = EXIT_FAILED;
		if (status || opt->watch_s <= 0)
			break;
		nanosleep(&pause, NULL);
		if (interrupted)
			break;
	}
	json_object_put(before);
	free(line);
	close(fd);
	return status;
}

/* Says what is wrong with @word. */
static int wrong(const char *word, const char *advice)
{
	fprintf(stderr, "virtlanectl: %s: %s\n", word, advice);
	return EXIT_USAGE;
}

/* "--watch" or "--watch=SECONDS". */
static int parse_watch(const char *word, struct options *opt)
{
	char *end;

	opt->watch_s = 1;
	if (!strcmp(word, "--watch"))
		return 0;
	opt->watch_s = strtod(word + strlen("--watch="), &end);
	if (*end || !(opt->watch_s >= 0.1 && opt->watch_s <= 86400))
		return wrong(word, "give 0.1 to 86400 seconds");
	return 0;
}

/* Whether @word can only be meant as the seconds of --watch before it. */
static bool is_interval(const char *before, const char *word)
{
	char *end;

	if (strcmp(before, "--watch"))
		return false;
	(void)strtod(word, &end);
	return end != word && !*end;
}

static int wrong_interval(const char *word)
{
	fprintf(stderr, "virtlanectl: for an interval write --watch=%s\n",
		word);
	return EXIT_USAGE;
}

/* Reports every wrong word, not just the first. */
static int parse_args(int argc, char *argv[], struct options *opt)
{
	int status = 0;

	if (argc < 2) {
		fputs("virtlanectl: no command given; try: virtlanectl stat "
		      "SOCKET\n",
		      stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "stat"))
		status = wrong(argv[1], "no such command; known: stat");
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			opt->json = true;
		else if (!strcmp(argv[i], "--watch") ||
			 !strncmp(argv[i], "--watch=", strlen("--watch=")))
			status |= parse_watch(argv[i], opt);
		else if (is_interval(argv[i - 1], argv[i]))
			status = wrong_interval(argv[i]);
		else if (argv[i][0] == '-')
			status = wrong(argv[i], "no such option; see --help");
		else if (opt->socket)
			status = wrong(argv[i], "one socket at a time");
		else
			opt->socket = argv[i];
	}
	if (!opt->socket)
		status = wrong("SOCKET", "is missing; give the path that "
					 "virtlane got as --stats");
	return status;
}

int main(int argc, char *argv[])
{
	struct sigaction act = { .sa_handler = on_signal };
	struct options opt = { 0 };

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return EXIT_OK;
		}
		if (!strcmp(argv[i], "--version")) {
			printf("virtlanectl %s\n", VL_VERSION);
			return EXIT_OK;
		}
	}
	if (parse_args(argc, argv, &opt))
		return EXIT_USAGE;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	return command_stat(&opt);
}
