/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may go where, and who waits for whom.
 *
 * Everything leaves by the express lane while that takes it: no destination is
 * looked up, no other state is touched. A packet that the express lane refuses
 * moves its destination to a side lane and is sent there in the next round. An
 * innocent destination finds its lane empty and goes on; the one that filled
 * the express lane fills its own too, and is known as slow from then on. Only
 * packets of a full side lane wait, in that lane's FIFO.
 *
 * Order. The kernel takes packets one after the other, and what one tap queue
 * took is in the destination's queueing discipline already: it cannot be
 * overtaken by what another queue takes later. So a destination may change its
 * lane whenever none of its packets waits, and with its packets when they move
 * along (merge). Within a lane sends are linked, so a refused packet is never
 * overtaken by one behind it.
 *
 * Bounds. A FIFO is as long as its lane drains in LIMIT_NS, and FIFO_PACKETS_MIN
 * packets; all of them share what the owner can keep. Delay is held down by
 * CoDel before that.
 *
 * More slow destinations than lanes. Two lanes proven slow are merged to free
 * one, ahead of need, so that it has drained when the next destination comes.
 */
#include "lane/lane_set.h"

#include <errno.h>
#include <string.h>

#include "base/barrier.h"
#include "base/iov.h"
#include "base/util.h"

/* A FIFO's delay at its measured drain rate; the limit before it is known. */
#define LIMIT_NS         25000000ULL
#define LIMIT_UNMEASURED (256u * 1024u)
#define FIFO_PACKETS_MIN 2u
/* A drain rate is measured over so long a time of backlog. */
#define RATE_WINDOW_NS   50000000ULL
/* A lane that is idle so long is given back. */
#define RETURN_IDLE_NS   100000000ULL
/* Packets of a FIFO handed to the kernel in one submit. */
#define PUMP_BURST       32u

int vl_lane_set_start(struct vl_lane_set *ls, struct vl_backend *backend,
		      unsigned int port, struct vl_io *io)
{
	unsigned int ways = backend->ways;

	if (ls->mode != VL_TX_FULL_LANES || ways < 2) {
		if (ls->mode == VL_TX_FULL_LANES)
			ls->mode = VL_TX_FULL_BLOCK;
		ways = 1;
	}
	ls->n = vl_min_u32(ways, VL_LANES_MAX);
	for (unsigned int i = 0; i < ls->n; i++)
		vl_lane_bind(&ls->lane[i], backend, port, i, io);
	return backend->ops->port_start(backend, port, io);
}

void vl_lane_set_stop(struct vl_lane_set *ls)
{
	struct vl_lane *express = &ls->lane[0];

	for (unsigned int i = 0; i < ls->n; i++)
		vl_lane_release(&ls->lane[i]);
	express->backend->ops->port_stop(express->backend, express->port,
					 express->io);
}

int vl_lane_set_activate(struct vl_lane_set *ls, bool active)
{
	int err = vl_lane_set_active(&ls->lane[0], active);

	for (unsigned int i = 1; i < ls->n && !err; i++)
		ls->lane[i].active = active;
	return err;
}

void vl_lane_set_link(struct vl_lane_set *ls, bool down)
{
	for (unsigned int i = 0; i < ls->n; i++)
		vl_lane_set_down(&ls->lane[i], down);
}

bool vl_lane_set_ready(const struct vl_lane_set *ls)
{
	return !ls->in_flight && !ls->lane[0].full;
}

static void start_send(struct vl_lane_set *ls, struct vl_pkt *pkt, uint8_t lane)
{
	pkt->lane = lane;
	pkt->sending = true;
	ls->in_flight++;
	vl_lane_send(&ls->lane[lane], pkt->iov, pkt->n_iov, pkt->tag);
}

static void append(struct vl_lane_set *ls, struct vl_dest *dest,
		   struct vl_pkt *pkt)
{
	struct vl_side *s = &ls->side[dest->lane];

	pkt->dest = dest;
	pkt->lane = dest->lane;
	pkt->since_ns = ls->now_ns;
	pkt->next = NULL;
	pkt->parked = false;
	if (s->tail)
		s->tail->next = pkt;
	else
		s->head = pkt;
	s->tail = pkt;
	VL_STAT_INC(s->n_pkts);
	VL_STAT_ADD(s->bytes, pkt->len);
	s->used_ns = ls->now_ns;
	dest->parked++;
}

/* Unlinks @pkt, which follows @prev (NULL: is the head). */
static void unlink_pkt(struct vl_side *s, struct vl_pkt *prev,
		       struct vl_pkt *pkt)
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

void vl_lane_set_remove(struct vl_lane_set *ls, struct vl_pkt *pkt)
{
	struct vl_side *s = &ls->side[pkt->lane];
	struct vl_pkt *prev = NULL;

	for (struct vl_pkt *p = s->head; p && p != pkt; p = p->next)
		prev = p;
	unlink_pkt(s, prev, pkt);
}

static void read_key(const struct vl_pkt *pkt, struct vl_dest_key *key)
{
	uint8_t peek[VL_DEST_PEEK];
	uint32_t hdr_len =
		(uint32_t)(vl_iov_len(pkt->iov, pkt->n_iov) - pkt->len);
	size_t n =
		vl_iov_read(pkt->iov, pkt->n_iov, hdr_len, peek, sizeof(peek));

	vl_dest_key(peek, n, key);
}

void vl_lane_set_send(struct vl_lane_set *ls, struct vl_pkt *pkt)
{
	struct vl_dest_key key;
	struct vl_dest *dest = NULL;

	pkt->dest = NULL;
	if (vl_unlikely(ls->dests.count)) {
		read_key(pkt, &key);
		dest = vl_dest_find(&ls->dests, &key);
	}
	if (vl_unlikely(dest))
		append(ls, dest, pkt);
	else
		start_send(ls, pkt, 0);
}

static bool is_idle(const struct vl_side *s)
{
	return !s->dests && !s->n_pkts;
}

/* Moves destinations and waiting packets of lane @from to lane @to. */
static void merge(struct vl_lane_set *ls, unsigned int from, unsigned int to)
{
	struct vl_side *a = &ls->side[to], *b = &ls->side[from];

	vl_dest_move(&ls->dests, (uint8_t)from, (uint8_t)to);
	for (struct vl_pkt *p = b->head; p; p = p->next)
		p->lane = (uint8_t)to;
	if (b->head) {
		if (a->tail)
			a->tail->next = b->head;
		else
			a->head = b->head;
		a->tail = b->tail;
	}
	VL_STAT_ADD(a->n_pkts, b->n_pkts);
	VL_STAT_ADD(a->dests, b->dests);
	VL_STAT_ADD(a->bytes, b->bytes);
	VL_STAT_INC(a->merges);
	b->head = NULL;
	b->tail = NULL;
	vl_write_once(&b->n_pkts, 0u);
	vl_write_once(&b->dests, 0u);
	vl_write_once(&b->slow, false);
	vl_write_once(&b->bytes, (uint64_t)0);
	vl_write_once(&b->rate, (uint64_t)0);
	b->rate_from_ns = 0;
}

/* The slow lane with the fewest waiting packets, but not @other; 0: none. */
static unsigned int smallest_slow(const struct vl_lane_set *ls,
				  unsigned int other)
{
	unsigned int best = 0;

	for (unsigned int i = 1; i < ls->n; i++)
		if (i != other && ls->side[i].slow &&
		    (!best || ls->side[i].n_pkts < ls->side[best].n_pkts))
			best = i;
	return best;
}

/* Frees a lane by merging two slow ones. */
static void free_one(struct vl_lane_set *ls)
{
	unsigned int from = smallest_slow(ls, 0);
	unsigned int to = from ? smallest_slow(ls, from) : 0;

	if (to)
		merge(ls, from, to);
}

/* An idle lane, preferably one with nothing left in the kernel; 0: none. */
static unsigned int idle_lane(const struct vl_lane_set *ls)
{
	unsigned int found = 0;

	for (unsigned int i = 1; i < ls->n; i++) {
		if (!is_idle(&ls->side[i]))
			continue;
		found = i;
		if (!ls->lane[i].full)
			break;
	}
	return found;
}

/* The lane that a destination gets which the express lane refused. Where none
 * can be had alone it shares with those that are not proven slow either. */
static unsigned int take_lane(struct vl_lane_set *ls)
{
	unsigned int i = idle_lane(ls);
	unsigned int best = 0;

	if (!i) {
		free_one(ls);
		i = idle_lane(ls);
	}
	if (i)
		return i;
	for (i = 1; i < ls->n; i++)
		if (!best || ls->side[i].slow < ls->side[best].slow ||
		    (ls->side[i].slow == ls->side[best].slow &&
		     ls->side[i].dests < ls->side[best].dests))
			best = i;
	return best;
}

/* The destination of @pkt, which the express lane refused, leaves that lane. */
static struct vl_dest *move_away(struct vl_lane_set *ls,
				 const struct vl_dest_key *key)
{
	unsigned int lane = take_lane(ls);
	uint8_t evicted;
	struct vl_dest *dest =
		vl_dest_add(&ls->dests, key, (uint8_t)lane, &evicted);

	if (!dest)
		return NULL;
	if (evicted)
		vl_write_once(&ls->side[evicted].dests,
			      ls->side[evicted].dests - 1);
	VL_STAT_INC(ls->side[lane].dests);
	VL_STAT_INC(ls->side[lane].moves);
	if (!idle_lane(ls))
		free_one(ls);
	/* Merging may have moved it at once. */
	return dest;
}

static enum vl_pkt_end end_of(enum vl_io_verdict verdict)
{
	switch (verdict) {
	case VL_IO_DONE:
		return VL_PKT_SENT;
	case VL_IO_DOWN:
		return VL_PKT_DOWN;
	case VL_IO_GONE:
		return VL_PKT_GONE;
	case VL_IO_NOMEM:
		return VL_PKT_NOMEM;
	case VL_IO_AGAIN:
	case VL_IO_REFUSED:
	case VL_IO_VERDICTS:
		break;
	}
	return VL_PKT_REFUSED;
}

/* Follows the drain rate while the lane is backlogged. */
static void measure(struct vl_lane_set *ls, struct vl_side *s, uint32_t len)
{
	uint64_t took = ls->now_ns - s->rate_from_ns;
	uint64_t rate;

	if (!s->rate_from_ns) {
		s->rate_from_ns = ls->now_ns;
		s->rate_bytes = 0;
		return;
	}
	s->rate_bytes += len;
	if (took < RATE_WINDOW_NS)
		return;
	rate = s->rate_bytes * VL_NS_PER_SEC / took;
	vl_write_once(&s->rate, s->rate ? (s->rate + rate) / 2 : rate);
	s->rate_from_ns = ls->now_ns;
	s->rate_bytes = 0;
}

static void side_complete(struct vl_lane_set *ls, struct vl_pkt *pkt, int res)
{
	struct vl_side *s = &ls->side[pkt->lane];
	enum vl_io_verdict verdict = vl_io_verdict(res);

	if (verdict == VL_IO_AGAIN) {
		/* -ECANCELED: one before it failed; its turn comes again. */
		if (res != -EAGAIN)
			return;
		VL_STAT_INC(s->refusals);
		vl_write_once(&s->slow, true);
		if (!ls->lane[pkt->lane].full)
			vl_lane_set_full(&ls->lane[pkt->lane]);
		return;
	}
	if (verdict == VL_IO_DONE) {
		VL_STAT_INC(s->sent_packets);
		VL_STAT_ADD(s->sent_bytes, pkt->len);
		vl_write_once(&s->delay_ns, ls->now_ns - pkt->since_ns);
		if (s->slow)
			measure(ls, s, pkt->len);
	}
	vl_lane_set_remove(ls, pkt);
	ls->ops->done(ls->owner, pkt, end_of(verdict));
}

void vl_lane_set_complete(struct vl_lane_set *ls, struct vl_pkt *pkt, int res)
{
	enum vl_io_verdict verdict = vl_io_verdict(res);

	ls->in_flight--;
	pkt->sending = false;
	if (vl_unlikely(pkt->lane)) {
		side_complete(ls, pkt, res);
		return;
	}
	if (vl_unlikely(verdict == VL_IO_AGAIN)) {
		ls->refused[ls->n_refused++] = pkt;
		return;
	}
	ls->ops->done(ls->owner, pkt, end_of(verdict));
}

/* Drops the packet at the head while CoDel says so. */
static void drop_late(struct vl_lane_set *ls, struct vl_side *s)
{
	while (s->head && !s->head->sending) {
		struct vl_pkt *pkt = s->head;
		uint64_t waited = ls->now_ns - pkt->since_ns;

		if (!vl_codel_drop(&s->codel, ls->now_ns, waited,
				   s->n_pkts <= FIFO_PACKETS_MIN))
			return;
		unlink_pkt(s, NULL, pkt);
		VL_STAT_INC(s->drops_late);
		ls->ops->done(ls->owner, pkt, VL_PKT_LATE);
	}
}

void vl_lane_set_pump(struct vl_lane_set *ls)
{
	if (vl_likely(!ls->dests.count))
		return;
	for (unsigned int i = 1; i < ls->n; i++) {
		struct vl_side *s = &ls->side[i];
		uint32_t burst = PUMP_BURST;
		struct vl_pkt *p;

		if (!s->head || ls->lane[i].full)
			continue;
		drop_late(ls, s);
		for (p = s->head; p && burst && vl_io_room(ls->lane[i].io);
		     p = p->next, burst--)
			if (!p->sending)
				start_send(ls, p, (uint8_t)i);
	}
}

/* Refused packets in the order of the ring; nearly sorted already. */
static void sort_refused(struct vl_lane_set *ls)
{
	for (uint32_t i = 1; i < ls->n_refused; i++) {
		struct vl_pkt *p = ls->refused[i];
		uint32_t j = i;

		for (; j && (int32_t)(ls->refused[j - 1]->seq - p->seq) > 0;
		     j--)
			ls->refused[j] = ls->refused[j - 1];
		ls->refused[j] = p;
	}
}

/* The first refused packet moves its destination; the others follow theirs, or
 * try the express lane again. */
static void reroute_refused(struct vl_lane_set *ls)
{
	uint32_t n = ls->n_refused;
	bool moved = false;

	sort_refused(ls);
	ls->n_refused = 0;
	if (n)
		VL_STAT_INC(ls->side[0].refusals);
	for (uint32_t i = 0; i < n; i++) {
		struct vl_pkt *pkt = ls->refused[i];
		struct vl_dest_key key;
		struct vl_dest *dest;

		read_key(pkt, &key);
		dest = vl_dest_find(&ls->dests, &key);
		if (!dest && !moved) {
			moved = true;
			dest = move_away(ls, &key);
			if (!dest) {
				ls->ops->done(ls->owner, pkt, VL_PKT_FULL);
				continue;
			}
		}
		if (dest)
			append(ls, dest, pkt);
		else
			start_send(ls, pkt, 0);
	}
}

/* Bytes that may wait in @s. */
static uint64_t fifo_limit(const struct vl_side *s)
{
	return s->rate ? s->rate * (LIMIT_NS / 1000) / 1000000
		       : LIMIT_UNMEASURED;
}

/* What waits in a full lane from now on is kept, or dropped from the end. */
static void park(struct vl_lane_set *ls, struct vl_side *s)
{
	struct vl_pkt *prev = NULL, *p = s->head;
	uint64_t bytes = 0;
	uint32_t n = 0;

	while (p) {
		struct vl_pkt *next = p->next;
		/* A small packet fits where a large one does not: so a ping
		 * gets through beside a flood. */
		bool over =
			n >= FIFO_PACKETS_MIN && bytes + p->len > fifo_limit(s);

		if (!p->parked && !over)
			p->parked = ls->ops->park(ls->owner, p);
		if (p->parked) {
			prev = p;
			/* The first ones may be of any size: something has to
			 * be there when the lane has drained. */
			bytes += n++ < FIFO_PACKETS_MIN ? 0 : p->len;
		} else {
			unlink_pkt(s, prev, p);
			if (over)
				VL_STAT_INC(s->drops_limit);
			else
				VL_STAT_INC(s->drops_pool);
			ls->ops->done(ls->owner, p,
				      over ? VL_PKT_LIMIT : VL_PKT_POOL);
		}
		p = next;
	}
}

static void settle_side(struct vl_lane_set *ls, unsigned int i)
{
	struct vl_side *s = &ls->side[i];

	if (s->head)
		park(ls, s);
	else if (!ls->lane[i].full)
		s->rate_from_ns = 0; /* not backlogged: no measure */
}

bool vl_lane_set_settle(struct vl_lane_set *ls)
{
	if (vl_likely(!ls->n_refused && !ls->dests.count))
		return false;
	if (ls->mode == VL_TX_FULL_BLOCK)
		return false;
	if (ls->mode == VL_TX_FULL_DROP) {
		while (ls->n_refused)
			ls->ops->done(ls->owner, ls->refused[--ls->n_refused],
				      VL_PKT_FULL);
		return false;
	}
	reroute_refused(ls);
	vl_lane_set_pump(ls);
	if (ls->in_flight)
		return true;
	for (unsigned int i = 1; i < ls->n; i++)
		settle_side(ls, i);
	return false;
}

void vl_lane_set_writable(struct vl_lane_set *ls, unsigned int index)
{
	if (index < ls->n)
		ls->lane[index].full = false;
}

int64_t vl_lane_set_timeout(const struct vl_lane_set *ls)
{
	return ls->dests.count ? (int64_t)RETURN_IDLE_NS / 2 : -1;
}

void vl_lane_set_tick(struct vl_lane_set *ls)
{
	if (vl_likely(!ls->dests.count))
		return;
	for (unsigned int i = 1; i < ls->n; i++) {
		struct vl_side *s = &ls->side[i];

		if (!s->dests || s->n_pkts || ls->lane[i].full ||
		    ls->now_ns - s->used_ns < RETURN_IDLE_NS)
			continue;
		vl_dest_remove_lane(&ls->dests, (uint8_t)i);
		vl_write_once(&s->dests, 0u);
		vl_write_once(&s->slow, false);
		s->codel = (struct vl_codel){ 0 };
		vl_write_once(&s->rate, (uint64_t)0);
		vl_write_once(&s->delay_ns, (uint64_t)0);
		s->rate_from_ns = 0;
		VL_STAT_INC(s->returns);
	}
}

enum vl_lane_state vl_lane_set_state(const struct vl_lane_set *ls,
				     unsigned int index)
{
	const struct vl_side *s = &ls->side[index];

	if (index == 0)
		return VL_LANE_EXPRESS;
	if (!vl_read_once(&s->dests))
		return VL_LANE_IDLE;
	return vl_read_once(&s->slow) ? VL_LANE_SLOW : VL_LANE_SIDE;
}
