/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum against a sum of one 16-bit word after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/csum.h"

#define BYTES 512u

static uint8_t data[BYTES + 8];

static void fill(void)
{
	uint32_t x = 12345;

	for (size_t i = 0; i < sizeof(data); i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (uint8_t)(x >> 24);
	}
}

/* Bytes in network order, as the RFC has it. */
static uint16_t naive(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++) {
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return __builtin_bswap16((uint16_t)sum);
}

static void every_place_and_length(void **state)
{
	(void)state;
	fill();
	for (size_t at = 0; at < 8; at++)
		for (size_t len = 0; len <= BYTES; len++)
			assert_int_equal(vl_csum_fold(vl_csum(data + at, len)),
					 naive(data + at, len));
}

static void large_sums_do_not_overflow(void **state)
{
	static uint8_t ones[65536];

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	assert_int_equal(vl_csum_fold(vl_csum(ones, sizeof(ones))), 0xffff);
	assert_int_equal(vl_csum_fold(vl_csum(ones, 65535)),
			 naive(ones, 65535));
	assert_int_equal(vl_csum_fold(UINT64_MAX), 0xffff);
	assert_int_equal(vl_csum_fold(0x1ffffffff), 0x1);
	assert_int_equal(vl_csum_fold(0), 0);
}

/* Cut in three at every pair of places, with an empty piece between. */
static void lists(void **state)
{
	(void)state;
	fill();
	for (size_t a = 0; a <= 40; a++) {
		for (size_t b = a; b <= 40; b++) {
			struct iovec iov[] = {
				{ data, a },
				{ NULL, 0 },
				{ data + a, b - a },
				{ data + b, 41 - b },
			};

			for (size_t at = 0; at < 5; at++)
				for (size_t len = 0; len <= 41 - at; len++)
					assert_int_equal(
						vl_csum_fold(vl_csum_iov(
							iov, 4, at, len)),
						naive(data + at, len));
			/* Not beyond the end. */
			assert_int_equal(
				vl_csum_fold(vl_csum_iov(iov, 4, 1, 99)),
				naive(data + 1, 40));
			assert_int_equal(vl_csum_iov(iov, 4, 41, 1), 0);
		}
	}
}

static void pseudo_headers(void **state)
{
	uint8_t v4[12] = { 0 }, v6[40] = { 0 };

	(void)state;
	fill();
	memcpy(v4, data, 8);
	v4[9] = 17;
	v4[10] = 0x12;
	v4[11] = 0x34;
	assert_int_equal(vl_csum_fold(vl_csum_pseudo4(data, 17, 0x1234)),
			 naive(v4, sizeof(v4)));
	memcpy(v6, data, 32);
	v6[33] = 1;
	v6[34] = 0x23;
	v6[35] = 0x45;
	v6[39] = 6;
	assert_int_equal(vl_csum_fold(vl_csum_pseudo6(data, 6, 0x12345)),
			 naive(v6, sizeof(v6)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_place_and_length),
		cmocka_unit_test(large_sums_do_not_overflow),
		cmocka_unit_test(lists),
		cmocka_unit_test(pseudo_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
