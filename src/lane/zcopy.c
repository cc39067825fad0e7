/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/zcopy.h"

#include <linux/if_ether.h>

#include "base/util.h"

/* The shortest headers of a frame with segments: Ethernet, IPv4, UDP. */
#define HEAD_MIN (ETH_HLEN + 20u + 8u)

unsigned int vl_zc_dest_index(const struct vl_dest_key *key)
{
	uint32_t h = 0;

	/* FNV-1a, of what tells neighbours apart. */
	for (unsigned int i = 0; i < sizeof(key->mac); i++)
		h = (h ^ key->mac[i]) * 16777619u;
	for (unsigned int i = 0; i < key->addr_len; i++)
		h = (h ^ key->addr[i]) * 16777619u;
	return (h ^ h >> 16) % VL_ZC_DESTS;
}

void vl_zc_dest_released(struct vl_zc_dest *d, bool copied, uint64_t now_ns)
{
	unsigned int doubles;

	d->seen++;
	d->copied = (uint8_t)(d->copied + copied);
	if (d->seen < (d->failures ? VL_ZC_SAMPLE_AGAIN : VL_ZC_SAMPLE))
		return;
	if (d->copied > d->seen / 2) {
		doubles = vl_min_u32(d->failures, VL_ZC_OFF_DOUBLES);
		d->off_until_ns = now_ns + (VL_ZC_OFF_MIN_NS << doubles);
		d->failures = (uint8_t)(doubles + 1);
	} else {
		d->failures = 0;
	}
	d->seen = 0;
	d->copied = 0;
}

uint32_t vl_zc_segments(uint32_t len, uint32_t gso_size)
{
	if (!gso_size || len <= HEAD_MIN)
		return 1;
	return (len - HEAD_MIN + gso_size - 1) / gso_size;
}

uint32_t vl_zc_pieces(const struct iovec *iov, unsigned int n,
		      uint32_t segments)
{
	uint32_t pieces = 2 * segments - 1;

	for (unsigned int i = 0; i < n; i++) {
		uintptr_t at = (uintptr_t)iov[i].iov_base;

		if (iov[i].iov_len)
			pieces += (uint32_t)((at + iov[i].iov_len - 1) /
						     VL_ZC_PAGE -
					     at / VL_ZC_PAGE + 1);
	}
	return pieces;
}

enum vl_zc_why vl_zc_frame(enum vl_zerocopy mode, uint32_t len,
			   uint32_t gso_size, const struct iovec *iov,
			   unsigned int n)
{
	bool on = mode == VL_ZEROCOPY_ON;
	uint32_t segments;

	if (mode == VL_ZEROCOPY_OFF)
		return VL_ZC_OFF;
	if (len < (on ? VL_ZC_BYTES_ON : VL_ZC_BYTES_AUTO))
		return VL_ZC_SHORT;
	segments = vl_zc_segments(len, gso_size);
	if (!on && segments > VL_ZC_SEGMENTS_AUTO)
		return VL_ZC_SEGMENTS;
	if (segments > VL_ZC_PIECES_MAX ||
	    vl_zc_pieces(iov, n, segments) > VL_ZC_PIECES_MAX)
		return VL_ZC_PIECES;
	return VL_ZC_NOT_COPIED;
}

/* Whether @held and the packet are above one in @part of the window. */
static bool above(const struct vl_zc_room *r, uint32_t held, uint32_t part)
{
	return held && r->charge && held + r->charge > r->pending_max / part;
}

enum vl_zc_why vl_zc_room(const struct vl_zc_room *r)
{
	if (r->stopping)
		return VL_ZC_STOPPING;
	if (r->now_ns < r->nomem_until_ns)
		return VL_ZC_NOMEM;
	if (!r->classic) {
		/* Where it is wanted at any price it is tried at any price. */
		if (r->mode != VL_ZEROCOPY_ON &&
		    r->now_ns < r->dest->off_until_ns)
			return VL_ZC_USELESS;
		if (r->oldest_ns && r->now_ns > r->oldest_ns + VL_ZC_SLOW_NS)
			return VL_ZC_SLOW;
		if (above(r, r->dest->descs, VL_ZC_DEST_PART) ||
		    (r->side && (above(r, r->lane_descs, VL_ZC_LANE_PART) ||
				 above(r, r->sides_descs, VL_ZC_SIDES_PART))))
			return VL_ZC_SHARE;
	}
	if (r->held + r->hold > r->held_max ||
	    r->pending + r->charge > r->pending_max)
		return VL_ZC_WINDOW;
	return VL_ZC_NOT_COPIED;
}
