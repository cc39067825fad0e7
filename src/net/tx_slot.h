/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of a transmitq: a packet in our hands, what it holds of the
 * driver's and of ours, and when that goes back. For net/tx*.c only.
 */
#ifndef VL_NET_TX_SLOT_H
#define VL_NET_TX_SLOT_H

#include <linux/if_ether.h>
#include <linux/virtio_net.h>

#include "base/util.h"
#include "net/tx.h"
#include "virtio/net_hdr.h"

/* Header and largest frame copied. Measured: writing a list of two costs the
 * kernel 80 ns more than one buffer, copying 1514 bytes costs 20 ns. */
#define VL_TX_JOIN_MAX (VL_TX_BUFFER - VL_NET_HDR_MRG)

/* The largest IP packet with an Ethernet and two VLAN headers. */
#define VL_TX_FRAME_MAX (65535u + ETH_HLEN + 8u)

/* Small buffers that such a packet fills besides its slot's own. */
#define VL_TX_EXTRA_MAX ((VL_TX_FRAME_MAX + VL_TX_BUFFER - 1) / VL_TX_BUFFER)

/* Pieces sent by reference; Linux drivers make at most 19. */
#define VL_TX_SLOT_IOV 34u
_Static_assert(VL_TX_SLOT_IOV >= VL_TX_EXTRA_MAX,
	       "a copied packet fits the list");

struct vl_tx_slot {
	struct vl_pkt pkt;
	struct iovec iov[VL_TX_SLOT_IOV + 1]; /* [0]: header, or all of it */
	uint16_t
		extra[VL_TX_EXTRA_MAX]; /* slots whose buffers hold the frame */
	uint16_t n_extra;
	uint16_t head;
	uint16_t descs;
	uint16_t parts;           /* it was cut into, and not done */
	struct vl_tx_slot *whole; /* what this is a part of */
	bool held;                /* the driver has not got its chain back */
	bool by_ref;  /* the frame is not in our buffers, but where it was */
	bool counted; /* in txq->held_descs */
	bool pooled;  /* in txq->pool_used */
	bool gso;
	bool csum;

	/* Zero-copy. None of it is set in a free slot. */
	bool zc_sending;      /* by the send under way */
	bool zc_charged;      /* its chain is counted as pending, */
	uint8_t zc_lane;      /* for this lane */
	uint8_t zc_dest;      /* and this destination */
	uint16_t zc_out;      /* sends whose memory is not released */
	uint16_t zc_failed;   /* of these, that were refused */
	bool owed;            /* its chain is due when they are, */
	bool done;            /* the slot too */
	bool returned;        /* its chain went back to the ring meanwhile */
	uint8_t zc_list;      /* of txq->zc.pending that it is in, */
	uint8_t zc_list_lane; /* sent by this lane */
	uint64_t zc_ns;       /* since when */

	TAILQ_ENTRY(vl_tx_slot) held_link; /* if counted */
	TAILQ_ENTRY(vl_tx_slot) zc_link;   /* if sending or out */
};

static inline struct vl_tx_slot *vl_tx_slot_of(struct vl_pkt *pkt)
{
	return vl_container_of(pkt, struct vl_tx_slot, pkt);
}

/* The slot that has the chain which @slot's frame is in. */
static inline struct vl_tx_slot *vl_tx_chain_of(struct vl_tx_slot *slot)
{
	while (slot->whole)
		slot = slot->whole;
	return slot;
}

static inline char *vl_tx_slot_buffer(struct vl_txq *txq, uint32_t index)
{
	return txq->buffers + (size_t)index * VL_TX_BUFFER;
}

/* Where a header of @hdr_len bytes is in a slot's buffer: it ends where the
 * frame begins, which is the same for all lengths. */
static inline char *vl_tx_hdr_at(char *buf, uint32_t hdr_len)
{
	return buf + VL_NET_HDR_MRG - hdr_len;
}

/* The gso_size in the virtio header of @slot; 0: nothing to segment. */
uint32_t vl_tx_gso_size(const struct vl_tx_slot *slot);

/*
 * Copies the frame, behind @offset bytes of the list @iov of @n, into buffers
 * of free slots, and makes it the packet's. Returns false when there are too few
 * (@keep of them stay free).
 */
bool vl_tx_copy_frame(struct vl_txq *txq, struct vl_tx_slot *slot,
		      const struct iovec *iov, unsigned int n, uint32_t offset,
		      uint32_t keep);

/* Takes the packet out of guest memory and hands its chain back. Returns false
 * when there is no room for it. */
bool vl_tx_take_out(struct vl_txq *txq, struct vl_tx_slot *slot, uint32_t keep);

/* The packet in @slot and its buffers count as used by one that waits. */
void vl_tx_count_in_pool(struct vl_txq *txq, struct vl_tx_slot *slot);

/* The chain of @slot counts as held from now on; it does not yet. */
void vl_tx_count_held(struct vl_txq *txq, struct vl_tx_slot *slot);

/* See vl_lane_set_ops. */
bool vl_tx_park(void *owner, struct vl_pkt *pkt, bool may_copy);

/* The packet in @slot is done with: its chain goes back, when that of which it
 * is a part is done with too, and its slot, when the kernel has let go. */
void vl_tx_finish(struct vl_txq *txq, struct vl_tx_slot *slot);

/* The same for one whose chain goes back to the ring, as never seen. */
void vl_tx_finish_unseen(struct vl_txq *txq, struct vl_tx_slot *slot);

/* The memory of a send of @slot was released. */
void vl_tx_released(struct vl_txq *txq, struct vl_tx_slot *slot, bool copied);

#endif
