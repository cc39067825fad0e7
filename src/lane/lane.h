/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane: one independent way out, with its own send-buffer accounting in the
 * kernel. The first way of a port, the express lane of a queue pair, is also
 * the way in.
 *
 * Worker thread of the queue pair only, except where said.
 */
#ifndef VL_LANE_LANE_H
#define VL_LANE_LANE_H

#include "lane/backend.h"

struct vl_lane {
	struct vl_backend *backend;
	unsigned int port;
	unsigned int way; /* of the port's; 0: the one that also receives */
	struct vl_io *io;
	uint64_t tag_in, tag_out; /* of readiness events */

	bool active;  /* attached to the host network */
	bool full;    /* refused a packet; waits for tag_out */
	bool empty;   /* had nothing to read; waits for tag_in */
	bool down;    /* the host interface is known to be down */
	bool gone;    /* the host interface was deleted */
	bool limited; /* can be full */
	/* A packet was refused although the backend said it never would:
	 * sends are linked from then on, so that order holds. */
	bool link_sends;
	/* What the kernel takes for sure: sends need no link meanwhile. */
	uint64_t headroom;
};

/* Names the way out that @lane is; its tags are set. */
void vl_lane_bind(struct vl_lane *lane, struct vl_backend *backend,
		  unsigned int port, unsigned int way, struct vl_io *io);
/* Waits for nothing any more. */
void vl_lane_release(struct vl_lane *lane);

/*
 * Attaches the lane to the host network or detaches it; a detached one gets
 * no frames and what is sent through it is dropped as VL_IO_GONE. Returns 0
 * or -errno.
 */
int vl_lane_set_active(struct vl_lane *lane, bool active);

/* Whether a send may be refused for want of room: such sends are linked. */
static inline bool vl_lane_can_refuse(const struct vl_lane *lane)
{
	return lane->limited || lane->link_sends;
}

/*
 * A batch of at least @packets begins: where links would cost more, finds out
 * whether the lane has room for it and needs none. Nothing may be in flight.
 */
void vl_lane_begin(struct vl_lane *lane, unsigned int packets);

/* Queues one frame with its virtio header, which may be sent from where it lies
 * if @zerocopy; the caller checked vl_io_room(). */
void vl_lane_send(struct vl_lane *lane, const struct iovec *iov, unsigned int n,
		  bool zerocopy, uint64_t tag);

/* Submits what was queued on it and on the other lanes of its port. */
void vl_lane_submit(struct vl_lane *lane);

/* Queues the read of one frame; see vl_io_readv() for what may happen behind a
 * read that finds nothing. */
void vl_lane_recv(struct vl_lane *lane, const struct iovec *iov, unsigned int n,
		  uint64_t tag);

/* May this lane have packets to read? */
static inline bool vl_lane_can_recv(const struct vl_lane *lane)
{
	return lane->active && !lane->empty && !lane->gone;
}

/* A send found the lane full, a read found it empty: asks for readiness. */
void vl_lane_set_full(struct vl_lane *lane);
void vl_lane_set_empty(struct vl_lane *lane);

/* No packet to read is wanted any more: the readiness event is cancelled. */
void vl_lane_forget_recv(struct vl_lane *lane);

/*
 * The link of the host network went down or came up. While it is down, sends
 * end as VL_IO_DOWN without being tried: a tap that is full and down says only
 * that it is full, and is never ready again before it is up.
 */
void vl_lane_set_down(struct vl_lane *lane, bool down);

/* The readiness event tag_in came. */
void vl_lane_readable(struct vl_lane *lane);

#endif
