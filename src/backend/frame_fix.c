/* SPDX-License-Identifier: BSD-3-Clause */
#include "backend/frame_fix.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>

#include "base/csum.h"
#include "base/uapi.h"

bool vl_fix_takes_gso(const struct vl_offload *o, uint8_t gso_type)
{
	if (gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return true;
	if (!o->csum || ((gso_type & VIRTIO_NET_HDR_GSO_ECN) && !o->ecn))
		return false;
	switch (gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
		return o->tso4;
	case VIRTIO_NET_HDR_GSO_TCPV6:
		return o->tso6;
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		/* Only the frame itself knows its IP version. */
		return o->uso4 && o->uso6;
	default:
		return false;
	}
}

bool vl_fix_takes_all(const struct vl_offload *o)
{
	return o->csum && o->tso4 && o->tso6 && o->ecn && o->uso4 && o->uso6;
}

void vl_fix_insert_tag(uint8_t *at, uint32_t hdr_len, uint16_t tpid,
		       uint16_t tci, struct virtio_net_hdr *hdr)
{
	const uint32_t before = hdr_len + 2 * ETH_ALEN;
	uint8_t *tag = at - VL_TAG_LEN + before;

	memmove(at - VL_TAG_LEN, at, before);
	tag[0] = (uint8_t)(tpid >> 8);
	tag[1] = (uint8_t)tpid;
	tag[2] = (uint8_t)(tci >> 8);
	tag[3] = (uint8_t)tci;
	if (hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		hdr->csum_start = (uint16_t)(hdr->csum_start + VL_TAG_LEN);
	if (hdr->hdr_len)
		hdr->hdr_len = (uint16_t)(hdr->hdr_len + VL_TAG_LEN);
}

int vl_fix_complete_csum(struct virtio_net_hdr *hdr, uint8_t *frame,
			 uint32_t len)
{
	uint32_t start = hdr->csum_start;
	uint32_t at = start + hdr->csum_offset;
	uint16_t csum;

	if (at + sizeof(csum) > len)
		return -EINVAL;
	/* The field has the sum of the pseudo-header. */
	csum = (uint16_t)~vl_csum_fold(vl_csum(frame + start, len - start));
	/* As the kernel does: 0 would mean that UDP has none. */
	if (!csum)
		csum = 0xffff;
	memcpy(frame + at, &csum, sizeof(csum));
	hdr->flags &= (uint8_t)~VIRTIO_NET_HDR_F_NEEDS_CSUM;
	hdr->csum_start = 0;
	hdr->csum_offset = 0;
	return 0;
}
