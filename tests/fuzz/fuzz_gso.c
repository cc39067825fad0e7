/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cutting frames: what passes the parser is what its contract says, and can be
 * cut. Input: virtio header, frame length, the copied bytes of the frame.
 */
#include <string.h>

#include "fuzz_guest.h"
#include "lane/gso.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[VL_GSO_HEAD_MAX];
	struct virtio_net_hdr hdr, part;
	uint32_t frame_len, step;
	struct vl_gso g;

	if (size < sizeof(hdr) + 4)
		return 0;
	memcpy(&hdr, data, sizeof(hdr));
	memcpy(&frame_len, data + sizeof(hdr), 4);
	data += sizeof(hdr) + 4;
	size -= sizeof(hdr) + 4;
	if (vl_gso_parse(&hdr, data, size, frame_len, &g))
		return 0;
	fuzz_check(g.head_len <= size && g.head_len <= VL_GSO_HEAD_MAX);
	fuzz_check(g.gso_size && g.head_len + g.payload == frame_len);
	step = vl_gso_part(&g, hdr.hdr_len);
	fuzz_check(step && step % g.gso_size == 0);
	for (uint32_t at = 0; at < g.payload; at += step) {
		uint32_t left = g.payload - at;

		vl_gso_head(&g, data, at, left < step ? left : step, &part,
			    out);
		fuzz_check(part.csum_start + part.csum_offset + 2u <=
			   g.head_len);
	}
	return 0;
}
