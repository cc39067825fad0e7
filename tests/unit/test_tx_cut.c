/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large frames on a slow lane leave in parts. To whom what belongs: the chain
 * comes back when the last part is done with or taken out of guest memory, and
 * bounds hold as they do for whole packets.
 *
 * Frames are TSO of TCP/IPv4. The byte of a destination's stream at sequence
 * number n follows from n and the destination, and the TCP options say what
 * frame of the driver a part is of. So the network knows what each part has to
 * look like, headers too: it makes them by itself, and compares all bytes.
 */
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/util.h"
#include "lanes_fixture.h"
#include "virtio/net_hdr.h"

#define RING    256u
#define MSS     1448u
#define PERIOD  65521u /* of the pattern: a prime number */
#define LEN_MAX (65535u + 14u)
#define FEATURES                                                               \
	(VL_FEATURE(VIRTIO_F_VERSION_1) |                                      \
	 VL_FEATURE(VIRTIO_RING_F_INDIRECT_DESC) |                             \
	 VL_FEATURE(VIRTIO_RING_F_EVENT_IDX) | VL_FEATURE(VIRTIO_NET_F_CSUM) | \
	 VL_FEATURE(VIRTIO_NET_F_HOST_TSO4))
/* A lane that stands for so long has no rate: parts are as small as can be. */
#define LONG_MS 100

struct head {
	uint8_t dst[6], src[6];
	uint16_t type;
	struct iphdr ip;
	struct tcphdr tcp;
	/* Options: the frame of the driver. */
	uint32_t first, payload, gso_size;
} __attribute__((packed));

#define HEAD  ((uint32_t)sizeof(struct head))
#define WHOLE (LEN_MAX - HEAD) /* payload of the largest frame */

/* What the driver sends in one frame. */
struct frame {
	uint32_t dest, first, payload, gso_size;
};

static struct lanes_fixture f;
static uint8_t pattern[PERIOD + LF_BIG];

/* The network, under f.d.lock. */
static struct {
	uint32_t next[LF_DESTS];     /* lowest sequence number that may come */
	uint32_t last_cut[LF_DESTS]; /* frame of the part that came last */
	uint64_t gaps, gap_bytes;    /* what did not come */
	uint64_t bytes, wholes, gso, cut_frames;
} net;

/* The driver. */
static uint32_t next_seq[LF_DESTS];
static uint64_t small_sent, gso_sent;

static uint16_t csum(const void *data, size_t len, uint32_t sum)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)sum);
}

/* The headers of the part of @w that carries @len bytes behind @offset. */
static void make_headers(const struct frame *w, uint32_t offset, uint32_t len,
			 uint8_t *out)
{
	bool gso = len > w->gso_size, last = offset + len == w->payload;
	uint16_t id = (uint16_t)(w->first * 7 + offset / w->gso_size);
	struct virtio_net_hdr vh = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = gso ? VIRTIO_NET_HDR_GSO_TCPV4
				: VIRTIO_NET_HDR_GSO_NONE,
		.hdr_len = gso ? HEAD : 0,
		.gso_size = gso ? (uint16_t)w->gso_size : 0,
		.csum_start = offsetof(struct head, tcp),
		.csum_offset = offsetof(struct tcphdr, check),
	};
	struct head h = {
		.dst = { 2, 0, 0, 0, 0, (uint8_t)w->dest },
		.src = { 2, 1 },
		.type = htons(0x0800),
		.ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = 6 },
		.tcp = { .doff = 8, .ack = 1, .psh = last, .fin = last },
		.first = w->first,
		.payload = w->payload,
		.gso_size = w->gso_size,
	};
	uint32_t tcp_len = HEAD - offsetof(struct head, tcp) + len;
	uint8_t ip[sizeof(h.ip)];

	h.ip.tot_len = htons((uint16_t)(sizeof(ip) + tcp_len));
	h.ip.id = htons(id);
	h.ip.saddr = htonl(0x0a000000);
	h.ip.daddr = htonl(0x0a000100 + w->dest);
	memcpy(ip, &h.ip, sizeof(ip));
	h.ip.check = (uint16_t)~csum(ip, sizeof(ip), 0);
	h.tcp.seq = htonl(w->first + offset);
	h.tcp.check = csum(ip + 12, 8, 6 + tcp_len);
	memset(out, 0, f.hdr_len);
	memcpy(out, &vh, sizeof(vh));
	memcpy(out + f.hdr_len, &h, sizeof(h));
}

static const uint8_t *stream(uint32_t dest, uint32_t seq)
{
	return pattern + (seq + dest * 4099) % PERIOD;
}

static void count(const struct frame *w, uint32_t seq, uint32_t len)
{
	uint32_t dest = w->dest;

	net.gaps += seq != net.next[dest];
	net.gap_bytes += seq - net.next[dest];
	net.next[dest] = seq + len;
	net.bytes += HEAD + len;
	net.gso += len > w->gso_size;
	if (len == w->payload) {
		net.wholes += len > w->gso_size;
		return;
	}
	net.cut_frames += net.last_cut[dest] != w->first + 1;
	net.last_cut[dest] = w->first + 1;
}

static bool check(const uint8_t *p, uint32_t len, uint32_t dest)
{
	uint8_t want[VL_NET_HDR_MRG + sizeof(struct head)];
	struct frame w = { .dest = dest };
	uint32_t seq, offset;
	struct head h;

	if (len <= f.hdr_len + HEAD)
		return false;
	memcpy(&h, p + f.hdr_len, HEAD);
	len -= f.hdr_len + HEAD;
	w.first = h.first;
	w.payload = h.payload;
	w.gso_size = h.gso_size;
	seq = ntohl(h.tcp.seq);
	offset = seq - w.first;
	if (!w.gso_size || w.payload > WHOLE || offset >= w.payload ||
	    offset + len > w.payload || offset % w.gso_size ||
	    (len % w.gso_size && offset + len < w.payload) ||
	    seq < net.next[dest])
		return false;
	make_headers(&w, offset, len, want);
	count(&w, seq, len);
	return !memcmp(p, want, f.hdr_len + HEAD) &&
	       !memcmp(p + f.hdr_len + HEAD, stream(dest, seq), len);
}

static void init_limited(const struct dev_config *c, unsigned int stalled)
{
	memset(&net, 0, sizeof(net));
	memset(next_seq, 0, sizeof(next_seq));
	small_sent = 0;
	gso_sent = 0;
	for (uint32_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)((i % PERIOD) * 2654435761u >> 13);
	lf_init(&f, c, stalled, check);
}

static void init(const enum vl_io_engine *engine, uint32_t num,
		 unsigned int stalled)
{
	init_limited(&(struct dev_config){ .engine = *engine,
					   .features = FEATURES,
					   .num = num },
		     stalled);
}

/* Makes a frame available. Returns false when there is no room for it. */
static bool add(uint32_t dest, uint32_t payload, uint32_t gso_size,
		const struct lf_shape *shape)
{
	const struct frame w = { dest, next_seq[dest], payload, gso_size };
	uint32_t len = f.hdr_len + HEAD + payload;
	uint8_t *p = lf_buffer(&f, len);

	if (!p)
		return false;
	make_headers(&w, 0, payload, p);
	memcpy(p + f.hdr_len + HEAD, stream(dest, w.first), payload);
	if (!lf_add(&f, len, shape))
		return false;
	next_seq[dest] += payload;
	if (payload > gso_size)
		gso_sent++;
	else
		small_sent++;
	return true;
}

static const struct lf_shape one_piece = { 0, LF_BIG, RD_DIRECT };
static const struct lf_shape pages = { 0, 4096, RD_DIRECT };
static const struct lf_shape pages_indirect = { 0, 4096, RD_INDIRECT };

/* Fills what takes packets of stalled destination @dest until one waits, for
 * @ms. Returns the chains that did not come back. */
static uint32_t block(uint32_t dest, long ms)
{
	uint32_t n = 2 * LF_CHARGE_MAX + 1;

	for (uint32_t i = 0; i < n; i++)
		assert_true(add(dest, 100, MSS, &one_piece));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, n - 1);
	lf_nap_ms(ms);
	return n - lf_take(&f);
}

/* Waits until the transmitq cut @n frames in all. */
static void wait_cut(uint64_t n)
{
	uint64_t end = vl_now_ns() + 2 * VL_NS_PER_SEC;

	do {
		lf_nap_ms(1);
		lf_check_bounds(&f);
	} while (f.snap.pair[0].tx.gso_cut < n && vl_now_ns() < end);
	assert_int_equal(f.snap.pair[0].tx.gso_cut, n);
}

/* Nothing waits any more; what was sent was taken, whole or in parts, or its
 * drop was counted. Returns the packets taken. */
static uint64_t check_all_accounted(void)
{
	const struct vl_tx_counters *n = &f.snap.pair[0].tx;
	uint64_t taken = lf_settle(&f), lost = 0;

	pthread_mutex_lock(&f.d.lock);
	for (unsigned int i = 0; i < LF_DESTS; i++)
		lost += next_seq[i] - net.next[i];
	lost += net.gap_bytes;
	assert_int_equal(n->bytes, net.bytes);
	assert_int_equal(n->gso_packets, net.gso);
	assert_int_equal(n->csum_packets, taken);
	assert_true(net.gaps <= lf_dropped(&f));
	assert_int_equal(lost > 0, lf_dropped(&f) > 0);
	assert_true(net.cut_frames <= n->gso_cut);
	assert_true(n->gso_cut + net.wholes <= gso_sent);
	if (!lost)
		assert_int_equal(n->gso_cut, net.cut_frames);
	pthread_mutex_unlock(&f.d.lock);
	return taken;
}

static void finish(void)
{
	dev_free(&f.d);
}

/* Chains of all kinds, among them one that is copied before it is cut. */
static void parts_carry_the_frame(void **state)
{
	static const struct lf_shape shapes[] = {
		{ 0, LF_BIG, RD_DIRECT },
		{ 0, 16384, RD_DIRECT },
		{ 0, 4096, RD_DIRECT },
		{ 0, 2100, RD_DIRECT },
		{ 0, 1700, RD_DIRECT }, /* too many to be sent from there */
		{ 0, 4096, RD_INDIRECT },
		{ 0, 4096, RD_MIXED },
		{ VL_NET_HDR_MRG, 4096, RD_DIRECT },
		{ VL_NET_HDR_MRG, 4096, RD_INDIRECT },
		{ VL_NET_HDR_MRG + sizeof(struct head), 4096, RD_INDIRECT },
		{ VL_NET_HDR_MRG + sizeof(struct head), 16384, RD_DIRECT },
		{ 1, 4096, RD_INDIRECT },
		{ VL_NET_HDR_MRG + 40, 2500, RD_DIRECT },
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const struct lf_shape *s = &shapes[i];
		uint32_t flight;

		init(*state, RING, 1);
		flight = block(1, LONG_MS) + 4;
		assert_true(add(1, WHOLE, MSS, s));
		assert_true(add(1, WHOLE, 536, s));
		assert_true(add(1, MSS + 1, MSS, s));
		assert_true(add(1, 30000, 8000, s));
		dev_kick(&f.d, LF_TX);
		wait_cut(4);
		lf_release(&f, false);
		dev_wait_used(&f.d, LF_TX, flight);
		assert_int_equal(lf_take(&f), flight);
		/* Those of the second frame have 3 segments each. */
		assert_int_equal(check_all_accounted(),
				 small_sent + 46 + 41 + 2 + 4);
		assert_int_equal(lf_dropped(&f), 0);
		finish();
	}
}

/* What nobody makes wait goes in one piece, by the express lane or another. */
static void only_slow_lanes_cut(void **state)
{
	init(*state, RING, 1);
	for (uint32_t i = 0; i < 4 * LF_CHARGE_MAX; i++)
		assert_true(add(2 + i % 3, 4 * MSS, MSS, &one_piece));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, 4 * LF_CHARGE_MAX);
	lf_take(&f);
	/* The express lane is full: by a side lane. */
	(void)block(1, LONG_MS);
	for (uint32_t i = 0; i < 8; i++)
		assert_true(add(2, WHOLE, MSS, &one_piece));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, 8);
	lf_check_bounds(&f);
	assert_int_equal(f.snap.pair[0].tx.gso_cut, 0);
	lf_release(&f, false);
	check_all_accounted();
	assert_int_equal(lf_dropped(&f), 0);
	finish();
}

/* The first frame keeps its chain, which is the back-pressure. The second would
 * hold more than half of the ring: it is copied, and its chain comes back. */
static void above_half_of_the_ring_parts_are_copied(void **state)
{
	uint32_t held, before;

	init(*state, 64, 1);
	held = block(1, LONG_MS);
	assert_int_equal(held, 1);
	lf_check_bounds(&f);
	assert_int_equal(f.snap.pair[0].held_descs, 1);
	before = f.d.ring[LF_TX].n_free;
	assert_true(add(1, WHOLE, MSS, &pages));
	before -= f.d.ring[LF_TX].n_free;
	assert_true(before > 16);
	dev_kick(&f.d, LF_TX);
	wait_cut(1);
	assert_int_equal(lf_quiesce(&f), 0);
	assert_int_equal(f.snap.pair[0].held_descs, 1 + before);
	/* One small packet, the whole and its parts. */
	assert_int_equal(f.snap.pair[0].pool_bytes, (1 + 1 + 46) * 2048);

	assert_true(add(1, WHOLE, MSS, &pages));
	dev_kick(&f.d, LF_TX);
	assert_int_equal(lf_quiesce(&f), 1);
	assert_int_equal(f.snap.pair[0].tx.gso_cut, 2);
	assert_int_equal(f.snap.pair[0].held_descs, 1 + before);
	/* Its parts have a small buffer more each, and it is no more. */
	assert_int_equal(f.snap.pair[0].pool_bytes,
			 (1 + 1 + 46 + 2 * 46) * 2048);
	lf_spoil(&f);
	lf_release(&f, false);
	dev_wait_used(&f.d, LF_TX, 2);
	lf_take(&f);
	assert_int_equal(check_all_accounted(), small_sent + 2 * 46);
	assert_int_equal(lf_dropped(&f), 0);
	finish();
}

/* In the turn that finds the lane slow nothing is cut: whole packets wait, one
 * with its chain and one as a copy, and are cut later. */
static void waiting_packets_are_cut_later(void **state)
{
	uint32_t n = 2 * LF_CHARGE_MAX, held;
	uint64_t pool, parts;

	init(*state, 64, 1);
	for (uint32_t i = 0; i < n; i++)
		assert_true(add(1, 100, MSS, &one_piece));
	held = f.d.ring[LF_TX].n_free;
	assert_true(add(1, WHOLE, MSS, &pages));
	held -= f.d.ring[LF_TX].n_free;
	assert_true(add(1, WHOLE, MSS, &pages));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, n + 1);
	assert_int_equal(lf_take(&f), n + 1);
	lf_spoil(&f);
	lf_nap_ms(LONG_MS);
	assert_true(add(1, 100, MSS, &one_piece));
	dev_kick(&f.d, LF_TX);
	wait_cut(2);
	assert_int_equal(lf_quiesce(&f), 0);
	assert_int_equal(f.snap.pair[0].held_descs, held + 1);
	pool = f.snap.pair[0].pool_bytes;
	lf_release(&f, false);
	dev_wait_used(&f.d, LF_TX, 2);
	lf_take(&f);
	parts = check_all_accounted() - small_sent;
	assert_true(parts > 2);
	/* The small packet, both frames, 33 of the copy, and the parts. */
	assert_int_equal(pool, (1 + 2 + 33 + parts) * 2048);
	assert_int_equal(lf_dropped(&f), 0);
	finish();
}

/* A FIFO that is long enough drops parts, not frames, and counts them. */
static void drops_hit_parts(void **state)
{
	uint32_t flight;

	init(*state, RING, 1);
	flight = block(1, LONG_MS);
	for (uint32_t i = 0; i < 6; i++)
		assert_true(add(1, 28 * MSS, MSS, &pages_indirect));
	flight += 6;
	dev_kick(&f.d, LF_TX);
	wait_cut(6);
	/* All parts of the last one were dropped. */
	dev_wait_used(&f.d, LF_TX, 1);
	assert_true(f.snap.pair[0].tx.drop_limit > 28);
	assert_int_not_equal(f.snap.pair[0].tx.drop_limit % 28, 0);
	lf_release(&f, false);
	dev_wait_used(&f.d, LF_TX, flight);
	lf_take(&f);
	assert_int_equal(check_all_accounted() + lf_dropped(&f),
			 small_sent + 6 * 28);
	finish();
}

/* Sampled while frames for stalled and other destinations come and go. */
static void bounds_hold_at_all_times(void **state)
{
	static const struct lf_shape shapes[] = {
		{ 0, 4096, RD_DIRECT },
		{ VL_NET_HDR_MRG, 16384, RD_INDIRECT },
		{ VL_NET_HDR_MRG + sizeof(struct head), 8000, RD_DIRECT },
		{ 0, 1700, RD_DIRECT },
	};
	static const uint32_t payloads[] = { 100, WHOLE, 9000, 1, 30001, 5000 };
	uint32_t flight = 0, samples = 0, held = 0;
	uint64_t end, seed = 1, innocent;

	init(*state, RING, 10);
	end = vl_now_ns() + 600 * LF_MS;
	while (vl_now_ns() < end || samples < 200) {
		for (uint32_t i = 0; i < 24; i++)
			flight += add(rd_range(&seed, 1, 12),
				      payloads[rd_range(&seed, 0, 5)],
				      rd_range(&seed, 0, 3) ? MSS : 700,
				      &shapes[rd_range(&seed, 0, 3)]);
		dev_kick(&f.d, LF_TX);
		lf_check_bounds(&f);
		held = vl_max_u32(held, f.snap.pair[0].held_descs);
		flight -= lf_take(&f);
		if (++samples % 50 == 0)
			lf_release(&f, true);
	}
	assert_true(held > RING / 4);
	assert_true(f.snap.pair[0].tx.gso_cut > 20);
	lf_release(&f, false);
	dev_wait_used(&f.d, LF_TX, flight);
	lf_take(&f);
	check_all_accounted();
	innocent = f.taken[11] + f.taken[12];
	assert_true(innocent > 0);
	assert_true(net.cut_frames > 20);
	assert_int_equal(f.d.ring[LF_TX].in_flight, 0);
	finish();
}

/* Fills the lanes of @stalled destinations with parts of @n frames each.
 * Returns the chains that did not come back. */
static uint32_t fill_lanes(uint32_t stalled, uint32_t n, uint32_t payload)
{
	uint32_t flight = 0;

	for (uint32_t k = 0; k < 20; k++) {
		for (uint32_t dest = 1; dest <= stalled; dest++)
			flight += add(dest, 100, MSS, &one_piece);
		dev_kick(&f.d, LF_TX);
		flight -= lf_quiesce(&f);
	}
	lf_nap_ms(20);
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t dest = 1; dest <= stalled; dest++)
			flight += add(dest, payload, MSS,
				      k % 2 ? &pages_indirect : &pages);
		dev_kick(&f.d, LF_TX);
		lf_nap_ms(2);
		flight -= lf_quiesce(&f);
	}
	assert_true(f.snap.pair[0].tx.gso_cut > stalled / 2);
	assert_true(flight > 0);
	return flight;
}

/* After the stop guest memory is the guest's. */
static void stop_with_parts(uint32_t stalled, uint32_t n, uint32_t payload)
{
	uint32_t flight = fill_lanes(stalled, n, payload);
	size_t size = f.d.mem.used;
	uint64_t before = f.snap.pair[0].tx.packets;
	uint8_t *copy;

	lf_stop_in_time(&f, flight);
	assert_int_equal(f.d.ring[LF_TX].in_flight, 0);
	assert_true(f.snap.pair[0].pool_bytes > 0);
	lf_spoil(&f);
	copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, f.d.mem.base, size);
	lf_release(&f, false);
	assert_true(check_all_accounted() > before + stalled);
	assert_true(net.cut_frames > 0);
	assert_memory_equal(copy, f.d.mem.base, size);
	free(copy);
}

/* There is room for all: nothing is lost. */
static void stop_with_some_parts(void **state)
{
	init(*state, RING, 2);
	stop_with_parts(2, 2, 40000);
	assert_int_equal(lf_dropped(&f), 0);
	dev_start(&f.d, LF_TX);
	assert_true(add(1, WHOLE, MSS, &pages));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, 1);
	lf_take(&f);
	check_all_accounted();
	assert_int_equal(lf_dropped(&f), 0);
	finish();
}

/* There is not: some parts are dropped, and the chain comes back yet. */
static void stop_with_full_lanes(void **state)
{
	init(*state, RING, 7);
	stop_with_parts(7, 6, WHOLE);
	assert_true(f.snap.pair[0].tx.drop_pool > 0);
	finish();
}

/* Others pass while the old parts still wait. */
static void start_again_with_full_lanes(void **state)
{
	init(*state, RING, 5);
	lf_stop_in_time(&f, fill_lanes(5, 6, WHOLE));
	lf_spoil(&f);
	dev_start(&f.d, LF_TX);
	for (uint32_t i = 0; i < 60; i++)
		assert_true(add(9, 9000, MSS, &pages_indirect));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, 60);
	assert_int_equal(lf_take(&f), 60);
	pthread_mutex_lock(&f.d.lock);
	assert_int_equal(f.taken[9], 60);
	pthread_mutex_unlock(&f.d.lock);
	/* And more for those that are stalled. */
	for (uint32_t i = 0; i < 20; i++)
		(void)add(1 + i % 5, 20000, MSS, &pages_indirect);
	dev_kick(&f.d, LF_TX);
	lf_nap_ms(5);
	lf_release(&f, false);
	check_all_accounted();
	lf_take(&f);
	assert_int_equal(f.d.ring[LF_TX].in_flight, 0);
	finish();
}

/* The next driver's headers are shorter: those of waiting parts too, and of
 * what is cut afterwards. */
static void header_length_changes(void **state)
{
	init(*state, RING, 7);
	lf_stop_in_time(&f, fill_lanes(7, 3, 50000));
	lf_spoil(&f);
	pthread_mutex_lock(&f.d.lock);
	memset(f.charged, 0, sizeof(f.charged));
	memset(f.stalled, 0, sizeof(f.stalled));
	f.hdr_len = sizeof(struct virtio_net_hdr);
	pthread_mutex_unlock(&f.d.lock);
	assert_int_equal(vl_device_set_features(f.d.dev, 0), 0);
	lf_release(&f, false);
	check_all_accounted();
	assert_true(net.cut_frames > 0);
	finish();
}

/* What waits whole while that happens is cut afterwards; unless this thread is
 * a lot too slow, and it is cut before. */
static void cut_after_header_length_changed(void **state)
{
	uint32_t n = 2 * LF_CHARGE_MAX;

	init(*state, RING, 1);
	for (uint32_t i = 0; i < n; i++)
		assert_true(add(1, 100, MSS, &one_piece));
	for (uint32_t i = 0; i < 2; i++)
		assert_true(add(1, WHOLE, MSS, i ? &pages : &pages_indirect));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, n);
	(void)dev_stop(&f.d, LF_TX);
	pthread_mutex_lock(&f.d.lock);
	f.hdr_len = sizeof(struct virtio_net_hdr);
	pthread_mutex_unlock(&f.d.lock);
	assert_int_equal(vl_device_set_features(f.d.dev, 0), 0);
	assert_int_equal(lf_take(&f), n + 2);
	lf_spoil(&f);
	wait_cut(2);
	lf_release(&f, false);
	check_all_accounted();
	assert_int_equal(lf_dropped(&f), 0);
	finish();
}

/* Once nothing is stalled, all is as it was, and nothing is cut any more. */
static void returns_to_express(void **state)
{
	uint64_t cut;
	uint32_t flight;

	init(*state, RING, 7);
	flight = fill_lanes(7, 3, 30000);
	lf_release(&f, false);
	dev_wait_used(&f.d, LF_TX, flight);
	lf_take(&f);
	check_all_accounted();
	lf_wait_express(&f);
	cut = f.snap.pair[0].tx.gso_cut;
	for (uint32_t i = 1; i <= 7; i++)
		assert_true(add(i, WHOLE, MSS, &pages_indirect));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, 7);
	lf_take(&f);
	check_all_accounted();
	assert_int_equal(f.snap.pair[0].tx.gso_cut, cut);
	finish();
}

/* What the backend does not take is cut on the express lane too. */
static void large_for_the_backend(void **state)
{
	const struct dev_config c = {
		.engine = *(const enum vl_io_engine *)*state,
		.features = FEATURES,
		.num = RING,
		.zc = { .gso_bytes = 20000, .gso_segments = 64 },
	};
	static const struct lf_shape *const shapes[] = { &pages, &one_piece,
							 &pages_indirect };

	init_limited(&c, 0);
	vl_write_once(&f.d.backend->gso_segments, 16); /* no longer 64 */
	for (uint32_t i = 0; i < 3; i++) {
		/* By its length, by its segments, and not at all. */
		assert_true(add(1, WHOLE, MSS, shapes[i]));
		assert_true(add(1, 19000, 500, shapes[i]));
		assert_true(add(2, 16 * 500, 500, shapes[i]));
		assert_true(add(2, 20000 - HEAD, 8000, shapes[i]));
		assert_true(add(2, 20001 - HEAD, 8000, shapes[i]));
	}
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, 15);
	lf_take(&f);
	lf_check_bounds(&f);
	assert_int_equal(f.snap.pair[0].tx.gso_cut, 9);
	/* 13 segments of 1448 in a part, 16 of 500, 2 of 8000. */
	assert_int_equal(check_all_accounted(), 3 * (4 + 3 + 1 + 1 + 2));
	assert_int_equal(lf_dropped(&f), 0);
	finish();
}

/* A guest may want segments of a byte. */
static void too_many_segments_are_dropped(void **state)
{
	const struct dev_config c = {
		.engine = *(const enum vl_io_engine *)*state,
		.features = FEATURES,
		.num = RING,
		.zc = { .gso_segments = 64 },
	};

	init_limited(&c, 0);
	assert_true(add(1, 48 * 64 * 8, 8, &pages));
	for (uint32_t i = 0; i < 20; i++)
		assert_true(add(2, 48 * 64 * 8 + 1, 8, &pages));
	assert_true(add(3, 30000, 1, &one_piece));
	assert_true(add(3, 1000, 1, &one_piece));
	dev_kick(&f.d, LF_TX);
	dev_wait_used(&f.d, LF_TX, 23);
	lf_check_bounds(&f);
	assert_int_equal(f.snap.pair[0].tx.drop_segments, 21);
	assert_int_equal(f.snap.pair[0].tx.packets, 48 + 16);
	pthread_mutex_lock(&f.d.lock);
	assert_int_equal(f.taken[1], 48);
	assert_int_equal(f.taken[2], 0);
	assert_int_equal(f.taken[3], 16);
	pthread_mutex_unlock(&f.d.lock);
	assert_int_equal(lf_take(&f), 23);
	finish();
}

/* One lane that is full again and again: parts wait, and nothing else is taken
 * from the ring, also when it stops meanwhile. */
static void parts_wait_for_the_only_lane(void **state)
{
	const struct dev_config c = {
		.engine = *(const enum vl_io_engine *)*state,
		.features = FEATURES,
		.num = RING,
		.tx_full = VL_TX_FULL_BLOCK,
		.zc = { .gso_segments = 8 },
	};

	init_limited(&c, 1);
	for (uint32_t i = 0; i < 6; i++) {
		assert_true(add(1, WHOLE, MSS, &pages_indirect));
		assert_true(add(2, 100, MSS, &one_piece));
		assert_true(add(1, 100, MSS, &one_piece));
	}
	dev_kick(&f.d, LF_TX);
	for (uint32_t i = 0; i < 6; i++) {
		lf_nap_ms(10);
		if (i % 2) {
			(void)dev_stop(&f.d, LF_TX);
			(void)lf_take(&f);
			lf_spoil(&f);
			lf_nap_ms(2);
			dev_start(&f.d, LF_TX);
		}
		lf_release(&f, true);
	}
	lf_release(&f, false);
	lf_nap_ms(20);
	(void)lf_take(&f);
	assert_int_equal(f.d.ring[LF_TX].in_flight, 0);
	assert_int_equal(check_all_accounted(), 6 * (6 + 2));
	assert_int_equal(lf_dropped(&f), 0);
	finish();
}

/* Parts of that kind are cut again on a slow lane. */
static void parts_are_cut_again(void **state)
{
	const struct dev_config c = {
		.engine = *(const enum vl_io_engine *)*state,
		.features = FEATURES,
		.num = RING,
		.zc = { .gso_segments = 20 },
	};
	uint32_t flight;

	init_limited(&c, 1);
	flight = block(1, LONG_MS) + 1;
	assert_true(add(1, WHOLE, MSS, &pages));
	dev_kick(&f.d, LF_TX);
	/* The frame, and its three parts. */
	wait_cut(1 + 3);
	lf_release(&f, false);
	dev_wait_used(&f.d, LF_TX, flight);
	assert_int_equal(lf_take(&f), flight);
	lf_settle(&f);
	assert_int_equal(net.gaps, 0);
	assert_int_equal(f.snap.pair[0].tx.packets, small_sent + 46);
	finish();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_carry_the_frame),
		cmocka_unit_test(only_slow_lanes_cut),
		cmocka_unit_test(above_half_of_the_ring_parts_are_copied),
		cmocka_unit_test(waiting_packets_are_cut_later),
		cmocka_unit_test(drops_hit_parts),
		cmocka_unit_test(bounds_hold_at_all_times),
		cmocka_unit_test(stop_with_some_parts),
		cmocka_unit_test(stop_with_full_lanes),
		cmocka_unit_test(start_again_with_full_lanes),
		cmocka_unit_test(header_length_changes),
		cmocka_unit_test(cut_after_header_length_changed),
		cmocka_unit_test(returns_to_express),
		cmocka_unit_test(large_for_the_backend),
		cmocka_unit_test(too_many_segments_are_dropped),
		cmocka_unit_test(parts_wait_for_the_only_lane),
		cmocka_unit_test(parts_are_cut_again),
	};

	return dev_run_with_engines(tests, VL_ARRAY_SIZE(tests));
}
