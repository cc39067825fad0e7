/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes: who is found to be slow, when, and that nobody else notices. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "lane/steer.h"
#include "lane_net.h"

#define MS        1000000ULL
#define SLOW_RATE 1250000ULL  /* 10 Mbit/s */
#define FAST_RATE 12500000ULL /* 100 Mbit/s */
#define STALLED   1u          /* byte per second */
#define FRAME     1500u
#define WAYS      8u
#define SIDE_BUF  32768u
#define LIMITED   131072u
#define UNLIMITED 0u

static struct lane_net net;

static void init(uint64_t express)
{
	net_init_probes(&net, WAYS, express, SIDE_BUF, VL_PROBES_MAX);
	assert_int_equal(net.ls.probes.n, VL_PROBES_MAX);
}

static void finish(void)
{
	assert_int_equal(net.reordered, 0);
	net_free(&net);
}

static uint32_t random_below(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

static void send(unsigned int dest)
{
	while (!net_add(&net, dest, FRAME))
		net_turn(&net);
}

/* @each frames for each of @count destinations in turn, from @first on, a
 * millisecond. */
static void run(unsigned int first, unsigned int count, unsigned int each,
		unsigned int ms)
{
	for (unsigned int t = 0; t < ms; t++) {
		for (unsigned int i = 0; i < count * each; i++)
			send(first + i % count);
		net_turn(&net);
		net_advance(&net, MS);
	}
}

/* Time passes until nothing waits any more; everything was accounted for. */
static void settle(void)
{
	for (unsigned int i = 0; i < NET_DESTS; i++)
		net.dest[i].rate = 0;
	for (int i = 0; i < 5000 && (net.n_used || net.ls.dests.count); i++) {
		net_turn(&net);
		net_advance(&net, MS);
	}
	assert_int_equal(net.n_used, 0);
	assert_int_equal(net.ls.dests.count, 0);
	for (unsigned int i = 0; i < NET_DESTS; i++)
		assert_int_equal(net.dest[i].offered,
				 net.dest[i].taken + net_dropped(&net, i));
}

static unsigned int lane_of(unsigned int dest)
{
	const struct vl_dest_key key = {
		.mac = { 2, 0, 0, 0, 0, (uint8_t)dest },
		.addr_len = 4,
		.addr = { 10, 0, (uint8_t)(dest >> 8), (uint8_t)dest },
	};
	const struct vl_dest *d = vl_dest_find(&net.ls.dests, &key);

	return d ? d->lane : 0;
}

static uint64_t by_probe(unsigned int i)
{
	return net.way[WAYS + i].sent;
}

static unsigned int busy_probes(void)
{
	return net.ls.probes.probe[0].busy + net.ls.probes.probe[1].busy;
}

/* One packet to @dest, which is stalled, by a probe. */
static void catch_probe(unsigned int dest)
{
	unsigned int before = busy_probes();

	net.dest[dest].rate = STALLED;
	for (int i = 0; i < 100 && busy_probes() == before; i++)
		run(dest, 1, 1, 1);
	assert_int_equal(busy_probes(), before + 1);
}

/* A queue of 120 ms stands at its destination. The express lane takes all. */
static void slow_one_is_found_in_time(void **state)
{
	unsigned int t = 0;

	(void)state;
	init(UNLIMITED);
	net.dest[1].rate = SLOW_RATE;
	net.dest[2].rate = FAST_RATE;
	for (int i = 0; i < 100; i++)
		send(1);
	net_turn(&net);
	assert_int_equal(by_probe(0) + by_probe(1), 0);
	for (; t < 100 && !lane_of(1); t++)
		run(1, 2, 1, 1);
	assert_true(t >= 20);
	assert_true(t <= 24);
	assert_int_equal(net.ls.probes.found, 1);
	assert_int_equal(net.ls.side[lane_of(1)].moves, 1);
	assert_int_equal(net.ls.dests.count, 1);
	assert_int_equal(net.ls.side[0].refusals, 0);
	/* It is slow on a lane of its own, and the other one fast. */
	run(1, 2, 2, 300);
	assert_int_equal(vl_lane_set_state(&net.ls, lane_of(1)), VL_LANE_SLOW);
	assert_true(net.dest[1].count * FRAME <= SIDE_BUF + FRAME);
	assert_int_equal(lane_of(2), 0);
	assert_int_equal(net_dropped(&net, 2), 0);
	assert_int_equal(net.ls.probes.found, 1);
	assert_int_equal(net.ls.side[0].refusals, 0);
	settle();
	finish();
}

/* 10 Mbit/s that are offered 30: its queue grows from nothing. */
static void growing_queue_is_found(void **state)
{
	unsigned int t = 0;

	(void)state;
	init(UNLIMITED);
	net.dest[1].rate = SLOW_RATE;
	for (; t < 300 && !lane_of(1); t++)
		run(1, 1, 2 + t % 2, 1);
	assert_true(t <= 60);
	settle();
	finish();
}

/* Up to 10 ms of queue, or none at all. */
static void fast_one_is_never_found(void **state)
{
	(void)state;
	init(UNLIMITED);
	net.dest[1].rate = FAST_RATE;
	for (int i = 0; i < 50; i++) {
		run(1, 2, 40, 2);
		run(1, 2, 0, 8);
	}
	run(1, 2, 8, 500);
	assert_true(net.ls.probes.sent > 300);
	assert_int_equal(net.ls.probes.sent, by_probe(0) + by_probe(1));
	assert_int_equal(net.ls.probes.found, 0);
	for (unsigned int i = 1; i < WAYS; i++)
		assert_int_equal(net.ls.side[i].moves, 0);
	assert_int_equal(net.dest[1].offered, net.dest[1].taken);
	assert_int_equal(net.dest[2].offered, net.dest[2].taken);
	finish();
}

/* Batches of @count destinations in the same order, the slow one at @place, a
 * batch every @ms milliseconds. How many batches until it is found. */
static unsigned int batches_until_found(unsigned int count, unsigned int place,
					unsigned int ms, unsigned int max)
{
	unsigned int slow = 1 + place, n = 0;

	init(UNLIMITED);
	/* A frame takes so long that it is late, and no longer where there is
	 * time for that. */
	net.dest[slow].rate = FRAME * VL_NS_PER_SEC / (25 * MS);
	for (; n < max && !lane_of(slow); n++) {
		run(1, count, 1, 1);
		for (unsigned int i = 1; i < ms; i++)
			net_advance(&net, MS);
	}
	assert_true(lane_of(slow) || n == max);
	assert_int_equal(net.ls.dests.count, n < max);
	settle();
	finish();
	return n;
}

/* A guest that sends to its destinations in turn, forever. */
static void order_of_sending_hides_nobody(void **state)
{
	static const struct {
		unsigned int count, place, ms, max;
	} c[] = {
		{ 2, 0, 1, 60 },    { 2, 1, 1, 60 },     { 2, 1, 30, 30 },
		{ 8, 7, 1, 400 },   { 8, 0, 30, 400 },   { 32, 31, 1, 400 },
		{ 50, 49, 1, 400 }, { 50, 49, 30, 500 }, { 50, 20, 30, 500 },
		{ 64, 63, 1, 400 }, { 64, 63, 30, 700 }, { 200, 199, 30, 2000 },
	};

	(void)state;
	for (size_t i = 0; i < VL_ARRAY_SIZE(c); i++) {
		if (batches_until_found(c[i].count, c[i].place, c[i].ms,
					c[i].max) == c[i].max)
			fail_msg("%u destinations, number %u, each %u ms: not "
				 "found",
				 c[i].count, c[i].place, c[i].ms);
	}
}

/* Rates that change, batches of all sizes, refusals of all kinds. */
static void shake(uint64_t express)
{
	static const uint64_t rates[] = { 0, SLOW_RATE / 10, SLOW_RATE,
					  FAST_RATE };
	uint32_t rnd = 3;

	init(express);
	net.ls.probes.random = 77;
	for (unsigned int t = 0; t < 20000; t++) {
		uint32_t n = random_below(&rnd, 20);
		uint32_t hot = random_below(&rnd, 8);

		if (t % 50 == 0)
			net.dest[random_below(&rnd, 8)].rate =
				rates[random_below(&rnd, 4)];
		for (uint32_t i = 0; i < n; i++)
			net_add(&net,
				random_below(&rnd, 3) ? hot
						      : random_below(&rnd, 8),
				60 + random_below(&rnd, 1400));
		net_turn(&net);
		/* No destination stalls for longer than its queue holds. */
		for (unsigned int i = 0; i < 8; i++)
			if (net.dest[i].count > NET_QUEUE - 64)
				net.dest[i].rate = 0;
		net_advance(&net, random_below(&rnd, 3) * MS);
	}
	assert_true(net.ls.probes.sent > 500);
	/* A limited lane may be full before. */
	if (express == UNLIMITED)
		assert_true(net.ls.probes.found > 0);
	assert_int_equal(net.reordered, 0);
	settle();
	finish();
}

static void order_is_kept(void **state)
{
	(void)state;
	shake(UNLIMITED);
	shake(LIMITED);
	shake(20000);
}

/* Among sends that are linked a probe would overtake those before it. */
static void only_the_first_of_linked_sends(void **state)
{
	uint64_t probes = 0;

	(void)state;
	init(LIMITED);
	for (int i = 0; i < 200; i++) {
		send(1);
		probes = net.ls.probes.sent;
		for (int k = 0; k < 40; k++)
			send(1);
		assert_int_equal(net.ls.probes.sent, probes);
		net_turn(&net);
		net_advance(&net, MS);
	}
	assert_in_range(probes, 90, 200);
	assert_int_equal(net.dest[1].taken, net.dest[1].offered);
	finish();
	/* Where the lane takes everything any may be taken. */
	init(UNLIMITED);
	for (int i = 0; i < 200; i++) {
		uint64_t before = net.ls.probes.sent;

		send(1);
		probes += before == net.ls.probes.sent;
		run(1, 1, 40, 1);
	}
	assert_true(probes > 20);
	assert_true(net.ls.probes.sent > 100);
	finish();
	/* Nor where it refused although it never would. */
	init(UNLIMITED);
	net.ls.lane[0].link_sends = true;
	run(1, 1, 40, 200);
	assert_true(net.ls.probes.sent > 80);
	finish();
}

/* A packet does not leave its probe for seconds. */
static void stuck_probe_stops_nothing(void **state)
{
	uint64_t sent, taken;

	(void)state;
	init(UNLIMITED);
	catch_probe(1);
	run(2, 1, 1, 25);
	assert_true(lane_of(1) > 0);
	assert_int_equal(lane_of(2), 0);
	assert_int_equal(busy_probes(), 1);
	sent = net.ls.probes.sent;
	taken = net.dest[2].taken;
	run(2, 1, 5, 3000);
	/* Its lane was given back, but one packet tells once. */
	assert_int_equal(net.ls.probes.found, 1);
	assert_int_equal(net.ls.dests.count, 0);
	assert_int_equal(net.dest[2].taken - taken, 15000);
	assert_true(net.ls.probes.sent > sent + 1000);
	assert_int_equal(by_probe(0) + by_probe(1), net.ls.probes.sent);
	assert_int_equal(busy_probes(), 1);
	settle();
	run(2, 1, 1, 1);
	assert_int_equal(busy_probes(), 0);
	finish();
}

static void both_stuck(void **state)
{
	uint64_t sent, taken;

	(void)state;
	init(UNLIMITED);
	catch_probe(1);
	catch_probe(3);
	run(2, 1, 1, 30);
	assert_int_equal(busy_probes(), 2);
	assert_int_equal(net.ls.probes.found, 2);
	sent = net.ls.probes.sent;
	taken = net.dest[2].taken;
	run(2, 1, 70, 1000);
	assert_int_equal(net.ls.probes.sent, sent);
	assert_int_equal(net.dest[2].taken - taken, 70000);
	settle();
	run(2, 1, 5, 100);
	assert_int_equal(busy_probes(), 0);
	assert_true(net.ls.probes.sent > sent + 40);
	finish();
}

/* Both probes hold packets of one destination. */
static void found_is_counted_once(void **state)
{
	(void)state;
	init(UNLIMITED);
	catch_probe(1);
	catch_probe(1);
	run(1, 2, 1, 50);
	assert_int_equal(busy_probes(), 2);
	assert_int_equal(net.ls.probes.found, 1);
	assert_int_equal(net.ls.side[lane_of(1)].moves, 1);
	settle();
	finish();
}

/* Nobody looks while the guest sends nothing: what left meanwhile was not
 * late. */
static void silence_makes_nobody_late(void **state)
{
	(void)state;
	init(UNLIMITED);
	for (int i = 0; i < 50; i++) {
		net.dest[1].rate = FRAME * VL_NS_PER_SEC / (10 * MS);
		run(1, 1, 1, 1);
		net_advance(&net, VL_NS_PER_SEC);
	}
	assert_true(net.ls.probes.sent > 20);
	assert_int_equal(net.ls.probes.found, 0);
	finish();
}

static void no_probes_nothing_sent(void **state)
{
	(void)state;
	net_init_probes(&net, WAYS, LIMITED, SIDE_BUF, 0);
	run(1, 2, 10, 100);
	assert_int_equal(net.ls.probes.n, 0);
	assert_int_equal(net.ls.probes.sent, 0);
	finish();
	/* Found, it would have nowhere to go. */
	net_init_probes(&net, 1, UNLIMITED, SIDE_BUF, VL_PROBES_MAX);
	assert_int_equal(net.ls.mode, VL_TX_FULL_BLOCK);
	run(1, 2, 10, 100);
	assert_int_equal(net.ls.probes.n, 0);
	assert_int_equal(net.ls.probes.sent, 0);
	assert_int_equal(net.way[0].sent, 2000);
	finish();
}

/* With one probe alone, and turns of microseconds. */
static void at_most_one_in_a_millisecond(void **state)
{
	(void)state;
	for (unsigned int probes = 1; probes <= VL_PROBES_MAX; probes++) {
		net_init_probes(&net, WAYS, UNLIMITED, SIDE_BUF, probes);
		for (unsigned int us = 0; us < 200000; us += 50) {
			for (int i = 0; i < 60; i++)
				send(1);
			net_turn(&net);
			net_advance(&net, MS / 20);
			assert_true(net.ls.probes.sent <= us / 1000 + 1);
		}
		assert_true(net.ls.probes.sent >= 100);
		finish();
	}
}

static void link_down_and_up(void **state)
{
	uint64_t sent;

	(void)state;
	init(UNLIMITED);
	/* Under way when the link goes down, and soon gone. */
	catch_probe(1);
	net.dest[1].rate = 0;
	net.base.link = VL_LINK_DOWN;
	vl_lane_set_link(&net.ls, true);
	sent = by_probe(0) + by_probe(1) + net.way[0].sent;
	run(1, 2, 5, 500);
	assert_int_equal(by_probe(0) + by_probe(1) + net.way[0].sent, sent);
	assert_int_equal(net.dest[1].ended[VL_PKT_DOWN], 2500);
	assert_int_equal(net.dest[2].ended[VL_PKT_DOWN], 2500);
	/* A tap that is down is not writable, which is nobody's fault. */
	assert_int_equal(net.ls.probes.found, 0);
	net.base.link = VL_LINK_UP;
	vl_lane_set_link(&net.ls, false);
	run(1, 2, 5, 100);
	assert_int_equal(net.ls.probes.found, 0);
	assert_int_equal(net.dest[2].ended[VL_PKT_SENT], 500);
	assert_true(by_probe(0) + by_probe(1) > 50);
	/* One that is slow is found afterwards. */
	catch_probe(3);
	run(2, 1, 1, 25);
	assert_true(lane_of(3) > 0);
	settle();
	finish();
}

static void inactive_port(void **state)
{
	uint64_t sent;

	(void)state;
	init(UNLIMITED);
	run(1, 1, 5, 50);
	sent = net.ls.probes.sent;
	assert_true(sent > 20);
	assert_int_equal(vl_lane_set_activate(&net.ls, false), 0);
	sent = net.sends;
	run(1, 1, 5, 50);
	assert_int_equal(net.sends, sent);
	assert_int_equal(net.dest[1].ended[VL_PKT_GONE], 250);
	/* It could not be attached: nothing goes out by a back door. */
	net.active_result = -EBUSY;
	assert_int_equal(vl_lane_set_activate(&net.ls, true), -EBUSY);
	run(1, 1, 5, 50);
	assert_int_equal(net.sends, sent);
	net.active_result = 0;
	assert_int_equal(vl_lane_set_activate(&net.ls, true), 0);
	run(1, 1, 5, 50);
	assert_int_equal(net.sends, sent + 250);
	assert_int_equal(net.dest[1].ended[VL_PKT_SENT], 500);
	finish();
}

/* The packet is lost, and counted as what it ended with. */
static void failed_send_costs_one_packet(void **state)
{
	static const struct {
		int res;
		enum vl_pkt_end end;
	} c[] = {
		{ -EIO, VL_PKT_DOWN },       { -ENOMEM, VL_PKT_NOMEM },
		{ -EAGAIN, VL_PKT_REFUSED }, { -EINVAL, VL_PKT_REFUSED },
		{ -EBADFD, VL_PKT_GONE },
	};

	(void)state;
	for (size_t i = 0; i < 2 * VL_ARRAY_SIZE(c); i++) {
		size_t k = i / 2;

		init(i % 2 ? LIMITED : UNLIMITED);
		net.way[WAYS].fail = c[k].res;
		run(1, 1, 40, 100);
		assert_int_equal(net.way[WAYS].fail, 0);
		assert_int_equal(net.dest[1].ended[c[k].end], 1);
		assert_int_equal(net_dropped(&net, 1), 1);
		assert_int_equal(net.dest[1].taken, 3999);
		assert_int_equal(net.ls.probes.found, 0);
		assert_int_equal(net.ls.side[0].refusals, 0);
		assert_int_equal(net.ls.side[1].moves, 0);
		assert_true(vl_lane_set_ready(&net.ls));
		/* The probe is not lost with it. */
		assert_true(by_probe(0) > 40);
		finish();
	}
}

/* No place in the table: it stays where it is, and nothing else happens. */
static void table_is_full(void **state)
{
	uint64_t sent;

	(void)state;
	init(UNLIMITED);
	catch_probe(1);
	for (unsigned int i = 0; i < VL_DEST_MAX; i++) {
		net.ls.dests.entry[i].lane = 1;
		net.ls.dests.entry[i].parked = 1;
		net.ls.dests.entry[i].key.mac[1] = 1;
	}
	net.ls.dests.count = VL_DEST_MAX;
	sent = net.ls.probes.sent;
	run(2, 1, 5, 50);
	assert_int_equal(net.ls.probes.found, 1);
	assert_int_equal(lane_of(1), 0);
	assert_int_equal(net.ls.side[1].moves, 0);
	assert_int_equal(net.dest[2].taken, 250);
	assert_true(net.ls.probes.sent > sent + 20);
	memset(&net.ls.dests, 0, sizeof(net.ls.dests));
	settle();
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_one_is_found_in_time),
		cmocka_unit_test(growing_queue_is_found),
		cmocka_unit_test(fast_one_is_never_found),
		cmocka_unit_test(order_of_sending_hides_nobody),
		cmocka_unit_test(order_is_kept),
		cmocka_unit_test(only_the_first_of_linked_sends),
		cmocka_unit_test(stuck_probe_stops_nothing),
		cmocka_unit_test(both_stuck),
		cmocka_unit_test(found_is_counted_once),
		cmocka_unit_test(silence_makes_nobody_late),
		cmocka_unit_test(no_probes_nothing_sent),
		cmocka_unit_test(at_most_one_in_a_millisecond),
		cmocka_unit_test(link_down_and_up),
		cmocka_unit_test(inactive_port),
		cmocka_unit_test(failed_send_costs_one_packet),
		cmocka_unit_test(table_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
