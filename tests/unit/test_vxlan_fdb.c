/* SPDX-License-Identifier: BSD-3-Clause */
/* Remotes and MAC addresses of the VXLAN backend. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/vxlan_fdb.h"
#include "base/barrier.h"
#include "base/clock.h"
#include "base/util.h"

#define SECOND VL_NS_PER_SEC
#define AGEING (300 * SECOND)

static struct vl_vxlan_fdb *new_fdb(uint64_t ageing_ns)
{
	struct vl_vxlan_fdb *fdb;

	assert_int_equal(vl_vxlan_fdb_new(ageing_ns, &fdb), 0);
	return fdb;
}

static struct vl_ip ip4(unsigned int host)
{
	return (struct vl_ip){
		.len = 4,
		.addr = { 10, 0, (uint8_t)(host >> 8), (uint8_t)host },
	};
}

static const uint8_t *mac_of(unsigned int n)
{
	static _Thread_local uint8_t mac[6];

	mac[0] = 2;
	memcpy(mac + 2, &n, sizeof(n));
	return mac;
}

/* A remote that is flooded to. */
static unsigned int add(struct vl_vxlan_fdb *fdb, unsigned int host)
{
	struct vl_ip ip = ip4(host);
	int remote = vl_vxlan_fdb_remote(fdb, &ip);

	assert_in_range(remote, 0, VL_VXLAN_REMOTES - 1);
	vl_vxlan_fdb_set_flood(fdb, (unsigned int)remote, true);
	return (unsigned int)remote;
}

static void remotes_keep_their_number(void **state)
{
	struct vl_vxlan_fdb *fdb = new_fdb(AGEING);
	struct vl_ip ip, none = { 0 };

	(void)state;
	assert_int_equal(vl_vxlan_fdb_remote(fdb, &none), -EINVAL);
	for (unsigned int i = 0; i < VL_VXLAN_REMOTES; i++) {
		ip = ip4(i);
		assert_int_equal(vl_vxlan_fdb_find(fdb, &ip), -ENOENT);
		assert_int_equal(vl_vxlan_fdb_remote(fdb, &ip), i);
		assert_int_equal(vl_vxlan_fdb_remotes(fdb), i + 1);
		assert_false(vl_vxlan_fdb_known(fdb, i));
	}
	for (unsigned int i = 0; i < VL_VXLAN_REMOTES; i++) {
		ip = ip4(i);
		assert_int_equal(vl_vxlan_fdb_remote(fdb, &ip), i);
		assert_int_equal(vl_vxlan_fdb_find(fdb, &ip), i);
		assert_true(vl_ip_equal(vl_vxlan_fdb_ip(fdb, i), &ip));
	}
	ip = ip4(VL_VXLAN_REMOTES);
	assert_int_equal(vl_vxlan_fdb_remote(fdb, &ip), -ENOSPC);
	assert_int_equal(vl_vxlan_fdb_find(fdb, &ip), -ENOENT);
	/* The same bytes in the other family. */
	ip = ip4(3);
	ip.len = 16;
	assert_int_equal(vl_vxlan_fdb_find(fdb, &ip), -ENOENT);
	vl_vxlan_fdb_free(fdb);
}

static void flooding(void **state)
{
	struct vl_vxlan_fdb *fdb = new_fdb(AGEING);
	static const unsigned int members[] = { 0, 5, 63, 64, 130, 255 };
	unsigned int at = 0;

	(void)state;
	for (unsigned int i = 0; i < VL_VXLAN_REMOTES; i++) {
		struct vl_ip ip = ip4(i);

		assert_int_equal(vl_vxlan_fdb_remote(fdb, &ip), i);
	}
	assert_int_equal(vl_vxlan_fdb_next_flood(fdb, 0), VL_VXLAN_REMOTES);
	for (unsigned int i = 0; i < VL_ARRAY_SIZE(members); i++)
		vl_vxlan_fdb_set_flood(fdb, members[i], true);
	for (unsigned int i = 0; i < VL_ARRAY_SIZE(members); i++) {
		at = vl_vxlan_fdb_next_flood(fdb, at);
		assert_int_equal(at, members[i]);
		assert_true(vl_vxlan_fdb_known(fdb, at));
		at++;
	}
	assert_int_equal(vl_vxlan_fdb_next_flood(fdb, at), VL_VXLAN_REMOTES);
	vl_vxlan_fdb_set_flood(fdb, 64, true);
	vl_vxlan_fdb_set_flood(fdb, 64, false);
	assert_false(vl_vxlan_fdb_known(fdb, 64));
	assert_int_equal(vl_vxlan_fdb_next_flood(fdb, 64), 130);
	vl_vxlan_fdb_free(fdb);
}

static void learning(void **state)
{
	struct vl_vxlan_fdb *fdb = new_fdb(AGEING);
	static const uint8_t group[6] = { 1, 0, 0x5e, 0, 0, 1 };
	static const uint8_t zero[6];
	unsigned int a = add(fdb, 1), b = add(fdb, 2);
	uint64_t now = 1000 * SECOND;

	(void)state;
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now),
			 VL_VXLAN_FLOOD);
	assert_int_equal(vl_vxlan_fdb_learn(fdb, mac_of(1), a, now),
			 VL_VXLAN_LEARNED);
	assert_int_equal(vl_vxlan_fdb_learn(fdb, mac_of(1), a, now),
			 VL_VXLAN_KNEW);
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now), a);
	assert_int_equal(vl_vxlan_fdb_learn(fdb, mac_of(1), b, now),
			 VL_VXLAN_MOVED);
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now), b);
	assert_int_equal(vl_vxlan_fdb_learn(fdb, group, a, now), VL_VXLAN_KNEW);
	assert_int_equal(vl_vxlan_fdb_learn(fdb, zero, a, now), VL_VXLAN_KNEW);
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, group, now), VL_VXLAN_FLOOD);
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, zero, now), VL_VXLAN_FLOOD);
	assert_int_equal(vl_vxlan_fdb_each(fdb, now, NULL, NULL), 1);
	vl_vxlan_fdb_learn_nothing(fdb);
	assert_int_equal(vl_vxlan_fdb_learn(fdb, mac_of(2), a, now),
			 VL_VXLAN_KNEW);
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(2), now),
			 VL_VXLAN_FLOOD);
	vl_vxlan_fdb_free(fdb);
}

static void ageing(void **state)
{
	struct vl_vxlan_fdb *fdb = new_fdb(AGEING), *ever = new_fdb(0);
	unsigned int a = add(fdb, 1), b = add(fdb, 2);
	uint64_t now = 1000 * SECOND;

	(void)state;
	vl_vxlan_fdb_learn(fdb, mac_of(1), a, now);
	now += AGEING - SECOND;
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now), a);
	/* Seen again: young again. */
	vl_vxlan_fdb_learn(fdb, mac_of(1), a, now);
	now += AGEING - SECOND;
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now), a);
	now += 2 * SECOND;
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now),
			 VL_VXLAN_FLOOD);
	assert_int_equal(vl_vxlan_fdb_each(fdb, now, NULL, NULL), 0);
	/* New again, wherever it is. */
	assert_int_equal(vl_vxlan_fdb_learn(fdb, mac_of(1), b, now),
			 VL_VXLAN_LEARNED);
	/* Another worker's clock may be a little behind. */
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now - SECOND), b);

	a = add(ever, 1);
	vl_vxlan_fdb_learn(ever, mac_of(1), a, now);
	assert_int_equal(
		vl_vxlan_fdb_lookup(ever, mac_of(1), now + 9999 * AGEING), a);
	vl_vxlan_fdb_free(fdb);
	vl_vxlan_fdb_free(ever);
}

static void a_remote_that_leaves(void **state)
{
	struct vl_vxlan_fdb *fdb = new_fdb(AGEING);
	unsigned int a = add(fdb, 1);
	uint64_t now = 1000 * SECOND;

	(void)state;
	vl_vxlan_fdb_learn(fdb, mac_of(1), a, now);
	vl_vxlan_fdb_set_flood(fdb, a, false);
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now),
			 VL_VXLAN_FLOOD);
	/* It comes back, what was learned does not. */
	vl_vxlan_fdb_set_flood(fdb, a, true);
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now),
			 VL_VXLAN_FLOOD);
	vl_vxlan_fdb_free(fdb);
}

static void static_entries(void **state)
{
	struct vl_vxlan_fdb *fdb = new_fdb(AGEING);
	static const uint8_t group[6] = { 1 };
	unsigned int a = add(fdb, 1), b;
	struct vl_ip ip = ip4(2);
	uint64_t now = 1000 * SECOND;

	(void)state;
	/* Known because of it, and only as long as it is there. */
	b = (unsigned int)vl_vxlan_fdb_remote(fdb, &ip);
	vl_vxlan_fdb_learn(fdb, mac_of(1), a, now);
	assert_int_equal(vl_vxlan_fdb_static_add(fdb, mac_of(1), b), 0);
	assert_int_equal(vl_vxlan_fdb_static_add(fdb, mac_of(2), b), 0);
	assert_int_equal(vl_vxlan_fdb_static_add(fdb, group, b), -EINVAL);
	assert_true(vl_vxlan_fdb_known(fdb, b));
	assert_int_equal(vl_vxlan_fdb_next_flood(fdb, a + 1), VL_VXLAN_REMOTES);
	assert_int_equal(vl_vxlan_fdb_learn(fdb, mac_of(1), a, now),
			 VL_VXLAN_KNEW);
	now += 9 * AGEING;
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now), b);
	assert_int_equal(vl_vxlan_fdb_each(fdb, now, NULL, NULL), 2);

	/* Twice is as once; then to another remote. */
	assert_int_equal(vl_vxlan_fdb_static_add(fdb, mac_of(1), b), 0);
	assert_int_equal(vl_vxlan_fdb_static_add(fdb, mac_of(1), a), 0);
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now), a);
	assert_true(vl_vxlan_fdb_known(fdb, b));
	assert_int_equal(vl_vxlan_fdb_static_del(fdb, mac_of(2)), 0);
	assert_false(vl_vxlan_fdb_known(fdb, b));
	assert_int_equal(vl_vxlan_fdb_static_del(fdb, mac_of(2)), -ENOENT);

	assert_int_equal(vl_vxlan_fdb_static_del(fdb, mac_of(1)), 0);
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now),
			 VL_VXLAN_FLOOD);
	vl_vxlan_fdb_learn(fdb, mac_of(1), a, now);
	assert_int_equal(vl_vxlan_fdb_static_del(fdb, mac_of(1)), -ENOENT);
	assert_true(vl_vxlan_fdb_known(fdb, a));
	vl_vxlan_fdb_free(fdb);
}

static void fill_statics(struct vl_vxlan_fdb *fdb, unsigned int n,
			 unsigned int remote)
{
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(
			vl_vxlan_fdb_static_add(fdb, mac_of(i), remote), 0);
}

/* Whatever the table's random factor is, addresses that follow each other do not
 * meet in few buckets. */
static void addresses_in_a_row(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 1000; i++) {
		struct vl_vxlan_fdb *fdb = new_fdb(AGEING);

		fill_statics(fdb, 600, add(fdb, 1));
		vl_vxlan_fdb_free(fdb);
	}
}

/* Addresses at random by the hundred thousand: old learned ones go, static ones
 * do not, and one that is in use stays. */
static void a_flood_of_addresses(void **state)
{
	struct vl_vxlan_fdb *fdb = new_fdb(AGEING);
	unsigned int a = add(fdb, 1), b = add(fdb, 2), full = 0;
	uint64_t now = 1000 * SECOND;

	(void)state;
	fill_statics(fdb, 1000, b);
	for (unsigned int i = 0; i < 300000; i++) {
		/* Seen every second; 1000 new addresses in each. */
		if (i % 1000 == 0) {
			now += SECOND;
			assert_int_not_equal(
				vl_vxlan_fdb_learn(fdb, mac_of(1u << 30), b,
						   now),
				VL_VXLAN_MOVED);
		}
		vl_vxlan_fdb_learn(fdb, mac_of(1000000 + i), a, now);
		assert_int_equal(
			vl_vxlan_fdb_lookup(fdb, mac_of(1u << 30), now), b);
	}
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(i), now), b);
	assert_in_range(vl_vxlan_fdb_each(fdb, now, NULL, NULL), 15000, 16384);
	/* Static ones alone can fill it. */
	for (unsigned int i = 2000000; i < 2100000; i++)
		full += vl_vxlan_fdb_static_add(fdb, mac_of(i), b) == -ENOSPC;
	assert_in_range(full, 100000 - 16384, 99999);
	/* What is left of the learned ones has to go. */
	(void)vl_vxlan_fdb_learn(fdb, mac_of(1), a, now);
	assert_int_equal(vl_vxlan_fdb_lookup(fdb, mac_of(1), now), b);
	vl_vxlan_fdb_free(fdb);
}

struct seen {
	unsigned int n, statics;
	bool ok;
};

static void see(void *ctx, const struct vl_vxlan_entry *e)
{
	struct seen *s = ctx;

	s->n++;
	s->statics += e->is_static;
	if (e->is_static)
		s->ok &= !memcmp(e->mac, mac_of(1), 6) && e->age_ns == 0;
	else
		s->ok &= !memcmp(e->mac, mac_of(2), 6) &&
			 e->age_ns / (SECOND / 10) >= 49 &&
			 e->age_ns / (SECOND / 10) <= 51;
}

static void listing(void **state)
{
	struct vl_vxlan_fdb *fdb = new_fdb(AGEING);
	unsigned int a = add(fdb, 1);
	struct seen s = { .ok = true };

	(void)state;
	vl_vxlan_fdb_static_add(fdb, mac_of(1), a);
	vl_vxlan_fdb_learn(fdb, mac_of(2), a, 1000 * SECOND);
	assert_int_equal(vl_vxlan_fdb_each(fdb, 1005 * SECOND, see, &s), 2);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.statics, 1);
	assert_true(s.ok);
	vl_vxlan_fdb_free(fdb);
}

/*
 * Workers learn the same addresses behind different remotes while the control
 * thread makes them static and deletes them again.
 */
#define THREADS   3u
#define ADDRESSES 64u
#define ROUNDS    100000u

static struct vl_vxlan_fdb *shared;
static bool stop;

static void *worker(void *arg)
{
	unsigned int me = *(unsigned int *)arg;

	while (!vl_load_acquire(&stop)) {
		for (unsigned int i = 0; i < ADDRESSES; i++) {
			uint64_t now = vl_now_ns();
			unsigned int remote;

			vl_vxlan_fdb_learn(shared, mac_of(i), me, now);
			/* Some that push out. */
			vl_vxlan_fdb_learn(shared, mac_of((unsigned int)now),
					   me, now);
			remote = vl_vxlan_fdb_lookup(shared, mac_of(i), now);
			if (remote > THREADS && remote != VL_VXLAN_FLOOD)
				return arg;
		}
	}
	return NULL;
}

static const uint8_t *wanted;

static void count(void *ctx, const struct vl_vxlan_entry *e)
{
	*(unsigned int *)ctx += !memcmp(e->mac, wanted, 6);
}

/* How often an address is in the table. */
static unsigned int occurrences(const uint8_t *mac)
{
	unsigned int n = 0;

	wanted = mac;
	vl_vxlan_fdb_each(shared, vl_now_ns(), count, &n);
	return n;
}

static void threads(void **state)
{
	pthread_t thread[THREADS];
	unsigned int number[THREADS], fixed;

	(void)state;
	shared = new_fdb(0);
	fixed = add(shared, 99);
	for (unsigned int i = 0; i < THREADS; i++)
		number[i] = add(shared, i);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, worker, &number[i]),
			0);
	for (unsigned int r = 0; r < ROUNDS; r++) {
		unsigned int i = r % ADDRESSES;

		assert_int_equal(
			vl_vxlan_fdb_static_add(shared, mac_of(i), fixed), 0);
		for (unsigned int again = 0; again < 20; again++)
			assert_int_equal(vl_vxlan_fdb_lookup(shared, mac_of(i),
							     vl_now_ns()),
					 fixed);
		if (r % 100 == 0)
			vl_vxlan_fdb_set_flood(
				shared, number[r / 100 % THREADS], r / 100 % 2);
		assert_int_equal(vl_vxlan_fdb_static_del(shared, mac_of(i)), 0);
	}
	for (unsigned int i = 0; i < ADDRESSES; i += 2)
		assert_int_equal(
			vl_vxlan_fdb_static_add(shared, mac_of(i), fixed), 0);
	vl_store_release(&stop, true);
	for (unsigned int i = 0; i < THREADS; i++) {
		void *bad;

		pthread_join(thread[i], &bad);
		assert_null(bad);
	}
	for (unsigned int i = 0; i < ADDRESSES; i++) {
		unsigned int n = occurrences(mac_of(i));

		assert_in_range(n, i % 2 ? 0 : 1, 1);
		if (i % 2 == 0)
			assert_int_equal(vl_vxlan_fdb_lookup(shared, mac_of(i),
							     vl_now_ns()),
					 fixed);
	}
	vl_vxlan_fdb_free(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remotes_keep_their_number),
		cmocka_unit_test(flooding),
		cmocka_unit_test(learning),
		cmocka_unit_test(ageing),
		cmocka_unit_test(a_remote_that_leaves),
		cmocka_unit_test(static_entries),
		cmocka_unit_test(addresses_in_a_row),
		cmocka_unit_test(a_flood_of_addresses),
		cmocka_unit_test(listing),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
