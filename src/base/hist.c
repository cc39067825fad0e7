/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bucket layout: values below 8 have a bucket each; above that, the three bits
 * behind the leading one choose among the eight buckets of a power of two.
 */
#include "base/hist.h"

#include "base/barrier.h"
#include "base/util.h"

#define SUB_BITS 3u

_Static_assert(VL_HIST_SUB == 1u << SUB_BITS, "buckets per power of two");

static unsigned int bucket_of(uint64_t value)
{
	unsigned int msb, index;

	if (value < VL_HIST_SUB)
		return (unsigned int)value;
	msb = 63u - (unsigned int)__builtin_clzll(value);
	index = (msb - SUB_BITS + 1) * VL_HIST_SUB;
	index += (unsigned int)(value >> (msb - SUB_BITS)) & (VL_HIST_SUB - 1);
	return vl_min_u32(index, VL_HIST_BUCKETS - 1);
}

/* The largest value that the bucket counts. */
static uint64_t bucket_limit(unsigned int index)
{
	unsigned int shift;

	if (index < VL_HIST_SUB)
		return index;
	shift = index / VL_HIST_SUB - 1;
	return ((VL_HIST_SUB + index % VL_HIST_SUB + 1ULL) << shift) - 1;
}

void vl_hist_add(struct vl_hist *h, uint64_t value, uint64_t n)
{
	VL_STAT_ADD(h->count[bucket_of(value)], n);
}

void vl_hist_snapshot(const struct vl_hist *src, struct vl_hist *dst)
{
	for (unsigned int i = 0; i < VL_HIST_BUCKETS; i++)
		dst->count[i] = vl_read_once(&src->count[i]);
}

uint64_t vl_hist_total(const struct vl_hist *h)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < VL_HIST_BUCKETS; i++)
		total += h->count[i];
	return total;
}

uint64_t vl_hist_percentile(const struct vl_hist *h, unsigned int permille)
{
	uint64_t total = vl_hist_total(h), rank, seen = 0;

	if (total == 0)
		return 0;
	permille = vl_min_u32(permille, 1000);
	/* total * permille / 1000 rounded up, without a product that wraps. */
	rank = total / 1000 * permille + (total % 1000 * permille + 999) / 1000;
	if (rank == 0)
		rank = 1;
	for (unsigned int i = 0; i < VL_HIST_BUCKETS; i++) {
		seen += h->count[i];
		if (seen >= rank)
			return bucket_limit(i);
	}
	return bucket_limit(VL_HIST_BUCKETS - 1);
}
