/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct vl_mem_region fix_region(const struct rd_mem *m)
{
	return (struct vl_mem_region){
		.gpa = m->gpa,
		.size = m->size,
		.uva = (uintptr_t)m->base,
		.fd = m->fd,
	};
}

void fix_vring(const struct rd_ring *ring, const struct vl_guest_mem *mem,
	       struct vl_vring *out)
{
	*out = (struct vl_vring){
		.num = ring->num,
		.base = ring->avail_idx,
		.desc = vl_guest_mem_uva(mem, (uintptr_t)ring->desc,
					 16ULL * ring->num),
		.avail = vl_guest_mem_uva(mem, (uintptr_t)ring->avail,
					  6 + 2ULL * ring->num),
		.used = vl_guest_mem_uva(mem, (uintptr_t)ring->used,
					 6 + 8ULL * ring->num),
		.kick_fd = ring->kick_fd,
		.call_fd = ring->call_fd,
		.err_fd = ring->err_fd,
		.event_idx = ring->event_idx,
		.indirect = ring->table_max > 0,
	};
	assert_non_null(out->desc);
	assert_non_null(out->avail);
	assert_non_null(out->used);
}

void fix_start(struct fixture *f, uint16_t base)
{
	struct vl_vring vring;

	fix_vring(&f->ring, f->mem, &vring);
	vring.base = base;
	assert_int_equal(vl_vq_start(&f->vq, "test", &vring, f->mem), 0);
}

void fix_init(struct fixture *f, const struct fix_config *c)
{
	struct vl_mem_region region[2];
	struct rd_ring_config rc = {
		.num = c->num,
		.table_max = c->no_indirect || c->num > 4096 ? 0 : 16,
		.start = c->start,
		.event_idx = c->event_idx,
	};

	memset(f, 0, sizeof(*f));
	assert_int_equal(rd_mem_init(&f->low, FIX_LOW, FIX_SPLIT - FIX_LOW), 0);
	assert_int_equal(rd_mem_init(&f->high, FIX_SPLIT, FIX_END - FIX_SPLIT),
			 0);
	region[0] = fix_region(&f->low);
	region[1] = fix_region(&f->high);
	assert_int_equal(vl_guest_mem_new(region, 2, &f->mem), 0);
	assert_int_equal(rd_ring_init(&f->ring, &f->low, &rc), 0);
	f->chain.iov = f->iov;
	f->chain.iov_cap = VL_CHAIN_IOV_MAX;
	fix_start(f, c->start);
}

void fix_check_balance(const struct vl_virtqueue *vq)
{
	assert_int_equal(vq->popped, vq->pushed + vq->unpopped + vq->in_flight);
}

void fix_free(struct fixture *f)
{
	fix_check_balance(&f->vq);
	assert_int_equal(f->vq.in_flight, 0);
	if (f->vq.running)
		vl_vq_stop(&f->vq);
	rd_ring_free(&f->ring);
	vl_guest_mem_put(f->mem);
	rd_mem_free(&f->low);
	rd_mem_free(&f->high);
}

void *fix_host(const struct fixture *f, uint64_t gpa)
{
	struct vl_mem_hint hint = { 0 };
	uint64_t len = 1;
	void *p = vl_guest_mem_gpa(f->mem, &hint, gpa, &len);

	assert_non_null(p);
	return p;
}
