/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes: finding a slow destination before anything is full. See probe.c.
 * Worker thread only, except for reading counters.
 */
#ifndef VL_LANE_PROBE_H
#define VL_LANE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "lane/dest.h"
#include "lane/lane.h"
#include "lane/pkt.h"

#define VL_PROBES_MAX 2u

struct vl_lane_set;

/* A way out that has taken one packet, or none. */
struct vl_probe {
	struct vl_lane lane;
	struct vl_dest_key key; /* of the packet */
	uint64_t since_ns;      /* when it was sent */
	bool busy;              /* it has not left when last looked at */
	bool late;              /* and should have */
};

struct vl_probes {
	struct vl_probe probe[VL_PROBES_MAX];
	unsigned int n;
	uint64_t looked_ns;
	uint32_t skip;      /* express packets until one is taken, 0: none is */
	uint32_t skip_seen; /* the same, when looked at last */
	uint32_t span;      /* packets between the two that were taken last */
	uint32_t last_seq;  /* of the last one */
	uint32_t random;    /* never 0 once started */

	/* Read by others. */
	uint64_t sent;
	uint64_t found; /* destinations */
};

/* Binds the backend's probes of port @port; none where it has none. */
void vl_probes_start(struct vl_lane_set *ls, struct vl_backend *backend,
		     unsigned int port, struct vl_io *io);

/* A turn begins: has what was sent left? One system call for each probe under
 * way, at most once in a millisecond. */
void vl_probes_look(struct vl_lane_set *ls);

/*
 * A packet for the express lane came while probes.skip is not 0: sends it by a
 * probe instead if its turn has come. Returns whether it did.
 */
bool vl_probes_take(struct vl_lane_set *ls, struct vl_pkt *pkt);

#endif
