/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames from a packet socket, as a driver can take them. Worker thread of the
 * port, except where said.
 */
#ifndef VL_BACKEND_PACKET_RX_H
#define VL_BACKEND_PACKET_RX_H

#include <linux/if_packet.h>

#include "lane/backend.h"

/* The ring that the kernel fills: so many slots of so many bytes, each of which
 * begins with a struct tpacket2_hdr. */
#define VL_PACKET_RX_SLOTS 1024u
#define VL_PACKET_RX_SLOT  2048u

struct vl_packet_rx;

/*
 * Makes packet socket @fd, which stays the caller's and is not bound yet, ready
 * to receive by such a ring. Returns its memory, to be unmapped by the caller;
 * NULL and errno on failure. Any thread.
 */
char *vl_packet_rx_map(int fd);

/* Reads from the ring @map, and from @fd what is too large for it. NULL: no
 * memory. Any thread. */
struct vl_packet_rx *vl_packet_rx_new(char *map, int fd);
void vl_packet_rx_free(struct vl_packet_rx *rx);

/* What is to be delivered from now on. Any thread. */
void vl_packet_rx_set_offload(struct vl_packet_rx *rx,
			      const struct vl_offload *o);

/* As vl_backend_ops.recv; its event is there at once. */
void vl_packet_rx_recv(struct vl_packet_rx *rx, struct vl_io *io,
		       const struct vl_frame *frame);

/* No more is read before the next submit: see vl_backend_ops.flush. */
void vl_packet_rx_flush(struct vl_packet_rx *rx);

/* Drops what has come up to now. */
void vl_packet_rx_forget(struct vl_packet_rx *rx);

#endif
