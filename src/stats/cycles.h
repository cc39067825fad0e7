/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cycles of a thread: from the hardware counter where perf_event_open(2)
 * gives one, else CPU time multiplied by the frequency of the time stamp
 * counter. Which of the two it is must be said next to every figure.
 */
#ifndef VL_STATS_CYCLES_H
#define VL_STATS_CYCLES_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct vl_cycles {
	int perf_fd;   /* -1: no hardware counter */
	clockid_t cpu; /* CPU clock of the thread */
};

/* Starts counting the calling thread, user and kernel side. Always works;
 * without a hardware counter the other source is used. */
void vl_cycles_open(struct vl_cycles *c);
void vl_cycles_close(struct vl_cycles *c);

/* Any thread, while the counted thread exists. */
uint64_t vl_cycles_read(const struct vl_cycles *c);
uint64_t vl_cycles_cpu_ns(const struct vl_cycles *c);

/* "perf_event" or "cpu-time*tsc". */
const char *vl_cycles_source(const struct vl_cycles *c);

/* Frequency of the time stamp counter in Hz, measured against the monotonic
 * clock since the process started (at least 10 ms are awaited the first time).
 * On machines without one: 1 GHz, so that cycles are nanoseconds. */
uint64_t vl_tsc_hz(void);

#endif
