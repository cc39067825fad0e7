/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A side lane's own state: the FIFO of packets that wait, their destinations,
 * and how fast the lane drains. See docs/design/lanes.md.
 *
 * Worker thread only, except for reading what is said to be read by others.
 */
#ifndef VL_LANE_SIDE_H
#define VL_LANE_SIDE_H

#include "lane/codel.h"
#include "lane/dest.h"
#include "lane/pkt.h"

/* A FIFO's delay at its measured drain rate, and its bounds whatever that is. */
#define VL_FIFO_NS          25000000ULL
#define VL_FIFO_BYTES_MAX   (256ULL * 1024)
/* So much while the rate is not known, where keeping it needs no copy. */
#define VL_FIFO_HELD_MAX    (1024ULL * 1024)
#define VL_FIFO_BYTES_MIN   (4ULL * 1514)
#define VL_FIFO_PACKETS_MIN 2u
#define VL_FIFO_PACKETS_MAX 128u
/* A packet that keeps a slow lane busy for longer is cut to parts that do not:
 * those behind it see so much of delay, and a drop costs so much. */
#define VL_CUT_NS           4000000ULL

struct vl_side {
	struct vl_pkt *head, *tail;
	struct vl_codel codel;
	uint64_t used_ns;      /* last packet appended */
	uint64_t busy_ns;      /* last time that one was refused or waited */
	uint64_t rate_from_ns; /* measuring since; 0: not backlogged */
	uint64_t rate_bytes;
	/* Since then it was writable once; and before, so nothing that was sent
	 * on another lane is in the way any more. */
	bool drained, measuring;

	/* Full of what others have sent who left it, not of its own. */
	bool hostage;

	/* Read by others. */
	uint32_t n_pkts; /* in the FIFO */
	uint32_t dests;
	bool slow;      /* proven: it refused a packet */
	uint64_t bytes; /* in the FIFO */
	uint64_t rate;  /* drain rate, bytes per second, 0: not known */
	uint64_t sent_packets, sent_bytes;
	uint64_t refusals, moves, merges, returns;
	uint64_t drops_late, drops_limit, drops_pool;
	uint64_t delay_ns; /* of the packet sent last */
};

/* Nobody has the lane and nothing waits in it. */
bool vl_side_is_idle(const struct vl_side *s);

/* The lane has no destination any more: forgets what was known of it. */
void vl_side_make_idle(struct vl_side *s);

/* Puts @pkt of @dest, whose lane this is, at the end of the FIFO. */
void vl_side_append(struct vl_side *s, struct vl_dest *dest, struct vl_pkt *pkt,
		    uint64_t now_ns);

/* Takes @pkt, which follows @prev (NULL: is the head), out of the FIFO. */
void vl_side_unlink(struct vl_side *s, struct vl_pkt *prev, struct vl_pkt *pkt);

/* Puts the list @parts, which @pkt was cut into, in its place behind @prev. */
void vl_side_replace(struct vl_side *s, struct vl_pkt *prev, struct vl_pkt *pkt,
		     struct vl_pkt *parts);

/* Puts what waits in @from behind what waits in @to, lane @lane. The packets'
 * destinations and the lanes' counts of them are left to the caller. */
void vl_side_take_over(struct vl_side *to, struct vl_side *from, uint8_t lane);

/* The lane is full: measures its drain rate, from one such time to another.
 * What it took in between has drained. */
void vl_side_measure(struct vl_side *s, uint64_t now_ns);

/* Bytes per second that drain from a lane proven slow: measured, or less when
 * it has been full for longer than that explains. UINT64_MAX: not known. */
uint64_t vl_side_drain_rate(const struct vl_side *s, uint64_t now_ns);

/* Bytes that may wait in the FIFO. */
uint64_t vl_side_limit(const struct vl_side *s, uint64_t now_ns);

/* A packet of more bytes keeps the lane, proven slow, busy for too long. */
uint32_t vl_side_cut_bytes(const struct vl_side *s, uint64_t now_ns);

/*
 * Whether no more waits than one sender that feels the back-pressure keeps
 * under way, so that dropping some of it would not make anything shorter.
 */
bool vl_side_is_short(const struct vl_side *s);

#endif
