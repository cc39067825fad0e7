/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host network for tests of lane_set: ways with send buffers, destinations
 * behind them that drain at a rate each, all in simulated time.
 *
 * As with a tap on a bridge, a packet that a way took waits in the queue of its
 * destination and is charged to the way until it has left there. A way takes
 * packets while less than its send buffer is charged, and is writable again
 * below half of it. A refused send cancels those linked behind it. With probes,
 * which take one packet, linked sends run when all others of a submit have.
 *
 * Packets of more than NET_SEGMENT bytes can be cut, into parts of whole
 * segments.
 */
#ifndef TESTS_LANE_NET_H
#define TESTS_LANE_NET_H

#include "lane/lane_set.h"

#define NET_DESTS   2048u
#define NET_QUEUE   512u
#define NET_PACKETS 1024u
#define NET_HDR_LEN 12u
#define NET_SEGMENT 1514u
#define NET_MSS     1448u /* payload of a segment */

/* A packet that a way took and its destination has not got yet. */
struct net_queued {
	uint8_t way;
	bool small; /* was added as one of at most NET_SEGMENT bytes */
	uint32_t len;
	uint64_t added_ns;
};

struct net_dest {
	uint64_t rate; /* bytes per second, 0: at once */
	uint64_t credit_ns;
	struct net_queued queue[NET_QUEUE];
	uint32_t first, count;
	uint32_t last_seq; /* of the packet that came last */
	uint32_t last_offset;
	/* Once a packet is cut, its parts are what was offered. */
	uint64_t offered, taken, taken_bytes, ended[VL_PKT_POOL + 1];
	uint64_t cuts;
	uint32_t largest_dropped;
	/* Small packets that came, and the longest that one was under way. */
	uint64_t smalls, small_ns;
	uint64_t stall_ns, taken_ns; /* longest gap between two packets */
};

struct net_way {
	uint64_t sndbuf; /* 0: takes everything */
	uint64_t charged;
	uint64_t sent;
	int fail; /* nonzero: what the next send that it would take ends with */
	bool armed;
};

struct net_packet {
	struct vl_pkt pkt;
	struct iovec iov[2];
	uint8_t head[NET_HDR_LEN + VL_DEST_PEEK];
	uint16_t dest;
	bool used;
	bool kept;
	bool small;
	struct net_packet *whole; /* what this is a part of */
	uint32_t offset;          /* in it, of the payload */
	uint32_t parts;           /* it was cut into, and not done */
	uint64_t added_ns;
};

enum net_cut {
	NET_CUT,
	NET_CUT_LATER, /* refused for now */
	NET_CUT_NEVER, /* refused for good */
};

struct lane_net {
	struct vl_backend base;
	struct vl_io *io;
	struct vl_lane_set ls;
	struct net_way way[VL_LANES_MAX + VL_PROBES_MAX];
	struct net_dest *dest;
	struct net_packet packet[NET_PACKETS];
	uint32_t seq, n_used;
	uint32_t pool, pool_max; /* packets kept, packets that may be */
	uint32_t pool_peak;
	uint32_t parks[NET_DESTS];
	bool broken_link;             /* those linked behind are cancelled */
	uint32_t linked[NET_PACKETS]; /* that run at the submit */
	uint32_t n_linked;
	uint32_t fail_every; /* every so many sends end with EINVAL */
	uint32_t sends;
	enum net_cut cut; /* what is done when a cut is asked for */
	uint64_t cut_calls;
	int poll_result; /* nonzero: what arming a poll returns */
	int active_result;
	uint64_t reordered;
	uint32_t rounds; /* of the last turn */
};

/* A network with @ways ways, send buffers @express and @side bytes. */
void net_init(struct lane_net *n, enum vl_tx_full mode, unsigned int ways,
	      uint64_t express, uint64_t side);
/* The same, with @probes probes; an @express of 0 is not limited. */
void net_init_probes(struct lane_net *n, unsigned int ways, uint64_t express,
		     uint64_t side, unsigned int probes);
void net_free(struct lane_net *n);

/* Adds a packet of @len bytes for destination @dest to the batch, which
 * net_turn() sends. Returns false when there is no more room in it. */
bool net_add(struct lane_net *n, unsigned int dest, uint32_t len);

/* What a transmitq does in a turn, and reaping, until nothing is in flight. */
void net_turn(struct lane_net *n);

/* @ns pass: destinations take packets, ways become writable. */
void net_advance(struct lane_net *n, uint64_t ns);

/* All packets that destination @dest did not get. */
uint64_t net_dropped(const struct lane_net *n, unsigned int dest);

#endif
