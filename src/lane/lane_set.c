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
 * Bounds. A FIFO is as long as its lane drains in LIMIT_NS, at least
 * FIFO_PACKETS_MIN packets, at most FIFO_BYTES_MAX and FIFO_PACKETS_MAX: a
 * quarter of what the owner can keep, which all lanes share. Delay is held down
 * by CoDel before that.
 *
 * More slow destinations than lanes. Two lanes proven slow are merged to free
 * one, ahead of need, so that it has drained when the next destination comes.
 * The two slowest are: one that merely had a burst drains faster than they do.
 * Where many come at once they share before it is known who is slow. From a
 * shared lane that is slow, the destination with most of the traffic leaves,
 * with its packets, for a lane of its own, where it shows what it is.
 *
 * Return. A lane that was not used for a while is given back. One that is used,
 * but in which nobody had to wait for a while, is not slow any more, and given
 * back when the express lane is calm too.
 */
#include "lane/lane_set.h"

#include <errno.h>
#include <string.h>

#include "base/barrier.h"
#include "base/iov.h"
#include "base/util.h"

/* A FIFO's delay at its measured drain rate. */
#define LIMIT_NS         25000000ULL
#define FIFO_BYTES_MAX   (256ULL * 1024)
#define FIFO_PACKETS_MIN 4u
#define FIFO_PACKETS_MAX 128u
/* A drain rate is measured over so long a time of backlog. */
#define RATE_WINDOW_NS   50000000ULL
/* A lane in which nobody waited for so long is given back. */
#define RETURN_IDLE_NS   100000000ULL
/* So long the express lane was calm when one in use is given back. */
#define RETURN_USED_NS   1000000000ULL
/* Packets of a FIFO handed to the kernel in one submit. */
#define PUMP_BURST       32u
/* Destinations leave shared lanes one by one, with so much time between. */
#define SPLIT_NS         10000000ULL
/* One that was alone and slow need not be alone again for so long. */
#define SLOW_FOR_NS      500000000ULL
/* So much drains from a full side lane before it is writable. */
#define WRITABLE_BYTES   16384u
/* Of so many lanes one is kept in reserve. */
#define RESERVE_LANES    5u
/* Lanes share unless one drains so many times as fast as the other. */
#define UNLIKE           4u

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

	for (unsigned int i = 1; i < ls->n && !err; i++) {
		ls->lane[i].active = active;
		/* Nobody waits for a way out that there is not. */
		if (!active)
			vl_lane_set_down(&ls->lane[i], ls->lane[i].down);
	}
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
	vl_dest_count(dest);
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

/* The lane has no destination any more. */
static void make_idle(struct vl_side *s)
{
	vl_write_once(&s->dests, 0u);
	vl_write_once(&s->slow, false);
	vl_write_once(&s->rate, (uint64_t)0);
	vl_write_once(&s->delay_ns, (uint64_t)0);
	s->codel = (struct vl_codel){ 0 };
	s->rate_from_ns = 0;
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
	vl_write_once(&b->bytes, (uint64_t)0);
	make_idle(b);
	a->used_ns = ls->now_ns;
	a->busy_ns = ls->now_ns;
}

/* Bytes per second that drain from a lane proven slow: measured, or less when
 * it has been full for longer than that explains. */
static uint64_t drain_rate(const struct vl_lane_set *ls, unsigned int i)
{
	const struct vl_side *s = &ls->side[i];
	uint64_t rate = s->rate ? s->rate : UINT64_MAX;
	uint64_t took = s->rate_from_ns ? ls->now_ns - s->rate_from_ns : 0;
	uint64_t most = s->rate_bytes + WRITABLE_BYTES;

	return took ? vl_min_u64(rate, most * VL_NS_PER_SEC / took) : rate;
}

/* The slowest of the lanes proven slow, but not @a or @b; 0: none. */
static unsigned int slowest(const struct vl_lane_set *ls, unsigned int a,
			    unsigned int b)
{
	unsigned int best = 0;

	for (unsigned int i = 1; i < ls->n; i++)
		if (i != a && i != b && ls->side[i].slow &&
		    (!best || drain_rate(ls, i) < drain_rate(ls, best)))
			best = i;
	return best;
}

/* Frees a lane by merging two slow ones, but not @keep, if neither is a lot
 * slower than the other. */
static void free_one(struct vl_lane_set *ls, unsigned int keep)
{
	unsigned int to = slowest(ls, keep, 0);
	unsigned int from = to ? slowest(ls, keep, to) : 0;

	if (from && drain_rate(ls, from) / UNLIKE <= drain_rate(ls, to))
		merge(ls, from, to);
}

/* Whether the kernel holds little of what lane @i sent. */
static bool is_drained(const struct vl_lane_set *ls, unsigned int i)
{
	const struct vl_lane *lane = &ls->lane[i];
	const struct vl_backend_ops *ops = lane->backend->ops;

	if (lane->full)
		return false;
	return !ops->headroom ||
	       ops->headroom(lane->backend, lane->port, lane->way);
}

/* An idle lane after lane @after that has drained from those who had it before;
 * 0: none. With @full any idle lane will do. */
static unsigned int idle_lane(const struct vl_lane_set *ls, unsigned int after,
			      bool full)
{
	for (unsigned int i = after + 1; i < ls->n; i++)
		if (is_idle(&ls->side[i]) && (full || is_drained(ls, i)))
			return i;
	return 0;
}

/* The lane that those share who cannot have one alone: the one with the most
 * destinations; 0: there are none. */
static unsigned int crowded_lane(const struct vl_lane_set *ls)
{
	unsigned int best = 0;

	for (unsigned int i = 1; i < ls->n; i++)
		if (ls->side[i].dests &&
		    (!best || ls->side[i].dests > ls->side[best].dests))
			best = i;
	return best;
}

/* The lane that a destination gets which the express lane refused. With some
 * lanes the last one that has drained is kept for who deserves it. */
static unsigned int take_lane(struct vl_lane_set *ls)
{
	unsigned int i = idle_lane(ls, 0, false);

	if (i && (ls->n < RESERVE_LANES || idle_lane(ls, i, false)))
		return i;
	if (!idle_lane(ls, i, true))
		free_one(ls, 0);
	i = crowded_lane(ls);
	return i ? i : 1;
}

/* A destination is back on the express lane. */
static void leave(struct vl_side *s)
{
	vl_write_once(&s->dests, s->dests - 1);
	if (is_idle(s))
		make_idle(s);
}

/* The destination of a packet that the express lane refused leaves it. */
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
		leave(&ls->side[evicted]);
	VL_STAT_INC(ls->side[lane].dests);
	VL_STAT_INC(ls->side[lane].moves);
	ls->side[lane].used_ns = ls->now_ns;
	ls->side[lane].busy_ns = ls->now_ns;
	if (!idle_lane(ls, 0, true))
		free_one(ls, 0);
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

/* The drain rate, from one time that the lane is full to another: what it took
 * in between has drained. */
static void measure(struct vl_lane_set *ls, struct vl_side *s)
{
	uint64_t took = ls->now_ns - s->rate_from_ns;
	uint64_t rate;

	if (s->rate_from_ns && took < RATE_WINDOW_NS)
		return;
	if (s->rate_from_ns) {
		rate = s->rate_bytes * VL_NS_PER_SEC / took;
		vl_write_once(&s->rate, s->rate ? (s->rate + rate) / 2 : rate);
	}
	s->rate_from_ns = ls->now_ns;
	s->rate_bytes = 0;
}

static void refused_by_side(struct vl_lane_set *ls, struct vl_pkt *pkt)
{
	struct vl_lane *lane = &ls->lane[pkt->lane];
	struct vl_side *s = &ls->side[pkt->lane];

	VL_STAT_INC(s->refusals);
	vl_write_once(&s->slow, true);
	s->busy_ns = ls->now_ns;
	measure(ls, s);
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
	if (vl_unlikely(pkt->lane)) {
		side_complete(ls, pkt, res);
		return;
	}
	if (vl_unlikely(verdict == VL_IO_AGAIN)) {
		ls->refused[ls->n_refused++] = pkt;
		ls->pushed_back |= res == -EAGAIN;
		return;
	}
	ls->ops->done(ls->owner, pkt, end_of(verdict));
}

/*
 * Whether no more waits in @s than one sender that feels the back-pressure
 * keeps under way: TCP has two or three segments of up to 64 KiB in its device,
 * and goes on when one of them is done. Dropping one would only cost the lane
 * what it has sent already, forty segments at a time.
 */
static bool is_short(const struct vl_side *s)
{
	uint32_t largest = 0;

	if (s->n_pkts <= FIFO_PACKETS_MIN)
		return true;
	for (const struct vl_pkt *p = s->head; p; p = p->next)
		if (p->len > largest)
			largest = p->len;
	return s->bytes <= (uint64_t)largest * FIFO_PACKETS_MIN;
}

/* Drops the packet at the head while CoDel says so. */
static void drop_late(struct vl_lane_set *ls, struct vl_side *s)
{
	while (s->head && !s->head->sending) {
		struct vl_pkt *pkt = s->head;
		uint64_t waited = ls->now_ns - pkt->since_ns;

		if (!vl_codel_drop(&s->codel, ls->now_ns, waited, is_short(s)))
			return;
		unlink_pkt(s, NULL, pkt);
		VL_STAT_INC(s->drops_late);
		ls->ops->done(ls->owner, pkt, VL_PKT_LATE);
	}
}

void vl_lane_set_pump(struct vl_lane_set *ls)
{
	if (vl_likely(!ls->dests.count) || ls->paused)
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

/*
 * The lane was trusted to take everything, and did not: others may have
 * overtaken the refused ones, which are dropped rather than reordered. All
 * sends are linked from now on.
 */
static bool drop_overtaken(struct vl_lane_set *ls)
{
	if (ls->lane[0].backend->limited || ls->lane[0].link_sends)
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
	sort_refused(ls);
	n = ls->n_refused;
	ls->n_refused = 0;
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

/* Bytes that may wait in lane @i. */
static uint64_t fifo_limit(const struct vl_lane_set *ls, unsigned int i)
{
	uint64_t rate = drain_rate(ls, i);

	if (rate > FIFO_BYTES_MAX * (VL_NS_PER_SEC / LIMIT_NS))
		return FIFO_BYTES_MAX;
	return rate * (LIMIT_NS / 1000) / 1000000;
}

/* What waits in full lane @i from now on is kept, or dropped from the end. */
static void park(struct vl_lane_set *ls, unsigned int i)
{
	struct vl_side *s = &ls->side[i];
	struct vl_pkt *prev = NULL, *p = s->head;
	uint64_t bytes = 0, limit = fifo_limit(ls, i);
	uint32_t n = 0;

	while (p) {
		struct vl_pkt *next = p->next;
		/* A small packet fits where a large one does not: so a ping
		 * gets through beside a flood. The first ones may be of any
		 * size: something has to be there when the lane has drained. */
		bool over =
			n >= FIFO_PACKETS_MIN &&
			bytes + p->len > (p->parked ? FIFO_BYTES_MAX : limit);

		over |= n >= FIFO_PACKETS_MAX;
		if (!p->parked && !over)
			p->parked = ls->ops->park(ls->owner, p);
		if (p->parked && !over) {
			prev = p;
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

/* Moves @dest and its waiting packets from its lane to the idle lane @to. */
static void move_alone(struct vl_lane_set *ls, struct vl_dest *dest,
		       unsigned int to)
{
	struct vl_side *s = &ls->side[dest->lane];
	struct vl_pkt *prev = NULL, *p = s->head;

	leave(s);
	VL_STAT_INC(ls->side[to].dests);
	VL_STAT_INC(ls->side[to].moves);
	ls->side[to].busy_ns = ls->now_ns;
	dest->lane = (uint8_t)to;
	while (p) {
		struct vl_pkt *next = p->next;
		uint64_t since = p->since_ns;
		bool parked = p->parked;

		if (p->dest != dest) {
			prev = p;
		} else {
			unlink_pkt(s, prev, p);
			append(ls, dest, p);
			p->since_ns = since;
			p->parked = parked;
		}
		p = next;
	}
}

/* The destination that deserves a lane of its own most; NULL: none does. */
static struct vl_dest *crowded_out(struct vl_lane_set *ls)
{
	uint32_t shared = 0;

	for (unsigned int i = 1; i < ls->n; i++)
		if (ls->side[i].dests > 1 && ls->side[i].slow)
			shared |= 1u << i;
	return vl_dest_busiest(&ls->dests, shared, ls->now_ns - SLOW_FOR_NS);
}

/* Gives one destination of a shared lane a lane of its own. Returns whether it
 * did. */
static bool split_one(struct vl_lane_set *ls)
{
	struct vl_dest *dest = NULL;
	unsigned int to = 0;

	if (ls->now_ns - ls->split_ns >= SPLIT_NS) {
		ls->split_ns = ls->now_ns;
		dest = crowded_out(ls);
	}
	if (!dest)
		return false;
	if (!idle_lane(ls, 0, true))
		free_one(ls, dest->lane);
	to = idle_lane(ls, 0, false);
	if (to)
		move_alone(ls, dest, to);
	return to;
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
	if (!ls->lane[i].full && ls->now_ns - s->busy_ns > LIMIT_NS)
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
	if (split_one(ls)) {
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
	ls->side[index].busy_ns = ls->now_ns;
}

int64_t vl_lane_set_timeout(const struct vl_lane_set *ls)
{
	return ls->dests.count ? (int64_t)RETURN_IDLE_NS / 2 : -1;
}

/* Nobody waited in lane @i for a while. */
static void calm_down(struct vl_lane_set *ls, unsigned int i)
{
	struct vl_side *s = &ls->side[i];
	uint64_t calm = vl_min_u64(ls->now_ns - s->busy_ns,
				   ls->now_ns - ls->side[0].busy_ns);

	if (ls->now_ns - s->used_ns < RETURN_IDLE_NS && calm < RETURN_USED_NS) {
		/* Of many one or the other is slow still. */
		if (!s->slow || s->dests > 1)
			return;
		vl_dest_forgive(&ls->dests, (uint8_t)i);
		vl_write_once(&s->slow, false);
		vl_write_once(&s->rate, (uint64_t)0);
		return;
	}
	vl_dest_remove_lane(&ls->dests, (uint8_t)i);
	make_idle(s);
	VL_STAT_INC(s->returns);
}

void vl_lane_set_tick(struct vl_lane_set *ls)
{
	if (vl_likely(!ls->dests.count))
		return;
	for (unsigned int i = 1; i < ls->n; i++) {
		const struct vl_side *s = &ls->side[i];

		if (s->dests && !s->n_pkts && !ls->lane[i].full &&
		    ls->now_ns - s->busy_ns >= RETURN_IDLE_NS)
			calm_down(ls, i);
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
