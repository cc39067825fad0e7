/* SPDX-License-Identifier: BSD-3-Clause */
#include "lanes_fixture.h"

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

static struct lanes_fixture *to_fixture(void *ctx)
{
	return vl_container_of((struct device *)ctx, struct lanes_fixture, d);
}

static int send_way(void *ctx, unsigned int port, unsigned int way,
		    const struct iovec *iov, unsigned int n)
{
	struct lanes_fixture *f = to_fixture(ctx);
	static uint8_t packet[LF_BIG]; /* under the lock */
	size_t len = vl_iov_len(iov, n);
	int res = (int)len;
	uint32_t dest;

	(void)port;
	pthread_mutex_lock(&f->d.lock);
	if (f->charged[way] >= LF_CHARGE_MAX) {
		res = -EAGAIN;
	} else if (vl_iov_read(iov, n, 0, packet, LF_BIG) == len) {
		dest = packet[f->hdr_len + 5] % LF_DESTS;
		f->charged[way] += f->stalled[dest];
		f->bad += !f->check(packet, (uint32_t)len, dest);
		f->taken[dest]++;
	} else {
		f->bad++;
	}
	pthread_mutex_unlock(&f->d.lock);
	return res;
}

static bool writable(void *ctx, unsigned int port, unsigned int way)
{
	struct lanes_fixture *f = to_fixture(ctx);
	bool is;

	(void)port;
	pthread_mutex_lock(&f->d.lock);
	is = f->charged[way] < LF_CHARGE_MAX;
	pthread_mutex_unlock(&f->d.lock);
	return is;
}

void lf_init(struct lanes_fixture *f, const struct dev_config *c,
	     unsigned int stalled,
	     bool (*check)(const uint8_t *p, uint32_t len, uint32_t dest))
{
	struct dev_config dc = *c;

	memset(f, 0, sizeof(*f));
	dc.ways = LF_WAYS;
	dc.send_way = send_way;
	dc.writable = writable;
	dev_init(&f->d, &dc);
	f->num = c->num;
	f->hdr_len = f->d.hdr_len;
	f->check = check;
	for (unsigned int i = 1; i <= stalled; i++)
		f->stalled[i] = true;
	for (uint16_t i = 0; i < LF_RING_MAX; i++) {
		f->small_gpa[i] = dev_alloc(&f->d, LF_SMALL, 0);
		f->small_free[f->n_small++] = i;
	}
	for (uint16_t i = 0; i < LF_BIGS; i++) {
		f->big_gpa[i] = dev_alloc(&f->d, LF_BIG, 0);
		f->big_free[f->n_big++] = i;
	}
	dev_start(&f->d, LF_TX);
}

/* Guest address of the buffer for the next packet of @len bytes, 0: none. */
static uint64_t next_buffer(const struct lanes_fixture *f, uint32_t len)
{
	if (len <= LF_SMALL)
		return f->n_small ? f->small_gpa[f->small_free[f->n_small - 1]]
				  : 0;
	return f->n_big ? f->big_gpa[f->big_free[f->n_big - 1]] : 0;
}

uint8_t *lf_buffer(struct lanes_fixture *f, uint32_t len)
{
	uint64_t gpa = next_buffer(f, len);

	assert_true(len <= LF_BIG);
	return gpa ? dev_ptr(&f->d, gpa) : NULL;
}

bool lf_add(struct lanes_fixture *f, uint32_t len, const struct lf_shape *s)
{
	struct rd_seg seg[LF_PIECES];
	uint64_t gpa = next_buffer(f, len);
	unsigned int n = 0;
	int head;

	for (uint32_t at = 0; at < len; n++) {
		uint32_t part = n == 0 && s->first ? s->first : s->piece;

		assert_true(n < LF_PIECES);
		part = vl_min_u32(part, len - at);
		seg[n] = (struct rd_seg){ gpa + at, part };
		at += part;
	}
	head = gpa ? rd_add(&f->d.ring[LF_TX], seg, n, 0, s->layout, 0)
		   : -ENOSPC;
	if (head < 0) {
		assert_int_equal(head, -ENOSPC);
		return false;
	}
	if (len > LF_SMALL)
		f->in_ring[head] =
			(uint16_t)(LF_RING_MAX + f->big_free[--f->n_big]);
	else
		f->in_ring[head] = f->small_free[--f->n_small];
	return true;
}

uint32_t lf_take(struct lanes_fixture *f)
{
	struct rd_done done;
	uint32_t n = 0;

	for (; rd_used_count(&f->d.ring[LF_TX]); n++) {
		uint16_t buf;

		assert_int_equal(rd_take(&f->d.ring[LF_TX], &done), 1);
		assert_int_equal(done.len, 0);
		buf = f->in_ring[done.head];
		if (buf >= LF_RING_MAX)
			f->big_free[f->n_big++] = (uint16_t)(buf - LF_RING_MAX);
		else
			f->small_free[f->n_small++] = buf;
	}
	return n;
}

void lf_spoil(struct lanes_fixture *f)
{
	for (uint32_t i = 0; i < f->n_small; i++)
		memset(dev_ptr(&f->d, f->small_gpa[f->small_free[i]]), 0xee,
		       LF_SMALL);
	for (uint32_t i = 0; i < f->n_big; i++)
		memset(dev_ptr(&f->d, f->big_gpa[f->big_free[i]]), 0xee,
		       LF_BIG);
}

void lf_release(struct lanes_fixture *f, bool keep_stalled)
{
	pthread_mutex_lock(&f->d.lock);
	memset(f->charged, 0, sizeof(f->charged));
	if (!keep_stalled)
		memset(f->stalled, 0, sizeof(f->stalled));
	pthread_mutex_unlock(&f->d.lock);
	for (unsigned int w = 0; w < LF_WAYS; w++)
		vl_null_wake_way(f->d.backend, 0, w);
}

void lf_nap_ms(long ms)
{
	const struct timespec t = { 0, ms * 1000000 };

	nanosleep(&t, NULL);
}

void lf_check_bounds(struct lanes_fixture *f)
{
	const struct vl_pair_snapshot *p = &f->snap.pair[0];

	dev_snapshot(&f->d, &f->snap);
	assert_int_equal(p->held_max, f->num / 2);
	assert_true(p->held_descs <= f->num / 2);
	assert_true(p->pool_bytes <= p->pool_max);
	assert_int_equal(p->pool_max, 1u << 20);
}

uint64_t lf_dropped(const struct lanes_fixture *f)
{
	const struct vl_tx_counters *n = &f->snap.pair[0].tx;

	return n->drop_full + n->drop_late + n->drop_limit + n->drop_pool;
}

uint32_t lf_quiesce(struct lanes_fixture *f)
{
	uint64_t end = vl_now_ns() + 5 * VL_NS_PER_SEC;
	uint32_t n = 0, descs;

	do {
		n += lf_take(f);
		lf_check_bounds(f);
		descs = f->num - f->d.ring[LF_TX].n_free;
	} while (descs != f->snap.pair[0].held_descs && vl_now_ns() < end);
	assert_int_equal(descs, f->snap.pair[0].held_descs);
	return n;
}

uint64_t lf_settle(struct lanes_fixture *f)
{
	const struct vl_pair_snapshot *p = &f->snap.pair[0];
	uint64_t taken = 0, end = vl_now_ns() + 5 * VL_NS_PER_SEC;

	do {
		lf_nap_ms(1);
		lf_check_bounds(f);
	} while ((p->pool_bytes || p->held_descs) && vl_now_ns() < end);
	assert_int_equal(p->pool_bytes, 0);
	assert_int_equal(p->held_descs, 0);
	/* Again: counters were read before these. */
	lf_check_bounds(f);
	pthread_mutex_lock(&f->d.lock);
	assert_int_equal(f->bad, 0);
	for (unsigned int i = 0; i < LF_DESTS; i++)
		taken += f->taken[i];
	pthread_mutex_unlock(&f->d.lock);
	assert_int_equal(p->tx.packets, taken);
	return taken;
}

void lf_stop_in_time(struct lanes_fixture *f, uint32_t flight)
{
	uint64_t start = vl_now_ns();

	(void)dev_stop(&f->d, LF_TX);
	assert_true(vl_now_ns() - start < 50 * LF_MS);
	assert_int_equal(lf_take(f), flight);
	lf_check_bounds(f);
	assert_int_equal(f->snap.pair[0].held_descs, 0);
}

void lf_wait_express(struct lanes_fixture *f)
{
	uint64_t end = vl_now_ns() + 3 * VL_NS_PER_SEC;
	uint32_t lanes;

	do {
		lf_nap_ms(20);
		dev_snapshot(&f->d, &f->snap);
		lanes = 0;
		for (unsigned int i = 1; i < LF_WAYS; i++)
			lanes += strcmp(f->snap.pair[0].lane[i].state,
					"idle") != 0;
	} while (lanes && vl_now_ns() < end);
	assert_int_equal(lanes, 0);
}
