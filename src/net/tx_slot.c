/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a packet holds, and when it gives it back.
 *
 * A packet has a slot, with a small buffer. It may hold a chain of the driver's
 * (held), buffers of other slots (extra), and parts that it was cut into refer
 * to it (whole). The chain goes back with the last of those who need it, in any
 * order; the slot does too.
 *
 * A chain is counted as held while its packet waits in a lane or is pending in
 * the kernel: together at most half of the virtqueue. The list of these is in
 * the order in which they were popped, so its first one tells whether a chain
 * goes back before an older one.
 */
#include "net/tx_slot.h"

#include "base/barrier.h"
#include "base/iov.h"
#include "base/util.h"

uint32_t vl_tx_gso_size(const struct vl_tx_slot *slot)
{
	const struct virtio_net_hdr *hdr = slot->iov[0].iov_base;

	return slot->gso ? hdr->gso_size : 0;
}

bool vl_tx_copy_frame(struct vl_txq *txq, struct vl_tx_slot *slot,
		      const struct iovec *iov, unsigned int n, uint32_t offset,
		      uint32_t keep)
{
	uint32_t len = slot->pkt.len;
	uint32_t need = (len + VL_TX_BUFFER - 1) / VL_TX_BUFFER;

	if (txq->n_free < need + keep)
		return false;
	for (uint32_t i = 0, done = 0; i < need; i++) {
		uint16_t index = txq->free_slot[--txq->n_free];
		char *buf = vl_tx_slot_buffer(txq, index);
		uint32_t part = vl_min_u32(VL_TX_BUFFER, len - done);

		done += (uint32_t)vl_iov_read(iov, n, offset + done, buf, part);
		slot->extra[i] = index;
	}
	slot->n_extra = (uint16_t)need;
	slot->iov[0].iov_len = offset;
	for (uint32_t i = 0, done = 0; i < need; i++) {
		slot->iov[i + 1].iov_base =
			vl_tx_slot_buffer(txq, slot->extra[i]);
		slot->iov[i + 1].iov_len = vl_min_u32(VL_TX_BUFFER, len - done);
		done += VL_TX_BUFFER;
	}
	slot->pkt.n_iov = need + 1;
	slot->by_ref = false;
	return true;
}

static bool is_older(const struct vl_tx_slot *a, const struct vl_tx_slot *b)
{
	return (int32_t)(a->pkt.seq - b->pkt.seq) < 0;
}

void vl_tx_count_held(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	struct vl_tx_slot *at = TAILQ_LAST(&txq->held, vl_tx_list);

	vl_write_once(&txq->held_descs, txq->held_descs + slot->descs);
	slot->counted = true;
	/* They come in order, or nearly so. */
	while (at && is_older(slot, at))
		at = TAILQ_PREV(at, vl_tx_list, held_link);
	if (at)
		TAILQ_INSERT_AFTER(&txq->held, at, slot, held_link);
	else
		TAILQ_INSERT_HEAD(&txq->held, slot, held_link);
}

static void uncount(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	if (vl_likely(!slot->counted))
		return;
	vl_write_once(&txq->held_descs, txq->held_descs - slot->descs);
	slot->counted = false;
	TAILQ_REMOVE(&txq->held, slot, held_link);
	vl_tx_zc_uncharge(txq, slot);
}

/* The driver gets the chain of @slot back. */
static void hand_back(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	uncount(txq, slot);
	if (slot->held) {
		if (vl_unlikely(txq->held_descs) &&
		    is_older(TAILQ_FIRST(&txq->held), slot))
			VL_STAT_INC(txq->counters.out_of_order);
		vl_vq_push(&txq->vq, slot->head, 0);
	}
	slot->held = false;
}

static void uncount_in_pool(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	if (slot->pooled)
		vl_write_once(&txq->pool_used,
			      txq->pool_used - 1 - slot->n_extra);
	slot->pooled = false;
}

static void free_slot(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	uncount_in_pool(txq, slot);
	while (slot->n_extra)
		txq->free_slot[txq->n_free++] = slot->extra[--slot->n_extra];
	txq->free_slot[txq->n_free++] = (uint16_t)(slot - txq->slots);
}

static void free_when_released(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	if (vl_likely(!slot->zc_out)) {
		free_slot(txq, slot);
		return;
	}
	/* It waits for the kernel, not for a lane. */
	uncount_in_pool(txq, slot);
	slot->done = true;
}

/*
 * @slot needs nothing of the driver's any more. With the last part its whole is
 * done with; that may be a part itself, which was cut again.
 */
static void let_go(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	while (vl_likely(!slot->zc_out)) {
		struct vl_tx_slot *whole = slot->whole;

		if (vl_likely(!whole)) {
			hand_back(txq, slot);
			return;
		}
		slot->whole = NULL;
		if (--whole->parts)
			return;
		/* Nobody takes the slot before we are through. */
		free_when_released(txq, whole);
		slot = whole;
	}
	slot->owed = true;
}

void vl_tx_finish(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	let_go(txq, slot);
	free_when_released(txq, slot);
}

void vl_tx_finish_unseen(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	uncount(txq, slot);
	slot->held = false;
	if (slot->zc_out) {
		slot->returned = true;
		txq->zc.taken_back++;
	}
	free_when_released(txq, slot);
}

void vl_tx_released(struct vl_txq *txq, struct vl_tx_slot *slot, bool copied)
{
	if (!vl_tx_zc_released(txq, slot, copied))
		return;
	if (slot->owed) {
		slot->owed = false;
		let_go(txq, slot);
	}
	if (slot->returned) {
		slot->returned = false;
		txq->zc.taken_back--;
	}
	if (slot->done) {
		slot->done = false;
		free_slot(txq, slot);
	}
}

void vl_tx_count_in_pool(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	if (slot->pooled)
		return;
	slot->pooled = true;
	vl_write_once(&txq->pool_used, txq->pool_used + 1 + slot->n_extra);
}

/* Whether the pool has room for the packet in @slot, as a copy or not. */
static bool pool_has_room(const struct vl_txq *txq,
			  const struct vl_tx_slot *slot, bool copy)
{
	uint32_t need = slot->pooled ? 0 : 1 + slot->n_extra;

	if (slot->whole && !slot->whole->pooled)
		need += 1 + slot->whole->n_extra;
	if (copy && slot->by_ref)
		need += (slot->pkt.len + VL_TX_BUFFER - 1) / VL_TX_BUFFER;
	return txq->pool_used + need <= VL_TX_POOL;
}

bool vl_tx_take_out(struct vl_txq *txq, struct vl_tx_slot *slot, uint32_t keep)
{
	bool was_by_ref = slot->by_ref;

	if (was_by_ref && !pool_has_room(txq, slot, true))
		return false;
	if (was_by_ref &&
	    !vl_tx_copy_frame(txq, slot, slot->iov, slot->pkt.n_iov,
			      txq->hdr_len, keep))
		return false;
	if (slot->pooled && was_by_ref)
		vl_write_once(&txq->pool_used, txq->pool_used + slot->n_extra);
	let_go(txq, slot);
	return true;
}

/*
 * A packet has to wait. While those that do and those that are pending hold less
 * than half of the virtqueue its chain stays with us, which is the back-pressure
 * that a driver feels; then packets are copied and chains go back, until the
 * pool is full.
 */
bool vl_tx_park(void *owner, struct vl_pkt *pkt, bool may_copy)
{
	struct vl_txq *txq = owner;
	struct vl_tx_slot *slot = vl_tx_slot_of(pkt);
	struct vl_tx_slot *chain = vl_tx_chain_of(slot);

	if (txq->n_free < VL_TX_RESERVE || !pool_has_room(txq, slot, false))
		return false;
	if (!chain->held || chain->counted) {
		/* Nothing to decide: it is ours, or a part before it did. */
	} else if (txq->vq.running &&
		   txq->held_descs + chain->descs <= txq->vq.ring.num / 2) {
		vl_tx_count_held(txq, chain);
	} else if ((slot->by_ref && !may_copy) ||
		   !vl_tx_take_out(txq, slot, VL_TX_RESERVE)) {
		return false;
	}
	vl_tx_count_in_pool(txq, slot);
	if (slot->whole)
		vl_tx_count_in_pool(txq, slot->whole);
	return true;
}
