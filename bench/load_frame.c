/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A frame is an Ethernet header with our source address, for some frames an
 * IPv4 and a TCP header, a tag (number, length, check over both) and payload
 * out of a pool of random bytes. Comparing with the pool finds any change of
 * any byte and is cheaper than a checksum.
 */
#include "load_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ring_driver.h"

#define POOL_OFFSETS 65536u
#define TCP_HEAD     (14u + 20u + 20u)
#define TAG_SIZE     16u
#define MSS          1448u

static const uint8_t eth_plain[14] = { 0x02, 0x76, 0x6c, 0, 0, 1,    0x02,
				       0x76, 0x6c, 0,    0, 2, 0x88, 0xb5 };

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

int load_gen_init(struct load_gen *g, uint64_t seed, bool gso)
{
	uint64_t state = mix(seed + 1);
	size_t size = POOL_OFFSETS + LOAD_GSO_FRAME + 8;

	*g = (struct load_gen){ .seed = mix(seed), .gso = gso };
	g->pool = malloc(size);
	if (!g->pool)
		return -ENOMEM;
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t r = rd_random(&state);

		memcpy(g->pool + i, &r, 8);
	}
	return 0;
}

void load_gen_free(struct load_gen *g)
{
	free(g->pool);
	g->pool = NULL;
}

static void put_be16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Ones' complement sum of @n bytes (even), folded, not inverted. */
static uint16_t sum16(const uint8_t *p, size_t n, uint32_t sum)
{
	for (size_t i = 0; i < n; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* IPv4 and TCP headers for a frame of f->len bytes; the TCP checksum is left
 * partial: it holds the sum of the pseudo header. */
static void make_tcp(struct load_frame *f, uint64_t seq)
{
	uint8_t *ip = f->head + 14, *tcp = f->head + 34;
	uint32_t ip_len = f->len - 14;

	put_be16(f->head + 12, 0x0800);
	memset(ip, 0, 40);
	ip[0] = 0x45;
	put_be16(ip + 2, ip_len);
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = 6;
	memcpy(ip + 12, "\xc0\x00\x02\x01\xc0\x00\x02\x02", 8);
	put_be16(ip + 10, (uint16_t)~sum16(ip, 20, 0));
	put_be16(tcp, 7777);
	put_be16(tcp + 2, 8888);
	put_be16(tcp + 6, (uint32_t)seq & 0xffff);
	tcp[12] = 0x50;
	tcp[13] = 0x10;
	put_be16(tcp + 14, 65535);
	put_be16(tcp + 16, sum16(ip + 12, 8, 6 + ip_len - 20));
	f->hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	f->hdr.csum_start = 34;
	f->hdr.csum_offset = 16;
	if (f->len > LOAD_MTU_FRAME) {
		f->hdr.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
		f->hdr.gso_size = MSS;
		f->hdr.hdr_len = TCP_HEAD;
	}
}

static uint32_t plain_len(uint64_t r)
{
	uint32_t v = (uint32_t)(r >> 2) & 0xffff;

	switch (r & 3) {
	case 0:
		return 30 + v % 100;
	case 1:
		return 30 + v % (LOAD_MTU_FRAME - 29);
	case 2:
		return LOAD_MTU_FRAME;
	default:
		return 60 + v % 540;
	}
}

void load_frame_make(const struct load_gen *g, enum load_dir dir, uint64_t seq,
		     struct load_frame *f)
{
	uint64_t r = mix(g->seed ^ (seq << 1 | (uint64_t)dir));
	unsigned int kind = g->gso ? (r >> 60) & 15 : 15;
	uint32_t check;

	memset(&f->hdr, 0, sizeof(f->hdr));
	memcpy(f->head, eth_plain, sizeof(eth_plain));
	f->head_len = kind < 4 ? TCP_HEAD : 14;
	if (kind == 0)
		f->len = LOAD_MTU_FRAME + 1 +
			 (uint32_t)(r & 0xffffff) %
				 (LOAD_GSO_FRAME - LOAD_MTU_FRAME);
	else
		f->len = plain_len(r);
	if (f->len < f->head_len + TAG_SIZE)
		f->len = f->head_len + TAG_SIZE;
	if (kind < 4)
		make_tcp(f, seq);
	check = (uint32_t)mix(r ^ f->len);
	memcpy(f->head + f->head_len, &seq, 8);
	memcpy(f->head + f->head_len + 8, &f->len, 4);
	memcpy(f->head + f->head_len + 12, &check, 4);
	f->head_len += TAG_SIZE;
	f->payload = g->pool + (r >> 24) % POOL_OFFSETS;
	f->payload_len = f->len - f->head_len;
}

/* Up to @len first bytes of a stream. */
static size_t peek(const struct iovec *iov, size_t n, uint8_t *to, size_t len)
{
	size_t done = 0;

	for (size_t i = 0; i < n && done < len; i++) {
		size_t part = len - done;

		if (part > iov[i].iov_len)
			part = iov[i].iov_len;
		memcpy(to + done, iov[i].iov_base, part);
		done += part;
	}
	return done;
}

/* Compares the payload with the stream behind its first @skip bytes. */
static bool same_payload(const struct load_frame *f, const struct iovec *iov,
			 size_t n)
{
	size_t skip = f->head_len, done = 0;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = iov[i].iov_base;
		size_t len = iov[i].iov_len;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		p += skip;
		len -= skip;
		skip = 0;
		if (len > f->payload_len - done ||
		    memcmp(p, f->payload + done, len) != 0)
			return false;
		done += len;
	}
	return done == f->payload_len;
}

enum load_verdict load_frame_check(const struct load_gen *g, enum load_dir dir,
				   const struct virtio_net_hdr *hdr,
				   const struct iovec *iov, size_t n,
				   uint64_t *seq)
{
	uint8_t first[sizeof(((struct load_frame *)0)->head)];
	size_t got = peek(iov, n, first, sizeof(first));
	struct load_frame f;
	size_t tag;

	if (got < 14 || memcmp(first + 6, eth_plain + 6, 6) != 0)
		return LOAD_FOREIGN;
	tag = first[12] == 0x08 ? TCP_HEAD : 14;
	if (got < tag + TAG_SIZE)
		return LOAD_CHANGED;
	memcpy(seq, first + tag, 8);
	load_frame_make(g, dir, *seq, &f);
	if (got < f.head_len || memcmp(first, f.head, f.head_len) != 0 ||
	    !same_payload(&f, iov, n))
		return LOAD_CHANGED;
	if ((hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) != f.hdr.flags ||
	    hdr->gso_type != f.hdr.gso_type)
		return LOAD_CHANGED;
	if (f.hdr.flags && (hdr->csum_start != f.hdr.csum_start ||
			    hdr->csum_offset != f.hdr.csum_offset))
		return LOAD_CHANGED;
	if (f.hdr.gso_type && hdr->gso_size != f.hdr.gso_size)
		return LOAD_CHANGED;
	return LOAD_GOOD;
}

int load_ledger_init(struct load_ledger *l, uint64_t total)
{
	*l = (struct load_ledger){ .total = total };
	l->seen = calloc(total / 8 + 1, 1);
	return l->seen ? 0 : -ENOMEM;
}

void load_ledger_free(struct load_ledger *l)
{
	free(l->seen);
	l->seen = NULL;
}

void load_ledger_arrive(struct load_ledger *l, uint64_t seq)
{
	uint8_t bit = (uint8_t)(1u << (seq & 7));

	if (seq >= l->sent) {
		l->changed++;
		return;
	}
	if (l->seen[seq / 8] & bit) {
		l->duplicated++;
		return;
	}
	l->seen[seq / 8] |= bit;
	l->arrived++;
	if (seq < l->next)
		l->reordered++;
	else
		l->next = seq + 1;
}

uint64_t load_ledger_under_way(const struct load_ledger *l)
{
	return l->sent - l->next;
}

uint64_t load_ledger_lost(const struct load_ledger *l)
{
	uint64_t missing = l->sent - l->arrived;

	return missing > l->changed ? missing - l->changed : 0;
}

bool load_ledger_ok(const struct load_ledger *l)
{
	return l->arrived == l->total && !l->duplicated && !l->reordered &&
	       !l->changed;
}
