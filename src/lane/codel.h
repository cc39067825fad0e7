/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CoDel (RFC 8289): when packets have waited longer than the target for a
 * whole interval, drop one, then more and more often until they do not.
 */
#ifndef VL_LANE_CODEL_H
#define VL_LANE_CODEL_H

#include <stdbool.h>
#include <stdint.h>

/* The standing delay that is accepted, and how long it must stand. A queue of
 * a lane is short by design, so the target is above RFC 8289's 5 ms. */
#define VL_CODEL_TARGET_NS   20000000ULL
#define VL_CODEL_INTERVAL_NS 100000000ULL

/* All zero is the start state. */
struct vl_codel {
	uint64_t first_above_ns; /* when dropping may begin; 0: below target */
	uint64_t next_ns;
	uint32_t count, last_count;
	bool dropping;
};

/*
 * A packet that waited @sojourn_ns is at the head at time @now_ns; @last: it
 * is the only one. Returns true when it shall be dropped.
 */
bool vl_codel_drop(struct vl_codel *c, uint64_t now_ns, uint64_t sojourn_ns,
		   bool last);

#endif
