/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A datagram that the kernel hands over may be three things.
 *
 * One frame behind a VXLAN header: as it was on the wire.
 *
 * A train, with UDP_GRO: datagrams of the same sender and port that the kernel
 * joined. Each gso_size bytes begin with a VXLAN header of their own, which is
 * checked like the first.
 *
 * A super-frame: when nothing on the way from a kernel's vxlan device segmented a
 * TSO or USO frame (veth does not), it comes as one VXLAN header and one frame of
 * up to 64 KiB. For UDP the kernel gives gso_size, which then is that of the
 * segments; for TCP nothing, hence a size that fits the driver's MTU is taken:
 * a receiver of TCP cannot tell.
 *
 * Train or super-frame is decided by the length in the IP header of the first
 * frame: that of a super-frame covers all of the datagram. What lies at gso_size
 * does not count, for in a super-frame it is payload, and a guest behind the
 * remote could write a VXLAN header there and a frame from a MAC address that is
 * not its own. In turn a guest that lies about the length makes only a train look
 * like one frame, and loses it.
 *
 * Checksums. Within hosts the kernel leaves the checksum of TCP and UDP partial:
 * the field has the sum of the pseudo-header. Nothing says so when a datagram is
 * received. If the field has exactly this value, the checksum is taken as partial.
 * Completing it is right even if it was complete and equal by chance: then the
 * result is the same value.
 */
#include "backend/vxlan_frame.h"

#include <linux/if_ether.h>
#include <string.h>

#include "backend/vxlan_proto.h"
#include "base/barrier.h"
#include "base/csum.h"
#include "base/uapi.h"
#include "base/util.h"

#define VLAN_LEN 4u
#define TAGS_MAX 2u
#define IP4_LEN  20u
#define IP6_LEN  40u
#define TCP_LEN  20u
#define UDP_LEN  8u

#define PROTO_HOPS 0u
#define PROTO_TCP  6u
#define PROTO_UDP  17u
#define PROTO_DEST 60u

/* Extension headers that are stepped over. */
#define EXT_MAX    4u
/* More fragments, and the offset of this one. */
#define FRAGMENTED 0x3fff
#define TCP_CWR    0x80u
/* A segment that any host takes (RFC 9293, section 3.7.1). */
#define TCP_LEAST  536u

struct reader {
	const uint8_t *head;
	uint32_t bytes; /* of head */
	uint32_t len;   /* of the frame */
};

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Steps over VLAN tags. Returns the offset of what is behind, and its type. */
static uint32_t skip_ether(const struct reader *r, uint16_t *type)
{
	uint32_t at = ETH_HLEN;

	*type = be16(r->head + 12);
	for (unsigned int i = 0;
	     i < TAGS_MAX && (*type == ETH_P_8021Q || *type == ETH_P_8021AD) &&
	     r->bytes >= at + VLAN_LEN;
	     i++) {
		*type = be16(r->head + at + 2);
		at += VLAN_LEN;
	}
	return at;
}

/* What the IP header says: where the next one begins, and where the packet
 * ends. Returns the protocol, or 255. */
static uint8_t parse_ip4(const struct reader *r, uint32_t at, uint32_t *l4,
			 uint32_t *end)
{
	const uint8_t *ip = r->head + at;
	uint32_t hlen;

	if (r->bytes < at + IP4_LEN || ip[0] >> 4 != 4)
		return 255;
	hlen = (ip[0] & 15u) * 4;
	*l4 = at + hlen;
	*end = at + be16(ip + 2);
	if (hlen < IP4_LEN || *end < *l4 || be16(ip + 6) & FRAGMENTED)
		return 255;
	return ip[9];
}

static uint8_t parse_ip6(const struct reader *r, uint32_t at, uint32_t *l4,
			 uint32_t *end)
{
	const uint8_t *ip = r->head + at;
	uint8_t next;

	if (r->bytes < at + IP6_LEN || ip[0] >> 4 != 6)
		return 255;
	next = ip[6];
	*l4 = at + IP6_LEN;
	*end = *l4 + be16(ip + 4);
	for (unsigned int i = 0;
	     i < EXT_MAX && (next == PROTO_HOPS || next == PROTO_DEST); i++) {
		if (r->bytes < *l4 + 2)
			return 255;
		next = r->head[*l4];
		*l4 += (r->head[*l4 + 1] + 1u) * 8;
	}
	return next;
}

/* Bytes of the TCP or UDP header, 0: none. */
static uint32_t parse_l4(const struct reader *r, uint8_t proto, uint32_t l4,
			 uint32_t end)
{
	uint32_t len = 0;

	if (proto == PROTO_UDP && r->bytes >= l4 + UDP_LEN &&
	    be16(r->head + l4 + 4) == end - l4)
		len = UDP_LEN;
	if (proto == PROTO_TCP && r->bytes >= l4 + TCP_LEN)
		len = (r->head[l4 + 12] >> 4) * 4u;
	if (proto == PROTO_TCP && len < TCP_LEN)
		return 0;
	return end < l4 + len ? 0 : len;
}

static uint8_t gso_type(const struct vl_vxlan_info *info, const uint8_t *head)
{
	uint8_t type = VIRTIO_NET_HDR_GSO_UDP_L4;

	if (!info->tcp)
		return type;
	type = info->ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
	if (head[info->l4 + 13] & TCP_CWR)
		type |= VIRTIO_NET_HDR_GSO_ECN;
	return type;
}

/* Payload of the segments of a TCP frame of which the kernel does not say it;
 * 0: it is none of these. @l3_len: of its IP packet. */
static uint32_t guess_size(const struct vl_vxlan_info *info, uint32_t l3_len,
			   uint32_t hlen, uint32_t mtu)
{
	uint32_t headers = l3_len - info->l4_len + hlen;

	if (!mtu || l3_len <= mtu || !info->tcp ||
	    !(info->hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return 0;
	return mtu > headers + TCP_LEAST ? mtu - headers : TCP_LEAST;
}

void vl_vxlan_inspect(const uint8_t *head, uint32_t len, uint32_t gso_size,
		      uint32_t mtu, struct vl_vxlan_info *info)
{
	const struct reader r = {
		.head = head,
		.bytes = vl_min_u32(len, VL_VXLAN_PEEK),
		.len = len,
	};
	uint32_t l3, l4 = 0, end = 0, hlen;
	uint8_t proto = 255;
	uint16_t type, field;
	uint64_t pseudo;

	*info = (struct vl_vxlan_info){ 0 };
	l3 = skip_ether(&r, &type);
	if (type == ETH_P_IP)
		proto = parse_ip4(&r, l3, &l4, &end);
	else if (type == ETH_P_IPV6)
		proto = parse_ip6(&r, l3, &l4, &end);
	info->whole = end && end == len;
	if (end > len)
		return;
	hlen = parse_l4(&r, proto, l4, end);
	if (!hlen)
		return;
	info->ipv6 = type == ETH_P_IPV6;
	info->tcp = proto == PROTO_TCP;
	info->l4 = (uint16_t)l4;
	info->l4_len = end - l4;
	info->csum_at = (uint16_t)(l4 + (info->tcp ? 16 : 6));
	pseudo = info->ipv6 ? vl_csum_pseudo6(head + l3 + 8, proto, end - l4)
			    : vl_csum_pseudo4(head + l3 + 12, proto, end - l4);
	info->partial = vl_csum_fold(pseudo);
	memcpy(&field, head + info->csum_at, sizeof(field));
	if (field == info->partial)
		info->hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	if (!gso_size)
		gso_size = guess_size(info, end - l3, hlen, mtu);
	if (vl_unlikely(gso_size && info->whole && gso_size <= UINT16_MAX &&
			info->l4_len > hlen + gso_size)) {
		info->hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		info->hdr.gso_type = gso_type(info, head);
		info->hdr.gso_size = (uint16_t)gso_size;
		info->hdr.hdr_len = (uint16_t)(l4 + hlen);
	}
	if (info->hdr.flags) {
		info->hdr.csum_start = info->l4;
		info->hdr.csum_offset = (uint16_t)(info->csum_at - l4);
	}
}

bool vl_vxlan_takes(const struct vl_offload *o,
		    const struct vl_vxlan_info *info)
{
	uint8_t type = info->hdr.gso_type;

	if (type == VIRTIO_NET_HDR_GSO_NONE)
		return true;
	if (!o->csum || (type & VIRTIO_NET_HDR_GSO_ECN && !o->ecn))
		return false;
	if (info->tcp)
		return info->ipv6 ? o->tso6 : o->tso4;
	return info->ipv6 ? o->uso6 : o->uso4;
}

uint16_t vl_vxlan_csum(uint64_t sum)
{
	uint16_t csum = (uint16_t)~vl_csum_fold(sum);

	/* 0 would mean that UDP has none; for TCP both are the same. */
	return csum ? csum : 0xffff;
}

/* The kernel joined datagrams, or did not segment one. */
static bool is_joined(uint32_t len, uint32_t gso_size)
{
	return gso_size && gso_size < len;
}

bool vl_vxlan_must_cut(const struct vl_vxlan_format *f, uint32_t len,
		       uint32_t gso_size, const struct vl_vxlan_info *info)
{
	/* A packet that was not segmented is nothing but TCP or UDP. */
	if (is_joined(len, gso_size) && (!info->whole || !info->l4))
		return true;
	return !vl_vxlan_takes(&f->offload, info);
}

void vl_vxlan_cut_start(const struct vl_vxlan_format *f, uint8_t *data,
			uint32_t len, uint32_t gso_size,
			struct vl_vxlan_cut *cut)
{
	struct vl_vxlan_info info;

	cut->data = data;
	cut->len = len;
	cut->gso_size = gso_size;
	cut->at = 0;
	cut->train = false;
	cut->segments = false;
	if (!is_joined(len, gso_size) || len < VL_VXLAN_LEAST)
		return;
	vl_vxlan_inspect(data + VL_VXLAN_HDR, len - VL_VXLAN_HDR, gso_size,
			 f->mtu, &info);
	cut->train = !info.whole;
	if (cut->train)
		VL_STAT_INC(f->counters->trains);
}

/* Completes the checksum at @csum_at of the frame in front of it, which ends with
 * @l4_len bytes from @l4 on; of these all but @head_len lie at @rest. */
static void complete(uint8_t *csum_at, const uint8_t *l4, uint32_t head_len,
		     const uint8_t *rest, uint32_t rest_len)
{
	/* Headers are of even length. */
	uint16_t csum =
		vl_vxlan_csum(vl_csum(l4, head_len) + vl_csum(rest, rest_len));

	memcpy(csum_at, &csum, sizeof(csum));
}

static void no_csum(struct virtio_net_hdr *hdr)
{
	hdr->flags = 0;
	hdr->csum_start = 0;
	hdr->csum_offset = 0;
}

/* The next segment of the frame at cut->at. */
static void next_segment(const struct vl_vxlan_format *f,
			 struct vl_vxlan_cut *cut, struct vl_vxlan_piece *p)
{
	const struct vl_gso *g = &cut->gso;
	const uint8_t *frame = cut->data + cut->at + VL_VXLAN_HDR;
	uint32_t n = vl_min_u32(g->gso_size, g->payload - cut->done);

	vl_gso_head(g, frame, cut->done, n, &p->hdr, cut->head);
	p->mac = cut->head + ETH_ALEN;
	p->head = cut->head;
	p->head_len = g->head_len;
	p->rest = frame + g->head_len + cut->done;
	p->rest_len = n;
	cut->done += n;
	if (cut->done == g->payload) {
		cut->segments = false;
		cut->at = cut->len;
	}
	if (f->offload.csum)
		return;
	VL_STAT_INC(f->counters->csum_completed);
	complete(cut->head + p->hdr.csum_start + p->hdr.csum_offset,
		 cut->head + p->hdr.csum_start, g->head_len - g->l4, p->rest,
		 n);
	no_csum(&p->hdr);
}

/* The frame of @len bytes at @frame as it is, except for its checksum. */
static void whole_frame(const struct vl_vxlan_format *f, uint8_t *frame,
			uint32_t len, const struct vl_vxlan_info *info,
			struct vl_vxlan_piece *p)
{
	*p = (struct vl_vxlan_piece){
		.hdr = info->hdr,
		.mac = frame + ETH_ALEN,
		.head = frame,
		.head_len = len,
	};
	if (!info->hdr.flags)
		return;
	memcpy(frame + info->csum_at, &info->partial, sizeof(info->partial));
	if (f->offload.csum)
		return;
	VL_STAT_INC(f->counters->csum_completed);
	complete(frame + info->csum_at, frame + info->l4, info->l4_len, frame,
		 0);
	no_csum(&p->hdr);
}

/* True when @len bytes at @data can be a frame behind our VXLAN header. */
static bool check(const struct vl_vxlan_format *f, const uint8_t *data,
		  uint32_t len)
{
	if (vl_unlikely(len < VL_VXLAN_LEAST)) {
		VL_STAT_INC(f->counters->drop_short);
		return false;
	}
	if (vl_unlikely(!vl_vxlan_is(data, f->vni))) {
		VL_STAT_INC(f->counters->drop_vni);
		return false;
	}
	return true;
}

/* The frame at cut->at, which is the only one. Returns false when it has to be
 * dropped. */
static bool only_frame(const struct vl_vxlan_format *f,
		       struct vl_vxlan_cut *cut, struct vl_vxlan_piece *p)
{
	uint8_t *frame = cut->data + VL_VXLAN_HDR;
	uint32_t len = cut->len - VL_VXLAN_HDR;
	struct vl_vxlan_info info;

	vl_vxlan_inspect(frame, len, cut->gso_size, f->mtu, &info);
	if (info.hdr.gso_type)
		VL_STAT_INC(f->counters->superframes);
	if (!vl_vxlan_must_cut(f, cut->len, cut->gso_size, &info)) {
		whole_frame(f, frame, len, &info, p);
		cut->at = cut->len;
		return true;
	}
	if (vl_gso_parse(&info.hdr, frame, vl_min_u32(len, VL_GSO_HEAD_MAX),
			 len, &cut->gso)) {
		VL_STAT_INC(f->counters->drop_uncut);
		return false;
	}
	VL_STAT_INC(f->counters->segmented);
	cut->segments = true;
	cut->done = 0;
	next_segment(f, cut, p);
	return true;
}

bool vl_vxlan_cut_next(const struct vl_vxlan_format *f,
		       struct vl_vxlan_cut *cut, struct vl_vxlan_piece *piece)
{
	if (cut->segments) {
		next_segment(f, cut, piece);
		return true;
	}
	while (cut->at < cut->len) {
		uint8_t *data = cut->data + cut->at;
		uint32_t left = cut->len - cut->at;
		struct vl_vxlan_info info;

		if (cut->train)
			left = vl_min_u32(left, cut->gso_size);
		if (!check(f, data, left)) {
			cut->at += left;
			continue;
		}
		if (!cut->train) {
			if (only_frame(f, cut, piece))
				return true;
			cut->at = cut->len;
			return false;
		}
		cut->at += left;
		VL_STAT_INC(f->counters->train_frames);
		left -= VL_VXLAN_HDR;
		vl_vxlan_inspect(data + VL_VXLAN_HDR, left, 0, 0, &info);
		whole_frame(f, data + VL_VXLAN_HDR, left, &info, piece);
		return true;
	}
	return false;
}
