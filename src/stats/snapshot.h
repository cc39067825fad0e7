/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that can be seen of a device at one moment, as plain values. The
 * device fills it, stats/json.c writes it, virtlanectl shows it.
 */
#ifndef VL_STATS_SNAPSHOT_H
#define VL_STATS_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "stats/counters.h"

#define VL_SNAPSHOT_PAIRS_MAX 64
#define VL_SNAPSHOT_LANES_MAX 16
/* Destinations of a lane that are named. */
#define VL_SNAPSHOT_DESTS_MAX 4

/* What both kinds of queue have. */
struct vl_queue_snapshot {
	bool running;
	bool broken;
	uint32_t size;    /* descriptors, 0 while it was never started */
	uint32_t pending; /* chains taken and not handed back yet */
	uint64_t notifications_sent;
	uint64_t notifications_suppressed;
	/* Nanoseconds from the moment the worker saw work to the moment the
	 * buffer was handed back. */
	struct vl_hist latency_ns;
};

/* A destination that is on a side lane. */
struct vl_dest_snapshot {
	uint8_t mac[6];
	uint8_t addr_len; /* 0: not IP, 4 or 16 */
	uint8_t addr[16];
	uint32_t parked; /* packets of it that wait */
};

/* One lane of a queue pair. */
struct vl_lane_snapshot {
	const char *state;       /* "express", "idle", "side", "slow" */
	uint32_t destinations;   /* 0 for express, which has all others */
	uint32_t parked_packets; /* that wait in its FIFO */
	uint32_t pending;        /* packets sent without a copy, not released */
	uint64_t parked_bytes;
	uint64_t drain_rate; /* bit/s while backlogged, 0: not known */
	uint64_t delay_ns;   /* that the packet sent last had waited */
	uint64_t oldest_ns;  /* that the first in the FIFO has waited */
	struct vl_lane_counters counters;
	/* Those with the most parked packets first. */
	struct vl_dest_snapshot dest[VL_SNAPSHOT_DESTS_MAX];
	uint32_t named; /* entries of dest */
};

/* What a queue pair has sent without a copy, and the kernel not released. */
struct vl_zc_snapshot {
	const char *mode; /* "off", "auto", "on" */
	uint32_t packets, packets_max;
	uint32_t descs, descs_max;
	uint32_t window;    /* descriptors that may be pending */
	uint64_t oldest_ns; /* age of the oldest packet */
};

/* One queue pair and its worker thread. */
struct vl_pair_snapshot {
	struct vl_queue_snapshot txq, rxq;
	struct vl_tx_counters tx;
	struct vl_rx_counters rx;
	uint64_t cpu_ns;   /* CPU time of the worker */
	uint64_t cycles;   /* of the worker, see vl_snapshot.cycles_source */
	uint64_t syscalls; /* made by the worker */
	uint64_t waits;    /* times the worker slept */
	/* What packets that wait or are pending hold, and at most may hold:
	 * descriptors of the transmitq, bytes of the worker's own buffers. */
	uint32_t held_descs, held_max;
	uint64_t pool_bytes, pool_max;
	struct vl_zc_snapshot zc;
	/* Of a backend that is a tunnel. */
	bool has_tunnel;
	struct vl_tunnel_counters tunnel;
	unsigned int lanes;
	struct vl_lane_snapshot lane[VL_SNAPSHOT_LANES_MAX];
};

struct vl_snapshot {
	uint64_t uptime_ns;
	char backend[64];          /* "tap tap0" */
	const char *link;          /* "up", "down", "gone", "unknown" */
	const char *engine;        /* "uring", "sync" */
	const char *cycles_source; /* "perf_event" or "cpu-time*tsc" */
	char mac[18];
	uint32_t mtu; /* 0: none set */
	bool connected;
	uint64_t features;          /* negotiated */
	uint64_t protocol_features; /* negotiated */
	uint64_t sessions;
	uint64_t messages;
	uint64_t protocol_errors;
	uint64_t guest_memory; /* bytes mapped */
	uint32_t memory_regions;
	uint64_t ctrl_commands; /* control queue: commands, and refused ones */
	uint64_t ctrl_errors;
	uint64_t cpu_ns; /* CPU time of the whole process */
	unsigned int pairs;
	struct vl_pair_snapshot pair[VL_SNAPSHOT_PAIRS_MAX];
};

/*
 * Bits moved both ways (packet bytes times 8) per cycle spent by the workers;
 * 0 while no cycle was spent.
 */
double vl_snapshot_bits_per_cycle(const struct vl_snapshot *s);

#endif
