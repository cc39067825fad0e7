/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/lane_stats.h"

#include <string.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/util.h"

_Static_assert(VL_SNAPSHOT_LANES_MAX >= VL_LANES_MAX, "all lanes have a place");

static const char *state_name(enum vl_lane_state state)
{
	static const char *const names[] = {
		[VL_LANE_EXPRESS] = "express",
		[VL_LANE_IDLE] = "idle",
		[VL_LANE_SIDE] = "side",
		[VL_LANE_SLOW] = "slow",
	};

	_Static_assert(VL_ARRAY_SIZE(names) == VL_LANE_SLOW + 1,
		       "every state has a name");
	return names[state];
}

static void read_lane(const struct vl_side *side, struct vl_lane_snapshot *l)
{
	struct vl_lane_counters *c = &l->counters;

	l->destinations = vl_read_once(&side->dests);
	l->parked_packets = vl_read_once(&side->n_pkts);
	l->parked_bytes = vl_read_once(&side->bytes);
	l->drain_rate = vl_read_once(&side->rate) * 8;
	l->delay_ns = vl_read_once(&side->delay_ns);
	c->packets = vl_read_once(&side->sent_packets);
	c->bytes = vl_read_once(&side->sent_bytes);
	c->refusals = vl_read_once(&side->refusals);
	c->moves = vl_read_once(&side->moves);
	c->merges = vl_read_once(&side->merges);
	c->returns = vl_read_once(&side->returns);
	c->drop_late = vl_read_once(&side->drops_late);
	c->drop_limit = vl_read_once(&side->drops_limit);
	c->drop_pool = vl_read_once(&side->drops_pool);
}

static void read_zerocopy(const struct vl_tx_zcopy *zc, uint32_t half,
			  struct vl_zc_snapshot *s)
{
	static const char *const modes[] = {
		[VL_ZEROCOPY_OFF] = "off",
		[VL_ZEROCOPY_AUTO] = "auto",
		[VL_ZEROCOPY_ON] = "on",
	};

	s->mode = modes[zc->mode];
	s->packets = vl_read_once(&zc->n);
	s->packets_max = vl_read_once(&zc->n_max);
	s->descs = vl_read_once(&zc->descs);
	s->descs_max = vl_read_once(&zc->descs_max);
	s->window = vl_read_once(&zc->limit);
	s->window = s->window ? vl_min_u32(s->window, half) : half;
}

bool vl_lane_stats_read(const struct vl_txq *txq, struct vl_pair_snapshot *s)
{
	const struct vl_lane_set *ls = &txq->lanes;
	struct vl_lane_counters *express = &s->lane[0].counters;
	bool dests = false;

	s->held_descs = vl_read_once(&txq->held_descs);
	s->held_max = s->txq.size / 2;
	s->pool_bytes = (uint64_t)vl_read_once(&txq->pool_used) * VL_TX_BUFFER;
	s->pool_max = (uint64_t)VL_TX_POOL * VL_TX_BUFFER;
	read_zerocopy(&txq->zc, s->held_max, &s->zc);
	s->lanes = ls->n;
	for (unsigned int i = 0; i < ls->n; i++) {
		s->lane[i].state = state_name(vl_lane_set_state(ls, i));
		read_lane(&ls->side[i], &s->lane[i]);
		s->lane[i].pending = vl_read_once(&txq->zc.lane_n[i]);
		dests |= s->lane[i].destinations > 0;
	}
	/* Packets on the express lane are counted as those of the queue only,
	 * which s->tx has from before. */
	express->packets = s->tx.packets;
	express->bytes = s->tx.bytes;
	express->probes = vl_read_once(&ls->probes.sent);
	express->found_slow = vl_read_once(&ls->probes.found);
	for (unsigned int i = 1; i < ls->n; i++) {
		const struct vl_lane_counters *c = &s->lane[i].counters;

		express->packets -= vl_min_u64(c->packets, express->packets);
		express->bytes -= vl_min_u64(c->bytes, express->bytes);
	}
	return dests || s->zc.packets;
}

/* Keeps the ones with the most parked packets, in this order. */
static void add_dest(struct vl_lane_snapshot *l, const struct vl_dest *d)
{
	uint32_t at = l->named;

	while (at && l->dest[at - 1].parked < d->parked)
		at--;
	if (at == VL_SNAPSHOT_DESTS_MAX)
		return;
	if (l->named < VL_SNAPSHOT_DESTS_MAX)
		l->named++;
	memmove(&l->dest[at + 1], &l->dest[at],
		(l->named - at - 1) * sizeof(l->dest[0]));
	l->dest[at] = (struct vl_dest_snapshot){
		.addr_len = d->key.addr_len,
		.parked = d->parked,
	};
	memcpy(l->dest[at].mac, d->key.mac, sizeof(d->key.mac));
	memcpy(l->dest[at].addr, d->key.addr, sizeof(d->key.addr));
}

void vl_lane_stats_name(const struct vl_txq *txq, struct vl_pair_snapshot *s)
{
	const struct vl_lane_set *ls = &txq->lanes;
	uint64_t now = vl_now_ns(), since;
	unsigned int lane;

	since = vl_tx_zc_oldest(txq, &lane);
	if (since && since < now)
		s->zc.oldest_ns = now - since;
	for (uint32_t i = 0; i < VL_DEST_MAX; i++) {
		const struct vl_dest *d = &ls->dests.entry[i];

		if (d->lane && d->lane < s->lanes)
			add_dest(&s->lane[d->lane], d);
	}
	for (unsigned int i = 1; i < s->lanes; i++) {
		const struct vl_pkt *head = ls->side[i].head;

		if (head && head->since_ns < now)
			s->lane[i].oldest_ns = now - head->since_ns;
	}
}
