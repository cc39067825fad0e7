/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two reasons to cut a frame: it waits for a lane that it would keep busy for
 * too long (the lanes say so), or the backend does not take it. A part of the
 * second kind may be cut once more for the first reason.
 */
#include "net/tx_cut.h"

#include <string.h>

#include "base/barrier.h"
#include "base/iov.h"
#include "base/util.h"
#include "net/tags.h"

/* A frame is cut into about so many parts at most, for a slow lane. */
#define SLOW_PARTS_MAX 32u

static int parse(struct vl_txq *txq, const struct vl_tx_slot *slot,
		 struct vl_tx_cut *c)
{
	uint32_t index = (uint32_t)(slot - txq->slots);
	char *at = slot->iov[0].iov_base;
	struct virtio_net_hdr hdr;
	size_t n;

	c->hdr_len =
		(uint32_t)(vl_tx_slot_buffer(txq, index) + VL_NET_HDR_MRG - at);
	memcpy(&hdr, at, sizeof(hdr));
	n = vl_iov_read(slot->iov, slot->pkt.n_iov, c->hdr_len, c->head,
			vl_min_u32(slot->pkt.len, sizeof(c->head)));
	return vl_gso_parse(&hdr, c->head, n, slot->pkt.len, &c->gso);
}

/* A part of @slot with @len bytes of payload behind @offset of it. */
static struct vl_pkt *make_part(struct vl_txq *txq, struct vl_tx_slot *slot,
				const struct vl_tx_cut *c, uint32_t offset,
				uint32_t len)
{
	uint16_t index = txq->free_slot[--txq->n_free];
	struct vl_tx_slot *part = &txq->slots[index];
	char *buf = vl_tx_slot_buffer(txq, index);
	char *at = vl_tx_hdr_at(buf, c->hdr_len);
	struct virtio_net_hdr hdr;
	int n;

	vl_gso_head(&c->gso, c->head, offset, len, &hdr,
		    (uint8_t *)buf + VL_NET_HDR_MRG);
	memcpy(at, &hdr, sizeof(hdr));
	memset(at + sizeof(hdr), 0, c->hdr_len - sizeof(hdr));
	n = vl_iov_slice(slot->iov, slot->pkt.n_iov,
			 c->hdr_len + c->gso.head_len + offset, len,
			 part->iov + 1, VL_TX_SLOT_IOV);
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
		vl_tx_count_in_pool(txq, part);
	slot->parts++;
	return &part->pkt;
}

/* Parts of c->part bytes of payload each, but the last. */
static struct vl_pkt *make_parts(struct vl_txq *txq, struct vl_tx_slot *slot,
				 const struct vl_tx_cut *c)
{
	struct vl_pkt *first = NULL, **link = &first;

	for (uint32_t done = 0; done < c->gso.payload; done += c->part) {
		*link = make_part(txq, slot, c, done,
				  vl_min_u32(c->part, c->gso.payload - done));
		link = &(*link)->next;
	}
	VL_STAT_INC(txq->counters.gso_cut);
	return first;
}

struct vl_pkt *vl_tx_cut(void *owner, struct vl_pkt *pkt, uint32_t bytes)
{
	struct vl_txq *txq = owner;
	struct vl_tx_slot *slot = vl_tx_slot_of(pkt);
	struct vl_tx_cut c;
	uint32_t n;

	if (parse(txq, slot, &c)) {
		pkt->can_cut = false;
		return NULL;
	}
	c.part = vl_gso_part(&c.gso,
			     vl_max_u32(bytes, pkt->len / SLOW_PARTS_MAX));
	n = c.gso.payload / c.part + 1;
	if (c.part >= c.gso.payload || txq->n_free < n + VL_TX_RESERVE ||
	    (slot->pooled && txq->pool_used + n > VL_TX_POOL))
		return NULL;
	return make_parts(txq, slot, &c);
}

/* Bytes of payload that the backend takes in one frame. */
static uint32_t payload_max(const struct vl_txq *txq, const struct vl_gso *g)
{
	uint32_t bytes = g->payload, segments = vl_read_once(txq->gso_segments);

	if (txq->gso_bytes > g->head_len)
		bytes = vl_min_u32(bytes, txq->gso_bytes - g->head_len);
	if (segments)
		bytes = (uint32_t)vl_min_u64(bytes,
					     (uint64_t)segments * g->gso_size);
	return bytes;
}

unsigned int vl_tx_parts(struct vl_txq *txq, struct vl_tx_slot *slot,
			 struct vl_tx_cut *c)
{
	uint32_t len = slot->pkt.len, gso_size = vl_tx_gso_size(slot), n;
	uint32_t segments = vl_read_once(txq->gso_segments);

	if ((!txq->gso_bytes || len <= txq->gso_bytes) &&
	    (!segments || len <= (uint64_t)segments * gso_size))
		return 1;
	if (parse(txq, slot, c))
		return 0;
	n = payload_max(txq, &c->gso);
	if (n >= c->gso.payload)
		return 1;
	c->part = vl_gso_part(&c->gso, n);
	n = (c->gso.payload + c->part - 1) / c->part;
	return n <= VL_TX_PARTS_MAX ? n : 0;
}

struct vl_pkt *vl_tx_cut_large(struct vl_txq *txq, struct vl_tx_slot *slot,
			       const struct vl_tx_cut *c)
{
	struct vl_pkt *first = make_parts(txq, slot, c);

	for (struct vl_pkt *p = first; p; p = p->next) {
		p->seq = txq->seq++;
		p->can_cut = vl_tx_slot_of(p)->gso;
	}
	return first;
}
