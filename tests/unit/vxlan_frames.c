/* SPDX-License-Identifier: BSD-3-Clause */
#include "vxlan_frames.h"

#include <string.h>

static void put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static uint32_t sum(const uint8_t *p, uint32_t len, uint32_t from)
{
	for (uint32_t i = 0; i < len; i++)
		from += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (from >> 16)
		from = (from & 0xffff) + (from >> 16);
	return from;
}

uint8_t vf_byte(uint32_t at)
{
	return (uint8_t)(at * 7 + at / 251);
}

static uint32_t l4_at(const struct vf_frame *f)
{
	return f->ipv6 ? 54 : 34;
}

uint32_t vf_head(const struct vf_frame *f)
{
	return l4_at(f) + (f->tcp ? 20 : 8);
}

static uint32_t pseudo(const struct vf_frame *f, const uint8_t *frame,
		       uint32_t len)
{
	uint32_t l4_len = len - l4_at(f);
	uint32_t from = (f->tcp ? 6u : 17u) + l4_len;

	return f->ipv6 ? sum(frame + 22, 32, from) : sum(frame + 26, 8, from);
}

uint16_t vf_verify(const struct vf_frame *f, const uint8_t *frame, uint32_t len)
{
	uint32_t at = l4_at(f);

	return (uint16_t)~sum(frame + at, len - at, pseudo(f, frame, len));
}

static void put_ip(const struct vf_frame *f, uint8_t *ip, uint32_t len)
{
	if (f->ipv6) {
		ip[0] = 0x60;
		put16(ip + 4, len - 40);
		ip[6] = f->tcp ? 6 : 17;
		ip[7] = 64;
		ip[8] = ip[24] = 0xfd;
		ip[23] = 1;
		ip[39] = 2;
		return;
	}
	ip[0] = 0x45;
	put16(ip + 2, len);
	put16(ip + 4, f->id);
	ip[8] = 64;
	ip[9] = f->tcp ? 6 : 17;
	ip[12] = ip[16] = 10;
	ip[15] = 1;
	ip[19] = 2;
	put16(ip + 10, ~sum(ip, 20, 0));
}

uint32_t vf_frame(const struct vf_frame *f, uint8_t *out)
{
	uint32_t head = vf_head(f), len = head + f->payload, csum;
	uint8_t *l4 = out + l4_at(f);

	memset(out, 0, head);
	out[0] = out[6] = 2;
	put16(out + 10, f->id);
	put16(out + 12, f->ipv6 ? 0x86dd : 0x0800);
	put_ip(f, out + 14, len - 14);
	put16(l4, 1000);
	put16(l4 + 2, 2000);
	if (f->tcp) {
		l4[12] = 0x50;
		l4[13] = f->cwr ? 0x90 : 0x10;
	} else {
		put16(l4 + 4, 8 + f->payload);
	}
	for (uint32_t i = 0; i < f->payload; i++)
		out[head + i] = vf_byte(i);
	if (f->payload >= 2)
		put16(out + head, f->id);
	csum = pseudo(f, out, len);
	if (f->csum != VF_PARTIAL)
		csum = vf_verify(f, out, len);
	if (f->csum == VF_BAD)
		csum ^= 0x5555;
	put16(l4 + (f->tcp ? 16 : 6), csum);
	return len;
}

uint32_t vf_datagram(const struct vf_frame *f, uint32_t vni, uint8_t *out)
{
	memset(out, 0, 8);
	out[0] = 8;
	put16(out + 4, vni >> 8);
	out[6] = (uint8_t)vni;
	return 8 + vf_frame(f, out + 8);
}
