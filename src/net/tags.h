/* SPDX-License-Identifier: BSD-3-Clause */
/* What an event of a worker's vl_io means: kind in the upper bits of its tag,
 * a slot or read number in the lower ones. */
#ifndef VL_NET_TAGS_H
#define VL_NET_TAGS_H

#include <stdint.h>

enum vl_tag_kind {
	VL_TAG_TX_SLOT, /* a packet was sent or refused */
	VL_TAG_RX_READ, /* a read ended */
	VL_TAG_TX_KICK,
	VL_TAG_RX_KICK,
	VL_TAG_LANE_IN, /* the lane has packets / takes packets again */
	VL_TAG_LANE_OUT,
	VL_TAG_BACKEND, /* an operation of the backend's own */
	VL_TAG_CALL,    /* another thread asks for the worker */
};

#define VL_TAG(kind, index) ((uint64_t)(kind) << 32 | (uint32_t)(index))

static inline enum vl_tag_kind vl_tag_kind(uint64_t tag)
{
	return (enum vl_tag_kind)(tag >> 32);
}

static inline uint32_t vl_tag_index(uint64_t tag)
{
	return (uint32_t)tag;
}

#endif
