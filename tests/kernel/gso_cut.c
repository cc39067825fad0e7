/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane/gso leans on how the kernel segments: a frame that is written to a tap
 * whole, and the same one in parts, have to leave a port that segments and
 * checksums in software as the same bytes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/uapi.h"
#include "kernel.h"
#include "lane/gso.h"

#define VNET    10u /* of the packet socket */
#define PAYLOAD 65000u
#define FIN_PSH 0x09u
#define ECE_CWR 0xc0u
#define ACK     0x10u

struct frame_case {
	const char *text;
	bool ipv6, udp;
	unsigned int tags;
	uint8_t flags; /* TCP, besides ACK */
	bool no_ecn;   /* CWR that gso_type does not tell of */
	uint16_t gso_size;
	uint32_t payload;
};

static const struct frame_case cases[] = {
	{ "TCP over IPv4", .gso_size = 1448, .payload = PAYLOAD },
	{ "TCP over IPv6", .ipv6 = true, .gso_size = 1428, .payload = PAYLOAD },
	{ "UDP over IPv4", .udp = true, .gso_size = 1472, .payload = PAYLOAD },
	{ "UDP over IPv6", .ipv6 = true, .udp = true, .gso_size = 1452,
	  .payload = PAYLOAD },
	{ "TCP over IPv4 with a VLAN tag", .tags = 1, .gso_size = 1448,
	  .payload = PAYLOAD },
	{ "TCP over IPv6 with two", .ipv6 = true, .tags = 2, .gso_size = 1428,
	  .payload = PAYLOAD },
	{ "UDP over IPv4 with two", .udp = true, .tags = 2, .gso_size = 1400,
	  .payload = PAYLOAD },
	{ "UDP over IPv6 with one", .ipv6 = true, .udp = true, .tags = 1,
	  .gso_size = 1400, .payload = PAYLOAD },
	{ "TCP over IPv4 with FIN and PSH", .flags = FIN_PSH, .gso_size = 1448,
	  .payload = PAYLOAD },
	{ "TCP over IPv6 with FIN and PSH", .ipv6 = true, .flags = FIN_PSH,
	  .gso_size = 1428, .payload = PAYLOAD },
	{ "TCP over IPv4 with CWR", .flags = ECE_CWR, .gso_size = 1448,
	  .payload = PAYLOAD },
	{ "the same without GSO_ECN", .flags = ECE_CWR, .no_ecn = true,
	  .gso_size = 1448, .payload = PAYLOAD },
	{ "TCP over IPv6 with all of these", .ipv6 = true, .tags = 1,
	  .flags = FIN_PSH | ECE_CWR, .gso_size = 1428, .payload = PAYLOAD },
	{ "small segments", .flags = FIN_PSH, .gso_size = 200,
	  .payload = 20000 },
	{ "whole segments only", .flags = FIN_PSH, .gso_size = 1000,
	  .payload = 42000 },
};

/* Where frames go in, and where they come out. */
struct rig {
	int tap, packet;
};

/* Segments as they came: each its length, its outer VLAN tag, its bytes. */
struct capture {
	unsigned int n;
	uint32_t len;
	uint8_t bytes[1 << 18];
};

static struct capture whole, parts;
static uint8_t frame[VL_GSO_HEAD_MAX + PAYLOAD];

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* The partial checksum: addresses, protocol, length. */
static uint32_t pseudo_sum(const uint8_t *addrs, size_t n, uint32_t rest)
{
	for (size_t i = 0; i < n; i++)
		rest += i & 1 ? addrs[i] : (uint32_t)addrs[i] << 8;
	rest = (rest & 0xffff) + (rest >> 16);
	return (rest & 0xffff) + (rest >> 16);
}

/* Writes the frame of @c, returns its length. */
static uint32_t build(const struct frame_case *c, struct virtio_net_hdr *hdr)
{
	uint32_t l3 = 14 + 4 * c->tags, l4 = l3 + (c->ipv6 ? 40 : 20);
	uint32_t head = l4 + (c->udp ? 8 : 32), len = head + c->payload;
	uint8_t *ip = frame + l3, *tp = frame + l4, proto = c->udp ? 17 : 6;

	for (uint32_t i = 0; i < len; i++)
		frame[i] = (uint8_t)rand();
	memset(frame, 2, 6);
	memset(frame + 6, 4, 6);
	for (uint32_t i = 0; i < c->tags; i++)
		put16(frame + 12 + 4 * i, i + 1 < c->tags ? 0x88a8 : 0x8100);
	put16(frame + l3 - 2, c->ipv6 ? 0x86dd : 0x0800);
	ip[0] = c->ipv6 ? 0x60 : 0x45;
	if (c->ipv6) {
		put16(ip + 4, len - l4);
		ip[6] = proto;
	} else {
		put16(ip + 2, len - l3);
		put16(ip + 4, 0xfff0);
		put16(ip + 6, 0x4000);
		ip[9] = proto;
	}
	if (c->udp) {
		put16(tp + 4, len - l4);
	} else {
		put16(tp + 4, 0xffff);
		tp[12] = 0x80;
		tp[13] = ACK | c->flags;
	}
	*hdr = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = c->udp    ? VIRTIO_NET_HDR_GSO_UDP_L4
			    : c->ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6
				      : VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = (uint16_t)head,
		.gso_size = c->gso_size,
		.csum_start = (uint16_t)l4,
		.csum_offset = c->udp ? 6 : 16,
	};
	if (c->flags & ECE_CWR && !c->no_ecn)
		hdr->gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	put16(tp + hdr->csum_offset,
	      pseudo_sum(ip + (c->ipv6 ? 8 : 12), c->ipv6 ? 32 : 8,
			 proto + (len - l4)));
	return len;
}

/* Writes a virtio header, headers, and payload from @payload on. */
static void send_frame(int tap, const struct virtio_net_hdr *hdr,
		       const uint8_t *head, uint32_t head_len,
		       const uint8_t *payload, uint32_t len)
{
	struct virtio_net_hdr_mrg_rxbuf h = { .hdr = *hdr };
	struct iovec iov[] = {
		{ &h, sizeof(h) },
		{ (void *)(uintptr_t)head, head_len },
		{ (void *)(uintptr_t)payload, len },
	};

	if (writev(tap, iov, 3) != (ssize_t)(sizeof(h) + head_len + len))
		broken("write to the tap");
}

/* Appends one segment, false when none came. */
static bool receive(int packet, struct capture *c)
{
	uint8_t control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	uint8_t buf[VNET + 2048], *to = c->bytes + c->len;
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct tpacket_auxdata aux = { 0 };
	struct virtio_net_hdr hdr;
	ssize_t len;

	if (!ready(packet, 1 /* POLLIN */, 100))
		return false;
	len = recvmsg(packet, &m, 0);
	if (len < (ssize_t)VNET || m.msg_flags & MSG_TRUNC ||
	    !CMSG_FIRSTHDR(&m))
		broken("receive");
	memcpy(&aux, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(aux));
	memcpy(&hdr, buf, sizeof(hdr));
	if (hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM || hdr.gso_type) {
		errno = EPROTO;
		broken("the port does not segment");
	}
	len -= VNET;
	if (c->len + 8 + (uint32_t)len > sizeof(c->bytes)) {
		errno = ENOBUFS;
		broken("capture");
	}
	put16(to, (uint32_t)len);
	put16(to + 2, aux.tp_vlan_tpid);
	put16(to + 4, aux.tp_vlan_tci);
	memcpy(to + 6, buf + VNET, (size_t)len);
	c->len += 6 + (uint32_t)len;
	c->n++;
	return true;
}

/* All segments that come, @want if all goes well. */
static void capture(int packet, struct capture *c, unsigned int want)
{
	c->n = 0;
	c->len = 0;
	while (c->n < want && receive(packet, c))
		;
}

/* Sends the frame of @c, whole and in parts of @n segments, and captures both.
 * Returns whether every segment came. */
static bool send_both(const struct rig *r, const struct frame_case *c,
		      const struct virtio_net_hdr *hdr, uint32_t len,
		      uint32_t n)
{
	unsigned int want = (c->payload + c->gso_size - 1) / c->gso_size;
	struct virtio_net_hdr out_hdr;
	uint8_t out[VL_GSO_HEAD_MAX];
	uint32_t step;
	struct vl_gso g;

	if (vl_gso_parse(hdr, frame, VL_GSO_HEAD_MAX, len, &g))
		return false;
	send_frame(r->tap, hdr, frame, g.head_len, frame + g.head_len,
		   g.payload);
	capture(r->packet, &whole, want);
	step = vl_gso_part(&g, n * c->gso_size);
	for (uint32_t at = 0; at < g.payload; at += step) {
		uint32_t left = g.payload - at;
		uint32_t size = left < step ? left : step;

		vl_gso_head(&g, frame, at, size, &out_hdr, out);
		send_frame(r->tap, &out_hdr, out, g.head_len,
			   frame + g.head_len + at, size);
	}
	capture(r->packet, &parts, want);
	return whole.n == want && parts.n == want && !ready(r->packet, 1, 0);
}

/* Cut into parts of @n segments, is @c the same on the other side? */
static bool same_in_parts(const struct rig *r, const struct frame_case *c,
			  uint32_t n)
{
	struct virtio_net_hdr hdr;
	uint32_t len = build(c, &hdr);

	if (send_both(r, c, &hdr, len, n) && whole.len == parts.len &&
	    !memcmp(whole.bytes, parts.bytes, whole.len))
		return true;
	printf("%s, parts of %u: %u and %u segments, %u and %u bytes\n",
	       c->text, n, whole.n, parts.n, whole.len, parts.len);
	return false;
}

/* The one difference: TCP data whose checksum is 0 (or 0xffff, which is the
 * same to a receiver). */
static void checksum_of_zero(const struct rig *r)
{
	const struct frame_case *c = &cases[0];
	/* Of the first segment: behind its length and tag. */
	const uint8_t *a = whole.bytes + 6 + 34 + 16;
	const uint8_t *b = parts.bytes + 6 + 34 + 16;
	uint8_t *word = frame + 34 + 32 + 100;
	struct virtio_net_hdr hdr;
	uint32_t len = build(c, &hdr);

	memset(word, 0, 2);
	if (!send_both(r, c, &hdr, len, 1))
		broken("segments");
	memcpy(word, a, 2);
	if (!send_both(r, c, &hdr, len, 2))
		broken("segments");
	fact(!memcmp(a, "\0\0", 2) && !memcmp(b, "\0\0", 2),
	     "a TCP checksum of 0 is left so in a frame that is segmented");
	if (!send_both(r, c, &hdr, len, 1))
		broken("segments");
	fact(!memcmp(a, "\0\0", 2) && !memcmp(b, "\xff\xff", 2),
	     "and is 0xffff in a frame of one segment");
}

/* tap0 and a port that can nothing but take finished frames; what leaves it
 * comes to v1. */
static void make_network(void)
{
	command("ip link add br0 type bridge && "
		"ip link add s1 type veth peer name v1 && "
		"ip link set s1 master br0 && ip link set tap0 master br0 && "
		"for i in tap0 br0 s1 v1; do ip link set $i up; done");
	command("f=/proc/sys/net/bridge/bridge-nf-call-iptables; "
		"[ ! -e $f ] || echo 0 > $f");
	if (system("ethtool -K s1 tx off tso off gso off " /* NOLINT */
		   "tx-udp-segmentation off >/dev/null") != 0)
		skip("needs ethtool");
}

static int open_capture(void)
{
	int packet = open_packet("v1"), on = 1, bytes = 4 << 20;

	if (setsockopt(packet, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) <
		    0 ||
	    setsockopt(packet, SOL_SOCKET, SO_RCVBUFFORCE, &bytes,
		       sizeof(bytes)) < 0)
		broken("setsockopt");
	return packet;
}

/* The bridge forwards after a moment; what it sends itself is thrown away. */
static void wait_for_bridge(const struct rig *r)
{
	struct virtio_net_hdr hdr = { 0 };
	static const uint8_t hello[60] = { 2, 2, 2, 2, 2, 2, 4,
					   4, 4, 4, 4, 4, 8, 6 };
	unsigned int i = 0;

	do {
		send_frame(r->tap, &hdr, hello, sizeof(hello), NULL, 0);
		capture(r->packet, &whole, 1);
	} while (!whole.n && ++i < 50);
	while (receive(r->packet, &whole))
		;
}

int main(void)
{
	static const uint32_t sizes[] = { 1, 2, 3, 7 };
	struct rig r;

	own_network();
	r.tap = open_tap("tap0", false);
	make_network();
	r.packet = open_capture();
	wait_for_bridge(&r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[120];
		bool same = true;

		for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
			same &= same_in_parts(&r, &cases[i], sizes[k]);
		snprintf(text, sizeof(text),
			 "%s: a frame in parts gives the same segments",
			 cases[i].text);
		fact(same, text);
	}
	checksum_of_zero(&r);
	return facts_status();
}
