/* SPDX-License-Identifier: BSD-3-Clause */
#include "device_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/iov.h"
#include "base/log.h"
#include "ring_fixture.h"
#include "virtio/net_hdr.h"

#define MEM_GPA  0x100000ULL
#define MEM_SIZE (32ULL << 20)

static int on_send(void *ctx, unsigned int port, const struct iovec *iov,
		   unsigned int n)
{
	struct device *d = ctx;
	int res = (int)vl_iov_len(iov, n);
	struct dev_sent *s;

	(void)port;
	pthread_mutex_lock(&d->lock);
	if (d->send_result && d->take == 0) {
		res = d->send_result;
		d->refused++;
	} else {
		if (d->send_result)
			d->take--;
		s = &d->log[d->sent++ % DEV_LOG];
		s->len = (uint32_t)res;
		vl_iov_read(iov, n, 0, s->head, DEV_HEAD);
	}
	pthread_mutex_unlock(&d->lock);
	return res;
}

static int on_recv(void *ctx, unsigned int port, const struct iovec *iov,
		   unsigned int n)
{
	struct device *d = ctx;
	struct dev_injected *in;
	int res = -EAGAIN;

	pthread_mutex_lock(&d->lock);
	if (d->in_count[port]) {
		in = &d->in[port][d->in_first[port]];
		vl_iov_write(iov, n, 0, in->data, in->len);
		res = (int)in->len;
		free(in->data);
		d->in_first[port] = (d->in_first[port] + 1) % DEV_INJECT_MAX;
		d->in_count[port]--;
		d->in_taken[port]++;
	}
	pthread_mutex_unlock(&d->lock);
	return res;
}

static void on_config_changed(void *ctx)
{
	struct device *d = ctx;

	d->config_changes++;
}

static void on_ctrl_watch(void *ctx, int fd)
{
	struct device *d = ctx;

	d->watched_fd = fd;
}

static void make_backend(struct device *d, const struct dev_config *c)
{
	const struct vl_backend_params params = { .queue_pairs = DEV_PAIRS };
	const struct vl_null_hooks hooks = {
		.send = on_send,
		.recv = on_recv,
		.ctx = d,
		.ways = c->ways,
		.send_way = c->send_way,
		.writable = c->writable,
		.zerocopy = c->zc.zerocopy,
		.pending = c->zc.pending,
		.gso_bytes = c->zc.gso_bytes,
		.gso_segments = c->zc.gso_segments,
		.send_zc = c->zc.send_zc,
		.released = c->zc.released,
	};
	char err[256];

	assert_int_equal(
		vl_backend_null.open(&params, &d->backend, err, sizeof(err)),
		0);
	vl_null_set_hooks(d->backend, &hooks);
	d->backend->mtu = c->mtu;
}

static void make_memory(struct device *d, const struct dev_config *c)
{
	struct rd_ring_config rc = {
		.num = c->num ? c->num : 64,
		.table_max =
			c->features & VL_FEATURE(VIRTIO_RING_F_INDIRECT_DESC)
				? 64
				: 0,
		.start = c->start,
		.event_idx =
			!!(c->features & VL_FEATURE(VIRTIO_RING_F_EVENT_IDX)),
	};
	struct vl_mem_region region;

	assert_int_equal(rd_mem_init(&d->mem, MEM_GPA, MEM_SIZE), 0);
	region = fix_region(&d->mem);
	assert_int_equal(vl_guest_mem_new(&region, 1, &d->gmem), 0);
	for (size_t i = 0; i < 2 * DEV_PAIRS + 1; i++)
		assert_int_equal(rd_ring_init(&d->ring[i], &d->mem, &rc), 0);
}

void dev_init(struct device *d, const struct dev_config *c)
{
	struct vl_device_config dc = {
		.queue_pairs = DEV_PAIRS,
		.engine = c->engine,
		.tx_full = c->tx_full,
		.mac = { 2, 0, 0, 0, 0, 1 },
		.mtu = 1500,
		.config_changed = on_config_changed,
		.ctrl_watch = on_ctrl_watch,
		.ctx = d,
	};

	vl_log_set_level(VL_LOG_ERROR);
	memset(d, 0, sizeof(*d));
	d->watched_fd = -1;
	d->features = c->features;
	d->hdr_len = vl_net_hdr_len(c->features);
	pthread_mutex_init(&d->lock, NULL);
	make_backend(d, c);
	make_memory(d, c);
	assert_int_equal(vl_device_new(&dc, d->backend, &d->dev), 0);
	assert_int_equal(vl_device_set_features(d->dev, c->features), 0);
	assert_int_equal(vl_device_set_mem(d->dev, d->gmem), 0);
}

void dev_free(struct device *d)
{
	vl_device_free(d->dev);
	d->backend->ops->close(d->backend);
	for (size_t i = 0; i < 2 * DEV_PAIRS + 1; i++)
		rd_ring_free(&d->ring[i]);
	for (size_t p = 0; p < DEV_PAIRS; p++)
		for (; d->in_count[p]; d->in_count[p]--)
			free(d->in[p][d->in_first[p]++ % DEV_INJECT_MAX].data);
	vl_guest_mem_put(d->gmem);
	rd_mem_free(&d->mem);
	pthread_mutex_destroy(&d->lock);
}

void dev_start(struct device *d, unsigned int index)
{
	struct rd_ring *r = &d->ring[index];
	struct vl_vring vring;

	fix_vring(r, d->gmem, &vring);
	/* What the device has not taken yet is taken after the start. */
	vring.base = (uint16_t)(r->avail_idx - r->in_flight);
	assert_int_equal(vl_device_vring_start(d->dev, index, &vring), 0);
}

uint16_t dev_stop(struct device *d, unsigned int index)
{
	uint16_t base = 0;

	vl_device_vring_stop(d->dev, index, &base);
	return base;
}

void dev_start_pair(struct device *d)
{
	dev_start(d, 0);
	dev_start(d, 1);
}

uint64_t dev_alloc(struct device *d, uint32_t size, int fill)
{
	uint64_t gpa = rd_mem_alloc(&d->mem, size, 8);

	assert_true(gpa != 0);
	memset(rd_mem_ptr(&d->mem, gpa), fill, size);
	return gpa;
}

void *dev_ptr(struct device *d, uint64_t gpa)
{
	return rd_mem_ptr(&d->mem, gpa);
}

void dev_kick(struct device *d, unsigned int index)
{
	rd_publish(&d->ring[index]);
	rd_kick_if_wanted(&d->ring[index]);
}

static void nap(void)
{
	const struct timespec t = { 0, 100000 };

	nanosleep(&t, NULL);
}

void dev_wait_used(struct device *d, unsigned int index, uint32_t n)
{
	uint64_t end = vl_now_ns() + 2 * VL_NS_PER_SEC;

	while (rd_used_count(&d->ring[index]) < n) {
		if (vl_now_ns() > end)
			fail_msg("ring %u: %u entries used, expected %u", index,
				 rd_used_count(&d->ring[index]), n);
		nap();
	}
}

uint64_t dev_sent_count(struct device *d)
{
	uint64_t n;

	pthread_mutex_lock(&d->lock);
	n = d->sent;
	pthread_mutex_unlock(&d->lock);
	return n;
}

void dev_wait_sent(struct device *d, uint64_t n)
{
	uint64_t end = vl_now_ns() + 2 * VL_NS_PER_SEC;
	uint64_t sent;

	do {
		sent = dev_sent_count(d);
		if (sent >= n)
			break;
		nap();
	} while (vl_now_ns() < end);
	assert_int_equal(sent, n);
}

void dev_inject(struct device *d, unsigned int port, uint32_t len,
		uint8_t first)
{
	struct dev_injected *in;
	uint32_t whole = d->hdr_len + len;
	uint8_t *data = calloc(1, whole);

	assert_non_null(data);
	for (uint32_t i = 0; i < len; i++)
		data[d->hdr_len + i] = (uint8_t)(first + i);
	pthread_mutex_lock(&d->lock);
	assert_true(d->in_count[port] < DEV_INJECT_MAX);
	in = &d->in[port]
		   [(d->in_first[port] + d->in_count[port]) % DEV_INJECT_MAX];
	*in = (struct dev_injected){ .len = whole, .data = data };
	d->in_count[port]++;
	pthread_mutex_unlock(&d->lock);
}

void dev_wake(struct device *d, unsigned int port)
{
	vl_null_wake(d->backend, port);
}

void dev_answer_sends(struct device *d, int result, uint64_t take_first)
{
	pthread_mutex_lock(&d->lock);
	d->send_result = result;
	d->take = take_first;
	pthread_mutex_unlock(&d->lock);
}

void dev_snapshot(struct device *d, struct vl_snapshot *s)
{
	memset(s, 0, sizeof(*s));
	vl_device_snapshot(d->dev, s);
}

void dev_tx_ok(struct device *d, unsigned int index, uint32_t len)
{
	uint64_t gpa = dev_alloc(d, d->hdr_len + len, 0);
	struct rd_seg seg = { gpa, d->hdr_len + len };
	uint64_t before;
	struct rd_done done;

	before = dev_sent_count(d);
	assert_int_equal(rd_used_count(&d->ring[index]), 0);
	assert_true(rd_add(&d->ring[index], &seg, 1, 0, RD_DIRECT, 0) >= 0);
	dev_kick(d, index);
	dev_wait_used(d, index, 1);
	dev_wait_sent(d, before + 1);
	assert_int_equal(rd_take(&d->ring[index], &done), 1);
	assert_int_equal(done.len, 0);
	assert_int_equal(d->log[before % DEV_LOG].len, d->hdr_len + len);
}

int dev_run_with_engines(const struct CMUnitTest *tests, size_t n)
{
	static enum vl_io_engine engines[] = { VL_IO_URING, VL_IO_SYNC };
	struct CMUnitTest *with = calloc(n, sizeof(*with));
	const char *why;
	int status = 0;

	if (!with)
		return 1;
	for (size_t e = 0; e < 2; e++) {
		if (vl_io_choose(engines[e], &why) < 0)
			continue;
		for (size_t i = 0; i < n; i++) {
			with[i] = tests[i];
			with[i].initial_state = &engines[e];
		}
		status |= _cmocka_run_group_tests(e ? "sync" : "uring", with, n,
						  NULL, NULL);
	}
	free(with);
	return status;
}
