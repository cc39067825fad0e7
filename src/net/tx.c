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
 * A packet that the lane refuses for now (full) is not lost and not kept: it
 * goes back to the ring with all that were popped after it, and transmission
 * waits for the lane. Sends of a lane that can be full are linked, so nothing
 * overtakes the refused packet.
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
#include "net/tags.h"
#include "virtio/net_hdr.h"

/* Header and largest frame copied. Measured: writing a list of two costs the
 * kernel 80 ns more than one buffer, copying 1514 bytes costs 20 ns. */
#define SLOT_BUFFER 2048u
#define COPY_MAX    (SLOT_BUFFER - VL_NET_HDR_MRG)

/* Pieces sent by reference; Linux drivers make at most 19. */
#define SLOT_IOV 20u

/* Part of the ring that may be done before the driver must hear of it. */
#define UNTOLD_PART 4u

/* The largest IP packet with an Ethernet and two VLAN headers. */
#define FRAME_MAX (65535u + ETH_HLEN + 8u)

struct vl_tx_slot {
	struct iovec iov[SLOT_IOV + 1]; /* [0]: header, or all of it */
	uint32_t frame_len;
	uint32_t seq;
	uint16_t head;
	bool refused;
	bool gso;
	bool csum;
	bool uses_scratch;
};

int vl_txq_init(struct vl_txq *txq, struct vl_lane *lane, struct vl_io *io)
{
	txq->lane = lane;
	txq->io = io;
	txq->slots = calloc(VL_TX_BATCH, sizeof(txq->slots[0]));
	txq->buffers = malloc((size_t)VL_TX_BATCH * SLOT_BUFFER);
	txq->scratch = malloc(FRAME_MAX + VL_NET_HDR_MRG);
	txq->long_iov = calloc(VL_CHAIN_IOV_MAX, sizeof(txq->long_iov[0]));
	if (!txq->slots || !txq->buffers || !txq->scratch || !txq->long_iov)
		return -ENOMEM;
	for (uint16_t i = 0; i < VL_TX_BATCH; i++)
		txq->free_slot[i] = (uint16_t)(VL_TX_BATCH - 1 - i);
	txq->n_free = VL_TX_BATCH;
	return 0;
}

void vl_txq_free(struct vl_txq *txq)
{
	free(txq->slots);
	free(txq->buffers);
	free(txq->scratch);
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

uint16_t vl_txq_stop(struct vl_txq *txq)
{
	return vl_vq_stop(&txq->vq);
}

static char *slot_buffer(struct vl_txq *txq, uint32_t index)
{
	return txq->buffers + (size_t)index * SLOT_BUFFER;
}

/* Where the driver's chain is, as vl_vq_pop() found it. */
struct tx_chain {
	struct vl_chain c;
	bool is_long; /* in txq->long_iov instead of the slot */
};

/*
 * Pops into @slot, or into long_iov where the chain has too many pieces.
 * Returns as vl_vq_pop(), and 0 while the one place for long chains is taken.
 */
static int pop(struct vl_txq *txq, struct vl_tx_slot *slot, struct tx_chain *t)
{
	int n;

	t->is_long = false;
	t->c.iov = slot->iov + 1;
	t->c.iov_cap = SLOT_IOV;
	n = vl_vq_pop(&txq->vq, &t->c);
	if (vl_likely(n != -ENOBUFS))
		return n;
	if (txq->scratch_busy)
		return 0;
	t->is_long = true;
	t->c.iov = txq->long_iov;
	t->c.iov_cap = VL_CHAIN_IOV_MAX;
	return vl_vq_pop(&txq->vq, &t->c);
}

/* Checks lengths and header. Returns the counter of why the packet is to be
 * dropped, NULL when it is good; the header is then at the start of @buf. */
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
	memcpy(buf, &hdr, sizeof(hdr));
	/* num_buffers means nothing on transmit. */
	memset(buf + sizeof(hdr), 0, VL_NET_HDR_MRG - sizeof(hdr));
	return NULL;
}

/* Makes slot->iov the packet: header and payload. Returns the entries. */
static unsigned int lay_out(struct vl_txq *txq, struct vl_tx_slot *slot,
			    const struct tx_chain *t, char *buf)
{
	const struct vl_chain *c = &t->c;
	uint32_t hdr_len = txq->hdr_len;
	int n;

	slot->iov[0].iov_base = buf;
	slot->iov[0].iov_len = hdr_len;
	if (slot->frame_len <= COPY_MAX) {
		slot->iov[0].iov_len +=
			vl_iov_read(c->iov, c->n_readable, hdr_len,
				    buf + hdr_len, slot->frame_len);
		VL_STAT_INC(txq->counters.copied);
		return 1;
	}
	if (vl_unlikely(t->is_long)) {
		memcpy(txq->scratch, buf, hdr_len);
		slot->iov[0].iov_base = txq->scratch;
		slot->iov[0].iov_len +=
			vl_iov_read(c->iov, c->n_readable, hdr_len,
				    txq->scratch + hdr_len, slot->frame_len);
		slot->uses_scratch = true;
		txq->scratch_busy = true;
		VL_STAT_INC(txq->counters.copied);
		return 1;
	}
	/* In place: the list without the header is never longer. */
	n = vl_iov_slice(c->iov, c->n_readable, hdr_len, slot->frame_len,
			 slot->iov + 1, SLOT_IOV);
	return n < 0 ? 0 : (unsigned int)n + 1;
}

/* Takes one packet from the ring to the lane. Returns the bytes queued, 0 for
 * a packet that was dropped, -EAGAIN when there is none (or no place). */
static int queue_one(struct vl_txq *txq)
{
	uint32_t index = txq->free_slot[txq->n_free - 1];
	struct vl_tx_slot *slot = &txq->slots[index];
	const struct virtio_net_hdr *hdr;
	char *buf = slot_buffer(txq, index);
	struct tx_chain t;
	uint64_t *drop;
	unsigned int n;
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
	hdr = (const struct virtio_net_hdr *)(const void *)buf;
	slot->head = t.c.head;
	slot->seq = txq->seq++;
	slot->frame_len = (uint32_t)t.c.len_readable - txq->hdr_len;
	slot->gso = hdr->gso_type != VIRTIO_NET_HDR_GSO_NONE;
	slot->csum = hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
	slot->refused = false;
	slot->uses_scratch = false;
	n = lay_out(txq, slot, &t, buf);
	txq->n_free--;
	vl_lane_send(txq->lane, slot->iov, n, VL_TAG(VL_TAG_TX_SLOT, index));
	return (int)slot->frame_len;
}

bool vl_txq_turn(struct vl_txq *txq)
{
	uint32_t packets = 0, bytes = 0, queued = 0;

	if (!txq->vq.running || txq->vq.broken ||
	    !vl_lane_can_send(txq->lane) || vl_txq_in_flight(txq))
		return false;
	vl_vq_disable_kick(&txq->vq);
	txq->seen_ns = vl_now_ns();
	while (txq->n_free && packets < VL_TX_BUDGET_PACKETS &&
	       bytes < VL_TX_BUDGET_BYTES && vl_io_room(txq->io)) {
		int len = queue_one(txq);

		if (len == -EAGAIN)
			break;
		packets++;
		queued += len > 0;
		bytes += (uint32_t)len;
	}
	if (packets == 0) {
		vl_vq_notify(&txq->vq);
		return vl_vq_enable_kick(&txq->vq);
	}
	if (queued == 0) {
		vl_txq_flush(txq);
		return true;
	}
	VL_STAT_INC(txq->counters.batches);
	vl_io_submit(txq->io);
	return true;
}

static void free_slot(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	if (slot->uses_scratch)
		txq->scratch_busy = false;
	txq->free_slot[txq->n_free++] = (uint16_t)(slot - txq->slots);
}

static void count_sent(struct vl_txq *txq, const struct vl_tx_slot *slot)
{
	struct vl_tx_counters *n = &txq->counters;

	VL_STAT_INC(n->packets);
	VL_STAT_ADD(n->bytes, slot->frame_len);
	if (slot->gso)
		VL_STAT_INC(n->gso_packets);
	if (slot->csum)
		VL_STAT_INC(n->csum_packets);
}

static void count_drop(struct vl_txq *txq, enum vl_io_verdict verdict)
{
	struct vl_tx_counters *n = &txq->counters;

	switch (verdict) {
	case VL_IO_DOWN:
		VL_STAT_INC(n->drop_down);
		break;
	case VL_IO_GONE:
		VL_STAT_INC(n->drop_gone);
		break;
	case VL_IO_NOMEM:
		VL_STAT_INC(n->drop_nomem);
		break;
	case VL_IO_REFUSED:
	case VL_IO_DONE:
	case VL_IO_AGAIN:
	case VL_IO_VERDICTS:
		VL_STAT_INC(n->drop_refused);
		break;
	}
}

void vl_txq_complete(struct vl_txq *txq, uint32_t index, int res)
{
	struct vl_tx_slot *slot = &txq->slots[index];
	enum vl_io_verdict verdict = vl_io_verdict(res);

	if (vl_unlikely(verdict == VL_IO_AGAIN)) {
		slot->refused = true;
		txq->refused++;
		return;
	}
	if (vl_likely(verdict == VL_IO_DONE))
		count_sent(txq, slot);
	else
		count_drop(txq, verdict);
	vl_vq_push(&txq->vq, slot->head, 0);
	free_slot(txq, slot);
}

/* How many of the packets popped last were refused without a gap. */
static uint32_t refused_run(const struct vl_txq *txq)
{
	uint64_t distances = 0;

	_Static_assert(VL_TX_BATCH == 64, "one bit per packet of a batch");
	for (uint32_t i = 0; i < VL_TX_BATCH; i++)
		if (txq->slots[i].refused)
			distances |= 1ULL << (txq->seq - txq->slots[i].seq - 1);
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
	uint32_t run = refused_run(txq);

	for (uint32_t i = 0; i < VL_TX_BATCH; i++) {
		struct vl_tx_slot *slot = &txq->slots[i];

		if (!slot->refused)
			continue;
		slot->refused = false;
		if (txq->seq - slot->seq > run) {
			count_drop(txq, VL_IO_NOMEM);
			vl_vq_push(&txq->vq, slot->head, 0);
		}
		free_slot(txq, slot);
	}
	vl_vq_unpop(&txq->vq, run);
	txq->seq -= run;
	txq->refused = 0;
	txq->lane->link_sends = true;
	VL_STAT_INC(txq->counters.blocked);
	vl_lane_set_full(txq->lane);
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
	       vl_lane_can_send(txq->lane) && vl_vq_available(vq);
}

void vl_txq_flush(struct vl_txq *txq)
{
	uint16_t done;

	if (vl_txq_in_flight(txq) || !txq->vq.running)
		return;
	if (vl_unlikely(txq->refused))
		take_back(txq);
	done = (uint16_t)(txq->vq.used_idx - txq->vq.published);
	if (!done)
		return;
	vl_vq_publish(&txq->vq);
	if (!can_wait(txq))
		vl_vq_notify(&txq->vq);
	vl_hist_add(&txq->latency_ns, vl_now_ns() - txq->seen_ns, done);
}
