/* SPDX-License-Identifier: BSD-3-Clause */
/* CoDel's law: a standing delay is dropped more and more often, a burst not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lane/codel.h"

#define MS    1000000ULL
#define START (1000 * MS)

static void short_waits_are_fine(void **state)
{
	struct vl_codel c = { 0 };

	(void)state;
	for (uint64_t t = 0; t < 2000; t++)
		assert_false(vl_codel_drop(&c, START + t * MS,
					   VL_CODEL_TARGET_NS - 1, false));
}

/* Above the target, but never for a whole interval. */
static void bursts_are_fine(void **state)
{
	struct vl_codel c = { 0 };

	(void)state;
	for (uint64_t t = 0; t < 5000; t++)
		assert_false(vl_codel_drop(
			&c, START + t * MS,
			t % 100 < 99 ? 2 * VL_CODEL_TARGET_NS : 0, false));
}

static void only_packet_is_never_dropped(void **state)
{
	struct vl_codel c = { 0 };

	(void)state;
	for (uint64_t t = 0; t < 1000; t++)
		assert_false(vl_codel_drop(&c, START + t * MS,
					   50 * VL_CODEL_TARGET_NS, true));
}

/* The first drop after an interval, then at interval / sqrt(n). */
static void standing_delay_is_dropped(void **state)
{
	struct vl_codel c = { 0 };
	uint64_t when[32], gap, n = 0;

	(void)state;
	for (uint64_t t = 0; t < 20000 && n < 32; t++)
		if (vl_codel_drop(&c, START + t * MS / 10,
				  2 * VL_CODEL_TARGET_NS, false))
			when[n++] = t * MS / 10;
	assert_int_equal(n, 32);
	assert_int_equal(when[0], VL_CODEL_INTERVAL_NS);
	assert_int_equal(when[1] - when[0], VL_CODEL_INTERVAL_NS);
	gap = when[4] - when[3]; /* after the fourth: half an interval */
	assert_true(gap > 45 * MS && gap < 55 * MS);
	gap = when[16] - when[15]; /* after the 16th: a quarter */
	assert_true(gap > 22 * MS && gap < 28 * MS);
}

static void ends_when_the_delay_is_gone(void **state)
{
	struct vl_codel c = { 0 };
	uint64_t t = START, again = 0;

	(void)state;
	for (int i = 0; i < 1000; i++, t += MS)
		vl_codel_drop(&c, t, 2 * VL_CODEL_TARGET_NS, false);
	assert_true(c.dropping);
	assert_false(vl_codel_drop(&c, t, 0, false));
	assert_false(c.dropping);
	/* Soon again: it starts near the rate that worked, not from one. */
	for (int i = 0; i < 300; i++, t += MS)
		again += vl_codel_drop(&c, t, 2 * VL_CODEL_TARGET_NS, false);
	assert_true(again > 4);
	/* Long after: from one. */
	t += 100 * VL_CODEL_INTERVAL_NS;
	assert_false(vl_codel_drop(&c, t, 0, false));
	again = 0;
	for (int i = 0; i < 300; i++, t += MS)
		again += vl_codel_drop(&c, t, 2 * VL_CODEL_TARGET_NS, false);
	assert_true(again <= 3);
}

/* Any count has a next drop in the future: no endless dropping. */
static void large_counts_are_bounded(void **state)
{
	struct vl_codel c = { .dropping = true, .first_above_ns = 1 };

	(void)state;
	for (uint32_t count = 1; count < UINT32_MAX / 3; count *= 3) {
		c.count = count;
		c.next_ns = START;
		assert_true(
			vl_codel_drop(&c, START, VL_CODEL_TARGET_NS, false));
		assert_true(c.next_ns > START);
		assert_true(c.next_ns <= START + VL_CODEL_INTERVAL_NS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_waits_are_fine),
		cmocka_unit_test(bursts_are_fine),
		cmocka_unit_test(only_packet_is_never_dropped),
		cmocka_unit_test(standing_delay_is_dropped),
		cmocka_unit_test(ends_when_the_delay_is_gone),
		cmocka_unit_test(large_counts_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
