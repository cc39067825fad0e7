/* SPDX-License-Identifier: BSD-3-Clause */
/* What is a destination, and the table of those that left the express lane. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lane/dest.h"

static struct vl_dest_table table;

static struct vl_dest_key key_of(uint32_t n)
{
	struct vl_dest_key key = { .addr_len = 4 };

	memcpy(key.addr, &n, sizeof(n));
	return key;
}

static struct vl_dest *add(uint32_t n, uint8_t lane)
{
	struct vl_dest_key key = key_of(n);
	uint8_t evicted;

	return vl_dest_add(&table, &key, lane, &evicted);
}

static struct vl_dest *find(uint32_t n)
{
	struct vl_dest_key key = key_of(n);

	return vl_dest_find(&table, &key);
}

/* The key of a frame: addresses, @tags VLAN tags, then type and filler bytes
 * that count up from 100. */
static struct vl_dest_key parse(int tags, uint16_t type, size_t len)
{
	uint8_t frame[VL_DEST_PEEK];
	struct vl_dest_key key;
	size_t at = 12;

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(100 + i);
	for (int i = 0; i < tags; i++, at += 4) {
		frame[at] = i ? 0x81 : 0x88;
		frame[at + 1] = i ? 0x00 : 0xa8;
	}
	frame[at] = (uint8_t)(type >> 8);
	frame[at + 1] = (uint8_t)type;
	memset(&key, 0xee, sizeof(key));
	vl_dest_key(frame, len, &key);
	return key;
}

static void mac_alone(void **state)
{
	struct vl_dest_key key = parse(0, 0x0806, 62);

	(void)state;
	assert_memory_equal(key.mac, "defghi", 6);
	assert_int_equal(key.addr_len, 0);
	assert_int_equal(key.addr[0], 0);
	assert_int_equal(key.addr[15], 0);
	assert_int_equal(key.unused, 0);
}

static void ip_addresses(void **state)
{
	(void)state;
	for (int tags = 0; tags <= 2; tags++) {
		size_t at = 14 + 4 * (size_t)tags;
		struct vl_dest_key key = parse(tags, 0x0800, at + 20);

		assert_int_equal(key.addr_len, 4);
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(key.addr[i], 100 + at + 16 + i);
		assert_int_equal(key.addr[4], 0);
		/* Cut off within the header: the MAC address has to do. */
		assert_int_equal(parse(tags, 0x0800, at + 19).addr_len, 0);
		key = parse(tags, 0x86dd, at + 40);
		assert_int_equal(key.addr_len, 16);
		for (size_t i = 0; i < 16; i++)
			assert_int_equal(key.addr[i],
					 (uint8_t)(100 + at + 24 + i));
		assert_int_equal(parse(tags, 0x86dd, at + 39).addr_len, 0);
	}
	/* A third tag is not looked behind. */
	assert_int_equal(parse(3, 0x0800, 62).addr_len, 0);
}

static void short_frames(void **state)
{
	struct vl_dest_key zero = { 0 };

	(void)state;
	for (size_t len = 0; len < 14; len++) {
		struct vl_dest_key key = parse(0, 0x0800, len);

		assert_memory_equal(&key, &zero, sizeof(key));
	}
	for (size_t len = 14; len <= VL_DEST_PEEK; len++)
		assert_memory_equal(parse(2, 0x86dd, len).mac, "defghi", 6);
}

static void found_until_removed(void **state)
{
	(void)state;
	memset(&table, 0, sizeof(table));
	assert_null(find(1));
	for (uint32_t i = 0; i < 100; i++)
		assert_non_null(add(i, (uint8_t)(1 + i % 3)));
	assert_int_equal(table.count, 100);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(find(i)->lane, 1 + i % 3);
	assert_null(find(100));
	assert_int_equal(vl_dest_move(&table, 2, 3), 33);
	assert_int_equal(find(1)->lane, 3);
	vl_dest_remove_lane(&table, 3);
	assert_int_equal(table.count, 34);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(find(i) != NULL, i % 3 == 0);
	vl_dest_remove_lane(&table, 1);
	assert_int_equal(table.count, 0);
	assert_null(find(0));
}

/* A full table gives up those without waiting packets only. */
static void full_table_evicts_idle_ones(void **state)
{
	struct vl_dest_key key;
	uint32_t refused = 0, evictions = 0;
	uint8_t evicted;

	(void)state;
	memset(&table, 0, sizeof(table));
	for (uint32_t i = 0; i < 20 * VL_DEST_MAX; i++) {
		key = key_of(i);
		evicted = 99;
		assert_non_null(vl_dest_add(&table, &key, 5, &evicted));
		assert_true(evicted == 0 || evicted == 5);
		evictions += evicted != 0;
		assert_ptr_equal(vl_dest_find(&table, &key)->key.addr_len
					 ? find(i)
					 : NULL,
				 find(i));
	}
	assert_int_equal(table.count + evictions, 20 * VL_DEST_MAX);
	assert_true(table.count <= VL_DEST_MAX);
	for (uint32_t i = 0; i < VL_DEST_MAX; i++)
		table.entry[i].parked = table.entry[i].lane != 0;
	for (uint32_t i = 0; i < VL_DEST_MAX; i++)
		refused += !add(1000000 + i, 6);
	assert_true(refused > VL_DEST_MAX / 2);
	for (uint32_t i = 0; i < VL_DEST_MAX; i++)
		if (table.entry[i].parked)
			assert_int_equal(table.entry[i].lane, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mac_alone),
		cmocka_unit_test(ip_addresses),
		cmocka_unit_test(short_frames),
		cmocka_unit_test(found_until_removed),
		cmocka_unit_test(full_table_evicts_idle_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
