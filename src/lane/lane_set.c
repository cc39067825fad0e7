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
 * Bounds. A FIFO is as long as its lane drains in VL_FIFO_NS, at least
 * VL_FIFO_PACKETS_MIN packets, at most VL_FIFO_BYTES_MAX and VL_FIFO_PACKETS_MAX: a
 * quarter of what the owner can keep, which all lanes share. Delay is held down
 * by CoDel before that.
 */
#include "lane/lane_set.h"

#include <errno.h>
#include <string.h>

#include "base/barrier.h"
#include "base/iov.h"
#include "base/util.h"
#include "lane/steer.h"

/* So many times the limit of a FIFO must not stay in it. */
#define STALE_TIMES 3u
/* Packets of a FIFO handed to the kernel in one submit. */
#define PUMP_BURST  32u
/* So often full lanes are looked at, whether they are still full. */
#define LOOK_NS     100000000ULL

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
	ls->first_short = ls->n - vl_min_u32(backend->short_ways, ls->n - 1);
	for (unsigned int i = 0; i < ls->n; i++)
		vl_lane_bind(&ls->lane[i], backend, port, i, io);
	vl_probes_start(ls, backend, port, io);
	return backend->ops->port_start(backend, port, io, ls->tag_backend);
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

	for (unsigned int i = 1; i < ls->n && !err; i++) {
		ls->lane[i].active = active;
		/* Nobody waits for a way out that there is not. */
		if (!active)
			vl_lane_set_down(&ls->lane[i], ls->lane[i].down);
	}
	for (unsigned int i = 0; i < ls->probes.n && !err; i++)
		ls->probes.probe[i].lane.active = active;
	return err;
}

void vl_lane_set_link(struct vl_lane_set *ls, bool down)
{
	for (unsigned int i = 0; i < ls->n; i++)
		vl_lane_set_down(&ls->lane[i], down);
	for (unsigned int i = 0; i < ls->probes.n; i++)
		ls->probes.probe[i].lane.down = down;
}

bool vl_lane_set_ready(const struct vl_lane_set *ls)
{
	return !ls->in_flight && !ls->lane[0].full;
}

static void start_send(struct vl_lane_set *ls, struct vl_pkt *pkt, uint8_t lane)
{
	bool zerocopy;

	pkt->lane = lane;
	pkt->sending = true;
	ls->in_flight++;
	zerocopy = vl_unlikely(ls->zerocopy) &&
		   ls->ops->zerocopy(ls->owner, pkt, lane);
	vl_lane_send(&ls->lane[lane], pkt->iov, pkt->n_iov, zerocopy, pkt->tag);
}

void vl_lane_set_remove(struct vl_lane_set *ls, struct vl_pkt *pkt)
{
	struct vl_side *s = &ls->side[pkt->lane];
	struct vl_pkt *prev = NULL;

	for (struct vl_pkt *p = s->head; p && p != pkt; p = p->next)
		prev = p;
	vl_side_unlink(s, prev, pkt);
}

void vl_pkt_key(const struct vl_pkt *pkt, struct vl_dest_key *key)
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
		vl_pkt_key(pkt, &key);
		dest = vl_dest_find(&ls->dests, &key);
	}
	if (vl_unlikely(dest))
		vl_side_append(&ls->side[dest->lane], dest, pkt, ls->now_ns);
	else if (vl_likely(!ls->probes.skip) || !vl_probes_take(ls, pkt))
		start_send(ls, pkt, 0);
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

static void refused_by_side(struct vl_lane_set *ls, struct vl_pkt *pkt)
{
	struct vl_lane *lane = &ls->lane[pkt->lane];
	struct vl_side *s = &ls->side[pkt->lane];

	VL_STAT_INC(s->refusals);
	vl_write_once(&s->slow, true);
	s->busy_ns = ls->now_ns;
	vl_side_measure(s, ls->now_ns);
	if (s->dests == 1)
		pkt->dest->slow_ns = ls->now_ns;
	if (!lane->full)
		vl_lane_set_full(lane);
	if (lane->full)
		return;
	/* It cannot be waited for, so nobody does. */
	vl_lane_set_remove(ls, pkt);
	ls->ops->done(ls->owner, pkt, VL_PKT_NOMEM);
}

static void side_complete(struct vl_lane_set *ls, struct vl_pkt *pkt, int res)
{
	struct vl_side *s = &ls->side[pkt->lane];
	enum vl_io_verdict verdict = vl_io_verdict(res);

	if (verdict == VL_IO_AGAIN) {
		/* -ECANCELED: one before it failed; its turn comes again. */
		if (res != -EAGAIN)
			return;
		refused_by_side(ls, pkt);
		return;
	}
	if (verdict == VL_IO_DONE) {
		VL_STAT_INC(s->sent_packets);
		VL_STAT_ADD(s->sent_bytes, pkt->len);
		vl_write_once(&s->delay_ns, ls->now_ns - pkt->since_ns);
		s->rate_bytes += pkt->len;
	}
	vl_lane_set_remove(ls, pkt);
	ls->ops->done(ls->owner, pkt, end_of(verdict));
}

void vl_lane_set_complete(struct vl_lane_set *ls, struct vl_pkt *pkt, int res)
{
	enum vl_io_verdict verdict = vl_io_verdict(res);

	ls->in_flight--;
	pkt->sending = false;
	if (vl_unlikely(pkt->lane && pkt->lane != VL_PKT_BY_PROBE)) {
		side_complete(ls, pkt, res);
		return;
	}
	if (vl_unlikely(verdict == VL_IO_AGAIN && !pkt->lane)) {
		ls->refused[ls->n_refused++] = pkt;
		ls->pushed_back |= res == -EAGAIN;
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
				   vl_side_is_short(s)))
			return;
		vl_side_unlink(s, NULL, pkt);
		VL_STAT_INC(s->drops_late);
		ls->ops->done(ls->owner, pkt, VL_PKT_LATE);
	}
}

/* Cuts waiting packet @p of a lane, which follows @prev, to parts that drain in
 * @bytes each if it is larger. Returns what is in its place. */
static struct vl_pkt *cut(struct vl_lane_set *ls, struct vl_side *s,
			  struct vl_pkt *prev, struct vl_pkt *p)
{
	struct vl_pkt *parts = NULL;
	uint32_t bytes;

	if (vl_likely(!p->can_cut) || !s->slow || p->sending)
		return p;
	bytes = vl_side_cut_bytes(s, ls->now_ns);
	if (p->len > bytes)
		parts = ls->ops->cut(ls->owner, p, bytes);
	if (!parts)
		return p;
	vl_side_replace(s, prev, p, parts);
	return parts;
}

/* A tap that is down is not writable, and nobody tells a detached queue that it
 * is up again. Where we cannot see the link either, we have to look. */
static void look_at_full(struct vl_lane_set *ls)
{
	if (ls->now_ns - ls->full_seen_ns < LOOK_NS)
		return;
	ls->full_seen_ns = ls->now_ns;
	for (unsigned int i = 1; i < ls->n; i++) {
		struct vl_lane *l = &ls->lane[i];
		const struct vl_backend_ops *ops = l->backend->ops;

		if (!l->full || !ops->headroom ||
		    !ops->headroom(l->backend, l->port, l->way))
			continue;
		vl_lane_release(l);
		vl_lane_set_writable(ls, i);
	}
}

static bool has_room(const struct vl_lane *lane)
{
	return vl_io_room(lane->io) > lane->backend->ops_per_frame;
}

void vl_lane_set_pump(struct vl_lane_set *ls)
{
	if (vl_likely(!ls->dests.count) || ls->paused)
		return;
	look_at_full(ls);
	for (unsigned int i = 1; i < ls->n; i++) {
		struct vl_side *s = &ls->side[i];
		uint32_t burst = PUMP_BURST;
		struct vl_pkt *prev = NULL, *p;

		if (!s->head || ls->lane[i].full)
			continue;
		drop_late(ls, s);
		for (p = s->head; p && burst && has_room(&ls->lane[i]);
		     p = p->next, burst--) {
			p = cut(ls, s, prev, p);
			if (!p->sending)
				start_send(ls, p, (uint8_t)i);
			prev = p;
		}
	}
}

/* They are nearly sorted already. */
void vl_lane_set_sort_refused(struct vl_lane_set *ls)
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

/*
 * The lane was trusted to take everything, and did not: others may have
 * overtaken the refused ones, which are dropped rather than reordered. All
 * sends are linked from now on.
 */
static bool drop_overtaken(struct vl_lane_set *ls)
{
	if (vl_lane_can_refuse(&ls->lane[0]))
		return false;
	for (unsigned int i = 0; i < ls->n; i++)
		ls->lane[i].link_sends = true;
	while (ls->n_refused)
		ls->ops->done(ls->owner, ls->refused[--ls->n_refused],
			      VL_PKT_NOMEM);
	return true;
}

/* The first refused packet moves its destination; the others follow theirs, or
 * try the express lane again. If it did not push back all of them do. */
static void reroute_refused(struct vl_lane_set *ls)
{
	bool moved = !ls->pushed_back;
	uint32_t n;

	if (ls->pushed_back) {
		VL_STAT_INC(ls->side[0].refusals);
		ls->side[0].busy_ns = ls->now_ns;
		ls->pushed_back = false;
		if (drop_overtaken(ls))
			return;
	}
	vl_lane_set_sort_refused(ls);
	n = ls->n_refused;
	ls->n_refused = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct vl_pkt *pkt = ls->refused[i];
		struct vl_dest_key key;
		struct vl_dest *dest;

		vl_pkt_key(pkt, &key);
		dest = vl_dest_find(&ls->dests, &key);
		if (!dest && !moved) {
			moved = true;
			dest = vl_steer_away(ls, &key);
			if (!dest) {
				ls->ops->done(ls->owner, pkt, VL_PKT_FULL);
				continue;
			}
		}
		if (dest)
			vl_side_append(&ls->side[dest->lane], dest, pkt,
				       ls->now_ns);
		else
			start_send(ls, pkt, 0);
	}
}

/* @p, which follows @prev, cannot wait: its lane has enough that does (@limit),
 * or the owner. */
static void drop_new(struct vl_lane_set *ls, struct vl_side *s,
		     struct vl_pkt *prev, struct vl_pkt *p, bool limit)
{
	vl_side_unlink(s, prev, p);
	if (limit)
		VL_STAT_INC(s->drops_limit);
	else
		VL_STAT_INC(s->drops_pool);
	ls->ops->done(ls->owner, p, limit ? VL_PKT_LIMIT : VL_PKT_POOL);
}

/* More waits in @s than drains in any good time, since it is slower than it
 * was thought to be. What came last stays: from that a sender learns at once
 * what it has lost, where after a lost end it would have to wait in vain. */
static void drop_stale(struct vl_lane_set *ls, struct vl_side *s,
		       uint64_t limit)
{
	uint64_t bytes = 0;

	/* What has just come is judged by park(). */
	for (const struct vl_pkt *p = s->head; p; p = p->next)
		bytes += p->parked ? p->len : 0;
	if (bytes <= limit * STALE_TIMES)
		return;
	while (s->n_pkts > VL_FIFO_PACKETS_MIN && s->head->parked &&
	       bytes > limit) {
		struct vl_pkt *p = s->head;

		bytes -= p->len;
		vl_side_unlink(s, NULL, p);
		VL_STAT_INC(s->drops_late);
		ls->ops->done(ls->owner, p, VL_PKT_LATE);
	}
}

/* What waits in full lane @i from now on is kept, or dropped from the end. */
static void park(struct vl_lane_set *ls, unsigned int i)
{
	struct vl_side *s = &ls->side[i];
	struct vl_pkt *prev = NULL, *p;
	uint64_t bytes = 0, limit = vl_side_limit(s, ls->now_ns);
	uint32_t n = 0;

	drop_stale(ls, s, limit);
	p = s->head;
	while (p) {
		struct vl_pkt *next;
		bool over, may_copy;

		p = cut(ls, s, prev, p);
		next = p->next;
		/* A small packet fits where a large one does not: so a ping
		 * gets through beside a flood. The first ones may be of any
		 * size: something has to be there when the lane has drained. */
		over = (n >= VL_FIFO_PACKETS_MIN && bytes + p->len > limit) ||
		       n >= VL_FIFO_PACKETS_MAX;
		may_copy = bytes + p->len <= VL_FIFO_BYTES_MAX;
		if (!p->parked && !over)
			p->parked = ls->ops->park(ls->owner, p, may_copy);
		if (p->parked) {
			prev = p;
			bytes += p->len;
			n++;
		} else {
			drop_new(ls, s, prev, p, over || !may_copy);
		}
		p = next;
	}
}

static void settle_side(struct vl_lane_set *ls, unsigned int i)
{
	struct vl_side *s = &ls->side[i];

	if (s->head) {
		s->busy_ns = ls->now_ns;
		park(ls, i);
		return;
	}
	s->codel.first_above_ns = 0;
	s->codel.dropping = false;
	/* Idle for a moment: what it takes is not what drains. */
	if (!ls->lane[i].full && ls->now_ns - s->busy_ns > VL_FIFO_NS)
		s->rate_from_ns = 0;
}

bool vl_lane_set_settle(struct vl_lane_set *ls)
{
	if (vl_likely(!ls->n_refused && !ls->dests.count))
		return false;
	if (ls->mode == VL_TX_FULL_BLOCK)
		return false;
	if (ls->mode == VL_TX_FULL_DROP && ls->pushed_back) {
		ls->pushed_back = false;
		while (ls->n_refused)
			ls->ops->done(ls->owner, ls->refused[--ls->n_refused],
				      VL_PKT_FULL);
		return false;
	}
	reroute_refused(ls);
	vl_lane_set_pump(ls);
	if (ls->in_flight)
		return true;
	if (vl_steer_apart(ls)) {
		vl_lane_set_pump(ls);
		if (ls->in_flight)
			return true;
	}
	for (unsigned int i = 1; i < ls->n; i++)
		settle_side(ls, i);
	return false;
}

void vl_lane_set_writable(struct vl_lane_set *ls, unsigned int index)
{
	if (index >= ls->n)
		return;
	ls->lane[index].full = false;
	ls->side[index].drained = true;
	ls->side[index].hostage = false;
	ls->side[index].busy_ns = ls->now_ns;
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
