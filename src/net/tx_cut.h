/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that wait for segmentation, cut into parts. For net/tx*.c only. */
#ifndef VL_NET_TX_CUT_H
#define VL_NET_TX_CUT_H

#include "base/barrier.h"
#include "lane/gso.h"
#include "net/tx_slot.h"

/* Parts of a frame that is larger than the backend takes. A guest that chooses
 * segments of a few bytes would make thousands. */
#define VL_TX_PARTS_MAX 48u

/*
 * See vl_lane_set_ops.cut. The chain stays with @pkt's slot; its parts have slots
 * with headers of their own, and the payload where it is.
 */
struct vl_pkt *vl_tx_cut(void *owner, struct vl_pkt *pkt, uint32_t bytes);

/* Whether the backend might not take the frame in @slot as it is. */
static inline bool vl_tx_may_be_large(const struct vl_txq *txq,
				      const struct vl_tx_slot *slot)
{
	return slot->gso && (txq->gso_bytes || vl_read_once(txq->gso_segments));
}

/* A frame that is being cut; headers are read once, they are the guest's. */
struct vl_tx_cut {
	struct vl_gso gso;
	uint32_t hdr_len;
	uint32_t part; /* bytes of payload */
	uint8_t head[VL_GSO_HEAD_MAX];
};

/*
 * Into how many parts the frame in @slot, which is laid out, has to be cut, at
 * most VL_TX_PARTS_MAX; 1: it fits, 0: it would be too many, or it cannot be cut.
 */
unsigned int vl_tx_parts(struct vl_txq *txq, struct vl_tx_slot *slot,
			 struct vl_tx_cut *c);

/* Cuts it: returns the parts, each with a place in the queue of its own. The
 * caller knows that there are slots for them. */
struct vl_pkt *vl_tx_cut_large(struct vl_txq *txq, struct vl_tx_slot *slot,
			       const struct vl_tx_cut *c);

#endif
