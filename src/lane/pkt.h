/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet on its way out, as the lanes see it. Embedded in its owner's slot. */
#ifndef VL_LANE_PKT_H
#define VL_LANE_PKT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct vl_dest;

/* Sent by no lane, but by a probe. */
#define VL_PKT_BY_PROBE 255u

struct vl_pkt {
	/* Set by the owner. */
	const struct iovec *iov; /* virtio header and frame */
	uint32_t n_iov;
	uint32_t len; /* of the frame */
	uint32_t seq; /* its place among the packets of the queue */
	bool can_cut; /* waits for segmentation, see vl_lane_set_ops.cut */
	uint64_t tag; /* of the event that its write ends in */

	/* Of the lanes. */
	struct vl_pkt *next; /* in the FIFO of a side lane */
	struct vl_dest *dest;
	uint64_t since_ns; /* when it came to the FIFO */
	uint8_t lane;      /* or VL_PKT_BY_PROBE */
	bool sending;      /* handed to the kernel, not answered */
	bool parked;
};

#endif
