/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "base/clock.h"
#include "stats/counters.h"
#include "stats/cycles.h"
#include "stats/json.h"
#include "stats/snapshot.h"

static void check_table(const struct vl_counter *table, size_t n, size_t size)
{
	assert_int_equal(n * sizeof(uint64_t), size);
	for (size_t i = 0; i < n; i++) {
		assert_true(table[i].offset + sizeof(uint64_t) <= size);
		assert_true(strlen(table[i].help) > 0);
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(table[i].name, table[j].name);
			assert_int_not_equal(table[i].offset, table[j].offset);
		}
	}
}

static void test_counter_tables(void **state)
{
	struct vl_tx_counters live = { .packets = 5, .drop_nomem = 7 }, copy;

	(void)state;
	check_table(vl_tx_counter_table, vl_tx_counter_count, sizeof(live));
	check_table(vl_rx_counter_table, vl_rx_counter_count,
		    sizeof(struct vl_rx_counters));
	check_table(vl_lane_counter_table, vl_lane_counter_count,
		    sizeof(struct vl_lane_counters));
	check_table(vl_tunnel_counter_table, vl_tunnel_counter_count,
		    sizeof(struct vl_tunnel_counters));
	vl_counters_copy(&copy, &live, sizeof(copy));
	assert_memory_equal(&copy, &live, sizeof(copy));
	for (size_t i = 0; i < vl_tx_counter_count; i++) {
		uint64_t v = vl_counter_value(&vl_tx_counter_table[i], &live);

		if (strcmp(vl_tx_counter_table[i].name, "drop_nomem") == 0)
			assert_int_equal(v, 7);
	}
}

static void spin_ns(uint64_t ns)
{
	uint64_t end = vl_clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (vl_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void test_cycles_of_thread(void **state)
{
	struct vl_cycles c;
	uint64_t ns, cycles;
	double hz;

	(void)state;
	vl_cycles_open(&c);
	ns = vl_cycles_cpu_ns(&c);
	cycles = vl_cycles_read(&c);
	spin_ns(20 * 1000 * 1000);
	ns = vl_cycles_cpu_ns(&c) - ns;
	cycles = vl_cycles_read(&c) - cycles;
	assert_in_range(ns, 20 * 1000 * 1000, 2000 * 1000 * 1000);
	hz = (double)cycles * 1e9 / (double)ns;
	assert_true(hz > 0.1e9 && hz < 10e9);
	assert_string_equal(vl_cycles_source(&c),
			    c.perf_fd >= 0 ? "perf_event" : "cpu-time*tsc");
	vl_cycles_close(&c);
	assert_int_equal(c.perf_fd, -1);
}

static void test_cycles_fallback(void **state)
{
	struct vl_cycles c;
	double want;

	(void)state;
	vl_cycles_open(&c);
	vl_cycles_close(&c); /* as on a machine without a hardware counter */
	spin_ns(5 * 1000 * 1000);
	want = (double)vl_cycles_cpu_ns(&c) * (double)vl_tsc_hz() / 1e9;
	assert_true((double)vl_cycles_read(&c) >= want * 0.999);
	assert_true((double)vl_cycles_read(&c) < want * 1.5);
	assert_string_equal(vl_cycles_source(&c), "cpu-time*tsc");
}

struct idle_thread {
	struct vl_cycles cycles;
	int ready[2], end[2];
};

static void *idle_main(void *arg)
{
	struct idle_thread *t = arg;
	char byte = 0;

	vl_cycles_open(&t->cycles);
	if (write(t->ready[1], &byte, 1) != 1)
		return t;
	return read(t->end[0], &byte, 1) == 1 ? NULL : t;
}

/* The counter belongs to the thread that opened it, whoever reads. */
static void test_cycles_from_another_thread(void **state)
{
	struct idle_thread t;
	pthread_t thread;
	uint64_t before;
	void *failed;
	char byte = 0;

	(void)state;
	assert_int_equal(pipe(t.ready) | pipe(t.end), 0);
	assert_int_equal(pthread_create(&thread, NULL, idle_main, &t), 0);
	assert_int_equal(read(t.ready[0], &byte, 1), 1);
	before = vl_cycles_cpu_ns(&t.cycles);
	spin_ns(20 * 1000 * 1000);
	assert_true(vl_cycles_cpu_ns(&t.cycles) - before < 10 * 1000 * 1000);
	assert_int_equal(write(t.end[1], &byte, 1), 1);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	vl_cycles_close(&t.cycles);
	for (int i = 0; i < 2; i++) {
		close(t.ready[i]);
		close(t.end[i]);
	}
}

static void test_tsc_is_stable(void **state)
{
	uint64_t hz = vl_tsc_hz();

	(void)state;
	assert_in_range(hz, 1000 * 1000, 10ULL * 1000 * 1000 * 1000);
	assert_int_equal(vl_tsc_hz(), hz);
}

static struct vl_snapshot *new_snapshot(unsigned int pairs)
{
	struct vl_snapshot *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->pairs = pairs;
	strcpy(s->backend, "tap \"t\\0\"");
	strcpy(s->mac, "52:54:00:00:00:01");
	s->link = "up";
	s->engine = "uring";
	s->cycles_source = "cpu-time*tsc";
	s->features = 1ULL << 63 | 1;
	s->uptime_ns = UINT64_MAX;
	for (unsigned int i = 0; i < pairs; i++) {
		s->pair[i].tx.bytes = 100 * (i + 1);
		s->pair[i].tx.packets = 3;
		s->pair[i].rx.packets = 1;
		s->pair[i].rx.bytes = 25;
		s->pair[i].cycles = 1000;
		s->pair[i].syscalls = 6;
		s->pair[i].rxq.size = 256;
		s->pair[i].txq.broken = true;
		vl_hist_add(&s->pair[i].txq.latency_ns, 7, 1000);
	}
	return s;
}

/* A slow lane with an IPv4, an IPv6 and another destination. */
static void add_lanes(struct vl_pair_snapshot *p)
{
	static const struct vl_dest_snapshot dests[] = {
		{ .mac = { 2, 0, 0, 0, 0, 0xab },
		  .addr_len = 4,
		  .addr = { 10, 0, 0, 2 },
		  .parked = 7 },
		{ .addr_len = 16, .addr = { 0xfd, [15] = 1 } },
		{ .parked = 1 },
	};

	p->held_descs = 3;
	p->held_max = 128;
	p->pool_bytes = 2048;
	p->pool_max = 1 << 20;
	p->lanes = 2;
	p->lane[0].state = "express";
	p->lane[1].state = "slow";
	p->lane[1].destinations = 5;
	p->lane[1].drain_rate = 10000000;
	p->lane[1].delay_ns = 12345;
	p->lane[1].counters.drop_late = 9;
	p->lane[1].named = 3;
	memcpy(p->lane[1].dest, dests, sizeof(dests));
}

static void test_bits_per_cycle(void **state)
{
	struct vl_snapshot *s = new_snapshot(2);

	(void)state;
	/* 8 * (100 + 25 + 200 + 25) bits in 2000 cycles. */
	assert_true(vl_snapshot_bits_per_cycle(s) > 1.399 &&
		    vl_snapshot_bits_per_cycle(s) < 1.401);
	s->pair[0].cycles = s->pair[1].cycles = 0;
	assert_true(vl_snapshot_bits_per_cycle(s) == 0);
	free(s);
}

/* The member at a path such as "queue_pairs/1/tx/packets". */
static struct json_object *at(struct json_object *root, const char *path)
{
	struct json_object *o = NULL;
	char pointer[128] = "/";

	strncat(pointer, path, sizeof(pointer) - 2);
	if (json_pointer_get(root, pointer, &o))
		fail_msg("no %s", path);
	return o;
}

static void check_all_counters(struct json_object *root)
{
	char path[128];

	for (size_t i = 0; i < vl_tx_counter_count; i++) {
		snprintf(path, sizeof(path), "queue_pairs/0/tx/%s",
			 vl_tx_counter_table[i].name);
		assert_true(json_object_is_type(at(root, path), json_type_int));
	}
	for (size_t i = 0; i < vl_rx_counter_count; i++) {
		snprintf(path, sizeof(path), "queue_pairs/0/rx/%s",
			 vl_rx_counter_table[i].name);
		assert_true(json_object_is_type(at(root, path), json_type_int));
	}
}

static void test_json(void **state)
{
	struct vl_snapshot *s = new_snapshot(2);
	char *text = vl_snapshot_json(s);
	struct json_object *root;

	(void)state;
	assert_non_null(text);
	assert_null(strchr(text, '\n'));
	root = json_tokener_parse(text);
	assert_non_null(root);
	assert_string_equal(json_object_get_string(at(root, "features")),
			    "0x8000000000000001");
	assert_string_equal(json_object_get_string(at(root, "backend")),
			    "tap \"t\\0\"");
	assert_true(json_object_get_uint64(at(root, "uptime_ns")) ==
		    UINT64_MAX);
	assert_int_equal(json_object_array_length(at(root, "queue_pairs")), 2);
	assert_int_equal(
		json_object_get_int(at(root, "queue_pairs/1/tx/bytes")), 200);
	assert_int_equal(json_object_get_int(at(root, "queue_pairs/1/rx/size")),
			 256);
	assert_true(
		json_object_get_boolean(at(root, "queue_pairs/0/tx/broken")));
	assert_int_equal(json_object_get_int(
				 at(root, "queue_pairs/0/tx/latency_ns/p999")),
			 7);
	assert_true(
		json_object_get_double(
			at(root, "queue_pairs/0/worker/syscalls_per_packet")) ==
		1.5);
	assert_true(json_object_get_double(at(root, "bits_per_cycle")) == 1.4);
	check_all_counters(root);
	json_object_put(root);
	free(text);
	free(s);
}

static int number_at(struct json_object *root, const char *path)
{
	return json_object_get_int(at(root, path));
}

static const char *text_at(struct json_object *root, const char *path)
{
	return json_object_get_string(at(root, path));
}

#define LANE "queue_pairs/1/lanes/1/"

static void test_json_lanes(void **state)
{
	struct vl_snapshot *s = new_snapshot(2);
	struct json_object *root;
	char *text, path[128];

	(void)state;
	add_lanes(&s->pair[1]);
	text = vl_snapshot_json(s);
	root = json_tokener_parse(text);
	assert_non_null(root);
	assert_int_equal(
		json_object_array_length(at(root, "queue_pairs/0/lanes")), 0);
	assert_int_equal(
		json_object_array_length(at(root, "queue_pairs/1/lanes")), 2);
	assert_int_equal(number_at(root, "queue_pairs/1/held/descriptors"), 3);
	assert_int_equal(number_at(root, "queue_pairs/1/held/descriptors_max"),
			 128);
	assert_int_equal(number_at(root, "queue_pairs/1/held/pool_bytes"),
			 2048);
	assert_int_equal(number_at(root, "queue_pairs/1/held/pool_bytes_max"),
			 1 << 20);
	assert_int_equal(number_at(root, LANE "index"), 1);
	assert_string_equal(text_at(root, LANE "state"), "slow");
	assert_int_equal(number_at(root, LANE "destinations"), 5);
	assert_int_equal(number_at(root, LANE "drain_rate"), 10000000);
	assert_int_equal(number_at(root, LANE "queue_delay_ns"), 12345);
	assert_int_equal(number_at(root, LANE "drop_late"), 9);
	assert_string_equal(text_at(root, LANE "busiest/0/mac"),
			    "02:00:00:00:00:ab");
	assert_string_equal(text_at(root, LANE "busiest/0/ip"), "10.0.0.2");
	assert_int_equal(number_at(root, LANE "busiest/0/parked_packets"), 7);
	assert_string_equal(text_at(root, LANE "busiest/1/ip"), "fd00::1");
	assert_false(json_object_object_get_ex(at(root, LANE "busiest/2"), "ip",
					       NULL));
	for (size_t i = 0; i < vl_lane_counter_count; i++) {
		snprintf(path, sizeof(path), LANE "%s",
			 vl_lane_counter_table[i].name);
		assert_true(json_object_is_type(at(root, path), json_type_int));
	}
	json_object_put(root);
	free(text);
	free(s);
}

static void test_json_tunnel(void **state)
{
	struct vl_snapshot *s = new_snapshot(2);
	struct json_object *root;
	char *text, path[128];

	(void)state;
	s->pair[1].has_tunnel = true;
	s->pair[1].tunnel.drop_peer = 3;
	text = vl_snapshot_json(s);
	root = json_tokener_parse(text);
	assert_non_null(root);
	assert_false(json_object_object_get_ex(at(root, "queue_pairs/0"),
					       "tunnel", NULL));
	for (size_t i = 0; i < vl_tunnel_counter_count; i++) {
		const char *name = vl_tunnel_counter_table[i].name;

		snprintf(path, sizeof(path), "queue_pairs/1/tunnel/%s", name);
		assert_int_equal(number_at(root, path),
				 strcmp(name, "drop_peer") ? 0 : 3);
	}
	json_object_put(root);
	free(text);
	free(s);
}

static void test_json_empty(void **state)
{
	struct vl_snapshot *s = calloc(1, sizeof(*s));
	char *text;
	struct json_object *root;

	(void)state;
	assert_non_null(s);
	text = vl_snapshot_json(s);
	assert_non_null(text);
	root = json_tokener_parse(text);
	assert_string_equal(json_object_get_string(at(root, "link")),
			    "unknown");
	assert_int_equal(json_object_array_length(at(root, "queue_pairs")), 0);
	json_object_put(root);
	free(text);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counter_tables),
		cmocka_unit_test(test_cycles_of_thread),
		cmocka_unit_test(test_cycles_fallback),
		cmocka_unit_test(test_cycles_from_another_thread),
		cmocka_unit_test(test_tsc_is_stable),
		cmocka_unit_test(test_bits_per_cycle),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_lanes),
		cmocka_unit_test(test_json_tunnel),
		cmocka_unit_test(test_json_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
