/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole device over the null backend. The first byte of the input chooses
 *
 *   bit 0  0: the two queues of a pair in this thread, step by step
 *          1: the device with its worker threads and its control queue
 *   bit 1  another thread changes the rings and the memory underneath
 *
 * and is followed by features, ring sizes and steps: those of
 * fuzz_guest_step(), frames that arrive, what the host answers, rings that
 * stop and start. Checked: frames given to the host lie in memory and are no
 * longer than a frame can be, nothing stays pending, and whatever the
 * sanitizers find.
 */
#include <errno.h>
#include <linux/virtio_config.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "backend/null.h"
#include "base/barrier.h"
#include "base/clock.h"
#include "base/iov.h"
#include "fuzz_guest.h"
#include "net/device.h"
#include "net/rx.h"
#include "net/tags.h"
#include "net/tx.h"
#include "virtio/net_hdr.h"

#define RX        0u
#define TX        1u
#define CTRL      2u
#define FRAME_MAX (12u + 65535u + 14u + 8u)
#define IN_MAX    256u

static struct fuzz_guest guest;

/* The host: what it answers and what it delivers. Workers read it. */
static struct {
	pthread_mutex_t lock;
	int answer; /* nonzero: of every send */
	uint32_t in_len[IN_MAX];
	uint32_t in_count;
	uint32_t sum; /* so that reads of frames are not optimised away */
	/* Zero-copy: sends that are not released, and what becomes of them. */
	uint64_t tag[VL_TX_SLOTS];
	uint32_t pending;
	bool keep, copy, copied;
} host = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Mode 0. */
static struct {
	struct vl_backend *backend;
	struct vl_io *io;
	struct vl_rxq rx;
	struct vl_txq tx;
	uint64_t features;
} queues;

/* Mode 1. */
static struct {
	struct vl_backend *backend;
	struct vl_device *dev;
	bool running[FUZZ_RINGS];
	int kick_fd[FUZZ_RINGS];
} whole;

static int on_send(void *ctx, unsigned int port, const struct iovec *iov,
		   unsigned int n)
{
	size_t len = vl_iov_len(iov, n);
	int res;

	(void)ctx;
	(void)port;
	fuzz_check(len >= 10 + 14 && len <= FRAME_MAX);
	pthread_mutex_lock(&host.lock);
	for (unsigned int i = 0; i < n; i++) {
		const volatile uint8_t *p = iov[i].iov_base;

		for (size_t k = 0; k < iov[i].iov_len; k++)
			host.sum += p[k];
	}
	res = host.answer ? host.answer : (int)len;
	/* A full host has room again at the next try. */
	if (res == -EAGAIN)
		host.answer = 0;
	pthread_mutex_unlock(&host.lock);
	return res;
}

static int on_recv(void *ctx, unsigned int port, const struct iovec *iov,
		   unsigned int n)
{
	uint32_t len, left;

	(void)ctx;
	(void)port;
	pthread_mutex_lock(&host.lock);
	if (!host.in_count) {
		pthread_mutex_unlock(&host.lock);
		return -EAGAIN;
	}
	len = host.in_len[--host.in_count];
	pthread_mutex_unlock(&host.lock);
	left = len;
	for (unsigned int i = 0; i < n && left; i++) {
		uint32_t part =
			left < iov[i].iov_len ? left : (uint32_t)iov[i].iov_len;

		memset(iov[i].iov_base, (int)(len & 0xff), part);
		left -= part;
	}
	return (int)len;
}

static int on_send_zc(void *ctx, unsigned int port, unsigned int way,
		      const struct vl_frame *f, bool *more)
{
	int res = on_send(ctx, port, f->iov, f->n);

	(void)way;
	pthread_mutex_lock(&host.lock);
	*more = !host.copy;
	if (*more) {
		fuzz_check(host.pending < VL_TX_SLOTS);
		host.tag[host.pending++] = f->tag;
		if (!host.keep)
			vl_null_release(ctx, port);
	}
	pthread_mutex_unlock(&host.lock);
	return res;
}

static bool on_released(void *ctx, unsigned int port, uint64_t *tag,
			bool *copied)
{
	bool any;

	(void)ctx;
	(void)port;
	pthread_mutex_lock(&host.lock);
	any = host.pending && !host.keep;
	if (any) {
		uint32_t i = host.pending / 2;

		*tag = host.tag[i];
		*copied = host.copied;
		host.tag[i] = host.tag[--host.pending];
	}
	pthread_mutex_unlock(&host.lock);
	return any;
}

static struct vl_backend *open_backend(void)
{
	const struct vl_backend_params params = { .queue_pairs = 1 };
	struct vl_null_hooks hooks = {
		.send = on_send,
		.recv = on_recv,
		.zerocopy = VL_ZEROCOPY_ON,
		.gso_bytes = 16384,
		.gso_segments = 16,
		.send_zc = on_send_zc,
		.released = on_released,
	};
	struct vl_backend *b;
	char err[128];

	fuzz_check(vl_backend_null.open(&params, &b, err, sizeof(err)) == 0);
	hooks.ctx = b;
	vl_null_set_hooks(b, &hooks);
	return b;
}

static void init_queues(void)
{
	queues.backend = open_backend();
	queues.tx.lanes.lane[0].tag_in = VL_TAG(VL_TAG_LANE_IN, 0);
	queues.tx.lanes.lane[0].tag_out = VL_TAG(VL_TAG_LANE_OUT, 0);
	queues.tx.lanes.tag_backend = VL_TAG(VL_TAG_BACKEND, 0);
	fuzz_check(vl_io_new(VL_IO_SYNC, VL_TX_BATCH + VL_RX_BATCH,
			     &queues.io) == 0);
	fuzz_check(vl_io_start(queues.io) == 0);
	fuzz_check(vl_txq_init(&queues.tx, queues.backend, queues.io) == 0);
	fuzz_check(vl_rxq_init(&queues.rx, &queues.tx.lanes.lane[0],
			       queues.io) == 0);
	fuzz_check(vl_lane_set_start(&queues.tx.lanes, queues.backend, 0,
				     queues.io) == 0);
	fuzz_check(vl_lane_set_activate(&queues.tx.lanes, true) == 0);
}

static void init_whole(void)
{
	struct vl_device_config c = {
		.queue_pairs = 1,
		.engine = VL_IO_SYNC,
		.mtu = 1500,
	};

	whole.backend = open_backend();
	fuzz_check(vl_device_new(&c, whole.backend, &whole.dev) == 0);
	for (unsigned int q = 0; q < FUZZ_RINGS; q++) {
		whole.kick_fd[q] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		fuzz_check(whole.kick_fd[q] >= 0);
	}
}

static void dispatch(void *ctx, const struct vl_io_event *ev)
{
	struct vl_backend *b = queues.backend;

	switch (vl_tag_kind(ev->tag)) {
	case VL_TAG_TX_SLOT:
		vl_txq_event(&queues.tx, vl_tag_index(ev->tag), ev);
		break;
	case VL_TAG_RX_READ:
		vl_rxq_complete(&queues.rx, vl_tag_index(ev->tag), ev->res);
		break;
	case VL_TAG_LANE_IN:
		vl_lane_readable(&queues.tx.lanes.lane[0]);
		break;
	case VL_TAG_LANE_OUT:
		vl_lane_set_writable(&queues.tx.lanes, vl_tag_index(ev->tag));
		break;
	case VL_TAG_BACKEND:
		b->ops->complete(b, 0, queues.io, ev, dispatch, ctx);
		break;
	case VL_TAG_TX_KICK:
	case VL_TAG_RX_KICK:
	case VL_TAG_CALL:
		fuzz_check(false);
		break;
	}
}

static void reap(void)
{
	struct vl_io_event ev[16];
	unsigned int n;

	do {
		n = vl_io_reap(queues.io, ev, 16);
		for (unsigned int i = 0; i < n; i++)
			dispatch(NULL, &ev[i]);
	} while (n == 16);
	if (vl_txq_flush(&queues.tx))
		reap();
	vl_rxq_flush(&queues.rx);
}

/* Some turns of a worker, never more than there can be work for. */
static void turns(void)
{
	bool more = true;

	for (int i = 0; i < 40 && more; i++) {
		more = vl_txq_turn(&queues.tx);
		more |= vl_rxq_turn(&queues.rx);
		vl_io_wait(queues.io, 0);
		reap();
	}
}

static void check_vq(const struct vl_virtqueue *vq)
{
	fuzz_check(vq->popped == vq->pushed + vq->unpopped + vq->in_flight);
}

/* Nothing stays pending from now on. */
static void release_all(struct vl_backend *b)
{
	pthread_mutex_lock(&host.lock);
	host.keep = false;
	pthread_mutex_unlock(&host.lock);
	vl_null_release(b, 0);
}

static void queues_stop(unsigned int q)
{
	struct vl_virtqueue *vq = q == TX ? &queues.tx.vq : &queues.rx.vq;

	release_all(queues.backend);
	while ((q == TX && vl_txq_stopping(&queues.tx, vl_now_ns())) ||
	       vl_txq_in_flight(&queues.tx) || vl_rxq_in_flight(&queues.rx)) {
		vl_io_wait(queues.io, 0);
		reap();
	}
	guest.avail_idx[q] =
		q == TX ? vl_txq_stop(&queues.tx) : vl_rxq_stop(&queues.rx);
	check_vq(vq);
	fuzz_check(vq->in_flight == 0);
}

static void queues_start(unsigned int q)
{
	struct vl_vring vring = fuzz_guest_vring(&guest, q);

	if (q == TX)
		fuzz_check(vl_txq_start(&queues.tx, "tx", &vring, guest.mem,
					queues.features) == 0);
	else
		fuzz_check(vl_rxq_start(&queues.rx, "rx", &vring, guest.mem,
					queues.features) == 0);
}

static void whole_start(unsigned int q)
{
	struct vl_vring vring = fuzz_guest_vring(&guest, q);

	vring.kick_fd = whole.kick_fd[q];
	if (!whole.running[q])
		whole.running[q] =
			vl_device_vring_start(whole.dev, q, &vring) == 0;
}

static void whole_stop(unsigned int q)
{
	uint16_t base = 0;

	if (!whole.running[q])
		return;
	release_all(whole.backend);
	vl_device_vring_stop(whole.dev, q, &base);
	guest.avail_idx[q] = base;
	whole.running[q] = false;
}

static void whole_kick(void)
{
	for (unsigned int q = 0; q < CTRL; q++)
		(void)eventfd_write(whole.kick_fd[q], 1);
	vl_device_ctrl_kick(whole.dev);
	/* Two hand-overs: a turn lies between them. */
	vl_device_vring_call(whole.dev, RX, -1);
	vl_device_vring_call(whole.dev, TX, -1);
}

/* @n frames of @len bytes arrive. */
static void inject(uint8_t n, uint32_t len, bool threads)
{
	pthread_mutex_lock(&host.lock);
	for (n = n % 128; n && host.in_count < IN_MAX; n--)
		host.in_len[host.in_count++] = len % (FRAME_MAX + 100);
	pthread_mutex_unlock(&host.lock);
	vl_null_wake(threads ? whole.backend : queues.backend, 0);
}

static void answer(uint8_t which)
{
	static const int answers[] = {
		0, -EAGAIN, -EIO, -EINVAL, -ENOMEM, -ENXIO, -EBADFD, -ENOBUFS,
	};

	pthread_mutex_lock(&host.lock);
	host.answer = answers[which % (sizeof(answers) / sizeof(answers[0]))];
	pthread_mutex_unlock(&host.lock);
}

static void step(uint8_t op, struct fuzz_input *in, bool threads)
{
	unsigned int q;
	uint8_t n;

	if (fuzz_guest_step(&guest, op, in))
		return;
	switch (op) {
	case 4:
		n = fuzz_u8(in);
		inject(n, fuzz_u32(in), threads);
		break;
	case 5:
		answer(fuzz_u8(in));
		break;
	case 6:
		q = fuzz_u8(in) % FUZZ_RINGS;
		if (threads) {
			whole_stop(q);
			whole_start(q);
		} else if (q != CTRL) {
			queues_stop(q);
			queues_start(q);
		}
		break;
	case 7:
		n = fuzz_u8(in);
		pthread_mutex_lock(&host.lock);
		host.keep = n & 1;
		host.copy = n & 2;
		host.copied = n & 4;
		pthread_mutex_unlock(&host.lock);
		vl_null_release(threads ? whole.backend : queues.backend, 0);
		break;
	default:
		if (threads)
			whole_kick();
		else
			turns();
		break;
	}
}

/* Flips bits of what the device works on, all over rings and buffers. */
static bool flipping;

static void *flipper(void *arg)
{
	uint64_t rnd = *(uint64_t *)arg;

	while (vl_load_acquire(&flipping))
		for (int i = 0; i < 64; i++) {
			uint64_t r = rd_random(&rnd);
			/* Mostly descriptors, avail rings and headers. */
			uint32_t at = (uint32_t)(r & 1 ? r >> 40 & 0xbfff
						       : r >> 40 & 0x1ffff);
			uint8_t *p = guest.low.base + at;

			vl_write_once(p, (uint8_t)(vl_read_once(p) ^
						   1u << (r >> 8 & 7)));
		}
	return NULL;
}

static void run_queues(struct fuzz_input *in)
{
	if (!queues.io)
		init_queues();
	queues_start(RX);
	queues_start(TX);
	while (in->left)
		step(fuzz_u8(in) % 9, in, false);
	turns();
	answer(0);
	release_all(queues.backend);
	/* What waited, since it was cut, and what followed it. */
	turns();
	turns();
	queues_stop(RX);
	queues_stop(TX);
	fuzz_check(queues.tx.n_free == VL_TX_SLOTS);
}

static void run_whole(struct fuzz_input *in)
{
	static struct vl_snapshot snap;

	if (!whole.dev)
		init_whole();
	vl_device_reset(whole.dev);
	fuzz_check(vl_device_set_features(
			   whole.dev,
			   queues.features & vl_device_features(whole.dev)) ==
		   0);
	fuzz_check(vl_device_set_mem(whole.dev, guest.mem) == 0);
	for (unsigned int q = 0; q < FUZZ_RINGS; q++)
		whole_start(q);
	while (in->left)
		step(fuzz_u8(in) % 9, in, true);
	whole_kick();
	answer(0);
	for (unsigned int q = 0; q < FUZZ_RINGS; q++)
		whole_stop(q);
	vl_device_snapshot(whole.dev, &snap);
	fuzz_check(snap.pair[0].txq.pending == 0);
	fuzz_check(snap.pair[0].rxq.pending == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint8_t mode = fuzz_u8(&in);
	uint64_t seed = size;
	pthread_t thread;

	if (!guest.mem)
		fuzz_guest_init(&guest);
	host.answer = 0;
	host.in_count = 0;
	host.keep = false;
	host.copy = false;
	queues.features = fuzz_u32(&in) | (uint64_t)fuzz_u32(&in) << 32;
	fuzz_guest_reset(&guest, &in);
	if (mode & 2) {
		vl_store_release(&flipping, true);
		fuzz_check(pthread_create(&thread, NULL, flipper, &seed) == 0);
	}
	if (mode & 1)
		run_whole(&in);
	else
		run_queues(&in);
	if (mode & 2) {
		vl_store_release(&flipping, false);
		pthread_join(thread, NULL);
	}
	return 0;
}
