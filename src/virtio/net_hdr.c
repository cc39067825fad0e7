/* SPDX-License-Identifier: BSD-3-Clause */
#include "virtio/net_hdr.h"

#include <linux/if_ether.h>
#include <linux/virtio_config.h>

uint32_t vl_net_hdr_len(uint64_t features)
{
	if (features & (VL_FEATURE(VIRTIO_F_VERSION_1) |
			VL_FEATURE(VIRTIO_NET_F_MRG_RXBUF)))
		return VL_NET_HDR_MRG;
	return VL_NET_HDR_LEGACY;
}

/* The feature that permits segmentation type @type; 0: none does. */
static uint64_t gso_feature(uint8_t type)
{
	switch (type) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
		return VL_FEATURE(VIRTIO_NET_F_HOST_TSO4);
	case VIRTIO_NET_HDR_GSO_TCPV6:
		return VL_FEATURE(VIRTIO_NET_F_HOST_TSO6);
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		return VL_FEATURE(VIRTIO_NET_F_HOST_USO);
	default:
		return 0;
	}
}

static enum vl_hdr_error check_gso(const struct virtio_net_hdr *h,
				   uint64_t features)
{
	uint8_t type = h->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	bool ecn = h->gso_type & VIRTIO_NET_HDR_GSO_ECN;

	if (h->gso_size == 0 || !(gso_feature(type) & features))
		return VL_HDR_BAD_GSO;
	if (ecn && (type == VIRTIO_NET_HDR_GSO_UDP_L4 ||
		    !(features & VL_FEATURE(VIRTIO_NET_F_HOST_ECN))))
		return VL_HDR_BAD_GSO;
	if (!(h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return VL_HDR_GSO_NO_CSUM;
	return VL_HDR_OK;
}

enum vl_hdr_error vl_net_hdr_check(struct virtio_net_hdr *h, uint32_t frame_len,
				   uint64_t features)
{
	/* Everything else a driver may find set is for received packets. */
	h->flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;

	if (h->flags) {
		uint32_t csum_at = (uint32_t)h->csum_start + h->csum_offset;

		if (!(features & VL_FEATURE(VIRTIO_NET_F_CSUM)))
			return VL_HDR_BAD_FLAGS;
		if (h->csum_start < ETH_HLEN || csum_at + 2 > frame_len)
			return VL_HDR_BAD_CSUM;
	} else {
		h->csum_start = 0;
		h->csum_offset = 0;
	}

	if (h->gso_type == VIRTIO_NET_HDR_GSO_NONE) {
		h->gso_size = 0;
		h->hdr_len = 0;
		return VL_HDR_OK;
	}
	if (h->hdr_len > frame_len)
		h->hdr_len = (uint16_t)frame_len;
	return check_gso(h, features);
}
