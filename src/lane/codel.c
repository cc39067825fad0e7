/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/codel.h"

/* Integer square root, rounded down; at most 16 steps. */
static uint32_t isqrt(uint32_t n)
{
	uint32_t root = 0;

	for (uint32_t bit = 1u << 15; bit; bit >>= 1)
		if ((uint64_t)(root | bit) * (root | bit) <= n)
			root |= bit;
	return root;
}

/* The control law: the n-th drop follows after interval / sqrt(n). */
static uint64_t next_drop(uint64_t t, uint32_t count)
{
	/* sqrt(count) in 1/16: isqrt of count * 256. */
	uint32_t root = isqrt(count < (1u << 24) ? count << 8 : UINT32_MAX);

	return t + VL_CODEL_INTERVAL_NS * 16 / (root ? root : 16);
}

static bool above(struct vl_codel *c, uint64_t now, uint64_t sojourn, bool last)
{
	if (sojourn < VL_CODEL_TARGET_NS || last) {
		c->first_above_ns = 0;
		return false;
	}
	if (!c->first_above_ns) {
		c->first_above_ns = now + VL_CODEL_INTERVAL_NS;
		return false;
	}
	return now >= c->first_above_ns;
}

bool vl_codel_drop(struct vl_codel *c, uint64_t now, uint64_t sojourn,
		   bool last)
{
	bool ok_to_drop = above(c, now, sojourn, last);
	uint32_t delta;

	if (c->dropping) {
		if (!ok_to_drop) {
			c->dropping = false;
			return false;
		}
		if (now < c->next_ns)
			return false;
		c->count++;
		c->next_ns = next_drop(c->next_ns, c->count);
		return true;
	}
	if (!ok_to_drop)
		return false;
	c->dropping = true;
	/* Soon after the last time: go on near the rate that worked. */
	delta = c->count - c->last_count;
	c->count = delta > 1 && now - c->next_ns < 16 * VL_CODEL_INTERVAL_NS
			   ? delta
			   : 1;
	c->last_count = c->count;
	c->next_ns = next_drop(now, c->count);
	return true;
}
