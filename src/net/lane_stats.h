/* SPDX-License-Identifier: BSD-3-Clause */
/* What a snapshot says of the lanes of a queue pair. */
#ifndef VL_NET_LANE_STATS_H
#define VL_NET_LANE_STATS_H

#include <stdbool.h>

#include "net/tx.h"
#include "stats/snapshot.h"

/*
 * Any thread: fills in everything that is read without the worker. Returns
 * true when there are destinations or pending packets for vl_lane_stats_name().
 */
bool vl_lane_stats_read(const struct vl_txq *txq, struct vl_pair_snapshot *s);

/*
 * Worker thread: names the destinations on side lanes, as many as there is
 * place for, and says how long the first packet of each FIFO has waited, and the
 * oldest one been pending. Takes as long as one look at each of VL_DEST_MAX entries.
 */
void vl_lane_stats_name(const struct vl_txq *txq, struct vl_pair_snapshot *s);

#endif
