/* SPDX-License-Identifier: BSD-3-Clause */
/* Time: the monotonic clock, and the cycle counter that is cheaper to read. */
#ifndef VL_BASE_CLOCK_H
#define VL_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/util.h"

static inline uint64_t vl_clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * VL_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t vl_now_ns(void)
{
	return vl_clock_ns(CLOCK_MONOTONIC);
}

#endif
