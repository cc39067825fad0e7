/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lanes of a queue pair: the express lane, and side lanes for destinations
 * for which the express lane pushed back. See docs/design/lanes.md.
 *
 * Worker thread only, except for reading counters.
 */
#ifndef VL_LANE_LANE_SET_H
#define VL_LANE_LANE_SET_H

#include "lane/dest.h"
#include "lane/lane.h"
#include "lane/pkt.h"
#include "lane/probe.h"
#include "lane/side.h"

#define VL_LANES_MAX   16u
/* Packets of one submit that the express lane may refuse. */
#define VL_LANES_BATCH 64u

/* What to do when the host network takes no more (--tx-full). */
enum vl_tx_full {
	VL_TX_FULL_LANES, /* side lanes */
	VL_TX_FULL_BLOCK, /* the whole queue waits */
	VL_TX_FULL_DROP,  /* the packet is dropped */
};

/* How a packet left the lanes. */
enum vl_pkt_end {
	VL_PKT_SENT,
	VL_PKT_DOWN,
	VL_PKT_GONE,
	VL_PKT_REFUSED,
	VL_PKT_NOMEM,
	VL_PKT_FULL,  /* VL_TX_FULL_DROP, or no place in the table */
	VL_PKT_LATE,  /* waited too long: CoDel */
	VL_PKT_LIMIT, /* its lane's FIFO is long enough */
	VL_PKT_POOL,  /* the owner could not keep it */
};

struct vl_lane_set_ops {
	/* The packet is done with, for good. */
	void (*done)(void *owner, struct vl_pkt *pkt, enum vl_pkt_end end);
	/* It has to wait: keep what it needs, as a copy only if @may_copy.
	 * false: no room, it is dropped. */
	bool (*park)(void *owner, struct vl_pkt *pkt, bool may_copy);
	/*
	 * Cuts @pkt, which can_cut, into parts of about @bytes. Returns the
	 * parts in order, linked by next; the owner has @pkt until all of them
	 * are done, and @pkt itself is not heard of again. NULL when it has to
	 * stay whole, for now or (can_cut is false then) for good.
	 */
	struct vl_pkt *(*cut)(void *owner, struct vl_pkt *pkt, uint32_t bytes);
	/* Whether @pkt, which is being sent on lane @lane, may be sent from where
	 * it lies. NULL unless vl_lane_set.zerocopy. */
	bool (*zerocopy)(void *owner, struct vl_pkt *pkt, unsigned int lane);
};

/* What stat shows of a lane. */
enum vl_lane_state {
	VL_LANE_EXPRESS,
	VL_LANE_IDLE, /* nobody's */
	VL_LANE_SIDE, /* somebody's, not proven slow */
	VL_LANE_SLOW,
};

struct vl_lane_set {
	const struct vl_lane_set_ops *ops;
	void *owner;
	enum vl_tx_full mode;
	bool zerocopy;  /* the owner is asked for each send */
	unsigned int n; /* lanes, express included */
	/* Lanes from here to n have a short send buffer. */
	unsigned int first_short;
	struct vl_lane lane[VL_LANES_MAX];
	struct vl_side side[VL_LANES_MAX]; /* [0]: counters only */
	struct vl_dest_table dests;
	struct vl_probes probes;
	uint64_t tag_backend; /* of the backend's own operations */
	uint32_t in_flight;   /* sends not answered */
	uint64_t now_ns;
	uint64_t split_ns;     /* when shared lanes were looked at last */
	uint64_t full_seen_ns; /* and full ones */
	/* Packets that the express lane refused, in no order. */
	struct vl_pkt *refused[VL_LANES_BATCH];
	uint32_t n_refused;
	bool paused; /* packets that wait go on waiting */
	/* One of them for want of room, not since one before it failed. */
	bool pushed_back;
};

/*
 * Binds the lanes of port @port. @ls->ops, owner, mode and tags are set.
 * Returns 0 or -errno.
 */
int vl_lane_set_start(struct vl_lane_set *ls, struct vl_backend *backend,
		      unsigned int port, struct vl_io *io);
void vl_lane_set_stop(struct vl_lane_set *ls);

/* See vl_lane_set_active() and vl_lane_set_down() of a single lane. */
int vl_lane_set_activate(struct vl_lane_set *ls, bool active);
void vl_lane_set_link(struct vl_lane_set *ls, bool down);

/* May packets be given to vl_lane_set_send()? False while the queue waits
 * (VL_TX_FULL_BLOCK) or sends are not answered. */
bool vl_lane_set_ready(const struct vl_lane_set *ls);

/* The destination of @pkt. */
void vl_pkt_key(const struct vl_pkt *pkt, struct vl_dest_key *key);

/* Takes over @pkt: queues it for the kernel or behind others of its lane. At
 * most VL_LANES_BATCH between two vl_lane_set_settle() that return false. */
void vl_lane_set_send(struct vl_lane_set *ls, struct vl_pkt *pkt);

/* Queues packets that wait and may go now; drops those that are late. */
void vl_lane_set_pump(struct vl_lane_set *ls);

/* The send of @pkt was answered with @res. */
void vl_lane_set_complete(struct vl_lane_set *ls, struct vl_pkt *pkt, int res);

/*
 * Every send was answered: moves what the express lane refused, parks what has
 * to wait. Returns true when it queued sends: submit, reap, and call again;
 * that ends, since each round moves a destination or sends something.
 *
 * With VL_TX_FULL_BLOCK it leaves the refused packets to the owner, and waits.
 */
bool vl_lane_set_settle(struct vl_lane_set *ls);

/* The refused packets that settle left, in the order of the ring. */
void vl_lane_set_sort_refused(struct vl_lane_set *ls);

/* Lane @index is writable again. */
void vl_lane_set_writable(struct vl_lane_set *ls, unsigned int index);

/* Takes @pkt, which waits, out of its FIFO. */
void vl_lane_set_remove(struct vl_lane_set *ls, struct vl_pkt *pkt);

enum vl_lane_state vl_lane_set_state(const struct vl_lane_set *ls,
				     unsigned int index);

#endif
