/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/iov.h"
#include "base/util.h"

#define BYTES 24

/* 24 bytes as entries of 0, 1, 0, 5, 18 and 0 bytes. */
struct list {
	unsigned char mem[BYTES];
	struct iovec iov[6];
};

static void list_init(struct list *l)
{
	static const size_t sizes[] = { 0, 1, 0, 5, 18, 0 };
	size_t at = 0;

	for (unsigned int i = 0; i < BYTES; i++)
		l->mem[i] = (unsigned char)i;
	for (size_t i = 0; i < VL_ARRAY_SIZE(sizes); i++) {
		/* An empty entry may name no memory at all. */
		l->iov[i].iov_base = sizes[i] ? l->mem + at : NULL;
		l->iov[i].iov_len = sizes[i];
		at += sizes[i];
	}
}

static size_t expected(size_t offset, size_t len)
{
	if (offset >= BYTES)
		return 0;
	return len < BYTES - offset ? len : BYTES - offset;
}

static void test_len(void **state)
{
	struct list l;

	(void)state;
	list_init(&l);
	assert_int_equal(vl_iov_len(l.iov, 6), BYTES);
	assert_int_equal(vl_iov_len(l.iov, 0), 0);
}

static void test_read_every_split(void **state)
{
	struct list l;
	unsigned char buf[BYTES + 4];

	(void)state;
	list_init(&l);
	for (size_t off = 0; off < BYTES + 3; off++) {
		for (size_t len = 0; len < BYTES + 3; len++) {
			size_t want = expected(off, len);

			memset(buf, 0xee, sizeof(buf));
			assert_int_equal(vl_iov_read(l.iov, 6, off, buf, len),
					 want);
			if (want)
				assert_memory_equal(buf, l.mem + off, want);
			assert_int_equal(buf[want], 0xee);
		}
	}
}

static void test_write_every_split(void **state)
{
	struct list l;
	unsigned char buf[BYTES + 4];

	(void)state;
	memset(buf, 0xaa, sizeof(buf));
	for (size_t off = 0; off < BYTES + 3; off++) {
		for (size_t len = 0; len < BYTES + 3; len++) {
			size_t want = expected(off, len);

			list_init(&l);
			assert_int_equal(vl_iov_write(l.iov, 6, off, buf, len),
					 want);
			for (size_t i = 0; i < BYTES; i++)
				assert_int_equal(
					l.mem[i],
					i >= off && i < off + want ? 0xaa : i);
		}
	}
}

static void test_huge_offset(void **state)
{
	struct list l;
	unsigned char buf[BYTES];
	struct iovec out[6];

	(void)state;
	list_init(&l);
	assert_int_equal(vl_iov_read(l.iov, 6, SIZE_MAX, buf, 1), 0);
	assert_int_equal(vl_iov_write(l.iov, 6, SIZE_MAX - 3, buf, 8), 0);
	assert_int_equal(vl_iov_slice(l.iov, 6, SIZE_MAX, 0, out, 6), -EINVAL);
	assert_int_equal(vl_iov_slice(l.iov, 6, 1, SIZE_MAX, out, 6), -EINVAL);
}

static void test_slice_every_split(void **state)
{
	struct list l;
	struct iovec out[6];

	(void)state;
	list_init(&l);
	for (size_t off = 0; off <= BYTES; off++) {
		for (size_t len = 0; len <= BYTES - off; len++) {
			int n = vl_iov_slice(l.iov, 6, off, len, out, 3);
			size_t at = off;

			assert_in_range(n, 0, 3);
			for (int i = 0; i < n; i++) {
				assert_true(out[i].iov_len > 0);
				assert_ptr_equal(out[i].iov_base, l.mem + at);
				at += out[i].iov_len;
			}
			assert_int_equal(at, off + len);
		}
		assert_int_equal(
			vl_iov_slice(l.iov, 6, off, BYTES - off + 1, out, 6),
			-EINVAL);
	}
}

static void test_slice_no_room(void **state)
{
	struct list l;
	struct iovec out[3];

	(void)state;
	list_init(&l);
	assert_int_equal(vl_iov_slice(l.iov, 6, 0, BYTES, out, 2), -ENOBUFS);
	assert_int_equal(vl_iov_slice(l.iov, 6, 0, BYTES, out, 3), 3);
	assert_int_equal(vl_iov_slice(l.iov, 6, 0, 1, out, 0), -ENOBUFS);
	assert_int_equal(vl_iov_slice(l.iov, 6, BYTES, 0, out, 0), 0);
	assert_int_equal(vl_iov_slice(l.iov, 6, BYTES + 1, 0, out, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_len),
		cmocka_unit_test(test_read_every_split),
		cmocka_unit_test(test_write_every_split),
		cmocka_unit_test(test_huge_offset),
		cmocka_unit_test(test_slice_every_split),
		cmocka_unit_test(test_slice_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
