/* SPDX-License-Identifier: BSD-3-Clause */
#include "zcopy_fixture.h"

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
#include "base/util.h"
#include "virtio/net_hdr.h"

#define WAYS       4u
#define CHARGE_MAX 8u

static struct zcopy_fixture *to_fixture(void *ctx)
{
	return vl_container_of((struct device *)ctx, struct zcopy_fixture, d);
}

static void fill(uint8_t *p, uint32_t hdr_len, uint32_t dest, uint32_t id,
		 uint32_t len)
{
	uint8_t *frame = p + hdr_len;

	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(id * 37 + i * 7 + (i >> 8));
	memset(p, 0, hdr_len + 14);
	frame[0] = 2;
	frame[5] = (uint8_t)dest;
	frame[12] = 0x88;
	frame[13] = 0xb5;
	memcpy(frame + 14, &id, 4);
}

/* Whether the packet is one of the driver's; which one. */
static bool check(const struct zcopy_fixture *f, const struct iovec *iov,
		  unsigned int n, struct zf_send *s)
{
	static uint8_t got[ZF_BUFFER], want[ZF_BUFFER]; /* under the lock */
	uint32_t len = (uint32_t)vl_iov_len(iov, n);

	if (len > ZF_BUFFER || vl_iov_read(iov, n, 0, got, len) != len)
		return false;
	s->dest = got[f->d.hdr_len + 5] % ZF_DESTS;
	s->len = len;
	memcpy(&s->id, got + f->d.hdr_len + 14, 4);
	fill(want, f->d.hdr_len, s->dest, s->id, len);
	return !memcmp(got, want, len);
}

/* How the send of @s by @way ends; takes it if it does well. */
static int answer(struct zcopy_fixture *f, unsigned int way,
		  const struct zf_send *s)
{
	if (f->fail_n) {
		f->fail_n--;
		return f->result;
	}
	if (f->charged[way] >= CHARGE_MAX)
		return -EAGAIN;
	f->charged[way] += f->stalled[s->dest];
	f->reordered += s->id < f->next_id[s->dest];
	f->next_id[s->dest] = s->id + 1;
	return (int)s->len;
}

static int send_way(void *ctx, unsigned int port, unsigned int way,
		    const struct iovec *iov, unsigned int n)
{
	struct zcopy_fixture *f = to_fixture(ctx);
	struct zf_send s = { 0 };
	int res;

	(void)port;
	pthread_mutex_lock(&f->d.lock);
	f->bad += !check(f, iov, n, &s);
	res = answer(f, way, &s);
	f->copy_sent[s.dest] += res > 0;
	pthread_mutex_unlock(&f->d.lock);
	return res;
}

static int send_zc(void *ctx, unsigned int port, unsigned int way,
		   const struct vl_frame *frame, bool *more)
{
	struct zcopy_fixture *f = to_fixture(ctx);
	struct zf_send *s;
	int res;

	pthread_mutex_lock(&f->d.lock);
	assert_true(f->n_pending < ZF_MAX && frame->n <= 36);
	s = &f->pending[f->n_pending];
	*s = (struct zf_send){ .tag = frame->tag, .n = frame->n };
	f->bad += !check(f, frame->iov, frame->n, s);
	memcpy(s->iov, frame->iov, frame->n * sizeof(s->iov[0]));
	res = answer(f, way, s);
	f->zc_sent[s->dest] += res > 0;
	s->failed = res < 0;
	/* A failed one is held by order of the test only. */
	s->release = !f->hold[s->dest];
	*more = true;
	f->n_pending++;
	if (s->release)
		vl_null_release(f->d.backend, port);
	pthread_mutex_unlock(&f->d.lock);
	return res;
}

static bool released(void *ctx, unsigned int port, uint64_t *tag, bool *copied)
{
	struct zcopy_fixture *f = to_fixture(ctx);
	uint32_t i = 0;
	bool found;

	(void)port;
	pthread_mutex_lock(&f->d.lock);
	while (i < f->n_pending && !f->pending[i].release)
		i++;
	found = i < f->n_pending;
	if (found) {
		struct zf_send *s = &f->pending[i], again;

		/* What the kernel would send now is what it was given. */
		if (!s->failed)
			f->bad += !check(f, s->iov, s->n, &again) ||
				  again.id != s->id;
		*tag = s->tag;
		*copied = f->copied;
		memmove(s, s + 1, (--f->n_pending - i) * sizeof(*s));
	}
	pthread_mutex_unlock(&f->d.lock);
	return found;
}

static bool writable(void *ctx, unsigned int port, unsigned int way)
{
	struct zcopy_fixture *f = to_fixture(ctx);
	bool is;

	(void)port;
	pthread_mutex_lock(&f->d.lock);
	is = f->charged[way] < CHARGE_MAX;
	pthread_mutex_unlock(&f->d.lock);
	return is;
}

void zf_init(struct zcopy_fixture *f, const struct dev_config *c,
	     enum vl_zerocopy mode)
{
	struct dev_config dc = *c;

	memset(f, 0, sizeof(*f));
	dc.features |= VL_FEATURE(VIRTIO_F_VERSION_1) |
		       VL_FEATURE(VIRTIO_RING_F_INDIRECT_DESC) |
		       VL_FEATURE(VIRTIO_RING_F_EVENT_IDX);
	dc.ways = c->ways ? WAYS : 1;
	dc.send_way = send_way;
	dc.writable = c->ways ? writable : NULL;
	dc.zc.zerocopy = mode;
	dc.zc.send_zc = send_zc;
	dc.zc.released = released;
	dev_init(&f->d, &dc);
	f->num = c->num;
	for (uint16_t i = 0; i < ZF_CHAINS; i++) {
		f->gpa[i] = dev_alloc(&f->d, ZF_BUFFER, 0);
		f->free_buf[f->n_buf++] = i;
	}
	dev_start(&f->d, ZF_TX);
}

void zf_free(struct zcopy_fixture *f)
{
	zf_release_all(f);
	dev_free(&f->d);
	assert_int_equal(f->bad, 0);
	assert_int_equal(f->n_pending, 0);
}

int zf_send(struct zcopy_fixture *f, uint32_t dest, uint32_t len,
	    const struct zf_shape *s)
{
	static const struct zf_shape one = { 1, RD_DIRECT };
	struct rd_seg seg[32];
	uint32_t id = f->ids, at = 0;
	uint16_t buf;

	s = s ? s : &one;
	if (!f->n_buf)
		return -1;
	assert_true(id < ZF_IDS && s->pieces <= 32 && len <= ZF_BUFFER);
	buf = f->free_buf[f->n_buf - 1];
	for (unsigned int i = 0; i < s->pieces; i++) {
		uint32_t part = i + 1 < s->pieces ? len / s->pieces : len - at;

		seg[i] = (struct rd_seg){ f->gpa[buf] + at, part };
		at += part;
	}
	fill(dev_ptr(&f->d, f->gpa[buf]), f->d.hdr_len, dest, id, len);
	if (rd_add(&f->d.ring[ZF_TX], seg, s->pieces, 0, s->layout, id) < 0)
		return -1;
	f->n_buf--;
	f->buf_of[id] = buf;
	f->ids++;
	return (int)id;
}

void zf_send_many(struct zcopy_fixture *f, uint32_t dest, uint32_t len,
		  uint32_t n)
{
	while (n--)
		assert_true(zf_send(f, dest, len, NULL) >= 0);
	dev_kick(&f->d, ZF_TX);
}

uint32_t zf_take(struct zcopy_fixture *f)
{
	struct rd_done done;
	uint32_t n = 0;

	while (rd_used_count(&f->d.ring[ZF_TX])) {
		uint16_t buf;

		assert_int_equal(rd_take(&f->d.ring[ZF_TX], &done), 1);
		assert_int_equal(done.len, 0);
		buf = f->buf_of[done.cookie];
		memset(dev_ptr(&f->d, f->gpa[buf]), 0xee, ZF_BUFFER);
		f->free_buf[f->n_buf++] = buf;
		f->back[f->n_back++] = done.cookie;
		n++;
	}
	return n;
}

void zf_nap_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

void zf_wait_back(struct zcopy_fixture *f, uint32_t n)
{
	uint64_t end = vl_now_ns() + 3 * VL_NS_PER_SEC;

	for (zf_take(f); f->n_back < n && vl_now_ns() < end; zf_take(f))
		zf_nap_ms(1);
	if (f->n_back < n)
		fail_msg("%u chains came back, expected %u", f->n_back, n);
}

static uint32_t n_pending(struct zcopy_fixture *f)
{
	uint32_t n;

	pthread_mutex_lock(&f->d.lock);
	n = f->n_pending;
	pthread_mutex_unlock(&f->d.lock);
	return n;
}

void zf_wait_pending(struct zcopy_fixture *f, uint32_t n)
{
	uint64_t end = vl_now_ns() + 3 * VL_NS_PER_SEC;

	while (n_pending(f) != n && vl_now_ns() < end)
		zf_nap_ms(1);
	assert_int_equal(n_pending(f), n);
}

void zf_release(struct zcopy_fixture *f, uint32_t nth)
{
	pthread_mutex_lock(&f->d.lock);
	assert_true(nth < f->n_pending);
	f->pending[nth].release = true;
	pthread_mutex_unlock(&f->d.lock);
	vl_null_release(f->d.backend, 0);
}

void zf_release_all(struct zcopy_fixture *f)
{
	pthread_mutex_lock(&f->d.lock);
	memset(f->hold, 0, sizeof(f->hold));
	memset(f->stalled, 0, sizeof(f->stalled));
	memset(f->charged, 0, sizeof(f->charged));
	for (uint32_t i = 0; i < f->n_pending; i++)
		f->pending[i].release = true;
	pthread_mutex_unlock(&f->d.lock);
	vl_null_release(f->d.backend, 0);
	for (unsigned int w = 0; w < f->d.backend->ways && w < WAYS; w++)
		if (f->d.backend->ways > 1)
			vl_null_wake_way(f->d.backend, 0, w);
}

const struct vl_tx_counters *zf_counters(struct zcopy_fixture *f)
{
	dev_snapshot(&f->d, &f->snap);
	return &f->snap.pair[0].tx;
}

const struct vl_zc_snapshot *zf_zerocopy(struct zcopy_fixture *f)
{
	dev_snapshot(&f->d, &f->snap);
	return &f->snap.pair[0].zc;
}

void zf_check_end(struct zcopy_fixture *f)
{
	uint64_t end = vl_now_ns() + 3 * VL_NS_PER_SEC;
	const struct vl_pair_snapshot *p = &f->snap.pair[0];

	do {
		zf_take(f);
		zf_nap_ms(1);
		dev_snapshot(&f->d, &f->snap);
	} while ((f->n_back < f->ids || p->held_descs || p->pool_bytes) &&
		 vl_now_ns() < end);
	assert_int_equal(f->n_back, f->ids);
	assert_int_equal(p->held_descs, 0);
	assert_int_equal(p->pool_bytes, 0);
	assert_int_equal(p->zc.packets, 0);
	assert_int_equal(p->zc.descs, 0);
	assert_int_equal(p->zc.oldest_ns, 0);
	for (unsigned int i = 0; i < p->lanes; i++)
		assert_int_equal(p->lane[i].pending, 0);
	pthread_mutex_lock(&f->d.lock);
	assert_int_equal(f->bad, 0);
	assert_int_equal(f->reordered, 0);
	pthread_mutex_unlock(&f->d.lock);
}
