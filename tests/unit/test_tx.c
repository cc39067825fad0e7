/* SPDX-License-Identifier: BSD-3-Clause */
/* The transmitq of a whole device: what leaves, what is dropped and counted,
 * what happens when the network is full. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/barrier.h"
#include "base/iov.h"
#include "base/util.h"
#include "device_fixture.h"
#include "net/tx.h"
#include "virtio/net_hdr.h"

#define TX       1u
#define OTHER_TX 3u
#define BASE                                                                   \
	(VL_FEATURE(VIRTIO_F_VERSION_1) |                                      \
	 VL_FEATURE(VIRTIO_RING_F_INDIRECT_DESC) |                             \
	 VL_FEATURE(VIRTIO_RING_F_EVENT_IDX))
#define OFFLOAD                                                                \
	(VL_FEATURE(VIRTIO_NET_F_CSUM) | VL_FEATURE(VIRTIO_NET_F_HOST_TSO4))

static struct device d;
static struct vl_snapshot snap;

static void init(const enum vl_io_engine *engine, uint64_t features)
{
	dev_init(&d, &(struct dev_config){ .engine = *engine,
					   .features = features });
	dev_start(&d, TX);
	dev_start(&d, OTHER_TX);
}

static const struct vl_tx_counters *counters(void)
{
	dev_snapshot(&d, &snap);
	return &snap.pair[0].tx;
}

/* Adds a chain of one readable segment of @len bytes. */
static void add(uint64_t gpa, uint32_t len)
{
	struct rd_seg seg = { gpa, len };

	assert_true(rd_add(&d.ring[TX], &seg, 1, 0, RD_DIRECT, 0) >= 0);
}

/* Takes @n used entries, all of length 0 and in the order they were added. */
static void take(uint32_t n)
{
	struct rd_done done;

	dev_wait_used(&d, TX, n);
	for (; n; n--) {
		assert_int_equal(rd_take(&d.ring[TX], &done), 1);
		assert_int_equal(done.len, 0);
	}
}

/* B01 */
static void short_chains_are_dropped(void **state)
{
	static const uint32_t lens[] = { 0, 1, 9, 10, 11, 12, 13, 25 };
	uint64_t gpa;

	init(*state, BASE);
	gpa = dev_alloc(&d, 64, 0);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		add(gpa, lens[i]);
	add(gpa, 26); /* header and a bare Ethernet header */
	dev_kick(&d, TX);
	take(9);
	dev_wait_sent(&d, 1);
	assert_int_equal(counters()->drop_short, 8);
	assert_int_equal(counters()->packets, 1);
	assert_int_equal(counters()->bytes, 14);
	dev_free(&d);
}

/* The header may be split anywhere, the frame too. */
static void any_layout_is_one_frame(void **state)
{
	init(*state, BASE);
	for (uint32_t first = 1; first < 30; first++)
		for (uint32_t second = 1; second < 14; second += 4) {
			uint64_t gpa = dev_alloc(&d, 132, 0);
			struct rd_seg seg[3] = {
				{ gpa, first },
				{ gpa + first, second },
				{ gpa + first + second, 132 - first - second },
			};
			uint8_t *p = dev_ptr(&d, gpa);
			uint64_t n = dev_sent_count(&d);

			for (uint8_t i = 12; i < 132; i++)
				p[i] = i;
			assert_true(rd_add(&d.ring[TX], seg, 3, 0,
					   (enum rd_layout)(first % 3),
					   0) >= 0);
			dev_kick(&d, TX);
			take(1);
			dev_wait_sent(&d, n + 1);
			assert_int_equal(d.log[n % DEV_LOG].len, 132);
			assert_memory_equal(d.log[n % DEV_LOG].head, p,
					    DEV_HEAD);
		}
	dev_free(&d);
}

/* As many pieces as a chain may have; small and large ones. */
static void long_chains_pass(void **state)
{
	static const uint32_t pieces[] = { 19, 20, 21, 22, 32 };

	init(*state, BASE);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		for (uint32_t size = 40; size <= 2000; size += 1960) {
			uint64_t gpa = dev_alloc(&d, size * pieces[i], 0);
			struct rd_seg seg[32];
			uint64_t n = dev_sent_count(&d);

			for (uint32_t k = 0; k < pieces[i]; k++)
				seg[k] =
					(struct rd_seg){ gpa + k * size, size };
			for (int copies = 0; copies < 3; copies++)
				assert_true(rd_add(&d.ring[TX], seg, pieces[i],
						   0, RD_INDIRECT, 0) >= 0);
			dev_kick(&d, TX);
			take(3);
			dev_wait_sent(&d, n + 3);
			assert_int_equal(d.log[n % DEV_LOG].len,
					 size * pieces[i]);
		}
	dev_free(&d);
}

static void writable_buffers_are_refused(void **state)
{
	uint64_t gpa;
	struct rd_seg seg[2];

	init(*state, BASE);
	gpa = dev_alloc(&d, 200, 0);
	seg[0] = (struct rd_seg){ gpa, 100 };
	seg[1] = (struct rd_seg){ gpa + 100, 100 };
	assert_true(rd_add(&d.ring[TX], seg, 1, 1, RD_DIRECT, 0) >= 0);
	dev_kick(&d, TX);
	take(1);
	assert_int_equal(counters()->drop_chain, 1);
	assert_int_equal(dev_sent_count(&d), 0);
	dev_tx_ok(&d, TX, 60);
	dev_free(&d);
}

static void oversize_frames_are_dropped(void **state)
{
	uint64_t gpa;
	struct rd_seg seg[32];

	init(*state, BASE);
	gpa = dev_alloc(&d, 4096, 0);
	for (int i = 0; i < 32; i++)
		seg[i] = (struct rd_seg){ gpa, 4096 };
	assert_true(rd_add(&d.ring[TX], seg, 32, 0, RD_INDIRECT, 0) >= 0);
	dev_kick(&d, TX);
	take(1);
	assert_int_equal(counters()->drop_oversize, 1);
	dev_tx_ok(&d, TX, 1514);
	dev_free(&d);
}

static void bad_headers_are_dropped(void **state)
{
	struct virtio_net_hdr *h;
	uint64_t gpa;

	init(*state, BASE | OFFLOAD);
	gpa = dev_alloc(&d, 112, 0);
	h = dev_ptr(&d, gpa);
	h->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	h->csum_start = 99;
	h->csum_offset = 16; /* past the end */
	add(gpa, 112);
	dev_kick(&d, TX);
	take(1);
	h->csum_start = 34;
	h->gso_type = VIRTIO_NET_HDR_GSO_TCPV6; /* not negotiated */
	h->gso_size = 1000;
	add(gpa, 112);
	dev_kick(&d, TX);
	take(1);
	assert_int_equal(counters()->drop_header, 2);
	h->gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	add(gpa, 112);
	dev_kick(&d, TX);
	take(1);
	dev_wait_sent(&d, 1);
	assert_int_equal(counters()->gso_packets, 1);
	assert_int_equal(counters()->csum_packets, 1);
	dev_free(&d);
}

/* What the host answers decides where a packet is counted; the next passes. */
static void host_errors_are_counted(void **state)
{
	static const int errs[] = { -EIO, -ENODEV, -EINVAL, -ENOMEM };
	uint64_t gpa, dropped;

	init(*state, BASE);
	gpa = dev_alloc(&d, 100, 0);
	for (size_t i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		dev_answer_sends(&d, errs[i], 0);
		for (int k = 0; k < 5; k++)
			add(gpa, 100);
		dev_kick(&d, TX);
		take(5);
		dev_answer_sends(&d, 0, 0);
	}
	dev_tx_ok(&d, TX, 60);
	(void)counters();
	dropped = snap.pair[0].tx.drop_down + snap.pair[0].tx.drop_gone +
		  snap.pair[0].tx.drop_refused + snap.pair[0].tx.drop_nomem;
	assert_int_equal(dropped, 20);
	assert_int_equal(snap.pair[0].tx.drop_down, 5);
	assert_int_equal(snap.pair[0].tx.drop_nomem, 5);
	assert_int_equal(snap.pair[0].tx.packets, 1);
	dev_free(&d);
}

static void nap_ms(long ms)
{
	const struct timespec t = { 0, ms * 1000000 };

	nanosleep(&t, NULL);
}

/* B30, rule 4: a full network stops the queue, loses and reorders nothing. */
static void full_network_keeps_the_order(void **state)
{
	uint64_t gpa;
	struct rd_done done;

	init(*state, BASE);
	dev_answer_sends(&d, -EAGAIN, 10);
	for (uint32_t i = 0; i < 60; i++) {
		gpa = dev_alloc(&d, 100, 0);
		memcpy((char *)dev_ptr(&d, gpa) + 26, &i, 4);
		add(gpa, 100);
	}
	dev_kick(&d, TX);
	dev_wait_sent(&d, 10);
	nap_ms(20);
	/* Some more are let through, again in the middle of a batch. */
	dev_answer_sends(&d, -EAGAIN, 7);
	dev_wait_sent(&d, 17);
	nap_ms(20);
	dev_answer_sends(&d, 0, 0);
	dev_wait_sent(&d, 60);
	dev_wait_used(&d, TX, 60);
	for (uint32_t i = 0; i < 60; i++) {
		uint32_t got;

		memcpy(&got, d.log[i].head + 26, 4);
		assert_int_equal(got, i);
		assert_int_equal(rd_take(&d.ring[TX], &done), 1);
	}
	assert_true(counters()->blocked > 0);
	assert_int_equal(counters()->packets, 60);
	dev_free(&d);
}

/* Stopped while the network is full: what did not leave stays in the ring. */
static void stop_while_full(void **state)
{
	uint64_t gpa;
	uint16_t base;

	init(*state, BASE);
	gpa = dev_alloc(&d, 100, 0);
	dev_answer_sends(&d, -EAGAIN, 10);
	for (int i = 0; i < 30; i++)
		add(gpa, 100);
	dev_kick(&d, TX);
	dev_wait_sent(&d, 10);
	base = dev_stop(&d, TX);
	take((uint16_t)base);
	assert_int_equal(d.ring[TX].in_flight, 30 - base);
	assert_true(base >= 10);
	nap_ms(20);
	assert_int_equal(rd_used_count(&d.ring[TX]), 0);
	dev_answer_sends(&d, 0, 0);
	dev_start(&d, TX);
	dev_wait_sent(&d, 30);
	take(30u - base);
	dev_free(&d);
}

/* Malformed chains among good ones: every chain comes back once. */
static void bad_chains_among_good_ones(void **state)
{
	uint64_t gpa;

	init(*state, BASE);
	gpa = dev_alloc(&d, 100, 0);
	for (int i = 0; i < 50; i++) {
		if (i % 3 == 0)
			add(0x40, 100); /* not mapped */
		else
			add(gpa, 100);
	}
	dev_kick(&d, TX);
	take(50);
	dev_wait_sent(&d, 33);
	assert_int_equal(counters()->drop_chain, 17);
	assert_int_equal(counters()->packets, 33);
	dev_free(&d);
}

/* A broken queue stops alone. */
static void broken_queue_leaves_others_alone(void **state)
{
	init(*state, BASE);
	rd_avail(&d.ring[TX], 999);
	dev_kick(&d, TX);
	dev_tx_ok(&d, OTHER_TX, 60);
	for (int i = 0; i < 200 && !rd_errors(&d.ring[TX]); i++)
		nap_ms(5);
	dev_snapshot(&d, &snap);
	assert_true(snap.pair[0].txq.broken);
	assert_false(snap.pair[1].txq.broken);
	dev_tx_ok(&d, OTHER_TX, 60);
	dev_free(&d);
}

/* B26: what is there at the start is found without a kick. */
static void start_looks_without_a_kick(void **state)
{
	dev_init(&d,
		 &(struct dev_config){ .engine = *(enum vl_io_engine *)*state,
				       .features = BASE });
	for (int i = 0; i < 5; i++)
		add(dev_alloc(&d, 100, 0), 100);
	rd_publish(&d.ring[TX]);
	d.ring[TX].in_flight = 5;
	dev_start(&d, TX);
	take(5);
	dev_wait_sent(&d, 5);
	dev_free(&d);
}

/* A batch costs one call, not one per packet. */
static void calls_are_batched(void **state)
{
	uint64_t gpa, calls = 0;

	init(*state, BASE);
	gpa = dev_alloc(&d, 100, 0);
	for (int round = 0; round < 50; round++) {
		rd_enable_call(&d.ring[TX], 1);
		for (int i = 0; i < 20; i++)
			add(gpa, 100);
		dev_kick(&d, TX);
		take(20);
		nap_ms(1);
		calls += rd_calls(&d.ring[TX]);
	}
	assert_true(calls >= 1);
	assert_true(calls <= 150);
	assert_int_equal(counters()->packets, 1000);
	dev_free(&d);
}

/* When the network takes the last packet of a batch the driver has gone on
 * queueing: something that breaks its ring. */
static unsigned int until_spoilt;

static int send_and_spoil(void *ctx, unsigned int port, unsigned int way,
			  const struct iovec *iov, unsigned int n)
{
	const struct rd_ring *r = &((struct device *)ctx)->ring[TX];
	unsigned int left = vl_read_once(&until_spoilt);
	uint16_t idx;

	(void)port;
	(void)way;
	if (left)
		vl_write_once(&until_spoilt, left - 1);
	if (left == 1) {
		/* The test's own thread has the rest of the driver's state. */
		idx = vl_read_once(&r->avail->idx);
		vl_write_once(&r->avail->ring[idx & (r->num - 1)],
			      (uint16_t)0xffff);
		vl_store_release(&r->avail->idx, (uint16_t)(idx + 1));
	}
	return (int)vl_iov_len(iov, n);
}

/* A notification that is left to the batch that follows comes even if nothing
 * can follow any more. */
static void notification_is_put_off_not_lost(void **state)
{
	struct pollfd p = { .events = POLLIN };
	uint64_t gpa;

	dev_init(&d, &(struct dev_config){
			     .engine = *(enum vl_io_engine *)*state,
			     .features = VL_FEATURE(VIRTIO_F_VERSION_1),
			     .num = 1024,
			     .ways = 1,
			     .send_way = send_and_spoil });
	dev_start(&d, TX);
	gpa = dev_alloc(&d, 100, 0);
	p.fd = d.ring[TX].call_fd;
	for (unsigned int n = 1; n <= VL_TX_BATCH; n += VL_TX_BATCH - 1) {
		vl_write_once(&until_spoilt, n == VL_TX_BATCH ? n : 0u);
		for (unsigned int i = 0; i < n; i++)
			add(gpa, 100);
		dev_kick(&d, TX);
		take(n);
		assert_int_equal(poll(&p, 1, 2000), 1);
		assert_int_equal(rd_calls(&d.ring[TX]), 1);
	}
	dev_snapshot(&d, &snap);
	assert_true(snap.pair[0].txq.broken);
	dev_free(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(notification_is_put_off_not_lost),
		cmocka_unit_test(short_chains_are_dropped),
		cmocka_unit_test(any_layout_is_one_frame),
		cmocka_unit_test(long_chains_pass),
		cmocka_unit_test(writable_buffers_are_refused),
		cmocka_unit_test(oversize_frames_are_dropped),
		cmocka_unit_test(bad_headers_are_dropped),
		cmocka_unit_test(host_errors_are_counted),
		cmocka_unit_test(full_network_keeps_the_order),
		cmocka_unit_test(stop_while_full),
		cmocka_unit_test(bad_chains_among_good_ones),
		cmocka_unit_test(broken_queue_leaves_others_alone),
		cmocka_unit_test(start_looks_without_a_kick),
		cmocka_unit_test(calls_are_batched),
	};

	return dev_run_with_engines(tests, VL_ARRAY_SIZE(tests));
}
