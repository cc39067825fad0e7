/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One virtqueue seen from the device (virtio 1.2, section 2.6 and 2.7).
 *
 *   pop      take the next available chain: copied once, checked, translated
 *   unpop    put the last popped chains back, as if never seen
 *   push     hand a chain back; visible to the driver after publish
 *   publish  one release store of used->idx for everything pushed
 *   notify   one call to the driver, if it wants one
 *
 * Each popped chain ends in exactly one push or unpop: popped == pushed +
 * unpopped + in flight always holds.
 *
 * A virtqueue belongs to one thread while it runs. What the driver controls
 * can break a queue (sticky, reported on the err fd), never the process.
 */
#ifndef VL_VIRTIO_VIRTQUEUE_H
#define VL_VIRTIO_VIRTQUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/log.h"
#include "virtio/guest_mem.h"

#define VL_VQ_SIZE_MAX   32768u
/* Buffers in one chain, as QEMU and the Linux host kernel also limit them. */
#define VL_CHAIN_IOV_MAX 1024u

struct vring_desc;
struct vring_avail;
struct vring_used;

/* What a queue needs to run; pointers are host addresses, wholly mapped. */
struct vl_vring {
	uint32_t num;  /* a power of two, 2 to VL_VQ_SIZE_MAX */
	uint16_t base; /* next available index, see vl_vq_start() */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	int kick_fd; /* -1: none (the driver is polled for) */
	int call_fd; /* -1: none */
	int err_fd;  /* -1: none */
	bool event_idx;
	bool indirect;
};

/* A popped chain. The caller sets iov and iov_cap, vl_vq_pop() the rest. */
struct vl_chain {
	struct iovec *iov; /* device-readable first, then writable */
	uint32_t iov_cap;
	uint32_t n_readable; /* entries */
	uint32_t n_writable;
	uint64_t len_readable; /* bytes; below 4 GiB */
	uint64_t len_writable;
	uint32_t descs; /* descriptors of the ring it occupies */
	uint16_t head;  /* what push wants */
};

/* Why a chain or a queue was refused; each has a counter. */
enum vl_vq_error {
	VL_VQ_OK,
	VL_VQ_BAD_AVAIL_IDX, /* more than num chains claimed: queue broken */
	VL_VQ_BAD_HEAD,      /* head index past the table: queue broken */
	VL_VQ_BAD_NEXT,      /* next past the table */
	VL_VQ_LOOP,          /* more descriptors than the table has */
	VL_VQ_BAD_ADDRESS,   /* a buffer that is not mapped */
	VL_VQ_BAD_INDIRECT,  /* length, nesting, NEXT, not negotiated */
	VL_VQ_BAD_ORDER,     /* readable after writable */
	VL_VQ_TOO_LONG,      /* more than VL_CHAIN_IOV_MAX buffers, 4 GiB */
	VL_VQ_MEM_LOST,      /* memory taken away under us: queue broken */
	VL_VQ_ERROR_COUNT,
};

/* A short phrase for logs; "unknown" for a value out of range. */
const char *vl_vq_error_name(enum vl_vq_error e);

struct vl_virtqueue {
	/* Constant while running. */
	struct vl_vring ring;
	struct vl_guest_mem *mem;
	char name[16]; /* "tx0", for logs */

	/* Owning thread only. */
	uint16_t last_avail;  /* next entry to pop */
	uint16_t avail_cache; /* avail->idx as last seen */
	uint16_t used_idx;    /* where the next push goes */
	uint16_t published;   /* used->idx as the driver sees it */
	uint16_t signalled;   /* used->idx at the last notification check */
	bool signalled_valid; /* false after (re)start: always notify once */
	bool pushed_since_start;
	bool notify_enabled;
	uint32_t in_flight; /* popped, neither pushed nor unpopped */
	struct vl_mem_hint hint;
	uint32_t losses_seen; /* vl_guest_mem_losses() at start */
	struct vl_log_limit log_limit;

	/* Read by others. */
	bool running;
	bool broken;
	uint64_t popped, pushed, unpopped;
	uint64_t notifications_sent, notifications_suppressed;
	uint64_t errors[VL_VQ_ERROR_COUNT];
};

/*
 * Starts @vq on @ring with a reference to @mem. Takes used->idx from the ring
 * (a restarted driver may have set it), and goes on there in the available ring
 * too, whatever @ring->base is. Notifications from the driver are
 * wanted from the start. @name is copied. -EINVAL for a bad size or pointer.
 */
int vl_vq_start(struct vl_virtqueue *vq, const char *name,
		const struct vl_vring *ring, struct vl_guest_mem *mem);

/*
 * Stops it: publishes what was pushed, notifies if wanted, drops the memory.
 * No chain may be in flight. Returns the next available index, what
 * GET_VRING_BASE answers.
 */
uint16_t vl_vq_stop(struct vl_virtqueue *vq);

/* Chains the driver has made available and nobody popped. Reads avail->idx;
 * 0 on a broken queue. */
uint32_t vl_vq_available(struct vl_virtqueue *vq);

/*
 * Takes the next chain. Returns
 *   1          chain is valid: at least one descriptor, all buffers mapped,
 *              empty ones left out, readable before writable
 *   0          nothing available, or the queue is broken
 *   -ENOBUFS   more buffers than c->iov_cap; not popped, come with more room
 *              (VL_CHAIN_IOV_MAX always suffices)
 *   -EBADMSG   malformed, counted in errors[]; popped: c->head must be pushed
 *              with length 0
 */
int vl_vq_pop(struct vl_virtqueue *vq, struct vl_chain *c);

/* Puts the last @n popped chains back. None of them may have been pushed. */
void vl_vq_unpop(struct vl_virtqueue *vq, uint32_t n);

/*
 * Hands back chain @head, into whose writable part @len bytes were written.
 * The driver sees it after vl_vq_publish().
 */
void vl_vq_push(struct vl_virtqueue *vq, uint16_t head, uint32_t len);

/* Makes everything pushed visible to the driver, all at once. */
void vl_vq_publish(struct vl_virtqueue *vq);

/*
 * After a publish: tells the driver, unless it asked not to be told
 * (event index or VRING_AVAIL_F_NO_INTERRUPT). At most one write(2).
 */
void vl_vq_notify(struct vl_virtqueue *vq);

/*
 * Asks the driver to kick from now on, then looks again (the order matters:
 * virtio 1.2, 2.7.13.4.1). Returns true when chains came in meanwhile; then
 * notifications are off again and the caller goes on working.
 */
bool vl_vq_enable_kick(struct vl_virtqueue *vq);

/* Tells the driver that kicks are not needed now. */
void vl_vq_disable_kick(struct vl_virtqueue *vq);

/* Marks the queue broken for @why: counted, logged, signalled on the err fd.
 * It pops nothing from then on. */
void vl_vq_break(struct vl_virtqueue *vq, enum vl_vq_error why);

#endif
