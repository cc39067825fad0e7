/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a received VXLAN datagram holds, and how it is cut into frames that a
 * driver takes. See vxlan_frame.c. Pure functions, any thread, no I/O.
 *
 * Datagrams come from the network and are hostile; what is passed here is a copy
 * that does not change meanwhile.
 */
#ifndef VL_BACKEND_VXLAN_FRAME_H
#define VL_BACKEND_VXLAN_FRAME_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

#include "lane/backend.h"
#include "lane/gso.h"
#include "stats/counters.h"

/* Bytes of a frame that are looked at. */
#define VL_VXLAN_PEEK  192u
/* VXLAN and Ethernet header. */
#define VL_VXLAN_LEAST 22u

/* The headers of one frame. */
struct vl_vxlan_info {
	/* As for a driver that takes everything. */
	struct virtio_net_hdr hdr;
	bool ipv6, tcp;
	/* Its IP packet reaches exactly to its end. */
	bool whole;
	uint16_t l4;      /* offset of the TCP or UDP header, 0: none */
	uint32_t l4_len;  /* of that header and what is behind it */
	uint16_t csum_at; /* offset of its checksum */
	uint16_t partial; /* what lies there if it is partial */
};

/*
 * Describes a frame of @len bytes; @head are its first min(@len, VL_VXLAN_PEEK).
 *
 * @gso_size is what the kernel said of the datagram, 0: nothing, and @mtu that of
 * the driver, 0: not known. The frame has not been segmented yet (hdr.gso_type)
 * if @gso_size is given and less than its payload; or, as the kernel says nothing
 * for TCP, if it is TCP with a partial checksum and larger than @mtu. Then
 * info->partial has to be written to info->csum_at.
 */
void vl_vxlan_inspect(const uint8_t *head, uint32_t len, uint32_t gso_size,
		      uint32_t mtu, struct vl_vxlan_info *info);

/* Whether a driver that takes @o takes a frame with info->hdr.gso_type. */
bool vl_vxlan_takes(const struct vl_offload *o,
		    const struct vl_vxlan_info *info);

/*
 * What is stored in the checksum field of @info in place of the partial one,
 * where @sum is that (base/csum.h) of the info->l4_len bytes at info->l4.
 */
uint16_t vl_vxlan_csum(uint64_t sum);

/* What all datagrams of a port have in common. */
struct vl_vxlan_format {
	uint32_t vni;
	uint32_t mtu;
	struct vl_offload offload;
	struct vl_tunnel_counters *counters;
};

/* A datagram that is being cut. */
struct vl_vxlan_cut {
	uint8_t *data; /* is written to */
	uint32_t len;
	uint32_t gso_size;
	uint32_t at; /* what is before is done */
	bool train;  /* gso_size bytes for each frame and its VXLAN header */
	/* A frame of which segments are made: payload done, headers of one. */
	bool segments;
	uint32_t done;
	struct vl_gso gso;
	uint8_t head[VL_GSO_HEAD_MAX];
};

/* One frame for the driver: header, then the bytes of two places. */
struct vl_vxlan_piece {
	struct virtio_net_hdr hdr;
	const uint8_t *mac; /* of the sender */
	const uint8_t *head, *rest;
	uint32_t head_len, rest_len;
};

/* Begins with the @len bytes at @data, which has to stay until the last frame was
 * used. @gso_size as above. Counts. */
void vl_vxlan_cut_start(const struct vl_vxlan_format *f, uint8_t *data,
			uint32_t len, uint32_t gso_size,
			struct vl_vxlan_cut *cut);

/* The next frame; false: there is none. What is no frame is counted. The piece
 * is valid until the next call. */
bool vl_vxlan_cut_next(const struct vl_vxlan_format *f,
		       struct vl_vxlan_cut *cut, struct vl_vxlan_piece *piece);

/* True when a datagram of @len bytes with @gso_size has to be cut for a driver
 * that takes @f->offload; @info is that of its first frame. */
bool vl_vxlan_must_cut(const struct vl_vxlan_format *f, uint32_t len,
		       uint32_t gso_size, const struct vl_vxlan_info *info);

#endif
