/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive half of a port of the VXLAN backend: from the datagrams of one
 * UDP socket to frames for a receiveq. See vxlan_rx.c.
 *
 * Worker thread of the port only, except where said.
 */
#ifndef VL_BACKEND_VXLAN_RX_H
#define VL_BACKEND_VXLAN_RX_H

#include "backend/vxlan_fdb.h"
#include "lane/backend.h"
#include "stats/counters.h"

/* Tags of a port's operations. */
#define VL_VXLAN_RX_TAGS 64u

struct vl_vxlan_rx;

struct vl_vxlan_rx_config {
	struct vl_vxlan_fdb *fdb;
	uint32_t vni;
	int fd;            /* bound and non-blocking; stays the caller's */
	uint32_t mtu;      /* that the driver was told, 0: not known */
	const char *label; /* for the log; stays the caller's */
	struct vl_tunnel_counters *counters;
};

/*
 * Any thread: the socket options that reception needs, before the socket is
 * bound. The kernel then drops what has no VXLAN header with @vni, so that it
 * never lands in guest memory. Returns 0 or -errno; a kernel that cannot join
 * datagrams is no error.
 */
int vl_vxlan_rx_socket(int fd, uint32_t vni);

/* Any thread. Returns 0 or -ENOMEM. */
int vl_vxlan_rx_new(const struct vl_vxlan_rx_config *config,
		    struct vl_vxlan_rx **out);
/* Any thread, stopped. NULL: nothing. */
void vl_vxlan_rx_free(struct vl_vxlan_rx *rx);

/* Binds it to the engine; operations have tags from @tag to @tag +
 * VL_VXLAN_RX_TAGS - 1. 0 or -errno. */
int vl_vxlan_rx_start(struct vl_vxlan_rx *rx, struct vl_io *io, uint64_t tag);
void vl_vxlan_rx_stop(struct vl_vxlan_rx *rx, struct vl_io *io);

/* Any thread while no other function of @rx runs. Frames that were received and
 * not delivered yet follow the new settings too. */
void vl_vxlan_rx_set_offload(struct vl_vxlan_rx *rx,
			     const struct vl_offload *offload);

/* See struct vl_backend_ops. */
void vl_vxlan_rx_recv(struct vl_vxlan_rx *rx, struct vl_io *io,
		      const struct vl_frame *frame);
void vl_vxlan_rx_flush(struct vl_vxlan_rx *rx, struct vl_io *io);
void vl_vxlan_rx_complete(struct vl_vxlan_rx *rx, struct vl_io *io,
			  const struct vl_io_event *ev, vl_frame_event_fn *emit,
			  void *ctx);

#endif
