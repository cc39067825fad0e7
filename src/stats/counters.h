/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of a queue and of a lane, and the one table per kind that names them. Text,
 * JSON, the manual page and the tests all follow the tables: a new counter is
 * one field and one row.
 *
 * A counter is written by the worker thread of its queue (VL_STAT_ADD) and
 * read by anyone. Counters only grow; they survive reconnects.
 */
#ifndef VL_STATS_COUNTERS_H
#define VL_STATS_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

/* transmitq: packets from the driver to the host network. */
struct vl_tx_counters {
	uint64_t packets;
	uint64_t bytes;
	uint64_t gso_packets;
	uint64_t csum_packets;
	uint64_t copied;
	uint64_t gso_cut;
	uint64_t batches;
	uint64_t kicks;
	uint64_t blocked;
	uint64_t out_of_order;
	uint64_t zc_packets;
	uint64_t zc_copied;
	uint64_t copy_ours;
	uint64_t copy_short;
	uint64_t copy_segments;
	uint64_t copy_pieces;
	uint64_t copy_stopping;
	uint64_t copy_nomem;
	uint64_t copy_useless;
	uint64_t copy_slow;
	uint64_t copy_share;
	uint64_t copy_window;
	uint64_t drop_chain;
	uint64_t drop_short;
	uint64_t drop_oversize;
	uint64_t drop_header;
	uint64_t drop_segments;
	uint64_t drop_refused;
	uint64_t drop_down;
	uint64_t drop_gone;
	uint64_t drop_nomem;
	uint64_t drop_full;
	uint64_t drop_late;
	uint64_t drop_limit;
	uint64_t drop_pool;
};

/* receiveq: packets from the host network to the driver. */
struct vl_rx_counters {
	uint64_t packets;
	uint64_t bytes;
	uint64_t gso_packets;
	uint64_t buffers;
	uint64_t merged;
	uint64_t copied;
	uint64_t batches;
	uint64_t kicks;
	uint64_t starved;
	uint64_t drop_chain;
	uint64_t drop_truncated;
	uint64_t drop_refused;
	uint64_t drop_stopped;
};

/* A lane of a queue pair. */
struct vl_lane_counters {
	uint64_t packets;
	uint64_t bytes;
	uint64_t refusals;
	uint64_t moves;
	uint64_t merges;
	uint64_t returns;
	uint64_t probes;
	uint64_t found_slow;
	uint64_t drop_late;
	uint64_t drop_limit;
	uint64_t drop_pool;
};

/* A port of a backend that is a tunnel: what it received, then what it sent. */
struct vl_tunnel_counters {
	uint64_t trains;
	uint64_t train_frames;
	uint64_t superframes;
	uint64_t segmented;
	uint64_t csum_completed;
	uint64_t learned;
	uint64_t moved;
	uint64_t drop_peer;
	uint64_t drop_vni;
	uint64_t drop_short;
	uint64_t drop_fragment;
	uint64_t drop_truncated;
	uint64_t drop_uncut;
	uint64_t messages;
	uint64_t message_frames;
	uint64_t flood_frames;
	uint64_t flood_copies;
	uint64_t flood_drops;
	uint64_t drop_mtu;
	uint64_t drop_unreachable;
	uint64_t drop_no_remote;
};

struct vl_counter {
	const char *name; /* as in JSON */
	const char *unit; /* "packets", "bytes", "events" */
	const char *help; /* one sentence */
	size_t offset;
};

extern const struct vl_counter vl_tx_counter_table[];
extern const size_t vl_tx_counter_count;
extern const struct vl_counter vl_rx_counter_table[];
extern const size_t vl_rx_counter_count;
extern const struct vl_counter vl_lane_counter_table[];
extern const size_t vl_lane_counter_count;
extern const struct vl_counter vl_tunnel_counter_table[];
extern const size_t vl_tunnel_counter_count;

/* The value of @c in the live or copied counters at @base. */
uint64_t vl_counter_value(const struct vl_counter *c, const void *base);

/* Copies live counters (a struct of uint64_t only), each read once. */
void vl_counters_copy(void *dst, const void *src, size_t size);

#endif
