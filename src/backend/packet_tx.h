/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of frames to send, in memory that is shared with the kernel
 * (PACKET_TX_RING). Worker thread of the port, except where said.
 */
#ifndef VL_BACKEND_PACKET_TX_H
#define VL_BACKEND_PACKET_TX_H

#include "lane/backend.h"

struct vl_packet_tx;

/*
 * Makes a ring for packet socket @fd, which stays the caller's, is not bound yet,
 * and is used for nothing else. Returns 0 or -errno. Any thread.
 */
int vl_packet_tx_new(int fd, struct vl_packet_tx **out);
void vl_packet_tx_free(struct vl_packet_tx *tx);

/* Sends a frame by way @way without the ring. */
typedef void vl_packet_send_fn(void *ctx, unsigned int way, struct vl_io *io,
			       const struct vl_frame *frame);

/* The socket is @file; @tag is for its operations; what has to wait for frames
 * in the ring is given to @send then. */
void vl_packet_tx_start(struct vl_packet_tx *tx, int file, uint64_t tag,
			vl_packet_send_fn *send, void *ctx);

/*
 * Whether it took @f, a frame with a virtio header of @hdr_len bytes that is to
 * leave by way @way: into the ring, or to be sent behind what is in the ring.
 * Else the caller sends it. @frame_max: frames of more bytes are for the kernel
 * to judge, which a ring does not.
 */
bool vl_packet_tx_take(struct vl_packet_tx *tx, struct vl_io *io,
		       unsigned int way, const struct vl_frame *f,
		       uint32_t hdr_len, uint32_t frame_max);

/* As vl_backend_ops.flush. */
void vl_packet_tx_flush(struct vl_packet_tx *tx, struct vl_io *io);

/* The operation ended with @res: gives @emit the events of frames that were in
 * the ring. */
void vl_packet_tx_complete(struct vl_packet_tx *tx, struct vl_io *io, int res,
			   vl_frame_event_fn *emit, void *ctx);

#endif
