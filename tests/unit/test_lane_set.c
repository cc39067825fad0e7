/* SPDX-License-Identifier: BSD-3-Clause */
/* Who leaves by which lane, who waits, who is dropped; the order of all. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "lane/steer.h"
#include "lane_net.h"

#define MS          1000000ULL
#define SLOW_RATE   1250000ULL  /* 10 Mbit/s */
#define FAST_RATE   12500000ULL /* 100 Mbit/s */
#define EXPRESS_BUF 131072u
#define SIDE_BUF    32768u
#define STALLED     1u /* byte per second */
#define LARGE       60000u

static struct lane_net net;

static void init(unsigned int ways)
{
	net_init(&net, VL_TX_FULL_LANES, ways, EXPRESS_BUF, SIDE_BUF);
}

static void finish(void)
{
	assert_int_equal(net.reordered, 0);
	assert_true(net.pool_peak <= net.pool_max);
	net_free(&net);
}

static uint32_t random_below(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

/* A flow of @rate bytes per second, in frames of 1500 bytes. */
struct flow {
	unsigned int dest;
	uint64_t rate;
	uint64_t owed;
};

/* All flows for @ms milliseconds, in turns of one. */
static void run(struct flow *flows, size_t count, unsigned int ms)
{
	for (unsigned int t = 0; t < ms; t++) {
		bool more = true;

		for (size_t i = 0; i < count; i++)
			flows[i].owed += flows[i].rate / 1000;
		while (more) {
			more = false;
			for (size_t i = 0; i < count; i++) {
				if (flows[i].owed < 1500)
					continue;
				if (!net_add(&net, flows[i].dest, 1500)) {
					net_turn(&net);
					continue;
				}
				flows[i].owed -= 1500;
				more = true;
			}
		}
		net_turn(&net);
		net_advance(&net, MS);
	}
}

/* Time passes until nothing waits any more. */
static void settle(void)
{
	for (int i = 0; i < 20000 && (net.n_used || net.ls.dests.count); i++) {
		net_turn(&net);
		net_advance(&net, MS);
	}
	assert_int_equal(net.n_used, 0);
	assert_int_equal(net.ls.dests.count, 0);
	assert_int_equal(net.pool, 0);
}

/* Rule 1. */
static void express_takes_all_while_it_can(void **state)
{
	(void)state;
	init(8);
	for (unsigned int i = 0; i < 2000; i++) {
		if (i % 64 == 0)
			net_turn(&net);
		assert_true(net_add(&net, i % 50, 60 + i % 1400));
		assert_int_equal(net.ls.dests.count, 0);
	}
	net_turn(&net);
	assert_int_equal(net.way[0].sent, 2000);
	assert_int_equal(net.rounds, 1);
	assert_int_equal(vl_steer_timeout(&net.ls), -1);
	finish();
}

/* Rules 2 and 3. */
static void refused_destination_gets_a_lane(void **state)
{
	(void)state;
	init(8);
	net.dest[1].rate = STALLED;
	net.way[0].sndbuf = 22000;
	for (int i = 0; i < 12; i++)
		net_add(&net, 1, 1500);
	net_turn(&net);
	assert_int_equal(net.way[0].sent, 10);
	assert_int_equal(net.dest[1].taken, 12);
	assert_int_equal(net.ls.dests.count, 1);
	/* The innocent one is refused too, finds its lane empty and passes. */
	for (int i = 0; i < 10; i++)
		net_add(&net, 2, 1500);
	net_turn(&net);
	assert_int_equal(net.dest[2].taken, 10);
	assert_int_equal(net.parks[2], 0);
	assert_int_equal(net.ls.dests.count, 2);
	/* Only the guilty waits. */
	for (int i = 0; i < 40; i++) {
		net_add(&net, 1, 1500);
		net_add(&net, 2, 1500);
		if (i % 20 == 19)
			net_turn(&net);
	}
	assert_int_equal(net.dest[2].taken, 50);
	assert_int_equal(net.parks[2], 0);
	assert_true(net.parks[1] > 0);
	assert_true(net.pool > 0);
	assert_int_equal(vl_lane_set_state(&net.ls, 0), VL_LANE_EXPRESS);
	net.dest[1].rate = 0;
	settle();
	finish();
}

/* The reason for all of this. */
static void slow_one_leaves_the_fast_one_alone(void **state)
{
	struct flow flows[] = {
		{ .dest = 1, .rate = 6 * SLOW_RATE },
		{ .dest = 2, .rate = FAST_RATE - 1000 },
	};

	(void)state;
	init(8);
	net.dest[1].rate = SLOW_RATE;
	net.dest[2].rate = FAST_RATE;
	run(flows, 2, 2000);
	settle();
	assert_int_equal(net_dropped(&net, 2), 0);
	assert_true(net.dest[2].stall_ns <= 5 * MS);
	assert_true(net.dest[1].taken_bytes >= 2 * SLOW_RATE * 95 / 100);
	assert_true(net_dropped(&net, 1) > 0);
	/* Most by CoDel and the limit, none for want of room. */
	assert_int_equal(net.dest[1].ended[VL_PKT_POOL], 0);
	finish();
}

/* An error of one packet is no push-back. */
static void error_in_a_batch_moves_nobody(void **state)
{
	(void)state;
	init(8);
	net.fail_every = 10;
	for (int i = 0; i < 60; i++)
		net_add(&net, 1 + i % 3, 500);
	net_turn(&net);
	assert_int_equal(net.n_used, 0);
	assert_int_equal(net.ls.dests.count, 0);
	assert_int_equal(net.ls.side[0].refusals, 0);
	assert_int_equal(net.dest[1].ended[VL_PKT_REFUSED] +
				 net.dest[2].ended[VL_PKT_REFUSED] +
				 net.dest[3].ended[VL_PKT_REFUSED],
			 net.sends / 10);
	assert_int_equal(net.way[0].sent, 60 - net.sends / 10);
	finish();
}

/* The same where the network's refusal means a drop. */
static void error_in_a_batch_drops_one(void **state)
{
	(void)state;
	net_init(&net, VL_TX_FULL_DROP, 1, EXPRESS_BUF, 0);
	net.fail_every = 10;
	for (int i = 0; i < 60; i++)
		net_add(&net, 1, 500);
	net_turn(&net);
	assert_int_equal(net.dest[1].ended[VL_PKT_FULL], 0);
	assert_int_equal(net.dest[1].taken, 60 - net.sends / 10);
	net.fail_every = 0;
	net.dest[1].rate = STALLED;
	for (int k = 0; k < 8; k++) {
		for (int i = 0; i < 60; i++)
			net_add(&net, 1, 500);
		net_turn(&net);
	}
	assert_int_equal(net.n_used, 0);
	assert_true(net.dest[1].ended[VL_PKT_FULL] > 0);
	finish();
}

/* A backend that said it takes everything, and does not: no order to lose. */
static void surprising_refusal_keeps_the_order(void **state)
{
	(void)state;
	init(4);
	net.ls.lane[0].limited = false;
	net.dest[1].rate = STALLED;
	net.way[0].sndbuf = 5000;
	for (int k = 0; k < 4; k++) {
		for (int i = 0; i < 20; i++)
			net_add(&net, 1, 400);
		/* Room in the middle of a batch. */
		net.way[0].sndbuf += 1000;
		for (int i = 0; i < 20; i++)
			net_add(&net, 1, 400);
		net_turn(&net);
	}
	assert_int_equal(net.reordered, 0);
	net.dest[1].rate = 0;
	settle();
	finish();
}

/* Whatever happens, packets of a destination leave in order and end once. */
static uint64_t shake(unsigned int ways)
{
	uint32_t rnd = 7;
	uint64_t merges = 0, cuts = 0;
	unsigned int hot = 0; /* has half of the traffic, for a while */

	init(ways);
	net.way[0].sndbuf = 20000;
	net.fail_every = 97;
	net.pool_max = 200;
	for (int t = 0; t < 5000; t++) {
		unsigned int n = random_below(&rnd, 64);

		if (random_below(&rnd, 20) == 0)
			net.dest[random_below(&rnd, 30)].rate =
				random_below(&rnd, 3) *
				(100000 + random_below(&rnd, 300000));
		if (random_below(&rnd, 50) == 0)
			hot = random_below(&rnd, 30);
		while (n--) {
			unsigned int dest = random_below(&rnd, 60);
			uint32_t len = 60 + random_below(&rnd, 1455);

			if (random_below(&rnd, 20) == 0)
				len = 60 + random_below(&rnd, LARGE);
			net_add(&net, dest < 30 ? dest : hot, len);
		}
		net_turn(&net);
		net_advance(&net, random_below(&rnd, 2000000));
		net.cut = random_below(&rnd, 4) ? NET_CUT : NET_CUT_LATER;
		if (random_below(&rnd, 1000) == 0) {
			vl_lane_set_link(&net.ls, true);
			net_turn(&net);
			vl_lane_set_link(&net.ls, false);
		}
	}
	for (unsigned int i = 1; i < ways; i++)
		merges += net.ls.side[i].merges;
	for (unsigned int i = 0; i < 30; i++)
		net.dest[i].rate = 0;
	settle();
	for (unsigned int i = 0; i < 30; i++) {
		const struct net_dest *d = &net.dest[i];

		cuts += d->cuts;

		assert_true(d->taken > 0);
		assert_int_equal(d->ended[VL_PKT_SENT], d->taken);
		assert_int_equal(d->taken + net_dropped(&net, i), d->offered);
	}
	assert_true(cuts > 0);
	finish();
	return merges;
}

static void order_survives_everything(void **state)
{
	uint64_t merges = 0;

	(void)state;
	for (unsigned int ways = 2; ways <= VL_LANES_MAX; ways++)
		merges += shake(ways);
	assert_true(merges > 0);
}

static void waiting_is_limited(void **state)
{
	(void)state;
	init(4);
	net.dest[1].rate = SLOW_RATE;
	net.pool_max = 1000;
	for (int t = 0; t < 1000; t++) {
		for (int i = 0; i < 10; i++)
			net_add(&net, 1, 1500);
		net_turn(&net);
		net_advance(&net, MS);
		/* What waits drains in about 25 ms, once the rate is known. */
		if (t > 400)
			assert_true(net.pool <= 2 + SLOW_RATE / 40 / 1500 + 8);
	}
	assert_true(net.ls.side[1].drops_limit > 0);
	assert_int_equal(net.ls.side[1].drops_limit,
			 net.dest[1].ended[VL_PKT_LIMIT]);
	assert_true(net.ls.side[1].rate > SLOW_RATE * 9 / 10);
	assert_true(net.ls.side[1].rate < SLOW_RATE * 11 / 10);
	settle();
	finish();
}

/* What waits when a lane becomes slow waits too long: CoDel's. */
static void standing_queue_is_dropped_early(void **state)
{
	struct flow flow = { .dest = 1, .rate = 2 * SLOW_RATE };

	(void)state;
	init(4);
	net.dest[1].rate = SLOW_RATE;
	run(&flow, 1, 1000);
	assert_true(net.ls.side[1].delay_ns < 50 * MS);
	net.dest[1].rate = SLOW_RATE / 50;
	run(&flow, 1, 3000);
	assert_true(net.ls.side[1].drops_late > 0);
	assert_int_equal(net.ls.side[1].drops_late,
			 net.dest[1].ended[VL_PKT_LATE]);
	settle();
	finish();
}

/* Rule 7: the slowest get the lanes with a short send buffer, others do not. */
static void slowest_get_short_buffers(void **state)
{
	struct flow flows[] = {
		{ .dest = 1, .rate = SLOW_RATE / 5 },
		{ .dest = 2, .rate = 2 * SLOW_RATE },
	};

	(void)state;
	init(8);
	net.ls.first_short = 6;
	net.way[6].sndbuf = 6000;
	net.way[7].sndbuf = 6000;
	net.dest[1].rate = SLOW_RATE / 10;
	net.dest[2].rate = SLOW_RATE;
	run(flows, 2, 3000);
	assert_int_equal(vl_lane_set_state(&net.ls, 6), VL_LANE_SLOW);
	assert_int_equal(net.ls.side[6].dests, 1);
	assert_true(net.ls.side[6].rate < SLOW_RATE / 10 * 11 / 10);
	assert_true(net.ls.side[6].sent_bytes > SLOW_RATE / 10);
	assert_int_equal(vl_lane_set_state(&net.ls, 7), VL_LANE_IDLE);
	assert_int_equal(net.ls.side[7].moves, 0);
	settle();
	finish();
}

/* No lane can have the whole pool: others need some of it. */
static void one_lane_leaves_room_for_others(void **state)
{
	(void)state;
	init(8);
	net.dest[1].rate = STALLED;
	net.dest[2].rate = STALLED;
	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < 60; k++)
			net_add(&net, 1, 60);
		net_turn(&net);
	}
	assert_true(net.pool > 0);
	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < 60; k++)
			net_add(&net, 2, 60);
		net_turn(&net);
	}
	assert_int_equal(net.dest[1].ended[VL_PKT_POOL], 0);
	assert_int_equal(net.dest[2].ended[VL_PKT_POOL], 0);
	assert_true(net.parks[2] > 0);
	net.dest[1].rate = 0;
	net.dest[2].rate = 0;
	settle();
	finish();
}

static void full_pool_drops_and_counts(void **state)
{
	(void)state;
	init(4);
	net.pool_max = 5;
	net.dest[1].rate = STALLED;
	for (int i = 0; i < 10; i++) {
		for (int k = 0; k < 60; k++)
			net_add(&net, 1, 1500);
		net_turn(&net);
	}
	assert_int_equal(net.pool, 5);
	assert_true(net.dest[1].ended[VL_PKT_POOL] > 0);
	assert_int_equal(net.ls.side[1].drops_pool,
			 net.dest[1].ended[VL_PKT_POOL]);
	/* It never stands in the way of others. */
	for (int k = 0; k < 60; k++)
		net_add(&net, 2, 1500);
	net_turn(&net);
	assert_int_equal(net.dest[2].taken, 60);
	net.dest[1].rate = 0;
	settle();
	finish();
}

/* Rule 8: a fast one, itself shaped, beside 200 slow ones. */
static void many_slow_ones_share(void **state)
{
	static struct flow flows[201];
	uint64_t begin;

	(void)state;
	init(8);
	flows[0] = (struct flow){ .dest = 0, .rate = FAST_RATE * 98 / 100 };
	net.dest[0].rate = FAST_RATE;
	for (unsigned int i = 1; i <= 200; i++) {
		flows[i] = (struct flow){ .dest = i, .rate = 60000 };
		net.dest[i].rate = 12500;
	}
	/* All begin at once: it takes a moment to tell them apart. */
	run(flows, 201, 1000);
	begin = net.dest[0].taken_bytes;
	net.dest[0].stall_ns = 0;
	run(flows, 201, 5000);
	assert_true(net.dest[0].taken_bytes - begin >=
		    5 * flows[0].rate * 99 / 100);
	assert_true(net.dest[0].stall_ns <= 20 * MS);
	assert_true(begin > flows[0].rate / 2);
	for (unsigned int i = 0; i <= 200; i++)
		net.dest[i].rate = 0;
	settle();
	finish();
}

/* Rule 9. */
static void idle_lane_is_given_back(void **state)
{
	struct flow flow = { .dest = 1, .rate = 2 * SLOW_RATE };
	uint64_t express;

	(void)state;
	init(8);
	net.dest[1].rate = SLOW_RATE;
	run(&flow, 1, 300);
	assert_int_equal(net.ls.dests.count, 1);
	assert_int_equal(vl_lane_set_state(&net.ls, 1), VL_LANE_SLOW);
	assert_true(vl_steer_timeout(&net.ls) > 0);
	settle();
	assert_int_equal(vl_lane_set_state(&net.ls, 1), VL_LANE_IDLE);
	assert_int_equal(net.ls.side[1].returns, 1);
	express = net.way[0].sent;
	net_add(&net, 1, 1500);
	net_turn(&net);
	assert_int_equal(net.way[0].sent, express + 1);
	finish();
}

/* A slow one that becomes fast is not taken for slow any more, though it
 * never pauses. */
static void fast_again_is_found_out(void **state)
{
	struct flow flow = { .dest = 1, .rate = 2 * SLOW_RATE };
	uint64_t express;

	(void)state;
	init(8);
	net.dest[1].rate = SLOW_RATE;
	run(&flow, 1, 300);
	net.dest[1].rate = 0;
	run(&flow, 1, 300);
	assert_int_not_equal(vl_lane_set_state(&net.ls, 1), VL_LANE_SLOW);
	run(&flow, 1, 1000);
	assert_int_equal(net.ls.dests.count, 0);
	express = net.way[0].sent;
	run(&flow, 1, 100);
	assert_true(net.way[0].sent > express + 100);
	finish();
}

static void fill_lanes(unsigned int dests)
{
	for (unsigned int i = 1; i <= dests; i++)
		net.dest[i].rate = STALLED;
	for (int k = 0; k < 60; k++) {
		for (unsigned int i = 1; i <= dests; i++)
			net_add(&net, i, 1500);
		net_turn(&net);
	}
	assert_true(net.pool > 0);
}

static void link_down_ends_the_waiting(void **state)
{
	(void)state;
	init(8);
	fill_lanes(7);
	vl_lane_set_link(&net.ls, true);
	net_turn(&net);
	assert_int_equal(net.n_used, 0);
	assert_true(net.dest[1].ended[VL_PKT_DOWN] > 0);
	vl_lane_set_link(&net.ls, false);
	for (unsigned int i = 1; i <= 7; i++)
		net.dest[i].rate = 0;
	net_advance(&net, MS);
	for (int i = 0; i < 10; i++)
		net_add(&net, 3, 1500);
	net_turn(&net);
	assert_true(net.dest[3].ended[VL_PKT_SENT] >= 10);
	settle();
	finish();
}

/* An interface that went down and up again, without that anybody told us. */
static void lost_readiness_is_found(void **state)
{
	(void)state;
	init(8);
	fill_lanes(3);
	for (unsigned int i = 1; i < 8; i++)
		net.way[i].armed = false;
	for (unsigned int i = 0; i < NET_DESTS; i++)
		net.dest[i].rate = FAST_RATE;
	net_advance(&net, 500 * MS);
	settle();
	finish();
}

/* A queue pair that is not used holds nothing of the driver. */
static void deactivation_ends_the_waiting(void **state)
{
	(void)state;
	init(8);
	fill_lanes(7);
	assert_int_equal(vl_lane_set_activate(&net.ls, false), 0);
	net_turn(&net);
	assert_int_equal(net.n_used, 0);
	assert_true(net.dest[1].ended[VL_PKT_GONE] > 0);
	for (unsigned int i = 0; i < 8; i++)
		assert_false(net.way[i].armed);
	assert_int_equal(vl_lane_set_activate(&net.ls, true), 0);
	for (unsigned int i = 1; i <= 7; i++)
		net.dest[i].rate = 0;
	net_advance(&net, MS);
	net_add(&net, 3, 1500);
	net_turn(&net);
	settle();
	finish();
}

/* More destinations than the table holds, and nothing drains. */
static void full_table_is_no_trouble(void **state)
{
	uint64_t full = 0, offered = 0;

	(void)state;
	init(8);
	net.pool_max = 900;
	for (unsigned int i = 0; i < NET_DESTS; i++)
		net.dest[i].rate = STALLED;
	for (unsigned int k = 0; k < 4; k++)
		for (unsigned int i = 0; i < NET_DESTS; i++) {
			net_add(&net, i, 300);
			if (i % 60 == 59)
				net_turn(&net);
		}
	net_turn(&net);
	assert_true(net.ls.dests.count <= VL_DEST_MAX);
	for (unsigned int i = 0; i < NET_DESTS; i++) {
		full += net_dropped(&net, i);
		offered += net.dest[i].offered;
		net.dest[i].rate = 0;
	}
	assert_true(full > offered / 2);
	settle();
	finish();
}

/* The kernel cannot tell when a lane is writable: no endless loop. */
static void failing_poll_ends(void **state)
{
	(void)state;
	init(4);
	net.dest[1].rate = STALLED;
	net.poll_result = -ENOMEM;
	for (int k = 0; k < 5; k++) {
		for (int i = 0; i < 60; i++)
			net_add(&net, 1, 1500);
		net_turn(&net);
	}
	assert_int_equal(net.n_used, 0);
	assert_true(net.dest[1].ended[VL_PKT_NOMEM] > 0);
	net.dest[1].rate = 0;
	settle();
	finish();
}

/*
 * One sender of large packets, twice as many as get through, and a small packet
 * every 10 ms, for @ms. Returns how long the slowest small one was under way.
 */
static uint64_t large_and_small(unsigned int ms)
{
	struct net_dest *d = &net.dest[1];
	uint64_t owed = 0;

	d->small_ns = 0;
	d->smalls = 0;
	d->largest_dropped = 0;
	for (unsigned int t = 0; t < ms; t++) {
		owed += 2 * SLOW_RATE / 1000;
		if (owed >= LARGE && net_add(&net, 1, LARGE))
			owed -= LARGE;
		if (t % 10 == 0)
			assert_true(net_add(&net, 1, 100));
		net_turn(&net);
		net_advance(&net, MS);
	}
	return d->small_ns;
}

/* Cut, they are no worse for those behind them than packets of one segment: 25
 * ms wait in the FIFO, 26 ms in the kernel, and some that always may. Whole,
 * each is 48 ms by itself. */
static void large_packets_are_cut(void **state)
{
	struct net_dest *d;
	uint64_t begin;

	(void)state;
	init(8);
	d = &net.dest[1];
	d->rate = SLOW_RATE;
	net.cut = NET_CUT_LATER;
	(void)large_and_small(1000);
	assert_true(large_and_small(2000) > 70 * MS);
	assert_true(net.cut_calls > 0);
	assert_int_equal(d->cuts, 0);
	net.cut = NET_CUT;
	(void)large_and_small(1000);
	begin = d->taken_bytes;
	assert_true(large_and_small(2000) < 60 * MS);
	assert_true(d->smalls >= 180);
	assert_true(d->cuts > 0);
	assert_true(d->taken_bytes - begin >= 2 * SLOW_RATE * 95 / 100);
	/* What is dropped is parts that drain in 4 ms, or small ones. */
	assert_true(net_dropped(&net, 1) > 0);
	assert_true(d->largest_dropped > 0);
	assert_true(d->largest_dropped <= SLOW_RATE / 250 * 11 / 10);
	assert_true(net.ls.side[1].rate > SLOW_RATE * 9 / 10);
	assert_true(net.ls.side[1].rate < SLOW_RATE * 11 / 10);
	settle();
	assert_int_equal(d->taken + net_dropped(&net, 1), d->offered);
	finish();
}

/* Neither an innocent destination on a side lane nor one on the express lane
 * has anything cut. */
static void only_slow_lanes_cut(void **state)
{
	(void)state;
	init(8);
	net.dest[1].rate = STALLED;
	for (int t = 0; t < 200; t++) {
		/* In the first turn the lane is not known to be slow. */
		for (int i = 0; i < 4; i++) {
			net_add(&net, 1, LARGE);
			net_add(&net, 2, LARGE);
		}
		net_turn(&net);
		if (t == 0)
			assert_int_equal(net.cut_calls, 0);
		net_advance(&net, MS);
	}
	assert_true(net.dest[1].cuts > 0);
	assert_int_equal(net.dest[2].cuts, 0);
	assert_int_equal(net.dest[2].taken, 800);
	assert_int_not_equal(vl_lane_set_state(&net.ls, 1), VL_LANE_IDLE);
	assert_int_not_equal(vl_lane_set_state(&net.ls, 2), VL_LANE_IDLE);
	net.dest[1].rate = 0;
	settle();
	finish();
}

/* One that cannot be cut waits and leaves whole, and is asked for once. */
static void refused_cut_leaves_it_whole(void **state)
{
	uint64_t taken;

	(void)state;
	init(4);
	net.way[0].sndbuf = 22000;
	net.dest[1].rate = STALLED;
	net.cut = NET_CUT_NEVER;
	for (int i = 0; i < 40; i++)
		net_add(&net, 1, 1500);
	net_turn(&net);
	net_advance(&net, 50 * MS);
	taken = net.dest[1].taken_bytes + net.ls.side[1].bytes;
	for (int i = 0; i < 3; i++)
		net_add(&net, 1, LARGE);
	net_turn(&net);
	assert_int_equal(net.cut_calls, 3);
	for (int i = 0; i < 5; i++) {
		net_advance(&net, MS);
		net_turn(&net);
	}
	assert_int_equal(net.cut_calls, 3);
	assert_int_equal(net.ls.side[1].bytes + net.dest[1].taken_bytes,
			 taken + 3 * LARGE);
	net.dest[1].rate = 0;
	settle();
	assert_int_equal(net.dest[1].taken_bytes, taken + 3 * LARGE);
	assert_int_equal(net.dest[1].offered, 43);
	assert_int_equal(net_dropped(&net, 1), 0);
	finish();
}

/* One for which there was no room is cut when there is: while the lane is
 * full, or at the latest before it is sent. */
static void cut_later(bool when_writable)
{
	struct net_dest *d;
	uint64_t taken;

	init(4);
	net.way[0].sndbuf = 22000;
	d = &net.dest[1];
	d->rate = STALLED;
	net.cut = NET_CUT_LATER;
	for (int i = 0; i < 40; i++)
		net_add(&net, 1, 1500);
	net_turn(&net);
	net_advance(&net, 50 * MS);
	net_add(&net, 1, LARGE);
	net_add(&net, 1, 300);
	net_turn(&net);
	assert_true(net.cut_calls > 0);
	assert_int_equal(d->cuts, 0);
	taken = d->taken;
	net.cut = NET_CUT;
	if (!when_writable) {
		net_turn(&net);
		assert_int_equal(d->taken, taken);
		assert_int_equal(d->cuts, 1);
		assert_int_equal(net.pool, net.n_used);
	}
	d->rate = 0;
	settle();
	assert_int_equal(d->cuts, 1);
	assert_int_equal(net_dropped(&net, 1), 0);
	assert_int_equal(d->taken, d->offered);
	assert_true(d->offered > 42);
	finish();
}

static void cut_refused_for_now_comes_later(void **state)
{
	(void)state;
	cut_later(false);
	cut_later(true);
}

static void one_way_means_waiting(void **state)
{
	(void)state;
	init(1);
	assert_int_equal(net.ls.mode, VL_TX_FULL_BLOCK);
	assert_int_equal(net.ls.n, 1);
	net.dest[1].rate = STALLED;
	net.way[0].sndbuf = 5000;
	for (int i = 0; i < 10; i++)
		net_add(&net, 1, 1000);
	net_turn(&net);
	/* The owner has to put them back. */
	assert_int_equal(net.ls.n_refused, 7);
	net_free(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(express_takes_all_while_it_can),
		cmocka_unit_test(refused_destination_gets_a_lane),
		cmocka_unit_test(slow_one_leaves_the_fast_one_alone),
		cmocka_unit_test(error_in_a_batch_moves_nobody),
		cmocka_unit_test(error_in_a_batch_drops_one),
		cmocka_unit_test(surprising_refusal_keeps_the_order),
		cmocka_unit_test(order_survives_everything),
		cmocka_unit_test(waiting_is_limited),
		cmocka_unit_test(standing_queue_is_dropped_early),
		cmocka_unit_test(slowest_get_short_buffers),
		cmocka_unit_test(one_lane_leaves_room_for_others),
		cmocka_unit_test(full_pool_drops_and_counts),
		cmocka_unit_test(many_slow_ones_share),
		cmocka_unit_test(idle_lane_is_given_back),
		cmocka_unit_test(fast_again_is_found_out),
		cmocka_unit_test(link_down_ends_the_waiting),
		cmocka_unit_test(lost_readiness_is_found),
		cmocka_unit_test(deactivation_ends_the_waiting),
		cmocka_unit_test(full_table_is_no_trouble),
		cmocka_unit_test(failing_poll_ends),
		cmocka_unit_test(large_packets_are_cut),
		cmocka_unit_test(only_slow_lanes_cut),
		cmocka_unit_test(refused_cut_leaves_it_whole),
		cmocka_unit_test(cut_refused_for_now_comes_later),
		cmocka_unit_test(one_way_means_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
