/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that are free sit on a stack, so that after a little traffic
 * chains jump all over the table. Each head owns one indirect table of
 * table_max entries; a chain uses at most one table. What the device must not
 * change (chain links, lengths) is kept in private arrays as well, so that a
 * device that does change it is noticed by the tests and cannot confuse the
 * driver.
 */
#include "ring_driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/barrier.h"

int rd_mem_init(struct rd_mem *m, uint64_t gpa, uint64_t size)
{
	*m = (struct rd_mem){ .fd = -1, .gpa = gpa, .size = size };
	m->fd = memfd_create("guest", MFD_CLOEXEC);
	if (m->fd < 0)
		return -errno;
	if (ftruncate(m->fd, (off_t)size) == 0)
		m->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			       m->fd, 0);
	if (!m->base || m->base == MAP_FAILED) {
		int err = errno;

		close(m->fd);
		m->base = NULL;
		m->fd = -1;
		return -err;
	}
	/* Address 0 marks a failed allocation. */
	m->used = gpa ? 0 : 64;
	return 0;
}

void rd_mem_free(struct rd_mem *m)
{
	if (m->base)
		munmap(m->base, m->size);
	if (m->fd >= 0)
		close(m->fd);
	*m = (struct rd_mem){ .fd = -1 };
}

uint64_t rd_mem_alloc(struct rd_mem *m, uint64_t size, uint64_t align)
{
	uint64_t at = (m->used + align - 1) & ~(align - 1);

	if (at > m->size || size > m->size - at)
		return 0;
	m->used = at + size;
	return m->gpa + at;
}

void *rd_mem_ptr(const struct rd_mem *m, uint64_t gpa)
{
	return m->base + (gpa - m->gpa);
}

static uint16_t *used_event(const struct rd_ring *r)
{
	return &r->avail->ring[r->num];
}

static uint16_t *avail_event(const struct rd_ring *r)
{
	void *p = &r->used->ring[r->num];

	return p;
}

static int layout_init(struct rd_ring *r, struct rd_mem *mem)
{
	/* Flags, index, ring and the event index behind it. */
	r->desc_gpa = rd_mem_alloc(mem, 16ULL * r->num, 16);
	r->avail_gpa = rd_mem_alloc(mem, 6 + 2ULL * r->num, 2);
	r->used_gpa = rd_mem_alloc(mem, 6 + 8ULL * r->num, 4);
	if (r->table_max)
		r->table_gpa =
			rd_mem_alloc(mem, 16ULL * r->table_max * r->num, 16);
	if (!r->desc_gpa || !r->avail_gpa || !r->used_gpa ||
	    (r->table_max && !r->table_gpa))
		return -ENOMEM;
	r->desc = rd_mem_ptr(mem, r->desc_gpa);
	r->avail = rd_mem_ptr(mem, r->avail_gpa);
	r->used = rd_mem_ptr(mem, r->used_gpa);
	return 0;
}

int rd_ring_init(struct rd_ring *r, struct rd_mem *mem,
		 const struct rd_ring_config *c)
{
	int ret;

	*r = (struct rd_ring){ .mem = mem,
			       .num = c->num,
			       .table_max = c->table_max,
			       .event_idx = c->event_idx,
			       .kick_fd = -1,
			       .call_fd = -1,
			       .err_fd = -1 };
	ret = layout_init(r, mem);
	if (ret)
		return ret;
	r->free = calloc(r->num, sizeof(*r->free));
	r->next = calloc(r->num, sizeof(*r->next));
	r->chain = calloc(r->num, sizeof(*r->chain));
	r->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->call_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->err_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!r->free || !r->next || !r->chain || r->kick_fd < 0 ||
	    r->call_fd < 0 || r->err_fd < 0) {
		rd_ring_free(r);
		return -ENOMEM;
	}
	rd_ring_reset(r, c->start);
	return 0;
}

void rd_ring_free(struct rd_ring *r)
{
	free(r->free);
	free(r->next);
	free(r->chain);
	if (r->kick_fd >= 0)
		close(r->kick_fd);
	if (r->call_fd >= 0)
		close(r->call_fd);
	if (r->err_fd >= 0)
		close(r->err_fd);
	*r = (struct rd_ring){ .kick_fd = -1, .call_fd = -1, .err_fd = -1 };
}

void rd_ring_reset(struct rd_ring *r, uint16_t start)
{
	memset(r->desc, 0, 16UL * r->num);
	memset(r->avail, 0, 6 + 2UL * r->num);
	memset(r->used, 0, 6 + 8UL * r->num);
	memset(r->chain, 0, r->num * sizeof(*r->chain));
	for (uint32_t i = 0; i < r->num; i++)
		r->free[i] = (uint16_t)(r->num - 1 - i);
	r->n_free = r->num;
	r->in_flight = 0;
	r->avail_idx = start;
	r->kicked_idx = start;
	r->last_used = start;
	vl_write_once(&r->avail->idx, start);
	vl_write_once(&r->used->idx, start);
	vl_write_once(used_event(r), start);
	vl_write_once(avail_event(r), start);
	rd_calls(r);
	rd_errors(r);
}

void rd_desc(struct rd_ring *r, uint16_t i, struct rd_seg seg, uint16_t flags,
	     uint16_t next)
{
	r->desc[i] = (struct vring_desc){
		.addr = seg.gpa,
		.len = seg.len,
		.flags = flags,
		.next = next,
	};
}

void rd_avail(struct rd_ring *r, uint16_t head)
{
	vl_write_once(&r->avail->ring[r->avail_idx & (r->num - 1)], head);
	r->avail_idx++;
}

static uint16_t seg_flags(unsigned int i, unsigned int n_out, bool last)
{
	return (uint16_t)((i >= n_out ? VRING_DESC_F_WRITE : 0) |
			  (last ? 0 : VRING_DESC_F_NEXT));
}

/* Puts the segments from @first on into the table that belongs to @head. */
static struct rd_seg fill_table(struct rd_ring *r, uint16_t head,
				const struct rd_seg *seg, unsigned int n_out,
				unsigned int n)
{
	uint64_t gpa = r->table_gpa + 16ULL * r->table_max * head;
	struct vring_desc *t = rd_mem_ptr(r->mem, gpa);

	for (unsigned int i = 0; i < n; i++)
		t[i] = (struct vring_desc){
			.addr = seg[i].gpa,
			.len = seg[i].len,
			.flags = seg_flags(i, n_out, i + 1 == n),
			.next = (uint16_t)(i + 1 == n ? 0 : i + 1),
		};
	return (struct rd_seg){ gpa, 16 * n };
}

int rd_add(struct rd_ring *r, const struct rd_seg *seg, unsigned int n_out,
	   unsigned int n_in, enum rd_layout layout, uint32_t cookie)
{
	unsigned int n = n_out + n_in;
	unsigned int direct = layout == RD_DIRECT  ? n
			      : layout == RD_MIXED ? n / 2
						   : 0;
	unsigned int need = direct + (direct < n ? 1 : 0);
	uint16_t head, at;

	if (!n || need > r->num || n - direct > r->table_max * (direct < n))
		return -E2BIG;
	if (need > r->n_free)
		return -ENOSPC;
	head = r->free[--r->n_free];
	at = head;
	for (unsigned int i = 0; i < need; i++) {
		bool last = i + 1 == need;
		uint16_t next = last ? 0 : r->free[--r->n_free];

		if (i < direct) {
			rd_desc(r, at, seg[i], seg_flags(i, n_out, last), next);
		} else {
			rd_desc(r, at,
				fill_table(r, head, seg + i,
					   n_out > i ? n_out - i : 0, n - i),
				VRING_DESC_F_INDIRECT, 0);
		}
		r->next[at] = next;
		at = next;
	}
	r->chain[head] = (struct rd_chain){ cookie, (uint16_t)need };
	r->in_flight++;
	rd_avail(r, head);
	return head;
}

void rd_publish(struct rd_ring *r)
{
	/* Pairs with the device's acquire load of avail->idx. */
	vl_store_release(&r->avail->idx, r->avail_idx);
}

bool rd_want_kick(struct rd_ring *r)
{
	uint16_t old = r->kicked_idx;

	/* The index must be visible before we look whether the device sleeps;
	 * pairs with the fence of its enable-then-look-again. */
	vl_full_fence();
	r->kicked_idx = r->avail_idx;
	if (r->event_idx)
		return vring_need_event(vl_read_once(avail_event(r)),
					r->avail_idx, old);
	return !(vl_read_once(&r->used->flags) & VRING_USED_F_NO_NOTIFY);
}

void rd_kick(struct rd_ring *r)
{
	uint64_t one = 1;

	r->kicks++;
	/* A full counter already says what we want to say. */
	if (write(r->kick_fd, &one, sizeof(one)) < 0)
		return;
}

void rd_kick_if_wanted(struct rd_ring *r)
{
	if (rd_want_kick(r))
		rd_kick(r);
	else
		r->kicks_saved++;
}

uint32_t rd_used_count(const struct rd_ring *r)
{
	/* Pairs with the device's release store of used->idx. */
	return (uint16_t)(vl_load_acquire(&r->used->idx) - r->last_used);
}

int rd_take(struct rd_ring *r, struct rd_done *done)
{
	const struct vring_used_elem *e;
	struct rd_chain *c;
	uint32_t id;
	uint16_t at;

	if (!rd_used_count(r))
		return 0;
	e = &r->used->ring[r->last_used++ & (r->num - 1)];
	id = vl_read_once(&e->id);
	done->len = vl_read_once(&e->len);
	if (id >= r->num || !r->chain[id].n_desc) {
		done->head = (uint16_t)id;
		r->bad_used++;
		return -EINVAL;
	}
	c = &r->chain[id];
	done->head = (uint16_t)id;
	done->cookie = c->cookie;
	at = done->head;
	for (uint16_t n = c->n_desc; n; n--) {
		uint16_t next = r->next[at];

		r->free[r->n_free++] = at;
		at = next;
	}
	c->n_desc = 0;
	r->in_flight--;
	return 1;
}

bool rd_enable_call(struct rd_ring *r, uint16_t after)
{
	uint16_t want = after ? after : 1;

	if (r->event_idx)
		vl_write_once(used_event(r),
			      (uint16_t)(r->last_used + want - 1));
	else
		vl_write_once(&r->avail->flags, 0);
	/* Pairs with the device's fence between publish and notify. */
	vl_full_fence();
	return rd_used_count(r) >= want;
}

void rd_disable_call(struct rd_ring *r)
{
	if (r->event_idx)
		/* As far away as an index can be. */
		vl_write_once(used_event(r), (uint16_t)(r->last_used - 1));
	else
		vl_write_once(&r->avail->flags, VRING_AVAIL_F_NO_INTERRUPT);
}

static uint64_t drain(int fd)
{
	uint64_t n;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

uint64_t rd_calls(struct rd_ring *r)
{
	return drain(r->call_fd);
}

uint64_t rd_errors(struct rd_ring *r)
{
	return drain(r->err_fd);
}

uint16_t rd_avail_event(const struct rd_ring *r)
{
	return vl_read_once(avail_event(r));
}

uint16_t rd_used_event(const struct rd_ring *r)
{
	return vl_read_once(used_event(r));
}

void rd_set_used_event(struct rd_ring *r, uint16_t idx)
{
	vl_write_once(used_event(r), idx);
}
