/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames and VXLAN datagrams for tests, and a plain check of checksums. */
#ifndef VXLAN_FRAMES_H
#define VXLAN_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VF_VNI 0x123456u

enum vf_csum {
	VF_PARTIAL, /* the sum of the pseudo-header */
	VF_FULL,
	VF_BAD,
};

struct vf_frame {
	bool tcp, ipv6, cwr;
	enum vf_csum csum;
	uint16_t
		id; /* last bytes of the sender's MAC address; first of payload */
	uint32_t payload;
};

/* Writes the frame to @out; returns its length. Payload bytes follow from their
 * place. */
uint32_t vf_frame(const struct vf_frame *f, uint8_t *out);

/* A VXLAN header in front of it, with @vni. */
uint32_t vf_datagram(const struct vf_frame *f, uint32_t vni, uint8_t *out);

/* Offset of the payload. */
uint32_t vf_head(const struct vf_frame *f);

/* What a receiver computes over the transport part of a frame of @len bytes: 0 if
 * the checksum is right. */
uint16_t vf_verify(const struct vf_frame *f, const uint8_t *frame,
		   uint32_t len);

/* The byte that lies at @at of the payload. */
uint8_t vf_byte(uint32_t at);

#endif
