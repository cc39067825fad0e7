/* SPDX-License-Identifier: BSD-3-Clause */
/* The virtio-net header: its length, and what a driver may put in it. */
#include <linux/virtio_config.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "virtio/net_hdr.h"

#define F(b)    VL_FEATURE(b)
#define CSUM    F(VIRTIO_NET_F_CSUM)
#define TSO4    (CSUM | F(VIRTIO_NET_F_HOST_TSO4))
#define TSO6    (CSUM | F(VIRTIO_NET_F_HOST_TSO6))
#define USO     (CSUM | F(VIRTIO_NET_F_HOST_USO))
#define ECN     F(VIRTIO_NET_F_HOST_ECN)
#define ALL     (TSO4 | TSO6 | USO | ECN)
#define NEEDS   VIRTIO_NET_HDR_F_NEEDS_CSUM
#define GSO_ECN VIRTIO_NET_HDR_GSO_ECN
#define GSO_UFO VIRTIO_NET_HDR_GSO_UDP

static void length_follows_the_features(void **state)
{
	(void)state;
	assert_int_equal(vl_net_hdr_len(0), 10);
	assert_int_equal(vl_net_hdr_len(ALL), 10);
	assert_int_equal(vl_net_hdr_len(F(VIRTIO_NET_F_MRG_RXBUF)), 12);
	assert_int_equal(vl_net_hdr_len(F(VIRTIO_F_VERSION_1)), 12);
	assert_int_equal(vl_net_hdr_len(F(VIRTIO_F_VERSION_1) |
					F(VIRTIO_NET_F_MRG_RXBUF)),
			 12);
}

struct header_case {
	struct virtio_net_hdr h;
	uint32_t frame;
	uint64_t features;
	enum vl_hdr_error want;
};

#define H(fl, gt, hl, gs, cs, co)                                              \
	{                                                                      \
		.flags = (fl), .gso_type = (gt), .hdr_len = (hl),              \
		.gso_size = (gs), .csum_start = (cs), .csum_offset = (co)      \
	}

/* clang-format off: a table */
static const struct header_case cases[] = {
	{ H(0, 0, 0, 0, 0, 0), 14, 0, VL_HDR_OK },
	/* Partial checksums. */
	{ H(NEEDS, 0, 0, 0, 34, 16), 100, 0, VL_HDR_BAD_FLAGS },
	{ H(NEEDS, 0, 0, 0, 34, 16), 100, CSUM, VL_HDR_OK },
	{ H(NEEDS, 0, 0, 0, 34, 16), 52, CSUM, VL_HDR_OK },
	{ H(NEEDS, 0, 0, 0, 34, 16), 51, CSUM, VL_HDR_BAD_CSUM },
	{ H(NEEDS, 0, 0, 0, 34, 65), 100, CSUM, VL_HDR_BAD_CSUM },
	{ H(NEEDS, 0, 0, 0, 35, 16), 100, CSUM, VL_HDR_OK }, /* odd */
	{ H(NEEDS, 0, 0, 0, 65535, 65535), 100, CSUM, VL_HDR_BAD_CSUM },
	{ H(NEEDS, 0, 0, 0, 65535, 1), 65537, CSUM, VL_HDR_BAD_CSUM },
	{ H(NEEDS, 0, 0, 0, 65535, 1), 65538, CSUM, VL_HDR_OK },
	{ H(NEEDS, 0, 0, 0, 0, 0), 100, CSUM, VL_HDR_BAD_CSUM },
	{ H(NEEDS, 0, 0, 0, 13, 5), 100, CSUM, VL_HDR_BAD_CSUM },
	/* Segmentation: each type needs its own feature. */
	{ H(NEEDS, 1, 54, 1448, 34, 16), 3000, TSO4, VL_HDR_OK },
	{ H(NEEDS, 1, 54, 1448, 34, 16), 3000, TSO6 | USO, VL_HDR_BAD_GSO },
	{ H(NEEDS, 4, 74, 1428, 54, 16), 3000, TSO6, VL_HDR_OK },
	{ H(NEEDS, 4, 74, 1428, 54, 16), 3000, TSO4 | USO, VL_HDR_BAD_GSO },
	{ H(NEEDS, 5, 42, 1400, 34, 6), 3000, USO, VL_HDR_OK },
	{ H(NEEDS, 5, 42, 1400, 34, 6), 3000, TSO4 | TSO6, VL_HDR_BAD_GSO },
	{ H(NEEDS, GSO_UFO, 42, 1400, 34, 6), 3000, ALL, VL_HDR_BAD_GSO },
	{ H(NEEDS, 2, 42, 1400, 34, 6), 3000, ALL, VL_HDR_BAD_GSO },
	{ H(NEEDS, 0x7f, 42, 1400, 34, 6), 3000, ALL, VL_HDR_BAD_GSO },
	{ H(NEEDS, GSO_ECN, 42, 1400, 34, 6), 3000, ALL, VL_HDR_BAD_GSO },
	{ H(NEEDS, 1, 54, 0, 34, 16), 3000, TSO4, VL_HDR_BAD_GSO },
	{ H(0, 1, 54, 1448, 34, 16), 3000, TSO4, VL_HDR_GSO_NO_CSUM },
	{ H(NEEDS, 1, 54, 1448, 34, 16), 3000, TSO4 & ~CSUM, VL_HDR_BAD_FLAGS },
	/* ECN goes with TCP only, and only when negotiated. */
	{ H(NEEDS, 1 | GSO_ECN, 54, 1448, 34, 16), 3000, TSO4 | ECN,
	  VL_HDR_OK },
	{ H(NEEDS, 1 | GSO_ECN, 54, 1448, 34, 16), 3000, TSO4, VL_HDR_BAD_GSO },
	{ H(NEEDS, 5 | GSO_ECN, 42, 1400, 34, 6), 3000, ALL, VL_HDR_BAD_GSO },
};
/* clang-format on */

static void accepts_and_refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct header_case *c = &cases[i];
		struct virtio_net_hdr h = c->h;
		enum vl_hdr_error got =
			vl_net_hdr_check(&h, c->frame, c->features);

		if (got != c->want)
			fail_msg("case %zu: error %d, expected %d", i, (int)got,
				 (int)c->want);
	}
}

static void tidies_what_it_accepts(void **state)
{
	struct virtio_net_hdr h = H(0xfe, 0, 65535, 1448, 65535, 65535);

	(void)state;
	/* Bits for received packets, and fields that mean nothing here. */
	assert_int_equal(vl_net_hdr_check(&h, 60, ALL), VL_HDR_OK);
	assert_int_equal(h.flags, 0);
	assert_int_equal(h.csum_start, 0);
	assert_int_equal(h.csum_offset, 0);
	assert_int_equal(h.gso_size, 0);
	assert_true(h.hdr_len <= 60);

	/* hdr_len is a hint that may not reach past the frame. */
	h = (struct virtio_net_hdr)H(0xff, 1, 65535, 1448, 34, 16);
	assert_int_equal(vl_net_hdr_check(&h, 3000, ALL), VL_HDR_OK);
	assert_int_equal(h.flags, NEEDS);
	assert_true(h.hdr_len <= 3000);
	assert_int_equal(h.gso_size, 1448);
	assert_int_equal(h.csum_start, 34);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(length_follows_the_features),
		cmocka_unit_test(accepts_and_refuses),
		cmocka_unit_test(tidies_what_it_accepts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
