/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which destination has which lane.
 *
 * More slow destinations than lanes. Two lanes proven slow are merged to free
 * one, ahead of need, so that it has drained when the next destination comes.
 * The two slowest are: one that merely had a burst drains faster than they do.
 * Where many come at once they share before it is known who is slow. From a
 * shared lane that is slow they leave one by one while there are lanes to be
 * had, the one with most of the traffic first, with its packets, and each shows
 * in a lane of its own what it is. The last lane is for one that stands out.
 *
 * Return. A lane that was not used for a while is given back. One that is used,
 * but in which nobody had to wait for a while, is not slow any more, and given
 * back when the express lane is calm too.
 */
#include "lane/steer.h"

#include "base/barrier.h"
#include "base/util.h"

/* A lane in which nobody waited for so long is given back. */
#define RETURN_IDLE_NS 100000000ULL
/* So long the express lane was calm when one in use is given back. */
#define RETURN_USED_NS 1000000000ULL
/* Destinations leave shared lanes one by one, with so much time between. */
#define SPLIT_NS       10000000ULL
/* One that was alone and slow need not be alone again for so long. */
#define SLOW_FOR_NS    500000000ULL
/* Of so many lanes one is kept in reserve. */
#define RESERVE_LANES  5u
/* What drains at fewer bytes per second wants a short send buffer: of another
 * the standing delay is above 30 ms. */
#define SHORT_RATE     625000u
/* Lanes share unless one drains so many times as fast as the other. */
#define UNLIKE         4u

/* Moves destinations and waiting packets of lane @from to lane @to. */
static void move_all(struct vl_lane_set *ls, unsigned int from, unsigned int to)
{
	struct vl_side *a = &ls->side[to], *b = &ls->side[from];

	vl_dest_move(&ls->dests, (uint8_t)from, (uint8_t)to);
	vl_side_take_over(a, b, (uint8_t)to);
	VL_STAT_ADD(a->dests, b->dests);
	vl_side_make_idle(b);
	a->used_ns = ls->now_ns;
	a->busy_ns = ls->now_ns;
}

static void merge(struct vl_lane_set *ls, unsigned int from, unsigned int to)
{
	move_all(ls, from, to);
	VL_STAT_INC(ls->side[to].merges);
}

static uint64_t rate_of(const struct vl_lane_set *ls, unsigned int i)
{
	return vl_side_drain_rate(&ls->side[i], ls->now_ns);
}

/* Whether lane @i was proven slow, and had to wait a moment ago. */
static bool is_slow(const struct vl_lane_set *ls, unsigned int i)
{
	const struct vl_side *s = &ls->side[i];

	return s->slow && ls->now_ns - s->busy_ns < RETURN_IDLE_NS;
}

/* The slowest of the lanes that are slow, but not @a or @b; 0: none. */
static unsigned int slowest(const struct vl_lane_set *ls, unsigned int a,
			    unsigned int b)
{
	unsigned int best = 0;

	for (unsigned int i = 1; i < ls->n; i++)
		if (i != a && i != b && is_slow(ls, i) &&
		    (!best || rate_of(ls, i) < rate_of(ls, best)))
			best = i;
	return best;
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

/* Gives a lane back before its time, one that has been calm, as has the express
 * lane. Returns whether there was one. */
static bool give_one_back(struct vl_lane_set *ls)
{
	if (ls->now_ns - ls->side[0].busy_ns < RETURN_IDLE_NS)
		return false;
	for (unsigned int i = 1; i < ls->n; i++) {
		struct vl_side *s = &ls->side[i];

		if (!s->dests || s->n_pkts || s->slow ||
		    ls->now_ns - s->busy_ns < RETURN_IDLE_NS ||
		    !is_drained(ls, i))
			continue;
		vl_dest_remove_lane(&ls->dests, (uint8_t)i);
		vl_side_make_idle(s);
		VL_STAT_INC(s->returns);
		return true;
	}
	return false;
}

/* Frees a lane by merging two slow ones, but not @keep, if neither is a lot
 * slower than the other. */
static void free_one(struct vl_lane_set *ls, unsigned int keep)
{
	unsigned int to = slowest(ls, keep, 0);
	unsigned int from = to ? slowest(ls, keep, to) : 0;

	if (from && rate_of(ls, from) / UNLIKE <= rate_of(ls, to))
		merge(ls, from, to);
}

/* An idle lane after lane @after that has drained from those who had it before;
 * 0: none. With @full any idle lane will do. */
static unsigned int idle_lane(const struct vl_lane_set *ls, unsigned int after,
			      bool full)
{
	for (unsigned int i = after + 1; i < ls->n; i++)
		if (vl_side_is_idle(&ls->side[i]) &&
		    (full || is_drained(ls, i)))
			return i;
	return 0;
}

/* A lane that drains slowly is given up for one with a short send buffer, which
 * the kernel does not let us change (rule 7). Returns whether one was. */
static bool shorten_one(struct vl_lane_set *ls)
{
	unsigned int to = idle_lane(ls, ls->first_short - 1, false);

	for (unsigned int i = 1; to && i < ls->first_short; i++) {
		const struct vl_side *s = &ls->side[i];
		uint64_t rate = s->rate;

		if (!s->slow || !rate || rate > SHORT_RATE)
			continue;
		move_all(ls, i, to);
		VL_STAT_INC(ls->side[to].moves);
		vl_write_once(&ls->side[to].slow, true);
		vl_write_once(&ls->side[to].rate, rate);
		ls->side[to].measuring = true;
		return true;
	}
	return false;
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
	if (vl_side_is_idle(s))
		vl_side_make_idle(s);
}

struct vl_dest *vl_steer_away(struct vl_lane_set *ls,
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

/* Moves @dest and its waiting packets from its lane to the idle lane @to. */
static void move_alone(struct vl_lane_set *ls, struct vl_dest *dest,
		       unsigned int to)
{
	struct vl_side *s = &ls->side[dest->lane];
	struct vl_pkt *prev = NULL, *p = s->head;

	s->hostage = ls->lane[dest->lane].full;
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
			vl_side_unlink(s, prev, p);
			vl_side_append(&ls->side[to], dest, p, ls->now_ns);
			p->since_ns = since;
			p->parked = parked;
		}
		p = next;
	}
}

/* The last destination of a lane that others left is not to wait until what they
 * have sent has drained. Returns whether one was moved. */
static bool release_hostage(struct vl_lane_set *ls)
{
	for (unsigned int i = 1; i < ls->n; i++) {
		unsigned int to = 0;

		if (ls->side[i].hostage && ls->side[i].dests == 1)
			to = idle_lane(ls, 0, false);
		if (!to)
			continue;
		move_all(ls, i, to);
		VL_STAT_INC(ls->side[to].moves);
		return true;
	}
	return false;
}

/* The destination of a shared lane that leaves it first, NULL: none does. */
static struct vl_dest *crowded_out(struct vl_lane_set *ls, bool *stands_out)
{
	uint32_t shared = 0;

	for (unsigned int i = 1; i < ls->n; i++)
		if (ls->side[i].dests > 1 && ls->side[i].slow)
			shared |= 1u << i;
	return vl_dest_busiest(&ls->dests, shared, ls->now_ns - SLOW_FOR_NS,
			       stands_out);
}

/* An idle lane for @dest, which leaves a shared one; 0: none. The last one is
 * for one that @stands_out, as in take_lane(). */
static unsigned int take_lane_apart(struct vl_lane_set *ls,
				    const struct vl_dest *dest, bool stands_out)
{
	bool last = stands_out || ls->n < RESERVE_LANES;
	unsigned int i = idle_lane(ls, 0, true);

	if ((!i || (!last && !idle_lane(ls, i, true))) && !give_one_back(ls) &&
	    (stands_out || !dest->slow_ns))
		free_one(ls, dest->lane);
	i = idle_lane(ls, 0, false);
	return i && (last || idle_lane(ls, i, false)) ? i : 0;
}

bool vl_steer_apart(struct vl_lane_set *ls)
{
	struct vl_dest *dest = NULL;
	bool stands_out = false;
	unsigned int to = 0;

	if (ls->now_ns - ls->split_ns >= SPLIT_NS) {
		ls->split_ns = ls->now_ns;
		if (shorten_one(ls) || release_hostage(ls))
			return true;
		dest = crowded_out(ls, &stands_out);
	}
	if (dest)
		to = take_lane_apart(ls, dest, stands_out);
	if (to)
		move_alone(ls, dest, to);
	return to;
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
	vl_side_make_idle(s);
	VL_STAT_INC(s->returns);
}

void vl_steer_back(struct vl_lane_set *ls)
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

int64_t vl_steer_timeout(const struct vl_lane_set *ls)
{
	return ls->dests.count ? (int64_t)RETURN_IDLE_NS / 2 : -1;
}
