/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A histogram with a fixed relative error: eight buckets per power of two, so
 * a reported percentile is at most 12.5 % above the true one. One writer, any
 * number of readers.
 */
#ifndef VL_BASE_HIST_H
#define VL_BASE_HIST_H

#include <stdint.h>

#define VL_HIST_SUB     8u
#define VL_HIST_BUCKETS ((40u - 2u) * VL_HIST_SUB)

struct vl_hist {
	uint64_t count[VL_HIST_BUCKETS];
};

/* Counts @n samples of @value; values of 2^40 and more share the last bucket. */
void vl_hist_add(struct vl_hist *h, uint64_t value, uint64_t n);

/* Copies the live histogram @src, which another thread may be writing. */
void vl_hist_snapshot(const struct vl_hist *src, struct vl_hist *dst);

/* Number of samples. */
uint64_t vl_hist_total(const struct vl_hist *h);

/*
 * The upper bound of the bucket that holds the sample of rank @permille / 1000
 * (500: median); 0 without samples.
 */
uint64_t vl_hist_percentile(const struct vl_hist *h, unsigned int permille);

#endif
