/* SPDX-License-Identifier: BSD-3-Clause */
/* A driver's ring and the device's virtqueue on the same memory. */
#ifndef TESTS_RING_FIXTURE_H
#define TESTS_RING_FIXTURE_H

#include "ring_driver.h"
#include "virtio/virtqueue.h"

/* Two regions with adjacent guest addresses, and a hole behind them. */
#define FIX_LOW   0x10000ULL
#define FIX_SPLIT 0x400000ULL
#define FIX_END   0x500000ULL

struct fixture {
	struct rd_mem low;  /* [FIX_LOW, FIX_SPLIT): rings, tables, buffers */
	struct rd_mem high; /* [FIX_SPLIT, FIX_END) */
	struct vl_guest_mem *mem;
	struct rd_ring ring;
	struct vl_virtqueue vq;
	struct vl_chain chain;
	struct iovec iov[VL_CHAIN_IOV_MAX];
};

/* What differs between fixtures; indirect tables have 16 entries. */
struct fix_config {
	uint32_t num;
	uint16_t start;
	bool event_idx;
	bool no_indirect; /* the feature was not negotiated */
};

/* Makes everything and starts the queue; fails the test on any error. */
void fix_init(struct fixture *f, const struct fix_config *c);

/* Stops the queue when it runs, frees everything, and checks that popped is
 * pushed + unpopped (nothing in flight). */
void fix_free(struct fixture *f);

/* Describes @ring for the device, over the device's own mapping. */
void fix_vring(const struct rd_ring *ring, const struct vl_guest_mem *mem,
	       struct vl_vring *out);

/* Starts the queue of @f at @base (again). */
void fix_start(struct fixture *f, uint16_t base);

/* The regions of @m as the front-end would describe them. */
struct vl_mem_region fix_region(const struct rd_mem *m);

/* The host address in the device's mapping. */
void *fix_host(const struct fixture *f, uint64_t gpa);

/* popped == pushed + unpopped + in flight. */
void fix_check_balance(const struct vl_virtqueue *vq);

#endif
