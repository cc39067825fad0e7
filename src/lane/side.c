/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/side.h"

#include "base/barrier.h"
#include "base/clock.h"
#include "base/util.h"

/* A drain rate is measured over so long a time of backlog. */
#define RATE_WINDOW_NS 50000000ULL
/* Packets that one sender keeps under way for the sake of throughput. */
#define SENDER_PACKETS 4u
/* So much drains from a full side lane before it is writable, as a rule. */
#define WRITABLE_BYTES 16384u
/* At most so much: its send buffer, which a packet of 64 KiB may exceed. */
#define SENT_BYTES     98304u

bool vl_side_is_idle(const struct vl_side *s)
{
	return !s->dests && !s->n_pkts;
}

void vl_side_make_idle(struct vl_side *s)
{
	vl_write_once(&s->dests, 0u);
	vl_write_once(&s->slow, false);
	vl_write_once(&s->rate, (uint64_t)0);
	vl_write_once(&s->delay_ns, (uint64_t)0);
	s->codel = (struct vl_codel){ 0 };
	s->rate_from_ns = 0;
	s->measuring = false;
	s->hostage = false;
}

void vl_side_append(struct vl_side *s, struct vl_dest *dest, struct vl_pkt *pkt,
		    uint64_t now_ns)
{
	pkt->dest = dest;
	pkt->lane = dest->lane;
	pkt->since_ns = now_ns;
	pkt->next = NULL;
	pkt->parked = false;
	if (s->tail)
		s->tail->next = pkt;
	else
		s->head = pkt;
	s->tail = pkt;
	VL_STAT_INC(s->n_pkts);
	VL_STAT_ADD(s->bytes, pkt->len);
	s->used_ns = now_ns;
	vl_dest_count(dest);
	dest->parked++;
}

void vl_side_unlink(struct vl_side *s, struct vl_pkt *prev, struct vl_pkt *pkt)
{
	if (prev)
		prev->next = pkt->next;
	else
		s->head = pkt->next;
	if (s->tail == pkt)
		s->tail = prev;
	vl_write_once(&s->n_pkts, s->n_pkts - 1);
	VL_STAT_ADD(s->bytes, 0 - (uint64_t)pkt->len);
	pkt->dest->parked--;
	pkt->dest = NULL;
	pkt->next = NULL;
}

void vl_side_replace(struct vl_side *s, struct vl_pkt *prev, struct vl_pkt *pkt,
		     struct vl_pkt *parts)
{
	struct vl_dest *dest = pkt->dest;
	struct vl_pkt *behind = pkt->next, *last = prev;

	vl_side_unlink(s, prev, pkt);
	if (prev)
		prev->next = parts;
	else
		s->head = parts;
	for (struct vl_pkt *p = parts; p; p = p->next) {
		p->dest = dest;
		p->lane = pkt->lane;
		p->since_ns = pkt->since_ns;
		p->parked = pkt->parked;
		VL_STAT_INC(s->n_pkts);
		VL_STAT_ADD(s->bytes, p->len);
		dest->parked++;
		last = p;
	}
	last->next = behind;
	if (!behind)
		s->tail = last;
}

void vl_side_take_over(struct vl_side *to, struct vl_side *from, uint8_t lane)
{
	for (struct vl_pkt *p = from->head; p; p = p->next)
		p->lane = lane;
	if (from->head) {
		if (to->tail)
			to->tail->next = from->head;
		else
			to->head = from->head;
		to->tail = from->tail;
	}
	VL_STAT_ADD(to->n_pkts, from->n_pkts);
	VL_STAT_ADD(to->bytes, from->bytes);
	from->head = NULL;
	from->tail = NULL;
	vl_write_once(&from->n_pkts, 0u);
	vl_write_once(&from->bytes, (uint64_t)0);
}

void vl_side_measure(struct vl_side *s, uint64_t now_ns)
{
	uint64_t took = now_ns - s->rate_from_ns;
	uint64_t rate;

	if (s->rate_from_ns && (!s->drained || took < RATE_WINDOW_NS))
		return;
	if (s->rate_from_ns && s->measuring) {
		rate = s->rate_bytes * VL_NS_PER_SEC / took;
		vl_write_once(&s->rate, s->rate ? (s->rate + rate) / 2 : rate);
	}
	s->measuring = s->rate_from_ns;
	s->drained = false;
	s->rate_from_ns = now_ns;
	s->rate_bytes = 0;
}

/* The measured rate, or what is possible if nothing but @slack more than was
 * counted has drained since the last measurement. */
static uint64_t bounded_rate(const struct vl_side *s, uint64_t now_ns,
			     uint32_t slack)
{
	uint64_t rate = s->rate ? s->rate : UINT64_MAX;
	uint64_t took = s->rate_from_ns ? now_ns - s->rate_from_ns : 0;
	uint64_t most = s->rate_bytes + slack;

	return took ? vl_min_u64(rate, most * VL_NS_PER_SEC / took) : rate;
}

uint64_t vl_side_drain_rate(const struct vl_side *s, uint64_t now_ns)
{
	return bounded_rate(s, now_ns, WRITABLE_BYTES);
}

/* Bytes that drain in @ns at @rate, but not more than VL_FIFO_BYTES_MAX. */
static uint64_t drains(uint64_t rate, uint64_t ns)
{
	if (rate > VL_FIFO_BYTES_MAX * (VL_NS_PER_SEC / ns))
		return VL_FIFO_BYTES_MAX;
	return rate * (ns / 1000) / 1000000;
}

uint64_t vl_side_limit(const struct vl_side *s, uint64_t now_ns)
{
	uint64_t bytes;

	if (!s->measuring)
		return VL_FIFO_HELD_MAX;
	bytes = drains(bounded_rate(s, now_ns, SENT_BYTES), VL_FIFO_NS);
	return bytes > VL_FIFO_BYTES_MIN ? bytes : VL_FIFO_BYTES_MIN;
}

uint32_t vl_side_cut_bytes(const struct vl_side *s, uint64_t now_ns)
{
	return (uint32_t)drains(vl_side_drain_rate(s, now_ns), VL_CUT_NS);
}

bool vl_side_is_short(const struct vl_side *s)
{
	uint32_t largest = 0;

	if (s->n_pkts <= SENDER_PACKETS)
		return true;
	for (const struct vl_pkt *p = s->head; p; p = p->next)
		if (p->len > largest)
			largest = p->len;
	return s->bytes <= (uint64_t)largest * SENDER_PACKETS;
}
