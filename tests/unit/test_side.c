/* SPDX-License-Identifier: BSD-3-Clause */
/* A side lane's FIFO, what is known of its drain rate, and what follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "lane/side.h"

#define MS   1000000ULL
#define LANE 3u
#define RATE 1000000ULL /* bytes per second: 1 KB in each ms */

static struct vl_side side, other;
static struct vl_dest dest;
static struct vl_pkt pkt[8];

/* A FIFO of packets 0 to @n - 1, of 100, 101, ... bytes. */
static void init(unsigned int n)
{
	memset(&side, 0, sizeof(side));
	memset(&other, 0, sizeof(other));
	memset(pkt, 0, sizeof(pkt));
	dest = (struct vl_dest){ .lane = LANE };
	for (unsigned int i = 0; i < 8; i++)
		pkt[i].len = 100 + i;
	for (unsigned int i = 0; i < n; i++)
		vl_side_append(&side, &dest, &pkt[i], 1000 + i);
}

/* @s holds the packets that @names names, '0' is the first, and counts them. */
static void check(const struct vl_side *s, const char *names)
{
	const struct vl_pkt *p = s->head, *last = NULL;
	uint64_t bytes = 0;
	uint32_t n = 0;

	for (; p && names[n]; p = p->next, n++) {
		assert_ptr_equal(p, &pkt[names[n] - '0']);
		assert_ptr_equal(p->dest, &dest);
		assert_int_equal(p->lane, LANE);
		bytes += p->len;
		last = p;
	}
	assert_null(p);
	assert_int_equal(n, strlen(names));
	assert_ptr_equal(s->tail, last);
	assert_int_equal(s->n_pkts, n);
	assert_int_equal(s->bytes, bytes);
}

static void packets_come_and_go(void **state)
{
	(void)state;
	init(0);
	check(&side, "");
	assert_true(vl_side_is_idle(&side));
	init(4);
	check(&side, "0123");
	assert_false(vl_side_is_idle(&side));
	assert_int_equal(dest.parked, 4);
	assert_int_equal(pkt[2].since_ns, 1002);
	assert_int_equal(side.used_ns, 1003);
	vl_side_unlink(&side, &pkt[0], &pkt[1]);
	check(&side, "023");
	assert_null(pkt[1].dest);
	assert_null(pkt[1].next);
	vl_side_unlink(&side, NULL, &pkt[0]);
	check(&side, "23");
	vl_side_unlink(&side, &pkt[2], &pkt[3]);
	check(&side, "2");
	vl_side_append(&side, &dest, &pkt[0], 2000);
	check(&side, "20");
	vl_side_unlink(&side, NULL, &pkt[2]);
	vl_side_unlink(&side, NULL, &pkt[0]);
	check(&side, "");
	assert_int_equal(dest.parked, 0);
}

/* Packet @i of three becomes parts 4 to 4 + @n - 1. */
static void replace(unsigned int i, unsigned int n, bool parked,
		    const char *names)
{
	init(3);
	pkt[i].parked = parked;
	for (unsigned int k = 4; k < 4 + n; k++)
		pkt[k].next = k + 1 < 4 + n ? &pkt[k + 1] : NULL;
	vl_side_replace(&side, i ? &pkt[i - 1] : NULL, &pkt[i], &pkt[4]);
	check(&side, names);
	assert_int_equal(dest.parked, 2 + n);
	assert_null(pkt[i].dest);
	for (unsigned int k = 4; k < 4 + n; k++) {
		assert_int_equal(pkt[k].since_ns, 1000 + i);
		assert_int_equal(pkt[k].parked, parked);
		assert_false(pkt[k].sending);
	}
	/* The end is where it seems to be. */
	vl_side_append(&side, &dest, &pkt[3], 3000);
	assert_ptr_equal(side.tail, &pkt[3]);
	assert_int_equal(side.n_pkts, 3 + n);
}

static void parts_take_its_place(void **state)
{
	(void)state;
	replace(0, 3, false, "45612");
	replace(1, 3, true, "04562");
	replace(2, 3, false, "01456");
	replace(1, 2, false, "0452");
	/* All there is. */
	init(1);
	pkt[4].next = &pkt[5];
	vl_side_replace(&side, NULL, &pkt[0], &pkt[4]);
	check(&side, "45");
}

static void take_over(unsigned int n, unsigned int n_other, const char *names)
{
	init(n);
	dest.lane = LANE + 1;
	for (unsigned int i = n; i < n + n_other; i++)
		vl_side_append(&other, &dest, &pkt[i], 1000);
	vl_side_take_over(&side, &other, LANE);
	check(&side, names);
	check(&other, "");
}

static void lanes_are_joined(void **state)
{
	(void)state;
	take_over(2, 3, "01234");
	take_over(0, 2, "01");
	take_over(2, 0, "01");
	take_over(0, 0, "");
}

#define SENDER_PACKETS 4u

static void long_enough_to_drop(void **state)
{
	(void)state;
	init(SENDER_PACKETS);
	assert_true(vl_side_is_short(&side));
	vl_side_append(&side, &dest, &pkt[SENDER_PACKETS], 2000);
	assert_false(vl_side_is_short(&side));
	/* One large one, and some that are nothing beside it. */
	vl_side_unlink(&side, &pkt[3], &pkt[4]);
	pkt[5].len = 60000;
	vl_side_append(&side, &dest, &pkt[5], 2000);
	assert_true(vl_side_is_short(&side));
}

/* From refusal to refusal, @ms later, the lane took @bytes and was writable. */
static void backlog(uint64_t *now, uint64_t ms, uint64_t bytes)
{
	*now += ms * MS;
	side.rate_bytes += bytes;
	side.drained = true;
	vl_side_measure(&side, *now);
}

/* The lane is full for the first time, at time *@now. */
static void first_refusal(uint64_t *now)
{
	init(0);
	*now = VL_NS_PER_SEC;
	vl_side_measure(&side, *now);
}

/* What the destination sent by the express lane has to leave first. */
static void rate_counts_from_the_first_drain(void **state)
{
	uint64_t now;

	(void)state;
	first_refusal(&now);
	/* However long that takes. */
	now += 500 * MS;
	vl_side_measure(&side, now);
	assert_int_equal(side.rate, 0);
	assert_false(side.measuring);
	backlog(&now, 100, 1000);
	assert_int_equal(side.rate, 0);
	assert_true(side.measuring);
	backlog(&now, 100, RATE / 10);
	assert_int_equal(side.rate, RATE);
	/* Smoothed. */
	backlog(&now, 100, 3 * RATE / 10);
	assert_int_equal(side.rate, 2 * RATE);
	/* Too short a time to measure in: it is part of the next one. */
	backlog(&now, 10, 0);
	backlog(&now, 90, 2 * RATE / 10);
	assert_int_equal(side.rate, 2 * RATE);
	/* Not writable in between. */
	now += 100 * MS;
	vl_side_measure(&side, now);
	assert_int_equal(side.rate, 2 * RATE);
}

/* After a pause, and for who has the lane next, it begins anew. */
static void rate_begins_anew(void **state)
{
	uint64_t now;

	(void)state;
	first_refusal(&now);
	backlog(&now, 100, 0);
	assert_true(side.measuring);
	side.rate_from_ns = 0;
	now += VL_NS_PER_SEC;
	vl_side_measure(&side, now);
	assert_false(side.measuring);
	assert_int_equal(side.rate, 0);
	backlog(&now, 100, 10 * RATE);
	assert_int_equal(side.rate, 0);
	backlog(&now, 100, RATE / 10);
	assert_int_equal(side.rate, RATE);
	vl_side_make_idle(&side);
	assert_int_equal(side.rate, 0);
	assert_int_equal(side.rate_from_ns, 0);
	assert_false(side.measuring);
}

static void drain_rate_is_what_time_allows(void **state)
{
	uint64_t now;

	(void)state;
	init(0);
	assert_true(vl_side_drain_rate(&side, VL_NS_PER_SEC) == UINT64_MAX);
	first_refusal(&now);
	assert_true(vl_side_drain_rate(&side, now) == UINT64_MAX);
	/* In the 100 ms that it is full it cannot have drained to half. */
	assert_int_equal(vl_side_drain_rate(&side, now + 100 * MS), 163840);
	backlog(&now, 100, 0);
	backlog(&now, 100, RATE / 10);
	assert_int_equal(vl_side_drain_rate(&side, now), RATE);
	assert_int_equal(vl_side_drain_rate(&side, now + 10 * MS), RATE);
	assert_int_equal(vl_side_drain_rate(&side, now + 100 * MS), 163840);
	side.rate_bytes = RATE / 10;
	assert_int_equal(vl_side_drain_rate(&side, now + 100 * MS), RATE);
}

static void limits_follow_the_rate(void **state)
{
	uint64_t now;

	(void)state;
	first_refusal(&now);
	/* Nothing is known. */
	assert_int_equal(vl_side_limit(&side, now), VL_FIFO_HELD_MAX);
	assert_int_equal(vl_side_cut_bytes(&side, now), VL_FIFO_BYTES_MAX);
	/* It is slow, but this may be for the express lane's packets. */
	now += 100 * MS;
	assert_int_equal(vl_side_limit(&side, now), VL_FIFO_HELD_MAX);
	assert_int_equal(vl_side_cut_bytes(&side, now), 163840 * 4 / 1000);
	backlog(&now, 0, 0);
	backlog(&now, 100, RATE / 10);
	assert_int_equal(vl_side_limit(&side, now), RATE * 25 / 1000);
	assert_int_equal(vl_side_cut_bytes(&side, now), RATE * 4 / 1000);
	assert_int_equal(vl_side_cut_bytes(&side, now + 100 * MS),
			 163840 * 4 / 1000);
	/* So fast that 25 ms of it are more than may be, but not 4 ms. */
	side.rate = 20 * RATE;
	assert_int_equal(vl_side_limit(&side, now), VL_FIFO_BYTES_MAX);
	assert_int_equal(vl_side_cut_bytes(&side, now), 80000);
	/* As fast as can be, and as slow. */
	side.rate = UINT64_MAX;
	assert_int_equal(vl_side_limit(&side, now), VL_FIFO_BYTES_MAX);
	assert_int_equal(vl_side_cut_bytes(&side, now), VL_FIFO_BYTES_MAX);
	side.rate = 1;
	assert_int_equal(vl_side_limit(&side, now), VL_FIFO_BYTES_MIN);
	assert_int_equal(vl_side_cut_bytes(&side, now), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_come_and_go),
		cmocka_unit_test(parts_take_its_place),
		cmocka_unit_test(lanes_are_joined),
		cmocka_unit_test(long_enough_to_drop),
		cmocka_unit_test(rate_counts_from_the_first_drain),
		cmocka_unit_test(rate_begins_anew),
		cmocka_unit_test(drain_rate_is_what_time_allows),
		cmocka_unit_test(limits_follow_the_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
