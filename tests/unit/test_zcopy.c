/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets are sent without a copy: each condition alone, on both sides of
 * its constant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "lane/zcopy.h"

#define SEC 1000000000ULL

/* @len bytes from @at within a page. */
static struct iovec piece(uintptr_t at, size_t len)
{
	return (struct iovec){ .iov_base = (void *)(0x100000 + at), // NOLINT
			       .iov_len = len };
}

static enum vl_zc_why frame(enum vl_zerocopy mode, uint32_t len,
			    uint32_t gso_size)
{
	struct iovec iov = piece(0, len);

	return vl_zc_frame(mode, len, gso_size, &iov, 1);
}

static void test_mode(void **state)
{
	(void)state;
	assert_int_equal(frame(VL_ZEROCOPY_OFF, 9000, 0), VL_ZC_OFF);
	assert_int_equal(frame(VL_ZEROCOPY_AUTO, 9000, 0), VL_ZC_NOT_COPIED);
	assert_int_equal(frame(VL_ZEROCOPY_ON, 9000, 0), VL_ZC_NOT_COPIED);
}

static void test_length(void **state)
{
	(void)state;
	assert_int_equal(frame(VL_ZEROCOPY_AUTO, VL_ZC_BYTES_AUTO - 1, 0),
			 VL_ZC_SHORT);
	assert_int_equal(frame(VL_ZEROCOPY_AUTO, VL_ZC_BYTES_AUTO, 0),
			 VL_ZC_NOT_COPIED);
	assert_int_equal(frame(VL_ZEROCOPY_ON, VL_ZC_BYTES_ON - 1, 0),
			 VL_ZC_SHORT);
	assert_int_equal(frame(VL_ZEROCOPY_ON, VL_ZC_BYTES_ON, 0),
			 VL_ZC_NOT_COPIED);
}

static void test_segments(void **state)
{
	uint32_t size = 1000, most = VL_ZC_SEGMENTS_AUTO * size + 42;
	struct iovec iov;

	(void)state;
	assert_int_equal(vl_zc_segments(1500, 0), 1);
	assert_int_equal(vl_zc_segments(20, 1000), 1);
	assert_int_equal(vl_zc_segments(42 + 1000, 1000), 1);
	assert_int_equal(vl_zc_segments(42 + 1001, 1000), 2);
	assert_int_equal(vl_zc_segments(65535, 1), 65535 - 42);
	/* 8 segments are 15 pieces in one page, and may lie in two. */
	assert_int_equal(frame(VL_ZEROCOPY_AUTO, most, size), VL_ZC_NOT_COPIED);
	assert_int_equal(frame(VL_ZEROCOPY_AUTO, most + 1, size),
			 VL_ZC_SEGMENTS);
	assert_int_equal(frame(VL_ZEROCOPY_ON, most + 1, size), VL_ZC_PIECES);
	assert_int_equal(frame(VL_ZEROCOPY_ON, 65535, 1), VL_ZC_PIECES);
	iov = piece(200, most);
	assert_int_equal(vl_zc_frame(VL_ZEROCOPY_AUTO, most, size, &iov, 1),
			 VL_ZC_PIECES);
}

static void test_pieces(void **state)
{
	struct iovec iov[17];

	(void)state;
	iov[0] = piece(0, 4096);
	assert_int_equal(vl_zc_pieces(iov, 1, 1), 2);
	iov[0] = piece(0, 4097);
	assert_int_equal(vl_zc_pieces(iov, 1, 1), 3);
	iov[0] = piece(4095, 2);
	assert_int_equal(vl_zc_pieces(iov, 1, 1), 3);
	iov[0] = piece(4095, 0);
	assert_int_equal(vl_zc_pieces(iov, 1, 1), 1);
	/* Each segment has a header, and cuts what it begins in. */
	iov[0] = piece(0, 4096);
	assert_int_equal(vl_zc_pieces(iov, 1, 4), 8);
	/* 16, and the header. */
	for (unsigned int i = 0; i < 17; i++)
		iov[i] = piece(i * 8192, 300);
	assert_int_equal(vl_zc_frame(VL_ZEROCOPY_ON, 16 * 300, 0, iov, 16),
			 VL_ZC_NOT_COPIED);
	assert_int_equal(vl_zc_frame(VL_ZEROCOPY_ON, 17 * 300, 0, iov, 17),
			 VL_ZC_PIECES);
}

/* A queue of 256 in which nothing is pending. */
static struct vl_zc_room empty(const struct vl_zc_dest *dest)
{
	return (struct vl_zc_room){
		.mode = VL_ZEROCOPY_AUTO,
		.hold = 2,
		.charge = 2,
		.held_max = 128,
		.pending_max = 128,
		.dest = dest,
		.now_ns = 10 * SEC,
	};
}

static void test_stopping(void **state)
{
	struct vl_zc_dest dest = { 0 };
	struct vl_zc_room r = empty(&dest);

	(void)state;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	r.nomem_until_ns = r.now_ns;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	r.nomem_until_ns++;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOMEM);
	r.stopping = true;
	assert_int_equal(vl_zc_room(&r), VL_ZC_STOPPING);
}

static void test_window(void **state)
{
	struct vl_zc_dest dest = { 0 };
	struct vl_zc_room r = empty(&dest);

	(void)state;
	r.held = 126;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	r.held = 127;
	assert_int_equal(vl_zc_room(&r), VL_ZC_WINDOW);
	/* It is counted already, since it waited. */
	r.hold = 0;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	r.pending = 127;
	assert_int_equal(vl_zc_room(&r), VL_ZC_WINDOW);
	/* A part of a chain that is pending. */
	r.charge = 0;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	r = empty(&dest);
	r.pending_max = 3;
	r.pending = 1;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	r.pending = 2;
	assert_int_equal(vl_zc_room(&r), VL_ZC_WINDOW);
}

static void test_share(void **state)
{
	struct vl_zc_dest dest = { 0 };
	struct vl_zc_room r = empty(&dest);

	(void)state;
	dest.descs = 128 / VL_ZC_DEST_PART - 2;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	dest.descs++;
	assert_int_equal(vl_zc_room(&r), VL_ZC_SHARE);
	r.classic = true;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	r.classic = false;
	/* The first one may be larger than that. */
	dest.descs = 0;
	r.charge = 60;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	/* A side lane, and all of them. */
	r = empty(&dest);
	r.lane_descs = 31;
	r.sides_descs = 31;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	r.side = true;
	assert_int_equal(vl_zc_room(&r), VL_ZC_SHARE);
	r.lane_descs = 30;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	r.sides_descs = 63;
	assert_int_equal(vl_zc_room(&r), VL_ZC_SHARE);
	r.sides_descs = 62;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
}

static void test_slow(void **state)
{
	struct vl_zc_dest dest = { 0 };
	struct vl_zc_room r = empty(&dest);

	(void)state;
	r.oldest_ns = r.now_ns - VL_ZC_SLOW_NS;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	r.oldest_ns--;
	assert_int_equal(vl_zc_room(&r), VL_ZC_SLOW);
	r.classic = true;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
}

static void release(struct vl_zc_dest *d, bool copied, uint32_t n, uint64_t now)
{
	while (n--)
		vl_zc_dest_released(d, copied, now);
}

static void test_useless(void **state)
{
	struct vl_zc_dest dest = { 0 };
	struct vl_zc_room r = empty(&dest);
	uint64_t off = VL_ZC_OFF_MIN_NS;

	(void)state;
	/* Half of them is not most of them. */
	release(&dest, true, VL_ZC_SAMPLE / 2, r.now_ns);
	release(&dest, false, VL_ZC_SAMPLE / 2, r.now_ns);
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	release(&dest, false, VL_ZC_SAMPLE / 2 - 1, r.now_ns);
	release(&dest, true, VL_ZC_SAMPLE / 2, r.now_ns);
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	release(&dest, true, 1, r.now_ns);
	assert_int_equal(vl_zc_room(&r), VL_ZC_USELESS);
	r.mode = VL_ZEROCOPY_ON;
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	r.mode = VL_ZEROCOPY_AUTO;
	/* Again, after ever longer times, up to a limit. */
	for (unsigned int i = 0; i < 20; i++) {
		r.now_ns += off - 1;
		assert_int_equal(vl_zc_room(&r), VL_ZC_USELESS);
		r.now_ns++;
		assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
		release(&dest, true, VL_ZC_SAMPLE_AGAIN - 1, r.now_ns);
		assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
		release(&dest, true, 1, r.now_ns);
		assert_int_equal(vl_zc_room(&r), VL_ZC_USELESS);
		if (i < VL_ZC_OFF_DOUBLES)
			off *= 2;
	}
	assert_int_equal(off, VL_ZC_OFF_MIN_NS << VL_ZC_OFF_DOUBLES);
	/* It is of use now. */
	r.now_ns += off;
	release(&dest, false, VL_ZC_SAMPLE_AGAIN, r.now_ns);
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	release(&dest, true, VL_ZC_SAMPLE - 1, r.now_ns);
	assert_int_equal(vl_zc_room(&r), VL_ZC_NOT_COPIED);
	release(&dest, true, 1, r.now_ns);
	assert_int_equal(vl_zc_room(&r), VL_ZC_USELESS);
	assert_int_equal(dest.off_until_ns, r.now_ns + VL_ZC_OFF_MIN_NS);
}

static void test_dest_index(void **state)
{
	struct vl_dest_key key = { .mac = { 2 }, .addr_len = 4 };
	uint32_t used[VL_ZC_DESTS] = { 0 }, most = 0;

	(void)state;
	/* Neighbours are spread, by MAC or by IP address. */
	for (unsigned int i = 0; i < 640; i++) {
		unsigned int at;

		key.mac[5] = (uint8_t)(i % 10);
		key.addr[3] = (uint8_t)(i / 10);
		at = vl_zc_dest_index(&key);
		assert_true(at < VL_ZC_DESTS);
		used[at]++;
		most = vl_max_u32(most, used[at]);
	}
	assert_true(most <= 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mode),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_stopping),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_useless),
		cmocka_unit_test(test_dest_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
