/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiveq of a whole device: any layout of buffers, merged frames, too
 * few and too small ones, stop and start. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/util.h"
#include "device_fixture.h"
#include "virtio/net_hdr.h"

#define RX 0u
#define V1                                                                     \
	(VL_FEATURE(VIRTIO_F_VERSION_1) |                                      \
	 VL_FEATURE(VIRTIO_RING_F_INDIRECT_DESC) |                             \
	 VL_FEATURE(VIRTIO_RING_F_EVENT_IDX))
#define MRG (V1 | VL_FEATURE(VIRTIO_NET_F_MRG_RXBUF))
#define TSO                                                                    \
	(VL_FEATURE(VIRTIO_NET_F_GUEST_CSUM) |                                 \
	 VL_FEATURE(VIRTIO_NET_F_GUEST_TSO4))
#define CANARY  0xee
#define COOKIES 1024u

static struct device d;
static struct vl_snapshot snap;

/* Where the buffers of a cookie are. */
static struct {
	struct rd_seg seg[32];
	unsigned int n;
	uint32_t len;
} buffer[COOKIES];
static uint32_t n_buffers;

static void init(const enum vl_io_engine *engine, uint64_t features)
{
	dev_init(&d, &(struct dev_config){ .engine = *engine,
					   .features = features,
					   .start = 65530 });
	n_buffers = 0;
	dev_start_pair(&d);
}

static const struct vl_rx_counters *counters(void)
{
	dev_snapshot(&d, &snap);
	return &snap.pair[0].rx;
}

/* Posts a chain of @n segments of these lengths, each in an area of its own
 * with 16 canary bytes behind it. No kick. */
static void post(const uint32_t *len, unsigned int n, enum rd_layout layout)
{
	assert_true(n_buffers < COOKIES);
	buffer[n_buffers].n = n;
	buffer[n_buffers].len = 0;
	for (unsigned int i = 0; i < n; i++) {
		uint64_t gpa = dev_alloc(&d, len[i] + 16, CANARY);

		buffer[n_buffers].seg[i] = (struct rd_seg){ gpa, len[i] };
		buffer[n_buffers].len += len[i];
	}
	assert_true(rd_add(&d.ring[RX], buffer[n_buffers].seg, 0, n, layout,
			   n_buffers) >= 0);
	n_buffers++;
}

static void post_one(uint32_t len)
{
	post(&len, 1, RD_DIRECT);
}

/* Bytes of the frame taken last, header first. */
static uint8_t frame[80000];

/* Appends @len bytes of the buffer of @cookie at @at; canaries checked. */
static uint32_t gather(uint32_t cookie, uint32_t len, uint32_t at)
{
	for (unsigned int i = 0; i < buffer[cookie].n; i++) {
		const struct rd_seg *s = &buffer[cookie].seg[i];
		const uint8_t *p = dev_ptr(&d, s->gpa);
		uint32_t part = len < s->len ? len : s->len;

		memcpy(frame + at, p, part);
		at += part;
		len -= part;
		for (unsigned int k = 0; k < 16; k++)
			assert_int_equal(p[s->len + k], CANARY);
	}
	assert_int_equal(len, 0);
	return at;
}

/*
 * Takes one frame of @len bytes with pattern @first out of the used ring. All
 * of its chains but the last one are full. Returns the number of chains.
 */
static uint32_t take_frame(uint32_t len, uint8_t first)
{
	struct rd_done done;
	uint16_t num_buffers = 0;
	uint32_t at = 0, chains = 0;

	do {
		if (!rd_used_count(&d.ring[RX]))
			dev_wait_used(&d, RX, 1);
		assert_int_equal(rd_take(&d.ring[RX], &done), 1);
		at = gather(done.cookie, done.len, at);
		chains++;
		if (at < d.hdr_len + len)
			assert_int_equal(done.len, buffer[done.cookie].len);
	} while (at < d.hdr_len + len);
	assert_int_equal(at, d.hdr_len + len);
	for (uint32_t i = 0; i < len; i++)
		if (frame[d.hdr_len + i] != (uint8_t)(first + i))
			fail_msg("byte %u of a frame of %u differs", i, len);
	if (d.hdr_len == VL_NET_HDR_MRG) {
		memcpy(&num_buffers, frame + 10, 2);
		assert_int_equal(num_buffers, chains);
	}
	return chains;
}

static void nap_ms(long ms)
{
	const struct timespec t = { 0, ms * 1000000 };

	nanosleep(&t, NULL);
}

/* B08, B09: the header is split at every place, num_buffers is always 1. */
static void header_may_be_split_anywhere(void **state)
{
	init(*state, V1);
	for (uint32_t first = 1; first < 16; first++)
		for (uint32_t second = 1; second < 14; second += 3) {
			const uint32_t len[3] = { first, second, 1600 };

			post(len, 3, (enum rd_layout)(first % 3));
			dev_kick(&d, RX);
			dev_inject(&d, 0, 300, (uint8_t)first);
			dev_wake(&d, 0);
			assert_int_equal(take_frame(300, (uint8_t)first), 1);
		}
	dev_free(&d);
}

static void legacy_header_is_10_bytes(void **state)
{
	init(*state, 0);
	for (int i = 0; i < 20; i++) {
		post_one(1600);
		dev_kick(&d, RX);
		dev_inject(&d, 0, 60, (uint8_t)i);
		dev_wake(&d, 0);
		take_frame(60, (uint8_t)i);
	}
	dev_free(&d);
}

/* B10: merged over as many buffers as it takes, each a chain of two. */
static void frames_are_merged(void **state)
{
	const uint32_t len[2] = { 20, 80 };
	uint32_t sizes[] = { 14, 88, 89, 188, 189, 1000, 1514 };

	init(*state, MRG);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t want = (sizes[i] + 12 + 99) / 100;

		for (int k = 0; k < 20; k++)
			post(len, 2, k % 2 ? RD_DIRECT : RD_INDIRECT);
		dev_kick(&d, RX);
		dev_inject(&d, 0, sizes[i], (uint8_t)i);
		dev_wake(&d, 0);
		assert_int_equal(take_frame(sizes[i], (uint8_t)i), want);
		/* What was not needed serves the next ones. */
		dev_inject(&d, 0, 60, 7);
		dev_wake(&d, 0);
		take_frame(60, 7);
		dev_stop(&d, RX);
		rd_ring_reset(&d.ring[RX], (uint16_t)(i * 1000));
		dev_start(&d, RX);
	}
	assert_int_equal(counters()->drop_truncated, 0);
	dev_free(&d);
}

static void largest_frames_are_merged(void **state)
{
	init(*state, MRG | TSO);
	for (int round = 0; round < 4; round++) {
		for (int k = 0; k < 60; k++)
			post_one(1526);
		dev_kick(&d, RX);
		dev_inject(&d, 0, 65549, 1);
		dev_wake(&d, 0);
		assert_int_equal(take_frame(65549, 1),
				 (65549 + 12 + 1525) / 1526);
		while (d.ring[RX].in_flight) {
			dev_inject(&d, 0, 100, 2);
			dev_wake(&d, 0);
			take_frame(100, 2);
		}
	}
	assert_int_equal(counters()->drop_truncated, 0);
	dev_free(&d);
}

/* B23: the frame arrives with the last buffer that it needs. */
static void frame_waits_for_buffers_one_by_one(void **state)
{
	init(*state, MRG);
	for (int round = 0; round < 10; round++) {
		dev_inject(&d, 0, 1400, (uint8_t)round);
		dev_wake(&d, 0);
		for (int k = 0; k < 15; k++) {
			assert_int_equal(rd_used_count(&d.ring[RX]), 0);
			post_one(100);
			dev_kick(&d, RX);
			nap_ms(2);
		}
		assert_int_equal(take_frame(1400, (uint8_t)round), 15);
	}
	assert_int_equal(counters()->packets, 10);
	dev_free(&d);
}

/* B37: no buffers, frames waiting: the device sleeps, and the kick wakes it. */
static void starved_device_sleeps(void **state)
{
	uint64_t cpu, waits;

	init(*state, V1);
	for (int i = 0; i < 50; i++)
		dev_inject(&d, 0, 100, (uint8_t)i);
	dev_wake(&d, 0);
	nap_ms(20);
	(void)counters();
	cpu = snap.pair[0].cpu_ns;
	waits = snap.pair[0].waits;
	nap_ms(200);
	(void)counters();
	assert_true(snap.pair[0].cpu_ns - cpu < 10000000);
	assert_true(snap.pair[0].waits - waits < 5);
	assert_int_equal(snap.pair[0].rx.packets, 0);
	for (int i = 0; i < 50; i++) {
		post_one(1600);
		dev_kick(&d, RX);
		take_frame(100, (uint8_t)i);
	}
	dev_free(&d);
}

/* B34: buffers that cannot even hold the header. */
static void tiny_buffers_are_returned(void **state)
{
	struct rd_done done;

	init(*state, V1);
	dev_inject(&d, 0, 60, 9);
	dev_wake(&d, 0);
	for (uint32_t len = 0; len < 12; len++) {
		post_one(len);
		dev_kick(&d, RX);
		dev_wait_used(&d, RX, 1);
		assert_int_equal(rd_take(&d.ring[RX], &done), 1);
		assert_int_equal(done.len, 0);
	}
	assert_int_equal(counters()->drop_chain, 12);
	post_one(1600);
	dev_kick(&d, RX);
	take_frame(60, 9);
	dev_free(&d);
}

/* A device-readable buffer in a receiveq is the driver's mistake. */
static void readable_buffers_are_returned(void **state)
{
	struct rd_seg seg[2];
	struct rd_done done;

	init(*state, MRG);
	seg[0] = (struct rd_seg){ dev_alloc(&d, 100, 0), 100 };
	seg[1] = (struct rd_seg){ dev_alloc(&d, 1600, 0), 1600 };
	assert_true(rd_add(&d.ring[RX], seg, 1, 1, RD_DIRECT, 0) >= 0);
	dev_kick(&d, RX);
	dev_inject(&d, 0, 60, 9);
	dev_wake(&d, 0);
	dev_wait_used(&d, RX, 1);
	assert_int_equal(rd_take(&d.ring[RX], &done), 1);
	assert_int_equal(done.len, 0);
	assert_int_equal(counters()->drop_chain, 1);
	post_one(1600);
	dev_kick(&d, RX);
	take_frame(60, 9);
	dev_free(&d);
}

/* Without mergeable buffers a frame that is too large is dropped, counted, and
 * the buffer comes back empty; the next frame is not concerned. */
static void frame_larger_than_its_buffer(void **state)
{
	struct rd_done done;

	init(*state, V1);
	post_one(112);
	post_one(112);
	dev_kick(&d, RX);
	dev_inject(&d, 0, 101, 1);
	dev_inject(&d, 0, 100, 2);
	dev_wake(&d, 0);
	dev_wait_used(&d, RX, 2);
	assert_int_equal(rd_take(&d.ring[RX], &done), 1);
	assert_int_equal(done.len, 0);
	gather(done.cookie, 0, 0);
	take_frame(100, 2);
	assert_int_equal(counters()->drop_truncated, 1);
	dev_free(&d);
}

/* One large buffer, then many small ones, and reads in large batches: each
 * still has its own place for what does not fit. */
/* Longer than any frame: what a network may deliver all the same. It would have
 * to wait for more buffers than there are, and to be kept when the queue stops. */
static void frame_longer_than_any(void **state)
{
	init(*state, MRG);
	post_one(30000);
	dev_kick(&d, RX);
	dev_inject(&d, 0, 65535 + 100, 0);
	dev_wake(&d, 0);
	nap_ms(20);
	dev_snapshot(&d, &snap);
	assert_int_equal(snap.pair[0].rx.drop_truncated, 1);
	assert_int_equal(snap.pair[0].rx.packets, 0);
	(void)dev_stop(&d, 0);
	dev_free(&d);
}

static void large_buffer_then_many_small_ones(void **state)
{
	dev_init(&d,
		 &(struct dev_config){ .engine = *(enum vl_io_engine *)*state,
				       .features = MRG,
				       .num = 1024 });
	n_buffers = 0;
	dev_start_pair(&d);
	post_one(70000);
	while (n_buffers < COOKIES)
		post_one(100);
	dev_kick(&d, RX);
	/* Every batch that is full doubles the next one: large frames come in
	 * the middle of one of 64. */
	for (int k = 0; k < 140; k++)
		dev_inject(&d, 0, k < 75 ? 60 : 1000, (uint8_t)k);
	dev_wake(&d, 0);
	for (int k = 0; k < 75; k++)
		take_frame(60, (uint8_t)k);
	for (int k = 75; k < 140; k++)
		assert_int_equal(take_frame(1000, (uint8_t)k), 11);
	assert_int_equal(counters()->drop_truncated, 0);
	dev_free(&d);
}

/* A batch that is nearly full is followed by one that is not too large. */
static void nearly_full_batch(void **state)
{
	dev_init(&d,
		 &(struct dev_config){ .engine = *(enum vl_io_engine *)*state,
				       .features = MRG,
				       .num = 512,
				       .mtu = 1500 });
	n_buffers = 0;
	dev_start_pair(&d);
	for (int k = 0; k < 500; k++)
		post_one(2048);
	dev_kick(&d, RX);
	/* 4, 8, 16, 32, 64, then 62 of 64. */
	for (int k = 0; k < 124 + 62; k++)
		dev_inject(&d, 0, 60, (uint8_t)k);
	dev_wake(&d, 0);
	for (int k = 0; k < 124 + 62; k++)
		take_frame(60, (uint8_t)k);
	for (int k = 0; k < 100; k++)
		dev_inject(&d, 0, 60, (uint8_t)k);
	dev_wake(&d, 0);
	for (int k = 0; k < 100; k++)
		take_frame(60, (uint8_t)k);
	dev_free(&d);
}

/* Chains of 4 GiB, which a driver can describe with little memory. */
static void huge_chains_do_not_wrap(void **state)
{
	struct rd_seg seg[32];
	uint64_t gpa;

	init(*state, MRG);
	gpa = dev_alloc(&d, 8 << 20, CANARY);
	for (int i = 0; i < 32; i++)
		seg[i] = (struct rd_seg){ gpa, 8 << 20 };
	for (int round = 0; round < 4; round++) {
		struct rd_done done;

		post_one(100);
		assert_true(rd_add(&d.ring[RX], seg, 0, 32, RD_INDIRECT, 0) >=
			    0);
		dev_kick(&d, RX);
		dev_inject(&d, 0, 1514, 3);
		dev_wake(&d, 0);
		dev_wait_used(&d, RX, round ? 1 : 2);
		while (rd_take(&d.ring[RX], &done) == 1)
			assert_true(done.len <= 12 + 1514);
	}
	dev_free(&d);
}

/* The kernel says "checksum is good" whether it was asked or not. */
static void flags_that_were_not_negotiated(void **state)
{
	init(*state, V1);
	post_one(1600);
	dev_kick(&d, RX);
	dev_inject(&d, 0, 60, 5);
	pthread_mutex_lock(&d.lock);
	d.in[0][d.in_first[0]].data[0] = VIRTIO_NET_HDR_F_DATA_VALID;
	pthread_mutex_unlock(&d.lock);
	dev_wake(&d, 0);
	take_frame(60, 5);
	assert_int_equal(frame[0], 0);
	dev_free(&d);
}

/* Stopped with buffers posted: they go back to the ring, and are used after
 * the start; nothing is written in between. */
static void stop_returns_unused_buffers(void **state)
{
	init(*state, MRG);
	for (int round = 0; round < 30; round++) {
		uint16_t base;

		for (int k = 0; k < 10; k++)
			post_one(200);
		dev_kick(&d, RX);
		dev_inject(&d, 0, 100, (uint8_t)round);
		dev_wake(&d, 0);
		take_frame(100, (uint8_t)round);
		base = dev_stop(&d, RX);
		assert_int_equal((uint16_t)(d.ring[RX].avail_idx - base),
				 d.ring[RX].in_flight);
		dev_inject(&d, 0, 50, (uint8_t)(round + 1));
		dev_wake(&d, 0);
		nap_ms(1);
		assert_int_equal(rd_used_count(&d.ring[RX]), 0);
		dev_start(&d, RX);
		take_frame(50, (uint8_t)(round + 1));
		while (d.ring[RX].in_flight) {
			dev_inject(&d, 0, 60, 1);
			dev_wake(&d, 0);
			take_frame(60, 1);
		}
	}
	dev_free(&d);
}

/* Many frames with few buffers, in batches: order and contents stay. */
static void flow_keeps_its_order(void **state)
{
	uint64_t rnd = 5;
	uint32_t next = 0;

	init(*state, MRG);
	for (uint32_t sent = 0; sent < 150;) {
		for (uint32_t n = rd_range(&rnd, 1, 6); n && sent < 150;
		     n--, sent++)
			dev_inject(&d, 0, 60 + sent * 7, (uint8_t)sent);
		dev_wake(&d, 0);
		while (next < sent) {
			while (d.ring[RX].n_free > 4 &&
			       n_buffers < COOKIES - 1) {
				uint32_t len[4];
				uint32_t k = rd_range(&rnd, 1, 4);

				for (uint32_t i = 0; i < k; i++)
					len[i] = rd_range(&rnd, 12, 900);
				post(len, k, RD_DIRECT);
			}
			dev_kick(&d, RX);
			take_frame(60 + next * 7, (uint8_t)next);
			next++;
		}
	}
	assert_int_equal(counters()->packets, 150);
	dev_free(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_may_be_split_anywhere),
		cmocka_unit_test(legacy_header_is_10_bytes),
		cmocka_unit_test(frames_are_merged),
		cmocka_unit_test(largest_frames_are_merged),
		cmocka_unit_test(frame_waits_for_buffers_one_by_one),
		cmocka_unit_test(starved_device_sleeps),
		cmocka_unit_test(tiny_buffers_are_returned),
		cmocka_unit_test(readable_buffers_are_returned),
		cmocka_unit_test(frame_larger_than_its_buffer),
		cmocka_unit_test(frame_longer_than_any),
		cmocka_unit_test(large_buffer_then_many_small_ones),
		cmocka_unit_test(nearly_full_batch),
		cmocka_unit_test(huge_chains_do_not_wrap),
		cmocka_unit_test(flags_that_were_not_negotiated),
		cmocka_unit_test(stop_returns_unused_buffers),
		cmocka_unit_test(flow_keeps_its_order),
	};

	return dev_run_with_engines(tests, VL_ARRAY_SIZE(tests));
}
