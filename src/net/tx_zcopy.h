/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy packets of a transmitq. A packet is pending from its send until the
 * kernel has let go of its memory; meanwhile its chain is the device's. See
 * docs/design/zero-copy.md. Worker thread only, except for reading counters.
 */
#ifndef VL_NET_TX_ZCOPY_H
#define VL_NET_TX_ZCOPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/log.h"
#include "lane/lane_set.h"
#include "lane/zcopy.h"

struct vl_tx_slot;
struct vl_txq;

TAILQ_HEAD(vl_tx_list, vl_tx_slot);

struct vl_tx_zcopy {
	enum vl_zerocopy mode;
	uint32_t limit; /* descriptors that may be pending, 0: as may be held */
	bool classic;   /* waits when the window is full, and copies nothing */
	bool stopping;
	bool full; /* classic: it is */
	/* Packets that were refused and are in the ring again, while the kernel
	 * has not said that it let go of them: nothing is popped meanwhile. */
	uint32_t taken_back;
	struct vl_zc_dest dest[VL_ZC_DESTS];
	struct vl_tx_list pending[VL_ZC_DESTS]; /* oldest first */
	uint32_t lane_descs[VL_LANES_MAX], sides_descs;
	uint64_t stop_ns, stop_log_ns; /* since when, logged when */
	uint64_t nomem_until_ns;       /* see vl_zc_room */
	struct vl_log_limit log_limit;

	/* Read by others. */
	uint32_t n, n_max; /* packets that are pending */
	uint32_t descs, descs_max;
	uint32_t lane_n[VL_LANES_MAX];
};

void vl_tx_zc_init(struct vl_tx_zcopy *zc, const struct vl_backend *backend);

/* Descriptors that may be pending. */
uint32_t vl_tx_zc_window(const struct vl_txq *txq);

/* See vl_lane_set_ops.zerocopy. */
bool vl_tx_zc_choose(void *owner, struct vl_pkt *pkt, unsigned int lane);

/* Classic only: whether the packet in @slot, just popped, has to wait until
 * something is released. */
bool vl_tx_zc_must_wait(struct vl_txq *txq, struct vl_tx_slot *slot);

/*
 * The result @res of the send of @slot came; with @more its memory is still in
 * use. Returns what the lanes shall take for the result.
 */
int vl_tx_zc_result(struct vl_txq *txq, struct vl_tx_slot *slot, int res,
		    bool more);

/* The memory of a send of @slot was released. Returns whether that was the
 * last one. */
bool vl_tx_zc_released(struct vl_txq *txq, struct vl_tx_slot *slot,
		       bool copied);

/* The chain of @slot is not pending any more. */
void vl_tx_zc_uncharge(struct vl_txq *txq, struct vl_tx_slot *slot);

/* When the oldest pending packet was sent, and on which lane; 0: there is
 * none. Not by others. */
uint64_t vl_tx_zc_oldest(const struct vl_txq *txq, unsigned int *lane);

/* A stop waits for what is pending: says so in the log now and then. */
void vl_tx_zc_log_stop(struct vl_txq *txq, uint64_t now_ns);

#endif
