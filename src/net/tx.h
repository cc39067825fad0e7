/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transmitq: packets from the driver to the lanes. Worker thread only, except
 * for reading counters.
 */
#ifndef VL_NET_TX_H
#define VL_NET_TX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "lane/lane_set.h"
#include "stats/counters.h"
#include "virtio/virtqueue.h"

/* Packets of one batch, that is of one submit. Larger ones save no more. */
#define VL_TX_BATCH          VL_LANES_BATCH
/* Packets and bytes after which other queues of the worker get their turn. */
#define VL_TX_BUDGET_PACKETS 256u
#define VL_TX_BUDGET_BYTES   (512u * 1024u)
/* Packets in our hands: a batch under way, and those that wait. Each has a
 * small buffer; together they are the pool for what waits (1 MiB). */
#define VL_TX_SLOTS          (512u + VL_TX_BATCH)
#define VL_TX_BUFFER         2048u
/* Slots that packets which wait never take: others must be able to pass. */
#define VL_TX_RESERVE        VL_TX_BATCH

struct vl_tx_slot;

struct vl_txq {
	struct vl_virtqueue vq;
	struct vl_lane_set lanes;
	struct vl_io *io;
	uint64_t features;
	uint32_t hdr_len;

	struct vl_tx_slot *slots;
	char *buffers;          /* one small buffer per slot */
	struct iovec *long_iov; /* VL_CHAIN_IOV_MAX entries */
	uint16_t free_slot[VL_TX_SLOTS];
	uint32_t n_free;
	uint32_t seq;     /* of the next packet popped */
	uint64_t seen_ns; /* when the work of this batch was seen */

	/* Read by others. */
	uint32_t held_descs; /* ring descriptors of packets that wait */
	uint32_t pool_used;  /* small buffers of packets that wait */

	struct vl_tx_counters counters;
	struct vl_hist latency_ns;
};

/* Allocates what the queue needs for its whole life. Returns 0 or -errno. */
int vl_txq_init(struct vl_txq *txq, struct vl_io *io);
void vl_txq_free(struct vl_txq *txq);

/* Starts the queue on @ring. Returns 0 or -errno. */
int vl_txq_start(struct vl_txq *txq, const char *name,
		 const struct vl_vring *ring, struct vl_guest_mem *mem,
		 uint64_t features);

/*
 * Stops it once nothing is in flight. Packets that wait are taken out of guest
 * memory, and go on waiting, or are dropped and counted where there is no room.
 * Returns the next available index.
 */
uint16_t vl_txq_stop(struct vl_txq *txq);

/* Packets that wait shall have a virtio header of @hdr_len bytes: what the
 * backend takes now. */
void vl_txq_convert(struct vl_txq *txq, uint32_t hdr_len);

/* One turn: at most the budget. Returns true when there is more to do now. */
bool vl_txq_turn(struct vl_txq *txq);

/* The packet in slot @index was sent: @res bytes, or -errno. */
void vl_txq_complete(struct vl_txq *txq, uint32_t index, int res);

/*
 * All events of a submit were reaped: what was refused finds another lane, waits
 * or goes back to the ring; what was sent is announced to the driver. Returns
 * true when it submitted again: reap, and call again.
 */
bool vl_txq_flush(struct vl_txq *txq);

/* Packets handed to the kernel and not answered yet. */
static inline uint32_t vl_txq_in_flight(const struct vl_txq *txq)
{
	return txq->lanes.in_flight;
}

#endif
