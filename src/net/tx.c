/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transmission.
 *
 * A turn pops a batch of chains, gives each packet a slot, queues one write
 * per slot and submits them with one system call. The slot's number is the
 * tag of the write, so events may come in any order; each hands its chain
 * back at once, and one publish and at most one notification follow when the
 * events of a submit are all there (vl_txq_flush()). While the driver goes on
 * queueing, the notification is left to the batch that follows.
 *
 * What happens to a packet that the host network refuses is the business of the
 * lanes (lane_set.c): it goes out by another lane, or has to wait, and then keeps
 * its slot. pkt_park() says what it may hold meanwhile, of the driver's
 * descriptors and of our buffers. Without lanes it goes back to the ring, with
 * all that were popped after it, and transmission waits (take_back()).
 *
 * The virtio header is copied into the slot, checked there and sent from
 * there. A small packet is copied behind it, since one buffer is cheaper for
 * the kernel than a list of two (COPY_MAX); the payload of a larger one stays
 * in guest memory.
 */
#include "net/tx.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <stdlib.h>
#include <string.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/iov.h"
#include "base/log.h"
#include "base/util.h"
#include "lane/gso.h"
#include "lane/steer.h"
#include "net/tags.h"
#include "virtio/net_hdr.h"

/* Header and largest frame copied. Measured: writing a list of two costs the
 * kernel 80 ns more than one buffer, copying 1514 bytes costs 20 ns. */
#define SLOT_BUFFER VL_TX_BUFFER
#define COPY_MAX    (SLOT_BUFFER - VL_NET_HDR_MRG)

/* Part of the ring that may be done before the driver must hear of it. */
#define UNTOLD_PART 4u

/* The largest IP packet with an Ethernet and two VLAN headers. */
#define FRAME_MAX (65535u + ETH_HLEN + 8u)

/* Small buffers that such a packet fills besides its slot's own. */
#define EXTRA_MAX ((FRAME_MAX + SLOT_BUFFER - 1) / SLOT_BUFFER)

/* A frame is cut into about so many parts at most. */
#define PARTS_MAX 32u

/* Pieces sent by reference; Linux drivers make at most 19. */
#define SLOT_IOV 34u
_Static_assert(SLOT_IOV >= EXTRA_MAX, "a copied packet fits the list");

struct vl_tx_slot {
	struct vl_pkt pkt;
	struct iovec iov[SLOT_IOV + 1]; /* [0]: header, or all of it */
	uint16_t extra[EXTRA_MAX];      /* slots whose buffers hold the frame */
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
};

static void pkt_done(void *owner, struct vl_pkt *pkt, enum vl_pkt_end end);
static bool pkt_park(void *owner, struct vl_pkt *pkt, bool may_copy);
static struct vl_pkt *pkt_cut(void *owner, struct vl_pkt *pkt, uint32_t bytes);

static const struct vl_lane_set_ops lane_ops = {
	.done = pkt_done,
	.park = pkt_park,
	.cut = pkt_cut,
};

int vl_txq_init(struct vl_txq *txq, struct vl_io *io)
{
	txq->io = io;
	txq->lanes.ops = &lane_ops;
	txq->lanes.owner = txq;
	txq->slots = calloc(VL_TX_SLOTS, sizeof(txq->slots[0]));
	txq->buffers = malloc((size_t)VL_TX_SLOTS * SLOT_BUFFER);
	txq->long_iov = calloc(VL_CHAIN_IOV_MAX, sizeof(txq->long_iov[0]));
	if (!txq->slots || !txq->buffers || !txq->long_iov)
		return -ENOMEM;
	for (uint16_t i = 0; i < VL_TX_SLOTS; i++)
		txq->free_slot[i] = (uint16_t)(VL_TX_SLOTS - 1 - i);
	txq->n_free = VL_TX_SLOTS;
	return 0;
}

void vl_txq_free(struct vl_txq *txq)
{
	free(txq->slots);
	free(txq->buffers);
	free(txq->long_iov);
}

int vl_txq_start(struct vl_txq *txq, const char *name,
		 const struct vl_vring *ring, struct vl_guest_mem *mem,
		 uint64_t features)
{
	txq->features = features;
	txq->hdr_len = vl_net_hdr_len(features);
	return vl_vq_start(&txq->vq, name, ring, mem);
}

static char *slot_buffer(struct vl_txq *txq, uint32_t index)
{
	return txq->buffers + (size_t)index * SLOT_BUFFER;
}

static struct vl_tx_slot *slot_of(struct vl_pkt *pkt)
{
	return vl_container_of(pkt, struct vl_tx_slot, pkt);
}

/* A frame that is being cut. */
struct tx_cut {
	struct vl_gso gso;
	uint32_t hdr_len;
	uint8_t head[VL_GSO_HEAD_MAX];
};

/* Where the driver's chain is, as vl_vq_pop() found it. */
struct tx_chain {
	struct vl_chain c;
	bool is_long; /* in txq->long_iov instead of the slot */
};

/* Pops into @slot, or into long_iov where the chain has too many pieces.
 * Returns as vl_vq_pop(). */
static int pop(struct vl_txq *txq, struct vl_tx_slot *slot, struct tx_chain *t)
{
	int n;

	t->is_long = false;
	t->c.iov = slot->iov + 1;
	t->c.iov_cap = SLOT_IOV;
	n = vl_vq_pop(&txq->vq, &t->c);
	if (vl_likely(n != -ENOBUFS))
		return n;
	t->is_long = true;
	t->c.iov = txq->long_iov;
	t->c.iov_cap = VL_CHAIN_IOV_MAX;
	return vl_vq_pop(&txq->vq, &t->c);
}

/* Where a header of @hdr_len bytes is in a slot's buffer: it ends where the
 * frame begins, which is the same for all lengths. */
static char *hdr_at(char *buf, uint32_t hdr_len)
{
	return buf + VL_NET_HDR_MRG - hdr_len;
}

/* Checks lengths and header. Returns the counter of why the packet is to be
 * dropped, NULL when it is good; the header is then in @buf. */
static uint64_t *check_packet(struct vl_txq *txq, const struct vl_chain *c,
			      char *buf)
{
	struct vl_tx_counters *n = &txq->counters;
	struct virtio_net_hdr hdr;
	uint32_t frame_len;

	if (vl_unlikely(c->n_writable))
		return &n->drop_chain;
	if (vl_unlikely(c->len_readable < txq->hdr_len + ETH_HLEN))
		return &n->drop_short;
	if (vl_unlikely(c->len_readable > txq->hdr_len + FRAME_MAX))
		return &n->drop_oversize;
	frame_len = (uint32_t)c->len_readable - txq->hdr_len;
	(void)vl_iov_read(c->iov, c->n_readable, 0, &hdr, sizeof(hdr));
	if (vl_unlikely(vl_net_hdr_check(&hdr, frame_len, txq->features)))
		return &n->drop_header;
	buf = hdr_at(buf, txq->hdr_len);
	memcpy(buf, &hdr, sizeof(hdr));
	/* num_buffers means nothing on transmit. */
	memset(buf + sizeof(hdr), 0, txq->hdr_len - sizeof(hdr));
	return NULL;
}

/*
 * Copies the frame, @len bytes behind @offset of the list @iov, into buffers of
 * free slots, and makes it the packet's. Returns false when there are too few
 * (@keep of them stay free).
 */
static bool copy_frame(struct vl_txq *txq, struct vl_tx_slot *slot,
		       const struct iovec *iov, unsigned int n, uint32_t offset,
		       uint32_t keep)
{
	uint32_t len = slot->pkt.len;
	uint32_t need = (len + SLOT_BUFFER - 1) / SLOT_BUFFER;

	if (txq->n_free < need + keep)
		return false;
	for (uint32_t i = 0, done = 0; i < need; i++) {
		uint16_t index = txq->free_slot[--txq->n_free];
		char *buf = slot_buffer(txq, index);
		uint32_t part = vl_min_u32(SLOT_BUFFER, len - done);

		done += (uint32_t)vl_iov_read(iov, n, offset + done, buf, part);
		slot->extra[i] = index;
	}
	slot->n_extra = (uint16_t)need;
	slot->iov[0].iov_len = offset;
	for (uint32_t i = 0, done = 0; i < need; i++) {
		slot->iov[i + 1].iov_base = slot_buffer(txq, slot->extra[i]);
		slot->iov[i + 1].iov_len = vl_min_u32(SLOT_BUFFER, len - done);
		done += SLOT_BUFFER;
	}
	slot->pkt.n_iov = need + 1;
	slot->by_ref = false;
	return true;
}

/* Makes slot->iov the packet: header and payload. Returns false when it has to
 * be tried again with more free slots. */
static bool lay_out(struct vl_txq *txq, struct vl_tx_slot *slot,
		    const struct tx_chain *t, char *buf)
{
	const struct vl_chain *c = &t->c;
	uint32_t hdr_len = txq->hdr_len;
	uint32_t len = slot->pkt.len;
	int n;

	slot->iov[0].iov_base = hdr_at(buf, hdr_len);
	slot->iov[0].iov_len = hdr_len;
	slot->n_extra = 0;
	slot->by_ref = false;
	slot->pkt.n_iov = 1;
	if (len <= COPY_MAX) {
		slot->iov[0].iov_len +=
			vl_iov_read(c->iov, c->n_readable, hdr_len,
				    buf + VL_NET_HDR_MRG, len);
		VL_STAT_INC(txq->counters.copied);
		return true;
	}
	if (vl_unlikely(t->is_long)) {
		/* The slot itself is still on the stack of free ones. */
		txq->n_free--;
		if (!copy_frame(txq, slot, c->iov, c->n_readable, hdr_len, 0)) {
			txq->n_free++;
			return false;
		}
		txq->free_slot[txq->n_free++] = (uint16_t)(slot - txq->slots);
		VL_STAT_INC(txq->counters.copied);
		return true;
	}
	/* In place: the list without the header is never longer. */
	n = vl_iov_slice(c->iov, c->n_readable, hdr_len, len, slot->iov + 1,
			 SLOT_IOV);
	slot->by_ref = true;
	slot->pkt.n_iov = n < 0 ? 1 : (uint32_t)n + 1;
	return true;
}

static void fill_slot(struct vl_txq *txq, struct vl_tx_slot *slot,
		      const struct vl_chain *c, char *buf)
{
	const struct virtio_net_hdr *hdr =
		(const void *)hdr_at(buf, txq->hdr_len);

	slot->head = c->head;
	slot->descs = (uint16_t)c->descs;
	slot->counted = false;
	slot->pooled = false;
	slot->parts = 0;
	slot->whole = NULL;
	slot->gso = hdr->gso_type != VIRTIO_NET_HDR_GSO_NONE;
	slot->csum = hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
	slot->pkt.iov = slot->iov;
	slot->pkt.len = (uint32_t)c->len_readable - txq->hdr_len;
	slot->pkt.tag = VL_TAG(VL_TAG_TX_SLOT, slot - txq->slots);
	slot->pkt.can_cut = slot->gso;
}

/* Takes one packet from the ring to the lanes. Returns the bytes queued, 0 for
 * a packet that was dropped, -EAGAIN when there is none (or no place). */
static int queue_one(struct vl_txq *txq)
{
	uint32_t index = txq->free_slot[txq->n_free - 1];
	struct vl_tx_slot *slot = &txq->slots[index];
	char *buf = slot_buffer(txq, index);
	struct tx_chain t;
	uint64_t *drop;
	int popped = pop(txq, slot, &t);

	if (popped == 0)
		return -EAGAIN;
	drop = popped < 0 ? &txq->counters.drop_chain
			  : check_packet(txq, &t.c, buf);
	if (vl_unlikely(drop)) {
		/* Alone in its batch: handed back among others it would stand
		 * in the way if one before it had to go back to the ring. */
		if (vl_txq_in_flight(txq)) {
			vl_vq_unpop(&txq->vq, 1);
			return -EAGAIN;
		}
		VL_STAT_INC(*drop);
		vl_vq_push(&txq->vq, t.c.head, 0);
		txq->seq++;
		return 0;
	}
	fill_slot(txq, slot, &t.c, buf);
	if (vl_unlikely(!lay_out(txq, slot, &t, buf))) {
		vl_vq_unpop(&txq->vq, 1);
		return -EAGAIN;
	}
	/* Not before it is sure that it does not go back. */
	slot->held = true;
	slot->pkt.seq = txq->seq++;
	/* Taken from the stack of free slots, wherever it lies now. */
	txq->n_free--;
	vl_lane_set_send(&txq->lanes, &slot->pkt);
	return (int)slot->pkt.len;
}

/* Pops a batch. Returns the packets taken from the ring, dropped ones too. */
static uint32_t queue_batch(struct vl_txq *txq)
{
	uint32_t packets = 0, bytes = 0;

	if (!txq->vq.running || txq->vq.broken)
		return 0;
	vl_vq_disable_kick(&txq->vq);
	vl_lane_begin(&txq->lanes.lane[0], vl_vq_available(&txq->vq));
	while (txq->n_free && packets < VL_TX_BATCH &&
	       bytes < VL_TX_BUDGET_BYTES && vl_io_room(txq->io)) {
		int len = queue_one(txq);

		if (len == -EAGAIN)
			break;
		packets++;
		bytes += (uint32_t)len;
	}
	return packets;
}

bool vl_txq_turn(struct vl_txq *txq)
{
	struct vl_lane_set *ls = &txq->lanes;
	uint32_t packets;

	if (!vl_lane_set_ready(ls))
		return false;
	txq->seen_ns = vl_now_ns();
	ls->now_ns = txq->seen_ns;
	vl_steer_back(ls);
	vl_probes_look(ls);
	packets = queue_batch(txq);
	vl_lane_set_pump(ls);
	if (ls->in_flight) {
		VL_STAT_INC(txq->counters.batches);
		vl_lane_submit(&txq->lanes.lane[0]);
		return true;
	}
	if (packets == 0) {
		vl_vq_notify(&txq->vq);
		return vl_vq_enable_kick(&txq->vq);
	}
	/* Dropped, or behind others of their lane. */
	while (vl_txq_flush(txq))
		;
	return true;
}

static void count_sent(struct vl_txq *txq, const struct vl_tx_slot *slot)
{
	struct vl_tx_counters *n = &txq->counters;

	VL_STAT_INC(n->packets);
	VL_STAT_ADD(n->bytes, slot->pkt.len);
	if (slot->gso)
		VL_STAT_INC(n->gso_packets);
	if (slot->csum)
		VL_STAT_INC(n->csum_packets);
}

static uint64_t *drop_counter(struct vl_tx_counters *n, enum vl_pkt_end end)
{
	switch (end) {
	case VL_PKT_DOWN:
		return &n->drop_down;
	case VL_PKT_GONE:
		return &n->drop_gone;
	case VL_PKT_NOMEM:
		return &n->drop_nomem;
	case VL_PKT_FULL:
		return &n->drop_full;
	case VL_PKT_LATE:
		return &n->drop_late;
	case VL_PKT_LIMIT:
		return &n->drop_limit;
	case VL_PKT_POOL:
		return &n->drop_pool;
	case VL_PKT_REFUSED:
	case VL_PKT_SENT:
		break;
	}
	return &n->drop_refused;
}

/* The driver gets the chain of @slot back. */
static void hand_back(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	if (slot->counted)
		vl_write_once(&txq->held_descs, txq->held_descs - slot->descs);
	slot->counted = false;
	if (slot->held)
		vl_vq_push(&txq->vq, slot->head, 0);
	slot->held = false;
}

static void free_slot(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	if (slot->pooled)
		vl_write_once(&txq->pool_used,
			      txq->pool_used - 1 - slot->n_extra);
	while (slot->n_extra)
		txq->free_slot[txq->n_free++] = slot->extra[--slot->n_extra];
	txq->free_slot[txq->n_free++] = (uint16_t)(slot - txq->slots);
}

/* @slot needs nothing of the driver's any more. */
static void let_go(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	struct vl_tx_slot *whole = slot->whole;

	if (vl_likely(!whole)) {
		hand_back(txq, slot);
		return;
	}
	slot->whole = NULL;
	if (--whole->parts)
		return;
	hand_back(txq, whole);
	free_slot(txq, whole);
}

static void pkt_done(void *owner, struct vl_pkt *pkt, enum vl_pkt_end end)
{
	struct vl_txq *txq = owner;
	struct vl_tx_slot *slot = slot_of(pkt);

	if (vl_likely(end == VL_PKT_SENT))
		count_sent(txq, slot);
	else
		VL_STAT_INC(*drop_counter(&txq->counters, end));
	let_go(txq, slot);
	free_slot(txq, slot);
}

/* Takes the packet out of guest memory and hands its chain back. Returns false
 * when there is no room for it. */
static bool take_out(struct vl_txq *txq, struct vl_tx_slot *slot, uint32_t keep)
{
	bool was_by_ref = slot->by_ref;

	if (was_by_ref && !copy_frame(txq, slot, slot->iov, slot->pkt.n_iov,
				      txq->hdr_len, keep))
		return false;
	if (slot->pooled && was_by_ref)
		vl_write_once(&txq->pool_used, txq->pool_used + slot->n_extra);
	let_go(txq, slot);
	return true;
}

static void count_in_pool(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	if (slot->pooled)
		return;
	slot->pooled = true;
	vl_write_once(&txq->pool_used, txq->pool_used + 1 + slot->n_extra);
}

/* The slot that has the chain which @slot's frame is in. */
static struct vl_tx_slot *chain_of(struct vl_tx_slot *slot)
{
	return slot->whole ? slot->whole : slot;
}

/*
 * A packet has to wait. While those that do hold less than half of the
 * virtqueue its chain stays with us, which is the back-pressure that a driver
 * feels; then packets are copied and chains go back, until the pool is full.
 */
static bool pkt_park(void *owner, struct vl_pkt *pkt, bool may_copy)
{
	struct vl_txq *txq = owner;
	struct vl_tx_slot *slot = slot_of(pkt);
	struct vl_tx_slot *chain = chain_of(slot);

	if (txq->n_free < VL_TX_RESERVE)
		return false;
	if (!chain->held || chain->counted) {
		/* Nothing to decide: it is ours, or a part before it did. */
	} else if (txq->vq.running &&
		   txq->held_descs + chain->descs <= txq->vq.ring.num / 2) {
		vl_write_once(&txq->held_descs, txq->held_descs + chain->descs);
		chain->counted = true;
	} else if ((slot->by_ref && !may_copy) ||
		   !take_out(txq, slot, VL_TX_RESERVE)) {
		return false;
	}
	count_in_pool(txq, slot);
	if (slot->whole)
		count_in_pool(txq, slot->whole);
	return true;
}

/* A part of @slot with @len bytes of payload behind @offset of it. */
static struct vl_pkt *make_part(struct vl_txq *txq, struct vl_tx_slot *slot,
				const struct tx_cut *c, uint32_t offset,
				uint32_t len)
{
	uint16_t index = txq->free_slot[--txq->n_free];
	struct vl_tx_slot *part = &txq->slots[index];
	char *buf = slot_buffer(txq, index);
	char *at = hdr_at(buf, c->hdr_len);
	struct virtio_net_hdr hdr;
	int n;

	vl_gso_head(&c->gso, c->head, offset, len, &hdr,
		    (uint8_t *)buf + VL_NET_HDR_MRG);
	memcpy(at, &hdr, sizeof(hdr));
	memset(at + sizeof(hdr), 0, c->hdr_len - sizeof(hdr));
	n = vl_iov_slice(slot->iov, slot->pkt.n_iov,
			 c->hdr_len + c->gso.head_len + offset, len,
			 part->iov + 1, SLOT_IOV);
	part->iov[0].iov_base = at;
	part->iov[0].iov_len = c->hdr_len + c->gso.head_len;
	part->n_extra = 0;
	part->parts = 0;
	part->whole = slot;
	part->held = false;
	part->by_ref = true;
	part->counted = false;
	part->pooled = false;
	part->gso = hdr.gso_type != VIRTIO_NET_HDR_GSO_NONE;
	part->csum = slot->csum;
	part->pkt = (struct vl_pkt){
		.iov = part->iov,
		.n_iov = n < 0 ? 1 : (uint32_t)n + 1,
		.len = c->gso.head_len + len,
		.seq = slot->pkt.seq,
		.tag = VL_TAG(VL_TAG_TX_SLOT, index),
	};
	if (slot->pooled)
		count_in_pool(txq, part);
	slot->parts++;
	return &part->pkt;
}

/* See vl_lane_set_ops. The chain stays with @pkt's slot; its parts have slots
 * with headers of their own, and the payload where it is. */
static struct vl_pkt *pkt_cut(void *owner, struct vl_pkt *pkt, uint32_t bytes)
{
	struct vl_txq *txq = owner;
	struct vl_tx_slot *slot = slot_of(pkt);
	char *buf = slot_buffer(txq, (uint32_t)(slot - txq->slots));
	char *at = slot->iov[0].iov_base;
	struct vl_pkt *first = NULL, **link = &first;
	struct virtio_net_hdr hdr;
	struct tx_cut c;
	uint32_t part;
	size_t n;

	c.hdr_len = (uint32_t)(buf + VL_NET_HDR_MRG - at);
	memcpy(&hdr, at, sizeof(hdr));
	n = vl_iov_read(slot->iov, pkt->n_iov, c.hdr_len, c.head,
			vl_min_u32(pkt->len, sizeof(c.head)));
	if (vl_gso_parse(&hdr, c.head, n, pkt->len, &c.gso)) {
		pkt->can_cut = false;
		return NULL;
	}
	part = vl_gso_part(&c.gso, vl_max_u32(bytes, pkt->len / PARTS_MAX));
	if (part >= c.gso.payload ||
	    txq->n_free < c.gso.payload / part + 1 + VL_TX_RESERVE)
		return NULL;
	for (uint32_t done = 0; done < c.gso.payload; done += part) {
		*link = make_part(txq, slot, &c, done,
				  vl_min_u32(part, c.gso.payload - done));
		link = &(*link)->next;
	}
	VL_STAT_INC(txq->counters.gso_cut);
	return first;
}

void vl_txq_complete(struct vl_txq *txq, uint32_t index, int res)
{
	vl_lane_set_complete(&txq->lanes, &txq->slots[index].pkt, res);
}

/* How many of the packets popped last were refused without a gap. */
static uint32_t refused_run(const struct vl_txq *txq)
{
	const struct vl_lane_set *ls = &txq->lanes;
	uint64_t distances = 0;

	_Static_assert(VL_TX_BATCH == 64, "one bit per packet of a batch");
	for (uint32_t i = 0; i < ls->n_refused; i++)
		distances |= 1ULL << (txq->seq - ls->refused[i]->seq - 1);
	return ~distances ? (uint32_t)__builtin_ctzll(~distances) : VL_TX_BATCH;
}

/*
 * Puts the refused packets back into the ring and waits for the lane. They
 * are the last ones popped where sends are linked. Where they are not, the
 * lane was trusted to take everything: a packet that others overtook is then
 * dropped rather than reordered, and the lane's sends are linked from now on.
 */
static void take_back(struct vl_txq *txq)
{
	struct vl_lane_set *ls = &txq->lanes;
	uint32_t run = refused_run(txq);

	for (uint32_t i = 0; i < ls->n_refused; i++) {
		struct vl_tx_slot *slot = slot_of(ls->refused[i]);

		if (txq->seq - slot->pkt.seq > run) {
			pkt_done(txq, &slot->pkt, VL_PKT_NOMEM);
			continue;
		}
		slot->held = false;
		free_slot(txq, slot);
	}
	vl_vq_unpop(&txq->vq, run);
	txq->seq -= run;
	ls->n_refused = 0;
	ls->lane[0].link_sends = true;
	VL_STAT_INC(txq->counters.blocked);
	vl_lane_set_full(&ls->lane[0]);
}

/*
 * Whether the driver may hear later of what was just published. It queued more
 * meanwhile, so it is not waiting, and the next batch, which follows at once,
 * tells it of both; unless so much is done that it may run out of descriptors.
 */
static bool can_wait(struct vl_txq *txq)
{
	struct vl_virtqueue *vq = &txq->vq;
	uint16_t untold = (uint16_t)(vq->published - vq->signalled);

	return vq->signalled_valid && untold < vq->ring.num / UNTOLD_PART &&
	       vl_lane_set_ready(&txq->lanes) && vl_vq_available(vq);
}

bool vl_txq_flush(struct vl_txq *txq)
{
	uint16_t done;

	if (vl_txq_in_flight(txq))
		return false;
	if (vl_lane_set_settle(&txq->lanes)) {
		vl_lane_submit(&txq->lanes.lane[0]);
		return true;
	}
	if (!txq->vq.running)
		return false;
	if (vl_unlikely(txq->lanes.n_refused))
		take_back(txq);
	done = (uint16_t)(txq->vq.used_idx - txq->vq.published);
	if (!done)
		return false;
	vl_vq_publish(&txq->vq);
	if (!can_wait(txq))
		vl_vq_notify(&txq->vq);
	vl_hist_add(&txq->latency_ns, vl_now_ns() - txq->seen_ns, done);
	return false;
}

static void convert(struct vl_txq *txq, struct vl_tx_slot *slot,
		    uint32_t hdr_len)
{
	char *buf = slot_buffer(txq, (uint32_t)(slot - txq->slots));
	char *from = slot->iov[0].iov_base, *to = hdr_at(buf, hdr_len);

	memmove(to, from, sizeof(struct virtio_net_hdr));
	memset(to + sizeof(struct virtio_net_hdr), 0,
	       hdr_len - sizeof(struct virtio_net_hdr));
	slot->iov[0].iov_len += (size_t)(from - to);
	slot->iov[0].iov_base = to;
}

void vl_txq_convert(struct vl_txq *txq, uint32_t hdr_len)
{
	for (uint32_t i = 1; i < txq->lanes.n; i++)
		for (struct vl_pkt *p = txq->lanes.side[i].head; p; p = p->next)
			convert(txq, slot_of(p), hdr_len);
}

uint16_t vl_txq_stop(struct vl_txq *txq)
{
	for (uint32_t i = 0; txq->vq.running && i < VL_TX_SLOTS; i++) {
		struct vl_tx_slot *slot = &txq->slots[i];

		/* The whole of parts goes with the last of them. */
		if (slot->parts || !chain_of(slot)->held ||
		    take_out(txq, slot, VL_TX_RESERVE))
			continue;
		vl_lane_set_remove(&txq->lanes, &slot->pkt);
		pkt_done(txq, &slot->pkt, VL_PKT_POOL);
	}
	return vl_vq_stop(&txq->vq);
}
