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
#include "base/log.h"
#include "lane/lane_set.h"
#include "net/tx_zcopy.h"
#include "stats/counters.h"
#include "virtio/virtqueue.h"

/* Packets of one batch, that is of one submit. Larger ones save no more. */
#define VL_TX_BATCH          VL_LANES_BATCH
/* Packets and bytes after which other queues of the worker get their turn. */
#define VL_TX_BUDGET_PACKETS 256u
#define VL_TX_BUDGET_BYTES   (512u * 1024u)
/* Small buffers for what waits: the pool (1 MiB). */
#define VL_TX_POOL           512u
#define VL_TX_BUFFER         2048u
/* Packets that are pending, at most: half of a ring of 1024. */
#define VL_TX_PENDING        512u
/* Slots that neither ever take: others must be able to pass. */
#define VL_TX_RESERVE        VL_TX_BATCH
/* Packets in our hands, each with a small buffer. Memory is used up to the
 * number of packets that were there at the same time. */
#define VL_TX_SLOTS          (VL_TX_POOL + VL_TX_PENDING + VL_TX_RESERVE)

struct vl_tx_slot;

struct vl_txq {
	struct vl_virtqueue vq;
	struct vl_lane_set lanes;
	struct vl_io *io;
	uint64_t features;
	uint32_t hdr_len;
	uint32_t join_max; /* larger frames are sent from where they lie */
	/* See vl_backend. */
	uint32_t gso_bytes, ops_per_frame;
	const uint32_t *gso_segments;

	struct vl_tx_slot *slots;
	char *buffers;          /* one small buffer per slot */
	struct iovec *long_iov; /* VL_CHAIN_IOV_MAX entries */
	uint16_t free_slot[VL_TX_SLOTS];
	uint32_t n_free;
	uint32_t seq;     /* of the next packet popped */
	uint64_t seen_ns; /* when the work of this batch was seen */
	/* Packets of the only lane that wait here, since frames that were cut
	 * do not go back to the ring; in order. */
	struct vl_pkt *waiting[VL_TX_BATCH];
	uint32_t n_waiting;
	bool sent_again; /* what the last turn sent had waited so */
	/* Chains counted in held_descs, oldest first. */
	struct vl_tx_list held;
	struct vl_tx_zcopy zc;

	/* Read by others. */
	uint32_t held_descs; /* descriptors of packets that wait or pend */
	uint32_t pool_used;  /* small buffers of packets that wait */

	struct vl_tx_counters counters;
	struct vl_hist latency_ns;
};

/* Allocates what the queue needs for its whole life, to send by @backend.
 * Returns 0 or -errno. */
int vl_txq_init(struct vl_txq *txq, const struct vl_backend *backend,
		struct vl_io *io);
void vl_txq_free(struct vl_txq *txq);

/* Starts the queue on @ring. Returns 0 or -errno. */
int vl_txq_start(struct vl_txq *txq, const char *name,
		 const struct vl_vring *ring, struct vl_guest_mem *mem,
		 uint64_t features);

/*
 * Stopping, once nothing is in flight: vl_txq_stopping() as long as it returns
 * true, and reap between, so that nothing new is pending and what is gets
 * released. @now_ns is the time, for the log. Then vl_txq_stop(): packets that
 * wait are taken out of guest memory, and go on waiting, or are dropped and
 * counted where there is no room. Returns the next available index.
 */
bool vl_txq_stopping(struct vl_txq *txq, uint64_t now_ns);
uint16_t vl_txq_stop(struct vl_txq *txq);

/* Packets that wait shall have a virtio header of @hdr_len bytes: what the
 * backend takes now. */
void vl_txq_convert(struct vl_txq *txq, uint32_t hdr_len);

/* One turn: at most the budget. Returns true when there is more to do now. */
bool vl_txq_turn(struct vl_txq *txq);

/* The packet in slot @index was sent, @ev->res bytes or -errno, or its memory
 * was released. */
void vl_txq_event(struct vl_txq *txq, uint32_t index,
		  const struct vl_io_event *ev);

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
