/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The header before each packet (virtio 1.2, section 5.1.6): struct
 * virtio_net_hdr, 10 bytes, or with num_buffers, 12 bytes.
 */
#ifndef VL_VIRTIO_NET_HDR_H
#define VL_VIRTIO_NET_HDR_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/uapi.h"

#define VL_NET_HDR_LEGACY 10u
#define VL_NET_HDR_MRG    12u

#define VL_FEATURE(bit) (1ULL << (bit))

/* Header length for negotiated @features: 12 with VERSION_1 or MRG_RXBUF. */
uint32_t vl_net_hdr_len(uint64_t features);

/* Why a header was refused. */
enum vl_hdr_error {
	VL_HDR_OK,
	VL_HDR_BAD_FLAGS,   /* checksum wanted, never negotiated */
	VL_HDR_BAD_CSUM,    /* csum_start / csum_offset outside the frame */
	VL_HDR_BAD_GSO,     /* type unknown or not negotiated, size 0 */
	VL_HDR_GSO_NO_CSUM, /* segmentation without a partial checksum */
	VL_HDR_ERROR_COUNT,
};

/*
 * Checks and tidies the driver's header @h (a private copy) of a frame of
 * @frame_len bytes that follows it: bits a device must ignore are cleared,
 * hdr_len (a hint that must not be trusted) is cut to the frame. @features
 * are the negotiated ones. After VL_HDR_OK the fields are consistent with the
 * frame length and the negotiation; nothing is known of the frame's contents.
 */
enum vl_hdr_error vl_net_hdr_check(struct virtio_net_hdr *h, uint32_t frame_len,
				   uint64_t features);

#endif
