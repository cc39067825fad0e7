/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Destinations: which packets go where, as far as a lane is concerned. A
 * destination is the destination MAC address and, where there is one, the
 * IPv4 or IPv6 destination address.
 *
 * The table holds only destinations that are not on the express lane, so it
 * is empty, and never looked at, while nothing pushes back.
 */
#ifndef VL_LANE_DEST_H
#define VL_LANE_DEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VL_DEST_MAX  1024u
/* Bytes of a frame that tell its destination: two VLAN tags and IPv6. */
#define VL_DEST_PEEK 62u

struct vl_dest_key {
	uint8_t mac[6];
	uint8_t addr_len; /* 0, 4 or 16 */
	uint8_t unused;
	uint8_t addr[16];
};

struct vl_dest {
	struct vl_dest_key key;
	uint16_t parked; /* packets of it in the FIFO of its lane */
	uint8_t lane;    /* 0: the entry is free */
	/* When it filled a lane that it had alone; 0: not known to. */
	uint64_t slow_ns;
	uint32_t traffic; /* recent packets, see vl_dest_busiest() */
};

struct vl_dest_table {
	struct vl_dest entry[VL_DEST_MAX];
	uint32_t count;
};

/* The destination of a frame that begins with the @len bytes at @frame (all of
 * it, or VL_DEST_PEEK). */
void vl_dest_key(const uint8_t *frame, size_t len, struct vl_dest_key *key);

/* The entry for @key, NULL when there is none. */
struct vl_dest *vl_dest_find(struct vl_dest_table *t,
			     const struct vl_dest_key *key);

/*
 * Adds @key, which is not there, with lane @lane. When the table is full an
 * entry without parked packets makes room: its destination is on the express
 * lane again, and *evicted the lane it was on (0: none had to). NULL when
 * every entry has parked packets.
 */
struct vl_dest *vl_dest_add(struct vl_dest_table *t,
			    const struct vl_dest_key *key, uint8_t lane,
			    uint8_t *evicted);

/* Moves all destinations of lane @from to lane @to; returns their number. */
uint32_t vl_dest_move(struct vl_dest_table *t, uint8_t from, uint8_t to);

/* None of the destinations of lane @lane is known as slow any more. */
void vl_dest_forgive(struct vl_dest_table *t, uint8_t lane);

/* A packet for @d came. */
static inline void vl_dest_count(struct vl_dest *d)
{
	d->traffic += 64;
}

/*
 * The destination with the most traffic among those of lanes @lanes (one bit
 * each) that were not slow since @since_ns; NULL: there is none. *@stands_out:
 * it has by far the most. Traffic counts for some eight calls.
 */
struct vl_dest *vl_dest_busiest(struct vl_dest_table *t, uint32_t lanes,
				uint64_t since_ns, bool *stands_out);

/* Removes all destinations of lane @lane. */
void vl_dest_remove_lane(struct vl_dest_table *t, uint8_t lane);

#endif
