/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio-net header check: whatever passes must hold what its contract
 * says, and pass again unchanged. Input: header, frame length, features.
 */
#include <linux/virtio_config.h>
#include <string.h>

#include "fuzz_guest.h"
#include "virtio/net_hdr.h"

static uint64_t needed_feature(uint8_t type)
{
	switch (type) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
		return VL_FEATURE(VIRTIO_NET_F_HOST_TSO4);
	case VIRTIO_NET_HDR_GSO_TCPV6:
		return VL_FEATURE(VIRTIO_NET_F_HOST_TSO6);
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		return VL_FEATURE(VIRTIO_NET_F_HOST_USO);
	default:
		fuzz_check(false);
		return 0;
	}
}

static void check_accepted(const struct virtio_net_hdr *h, uint32_t frame_len,
			   uint64_t features)
{
	uint8_t type = h->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;

	fuzz_check((h->flags & ~VIRTIO_NET_HDR_F_NEEDS_CSUM) == 0);
	fuzz_check(h->hdr_len <= frame_len);
	if (h->flags) {
		fuzz_check(features & VL_FEATURE(VIRTIO_NET_F_CSUM));
		fuzz_check((uint64_t)h->csum_start + h->csum_offset + 2 <=
			   frame_len);
	}
	if (h->gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return;
	fuzz_check(h->gso_size != 0);
	fuzz_check(h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM);
	fuzz_check(features & needed_feature(type));
	if (h->gso_type & VIRTIO_NET_HDR_GSO_ECN)
		fuzz_check(features & VL_FEATURE(VIRTIO_NET_F_HOST_ECN));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct virtio_net_hdr h = {
		.flags = fuzz_u8(&in),
		.gso_type = fuzz_u8(&in),
		.hdr_len = fuzz_u16(&in),
		.gso_size = fuzz_u16(&in),
		.csum_start = fuzz_u16(&in),
		.csum_offset = fuzz_u16(&in),
	};
	uint32_t frame_len = fuzz_u32(&in);
	uint64_t features = fuzz_u32(&in) | (uint64_t)fuzz_u32(&in) << 32;
	struct virtio_net_hdr again;
	enum vl_hdr_error e = vl_net_hdr_check(&h, frame_len, features);

	fuzz_check((unsigned int)e < VL_HDR_ERROR_COUNT);
	if (e != VL_HDR_OK)
		return 0;
	check_accepted(&h, frame_len, features);
	again = h;
	fuzz_check(vl_net_hdr_check(&again, frame_len, features) == VL_HDR_OK);
	fuzz_check(memcmp(&again, &h, sizeof(h)) == 0);
	return 0;
}
