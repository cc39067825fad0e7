/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a slow destination is found that fills nothing.
 *
 * The express lane tells of a slow destination only by being full: half a
 * second too late at 10 Mbit/s where its send buffer is large, and never where
 * it is unlimited. So now and then a packet of the express lane is sent by
 * another way, whose send buffer holds just one. As long as that packet is in a
 * queue of the host, the way is not writable. Where this takes longer than
 * LATE_NS, the packet's destination gets a side lane, whose send buffer is
 * short. Packets of fast destinations have left before anybody looks.
 *
 * A packet may take another way at any time: the host takes packets one after
 * the other (lane_set.c, Order). But sends that are linked run behind sends
 * that are not, so among those only the first of a batch can be taken.
 *
 * Which packet is taken is left to chance, among as many as came from one probe
 * to the next: a guest that sends to its destinations in turn, in bursts or
 * not, would show us always the same.
 */
#include "lane/probe.h"

#include "base/barrier.h"
#include "base/util.h"
#include "lane/lane_set.h"
#include "lane/steer.h"

/* One packet for each probe in so much time. */
#define LOOK_NS 1000000ULL
/* A standing queue that is not accepted on the express lane. */
#define LATE_NS 20000000ULL

void vl_probes_start(struct vl_lane_set *ls, struct vl_backend *backend,
		     unsigned int port, struct vl_io *io)
{
	struct vl_probes *ps = &ls->probes;

	ps->n = ls->n > 1 ? vl_min_u32(backend->probes, VL_PROBES_MAX) : 0;
	ps->random = 1;
	for (unsigned int i = 0; i < ps->n; i++) {
		vl_lane_bind(&ps->probe[i].lane, backend, port,
			     backend->ways + i, io);
		ps->probe[i].busy = false;
	}
}

static uint32_t next_random(struct vl_probes *ps)
{
	/* Marsaglia's xorshift. */
	ps->random ^= ps->random << 13;
	ps->random ^= ps->random >> 17;
	ps->random ^= ps->random << 5;
	return ps->random;
}

static bool has_left(const struct vl_probe *p)
{
	const struct vl_lane *l = &p->lane;

	return l->backend->ops->headroom(l->backend, l->port, l->way);
}

static void look_at(struct vl_lane_set *ls, struct vl_probe *p)
{
	if (!p->busy)
		return;
	if (has_left(p)) {
		p->busy = false;
	} else if (!p->late && ls->now_ns - p->since_ns >= LATE_NS) {
		p->late = true;
		if (vl_dest_find(&ls->dests, &p->key))
			return;
		VL_STAT_INC(ls->probes.found);
		(void)vl_steer_away(ls, &p->key);
	}
}

void vl_probes_look(struct vl_lane_set *ls)
{
	struct vl_probes *ps = &ls->probes;
	bool idle = false;

	if (!ps->n || ls->now_ns - ps->looked_ns < LOOK_NS)
		return;
	/* It is not writable then, which tells nothing. */
	if (ls->lane[0].down)
		return;
	ps->looked_ns = ls->now_ns;
	for (unsigned int i = 0; i < ps->n; i++) {
		look_at(ls, &ps->probe[i]);
		idle |= !ps->probe[i].busy;
	}
	if (!idle)
		return;
	/* Never two on end: only what goes by the express lane tells the tap
	 * which queue pair has the flow, for its other direction. */
	if (!ps->skip)
		ps->skip = 2 + next_random(ps) % vl_max_u32(ps->span, 1);
	else if (ps->skip != ps->skip_seen)
		ps->skip = 1; /* So few come: the next one. */
	ps->skip_seen = ps->skip;
}

bool vl_probes_take(struct vl_lane_set *ls, struct vl_pkt *pkt)
{
	struct vl_probes *ps = &ls->probes;
	struct vl_probe *p = &ps->probe[0];

	if (--ps->skip)
		return false;
	if (vl_lane_can_refuse(&ls->lane[0]) && ls->in_flight) {
		ps->skip = 1;
		return false;
	}
	while (p < &ps->probe[ps->n] && p->busy)
		p++;
	if (p == &ps->probe[ps->n])
		return false;
	ps->span = pkt->seq - ps->last_seq;
	ps->last_seq = pkt->seq;
	vl_pkt_key(pkt, &p->key);
	p->since_ns = ls->now_ns;
	p->busy = true;
	p->late = false;
	VL_STAT_INC(ps->sent);
	pkt->lane = VL_PKT_BY_PROBE;
	pkt->sending = true;
	ls->in_flight++;
	/* Pages that the kernel holds tell nothing that this would not. */
	vl_lane_send(&p->lane, pkt->iov, pkt->n_iov, false, pkt->tag);
	return true;
}
