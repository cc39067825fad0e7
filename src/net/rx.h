/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiveq: packets from a lane to the driver. Worker thread only, except
 * for reading counters.
 */
#ifndef VL_NET_RX_H
#define VL_NET_RX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "lane/lane.h"
#include "stats/counters.h"
#include "virtio/virtqueue.h"

/* Reads of one submit; driver buffers held for them. */
#define VL_RX_BATCH  64u
#define VL_RX_CHAINS 512u

struct vl_rx_chain;
struct vl_rx_read;

struct vl_rxq {
	struct vl_virtqueue vq;
	struct vl_lane *lane;
	struct vl_io *io;
	uint32_t hdr_len;
	uint32_t frame_max; /* header and largest frame the lane may deliver */
	uint32_t mtu;
	bool mergeable;
	bool segments; /* frames larger than the MTU may come */
	bool csum;

	/* Chains popped and not filled yet, in the order of the ring: they
	 * can be put back as long as nothing behind them was used. */
	struct vl_rx_chain *chains;
	uint32_t first, count;
	bool cannot_unpop;    /* one behind them was handed back */
	uint64_t capacity;    /* bytes of these chains */
	uint32_t descs_held;  /* ring descriptors they occupy */
	uint32_t largest;     /* bytes of the largest chain seen */
	uint32_t least_descs; /* descriptors of the smallest chain seen */

	struct vl_rx_read *reads;
	uint32_t n_reads, n_done; /* of the current batch */
	bool unfinished;          /* a batch that was not flushed yet */
	uint32_t next_batch;      /* reads to try next time */
	char *scratch;            /* what did not fit, one part per read */
	struct iovec *long_iov;   /* blocks for chains of many pieces */
	uint64_t long_used;
	struct iovec *read_iov; /* one list per submit */
	uint32_t large_left;    /* frames until small reads are tried again */

	/* A frame whose end waits in scratch for more buffers. */
	uint32_t pending_len;
	uint64_t seen_ns;

	struct vl_rx_counters counters;
	struct vl_hist latency_ns;
};

/* Allocates what the queue needs for its whole life. Returns 0 or -errno. */
int vl_rxq_init(struct vl_rxq *rxq, struct vl_lane *lane, struct vl_io *io);
void vl_rxq_free(struct vl_rxq *rxq);

/* Starts the queue on @ring; @mtu of the host interface, 0: unknown. */
int vl_rxq_start(struct vl_rxq *rxq, const char *name,
		 const struct vl_vring *ring, struct vl_guest_mem *mem,
		 uint64_t features);
/* The GUEST_* offloads in @features are in force from now on. */
void vl_rxq_set_features(struct vl_rxq *rxq, uint64_t features);
void vl_rxq_set_mtu(struct vl_rxq *rxq, uint32_t mtu);

/* Stops it: unfilled chains go back to the ring; a frame that waits for more
 * buffers is taken out of them and waits for the next start. Returns the next
 * available index. */
uint16_t vl_rxq_stop(struct vl_rxq *rxq);

/* Drops and counts a frame that waits: the driver it was for is gone. */
void vl_rxq_forget(struct vl_rxq *rxq);

/* One turn: one batch of reads at most. Returns true when there is more. */
bool vl_rxq_turn(struct vl_rxq *rxq);

/* Read @index ended with @res bytes, or -errno. */
void vl_rxq_complete(struct vl_rxq *rxq, uint32_t index, int res);

/* All events of a submit were reaped: frames are given to the driver. */
void vl_rxq_flush(struct vl_rxq *rxq);

/* Reads not answered yet. */
static inline uint32_t vl_rxq_in_flight(const struct vl_rxq *rxq)
{
	return rxq->n_reads - rxq->n_done;
}

#endif
