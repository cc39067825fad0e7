/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chain is laid out by cutting its bytes at random places; every second cut
 * falls into or near the headers, where devices make their mistakes. Each
 * segment sits a random number of bytes behind the one before, with a canary
 * in the gap.
 */
#include "load_guest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CANARY     0xa5c35a3ca5c35a3cULL
#define GAP_MAX    (sizeof(uint64_t) + 15)
#define MERGED_MAX 4096u

/* All pieces of one received frame; single thread. */
static struct iovec merged[MERGED_MAX];

int load_queue_init(struct load_queue *q, struct rd_mem *rings,
		    struct rd_mem *buffers, const struct rd_ring_config *c,
		    uint32_t slot_size)
{
	uint32_t n = c->num < LOAD_SLOTS_MAX ? c->num : LOAD_SLOTS_MAX;
	int err;

	*q = (struct load_queue){ .mem = buffers, .slot_size = slot_size };
	err = rd_ring_init(&q->ring, rings, c);
	if (err)
		return err;
	q->slot = calloc(n, sizeof(*q->slot));
	q->free = calloc(n, sizeof(*q->free));
	if (!q->slot || !q->free)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		q->slot[i].gpa = rd_mem_alloc(buffers, slot_size, 64);
		if (!q->slot[i].gpa)
			return -ENOMEM;
		q->free[q->n_free++] = (uint16_t)(n - 1 - i);
	}
	return 0;
}

void load_queue_free(struct load_queue *q)
{
	rd_ring_free(&q->ring);
	free(q->slot);
	free(q->free);
}

static uint32_t frame_max(const struct load_shape *s)
{
	return s->gso ? LOAD_GSO_FRAME : LOAD_MTU_FRAME;
}

/* Capacity of a buffer of the receiveq. With mergeable buffers the posted ones
 * together hold two of the largest frames even if all chains are long. */
static uint32_t rx_capacity_floor(const struct load_shape *s, uint32_t num)
{
	uint32_t chains = num / s->segments;
	uint32_t need = s->hdr_len + frame_max(s);

	if (!s->mrg)
		return need;
	if (chains == 0)
		chains = 1;
	need = 2 * need / chains;
	return need > (s->gso ? 1024 : 64) ? need : (s->gso ? 1024 : 64);
}

uint32_t load_slot_size(const struct load_shape *s, enum load_dir dir)
{
	uint32_t gaps = LOAD_SEGMENTS_MAX * (uint32_t)GAP_MAX;

	if (dir == LOAD_TX || !s->mrg)
		return 12 + frame_max(s) + 4096 + gaps;
	return 2 * (12 + frame_max(s)) + 4096 + gaps;
}

/* Cuts @total bytes into at most @max pieces; their number. */
static uint32_t cut(struct load_queue *q, uint32_t total, uint32_t max,
		    uint32_t *len)
{
	uint32_t at[LOAD_SEGMENTS_MAX + 1];
	uint32_t n = 0, out = 0;

	if (total > 1 && max > 1) {
		uint32_t cuts = rd_range(&q->rnd, 0, max - 1);

		while (n < cuts) {
			bool near = rd_random(&q->rnd) >> 63;
			uint32_t end = near && total > 32 ? 31 : total - 1;
			uint32_t c = rd_range(&q->rnd, 1, end), i = n++;

			for (; i > 0 && at[i - 1] > c; i--)
				at[i] = at[i - 1];
			at[i] = c;
		}
	}
	at[n++] = total;
	for (uint32_t i = 0, from = 0; i < n; from = at[i++])
		if (at[i] > from)
			len[out++] = at[i] - from;
	return out;
}

/* Lays @total bytes out in @slot. */
static void lay_out(struct load_queue *q, struct load_slot *slot,
		    uint32_t total, uint32_t max)
{
	uint32_t len[LOAD_SEGMENTS_MAX];
	uint64_t at = slot->gpa;

	slot->capacity = total;
	slot->n = cut(q, total, max, len);
	for (uint32_t i = 0; i < slot->n; i++) {
		at += rd_random(&q->rnd) >> 60;
		slot->seg[i] = (struct rd_seg){ at, len[i] };
		at += len[i] + sizeof(uint64_t);
	}
}

static int add_chain(struct load_queue *q, const struct load_shape *s,
		     uint16_t index, enum load_dir dir)
{
	struct load_slot *slot = &q->slot[index];
	unsigned int out = dir == LOAD_TX ? slot->n : 0;
	enum rd_layout layout = RD_DIRECT;
	int head;

	if (s->indirect)
		layout = (enum rd_layout)rd_range(&q->rnd, 0, RD_LAYOUTS - 1);
	head = rd_add(&q->ring, slot->seg, out, slot->n - out, layout, index);
	if (head == -E2BIG)
		head = rd_add(&q->ring, slot->seg, out, slot->n - out,
			      RD_DIRECT, index);
	return head;
}

static void publish(struct load_queue *q, unsigned int n)
{
	if (!n)
		return;
	rd_publish(&q->ring);
	rd_kick_if_wanted(&q->ring);
}

/* Copies @len bytes into the slot's segments; *seg and *off go along. */
static void scatter(const struct load_queue *q, const struct load_slot *slot,
		    uint32_t *seg, uint32_t *off, const void *from,
		    uint32_t len)
{
	const uint8_t *p = from;

	while (len) {
		const struct rd_seg *s = &slot->seg[*seg];
		uint32_t part = s->len - *off;

		if (part > len)
			part = len;
		memcpy((uint8_t *)rd_mem_ptr(q->mem, s->gpa) + *off, p, part);
		p += part;
		len -= part;
		*off += part;
		if (*off == s->len) {
			(*seg)++;
			*off = 0;
		}
	}
}

/* The memory of a frame is the driver's again: what is in it from now on must not
 * be sent any more. */
static void scribble(struct load_queue *q, const struct load_slot *slot)
{
	for (uint32_t i = 0; i < slot->n; i++)
		memset(rd_mem_ptr(q->mem, slot->seg[i].gpa), 0xdb,
		       slot->seg[i].len);
}

unsigned int load_tx_reap(struct load_queue *q, struct load_errors *e)
{
	struct rd_done done;
	unsigned int n = 0;
	int ret;

	while ((ret = rd_take(&q->ring, &done)) != 0) {
		if (ret < 0 || done.len != 0)
			e->used++;
		if (ret > 0) {
			scribble(q, &q->slot[done.cookie]);
			q->free[q->n_free++] = (uint16_t)done.cookie;
		}
		n++;
	}
	return n;
}

unsigned int load_tx_send(struct load_queue *q, const struct load_shape *s,
			  const struct load_gen *g, struct load_ledger *l,
			  unsigned int max)
{
	unsigned int n = 0;

	while (n < max && q->n_free && l->sent < l->total) {
		uint16_t index = q->free[q->n_free - 1];
		struct load_slot *slot = &q->slot[index];
		struct virtio_net_hdr_mrg_rxbuf hdr = { 0 };
		uint32_t seg = 0, off = 0;
		struct load_frame f;

		load_frame_make(g, LOAD_TX, l->sent, &f);
		hdr.hdr = f.hdr;
		lay_out(q, slot, s->hdr_len + f.len,
			s->segments < q->ring.num ? s->segments : q->ring.num);
		scatter(q, slot, &seg, &off, &hdr, s->hdr_len);
		scatter(q, slot, &seg, &off, f.head, f.head_len);
		scatter(q, slot, &seg, &off, f.payload, f.payload_len);
		if (add_chain(q, s, index, LOAD_TX) < 0)
			break;
		q->n_free--;
		l->sent++;
		n++;
	}
	publish(q, n);
	return n;
}

/* Writes the canaries behind the segments and poisons the header. */
static void arm(struct load_queue *q, const struct load_slot *slot)
{
	const uint64_t canary = CANARY;
	uint32_t poison = 12;

	for (uint32_t i = 0; i < slot->n; i++) {
		uint8_t *p = rd_mem_ptr(q->mem, slot->seg[i].gpa);
		uint32_t len = slot->seg[i].len;

		memset(p, 0xff, len < poison ? len : poison);
		poison -= len < poison ? len : poison;
		memcpy(p + len, &canary, sizeof(canary));
	}
}

unsigned int load_rx_post(struct load_queue *q, const struct load_shape *s,
			  unsigned int max)
{
	uint32_t floor = rx_capacity_floor(s, q->ring.num);
	uint32_t segments =
		s->segments < q->ring.num ? s->segments : q->ring.num;
	unsigned int n = 0;

	while (n < max && q->n_free) {
		uint16_t index = q->free[q->n_free - 1];
		struct load_slot *slot = &q->slot[index];
		uint32_t size = floor;

		if (!s->mrg)
			size += rd_range(&q->rnd, 0, 300);
		else if (rd_random(&q->rnd) >> 63)
			size += rd_range(&q->rnd, 0, 200);
		else
			size += rd_range(&q->rnd, 0, 3900);
		lay_out(q, slot, size, segments);
		if (add_chain(q, s, index, LOAD_RX) < 0)
			break;
		arm(q, slot);
		q->n_free--;
		n++;
	}
	publish(q, n);
	return n;
}

/* Adds the first @len bytes of @slot to merged[] and checks the canaries. */
static uint32_t gather(struct load_queue *q, const struct load_slot *slot,
		       uint32_t len, uint32_t n, struct load_errors *e)
{
	for (uint32_t i = 0; i < slot->n; i++) {
		uint8_t *p = rd_mem_ptr(q->mem, slot->seg[i].gpa);
		uint32_t part = slot->seg[i].len;
		uint64_t canary;

		memcpy(&canary, p + part, sizeof(canary));
		if (canary != CANARY)
			e->canary++;
		if (part > len)
			part = len;
		len -= part;
		if (part && n < MERGED_MAX)
			merged[n++] = (struct iovec){ p, part };
	}
	if (len)
		e->used++;
	return n;
}

/* Cuts the first @len bytes of merged[0..n) off into @to. */
static bool pull(uint32_t n, uint8_t *to, uint32_t len, uint32_t *skipped)
{
	uint32_t i = 0;

	for (; i < n && len; i++) {
		uint32_t part = len;

		if (part > merged[i].iov_len)
			part = (uint32_t)merged[i].iov_len;
		memcpy(to, merged[i].iov_base, part);
		to += part;
		len -= part;
		merged[i].iov_base = (uint8_t *)merged[i].iov_base + part;
		merged[i].iov_len -= part;
		if (merged[i].iov_len)
			break;
	}
	*skipped = i;
	return len == 0;
}

/* Takes one used chain into merged[]. Number of pieces now there. */
static uint32_t take_chain(struct load_queue *q, uint32_t n, bool *full,
			   struct load_errors *e)
{
	struct load_slot *slot;
	struct rd_done done;

	if (rd_take(&q->ring, &done) <= 0) {
		e->used++;
		return n;
	}
	slot = &q->slot[done.cookie];
	*full = done.len == slot->capacity;
	n = gather(q, slot, done.len, n, e);
	/* Its contents stay until it is posted again. */
	q->free[q->n_free++] = (uint16_t)done.cookie;
	return n;
}

unsigned int load_rx_reap(struct load_queue *q, const struct load_shape *s,
			  const struct load_gen *g, struct load_ledger *l,
			  struct load_errors *e)
{
	unsigned int chains = 0;

	while (rd_used_count(&q->ring)) {
		struct virtio_net_hdr_mrg_rxbuf hdr = { 0 };
		uint32_t skip, n, more = 0;
		uint64_t seq, bytes = 0;
		bool full = false;

		n = take_chain(q, 0, &full, e);
		chains++;
		if (n == 0) {
			e->empty++;
			continue;
		}
		if (!pull(n, (uint8_t *)&hdr, s->hdr_len, &skip)) {
			l->changed++;
			continue;
		}
		if (s->hdr_len == 12 && hdr.num_buffers != 1) {
			more = (uint32_t)hdr.num_buffers - 1;
			if (!s->mrg || more > rd_used_count(&q->ring)) {
				e->num_buffers++;
				more = 0;
			}
		}
		for (; more; more--, chains++) {
			/* All but the last one are filled. */
			if (!full)
				e->used++;
			n = take_chain(q, n, &full, e);
		}
		for (uint32_t i = skip; i < n; i++)
			bytes += merged[i].iov_len;
		switch (load_frame_check(g, LOAD_RX, &hdr.hdr, merged + skip,
					 n - skip, &seq)) {
		case LOAD_GOOD:
			load_ledger_arrive(l, seq);
			l->bytes += bytes;
			break;
		case LOAD_CHANGED:
			l->changed++;
			break;
		case LOAD_FOREIGN:
			l->foreign++;
			break;
		}
	}
	return chains;
}
