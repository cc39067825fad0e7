/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which packets are pending, and who may be.
 *
 * A zero-copy send ends in two events: its result, and that its memory was
 * released. With the first the packet is done with for the lanes, with the
 * second its chain and its slot go back (tx_slot.c). A send that fails has both
 * too, and its packet may have been sent again before the second comes; so a
 * slot counts the sends that are not released.
 *
 * A chain is charged once, when the first send of it or of a part of it begins,
 * to the lane and the destination of that one. It counts until it goes back.
 */
#include "net/tx_zcopy.h"

#include <errno.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "net/tx_slot.h"

/* A stop that takes longer is said in the log; again after so long. */
#define STOP_LOG_NS       VL_NS_PER_SEC
#define STOP_LOG_AGAIN_NS (10 * VL_NS_PER_SEC)

/* What may be pending in any case. */
#define LIMIT_MIN 8u

void vl_tx_zc_init(struct vl_tx_zcopy *zc, const struct vl_backend *backend)
{
	zc->mode = backend->zerocopy;
	zc->limit = backend->pending;
	for (unsigned int i = 0; i < VL_ZC_DESTS; i++)
		TAILQ_INIT(&zc->pending[i]);
}

uint32_t vl_tx_zc_window(const struct vl_txq *txq)
{
	uint32_t half = txq->vq.ring.num / 2;

	return txq->zc.limit ? vl_min_u32(txq->zc.limit, half) : half;
}

/* Pending packets leave the slots that others may need: those that wait, and
 * the next batch. */
static bool slots_left(const struct vl_txq *txq)
{
	return txq->n_free + txq->pool_used >= VL_TX_RESERVE + VL_TX_POOL;
}

static enum vl_zc_why why_copied(struct vl_txq *txq, struct vl_tx_slot *slot,
				 unsigned int lane, unsigned int *dest)
{
	struct vl_tx_zcopy *zc = &txq->zc;
	const struct vl_tx_slot *chain = vl_tx_chain_of(slot), *oldest;
	struct vl_dest_key key;
	enum vl_zc_why why;

	if (!slot->by_ref)
		return slot->n_extra ? VL_ZC_OURS : VL_ZC_SHORT;
	why = vl_zc_frame(zc->mode, slot->pkt.len, vl_tx_gso_size(slot),
			  slot->iov + 1, slot->pkt.n_iov - 1);
	if (why)
		return why;
	vl_pkt_key(&slot->pkt, &key);
	*dest = vl_zc_dest_index(&key);
	oldest = TAILQ_FIRST(&zc->pending[*dest]);
	why = vl_zc_room(&(struct vl_zc_room){
		.mode = zc->mode,
		.stopping = zc->stopping,
		.nomem_until_ns = zc->nomem_until_ns,
		.classic = zc->classic,
		.hold = chain->counted ? 0 : chain->descs,
		.charge = chain->zc_charged ? 0 : chain->descs,
		.held = txq->held_descs,
		.held_max = txq->vq.ring.num / 2,
		.pending = zc->descs,
		.pending_max = vl_tx_zc_window(txq),
		.dest = &zc->dest[*dest],
		.lane_descs = zc->lane_descs[lane],
		.sides_descs = zc->sides_descs,
		.side = lane != 0,
		.now_ns = txq->lanes.now_ns,
		.oldest_ns = oldest ? oldest->zc_ns : 0,
	});
	if (!why && !slots_left(txq))
		why = VL_ZC_WINDOW;
	return why;
}

static void count_copied(struct vl_tx_counters *n, enum vl_zc_why why)
{
	switch (why) {
	case VL_ZC_SHORT:
		VL_STAT_INC(n->copy_short);
		break;
	case VL_ZC_SEGMENTS:
		VL_STAT_INC(n->copy_segments);
		break;
	case VL_ZC_PIECES:
		VL_STAT_INC(n->copy_pieces);
		break;
	case VL_ZC_STOPPING:
		VL_STAT_INC(n->copy_stopping);
		break;
	case VL_ZC_NOMEM:
		VL_STAT_INC(n->copy_nomem);
		break;
	case VL_ZC_USELESS:
		VL_STAT_INC(n->copy_useless);
		break;
	case VL_ZC_SLOW:
		VL_STAT_INC(n->copy_slow);
		break;
	case VL_ZC_SHARE:
		VL_STAT_INC(n->copy_share);
		break;
	case VL_ZC_WINDOW:
		VL_STAT_INC(n->copy_window);
		break;
	case VL_ZC_OURS:
		VL_STAT_INC(n->copy_ours);
		break;
	case VL_ZC_NOT_COPIED:
	case VL_ZC_OFF:
	case VL_ZC_WHYS:
		break;
	}
}

static void charge(struct vl_txq *txq, struct vl_tx_slot *chain,
		   unsigned int lane, unsigned int dest)
{
	struct vl_tx_zcopy *zc = &txq->zc;

	if (!chain->counted)
		vl_tx_count_held(txq, chain);
	if (chain->zc_charged)
		return;
	chain->zc_charged = true;
	chain->zc_lane = (uint8_t)lane;
	chain->zc_dest = (uint8_t)dest;
	zc->dest[dest].descs += chain->descs;
	zc->lane_descs[lane] += chain->descs;
	if (lane)
		zc->sides_descs += chain->descs;
	vl_write_once(&zc->descs, zc->descs + chain->descs);
	if (zc->descs > zc->descs_max)
		vl_write_once(&zc->descs_max, zc->descs);
}

void vl_tx_zc_uncharge(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	struct vl_tx_zcopy *zc = &txq->zc;

	if (!slot->zc_charged)
		return;
	slot->zc_charged = false;
	zc->dest[slot->zc_dest].descs -= slot->descs;
	zc->lane_descs[slot->zc_lane] -= slot->descs;
	if (slot->zc_lane)
		zc->sides_descs -= slot->descs;
	vl_write_once(&zc->descs, zc->descs - slot->descs);
}

bool vl_tx_zc_choose(void *owner, struct vl_pkt *pkt, unsigned int lane)
{
	struct vl_txq *txq = owner;
	struct vl_tx_zcopy *zc = &txq->zc;
	struct vl_tx_slot *slot = vl_tx_slot_of(pkt);
	unsigned int dest;
	enum vl_zc_why why = why_copied(txq, slot, lane, &dest);

	if (why) {
		count_copied(&txq->counters, why);
		return false;
	}
	charge(txq, vl_tx_chain_of(slot), lane, dest);
	slot->zc_sending = true;
	if (slot->zc_out)
		return true; /* It was refused a moment ago. */
	slot->zc_list = (uint8_t)dest;
	slot->zc_list_lane = (uint8_t)lane;
	slot->zc_ns = txq->lanes.now_ns;
	TAILQ_INSERT_TAIL(&zc->pending[dest], slot, zc_link);
	VL_STAT_INC(zc->lane_n[lane]);
	VL_STAT_INC(zc->n);
	if (zc->n > zc->n_max)
		vl_write_once(&zc->n_max, zc->n);
	return true;
}

bool vl_tx_zc_must_wait(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	unsigned int dest;

	/* It may hold more than the window alone: nothing to wait for. */
	if (!txq->zc.n || why_copied(txq, slot, 0, &dest) != VL_ZC_WINDOW)
		return false;
	txq->zc.full = true;
	VL_STAT_INC(txq->counters.blocked);
	return true;
}

/* Takes @slot off the list if no send of it needs its memory. */
static bool end_pending(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	struct vl_tx_zcopy *zc = &txq->zc;
	uint32_t *lane_n = &zc->lane_n[slot->zc_list_lane];

	if (slot->zc_out || slot->zc_sending)
		return false;
	TAILQ_REMOVE(&zc->pending[slot->zc_list], slot, zc_link);
	vl_write_once(lane_n, *lane_n - 1);
	vl_write_once(&zc->n, zc->n - 1);
	zc->full = false;
	return true;
}

/*
 * The pages of what is pending are charged to the user's RLIMIT_MEMLOCK, unless he
 * may lock as much as he likes, and the send fails when that is used up. It can be
 * copied instead. But on a lane whose sends are not linked others have overtaken
 * it: there it is dropped, as the lanes do it. So that it does not happen again
 * and again, less may be pending from now on.
 */
static int out_of_memory(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	struct vl_tx_zcopy *zc = &txq->zc;

	if (txq->lanes.now_ns >= zc->nomem_until_ns) {
		zc->nomem_until_ns = txq->lanes.now_ns + VL_ZC_OFF_MIN_NS;
		vl_write_once(&zc->limit, vl_max_u32(zc->descs / 2, LIMIT_MIN));
		vl_log_limited(&zc->log_limit, VL_LOG_WARNING, txq->vq.name,
			       "the kernel locks no more memory for packets "
			       "that are sent without a copy: raise "
			       "RLIMIT_MEMLOCK; %u descriptors may be pending "
			       "from now on",
			       zc->limit);
	}
	return vl_lane_can_refuse(&txq->lanes.lane[slot->pkt.lane]) ? -ECANCELED
								    : -ENOMEM;
}

int vl_tx_zc_result(struct vl_txq *txq, struct vl_tx_slot *slot, int res,
		    bool more)
{
	slot->zc_sending = false;
	if (vl_unlikely(res == -ENOMEM))
		res = out_of_memory(txq, slot);
	if (!more) {
		(void)end_pending(txq, slot);
		return res;
	}
	slot->zc_out++;
	slot->zc_failed = (uint16_t)(slot->zc_failed + (res < 0));
	if (res >= 0)
		VL_STAT_INC(txq->counters.zc_packets);
	return res;
}

bool vl_tx_zc_released(struct vl_txq *txq, struct vl_tx_slot *slot, bool copied)
{
	if (!slot->zc_out)
		return false;
	slot->zc_out--;
	if (slot->zc_failed) {
		/* Of that the kernel had nothing to copy. */
		slot->zc_failed--;
	} else {
		vl_zc_dest_released(&txq->zc.dest[slot->zc_list], copied,
				    txq->lanes.now_ns);
		if (copied)
			VL_STAT_INC(txq->counters.zc_copied);
	}
	return end_pending(txq, slot);
}

uint64_t vl_tx_zc_oldest(const struct vl_txq *txq, unsigned int *lane)
{
	const struct vl_tx_slot *oldest = NULL;

	for (unsigned int i = 0; i < VL_ZC_DESTS; i++) {
		const struct vl_tx_slot *s = TAILQ_FIRST(&txq->zc.pending[i]);

		if (s && (!oldest || s->zc_ns < oldest->zc_ns))
			oldest = s;
	}
	*lane = oldest ? oldest->zc_list_lane : 0;
	return oldest ? oldest->zc_ns : 0;
}

void vl_tx_zc_log_stop(struct vl_txq *txq, uint64_t now_ns)
{
	struct vl_tx_zcopy *zc = &txq->zc;
	unsigned int lane;
	uint64_t since;

	if (!zc->stopping) {
		zc->stop_ns = now_ns;
		zc->stop_log_ns = now_ns + STOP_LOG_NS;
		return;
	}
	if (now_ns < zc->stop_log_ns)
		return;
	zc->stop_log_ns = now_ns + STOP_LOG_AGAIN_NS;
	since = vl_tx_zc_oldest(txq, &lane);
	vl_log(VL_LOG_WARNING, txq->vq.name,
	       "stopping for %llu s: the kernel has not let go of %u packets, "
	       "the oldest of lane %u, %llu ms old",
	       (unsigned long long)((now_ns - zc->stop_ns) / VL_NS_PER_SEC),
	       zc->n, lane, (unsigned long long)((now_ns - since) / 1000000));
}
