/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading frames from a packet socket as a driver can take them. Worker thread
 * of the port, except where said.
 */
#ifndef VL_BACKEND_PACKET_RX_H
#define VL_BACKEND_PACKET_RX_H

#include "lane/backend.h"

struct vl_packet_rx;

/* NULL: no memory. Any thread. */
struct vl_packet_rx *vl_packet_rx_new(void);
void vl_packet_rx_free(struct vl_packet_rx *rx);

/*
 * What is to be delivered from now on, and how long the virtio header is that
 * the kernel puts in front: that of @o, or shorter. Any thread; the header
 * changes only while nothing is read.
 */
void vl_packet_rx_set_offload(struct vl_packet_rx *rx,
			      const struct vl_offload *o,
			      uint32_t kernel_hdr_len);

/* Reads are done on @file, with tags from @tag on. */
void vl_packet_rx_start(struct vl_packet_rx *rx, int file, uint64_t tag);

/* As vl_backend_ops.recv and complete. */
void vl_packet_rx_recv(struct vl_packet_rx *rx, struct vl_io *io,
		       const struct vl_frame *frame);
void vl_packet_rx_complete(struct vl_packet_rx *rx,
			   const struct vl_io_event *ev,
			   vl_frame_event_fn *emit, void *ctx);

/* Drops what was read and not delivered. Nothing is in flight. */
void vl_packet_rx_forget(struct vl_packet_rx *rx);

#endif
