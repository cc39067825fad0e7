/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steering: which destination has which lane. See steer.c for the rules.
 * Worker thread only.
 */
#ifndef VL_LANE_STEER_H
#define VL_LANE_STEER_H

#include "lane/lane_set.h"

/*
 * The destination @key, of which the express lane refused a packet, leaves it
 * for a side lane. Returns its entry, NULL when there is no place in the table.
 */
struct vl_dest *vl_steer_away(struct vl_lane_set *ls,
			      const struct vl_dest_key *key);

/*
 * Gives a lane that turned out very slow a short send buffer, or one destination
 * of a shared lane that is slow a lane of its own, with its waiting packets, if
 * one deserves it and there is one to be had. Returns whether it did.
 */
bool vl_steer_apart(struct vl_lane_set *ls);

/* Gives lanes back that were not used for a while. */
void vl_steer_back(struct vl_lane_set *ls);

/* Nanoseconds until vl_steer_back() may have something to do, -1: never. */
int64_t vl_steer_timeout(const struct vl_lane_set *ls);

#endif
