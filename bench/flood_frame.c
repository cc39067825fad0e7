/* SPDX-License-Identifier: BSD-3-Clause */
#include "flood_frame.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <stddef.h>
#include <string.h>

#define IP_AT     ETH_HLEN
#define L4_AT     (ETH_HLEN + sizeof(struct iphdr))
#define DISCARD   9           /* the port that throws everything away */
#define BENCH_SRC 0xc6120001u /* 198.18.0.1, RFC 2544 */
#define BENCH_DST 0xc6120002u

_Static_assert(FLOOD_TCP_HEAD == L4_AT + sizeof(struct tcphdr),
	       "all headers of a TCP frame");

static uint32_t sum16(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void put_ip(uint8_t *frame, uint32_t size, uint8_t protocol)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = protocol,
		.tot_len = htons((uint16_t)(size - IP_AT)),
		.saddr = htonl(BENCH_SRC),
		.daddr = htonl(BENCH_DST),
	};

	ip.check = htons((uint16_t)~fold(sum16(&ip, sizeof(ip))));
	memcpy(frame + IP_AT, &ip, sizeof(ip));
}

/* What a driver leaves in the checksum field for the device to complete. */
static uint16_t pseudo_header(uint8_t protocol, uint32_t len)
{
	return htons(fold((BENCH_SRC >> 16) + (BENCH_SRC & 0xffff) +
			  (BENCH_DST >> 16) + (BENCH_DST & 0xffff) + protocol +
			  len));
}

void flood_frame_make(uint8_t *at, uint32_t hdr_len, uint32_t size,
		      uint16_t mss)
{
	static const uint8_t macs[2 * ETH_ALEN] = { 2, 0, 0, 0, 0, 0,
						    2, 0, 0, 0, 0, 1 };
	struct virtio_net_hdr hdr = { 0 };
	uint8_t *frame = at + hdr_len;

	memset(at, 0, hdr_len + size);
	memcpy(frame, macs, sizeof(macs));
	frame[2 * ETH_ALEN] = ETH_P_IP >> 8;
	if (!mss) {
		struct udphdr udp = {
			.source = htons(DISCARD),
			.dest = htons(DISCARD),
			.len = htons((uint16_t)(size - L4_AT)),
		};

		put_ip(frame, size, IPPROTO_UDP);
		memcpy(frame + L4_AT, &udp, sizeof(udp));
		return;
	}
	struct tcphdr tcp = {
		.source = htons(DISCARD),
		.dest = htons(DISCARD),
		.doff = sizeof(tcp) / 4,
		.ack = 1,
		.window = htons(UINT16_MAX),
		.check = pseudo_header(IPPROTO_TCP, size - (uint32_t)L4_AT),
	};
	put_ip(frame, size, IPPROTO_TCP);
	memcpy(frame + L4_AT, &tcp, sizeof(tcp));
	hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	hdr.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	hdr.hdr_len = FLOOD_TCP_HEAD;
	hdr.gso_size = mss;
	hdr.csum_start = L4_AT;
	hdr.csum_offset = offsetof(struct tcphdr, check);
	memcpy(at, &hdr, sizeof(hdr));
}

void flood_frame_partial(uint8_t *at, uint32_t hdr_len, uint32_t size)
{
	const struct virtio_net_hdr hdr = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_start = L4_AT,
		.csum_offset = offsetof(struct udphdr, check),
	};
	uint16_t sum = pseudo_header(IPPROTO_UDP, size - (uint32_t)L4_AT);

	memcpy(at, &hdr, sizeof(hdr));
	memcpy(at + hdr_len + L4_AT + hdr.csum_offset, &sum, sizeof(sum));
}
