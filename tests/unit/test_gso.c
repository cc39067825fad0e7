/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cutting frames that wait for segmentation: the segments of the parts against
 * those of the whole, by a model of the kernel that shares nothing with the
 * module; each field; each refusal; random bytes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/uapi.h"
#include "lane/gso.h"

#define FIN   0x01
#define SYN   0x02
#define RST   0x04
#define PSH   0x08
#define ACK   0x10
#define URG   0x20
#define ECE   0x40
#define CWR   0x80
#define ECN   VIRTIO_NET_HDR_GSO_ECN
#define NEEDS VIRTIO_NET_HDR_F_NEEDS_CSUM

/* What a frame is made of. */
struct spec {
	bool ipv6, udp;
	unsigned int tags, options; /* VLAN tags; bytes of TCP options */
	uint8_t flags, ecn;         /* TCP flags; 0 or ECN */
	uint16_t gso_size, id;
	uint32_t seq, payload;
};

struct frame {
	struct virtio_net_hdr hdr;
	uint32_t len, head_len, l3, l4;
	uint8_t bytes[66000];
};

/* Segments one behind the other, each with its length in front. */
struct wire {
	uint32_t segments, len;
	uint8_t bytes[8 << 20];
};

static struct frame frame, part;
static struct wire whole, parts;

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) << 16 | get16(p + 2);
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

/* Checksum arithmetic on native words, byte by byte: it does not matter in
 * which byte order (RFC 1071, 2 B), so this is not what the module does. */
static uint16_t sum(const uint8_t *p, size_t n, uint32_t start)
{
	for (size_t i = 0; i < n; i++)
		start += i & 1 ? (uint32_t)p[i] << 8 : p[i];
	while (start >> 16)
		start = (start & 0xffff) + (start >> 16);
	return (uint16_t)start;
}

/* The pseudo-header as bytes (RFC 793, RFC 8200), then their sum. */
static uint16_t pseudo(const uint8_t *ip, bool udp, uint32_t len)
{
	uint8_t b[40] = { 0 };
	bool ipv6 = ip[0] >> 4 == 6;

	memcpy(b, ip + (ipv6 ? 8 : 12), ipv6 ? 32 : 8);
	put32(b + 32, len);
	b[39] = udp ? 17 : 6;
	return sum(b, sizeof(b), 0);
}

static uint8_t *csum_field(struct frame *f)
{
	return f->bytes + f->hdr.csum_start + f->hdr.csum_offset;
}

static void build_ip(struct frame *f, const struct spec *s)
{
	uint8_t *ip = f->bytes + f->l3;

	for (unsigned int i = 0; i < 40; i++)
		ip[i] = (uint8_t)(17 * i + 3);
	if (s->ipv6) {
		memcpy(ip, "\x60\x12\x34\x56", 4);
		put16(ip + 4, f->len - f->l4);
		ip[6] = s->udp ? 17 : 6;
		return;
	}
	memcpy(ip, "\x45\x02", 2);
	put16(ip + 2, f->len - f->l3);
	put16(ip + 4, s->id);
	memcpy(ip + 6, "\x40\x00\x3f", 3);
	ip[9] = s->udp ? 17 : 6;
	memset(ip + 10, 0, 2);
	memcpy(ip + 10, &(uint16_t){ (uint16_t)~sum(ip, 20, 0) }, 2);
}

static void build(struct frame *f, const struct spec *s)
{
	uint8_t *l4;
	uint16_t start;

	f->l3 = 14 + 4 * s->tags;
	f->l4 = f->l3 + (s->ipv6 ? 40 : 20);
	f->head_len = f->l4 + (s->udp ? 8 : 20 + s->options);
	f->len = f->head_len + s->payload;
	for (uint32_t i = 0; i < f->len; i++)
		f->bytes[i] = (uint8_t)rand();
	for (unsigned int i = 0; i < s->tags; i++)
		put16(f->bytes + 12 + 4 * i, i ? 0x8100 : 0x88a8);
	if (s->tags == 1)
		put16(f->bytes + 12, 0x8100);
	put16(f->bytes + f->l3 - 2, s->ipv6 ? 0x86dd : 0x0800);
	build_ip(f, s);
	l4 = f->bytes + f->l4;
	if (s->udp) {
		put16(l4 + 4, f->len - f->l4);
	} else {
		put32(l4 + 4, s->seq);
		l4[12] = (uint8_t)((20 + s->options) << 2);
		l4[13] = s->flags;
	}
	f->hdr = (struct virtio_net_hdr){
		.flags = NEEDS,
		.gso_type = s->udp    ? VIRTIO_NET_HDR_GSO_UDP_L4
			    : s->ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6 | s->ecn
				      : VIRTIO_NET_HDR_GSO_TCPV4 | s->ecn,
		.hdr_len = (uint16_t)f->head_len,
		.gso_size = s->gso_size,
		.csum_start = (uint16_t)f->l4,
		.csum_offset = s->udp ? 6 : 16,
	};
	start = pseudo(f->bytes + f->l3, s->udp, f->len - f->l4);
	memcpy(csum_field(f), &start, 2);
}

/* What the network sees of a frame that needs no segmentation: the checksum
 * is completed; the receiver checks both. */
static void transmit(struct wire *w, struct frame *f, bool udp)
{
	const uint8_t *ip = f->bytes + f->l3, *l4 = f->bytes + f->l4;
	uint16_t c = (uint16_t)~sum(l4, f->len - f->l4, 0);

	if (!c)
		c = 0xffff;
	memcpy(csum_field(f), &c, 2);
	assert_int_equal(
		sum(l4, f->len - f->l4, pseudo(ip, udp, f->len - f->l4)),
		0xffff);
	if (ip[0] >> 4 == 4)
		assert_int_equal(sum(ip, 20, 0), 0xffff);
	assert_true(w->len + 4 + f->len <= sizeof(w->bytes));
	memcpy(w->bytes + w->len, &f->len, 4);
	memcpy(w->bytes + w->len + 4, f->bytes, f->len);
	w->len += 4 + f->len;
	w->segments++;
}

/* The kernel's software segmentation. It corrects the partial checksum by the
 * difference of the lengths. */
static void segment(struct wire *w, struct frame *f, bool udp)
{
	static struct frame s;
	uint32_t payload = f->len - f->head_len, size = f->hdr.gso_size;

	if (f->hdr.gso_type == VIRTIO_NET_HDR_GSO_NONE) {
		transmit(w, f, udp);
		return;
	}
	s.hdr = f->hdr;
	s.l3 = f->l3;
	s.l4 = f->l4;
	for (uint32_t at = 0, i = 0; at < payload; at += size, i++) {
		uint32_t n = payload - at < size ? payload - at : size;
		uint8_t *ip = s.bytes + s.l3, *l4 = s.bytes + s.l4;
		uint8_t len[4];

		memcpy(s.bytes, f->bytes, f->head_len);
		memcpy(s.bytes + f->head_len, f->bytes + f->head_len + at, n);
		s.len = f->head_len + n;
		put16(len, s.len - s.l4);
		put16(len + 2, ~(f->len - f->l4));
		memcpy(csum_field(&s),
		       &(uint16_t){ sum(len, 4, sum(csum_field(f), 2, 0)) }, 2);
		if (ip[0] >> 4 == 6) {
			put16(ip + 4, s.len - s.l4);
		} else {
			put16(ip + 2, s.len - s.l3);
			put16(ip + 4, get16(ip + 4) + i);
			memset(ip + 10, 0, 2);
			memcpy(ip + 10,
			       &(uint16_t){ (uint16_t)~sum(ip, 20, 0) }, 2);
		}
		if (udp) {
			put16(l4 + 4, s.len - s.l4);
		} else {
			put32(l4 + 4, get32(l4 + 4) + at);
			if (at)
				l4[13] &= (uint8_t)~CWR;
			if (at + n < payload)
				l4[13] &= (uint8_t) ~(FIN | PSH);
		}
		transmit(w, &s, udp);
	}
}

/* Parses from an allocation of just what may be read. */
static int parse_head(const struct virtio_net_hdr *hdr, const uint8_t *bytes,
		      size_t head_bytes, uint32_t len, struct vl_gso *g)
{
	uint8_t *head = malloc(head_bytes ? head_bytes : 1);
	int err;

	assert_non_null(head);
	memcpy(head, bytes, head_bytes);
	memset(g, 0xee, sizeof(*g));
	err = vl_gso_parse(hdr, head, head_bytes, len, g);
	free(head);
	assert_true(err == 0 || err == -EINVAL);
	return err;
}

static int parse(const struct frame *f, struct vl_gso *g)
{
	size_t n = f->len < VL_GSO_HEAD_MAX ? f->len : VL_GSO_HEAD_MAX;

	return parse_head(&f->hdr, f->bytes, n, f->len, g);
}

/* Makes the part at @offset, in allocations of just what may be accessed. */
static void cut(const struct vl_gso *g, const struct frame *f, uint32_t offset,
		uint32_t len)
{
	uint8_t *head = malloc(g->head_len), *out = malloc(g->head_len);

	assert_non_null(head);
	assert_non_null(out);
	memcpy(head, f->bytes, g->head_len);
	vl_gso_head(g, head, offset, len, &part.hdr, out);
	assert_memory_equal(head, f->bytes, g->head_len);
	memcpy(part.bytes, out, g->head_len);
	free(head);
	free(out);
	memcpy(part.bytes + g->head_len, f->bytes + g->head_len + offset, len);
	part.len = g->head_len + len;
	part.head_len = g->head_len;
	part.l3 = g->l3;
	part.l4 = g->l4;
}

/* The segments of parts of @n segments, and of the whole. */
static void assert_same_segments(const struct spec *s, uint32_t n)
{
	uint32_t step;
	struct vl_gso g;

	build(&frame, s);
	assert_int_equal(parse(&frame, &g), 0);
	assert_int_equal(g.l3, frame.l3);
	assert_int_equal(g.l4, frame.l4);
	assert_int_equal(g.head_len, frame.head_len);
	assert_int_equal(g.gso_size, s->gso_size);
	assert_int_equal(g.payload, s->payload);
	assert_int_equal(g.ipv6, s->ipv6);
	assert_int_equal(g.udp, s->udp);
	whole.len = parts.len = whole.segments = parts.segments = 0;
	step = vl_gso_part(&g, n * s->gso_size);
	assert_int_equal(step, n * s->gso_size);
	for (uint32_t at = 0; at < s->payload; at += step) {
		uint32_t left = s->payload - at;

		cut(&g, &frame, at, left < step ? left : step);
		segment(&parts, &part, s->udp);
	}
	segment(&whole, &frame, s->udp);
	assert_int_equal(whole.segments,
			 (s->payload + s->gso_size - 1) / s->gso_size);
	assert_int_equal(parts.segments, whole.segments);
	assert_int_equal(parts.len, whole.len);
	assert_memory_equal(parts.bytes, whole.bytes, whole.len);
}

static void segments_are_the_same(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2000; i++) {
		bool udp = i & 1;
		struct spec s = {
			.ipv6 = i & 2,
			.udp = udp,
			.tags = i / 4 % 3,
			.options = 4 * ((unsigned int)rand() % 11),
			.flags = (uint8_t)(rand() & ~(SYN | RST | URG)),
			.ecn = rand() & 1 ? ECN : 0,
			.gso_size = (uint16_t)(i % 7 ? 100 + rand() % 9000
						     : 1 + rand() % 100),
			.id = (uint16_t)rand(),
			.seq = (uint32_t)rand() * 2 + (rand() & 1),
		};

		s.payload =
			s.gso_size + 1u + (uint32_t)rand() % (s.gso_size * 20u);
		if (s.payload > 65535 - 80)
			s.payload = 65535 - 80;
		assert_same_segments(&s, 1 + i % 9);
	}
}

/* As long as lengths allow. */
static void largest_frames(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct spec s = {
			.ipv6 = i & 1,
			.udp = i & 2,
			.tags = i & 4 ? 2 : 0,
			.options = i & 8 ? 40 : 0,
			.flags = 0xd9,
			.gso_size = 1400,
			.id = 0xfff0,
			.seq = 0xffffff00,
		};

		s.payload = 65535 - (s.ipv6 ? 0 : 20) -
			    (s.udp ? 8 : 20 + s.options);
		assert_same_segments(&s, 3);
		if (s.ipv6 && !s.udp && s.options && s.tags)
			assert_int_equal(frame.head_len, VL_GSO_HEAD_MAX);
	}
}

/* Everything that is written, against numbers. */
static void fields_of_tcp4(void **state)
{
	struct spec s = { .options = 12,
			  .flags = FIN | PSH | ACK | ECE | CWR,
			  .ecn = ECN,
			  .gso_size = 1000,
			  .id = 0xfffe,
			  .seq = 0xfffff830,
			  .payload = 5500 };
	const uint8_t *ip = part.bytes + 14, *l4 = part.bytes + 34;
	struct vl_gso g;

	(void)state;
	build(&frame, &s);
	assert_int_equal(parse(&frame, &g), 0);

	cut(&g, &frame, 0, 2000);
	assert_int_equal(part.hdr.flags, NEEDS);
	assert_int_equal(part.hdr.gso_type, VIRTIO_NET_HDR_GSO_TCPV4 | ECN);
	assert_int_equal(part.hdr.gso_size, 1000);
	assert_int_equal(part.hdr.hdr_len, 66);
	assert_int_equal(part.hdr.csum_start, 34);
	assert_int_equal(part.hdr.csum_offset, 16);
	assert_int_equal(get16(ip + 2), 52 + 2000);
	assert_int_equal(get16(ip + 4), 0xfffe);
	assert_int_equal(get32(l4 + 4), 0xfffff830);
	assert_int_equal(l4[13], ACK | ECE | CWR);

	cut(&g, &frame, 2000, 3000);
	assert_int_equal(part.hdr.gso_type, VIRTIO_NET_HDR_GSO_TCPV4);
	assert_int_equal(get16(ip + 4), 0);
	assert_int_equal(get32(l4 + 4), 0);
	assert_int_equal(l4[13], ACK | ECE);
	assert_memory_equal(csum_field(&part),
			    &(uint16_t){ pseudo(ip, false, 32 + 3000) }, 2);

	cut(&g, &frame, 5000, 500);
	assert_int_equal(part.hdr.flags, NEEDS);
	assert_int_equal(part.hdr.gso_type, VIRTIO_NET_HDR_GSO_NONE);
	assert_int_equal(part.hdr.gso_size, 0);
	assert_int_equal(part.hdr.hdr_len, 0);
	assert_int_equal(part.hdr.csum_start, 34);
	assert_int_equal(part.hdr.csum_offset, 16);
	assert_int_equal(get16(ip + 2), 52 + 500);
	assert_int_equal(get16(ip + 4), 3);
	assert_int_equal(get32(l4 + 4), 3000);
	assert_int_equal(l4[13], FIN | PSH | ACK | ECE);

	/* The first segment alone: CWR stays, nothing tells the kernel. */
	cut(&g, &frame, 0, 1000);
	assert_int_equal(part.hdr.gso_type, VIRTIO_NET_HDR_GSO_NONE);
	assert_int_equal(l4[13], ACK | ECE | CWR);
	/* One byte more is two segments. */
	cut(&g, &frame, 4000, 1500);
	assert_int_equal(part.hdr.gso_type, VIRTIO_NET_HDR_GSO_TCPV4);
}

static void fields_of_udp6(void **state)
{
	struct spec s = { .ipv6 = true,
			  .udp = true,
			  .tags = 1,
			  .gso_size = 1200,
			  .payload = 4000 };
	const uint8_t *ip = part.bytes + 18, *l4 = part.bytes + 58;
	struct vl_gso g;

	(void)state;
	build(&frame, &s);
	assert_int_equal(parse(&frame, &g), 0);
	cut(&g, &frame, 1200, 2800);
	assert_int_equal(part.hdr.gso_type, VIRTIO_NET_HDR_GSO_UDP_L4);
	assert_int_equal(part.hdr.gso_size, 1200);
	assert_int_equal(part.hdr.hdr_len, 66);
	assert_int_equal(part.hdr.csum_start, 58);
	assert_int_equal(part.hdr.csum_offset, 6);
	assert_int_equal(get16(ip + 4), 2808);
	assert_int_equal(get16(l4 + 4), 2808);
	assert_memory_equal(csum_field(&part),
			    &(uint16_t){ pseudo(ip, true, 2808) }, 2);
	/* Ports, addresses, flow label, tag. */
	assert_memory_equal(part.bytes, frame.bytes, 18 + 4);
	assert_memory_equal(ip + 6, frame.bytes + 24, 34 + 4);
}

static void sizes_of_parts(void **state)
{
	struct vl_gso g = { .gso_size = 1448, .payload = 65000 };

	(void)state;
	assert_int_equal(vl_gso_part(&g, 0), 1448);
	assert_int_equal(vl_gso_part(&g, 1448), 1448);
	assert_int_equal(vl_gso_part(&g, 2895), 1448);
	assert_int_equal(vl_gso_part(&g, 2896), 2896);
	assert_int_equal(vl_gso_part(&g, UINT32_MAX) % 1448, 0);
	assert_true(vl_gso_part(&g, UINT32_MAX) > g.payload);
	g.gso_size = 1;
	assert_int_equal(vl_gso_part(&g, 4000), 4000);
	g.gso_size = 65535;
	assert_int_equal(vl_gso_part(&g, 4000), 65535);
}

/* What is wrong with a frame that was good: a byte of the frame, counted from
 * its L3 or L4 header, or one field of the virtio header. */
enum where {
	ETH,
	L3,
	L4
};

static void refuse_byte(const struct spec *s, enum where w, uint32_t at,
			uint8_t value)
{
	struct vl_gso g;

	build(&frame, s);
	assert_int_equal(parse(&frame, &g), 0);
	at += w == L3 ? frame.l3 : w == L4 ? frame.l4 : 0;
	assert_int_not_equal(frame.bytes[at], value);
	frame.bytes[at] = value;
	assert_int_equal(parse(&frame, &g), -EINVAL);
}

static const struct spec tcp4 = { .flags = ACK,
				  .gso_size = 1000,
				  .payload = 4000 };
static const struct spec tcp6 = {
	.ipv6 = true, .flags = ACK, .gso_size = 1000, .payload = 4000
};
static const struct spec udp4 = { .udp = true,
				  .gso_size = 1000,
				  .payload = 4000 };
static const struct spec udp6 = {
	.ipv6 = true, .udp = true, .gso_size = 1000, .payload = 4000
};

static void refused_headers(void **state)
{
	(void)state;
	refuse_byte(&tcp4, ETH, 12, 0x86); /* type */
	refuse_byte(&tcp4, ETH, 13, 0x06);
	refuse_byte(&tcp4, L3, 0, 0x46); /* options */
	refuse_byte(&tcp4, L3, 0, 0x44);
	refuse_byte(&tcp4, L3, 0, 0x65); /* version */
	refuse_byte(&tcp4, L3, 2, 0x0e); /* total length */
	refuse_byte(&tcp4, L3, 3, 0x00);
	refuse_byte(&tcp4, L3, 6, 0x20); /* more fragments */
	refuse_byte(&tcp4, L3, 6, 0x01); /* offset */
	refuse_byte(&tcp4, L3, 7, 0x01);
	refuse_byte(&tcp4, L3, 9, 17); /* protocol */
	refuse_byte(&udp4, L3, 9, 6);
	refuse_byte(&tcp6, L3, 0, 0x40);
	refuse_byte(&tcp6, L3, 4, 0); /* payload length */
	refuse_byte(&tcp6, L3, 5, 0);
	refuse_byte(&tcp6, L3, 6, 17); /* next header */
	refuse_byte(&tcp6, L3, 6, 0);
	refuse_byte(&udp6, L3, 6, 44);
	refuse_byte(&udp6, L3, 6, 6);
	refuse_byte(&tcp4, L4, 12, 0x40); /* data offset */
	refuse_byte(&tcp4, L4, 12, 0x00);
	refuse_byte(&tcp4, L4, 13, ACK | SYN);
	refuse_byte(&tcp4, L4, 13, ACK | RST);
	refuse_byte(&tcp6, L4, 13, ACK | URG);
	refuse_byte(&udp4, L4, 4, 0); /* length */
	refuse_byte(&udp6, L4, 5, 1);
}

/* A jumbogram's payload length. */
static void refused_payload_length_0(void **state)
{
	struct vl_gso g;

	(void)state;
	for (int udp = 0; udp < 2; udp++) {
		build(&frame, udp ? &udp6 : &tcp6);
		put16(frame.bytes + 18, 0);
		assert_int_equal(parse(&frame, &g), -EINVAL);
	}
	build(&frame, &udp4);
	put16(frame.bytes + 38, 0);
	assert_int_equal(parse(&frame, &g), -EINVAL);
}

static void refused_tags(void **state)
{
	struct spec s = tcp4;
	struct vl_gso g;

	(void)state;
	s.tags = 3;
	build(&frame, &s);
	assert_int_equal(parse(&frame, &g), -EINVAL);
	s.tags = 1;
	build(&frame, &s);
	put16(frame.bytes + 12, 0x88a8);
	assert_int_equal(parse(&frame, &g), 0);
	put16(frame.bytes + 12, 0x9100);
	assert_int_equal(parse(&frame, &g), -EINVAL);
}

/* The virtio header of @s with one field changed. */
#define REFUSE_FIELD(s, field, value)                                          \
	do {                                                                   \
		struct vl_gso refused_;                                        \
		build(&frame, s);                                              \
		assert_int_equal(parse(&frame, &refused_), 0);                 \
		frame.hdr.field = (value);                                     \
		assert_int_equal(parse(&frame, &refused_), -EINVAL);           \
	} while (0)

static void refused_virtio_headers(void **state)
{
	static const struct spec *all[] = { &tcp4, &tcp6, &udp4, &udp6 };
	/* The one type that each is, ECN aside. */
	static const int type[] = { 1, 4, 5, 5 };

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		bool udp = i > 1;

		for (int t = 0; t < 256; t++) {
			struct vl_gso g;
			bool ok =
				t == type[i] || (!udp && t == (type[i] | ECN));

			build(&frame, all[i]);
			frame.hdr.gso_type = (uint8_t)t;
			assert_int_equal(parse(&frame, &g), ok ? 0 : -EINVAL);
		}
		REFUSE_FIELD(all[i], flags, 0);
		REFUSE_FIELD(all[i], flags, VIRTIO_NET_HDR_F_DATA_VALID);
		REFUSE_FIELD(all[i], gso_size, 0);
		REFUSE_FIELD(all[i], gso_size, 4000);
		REFUSE_FIELD(all[i], gso_size, 65535);
		REFUSE_FIELD(all[i], csum_start,
			     (uint16_t)(frame.hdr.csum_start + 1));
		REFUSE_FIELD(all[i], csum_start,
			     (uint16_t)(frame.hdr.csum_start - 4));
		REFUSE_FIELD(all[i], csum_start, 0);
		REFUSE_FIELD(all[i], csum_offset, udp ? 16 : 6);
		REFUSE_FIELD(all[i], csum_offset, 65535);
	}
}

/* hdr_len is a hint that nothing is made of. */
static void header_length_is_not_used(void **state)
{
	struct vl_gso g;

	(void)state;
	build(&frame, &tcp4);
	frame.hdr.hdr_len = 65535;
	assert_int_equal(parse(&frame, &g), 0);
	frame.hdr.hdr_len = 0;
	assert_int_equal(parse(&frame, &g), 0);
	cut(&g, &frame, 0, 2000);
	assert_int_equal(part.hdr.hdr_len, 54);
}

/* Bytes missing or too many, in the frame and in what was copied of it. */
static void refused_lengths(void **state)
{
	static const struct spec *all[] = { &tcp4, &tcp6, &udp4, &udp6 };
	struct vl_gso g;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct spec s = *all[i];

		build(&frame, &s);
		for (uint32_t n = 0; n < frame.head_len; n++) {
			assert_int_equal(parse_head(&frame.hdr, frame.bytes, n,
						    frame.len, &g),
					 -EINVAL);
			assert_int_equal(
				parse_head(&frame.hdr, frame.bytes, n, n, &g),
				-EINVAL);
		}
		assert_int_equal(parse_head(&frame.hdr, frame.bytes,
					    frame.head_len, frame.len, &g),
				 0);
		frame.len++;
		assert_int_equal(parse(&frame, &g), -EINVAL);
		frame.len -= 2;
		assert_int_equal(parse(&frame, &g), -EINVAL);
		/* A length that agrees in its low 16 bits only. */
		frame.len += 65537;
		assert_int_equal(parse_head(&frame.hdr, frame.bytes,
					    VL_GSO_HEAD_MAX, frame.len, &g),
				 -EINVAL);
		s.gso_size = 3999;
		build(&frame, &s);
		assert_int_equal(parse(&frame, &g), 0);
		s.payload = 0;
		build(&frame, &s);
		assert_int_equal(parse(&frame, &g), -EINVAL);
	}
	/* Cut off within or behind a tag. */
	for (uint32_t tags = 1; tags <= 2; tags++) {
		struct spec s = tcp4;

		s.tags = tags;
		build(&frame, &s);
		for (uint32_t n = 0; n < frame.head_len; n++)
			assert_int_equal(parse_head(&frame.hdr, frame.bytes, n,
						    frame.len, &g),
					 -EINVAL);
	}
	/* More bytes than the frame has, whose headers say so too. */
	build(&frame, &tcp4);
	put16(frame.bytes + 16, 10);
	assert_int_equal(parse_head(&frame.hdr, frame.bytes, 54, 24, &g),
			 -EINVAL);
	/* TCP options that the copied bytes do not hold. */
	build(&frame, &(struct spec){ .options = 40,
				      .flags = ACK,
				      .gso_size = 10,
				      .payload = 400 });
	assert_int_equal(parse_head(&frame.hdr, frame.bytes, 14 + 20 + 59,
				    frame.len, &g),
			 -EINVAL);
}

/* Good frames with some bytes changed: whatever passes can be cut. */
static void hostile_bytes(void **state)
{
	unsigned int accepted = 0;

	(void)state;
	for (unsigned int i = 0; i < 100000; i++) {
		struct spec s = { .ipv6 = i & 1,
				  .udp = i & 2,
				  .tags = i / 4 % 3,
				  .gso_size = (uint16_t)(1 + rand() % 60),
				  .payload = 1 + (uint32_t)rand() % 200 };
		uint8_t *hdr = (uint8_t *)&frame.hdr;
		struct vl_gso g;

		build(&frame, &s);
		for (unsigned int n = (unsigned int)rand() % 4; n; n--)
			frame.bytes[(uint32_t)rand() % frame.head_len] =
				(uint8_t)rand();
		if (rand() % 4 == 0)
			hdr[(size_t)rand() % sizeof(frame.hdr)] =
				(uint8_t)rand();
		if (parse(&frame, &g))
			continue;
		accepted++;
		assert_true(g.head_len <= VL_GSO_HEAD_MAX &&
			    g.head_len + g.payload == frame.len && g.gso_size &&
			    g.payload > g.gso_size);
		for (uint32_t at = 0; at < g.payload; at += g.gso_size) {
			uint32_t left = g.payload - at;

			cut(&g, &frame, at,
			    left < g.gso_size ? left : g.gso_size);
		}
	}
	assert_true(accepted > 10000);
	/* Nothing but noise. */
	for (unsigned int i = 0; i < 100000; i++) {
		uint8_t noise[10 + VL_GSO_HEAD_MAX];
		size_t n = (size_t)rand() % (VL_GSO_HEAD_MAX + 1);
		struct virtio_net_hdr hdr;
		struct vl_gso g;

		for (size_t b = 0; b < sizeof(noise); b++)
			noise[b] = (uint8_t)rand();
		memcpy(&hdr, noise, sizeof(hdr));
		parse_head(&hdr, noise + 10, n, (uint32_t)rand() % 70000, &g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_are_the_same),
		cmocka_unit_test(largest_frames),
		cmocka_unit_test(fields_of_tcp4),
		cmocka_unit_test(fields_of_udp6),
		cmocka_unit_test(sizes_of_parts),
		cmocka_unit_test(refused_headers),
		cmocka_unit_test(refused_payload_length_0),
		cmocka_unit_test(refused_tags),
		cmocka_unit_test(refused_virtio_headers),
		cmocka_unit_test(header_length_is_not_used),
		cmocka_unit_test(refused_lengths),
		cmocka_unit_test(hostile_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
