/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transmit half of a port of the VXLAN backend. See vxlan_tx.c.
 *
 * Worker thread of the port only, except where said.
 */
#ifndef VL_BACKEND_VXLAN_TX_H
#define VL_BACKEND_VXLAN_TX_H

#include "backend/vxlan_fdb.h"
#include "lane/backend.h"
#include "lane/probe.h"
#include "stats/counters.h"

/* Sockets of the express way; remotes share them if they are more. */
#define VL_VXLAN_EXPRESS_MAX 16u
#define VL_VXLAN_WAYS_MAX    16u
#define VL_VXLAN_SOCKETS_MAX                                                   \
	(VL_VXLAN_EXPRESS_MAX + VL_VXLAN_WAYS_MAX + VL_PROBES_MAX)
/* Tags of a port's operations. */
#define VL_VXLAN_TX_TAGS   1024u
/* Segments of a message: the least that kernels with UDP_SEGMENT take is 64,
 * and 40 of 1450 bytes fill a datagram. */
#define VL_VXLAN_SEGMENTS  40u
/* The largest frame that becomes one message: with the headers of all segments
 * it stays below the 65507 bytes of a datagram. */
#define VL_VXLAN_GSO_BYTES 60000u

struct vl_vxlan_tx;

struct vl_vxlan_tx_config {
	struct vl_vxlan_fdb *fdb;
	uint32_t vni;
	uint16_t port; /* of the remotes */
	/* Sockets, which stay the caller's: those of the express way, then one
	 * for each further way; probes are ways, too. */
	const int *fd;
	unsigned int express, ways;
	int sndbuf;    /* of an express socket, as the kernel counts it */
	uint32_t mtu;  /* of the driver, as the underlay has it; 0: unknown */
	bool zerocopy; /* if the engine can */
	/* Of the backend: becomes 1 when the route takes no UDP_SEGMENT. */
	uint32_t *gso_segments;
	struct vl_tunnel_counters *counters;
};

/* Any thread. Returns 0 or -ENOMEM. */
int vl_vxlan_tx_new(const struct vl_vxlan_tx_config *config,
		    struct vl_vxlan_tx **out);
/* Any thread, stopped. NULL: nothing. */
void vl_vxlan_tx_free(struct vl_vxlan_tx *tx);

/* Binds it to the engine; operations have tags from @tag on. 0 or -errno. */
int vl_vxlan_tx_start(struct vl_vxlan_tx *tx, struct vl_io *io, uint64_t tag);
void vl_vxlan_tx_stop(struct vl_vxlan_tx *tx, struct vl_io *io);

/* Control thread, while the port does nothing: the length of the virtio header
 * in front of frames. */
void vl_vxlan_tx_set_hdr_len(struct vl_vxlan_tx *tx, uint32_t hdr_len);

/* See struct vl_backend_ops. */
void vl_vxlan_tx_send(struct vl_vxlan_tx *tx, unsigned int way,
		      struct vl_io *io, const struct vl_frame *frame);
void vl_vxlan_tx_flush(struct vl_vxlan_tx *tx, struct vl_io *io);
void vl_vxlan_tx_complete(struct vl_vxlan_tx *tx, const struct vl_io_event *ev,
			  vl_frame_event_fn *emit, void *ctx);

/* The socket whose readiness says that way @way takes more: of the express way
 * that which was full last. */
int vl_vxlan_tx_fd(const struct vl_vxlan_tx *tx, unsigned int way);

#endif
