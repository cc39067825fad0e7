/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hist.h"

/* The bucket limit under which a single sample of @value is reported. */
static uint64_t reported(uint64_t value)
{
	struct vl_hist h;

	memset(&h, 0, sizeof(h));
	vl_hist_add(&h, value, 1);
	return vl_hist_percentile(&h, 500);
}

static void test_error_bound(void **state)
{
	(void)state;
	for (uint64_t v = 1; v < 1ULL << 40; v = v * 17 / 16 + 1) {
		uint64_t r = reported(v);

		assert_true(r >= v);
		assert_true(r - v <= v / 8);
	}
	for (unsigned int bit = 0; bit < 40; bit++) {
		assert_true(reported(1ULL << bit) >= 1ULL << bit);
		assert_int_equal(reported((2ULL << bit) - 1),
				 (2ULL << bit) - 1);
	}
}

static void test_extremes(void **state)
{
	(void)state;
	assert_int_equal(reported(0), 0);
	assert_int_equal(reported(7), 7);
	assert_int_equal(reported((1ULL << 40) - 1), (1ULL << 40) - 1);
	assert_int_equal(reported(1ULL << 40), (1ULL << 40) - 1);
	assert_int_equal(reported(UINT64_MAX), (1ULL << 40) - 1);
}

static void test_percentiles(void **state)
{
	struct vl_hist h;

	(void)state;
	memset(&h, 0, sizeof(h));
	assert_int_equal(vl_hist_percentile(&h, 500), 0);
	vl_hist_add(&h, 1, 990);
	vl_hist_add(&h, 5, 9);
	vl_hist_add(&h, 7, 1);
	assert_int_equal(vl_hist_total(&h), 1000);
	assert_int_equal(vl_hist_percentile(&h, 0), 1);
	assert_int_equal(vl_hist_percentile(&h, 500), 1);
	assert_int_equal(vl_hist_percentile(&h, 990), 1);
	assert_int_equal(vl_hist_percentile(&h, 991), 5);
	assert_int_equal(vl_hist_percentile(&h, 999), 5);
	assert_int_equal(vl_hist_percentile(&h, 1000), 7);
	assert_int_equal(vl_hist_percentile(&h, 5000), 7);
}

static void test_rank_of_few(void **state)
{
	struct vl_hist h;

	(void)state;
	memset(&h, 0, sizeof(h));
	vl_hist_add(&h, 2, 1);
	vl_hist_add(&h, 6, 1);
	assert_int_equal(vl_hist_percentile(&h, 500), 2);
	assert_int_equal(vl_hist_percentile(&h, 501), 6);
}

static void test_huge_counts(void **state)
{
	struct vl_hist h;

	(void)state;
	memset(&h, 0, sizeof(h));
	vl_hist_add(&h, 3, UINT64_MAX / 2);
	vl_hist_add(&h, 4, UINT64_MAX / 4);
	assert_int_equal(vl_hist_percentile(&h, 500), 3);
	assert_int_equal(vl_hist_percentile(&h, 999), 4);
}

static void test_snapshot(void **state)
{
	struct vl_hist a, b;

	(void)state;
	memset(&a, 0, sizeof(a));
	memset(&b, 0xff, sizeof(b));
	for (uint64_t v = 1; v < 1ULL << 42; v *= 3)
		vl_hist_add(&a, v, v);
	vl_hist_snapshot(&a, &b);
	assert_memory_equal(&a, &b, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error_bound),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_rank_of_few),
		cmocka_unit_test(test_huge_counts),
		cmocka_unit_test(test_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
