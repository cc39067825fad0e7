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
 * its slot. vl_tx_park() says what it may hold meanwhile, of the driver's
 * descriptors and of our buffers. Without lanes it goes back to the ring, with
 * all that were popped after it, and transmission waits (take_back()).
 *
 * A packet that is sent from where it lies keeps its slot and its chain until the
 * kernel has let go of them (tx_zcopy.c); for the lanes it is done with before.
 *
 * The virtio header is copied into the slot, checked there and sent from
 * there. A small packet is copied behind it, since one buffer is cheaper for
 * the kernel than a list of two (VL_TX_JOIN_MAX); the payload of a larger one stays
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
#include "lane/steer.h"
#include "net/tags.h"
#include "net/tx_cut.h"
#include "net/tx_slot.h"
#include "virtio/net_hdr.h"

/* Part of the ring that may be done before the driver must hear of it. */
#define UNTOLD_PART 4u

static void pkt_done(void *owner, struct vl_pkt *pkt, enum vl_pkt_end end);

static const struct vl_lane_set_ops lane_ops = {
	.done = pkt_done,
	.park = vl_tx_park,
	.cut = vl_tx_cut,
	.zerocopy = vl_tx_zc_choose,
};

int vl_txq_init(struct vl_txq *txq, const struct vl_backend *backend,
		struct vl_io *io)
{
	txq->io = io;
	txq->gso_bytes = backend->gso_bytes;
	txq->gso_segments = &backend->gso_segments;
	txq->ops_per_frame = backend->ops_per_frame;
	txq->join_max = backend->zerocopy == VL_ZEROCOPY_ON ? VL_ZC_BYTES_ON - 1
							    : VL_TX_JOIN_MAX;
	TAILQ_INIT(&txq->held);
	vl_tx_zc_init(&txq->zc, backend);
	txq->lanes.zerocopy = backend->zerocopy != VL_ZEROCOPY_OFF;
	txq->lanes.ops = &lane_ops;
	txq->lanes.owner = txq;
	txq->slots = calloc(VL_TX_SLOTS, sizeof(txq->slots[0]));
	txq->buffers = malloc((size_t)VL_TX_SLOTS * VL_TX_BUFFER);
	txq->long_iov = calloc(VL_CHAIN_IOV_MAX, sizeof(txq->long_iov[0]));
	if (!txq->slots || !txq->buffers || !txq->long_iov)
		return -ENOMEM;
	for (uint32_t i = 0; i < VL_TX_SLOTS; i++)
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
	t->c.iov_cap = VL_TX_SLOT_IOV;
	n = vl_vq_pop(&txq->vq, &t->c);
	if (vl_likely(n != -ENOBUFS))
		return n;
	t->is_long = true;
	t->c.iov = txq->long_iov;
	t->c.iov_cap = VL_CHAIN_IOV_MAX;
	return vl_vq_pop(&txq->vq, &t->c);
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
	if (vl_unlikely(c->len_readable > txq->hdr_len + VL_TX_FRAME_MAX))
		return &n->drop_oversize;
	frame_len = (uint32_t)c->len_readable - txq->hdr_len;
	(void)vl_iov_read(c->iov, c->n_readable, 0, &hdr, sizeof(hdr));
	if (vl_unlikely(vl_net_hdr_check(&hdr, frame_len, txq->features)))
		return &n->drop_header;
	buf = vl_tx_hdr_at(buf, txq->hdr_len);
	memcpy(buf, &hdr, sizeof(hdr));
	/* num_buffers means nothing on transmit. */
	memset(buf + sizeof(hdr), 0, txq->hdr_len - sizeof(hdr));
	return NULL;
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

	slot->iov[0].iov_base = vl_tx_hdr_at(buf, hdr_len);
	slot->iov[0].iov_len = hdr_len;
	slot->n_extra = 0;
	slot->by_ref = false;
	slot->pkt.n_iov = 1;
	if (len <= txq->join_max) {
		slot->iov[0].iov_len +=
			vl_iov_read(c->iov, c->n_readable, hdr_len,
				    buf + VL_NET_HDR_MRG, len);
		VL_STAT_INC(txq->counters.copied);
		return true;
	}
	if (vl_unlikely(t->is_long)) {
		/* The slot itself is still on the stack of free ones. */
		txq->n_free--;
		if (!vl_tx_copy_frame(txq, slot, c->iov, c->n_readable, hdr_len,
				      0)) {
			txq->n_free++;
			return false;
		}
		txq->free_slot[txq->n_free++] = (uint16_t)(slot - txq->slots);
		VL_STAT_INC(txq->counters.copied);
		return true;
	}
	/* In place: the list without the header is never longer. */
	n = vl_iov_slice(c->iov, c->n_readable, hdr_len, len, slot->iov + 1,
			 VL_TX_SLOT_IOV);
	slot->by_ref = true;
	slot->pkt.n_iov = n < 0 ? 1 : (uint32_t)n + 1;
	return true;
}

static void fill_slot(struct vl_txq *txq, struct vl_tx_slot *slot,
		      const struct vl_chain *c, char *buf)
{
	const struct virtio_net_hdr *hdr =
		(const void *)vl_tx_hdr_at(buf, txq->hdr_len);

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

/* The packet in @slot, popped last, goes back to the ring: -EAGAIN. */
static int put_back(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	vl_tx_finish_unseen(txq, slot);
	vl_vq_unpop(&txq->vq, 1);
	return -EAGAIN;
}

/* The frame in @slot is larger than the backend takes, or might be. Returns
 * as queue_one(), or 1: it is not. */
static int queue_large(struct vl_txq *txq, struct vl_tx_slot *slot,
		       uint32_t *packets)
{
	struct vl_tx_cut c;
	struct vl_pkt *p, *next;
	unsigned int parts = vl_tx_parts(txq, slot, &c);

	if (parts == 1)
		return 1;
	if (parts == 0) {
		/* As in queue_one(). */
		if (vl_txq_in_flight(txq))
			return put_back(txq, slot);
		VL_STAT_INC(txq->counters.drop_segments);
		vl_tx_finish(txq, slot);
		txq->seq++;
		++*packets;
		return 0;
	}
	if (parts > VL_TX_BATCH - *packets || parts > txq->n_free)
		return put_back(txq, slot);
	*packets += parts;
	for (p = vl_tx_cut_large(txq, slot, &c); p; p = next) {
		next = p->next;
		vl_lane_set_send(&txq->lanes, p);
	}
	return (int)slot->pkt.len;
}

/* Takes one packet from the ring to the lanes, and adds it, or its parts, to
 * @packets. Returns the bytes queued, 0 for a packet that was dropped, -EAGAIN
 * when there is none (or no place). */
static int queue_one(struct vl_txq *txq, uint32_t *packets)
{
	uint32_t index = txq->free_slot[txq->n_free - 1];
	struct vl_tx_slot *slot = &txq->slots[index];
	char *buf = vl_tx_slot_buffer(txq, index);
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
		++*packets;
		return 0;
	}
	fill_slot(txq, slot, &t.c, buf);
	if (vl_unlikely(!lay_out(txq, slot, &t, buf))) {
		vl_vq_unpop(&txq->vq, 1);
		return -EAGAIN;
	}
	slot->held = true;
	slot->pkt.seq = txq->seq;
	/* Taken from the stack of free slots, wherever it lies now. */
	txq->n_free--;
	if (vl_unlikely(vl_tx_may_be_large(txq, slot))) {
		int len = queue_large(txq, slot, packets);

		if (len != 1)
			return len;
	}
	if (vl_unlikely(txq->zc.classic) && vl_tx_zc_must_wait(txq, slot))
		return put_back(txq, slot);
	txq->seq++;
	++*packets;
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
	       bytes < VL_TX_BUDGET_BYTES &&
	       vl_io_room(txq->io) > txq->ops_per_frame) {
		int len = queue_one(txq, &packets);

		if (len == -EAGAIN)
			break;
		bytes += (uint32_t)len;
	}
	return packets;
}

/* Sends what waits for the only lane. */
static void send_waiting(struct vl_txq *txq)
{
	uint32_t n = txq->n_waiting;

	if (txq->lanes.paused)
		return;
	txq->n_waiting = 0;
	for (uint32_t i = 0; i < n; i++)
		vl_lane_set_send(&txq->lanes, txq->waiting[i]);
}

/* Whether packets may be taken from the ring. */
static bool is_ready(const struct vl_txq *txq)
{
	return vl_lane_set_ready(&txq->lanes) && !txq->zc.full &&
	       !txq->zc.taken_back;
}

bool vl_txq_turn(struct vl_txq *txq)
{
	struct vl_lane_set *ls = &txq->lanes;
	uint32_t packets = 0;

	if (!is_ready(txq))
		return false;
	txq->seen_ns = vl_now_ns();
	ls->now_ns = txq->seen_ns;
	vl_steer_back(ls);
	vl_probes_look(ls);
	txq->sent_again = txq->n_waiting;
	if (vl_unlikely(txq->sent_again))
		send_waiting(txq);
	else
		packets = queue_batch(txq);
	vl_lane_set_pump(ls);
	if (ls->in_flight) {
		VL_STAT_INC(txq->counters.batches);
		vl_lane_submit(&txq->lanes.lane[0]);
		return true;
	}
	if (packets == 0) {
		vl_vq_notify(&txq->vq);
		if (vl_unlikely(txq->n_waiting || txq->zc.full))
			return false;
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

static void pkt_done(void *owner, struct vl_pkt *pkt, enum vl_pkt_end end)
{
	struct vl_txq *txq = owner;
	struct vl_tx_slot *slot = vl_tx_slot_of(pkt);

	if (vl_likely(end == VL_PKT_SENT))
		count_sent(txq, slot);
	else
		VL_STAT_INC(*drop_counter(&txq->counters, end));
	vl_tx_finish(txq, slot);
}

void vl_txq_event(struct vl_txq *txq, uint32_t index,
		  const struct vl_io_event *ev)
{
	struct vl_tx_slot *slot = &txq->slots[index];
	int res = ev->res;

	if (vl_unlikely(ev->released)) {
		vl_tx_released(txq, slot, ev->copied);
		return;
	}
	if (vl_unlikely(slot->zc_sending))
		res = vl_tx_zc_result(txq, slot, res, ev->more);
	vl_lane_set_complete(&txq->lanes, &slot->pkt, res);
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
 * Parts of a frame cannot go back to the ring, nor what is not the last @run popped:
 * a backend sends to others beside a destination that refuses (vxlan_tx.c). Where
 * there are such ones among the refused packets, all of these wait here, and nothing
 * is popped meanwhile.
 */
static bool must_keep(const struct vl_txq *txq, uint32_t run)
{
	const struct vl_lane_set *ls = &txq->lanes;
	bool keep = txq->sent_again ||
		    (vl_lane_can_refuse(&ls->lane[0]) && ls->n_refused != run);

	for (uint32_t i = 0; i < ls->n_refused && !keep; i++)
		keep = vl_tx_slot_of(ls->refused[i])->whole;
	return keep;
}

/*
 * Puts the refused packets back into the ring and waits for the lane. They
 * are the last ones popped of their destinations where sends are linked. Where they
 * are not, the lane was trusted to take everything: a packet that others overtook is
 * then dropped rather than reordered, and the lane's sends are linked from now on.
 */
static void take_back(struct vl_txq *txq)
{
	struct vl_lane_set *ls = &txq->lanes;
	uint32_t run = txq->sent_again ? VL_TX_BATCH : refused_run(txq);
	bool linked = vl_lane_can_refuse(&ls->lane[0]);
	bool keep = must_keep(txq, run);

	vl_lane_set_sort_refused(ls);
	for (uint32_t i = 0; i < ls->n_refused; i++) {
		struct vl_tx_slot *slot = vl_tx_slot_of(ls->refused[i]);

		if (!txq->sent_again && !linked &&
		    txq->seq - slot->pkt.seq > run)
			pkt_done(txq, &slot->pkt, VL_PKT_NOMEM);
		else if (keep)
			txq->waiting[txq->n_waiting++] = &slot->pkt;
		else
			vl_tx_finish_unseen(txq, slot);
	}
	if (!keep) {
		vl_vq_unpop(&txq->vq, run);
		txq->seq -= run;
	}
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
	       is_ready(txq) && vl_vq_available(vq);
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
	if (vl_unlikely(txq->lanes.n_refused))
		take_back(txq);
	if (!txq->vq.running)
		return false;
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
	char *buf = vl_tx_slot_buffer(txq, (uint32_t)(slot - txq->slots));
	char *from = slot->iov[0].iov_base, *to = vl_tx_hdr_at(buf, hdr_len);

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
			convert(txq, vl_tx_slot_of(p), hdr_len);
	for (uint32_t i = 0; i < txq->n_waiting; i++)
		convert(txq, vl_tx_slot_of(txq->waiting[i]), hdr_len);
}

bool vl_txq_stopping(struct vl_txq *txq, uint64_t now_ns)
{
	vl_tx_zc_log_stop(txq, now_ns);
	txq->zc.stopping = true;
	return vl_txq_in_flight(txq) || txq->zc.n;
}

/* Nobody waits for @slot any more. */
static void stop_waiting(struct vl_txq *txq, struct vl_tx_slot *slot)
{
	uint32_t n = 0;

	if (slot->pkt.dest) {
		vl_lane_set_remove(&txq->lanes, &slot->pkt);
		return;
	}
	for (uint32_t i = 0; i < txq->n_waiting; i++)
		if (txq->waiting[i] != &slot->pkt)
			txq->waiting[n++] = txq->waiting[i];
	txq->n_waiting = n;
}

uint16_t vl_txq_stop(struct vl_txq *txq)
{
	for (uint32_t i = 0; txq->vq.running && i < VL_TX_SLOTS; i++) {
		struct vl_tx_slot *slot = &txq->slots[i];

		/* The whole of parts goes with the last of them. */
		if (slot->parts || !vl_tx_chain_of(slot)->held ||
		    vl_tx_take_out(txq, slot, VL_TX_RESERVE))
			continue;
		stop_waiting(txq, slot);
		pkt_done(txq, &slot->pkt, VL_PKT_POOL);
	}
	txq->zc.stopping = false;
	return vl_vq_stop(&txq->vq);
}
