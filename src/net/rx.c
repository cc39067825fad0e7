/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reception.
 *
 * Frames are read straight into the driver's buffers. A turn pops chains into
 * a FIFO, queues one read per frame and submits them together. Chains are used
 * in the order they were popped, so those that stay unfilled are always the
 * last ones: they wait in the FIFO for the next turn, or go back to the ring
 * when the queue is stopped. When a read found nothing but one behind it did
 * (a frame came in between), its frame is moved forward: compact(). (Where a
 * bad chain had to be handed back from behind them they cannot go back, and
 * are returned empty instead.)
 *
 * How many buffers a frame needs is known only after it was read. A read has
 * one chain in front and a part of scratch memory behind, so that a larger
 * frame is never cut: its end is copied from scratch into the chains that
 * follow (VIRTIO_NET_F_MRG_RXBUF). When such frames come (segmentation
 * offload), the following reads get all the chains that the largest frame
 * needs, one frame per submit, and nothing is copied any more.
 *
 * A frame for which the driver has not posted enough buffers waits in scratch
 * (pending_len) until it has, also over a stop of the queue; nothing else is
 * read meanwhile. Without mergeable buffers there is nothing to wait for, and
 * it is dropped.
 */
#include "net/rx.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <stdlib.h>
#include <string.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/iov.h"
#include "base/util.h"
#include "net/tags.h"
#include "virtio/net_hdr.h"

#define CHAIN_IOV   4u  /* pieces of a chain without a block of its own */
#define LONG_BLOCKS 64u /* chains of more pieces that can be held */
#define READ_IOV    4096u

/* Behind the header: the largest IP packet and an Ethernet header with tags. */
#define LINK_HEADER   (ETH_HLEN + 8u)
#define IP_PACKET_MAX 65535u
#define SCRATCH_PART  (VL_NET_HDR_MRG + IP_PACKET_MAX + LINK_HEADER + 1u)
#define SCRATCH_PARTS 16u
/* What a chain counts for; a driver may describe 4 GiB, no frame needs it. */
#define CHAIN_LEN_MAX (2ULL * SCRATCH_PART)

#define BATCH_MIN   4u
/* Part of the ring that may be filled before the driver must hear of it. */
#define UNTOLD_PART 4u
/* Small frames in a row after which reads are small again. */
#define LARGE_RUN   64u

struct vl_rx_chain {
	struct iovec *iov; /* own, or a block of long_iov */
	uint32_t n;
	uint32_t len;
	uint32_t descs;
	uint16_t head;
	struct iovec own[CHAIN_IOV];
};

struct vl_rx_read {
	uint32_t chains;
	uint32_t capacity; /* bytes of its chains */
	uint32_t room;     /* with scratch; as much read means: cut off */
	int32_t res;
};

int vl_rxq_init(struct vl_rxq *rxq, struct vl_lane *lane, struct vl_io *io)
{
	size_t blocks = (size_t)LONG_BLOCKS * VL_CHAIN_IOV_MAX;

	_Static_assert(LONG_BLOCKS <= 64, "one bit per block in long_used");
	rxq->lane = lane;
	rxq->io = io;
	rxq->chains = calloc(VL_RX_CHAINS, sizeof(rxq->chains[0]));
	rxq->reads = calloc(VL_RX_BATCH, sizeof(rxq->reads[0]));
	rxq->read_iov = calloc(READ_IOV, sizeof(rxq->read_iov[0]));
	/* Both large and rarely touched: calloc leaves them unmapped. */
	rxq->long_iov = calloc(blocks, sizeof(rxq->long_iov[0]));
	/* One part per read, and one to move a frame through. */
	rxq->scratch = calloc(SCRATCH_PARTS + 1, SCRATCH_PART);
	if (!rxq->chains || !rxq->reads || !rxq->read_iov || !rxq->long_iov ||
	    !rxq->scratch)
		return -ENOMEM;
	return 0;
}

void vl_rxq_free(struct vl_rxq *rxq)
{
	free(rxq->chains);
	free(rxq->reads);
	free(rxq->read_iov);
	free(rxq->long_iov);
	free(rxq->scratch);
}

void vl_rxq_set_mtu(struct vl_rxq *rxq, uint32_t mtu)
{
	rxq->mtu = mtu;
	if (rxq->segments || mtu == 0 || mtu > IP_PACKET_MAX)
		mtu = IP_PACKET_MAX;
	rxq->frame_max = rxq->hdr_len + LINK_HEADER + mtu;
}

void vl_rxq_set_features(struct vl_rxq *rxq, uint64_t features)
{
	const uint64_t segmented = VL_FEATURE(VIRTIO_NET_F_GUEST_TSO4) |
				   VL_FEATURE(VIRTIO_NET_F_GUEST_TSO6) |
				   VL_FEATURE(VIRTIO_NET_F_GUEST_USO4) |
				   VL_FEATURE(VIRTIO_NET_F_GUEST_USO6);

	rxq->segments = features & segmented;
	rxq->csum = features & VL_FEATURE(VIRTIO_NET_F_GUEST_CSUM);
	vl_rxq_set_mtu(rxq, rxq->mtu);
}

void vl_rxq_forget(struct vl_rxq *rxq)
{
	if (rxq->pending_len)
		VL_STAT_INC(rxq->counters.drop_stopped);
	rxq->pending_len = 0;
}

/* What the form of a frame in our hands depends on. */
static uint32_t layout_of(const struct vl_rxq *rxq)
{
	return rxq->hdr_len | (rxq->mergeable ? 0x100u : 0) |
	       (rxq->segments ? 0x200u : 0) | (rxq->csum ? 0x400u : 0);
}

int vl_rxq_start(struct vl_rxq *rxq, const char *name,
		 const struct vl_vring *ring, struct vl_guest_mem *mem,
		 uint64_t features)
{
	uint32_t layout = layout_of(rxq);

	rxq->hdr_len = vl_net_hdr_len(features);
	rxq->mergeable = features & VL_FEATURE(VIRTIO_NET_F_MRG_RXBUF);
	vl_rxq_set_features(rxq, features);
	rxq->first = 0;
	rxq->count = 0;
	rxq->cannot_unpop = false;
	rxq->capacity = 0;
	rxq->descs_held = 0;
	rxq->largest = 0;
	rxq->least_descs = UINT32_MAX;
	rxq->long_used = 0;
	rxq->n_reads = 0;
	rxq->n_done = 0;
	rxq->next_batch = BATCH_MIN;
	rxq->large_left = 0;
	/* A frame that waits has the old layout. */
	if (layout != layout_of(rxq))
		vl_rxq_forget(rxq);
	return vl_vq_start(&rxq->vq, name, ring, mem);
}

/* The chain at position @i of the FIFO. */
static struct vl_rx_chain *chain_at(struct vl_rxq *rxq, uint32_t i)
{
	return &rxq->chains[(rxq->first + i) % VL_RX_CHAINS];
}

static void release_block(struct vl_rxq *rxq, const struct vl_rx_chain *chain)
{
	if (chain->iov == chain->own)
		return;
	rxq->long_used &= ~(1ULL << ((size_t)(chain->iov - rxq->long_iov) /
				     VL_CHAIN_IOV_MAX));
}

/* Removes the first @n chains from the FIFO. */
static void consume(struct vl_rxq *rxq, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct vl_rx_chain *chain = chain_at(rxq, i);

		rxq->capacity -= chain->len;
		rxq->descs_held -= chain->descs;
		release_block(rxq, chain);
	}
	rxq->first = (rxq->first + n) % VL_RX_CHAINS;
	rxq->count -= n;
	if (rxq->count == 0)
		rxq->cannot_unpop = false;
}

/* Pops into @c: into @own, or into a free block where that is too small.
 * Returns as vl_vq_pop(), 0 also while no block is free. */
static int pop(struct vl_rxq *rxq, struct vl_chain *c, struct iovec *own)
{
	unsigned int block;
	int n;

	c->iov = own;
	c->iov_cap = CHAIN_IOV;
	n = vl_vq_pop(&rxq->vq, c);
	if (vl_likely(n != -ENOBUFS))
		return n;
	if (!~rxq->long_used)
		return 0;
	block = (unsigned int)__builtin_ctzll(~rxq->long_used);
	c->iov = rxq->long_iov + (size_t)block * VL_CHAIN_IOV_MAX;
	c->iov_cap = VL_CHAIN_IOV_MAX;
	n = vl_vq_pop(&rxq->vq, c);
	if (n == 1)
		rxq->long_used |= 1ULL << block;
	return n;
}

/* Hands chain @head back with nothing in it. Chains popped before it and still
 * held can no longer be put back into the ring: it lies behind them. */
static void hand_back_empty(struct vl_rxq *rxq, uint16_t head)
{
	vl_vq_push(&rxq->vq, head, 0);
	rxq->cannot_unpop |= rxq->count > 0;
}

/* Adds one chain to the FIFO. Returns false when there is none. One that
 * cannot take even a header is handed back empty. */
static bool add_chain(struct vl_rxq *rxq)
{
	struct vl_rx_chain *chain = chain_at(rxq, rxq->count);
	struct vl_chain c;
	int popped = pop(rxq, &c, chain->own);

	if (popped == 0)
		return false;
	chain->iov = c.iov;
	if (vl_unlikely(popped < 0 || c.n_readable ||
			c.len_writable < rxq->hdr_len)) {
		if (popped == 1)
			release_block(rxq, chain);
		VL_STAT_INC(rxq->counters.drop_chain);
		hand_back_empty(rxq, c.head);
		return true;
	}
	chain->n = c.n_writable;
	chain->len = (uint32_t)vl_min_u64(c.len_writable, CHAIN_LEN_MAX);
	chain->descs = c.descs;
	chain->head = c.head;
	rxq->count++;
	rxq->capacity += chain->len;
	rxq->descs_held += chain->descs;
	if (chain->descs < rxq->least_descs)
		rxq->least_descs = chain->descs;
	if (chain->len > rxq->largest)
		rxq->largest = chain->len;
	return true;
}

/* Pops until the chains hold @want bytes, or there are no more. Bounded: a
 * turn pops at most as many chains as the FIFO has places. */
static void fill(struct vl_rxq *rxq, uint64_t want)
{
	for (uint32_t i = 0; i < VL_RX_CHAINS; i++) {
		if (rxq->count == VL_RX_CHAINS || rxq->capacity >= want ||
		    !add_chain(rxq))
			break;
	}
}

/* Room for one frame of any size, whole chains, the last one half empty. */
static uint64_t room_per_frame(const struct vl_rxq *rxq)
{
	return (uint64_t)rxq->frame_max + rxq->largest;
}

/* True when each of the first @n chains has room for any frame. */
static bool all_hold_a_frame(struct vl_rxq *rxq, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (chain_at(rxq, i)->len <= rxq->frame_max)
			return false;
	return true;
}

/* How many reads the chains at hand allow. */
static uint32_t reads_possible(struct vl_rxq *rxq)
{
	uint32_t n = vl_min_u32(rxq->next_batch, rxq->count);
	uint64_t whole = rxq->capacity / room_per_frame(rxq);

	if (rxq->mergeable && rxq->large_left)
		return 1;
	if (!all_hold_a_frame(rxq, n)) {
		n = vl_min_u32(n, SCRATCH_PARTS);
		/* All of them may be of the largest size. */
		if (rxq->mergeable)
			n = (uint32_t)vl_min_u64(n, whole ? whole : 1);
	}
	return vl_min_u32(n, vl_io_room(rxq->io));
}

/*
 * Queues read number @r into the chains from position @at on, @max of them at
 * the most. @iov is where its list may be built; returns the entries used.
 */
static uint32_t queue_read(struct vl_rxq *rxq, uint32_t r, uint32_t at,
			   uint32_t max, struct iovec *iov)
{
	struct vl_rx_read *read = &rxq->reads[r];
	const struct vl_rx_chain *chain = chain_at(rxq, at);
	uint64_t tag = VL_TAG(VL_TAG_RX_READ, r);
	uint32_t n = 0;

	read->chains = 1;
	read->capacity = chain->len;
	read->room = chain->len;
	if (chain->len > rxq->frame_max) {
		vl_lane_recv(rxq->lane, chain->iov, chain->n, tag);
		return 0;
	}
	memcpy(iov, chain->iov, chain->n * sizeof(*iov));
	n = chain->n;
	while (read->chains < max && read->capacity < rxq->frame_max) {
		chain = chain_at(rxq, at + read->chains);
		if (n + chain->n >= VL_CHAIN_IOV_MAX)
			break;
		memcpy(iov + n, chain->iov, chain->n * sizeof(*iov));
		n += chain->n;
		read->chains++;
		read->capacity += chain->len;
	}
	read->room = read->capacity;
	if (n < VL_CHAIN_IOV_MAX) {
		read->room += SCRATCH_PART;
		iov[n].iov_base = rxq->scratch + (size_t)r * SCRATCH_PART;
		iov[n].iov_len = SCRATCH_PART;
		n++;
	}
	vl_lane_recv(rxq->lane, iov, n, tag);
	return n;
}

static void queue_reads(struct vl_rxq *rxq)
{
	uint32_t n = reads_possible(rxq);
	uint32_t max =
		n == 1 && rxq->mergeable && rxq->large_left ? rxq->count : 1;
	uint32_t at = 0, used = 0;

	rxq->n_reads = 0;
	rxq->n_done = 0;
	while (rxq->n_reads < n && used + VL_CHAIN_IOV_MAX + 1 <= READ_IOV) {
		used += queue_read(rxq, rxq->n_reads, at, max,
				   rxq->read_iov + used);
		at += rxq->reads[rxq->n_reads].chains;
		rxq->n_reads++;
	}
	rxq->unfinished = true;
	VL_STAT_INC(rxq->counters.batches);
	vl_lane_submit(rxq->lane);
}

/* Finishes the header of a frame that was put into @first and others. */
static void finish_header(struct vl_rxq *rxq, const struct vl_rx_chain *first,
			  uint16_t buffers)
{
	const uint8_t no_flags = 0;
	uint8_t gso = 0;

	if (rxq->hdr_len == VL_NET_HDR_MRG)
		(void)vl_iov_write(first->iov, first->n,
				   sizeof(struct virtio_net_hdr), &buffers,
				   sizeof(buffers));
	/* The kernel says "checksum is good" whether it was asked or not. */
	if (!rxq->csum)
		(void)vl_iov_write(first->iov, first->n, 0, &no_flags, 1);
	if (!rxq->segments)
		return;
	(void)vl_iov_read(first->iov, first->n,
			  offsetof(struct virtio_net_hdr, gso_type), &gso, 1);
	if (gso != VIRTIO_NET_HDR_GSO_NONE)
		VL_STAT_INC(rxq->counters.gso_packets);
}

/*
 * Gives the driver the frame of read @r. It begins in the read's own chains,
 * from position @at of the FIFO on; what did not fit there is in scratch and
 * goes into the chains from position @extra on. Returns how many chains were used in
 * all, -ENOBUFS (and nothing happened) when there are not enough.
 */
static int deliver(struct vl_rxq *rxq, uint32_t r, uint32_t at, uint32_t extra)
{
	const struct vl_rx_read *read = &rxq->reads[r];
	const char *rest = rxq->scratch + (size_t)r * SCRATCH_PART;
	uint32_t len = (uint32_t)read->res;
	uint32_t in_place = vl_min_u32(len, read->capacity);
	const struct vl_rx_chain *first = chain_at(rxq, at);
	uint32_t left = len - in_place;
	uint32_t n_extra = 0, used = 0;
	uint32_t todo = in_place;

	for (uint32_t got = 0; got < left; n_extra++) {
		if (extra + n_extra >= rxq->count)
			return -ENOBUFS;
		got += chain_at(rxq, extra + n_extra)->len;
	}
	while (used < read->chains && (todo || used == 0)) {
		const struct vl_rx_chain *c = chain_at(rxq, at + used);
		uint32_t part = vl_min_u32(todo, c->len);

		vl_vq_push(&rxq->vq, c->head, part);
		todo -= part;
		used++;
	}
	for (uint32_t i = 0; i < n_extra; i++) {
		const struct vl_rx_chain *c = chain_at(rxq, extra + i);
		uint32_t part = vl_min_u32(left, c->len);

		(void)vl_iov_write(c->iov, c->n, 0, rest, part);
		vl_vq_push(&rxq->vq, c->head, part);
		rest += part;
		left -= part;
	}
	finish_header(rxq, first, (uint16_t)(used + n_extra));
	VL_STAT_INC(rxq->counters.packets);
	VL_STAT_ADD(rxq->counters.bytes, len - rxq->hdr_len);
	VL_STAT_ADD(rxq->counters.buffers, used + n_extra);
	if (used + n_extra > 1)
		VL_STAT_INC(rxq->counters.merged);
	if (n_extra)
		VL_STAT_INC(rxq->counters.copied);
	return (int)(used + n_extra);
}

/* Nothing to read into: sleep until the driver posts buffers. Returns true
 * when it just did. */
static bool wait_for_buffers(struct vl_rxq *rxq)
{
	if (vl_vq_enable_kick(&rxq->vq))
		return true;
	VL_STAT_INC(rxq->counters.starved);
	return false;
}

/*
 * Makes what was filled visible. With @more frames to be read at once the
 * driver is told of all of them together, unless it is due to post buffers.
 */
static void publish(struct vl_rxq *rxq, bool more)
{
	struct vl_virtqueue *vq = &rxq->vq;
	uint16_t done = (uint16_t)(vq->used_idx - vq->published);
	uint16_t untold;

	vl_vq_publish(vq);
	untold = (uint16_t)(vq->published - vq->signalled);
	if (!more || !vq->signalled_valid ||
	    untold >= vq->ring.num / UNTOLD_PART)
		vl_vq_notify(vq);
	if (done)
		vl_hist_add(&rxq->latency_ns, vl_now_ns() - rxq->seen_ns, done);
}

/* The FIFO cannot get another chain, whatever the driver does. */
static bool cannot_grow(const struct vl_rxq *rxq)
{
	/* A driver whose chains all have three descriptors cannot use the last
	 * one of 256. */
	return rxq->count == VL_RX_CHAINS || !~rxq->long_used ||
	       (rxq->count &&
		rxq->descs_held + rxq->least_descs > rxq->vq.ring.num);
}

/* Tries again to give the driver the frame that waits. */
static bool continue_pending(struct vl_rxq *rxq)
{
	int n;

	vl_vq_disable_kick(&rxq->vq);
	fill(rxq, rxq->pending_len);
	n = deliver(rxq, 0, 0, rxq->reads[0].chains);
	if (n >= 0) {
		consume(rxq, (uint32_t)n);
		rxq->pending_len = 0;
		publish(rxq, false);
		return true;
	}
	if (cannot_grow(rxq)) {
		VL_STAT_INC(rxq->counters.drop_truncated);
		rxq->pending_len = 0;
		return true;
	}
	/* Bad chains may have been handed back on the way. */
	publish(rxq, false);
	return wait_for_buffers(rxq);
}

bool vl_rxq_turn(struct vl_rxq *rxq)
{
	if (!rxq->vq.running || rxq->vq.broken || vl_rxq_in_flight(rxq))
		return false;
	rxq->seen_ns = vl_now_ns();
	if (rxq->pending_len)
		return continue_pending(rxq);
	if (!vl_lane_can_recv(rxq->lane))
		return false;
	vl_vq_disable_kick(&rxq->vq);
	fill(rxq, rxq->next_batch * room_per_frame(rxq));
	if (rxq->count == 0) {
		publish(rxq, false);
		return wait_for_buffers(rxq);
	}
	queue_reads(rxq);
	return true;
}

void vl_rxq_complete(struct vl_rxq *rxq, uint32_t index, int res)
{
	rxq->reads[index].res = res;
	rxq->n_done++;
}

/* Drops the frame of a read whose chains begin at @at; they go back empty. */
static uint32_t drop_frame(struct vl_rxq *rxq, const struct vl_rx_read *read,
			   uint32_t at, uint64_t *counter)
{
	VL_STAT_INC(*counter);
	for (uint32_t i = 0; i < read->chains; i++)
		hand_back_empty(rxq, chain_at(rxq, at + i)->head);
	return read->chains;
}

/*
 * Delivers the frame of read @r, or drops it. Returns the chains it used.
 * @at and @extra as for deliver(). @lone: it is the only frame of its batch,
 * and may wait for buffers.
 */
static uint32_t finish_read(struct vl_rxq *rxq, uint32_t r, uint32_t at,
			    uint32_t extra, bool lone)
{
	struct vl_rx_read *read = &rxq->reads[r];
	uint32_t len = (uint32_t)read->res;
	bool overflow = len > read->capacity;
	int n;

	if (vl_unlikely(len < rxq->hdr_len))
		return drop_frame(rxq, read, at, &rxq->counters.drop_refused);
	if (vl_unlikely(len >= read->room || (overflow && !rxq->mergeable)))
		return drop_frame(rxq, read, at, &rxq->counters.drop_truncated);
	if (overflow || len > chain_at(rxq, at)->len)
		rxq->large_left = LARGE_RUN;
	else if (rxq->large_left)
		rxq->large_left--;
	n = deliver(rxq, r, at, extra);
	if (vl_likely(n >= 0))
		return (uint32_t)n;
	fill(rxq, rxq->capacity + len);
	n = deliver(rxq, r, at, extra);
	if (n >= 0)
		return (uint32_t)n;
	/* What waits has to fit scratch when the queue stops. */
	if (!lone || vl_unlikely(len > SCRATCH_PART))
		return drop_frame(rxq, read, at, &rxq->counters.drop_truncated);
	rxq->pending_len = len;
	return 0;
}

/* What a read that got nothing tells of the lane, or of the buffers. */
static void learn_from(struct vl_rxq *rxq, int res)
{
	/* No memory behind the addresses any more. No later read could do
	 * better with these buffers, so it is no use to go on. */
	if (res == -EFAULT) {
		VL_STAT_INC(rxq->counters.drop_refused);
		vl_vq_break(&rxq->vq, VL_VQ_MEM_LOST);
		return;
	}
	/* Behind one that says more. */
	if (res == -ECANCELED)
		return;
	switch (vl_io_verdict(res)) {
	case VL_IO_GONE:
		rxq->lane->gone = true;
		break;
	case VL_IO_AGAIN:
	case VL_IO_DOWN:
		vl_lane_set_empty(rxq->lane);
		break;
	case VL_IO_REFUSED:
	case VL_IO_NOMEM:
	case VL_IO_DONE:
	case VL_IO_VERDICTS:
		VL_STAT_INC(rxq->counters.drop_refused);
		break;
	}
}

/*
 * Moves the frame of read @from into the chain of read @to, which got none.
 * Both have one chain each: reads that have more are alone in their batch.
 */
static void move_frame(struct vl_rxq *rxq, uint32_t from, uint32_t to)
{
	struct vl_rx_read *src = &rxq->reads[from], *dst = &rxq->reads[to];
	const struct vl_rx_chain *src_chain = chain_at(rxq, from);
	const struct vl_rx_chain *dst_chain = chain_at(rxq, to);
	char *via = rxq->scratch + (size_t)SCRATCH_PARTS * SCRATCH_PART;
	uint32_t len = (uint32_t)src->res;
	uint32_t in_place = vl_min_u32(len, src->capacity);

	if (len >= src->room || len >= dst->room) {
		dst->res = (int32_t)dst->room; /* cut off: dropped */
		return;
	}
	(void)vl_iov_read(src_chain->iov, src_chain->n, 0, via, in_place);
	if (len > in_place)
		memcpy(via + in_place,
		       rxq->scratch + (size_t)from * SCRATCH_PART,
		       len - in_place);
	in_place = vl_min_u32(len, dst->capacity);
	(void)vl_iov_write(dst_chain->iov, dst_chain->n, 0, via, in_place);
	if (len > in_place)
		memcpy(rxq->scratch + (size_t)to * SCRATCH_PART, via + in_place,
		       len - in_place);
	dst->res = src->res;
	VL_STAT_INC(rxq->counters.copied);
}

/* Makes the reads that got a frame the first ones; returns their number. */
static uint32_t compact(struct vl_rxq *rxq)
{
	uint32_t got = 0;

	for (uint32_t r = 0; r < rxq->n_reads; r++) {
		if (vl_unlikely(rxq->reads[r].res <= 0)) {
			learn_from(rxq, rxq->reads[r].res);
			continue;
		}
		if (vl_unlikely(r != got))
			move_frame(rxq, r, got);
		got++;
	}
	return got;
}

void vl_rxq_flush(struct vl_rxq *rxq)
{
	uint32_t got, at = 0, extra = 0, used = 0;

	if (!rxq->unfinished || vl_rxq_in_flight(rxq) || !rxq->vq.running)
		return;
	rxq->unfinished = false;
	got = compact(rxq);
	for (uint32_t r = 0; r < got; r++)
		extra += rxq->reads[r].chains;
	rxq->next_batch = vl_min_u32(VL_RX_BATCH, got == rxq->n_reads
							  ? 2 * rxq->next_batch
							  : got + BATCH_MIN);
	for (uint32_t r = 0; r < got; r++) {
		uint32_t own = rxq->reads[r].chains;
		uint32_t n = finish_read(rxq, r, at, extra, got == 1);

		at += own;
		used += n;
		if (n > own)
			extra += n - own;
	}
	consume(rxq, used);
	publish(rxq, got == rxq->n_reads && !rxq->pending_len);
}

/*
 * The frame that waits leaves the driver's buffers: all of it is in the first
 * part of scratch then, and goes to the buffers of the next start.
 */
static void take_out_pending(struct vl_rxq *rxq)
{
	struct vl_rx_read *read = &rxq->reads[0];
	char *via = rxq->scratch + (size_t)SCRATCH_PARTS * SCRATCH_PART;
	uint32_t in_place = vl_min_u32(rxq->pending_len, read->capacity);
	uint32_t done = 0;

	for (uint32_t i = 0; i < read->chains && done < in_place; i++) {
		const struct vl_rx_chain *c = chain_at(rxq, i);
		uint32_t part = vl_min_u32(in_place - done, c->len);

		(void)vl_iov_read(c->iov, c->n, 0, via + done, part);
		done += part;
	}
	memcpy(via + done, rxq->scratch, rxq->pending_len - done);
	memcpy(rxq->scratch, via, rxq->pending_len);
	read->chains = 0;
	read->capacity = 0;
}

uint16_t vl_rxq_stop(struct vl_rxq *rxq)
{
	if (!rxq->vq.running)
		return vl_vq_stop(&rxq->vq);
	if (rxq->pending_len)
		take_out_pending(rxq);
	if (rxq->cannot_unpop)
		for (uint32_t i = 0; i < rxq->count; i++)
			vl_vq_push(&rxq->vq, chain_at(rxq, i)->head, 0);
	else
		vl_vq_unpop(&rxq->vq, rxq->count);
	consume(rxq, rxq->count);
	vl_lane_forget_recv(rxq->lane);
	return vl_vq_stop(&rxq->vq);
}
