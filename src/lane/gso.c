/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a frame is cut so that nobody on the network can tell.
 *
 * The kernel makes segment number i of a frame out of its headers: IPv4
 * identification + i, TCP sequence number + i * gso_size; FIN and PSH stay in
 * the last segment alone, CWR in the first; lengths and checksums are those of
 * the segment. A part is given the headers of its own first segment, the flags
 * of its first and its last one, and lengths of the part. The kernel then
 * applies the same rules to the part, and arrives at the same segments.
 *
 * Two consequences. Parts have to be whole segments, or segments would differ
 * in size and number. And what the rules do not cover has to be refused, since
 * the kernel copies it to each segment or does something of its own: urgent
 * data, IPv4 options, extension headers, tunnels.
 *
 * One byte pair can differ, in a form that receivers cannot tell apart: a TCP
 * checksum of 0 is sent as 0xffff when a part has one segment
 * (tests/kernel/gso_cut.c).
 */
#include "lane/gso.h"

#include <errno.h>
#include <string.h>

#include "base/uapi.h"

#define ETH_LEN  14u
#define VLAN_LEN 4u
#define TAGS_MAX 2u
#define IP4_LEN  20u
#define IP6_LEN  40u
#define TCP_LEN  20u
#define TCP_MAX  60u
#define UDP_LEN  8u

_Static_assert(VL_GSO_HEAD_MAX ==
		       ETH_LEN + TAGS_MAX * VLAN_LEN + IP6_LEN + TCP_MAX,
	       "the longest headers");

#define TYPE_IP4   0x0800
#define TYPE_IP6   0x86dd
#define TYPE_VLAN  0x8100
#define TYPE_QINQ  0x88a8
#define PROTO_TCP  6u
#define PROTO_UDP  17u
/* More fragments, and the offset of this one. */
#define FRAGMENTED 0x3fff

/* Offsets in headers. */
#define IP4_TOTAL    2u
#define IP4_ID       4u
#define IP4_FRAGMENT 6u
#define IP4_PROTO    9u
#define IP4_CSUM     10u
#define IP4_ADDRS    12u
#define IP6_PAYLOAD  4u
#define IP6_NEXT     6u
#define IP6_ADDRS    8u
#define TCP_SEQ      4u
#define TCP_DATA     12u
#define TCP_FLAGS    13u
#define TCP_CSUM     16u
#define UDP_TOTAL    4u
#define UDP_CSUM     6u

#define TCP_FIN 0x01u
#define TCP_SYN 0x02u
#define TCP_RST 0x04u
#define TCP_PSH 0x08u
#define TCP_URG 0x20u
#define TCP_CWR 0x80u

static uint16_t load_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t load_be32(const uint8_t *p)
{
	return (uint32_t)load_be16(p) << 16 | load_be16(p + 2);
}

static void store_be16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static void store_be32(uint8_t *p, uint32_t value)
{
	store_be16(p, value >> 16);
	store_be16(p + 2, value);
}

/* Sum of the 16-bit words of @len bytes, an even number (RFC 1071). */
static uint32_t csum_add(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += load_be16(p + i);
	return sum;
}

static uint32_t csum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static uint16_t csum_offset(const struct vl_gso *g)
{
	return g->udp ? UDP_CSUM : TCP_CSUM;
}

/* What kind of frame @hdr says it is: sets g->gso_type, gso_size, udp and
 * ipv6. An ECN bit where none belongs, a tunnel's bit or UFO makes an unknown
 * type. UDP_L4 leaves the IP version to the headers. */
static int parse_type(const struct virtio_net_hdr *hdr, struct vl_gso *g)
{
	g->gso_size = hdr->gso_size;
	g->gso_type = hdr->gso_type;
	switch (hdr->gso_type) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN:
		g->udp = false;
		g->ipv6 = false;
		break;
	case VIRTIO_NET_HDR_GSO_TCPV6:
	case VIRTIO_NET_HDR_GSO_TCPV6 | VIRTIO_NET_HDR_GSO_ECN:
		g->udp = false;
		g->ipv6 = true;
		break;
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		g->udp = true;
		break;
	default:
		return -EINVAL;
	}
	return g->gso_size ? 0 : -EINVAL;
}

/* Steps over VLAN tags: sets g->l3 and, for UDP, g->ipv6. At least the fixed
 * part of the IP header is in @head afterwards. */
static int parse_ether(const uint8_t *head, size_t head_bytes, struct vl_gso *g)
{
	size_t at = ETH_LEN;
	uint16_t type;

	if (head_bytes < ETH_LEN)
		return -EINVAL;
	type = load_be16(head + 12);
	for (unsigned int i = 0;
	     i < TAGS_MAX && (type == TYPE_VLAN || type == TYPE_QINQ); i++) {
		if (head_bytes < at + VLAN_LEN)
			return -EINVAL;
		type = load_be16(head + at + 2);
		at += VLAN_LEN;
	}
	if (g->udp)
		g->ipv6 = type == TYPE_IP6;
	if (type != (g->ipv6 ? TYPE_IP6 : TYPE_IP4) ||
	    head_bytes < at + (g->ipv6 ? IP6_LEN : IP4_LEN))
		return -EINVAL;
	g->l3 = (uint16_t)at;
	return 0;
}

/* The IP header: sets g->l4. */
static int parse_ip(const uint8_t *head, uint32_t frame_len, struct vl_gso *g)
{
	const uint8_t *ip = head + g->l3;
	uint8_t proto = g->udp ? PROTO_UDP : PROTO_TCP;

	if (g->ipv6) {
		g->l4 = (uint16_t)(g->l3 + IP6_LEN);
		if (ip[0] >> 4 != 6 || ip[IP6_NEXT] != proto ||
		    load_be16(ip + IP6_PAYLOAD) != frame_len - g->l4)
			return -EINVAL;
		return 0;
	}
	g->l4 = (uint16_t)(g->l3 + IP4_LEN);
	if (ip[0] != 0x45 || ip[IP4_PROTO] != proto ||
	    load_be16(ip + IP4_FRAGMENT) & FRAGMENTED ||
	    load_be16(ip + IP4_TOTAL) != frame_len - g->l3)
		return -EINVAL;
	return 0;
}

/* The TCP or UDP header, behind which @head ends or goes on: sets
 * g->head_len. */
static int parse_transport(const uint8_t *head, size_t head_bytes,
			   uint32_t frame_len, struct vl_gso *g)
{
	const uint8_t *l4 = head + g->l4;
	size_t len = g->udp ? UDP_LEN : TCP_LEN;

	if (head_bytes < g->l4 + len)
		return -EINVAL;
	if (g->udp) {
		if (load_be16(l4 + UDP_TOTAL) != frame_len - g->l4)
			return -EINVAL;
	} else {
		len = (size_t)(l4[TCP_DATA] >> 4) * 4;
		if (len < TCP_LEN || head_bytes < g->l4 + len ||
		    l4[TCP_FLAGS] & (TCP_SYN | TCP_RST | TCP_URG))
			return -EINVAL;
	}
	g->head_len = (uint16_t)(g->l4 + len);
	return 0;
}

int vl_gso_parse(const struct virtio_net_hdr *hdr, const uint8_t *head,
		 size_t head_bytes, uint32_t frame_len, struct vl_gso *g)
{
	if (!(hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) ||
	    head_bytes > frame_len || parse_type(hdr, g) ||
	    parse_ether(head, head_bytes, g) || parse_ip(head, frame_len, g) ||
	    parse_transport(head, head_bytes, frame_len, g))
		return -EINVAL;
	if (hdr->csum_start != g->l4 || hdr->csum_offset != csum_offset(g))
		return -EINVAL;
	g->payload = frame_len - g->head_len;
	return g->payload > g->gso_size ? 0 : -EINVAL;
}

uint32_t vl_gso_part(const struct vl_gso *g, uint32_t bytes)
{
	if (bytes < g->gso_size)
		return g->gso_size;
	return bytes - bytes % g->gso_size;
}

static void write_ip(const struct vl_gso *g, uint32_t segment, uint32_t len,
		     uint8_t *ip)
{
	if (g->ipv6) {
		store_be16(ip + IP6_PAYLOAD, g->head_len - g->l4 + len);
		return;
	}
	store_be16(ip + IP4_TOTAL, g->head_len - g->l3 + len);
	store_be16(ip + IP4_ID, load_be16(ip + IP4_ID) + segment);
	store_be16(ip + IP4_CSUM, 0);
	store_be16(ip + IP4_CSUM, ~csum_fold(csum_add(ip, IP4_LEN)));
}

/* Sum of the pseudo-header: addresses, protocol, length of transport header
 * and payload. */
static uint32_t pseudo_sum(const struct vl_gso *g, uint32_t len,
			   const uint8_t *ip)
{
	uint32_t sum = g->ipv6 ? csum_add(ip + IP6_ADDRS, 32)
			       : csum_add(ip + IP4_ADDRS, 8);

	return csum_fold(sum + (g->udp ? PROTO_UDP : PROTO_TCP) +
			 (g->head_len - g->l4 + len));
}

void vl_gso_head(const struct vl_gso *g, const uint8_t *head, uint32_t offset,
		 uint32_t len, struct virtio_net_hdr *out_hdr, uint8_t *out)
{
	uint8_t *ip = out + g->l3, *l4 = out + g->l4;

	memcpy(out, head, g->head_len);
	write_ip(g, offset / g->gso_size, len, ip);
	if (g->udp) {
		store_be16(l4 + UDP_TOTAL, UDP_LEN + len);
	} else {
		store_be32(l4 + TCP_SEQ, load_be32(l4 + TCP_SEQ) + offset);
		if (offset)
			l4[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
		if (offset + len < g->payload)
			l4[TCP_FLAGS] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	}
	store_be16(l4 + csum_offset(g), pseudo_sum(g, len, ip));

	*out_hdr = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_NONE,
		.csum_start = g->l4,
		.csum_offset = csum_offset(g),
	};
	if (len <= g->gso_size)
		return;
	out_hdr->gso_type = g->gso_type;
	if (offset)
		out_hdr->gso_type &= (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	out_hdr->gso_size = g->gso_size;
	out_hdr->hdr_len = g->head_len;
}
