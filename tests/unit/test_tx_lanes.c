/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transmitq with lanes: what waits holds no more of the ring and of the pool
 * than it may, at any time; a stop with full lanes answers at once, gives every
 * chain back, and nothing looks at guest memory afterwards.
 *
 * Every frame names its destination, its place among those of this destination,
 * and its length, and is filled with a pattern made of these.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "lanes_fixture.h"
#include "virtio/net_hdr.h"

#define RING      256u
#define FRAME_MIN 64u
#define FRAME_BIG 60000u
#define FEATURES                                                               \
	(VL_FEATURE(VIRTIO_F_VERSION_1) |                                      \
	 VL_FEATURE(VIRTIO_RING_F_INDIRECT_DESC) |                             \
	 VL_FEATURE(VIRTIO_RING_F_EVENT_IDX))

static struct lanes_fixture f;
static uint32_t next[LF_DESTS]; /* the lowest number that may come */
static uint32_t sent[LF_DESTS], stalled;

static void fill(uint8_t *frame, uint32_t dest, uint32_t number, uint32_t len)
{
	memset(frame, (int)(dest * 37 + number + len), len);
	memset(frame, 0, 26);
	frame[0] = 2;
	frame[5] = (uint8_t)dest;
	memcpy(frame + 14, &number, 4);
	memcpy(frame + 18, &len, 4);
}

static bool check(const uint8_t *p, uint32_t len, uint32_t dest)
{
	static uint8_t want[LF_BIG];
	const uint8_t *frame = p + f.hdr_len;
	uint32_t number;

	memcpy(&number, frame + 14, 4);
	if (len - f.hdr_len > FRAME_BIG || number < next[dest])
		return false;
	next[dest] = number + 1;
	memset(want, 0, f.hdr_len);
	fill(want + f.hdr_len, dest, number, len - f.hdr_len);
	return !memcmp(p, want, len);
}

static void init(const enum vl_io_engine *engine, unsigned int n_stalled)
{
	stalled = n_stalled;
	memset(next, 0, sizeof(next));
	memset(sent, 0, sizeof(sent));
	lf_init(&f,
		&(struct dev_config){
			.engine = *engine,
			.features = FEATURES,
			.num = RING,
		},
		stalled, check);
}

/* Makes a frame available, in pieces of @piece bytes if it is large. Returns
 * false when there is no room for it. */
static bool add_pieces(uint32_t dest, uint32_t len, uint32_t piece)
{
	const struct lf_shape shape = {
		.piece = piece,
		.layout = len == FRAME_BIG ? RD_INDIRECT : RD_DIRECT,
	};
	uint8_t *p = lf_buffer(&f, f.hdr_len + len);

	if (!p)
		return false;
	memset(p, 0, f.hdr_len);
	fill(p + f.hdr_len, dest, sent[dest], len);
	if (!lf_add(&f, f.hdr_len + len, &shape))
		return false;
	sent[dest]++;
	return true;
}

static bool add(uint32_t dest, uint32_t len)
{
	return add_pieces(dest, len, 16384);
}

/* Nothing waits any more; all that was sent was taken or counted. */
static void check_all_accounted(void)
{
	uint64_t taken = lf_settle(&f), all = 0;

	for (unsigned int i = 0; i < LF_DESTS; i++)
		all += sent[i];
	assert_int_equal(taken + lf_dropped(&f), all);
}

/* Rule 5 and 6, sampled while stalled and other destinations come and go. */
static void bounds_hold_at_all_times(void **state)
{
	static const uint32_t lens[] = { FRAME_MIN, 200, 1514, FRAME_BIG, 700 };
	uint64_t innocent = 0, end;
	uint32_t flight = 0, samples = 0, held = 0, slot = 0;

	init(*state, 10);
	end = vl_now_ns() + 400 * LF_MS;
	while (vl_now_ns() < end || samples < 200) {
		for (uint32_t i = 0; i < 24; i++, slot++)
			flight += add(1 + slot % 12, lens[slot / 12 % 5]);
		dev_kick(&f.d, LF_TX);
		lf_check_bounds(&f);
		if (f.snap.pair[0].held_descs > held)
			held = f.snap.pair[0].held_descs;
		flight -= lf_take(&f);
		if (++samples % 50 == 0)
			lf_release(&f, true);
	}
	assert_true(held > 0);
	/* A driver never waits for more than half of its ring. */
	dev_wait_used(&f.d, LF_TX, flight > RING / 2 ? flight - RING / 2 : 0);
	flight -= lf_take(&f);
	pthread_mutex_lock(&f.d.lock);
	innocent = f.taken[11] + f.taken[12];
	pthread_mutex_unlock(&f.d.lock);
	assert_true(innocent > 0);
	lf_release(&f, false);
	dev_wait_used(&f.d, LF_TX, flight);
	lf_take(&f);
	check_all_accounted();
	dev_free(&f.d);
}

/* Fills all lanes. Returns the chains that did not come back. */
static uint32_t fill_lanes(uint32_t len, uint32_t rounds)
{
	uint32_t flight = 0;

	for (uint32_t k = 0; k < rounds; k++) {
		for (uint32_t dest = 1; dest <= stalled; dest++)
			flight += add(dest, len);
		dev_kick(&f.d, LF_TX);
		lf_nap_ms(1);
		flight -= lf_quiesce(&f);
	}
	assert_true(flight > 0);
	assert_int_equal(flight, f.snap.pair[0].held_descs);
	return flight;
}

/* Rule 18: after the stop guest memory is the guest's. */
static void stop_with_full_lanes(uint32_t len, uint32_t rounds)
{
	uint32_t flight = fill_lanes(len, rounds);
	size_t size = f.d.mem.used;
	uint8_t *copy;

	lf_stop_in_time(&f, flight);
	assert_true(f.snap.pair[0].pool_bytes > 0);
	lf_spoil(&f);
	copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, f.d.mem.base, size);
	lf_release(&f, false);
	check_all_accounted();
	assert_memory_equal(copy, f.d.mem.base, size);
	free(copy);
}

static void stop_with_small_packets(void **state)
{
	init(*state, 7);
	stop_with_full_lanes(300, 40);
	dev_start(&f.d, LF_TX);
	assert_true(add(1, 300));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, 1);
	lf_take(&f);
	check_all_accounted();
	dev_free(&f.d);
}

/* Frames that were in guest memory are copied, as many as there is room for. */
static void stop_with_large_packets(void **state)
{
	init(*state, 7);
	stop_with_full_lanes(FRAME_BIG, 18);
	assert_true(f.snap.pair[0].tx.drop_pool > 0);
	dev_free(&f.d);
}

/* Started again at once, others pass while the old packets still wait. */
static void start_again_with_full_lanes(void **state)
{
	uint64_t before;

	init(*state, 5);
	lf_stop_in_time(&f, fill_lanes(FRAME_BIG, 18));
	dev_start(&f.d, LF_TX);
	before = sent[9];
	for (uint32_t i = 0; i < 60; i++)
		assert_true(add(9, 500));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, 60);
	lf_take(&f);
	pthread_mutex_lock(&f.d.lock);
	assert_int_equal(f.taken[9], before + 60);
	pthread_mutex_unlock(&f.d.lock);
	lf_release(&f, false);
	check_all_accounted();
	dev_free(&f.d);
}

/* Frames of very many pieces are copied when they are taken. One for which there
 * are too few buffers stays in the ring, and is none of those that a stop gives
 * back. */
static void stop_after_too_few_buffers(void **state)
{
	uint32_t flight;

	init(*state, 5);
	flight = fill_lanes(300, 120);
	assert_true(f.snap.pair[0].pool_bytes > f.snap.pair[0].pool_max / 2);
	for (uint32_t i = 0; i < 6; i++)
		assert_true(add_pieces(9, FRAME_BIG, FRAME_BIG / 50));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, 6);
	assert_int_equal(lf_take(&f), 6);
	assert_true(f.snap.pair[0].txq.pending == flight);
	lf_stop_in_time(&f, flight);
	assert_int_equal(rd_used_count(&f.d.ring[LF_TX]), 0);
	lf_release(&f, false);
	check_all_accounted();
	dev_free(&f.d);
}

/* The next driver's headers are shorter: those of waiting packets too. */
static void header_length_changes(void **state)
{
	init(*state, 7);
	lf_stop_in_time(&f, fill_lanes(300, 40));
	pthread_mutex_lock(&f.d.lock);
	memset(f.charged, 0, sizeof(f.charged));
	memset(f.stalled, 0, sizeof(f.stalled));
	f.hdr_len = sizeof(struct virtio_net_hdr);
	pthread_mutex_unlock(&f.d.lock);
	assert_int_equal(vl_device_set_features(f.d.dev, 0), 0);
	lf_release(&f, false);
	check_all_accounted();
	dev_free(&f.d);
}

/* Once nothing is stalled, all is as it was: no lane, no descriptor held. */
static void returns_to_express(void **state)
{
	uint32_t flight;

	init(*state, 7);
	flight = fill_lanes(700, 30);
	lf_release(&f, false);
	dev_wait_used(&f.d, LF_TX, flight);
	lf_take(&f);
	check_all_accounted();
	lf_wait_express(&f);
	dev_free(&f.d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_hold_at_all_times),
		cmocka_unit_test(stop_with_small_packets),
		cmocka_unit_test(stop_with_large_packets),
		cmocka_unit_test(start_again_with_full_lanes),
		cmocka_unit_test(stop_after_too_few_buffers),
		cmocka_unit_test(header_length_changes),
		cmocka_unit_test(returns_to_express),
	};

	return dev_run_with_engines(tests, VL_ARRAY_SIZE(tests));
}
