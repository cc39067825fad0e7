/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transmitq with lanes: what waits holds no more of the ring and of the pool
 * than it may, at any time; a stop with full lanes answers at once, gives every
 * chain back, and nothing looks at guest memory afterwards.
 *
 * The network: each way takes CHARGE_MAX packets for destinations that are
 * stalled, any number for others. Every frame names its destination, its place
 * among those of this destination, and its length, and is filled with a pattern
 * made of these.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/iov.h"
#include "device_fixture.h"
#include "virtio/net_hdr.h"

#define TX         1u
#define RING       256u
#define WAYS       8u
#define BIGS       64u
#define DESTS      16u
#define CHARGE_MAX 8u
#define SMALL_MAX  2000u
#define FRAME_MIN  64u
#define FRAME_BIG  60000u
#define MS         1000000ULL
#define FEATURES                                                               \
	(VL_FEATURE(VIRTIO_F_VERSION_1) |                                      \
	 VL_FEATURE(VIRTIO_RING_F_INDIRECT_DESC) |                             \
	 VL_FEATURE(VIRTIO_RING_F_EVENT_IDX))

static struct device d;
static struct vl_snapshot snap;

/* The network, under d.lock. */
static struct {
	bool stalled[DESTS];
	uint32_t charged[WAYS];
	uint32_t hdr_len;
	uint64_t taken[DESTS];
	uint32_t next[DESTS]; /* the lowest number that may come */
	uint64_t bad;         /* out of order, or not what was sent */
} net;

/* The driver. */
static uint32_t sent[DESTS], stalled;
static uint64_t small_gpa[RING], big_gpa[BIGS];
/* Buffers that are not in the ring, and those of the chains that are. */
static uint16_t small_free[RING], big_free[BIGS], in_ring[RING];
static uint32_t n_small, n_big;

static void fill(uint8_t *frame, uint32_t dest, uint32_t number, uint32_t len)
{
	memset(frame, (int)(dest * 37 + number + len), len);
	memset(frame, 0, 26);
	frame[0] = 2;
	frame[5] = (uint8_t)dest;
	memcpy(frame + 14, &number, 4);
	memcpy(frame + 18, &len, 4);
}

static void check(const struct iovec *iov, unsigned int n)
{
	static uint8_t got[FRAME_BIG + 64], want[FRAME_BIG];
	size_t len = vl_iov_read(iov, n, 0, got, sizeof(got)) - net.hdr_len;
	const uint8_t *frame = got + net.hdr_len;
	uint32_t number, dest = frame[5] % DESTS;

	memcpy(&number, frame + 14, 4);
	if (len > FRAME_BIG || number < net.next[dest]) {
		net.bad++;
		return;
	}
	fill(want, dest, number, (uint32_t)len);
	net.bad += memcmp(frame, want, len) != 0;
	for (uint32_t i = 0; i < net.hdr_len; i++)
		net.bad += got[i] != 0;
	net.next[dest] = number + 1;
	net.taken[dest]++;
}

static int send_way(void *ctx, unsigned int port, unsigned int way,
		    const struct iovec *iov, unsigned int n)
{
	int res = (int)vl_iov_len(iov, n);
	uint8_t dest;

	(void)ctx;
	(void)port;
	pthread_mutex_lock(&d.lock);
	vl_iov_read(iov, n, net.hdr_len + 5, &dest, 1);
	if (net.charged[way] >= CHARGE_MAX) {
		res = -EAGAIN;
	} else {
		net.charged[way] += net.stalled[dest % DESTS];
		check(iov, n);
	}
	pthread_mutex_unlock(&d.lock);
	return res;
}

static bool writable(void *ctx, unsigned int port, unsigned int way)
{
	bool is;

	(void)ctx;
	(void)port;
	pthread_mutex_lock(&d.lock);
	is = net.charged[way] < CHARGE_MAX;
	pthread_mutex_unlock(&d.lock);
	return is;
}

/* All ways have drained; with @keep_stalled they fill again. */
static void release(bool keep_stalled)
{
	pthread_mutex_lock(&d.lock);
	memset(net.charged, 0, sizeof(net.charged));
	if (!keep_stalled)
		memset(net.stalled, 0, sizeof(net.stalled));
	pthread_mutex_unlock(&d.lock);
	for (unsigned int w = 0; w < WAYS; w++)
		vl_null_wake_way(d.backend, 0, w);
}

static void nap_ms(long ms)
{
	const struct timespec t = { 0, ms * 1000000 };

	nanosleep(&t, NULL);
}

static void init(const enum vl_io_engine *engine, unsigned int n_stalled)
{
	stalled = n_stalled;
	dev_init(&d, &(struct dev_config){ .engine = *engine,
					   .features = FEATURES,
					   .num = RING,
					   .ways = WAYS,
					   .send_way = send_way,
					   .writable = writable });
	memset(&net, 0, sizeof(net));
	memset(sent, 0, sizeof(sent));
	net.hdr_len = d.hdr_len;
	for (unsigned int i = 1; i <= stalled; i++)
		net.stalled[i] = true;
	for (n_small = 0; n_small < RING; n_small++) {
		small_gpa[n_small] = dev_alloc(&d, d.hdr_len + SMALL_MAX, 0);
		small_free[n_small] = (uint16_t)n_small;
	}
	for (n_big = 0; n_big < BIGS; n_big++) {
		big_gpa[n_big] = dev_alloc(&d, d.hdr_len + FRAME_BIG, 0);
		big_free[n_big] = (uint16_t)n_big;
	}
	dev_start(&d, TX);
}

/* Makes a frame available, in pieces if it is large. Returns false when there
 * is no room for it. */
static bool add(uint32_t dest, uint32_t len)
{
	bool big = len > SMALL_MAX;
	struct rd_seg seg[4];
	unsigned int n = 0;
	uint16_t buf;
	uint64_t gpa;
	int head;

	if (!n_small || (big && !n_big))
		return false;
	buf = big ? big_free[n_big - 1] : small_free[n_small - 1];
	gpa = big ? big_gpa[buf] : small_gpa[buf];
	memset(dev_ptr(&d, gpa), 0, d.hdr_len);
	fill((uint8_t *)dev_ptr(&d, gpa) + d.hdr_len, dest, sent[dest], len);
	len += d.hdr_len;
	for (uint32_t at = 0; at < len; n++) {
		uint32_t part = len - at < 16384 ? len - at : 16384;

		seg[n] = (struct rd_seg){ gpa + at, part };
		at += part;
	}
	head = rd_add(&d.ring[TX], seg, n, 0, big ? RD_INDIRECT : RD_DIRECT, 0);
	if (head < 0)
		return false;
	in_ring[head] = big ? RING + buf : buf;
	n_big -= big;
	n_small -= !big;
	sent[dest]++;
	return true;
}

/* Chains that came back since the last call. */
static uint32_t take(void)
{
	struct rd_done done;
	uint32_t n = 0;

	for (; rd_used_count(&d.ring[TX]); n++) {
		uint16_t buf;

		assert_int_equal(rd_take(&d.ring[TX], &done), 1);
		assert_int_equal(done.len, 0);
		buf = in_ring[done.head];
		if (buf >= RING)
			big_free[n_big++] = (uint16_t)(buf - RING);
		else
			small_free[n_small++] = buf;
	}
	return n;
}

/* What a person sees is never above what is promised. */
static void check_bounds(void)
{
	const struct vl_pair_snapshot *p = &snap.pair[0];

	dev_snapshot(&d, &snap);
	assert_int_equal(p->held_max, RING / 2);
	assert_true(p->held_descs <= RING / 2);
	assert_true(p->pool_bytes <= p->pool_max);
	assert_int_equal(p->pool_max, 1u << 20);
}

static uint64_t dropped(void)
{
	const struct vl_tx_counters *n = &snap.pair[0].tx;

	return n->drop_full + n->drop_late + n->drop_limit + n->drop_pool;
}

/* Nothing waits any more; all that was sent was taken or counted. */
static void check_all_accounted(void)
{
	uint64_t taken = 0, all = 0, end = vl_now_ns() + 2 * VL_NS_PER_SEC;

	do {
		nap_ms(1);
		check_bounds();
	} while ((snap.pair[0].pool_bytes || snap.pair[0].held_descs) &&
		 vl_now_ns() < end);
	assert_int_equal(snap.pair[0].pool_bytes, 0);
	assert_int_equal(snap.pair[0].held_descs, 0);
	pthread_mutex_lock(&d.lock);
	assert_int_equal(net.bad, 0);
	for (unsigned int i = 0; i < DESTS; i++) {
		taken += net.taken[i];
		all += sent[i];
	}
	pthread_mutex_unlock(&d.lock);
	assert_int_equal(snap.pair[0].tx.packets, taken);
	assert_int_equal(taken + dropped(), all);
}

/* Rule 5 and 6, sampled while stalled and other destinations come and go. */
static void bounds_hold_at_all_times(void **state)
{
	static const uint32_t lens[] = { FRAME_MIN, 200, 1514, FRAME_BIG, 700 };
	uint64_t innocent = 0, end;
	uint32_t flight = 0, samples = 0, held = 0, slot = 0;

	init(*state, 10);
	end = vl_now_ns() + 400 * MS;
	while (vl_now_ns() < end) {
		for (uint32_t i = 0; i < 24; i++, slot++)
			flight += add(1 + slot % 12, lens[slot / 12 % 5]);
		dev_kick(&d, TX);
		check_bounds();
		if (snap.pair[0].held_descs > held)
			held = snap.pair[0].held_descs;
		flight -= take();
		if (++samples % 50 == 0)
			release(true);
	}
	assert_true(samples > 100);
	assert_true(held > 0);
	/* A driver never waits for more than half of its ring. */
	dev_wait_used(&d, TX, flight > RING / 2 ? flight - RING / 2 : 0);
	flight -= take();
	pthread_mutex_lock(&d.lock);
	innocent = net.taken[11] + net.taken[12];
	pthread_mutex_unlock(&d.lock);
	assert_true(innocent > 0);
	release(false);
	dev_wait_used(&d, TX, flight);
	take();
	check_all_accounted();
	dev_free(&d);
}

/* Fills all lanes. Returns the chains that did not come back. */
static uint32_t fill_lanes(uint32_t len, uint32_t rounds)
{
	uint32_t flight = 0;

	for (uint32_t k = 0; k < rounds; k++) {
		for (uint32_t dest = 1; dest <= stalled; dest++)
			flight += add(dest, len);
		dev_kick(&d, TX);
		nap_ms(1);
		flight -= take();
	}
	check_bounds();
	assert_true(flight > 0);
	assert_int_equal(flight, snap.pair[0].held_descs);
	return flight;
}

static void stop_in_time(uint32_t flight)
{
	uint64_t start = vl_now_ns();

	(void)dev_stop(&d, TX);
	assert_true(vl_now_ns() - start < 50 * MS);
	assert_int_equal(take(), flight);
	check_bounds();
	assert_int_equal(snap.pair[0].held_descs, 0);
}

/* Rule 18: after the stop guest memory is the guest's. */
static void stop_with_full_lanes(uint32_t len, uint32_t rounds)
{
	uint32_t flight = fill_lanes(len, rounds);
	size_t size = d.mem.used;
	uint8_t *copy;

	stop_in_time(flight);
	assert_true(snap.pair[0].pool_bytes > 0);
	/* Whoever reads it from now on sends garbage. */
	for (unsigned int i = 0; i < RING; i++)
		memset(dev_ptr(&d, small_gpa[i]), 0xee, SMALL_MAX);
	for (unsigned int i = 0; i < BIGS; i++)
		memset(dev_ptr(&d, big_gpa[i]), 0xee, FRAME_BIG);
	copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, d.mem.base, size);
	release(false);
	check_all_accounted();
	assert_memory_equal(copy, d.mem.base, size);
	free(copy);
}

static void stop_with_small_packets(void **state)
{
	init(*state, 7);
	stop_with_full_lanes(300, 40);
	dev_start(&d, TX);
	assert_true(add(1, 300));
	dev_kick(&d, TX);
	dev_wait_used(&d, TX, 1);
	take();
	check_all_accounted();
	dev_free(&d);
}

/* Frames that were in guest memory are copied, as many as there is room for. */
static void stop_with_large_packets(void **state)
{
	init(*state, 7);
	stop_with_full_lanes(FRAME_BIG, 18);
	assert_true(snap.pair[0].tx.drop_pool > 0);
	dev_free(&d);
}

/* Started again at once, others pass while the old packets still wait. */
static void start_again_with_full_lanes(void **state)
{
	uint64_t before;

	init(*state, 5);
	stop_in_time(fill_lanes(FRAME_BIG, 18));
	dev_start(&d, TX);
	before = sent[9];
	for (uint32_t i = 0; i < 60; i++)
		assert_true(add(9, 500));
	dev_kick(&d, TX);
	dev_wait_used(&d, TX, 60);
	take();
	pthread_mutex_lock(&d.lock);
	assert_int_equal(net.taken[9], before + 60);
	pthread_mutex_unlock(&d.lock);
	release(false);
	check_all_accounted();
	dev_free(&d);
}

/* The next driver's headers are shorter: those of waiting packets too. */
static void header_length_changes(void **state)
{
	init(*state, 7);
	stop_in_time(fill_lanes(300, 40));
	pthread_mutex_lock(&d.lock);
	memset(net.charged, 0, sizeof(net.charged));
	memset(net.stalled, 0, sizeof(net.stalled));
	net.hdr_len = sizeof(struct virtio_net_hdr);
	pthread_mutex_unlock(&d.lock);
	assert_int_equal(vl_device_set_features(d.dev, 0), 0);
	release(false);
	check_all_accounted();
	dev_free(&d);
}

/* Once nothing is stalled, all is as it was: no lane, no descriptor held. */
static void returns_to_express(void **state)
{
	uint64_t end = vl_now_ns() + 3 * VL_NS_PER_SEC;
	uint32_t flight, lanes;

	init(*state, 7);
	flight = fill_lanes(700, 30);
	release(false);
	dev_wait_used(&d, TX, flight);
	take();
	check_all_accounted();
	do {
		nap_ms(20);
		dev_snapshot(&d, &snap);
		lanes = 0;
		for (unsigned int i = 1; i < WAYS; i++)
			lanes +=
				strcmp(snap.pair[0].lane[i].state, "idle") != 0;
	} while (lanes && vl_now_ns() < end);
	assert_int_equal(lanes, 0);
	dev_free(&d);
}

static enum vl_io_engine engines[] = { VL_IO_URING, VL_IO_SYNC };

int main(void)
{
	const char *why;
	int status = 0;

	for (size_t i = 0; i < 2; i++) {
#define T(f)                                                                   \
	{                                                                      \
		.name = #f, .test_func = (f), .initial_state = &engines[i]     \
	}
		const struct CMUnitTest tests[] = {
			T(bounds_hold_at_all_times),
			T(stop_with_small_packets),
			T(stop_with_large_packets),
			T(start_again_with_full_lanes),
			T(header_length_changes),
			T(returns_to_express),
		};

		if (vl_io_choose(engines[i], &why) < 0)
			continue;
		status |= cmocka_run_group_tests(tests, NULL, NULL);
	}
	return status;
}
