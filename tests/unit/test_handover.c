/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand-over between threads: a driver thread keeps both directions of a pair
 * busy while the control thread stops and starts rings, swaps descriptors and
 * takes snapshots. Nothing may get lost or come twice, each popped chain is
 * handed back or stays in the ring, and ThreadSanitizer must have nothing to
 * say (suite tsan).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "device_fixture.h"
#include "virtio/net_hdr.h"

#define RX     0u
#define TX     1u
#define FRAMES 20000u
#define NUM    64u
#define FEATURES                                                               \
	(VL_FEATURE(VIRTIO_F_VERSION_1) |                                      \
	 VL_FEATURE(VIRTIO_RING_F_INDIRECT_DESC) |                             \
	 VL_FEATURE(VIRTIO_RING_F_EVENT_IDX) |                                 \
	 VL_FEATURE(VIRTIO_NET_F_MRG_RXBUF))

static struct device d;

/* The driver thread's own; counts are read by the control thread. */
static struct driver {
	pthread_t thread;
	uint64_t tx_gpa[NUM], rx_gpa[NUM];
	uint32_t tx_free[NUM], n_tx_free;
	uint32_t rx_free[NUM], n_rx_free;
	uint32_t tx_sent, tx_back, rx_got;
	uint32_t rx_wrong;
	bool stop;
	/* Held while rings are looked at: a stop and start is one step for
	 * the driver, as it is for a front-end. */
	pthread_mutex_t lock;
} drv;

/* The network: checks order on transmit, generates on receive. */
static struct {
	uint32_t tx_next, tx_wrong;
	uint32_t rx_next;
} net;

static int net_send(void *ctx, unsigned int port, const struct iovec *iov,
		    unsigned int n)
{
	uint8_t head[16];
	uint32_t seq;
	int len = 0;
	size_t got = 0;

	(void)ctx;
	(void)port;
	for (unsigned int i = 0; i < n; i++) {
		for (size_t k = 0; k < iov[i].iov_len && got < 16; k++)
			head[got++] = ((uint8_t *)iov[i].iov_base)[k];
		len += (int)iov[i].iov_len;
	}
	memcpy(&seq, head + 12, 4);
	if (seq != net.tx_next)
		vl_write_once(&net.tx_wrong, net.tx_wrong + 1);
	vl_write_once(&net.tx_next, seq + 1);
	return len;
}

static int net_recv(void *ctx, unsigned int port, const struct iovec *iov,
		    unsigned int n)
{
	uint8_t frame[76] = { 0 };
	size_t at = 0;

	(void)ctx;
	(void)port;
	if (net.rx_next == FRAMES)
		return -EAGAIN;
	memcpy(frame + 12, &net.rx_next, 4);
	for (unsigned int i = 0; i < n && at < sizeof(frame); i++) {
		size_t part = sizeof(frame) - at;

		if (part > iov[i].iov_len)
			part = iov[i].iov_len;
		memcpy(iov[i].iov_base, frame + at, part);
		at += part;
	}
	net.rx_next++;
	return (int)sizeof(frame);
}

static void drive_tx(void)
{
	struct rd_done done;
	uint32_t added = 0;

	while (rd_take(&d.ring[TX], &done) == 1) {
		drv.tx_free[drv.n_tx_free++] = done.cookie;
		vl_write_once(&drv.tx_back, drv.tx_back + 1);
	}
	while (drv.n_tx_free && drv.tx_sent < FRAMES) {
		uint32_t slot = drv.tx_free[drv.n_tx_free - 1];
		struct rd_seg seg = { drv.tx_gpa[slot], 12 + 60 };

		memcpy((uint8_t *)dev_ptr(&d, seg.gpa) + 12, &drv.tx_sent, 4);
		if (rd_add(&d.ring[TX], &seg, 1, 0,
			   drv.tx_sent & 1 ? RD_DIRECT : RD_INDIRECT, slot) < 0)
			break;
		drv.n_tx_free--;
		drv.tx_sent++;
		added++;
	}
	if (added)
		dev_kick(&d, TX);
}

static void drive_rx(void)
{
	struct rd_done done;
	uint32_t added = 0;

	while (rd_take(&d.ring[RX], &done) == 1) {
		uint32_t seq;

		memcpy(&seq,
		       (uint8_t *)dev_ptr(&d, drv.rx_gpa[done.cookie]) + 12, 4);
		drv.rx_free[drv.n_rx_free++] = done.cookie;
		/* A frame may be dropped by a stop, never come twice. */
		if (done.len != 76 || seq < drv.rx_got)
			vl_write_once(&drv.rx_wrong, drv.rx_wrong + 1);
		vl_write_once(&drv.rx_got, seq + 1);
	}
	while (drv.n_rx_free) {
		uint32_t slot = drv.rx_free[drv.n_rx_free - 1];
		struct rd_seg seg = { drv.rx_gpa[slot], 256 };

		if (rd_add(&d.ring[RX], &seg, 0, 1, RD_DIRECT, slot) < 0)
			break;
		drv.n_rx_free--;
		added++;
	}
	if (added)
		dev_kick(&d, RX);
}

static void *driver_main(void *arg)
{
	const struct timespec pause = { 0, 50000 };

	(void)arg;
	while (!vl_load_acquire(&drv.stop)) {
		pthread_mutex_lock(&drv.lock);
		drive_tx();
		drive_rx();
		pthread_mutex_unlock(&drv.lock);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void start_driver(void)
{
	memset(&drv, 0, sizeof(drv));
	for (uint32_t i = 0; i < NUM; i++) {
		drv.tx_gpa[i] = dev_alloc(&d, 128, 0);
		drv.rx_gpa[i] = dev_alloc(&d, 256, 0);
		drv.tx_free[drv.n_tx_free++] = i;
		drv.rx_free[drv.n_rx_free++] = i;
	}
	pthread_mutex_init(&drv.lock, NULL);
	assert_int_equal(pthread_create(&drv.thread, NULL, driver_main, NULL),
			 0);
}

/* Stops ring @index and starts it where it stopped. What the device had not
 * taken is exactly what is not used. */
static void bounce(unsigned int index)
{
	struct rd_ring *r = &d.ring[index];
	uint32_t used;
	uint16_t base;

	pthread_mutex_lock(&drv.lock);
	base = dev_stop(&d, index);
	used = rd_used_count(r);
	assert_int_equal((uint16_t)(r->avail_idx - base), r->in_flight - used);
	r->in_flight -= used;
	dev_start(&d, index);
	r->in_flight += used;
	pthread_mutex_unlock(&drv.lock);
}

static bool all_done(void)
{
	return vl_read_once(&drv.tx_back) == FRAMES &&
	       vl_read_once(&drv.rx_got) == FRAMES;
}

static void hand_over(void **state)
{
	enum vl_io_engine engine = *(enum vl_io_engine *)*state;
	uint64_t rnd = 3, end = vl_now_ns() + 60 * VL_NS_PER_SEC;
	const struct vl_null_hooks hooks = { .send = net_send,
					     .recv = net_recv };
	static struct vl_snapshot snap;
	uint32_t rounds = 0;

	dev_init(&d, &(struct dev_config){ .engine = engine,
					   .features = FEATURES,
					   .num = NUM,
					   .start = 60000 });
	/* No port runs yet. */
	memset(&net, 0, sizeof(net));
	vl_null_set_hooks(d.backend, &hooks);
	dev_start_pair(&d);
	start_driver();
	while (!all_done() && vl_now_ns() < end) {
		struct timespec t = { 0, (long)rd_range(&rnd, 0, 300000) };

		switch (rd_range(&rnd, 0, 5)) {
		case 0:
			bounce(TX);
			break;
		case 1:
			bounce(RX);
			break;
		case 2:
			vl_device_vring_call(d.dev, TX,
					     rounds & 1 ? d.ring[TX].call_fd
							: -1);
			break;
		case 3:
			vl_device_vring_err(d.dev, RX, d.ring[RX].err_fd);
			break;
		default:
			dev_snapshot(&d, &snap);
			assert_true(snap.pair[0].txq.pending <= NUM);
			break;
		}
		rounds++;
		nanosleep(&t, NULL);
	}
	vl_store_release(&drv.stop, true);
	pthread_join(drv.thread, NULL);
	dev_stop(&d, TX);
	dev_stop(&d, RX);
	assert_true(all_done());
	assert_int_equal(net.tx_wrong, 0);
	assert_int_equal(net.tx_next, FRAMES);
	assert_int_equal(drv.rx_wrong, 0);
	assert_int_equal(d.ring[TX].bad_used + d.ring[RX].bad_used, 0);
	dev_snapshot(&d, &snap);
	assert_int_equal(snap.pair[0].tx.packets, FRAMES);
	assert_int_equal(snap.pair[0].txq.pending, 0);
	assert_int_equal(snap.pair[0].rxq.pending, 0);
	assert_true(rounds > 10);
	dev_free(&d);
	pthread_mutex_destroy(&drv.lock);
}

static enum vl_io_engine engines[] = { VL_IO_URING, VL_IO_SYNC };

int main(void)
{
	const char *why;
	int status = 0;

	for (size_t i = 0; i < 2; i++) {
		const struct CMUnitTest tests[] = {
			{ .name = "hand_over",
			  .test_func = hand_over,
			  .initial_state = &engines[i] },
		};

		if (vl_io_choose(engines[i], &why) < 0)
			continue;
		status |= cmocka_run_group_tests(tests, NULL, NULL);
	}
	return status;
}
