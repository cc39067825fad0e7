/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cutting a frame that waits for segmentation (virtio 1.2, section 5.1.6.2,
 * gso_type) into smaller ones, its parts: headers are written anew, the
 * payload stays where it is. The segments that the parts become are, byte for
 * byte, those that the kernel makes of the whole frame (see gso.c for the one
 * exception).
 *
 * Pure functions, for any thread: no state, no allocation, no I/O. Frames and
 * virtio headers come from a guest and are hostile; the caller has copied what
 * is passed here, so that it does not change any more. Fields are native,
 * which is little-endian (base/util.h).
 */
#ifndef VL_LANE_GSO_H
#define VL_LANE_GSO_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest headers of a frame that can be cut: Ethernet (14), two VLAN tags
 * (4 each), IPv6 (40), TCP (20) with options (40). */
#define VL_GSO_HEAD_MAX 122u

/* A frame that can be cut. Written by vl_gso_parse() only. */
struct vl_gso {
	uint16_t l3, l4;   /* offsets of the IP and the TCP or UDP header */
	uint16_t head_len; /* all headers; the payload is behind them */
	uint16_t gso_size; /* payload bytes of a segment, not 0 */
	uint8_t gso_type;  /* as in its virtio header */
	bool ipv6, udp;
	uint32_t payload; /* bytes, more than gso_size */
};

/*
 * Finds the headers of a frame of @frame_len bytes. @hdr is its virtio header,
 * @head its first min(@frame_len, VL_GSO_HEAD_MAX) bytes, @head_bytes how many
 * these are.
 *
 * Returns 0, or -EINVAL when the frame has to be sent whole, whether because
 * nothing is to be cut or because it is malformed: that is for the kernel to
 * judge. What can be cut is TCP (no SYN, RST or URG) and UDP_L4, directly in
 * IPv6 or in IPv4 without options and fragmentation, in Ethernet with up to
 * two VLAN tags, with a partial checksum in its place, and with lengths that
 * agree with each other, with @hdr and with @frame_len. *@g is undefined then.
 *
 * The checksums of the frame are not looked at: the IPv4 one is made anew by
 * the kernel too, and of the partial one nothing is kept.
 */
int vl_gso_parse(const struct virtio_net_hdr *hdr, const uint8_t *head,
		 size_t head_bytes, uint32_t frame_len, struct vl_gso *g);

/*
 * Payload bytes per part: as many whole segments as @bytes holds, at least
 * one (with 0: exactly one). May be more than the payload. A frame has fewer
 * than 2 * payload / @bytes + 2 parts of it, whatever gso_size the guest chose.
 */
uint32_t vl_gso_part(const struct vl_gso *g, uint32_t bytes);

/*
 * Writes the headers of the part that carries the payload [@offset, @offset +
 * @len): the virtio header to *@out_hdr, the g->head_len bytes (at most
 * VL_GSO_HEAD_MAX) of the frame to @out, which does not overlap @head.
 *
 * @g and @head are those of the whole frame. @offset is a multiple of
 * g->gso_size, and so is @len, unless the part is the last one; @len is not 0
 * and @offset + @len is at most g->payload.
 *
 * The transport checksum is partial again, as a driver leaves it. A part of
 * one segment has nothing to segment any more (GSO_NONE).
 */
void vl_gso_head(const struct vl_gso *g, const uint8_t *head, uint32_t offset,
		 uint32_t len, struct virtio_net_hdr *out_hdr, uint8_t *out);

#endif
