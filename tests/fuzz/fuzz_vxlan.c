/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A received VXLAN datagram: what comes of it lies inside of it, and is what the
 * driver takes. Input: what the driver takes (bits), gso_size, MTU, the datagram.
 */
#include <stdlib.h>
#include <string.h>

#include "backend/vxlan_frame.h"
#include "backend/vxlan_proto.h"
#include "fuzz_guest.h"

#define VNI 7u

static bool inside(const uint8_t *p, uint32_t len, const uint8_t *from,
		   size_t bytes)
{
	return p >= from && len <= bytes && (size_t)(p - from) <= bytes - len;
}

static void check_piece(const struct vl_vxlan_format *f,
			const struct vl_vxlan_cut *cut,
			const struct vl_vxlan_piece *p)
{
	const struct vl_offload *o = &f->offload;
	const struct virtio_net_hdr *h = &p->hdr;
	uint32_t len = p->head_len + p->rest_len;

	fuzz_check(len >= 14 && len <= cut->len);
	fuzz_check(inside(p->head, p->head_len, cut->data, cut->len) ||
		   inside(p->head, p->head_len, cut->head, sizeof(cut->head)));
	fuzz_check(!p->rest_len ||
		   inside(p->rest, p->rest_len, cut->data, cut->len));
	fuzz_check(p->mac == p->head + 6);
	fuzz_check(!h->flags ||
		   (o->csum &&
		    h->csum_start + h->csum_offset + 2u <= p->head_len));
	if (!h->gso_type)
		return;
	fuzz_check(h->flags && h->gso_size && h->hdr_len <= len);
	fuzz_check(len > h->hdr_len + (uint32_t)h->gso_size);
	fuzz_check(o->tso4 || o->tso6 || o->uso4 || o->uso6);
	fuzz_check(o->ecn || !(h->gso_type & VIRTIO_NET_HDR_GSO_ECN));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vl_tunnel_counters counters = { 0 };
	struct vl_vxlan_format f = { .vni = VNI, .counters = &counters };
	struct fuzz_input in = { data, size };
	uint8_t bits = fuzz_u8(&in);
	uint32_t gso_size = fuzz_u16(&in), frames = 0, limit;
	struct vl_vxlan_piece piece;
	struct vl_vxlan_cut cut;
	uint8_t *copy;

	f.offload = (struct vl_offload){
		.hdr_len = 12,
		.csum = bits & 1,
		.tso4 = bits & 2,
		.tso6 = bits & 4,
		.ecn = bits & 8,
		.uso4 = bits & 16,
		.uso6 = bits & 32,
	};
	f.mtu = fuzz_u16(&in);
	if (in.left > 65536)
		return 0;
	/* Of its own, so that a byte too much is noticed. */
	copy = malloc(in.left ? in.left : 1);
	if (!copy)
		return 0;
	memcpy(copy, in.p, in.left);
	limit = (uint32_t)in.left + 1;
	vl_vxlan_cut_start(&f, copy, (uint32_t)in.left, gso_size, &cut);
	while (vl_vxlan_cut_next(&f, &cut, &piece)) {
		fuzz_check(++frames < limit);
		check_piece(&f, &cut, &piece);
	}
	fuzz_check(!vl_vxlan_cut_next(&f, &cut, &piece));
	free(copy);
	return 0;
}
