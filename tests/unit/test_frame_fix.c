/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/frame_fix.h"
#include "base/uapi.h"

#define TCP4 VIRTIO_NET_HDR_GSO_TCPV4
#define TCP6 VIRTIO_NET_HDR_GSO_TCPV6
#define UDP  VIRTIO_NET_HDR_GSO_UDP_L4
#define ECN  VIRTIO_NET_HDR_GSO_ECN

static void gso_follows_what_is_taken(void **state)
{
	struct vl_offload o = { .hdr_len = 12 };

	(void)state;
	assert_true(vl_fix_takes_gso(&o, VIRTIO_NET_HDR_GSO_NONE));
	assert_false(vl_fix_takes_gso(&o, TCP4));
	o.tso4 = true;
	/* Segments get checksums that would be partial. */
	assert_false(vl_fix_takes_gso(&o, TCP4));
	o.csum = true;
	assert_true(vl_fix_takes_gso(&o, TCP4));
	assert_false(vl_fix_takes_gso(&o, TCP4 | ECN));
	assert_false(vl_fix_takes_gso(&o, TCP6));
	assert_false(vl_fix_takes_gso(&o, UDP));
	o.ecn = true;
	o.tso6 = true;
	o.uso4 = true;
	assert_true(vl_fix_takes_gso(&o, TCP4 | ECN));
	assert_true(vl_fix_takes_gso(&o, TCP6));
	assert_false(vl_fix_takes_gso(&o, UDP));
	assert_false(vl_fix_takes_all(&o));
	o.uso6 = true;
	assert_true(vl_fix_takes_gso(&o, UDP));
	assert_true(vl_fix_takes_all(&o));
	/* UFO and what is to come. */
	assert_false(vl_fix_takes_gso(&o, VIRTIO_NET_HDR_GSO_UDP));
	assert_false(vl_fix_takes_gso(&o, 0x20));
}

static void tag_goes_behind_the_addresses(void **state)
{
	uint8_t buf[64];
	uint8_t *at = buf + VL_TAG_LEN;
	struct virtio_net_hdr hdr = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.hdr_len = 54,
		.csum_start = 34,
		.csum_offset = 16,
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)i;
	vl_fix_insert_tag(at, 10, 0x88a8, 0xe123, &hdr);
	/* Header and addresses, 22 bytes, are in front now. */
	for (unsigned int i = 0; i < 22; i++)
		assert_int_equal(buf[i], VL_TAG_LEN + i);
	assert_memory_equal(buf + 22, "\x88\xa8\xe1\x23", VL_TAG_LEN);
	for (unsigned int i = 26; i < sizeof(buf); i++)
		assert_int_equal(buf[i], i);
	assert_int_equal(hdr.csum_start, 38);
	assert_int_equal(hdr.csum_offset, 16);
	assert_int_equal(hdr.hdr_len, 58);

	hdr = (struct virtio_net_hdr){ 0 };
	vl_fix_insert_tag(at, 10, 0x8100, 1, &hdr);
	assert_int_equal(hdr.csum_start, 0);
	assert_int_equal(hdr.hdr_len, 0);
}

/* RFC 1071, section 3, has these bytes and their sum: ddf2. */
static const uint8_t example[] = { 0x00, 0x01, 0xf2, 0x03,
				   0xf4, 0xf5, 0xf6, 0xf7 };

static void checksum_is_completed(void **state)
{
	struct virtio_net_hdr hdr;
	uint8_t frame[32] = { 0 };

	(void)state;
	for (uint16_t start = 0; start < 5; start++) {
		hdr = (struct virtio_net_hdr){
			.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM |
				 VIRTIO_NET_HDR_F_DATA_VALID,
			.csum_start = start,
			.csum_offset = 8,
		};
		memset(frame, 0x5a, sizeof(frame));
		memcpy(frame + start, example, sizeof(example));
		memset(frame + start + 8, 0, 3);
		/* An odd byte at the end counts as if 0 followed. */
		assert_int_equal(vl_fix_complete_csum(&hdr, frame, start + 11u),
				 0);
		assert_memory_equal(frame + start + 8, "\x22\x0d", 2);
		assert_int_equal(hdr.flags, VIRTIO_NET_HDR_F_DATA_VALID);
		assert_int_equal(hdr.csum_start, 0);
		assert_int_equal(hdr.csum_offset, 0);
	}
}

static void checksum_is_never_0(void **state)
{
	struct virtio_net_hdr hdr = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_offset = 2,
	};
	uint8_t frame[4] = { 0xff, 0xff, 0, 0 };

	(void)state;
	assert_int_equal(vl_fix_complete_csum(&hdr, frame, sizeof(frame)), 0);
	assert_memory_equal(frame, "\xff\xff\xff\xff", 4);
}

static void checksum_outside_is_refused(void **state)
{
	uint8_t frame[16] = { 0 };

	(void)state;
	for (uint16_t at = 15; at < 18; at++) {
		struct virtio_net_hdr hdr = {
			.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
			.csum_start = (uint16_t)(at - 6),
			.csum_offset = 6,
		};

		assert_int_equal(
			vl_fix_complete_csum(&hdr, frame, sizeof(frame)),
			-EINVAL);
		hdr.csum_start = UINT16_MAX;
		hdr.csum_offset = UINT16_MAX;
		assert_int_equal(
			vl_fix_complete_csum(&hdr, frame, sizeof(frame)),
			-EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gso_follows_what_is_taken),
		cmocka_unit_test(tag_goes_behind_the_addresses),
		cmocka_unit_test(checksum_is_completed),
		cmocka_unit_test(checksum_is_never_0),
		cmocka_unit_test(checksum_outside_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
