/* SPDX-License-Identifier: BSD-3-Clause */
/* What is told of lanes: states, sums, and the destinations that are named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/lane_stats.h"

static struct vl_txq txq;
static struct vl_pair_snapshot snap;

static void clear(unsigned int lanes)
{
	memset(&txq, 0, sizeof(txq));
	memset(&snap, 0, sizeof(snap));
	txq.lanes.n = lanes;
}

static void states_have_their_names(void **state)
{
	(void)state;
	clear(4);
	txq.lanes.side[2].dests = 1;
	txq.lanes.side[3].dests = 2;
	txq.lanes.side[3].slow = true;
	assert_true(vl_lane_stats_read(&txq, &snap));
	assert_int_equal(snap.lanes, 4);
	assert_string_equal(snap.lane[0].state, "express");
	assert_string_equal(snap.lane[1].state, "idle");
	assert_string_equal(snap.lane[2].state, "side");
	assert_string_equal(snap.lane[3].state, "slow");
	assert_int_equal(snap.lane[3].destinations, 2);
}

/* A worker is not asked when there is nothing to be named. */
static void no_destinations_no_question(void **state)
{
	(void)state;
	clear(8);
	txq.lanes.side[1].moves = 3;
	assert_false(vl_lane_stats_read(&txq, &snap));
	assert_int_equal(snap.lane[1].counters.moves, 3);
}

static void express_is_what_side_lanes_did_not_send(void **state)
{
	(void)state;
	clear(3);
	snap.tx.packets = 100;
	snap.tx.bytes = 1000;
	txq.lanes.side[1].sent_packets = 10;
	txq.lanes.side[1].sent_bytes = 200;
	txq.lanes.side[2].sent_packets = 20;
	txq.lanes.side[2].sent_bytes = 300;
	txq.lanes.probes.sent = 7;
	txq.lanes.probes.found = 2;
	vl_lane_stats_read(&txq, &snap);
	assert_int_equal(snap.lane[0].counters.probes, 7);
	assert_int_equal(snap.lane[0].counters.found_slow, 2);
	assert_int_equal(snap.lane[1].counters.probes, 0);
	assert_int_equal(snap.lane[0].counters.packets, 70);
	assert_int_equal(snap.lane[0].counters.bytes, 500);
	/* Counted between the two reads: never a number below zero. */
	snap.tx.packets = 5;
	vl_lane_stats_read(&txq, &snap);
	assert_int_equal(snap.lane[0].counters.packets, 0);
}

static void what_waits_has_its_bounds(void **state)
{
	(void)state;
	clear(2);
	snap.txq.size = 256;
	txq.held_descs = 100;
	txq.pool_used = 3;
	txq.lanes.side[1].rate = 1250000;
	txq.lanes.side[1].n_pkts = 4;
	txq.lanes.side[1].bytes = 5000;
	vl_lane_stats_read(&txq, &snap);
	assert_int_equal(snap.held_descs, 100);
	assert_int_equal(snap.held_max, 128);
	assert_int_equal(snap.pool_bytes, 3 * 2048);
	assert_int_equal(snap.pool_max, 1 << 20);
	assert_int_equal(snap.lane[1].drain_rate, 10000000); /* bit/s */
	assert_int_equal(snap.lane[1].parked_packets, 4);
	assert_int_equal(snap.lane[1].parked_bytes, 5000);
}

/* Ten destinations of a lane: those are named that have most waiting. */
static void the_busiest_are_named(void **state)
{
	static const uint16_t parked[] = { 0, 3, 9, 1, 0, 7, 2, 8, 0, 4 };
	static const uint32_t want[] = { 9, 8, 7, 4 };
	struct vl_pkt head = { .since_ns = vl_now_ns() - 5000000 };

	(void)state;
	clear(3);
	for (uint8_t i = 0; i < 10; i++) {
		struct vl_dest *d = &txq.lanes.dests.entry[100 * i + 23];

		d->lane = 2;
		d->parked = parked[i];
		d->key.mac[5] = i;
		d->key.addr_len = 4;
		d->key.addr[3] = i;
	}
	txq.lanes.dests.entry[VL_DEST_MAX - 1].lane = 1;
	txq.lanes.side[1].dests = 1;
	txq.lanes.side[2].dests = 10;
	txq.lanes.side[2].head = &head;
	assert_true(vl_lane_stats_read(&txq, &snap));
	vl_lane_stats_name(&txq, &snap);
	assert_int_equal(snap.lane[0].named, 0);
	assert_int_equal(snap.lane[1].named, 1);
	assert_int_equal(snap.lane[1].oldest_ns, 0);
	assert_int_equal(snap.lane[2].named, VL_SNAPSHOT_DESTS_MAX);
	for (uint32_t i = 0; i < VL_SNAPSHOT_DESTS_MAX; i++) {
		const struct vl_dest_snapshot *d = &snap.lane[2].dest[i];

		assert_int_equal(d->parked, want[i]);
		assert_int_equal(parked[d->addr[3]], want[i]);
		assert_int_equal(d->mac[5], d->addr[3]);
		assert_int_equal(d->addr_len, 4);
	}
	assert_in_range(snap.lane[2].oldest_ns, 5000000, 5000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_have_their_names),
		cmocka_unit_test(no_destinations_no_question),
		cmocka_unit_test(express_is_what_side_lanes_did_not_send),
		cmocka_unit_test(what_waits_has_its_bounds),
		cmocka_unit_test(the_busiest_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
