/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy transmit: what is pending holds half of the ring at most, and one
 * destination a quarter of that; above it packets are copied, and their chains
 * come back while older ones are pending. No chain comes back before the kernel
 * has let go of it, whatever happens to the queue meanwhile.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "lane/zcopy.h"
#include "ring_fixture.h"
#include "zcopy_fixture.h"

#define LEN 1500u

static struct zcopy_fixture f;

static void init(void **state, uint32_t num)
{
	const struct dev_config c = {
		.engine = *(const enum vl_io_engine *)*state,
		.num = num,
	};

	zf_init(&f, &c, VL_ZEROCOPY_ON);
}

static void hold_all(void)
{
	pthread_mutex_lock(&f.d.lock);
	memset(f.hold, 1, sizeof(f.hold));
	pthread_mutex_unlock(&f.d.lock);
}

static void hold(uint32_t dest)
{
	pthread_mutex_lock(&f.d.lock);
	f.hold[dest] = true;
	pthread_mutex_unlock(&f.d.lock);
}

static void stall(uint32_t dest)
{
	pthread_mutex_lock(&f.d.lock);
	f.stalled[dest] = true;
	pthread_mutex_unlock(&f.d.lock);
}

static void copies(bool copied)
{
	pthread_mutex_lock(&f.d.lock);
	f.copied = copied;
	pthread_mutex_unlock(&f.d.lock);
}

static uint64_t zc_sent_to(uint32_t dest)
{
	uint64_t n;

	pthread_mutex_lock(&f.d.lock);
	n = f.zc_sent[dest];
	pthread_mutex_unlock(&f.d.lock);
	return n;
}

static uint64_t n_bad(void)
{
	uint64_t n;

	pthread_mutex_lock(&f.d.lock);
	n = f.bad;
	pthread_mutex_unlock(&f.d.lock);
	return n;
}

static void fail_next(int result, uint32_t n)
{
	pthread_mutex_lock(&f.d.lock);
	f.result = result;
	f.fail_n = n;
	pthread_mutex_unlock(&f.d.lock);
}

/* @n frames at once, so that none is slow before the last one was seen. */
static void send_to_all(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_true(zf_send(&f, i % ZF_DESTS, LEN, NULL) >= 0);
	dev_kick(&f.d, ZF_TX);
}

static uint64_t sum(const uint64_t *of)
{
	uint64_t n = 0;

	pthread_mutex_lock(&f.d.lock);
	for (unsigned int i = 0; i < ZF_DESTS; i++)
		n += of[i];
	pthread_mutex_unlock(&f.d.lock);
	return n;
}

/* Offers frames of all destinations for ever so long; @descs of each chain. */
static void window_of(void **state, uint32_t num, const struct zf_shape *s,
		      uint32_t descs)
{
	const struct vl_zc_snapshot *zc;

	init(state, num);
	hold_all();
	for (unsigned int round = 0; round < 60; round++) {
		for (unsigned int i = 0; i < num / descs; i++)
			if (zf_send(&f, (round + i) % ZF_DESTS, LEN, s) < 0)
				break;
		dev_kick(&f.d, ZF_TX);
		zf_nap_ms(1);
		zf_take(&f);
		zc = zf_zerocopy(&f);
		assert_true(zc->descs <= num / 2);
		assert_true(f.snap.pair[0].held_descs <= num / 2);
	}
	/* Exactly half, and the other half came back. */
	zc = zf_zerocopy(&f);
	assert_int_equal(zc->window, num / 2);
	assert_int_equal(zc->descs, num / 2);
	assert_int_equal(zc->descs_max, num / 2);
	assert_int_equal(zc->packets, num / 2 / descs);
	zf_wait_pending(&f, num / 2 / descs);
	zf_wait_back(&f, f.ids - num / 2 / descs);
	assert_int_equal(f.d.ring[ZF_TX].n_free, num / 2);
	assert_true(zf_counters(&f)->copy_window > 0);
	assert_true(sum(f.copy_sent) >= num);
	zf_release_all(&f);
	zf_check_end(&f);
	zf_free(&f);
}

static void window_is_half_of_the_ring(void **state)
{
	static const struct zf_shape shapes[] = {
		{ 1, RD_DIRECT },
		{ 2, RD_DIRECT },
		{ 3, RD_INDIRECT },
	};

	for (uint32_t num = 64; num <= 1024; num *= 4)
		for (size_t i = 0; i < VL_ARRAY_SIZE(shapes); i++)
			window_of(state, num, &shapes[i], i == 1 ? 2 : 1);
}

static void window_as_wanted(void **state)
{
	struct dev_config c = {
		.engine = *(const enum vl_io_engine *)*state,
		.num = 256,
		.zc.pending = 20,
	};

	zf_init(&f, &c, VL_ZEROCOPY_ON);
	hold_all();
	send_to_all(200);
	zf_wait_back(&f, 180);
	assert_int_equal(zf_zerocopy(&f)->descs_max, 20);
	assert_int_equal(f.snap.pair[0].zc.window, 20);
	zf_wait_pending(&f, 20);
	zf_release_all(&f);
	zf_check_end(&f);
	zf_free(&f);
}

static void slow_one_leaves_the_window_to_others(void **state)
{
	const struct vl_tx_counters *n;

	init(state, 256);
	hold(1);
	zf_send_many(&f, 1, LEN, 100);
	zf_wait_back(&f, 100 - 128 / 4);
	zf_wait_pending(&f, 128 / 4);
	assert_int_equal(zf_zerocopy(&f)->descs, 128 / 4);
	n = zf_counters(&f);
	assert_int_equal(n->copy_share, 100 - 128 / 4);
	/* The last ones were sent while the first ones pend. */
	assert_int_equal(n->out_of_order, 100 - 128 / 4);
	assert_int_equal(f.back[0], 128 / 4);
	for (unsigned int i = 0; i < 20; i++) {
		zf_send_many(&f, 2, LEN, 10);
		zf_wait_back(&f, 100 - 128 / 4 + 10 * (i + 1));
	}
	assert_int_equal(zc_sent_to(2), 200);
	n = zf_counters(&f);
	assert_int_equal(n->copy_window, 0);
	assert_int_equal(n->zc_packets, 128 / 4 + 200);
	zf_release_all(&f);
	zf_check_end(&f);
	zf_free(&f);
}

static void fast_ones_come_back_first(void **state)
{
	init(state, 256);
	hold(1);
	zf_send_many(&f, 1, LEN, 2);
	zf_send_many(&f, 2, LEN, 3);
	zf_send_many(&f, 1, LEN, 1);
	zf_send_many(&f, 2, LEN, 1);
	zf_wait_back(&f, 4);
	assert_int_equal(f.n_back, 4);
	assert_int_equal(f.back[0], 2);
	assert_int_equal(f.back[1], 3);
	assert_int_equal(f.back[2], 4);
	assert_int_equal(f.back[3], 6);
	assert_int_equal(zf_counters(&f)->out_of_order, 4);
	/* As soon as it is released, in whatever order. */
	zf_release(&f, 2);
	zf_wait_back(&f, 5);
	assert_int_equal(f.back[4], 5);
	zf_release(&f, 0);
	zf_wait_back(&f, 6);
	assert_int_equal(f.back[5], 0);
	assert_int_equal(zf_counters(&f)->out_of_order, 5);
	zf_release(&f, 0);
	zf_wait_back(&f, 7);
	assert_int_equal(f.back[6], 1);
	assert_int_equal(zf_counters(&f)->out_of_order, 5);
	zf_check_end(&f);
	zf_free(&f);
}

static void failed_send_is_freed_by_its_second_event(void **state)
{
	init(state, 64);
	hold(1);
	fail_next(-EINVAL, 1);
	zf_send_many(&f, 1, LEN, 2);
	zf_wait_pending(&f, 2);
	zf_nap_ms(20);
	assert_int_equal(zf_take(&f), 0);
	assert_int_equal(zf_counters(&f)->drop_refused, 1);
	assert_int_equal(f.snap.pair[0].tx.packets, 1);
	assert_int_equal(f.snap.pair[0].zc.packets, 2);
	/* Others do not wait for it. */
	zf_send_many(&f, 2, LEN, 100 % 64);
	zf_wait_back(&f, 36);
	zf_release(&f, 0);
	zf_wait_back(&f, 37);
	assert_int_equal(f.back[36], 0);
	zf_release_all(&f);
	zf_check_end(&f);
	zf_free(&f);
}

/* One way out: what it refuses goes back to the ring, but is not taken from
 * there again before the kernel has let go of it. */
static void refused_with_memory_in_use(void **state)
{
	init(state, 64);
	hold(1);
	fail_next(-EAGAIN, 1);
	zf_send_many(&f, 1, LEN, 1);
	zf_wait_pending(&f, 1);
	zf_nap_ms(20);
	assert_int_equal(sum(f.zc_sent), 0);
	assert_int_equal(sum(f.copy_sent), 0);
	assert_int_equal(zf_counters(&f)->blocked, 1);
	assert_int_equal(f.snap.pair[0].held_descs, 0);
	zf_release(&f, 0);
	zf_wait_pending(&f, 1);
	zf_nap_ms(5);
	zf_wait_pending(&f, 1);
	assert_int_equal(sum(f.zc_sent), 1);
	zf_release_all(&f);
	zf_check_end(&f);
	zf_free(&f);
}

/* And the queue stops meanwhile. */
static void refused_then_stopped(void **state)
{
	init(state, 64);
	fail_next(-EAGAIN, 1000000);
	zf_send_many(&f, 1, LEN, 5);
	zf_nap_ms(20);
	(void)dev_stop(&f.d, ZF_TX);
	assert_int_equal(zf_take(&f), 0);
	fail_next(0, 0);
	dev_start(&f.d, ZF_TX);
	zf_check_end(&f);
	zf_free(&f);
}

static void wait_sent(uint64_t n)
{
	uint64_t end = vl_now_ns() + 3 * VL_NS_PER_SEC;

	while (sum(f.zc_sent) + sum(f.copy_sent) < n && vl_now_ns() < end)
		zf_nap_ms(1);
	assert_int_equal(sum(f.zc_sent) + sum(f.copy_sent), n);
}

/* RLIMIT_MEMLOCK is used up: copied, in order; or dropped, where sends are not
 * linked, but then it does not happen again at once. */
static void no_memory_to_lock(void **state)
{
	for (unsigned int ways = 1; ways <= 4; ways += 3) {
		const struct dev_config c = {
			.engine = *(const enum vl_io_engine *)*state,
			.num = 256,
			.ways = ways > 1 ? ways : 0,
		};
		uint64_t copied;

		zf_init(&f, &c, VL_ZEROCOPY_ON);
		hold(1);
		zf_send_many(&f, 1, LEN, 20);
		zf_wait_pending(&f, 20);
		fail_next(-ENOMEM, 1);
		zf_send_many(&f, 1, LEN, 3);
		wait_sent(23 - (ways == 1));
		zf_send_many(&f, 2, LEN, 50);
		wait_sent(73 - (ways == 1));
		zf_wait_back(&f, 50);
		assert_int_equal(zf_counters(&f)->drop_nomem, ways == 1);
		copied = f.snap.pair[0].tx.copy_nomem;
		assert_true(copied > 0);
		assert_in_range(f.snap.pair[0].zc.window, 10, 40);
		zf_release_all(&f);
		zf_check_end(&f);
		assert_int_equal(sum(f.zc_sent) + sum(f.copy_sent),
				 73 - (ways == 1));
		zf_nap_ms(1020);
		zf_send_many(&f, 1, LEN, 1);
		zf_check_end(&f);
		assert_int_equal(zf_counters(&f)->copy_nomem, copied);
		zf_free(&f);
	}
}

static void useless_is_left_alone(void **state)
{
	const struct dev_config c = {
		.engine = *(const enum vl_io_engine *)*state,
		.num = 256,
	};
	uint64_t tried;

	zf_init(&f, &c, VL_ZEROCOPY_AUTO);
	copies(true);
	for (uint32_t i = 1; i <= 200; i++) {
		zf_send_many(&f, 1, 5000, 1);
		zf_wait_back(&f, i);
	}
	assert_int_equal(sum(f.zc_sent), VL_ZC_SAMPLE);
	assert_int_equal(zf_counters(&f)->zc_copied, VL_ZC_SAMPLE);
	assert_int_equal(zf_counters(&f)->copy_useless, 200 - VL_ZC_SAMPLE);
	/* Short ones are not tried at all. */
	zf_send_many(&f, 2, 3000, 1);
	zf_wait_back(&f, 201);
	assert_int_equal(zf_counters(&f)->copy_short, 1);
	/* It is different now, which is found out with a few. */
	copies(false);
	zf_nap_ms(1100);
	for (uint32_t i = 1; i <= 100; i++) {
		zf_send_many(&f, 1, 5000, 1);
		zf_wait_back(&f, 201 + i);
	}
	tried = sum(f.zc_sent) - VL_ZC_SAMPLE;
	assert_int_equal(tried, 100);
	zf_check_end(&f);
	zf_free(&f);
}

static void what_is_old_is_slow(void **state)
{
	init(state, 256);
	hold(1);
	zf_send_many(&f, 1, LEN, 1);
	zf_wait_pending(&f, 1);
	zf_nap_ms(120);
	assert_in_range(zf_zerocopy(&f)->oldest_ns, 100000000, 1000000000);
	zf_send_many(&f, 1, LEN, 5);
	zf_send_many(&f, 2, LEN, 5);
	zf_wait_back(&f, 10);
	assert_int_equal(zf_counters(&f)->copy_slow, 5);
	assert_int_equal(zc_sent_to(2), 5);
	zf_release_all(&f);
	zf_wait_back(&f, 11);
	zf_send_many(&f, 1, LEN, 1);
	zf_wait_back(&f, 12);
	assert_int_equal(zc_sent_to(1), 2);
	zf_check_end(&f);
	zf_free(&f);
}

static void small_ones_are_joined(void **state)
{
	init(state, 64);
	zf_send_many(&f, 1, f.d.hdr_len + VL_ZC_BYTES_ON - 1, 1);
	zf_wait_back(&f, 1);
	assert_int_equal(zf_counters(&f)->copied, 1);
	assert_int_equal(f.snap.pair[0].tx.copy_short, 1);
	zf_send_many(&f, 1, f.d.hdr_len + VL_ZC_BYTES_ON, 1);
	zf_wait_back(&f, 2);
	assert_int_equal(zf_counters(&f)->copied, 1);
	assert_int_equal(sum(f.zc_sent), 1);
	/* More pieces than the kernel takes, and than a slot has place for. */
	assert_true(zf_send(&f, 1, LEN,
			    &(struct zf_shape){ 18, RD_INDIRECT }) >= 0);
	dev_kick(&f.d, ZF_TX);
	zf_wait_back(&f, 3);
	assert_int_equal(zf_counters(&f)->copy_pieces, 1);
	assert_int_equal(sum(f.zc_sent), 1);
	zf_check_end(&f);
	zf_free(&f);
}

/* --tx-full=block: as others do it. */
static void classic_waits(void **state)
{
	const struct dev_config c = {
		.engine = *(const enum vl_io_engine *)*state,
		.num = 64,
		.tx_full = VL_TX_FULL_BLOCK,
	};

	zf_init(&f, &c, VL_ZEROCOPY_ON);
	hold(1);
	zf_send_many(&f, 1, LEN, 40);
	zf_send_many(&f, 2, LEN, 10);
	zf_wait_pending(&f, 32);
	zf_nap_ms(30);
	assert_int_equal(zf_take(&f), 0);
	assert_int_equal(sum(f.zc_sent), 32);
	assert_int_equal(sum(f.copy_sent), 0);
	/* One leaves, one may go. */
	zf_release(&f, 3);
	zf_wait_back(&f, 1);
	zf_wait_pending(&f, 32);
	assert_int_equal(f.back[0], 3);
	assert_int_equal(sum(f.zc_sent), 33);
	assert_true(zf_counters(&f)->blocked >= 1);
	zf_release_all(&f);
	zf_check_end(&f);
	assert_int_equal(sum(f.zc_sent), 50);
	zf_free(&f);
}

static void *release_later(void *arg)
{
	zf_nap_ms(*(const int *)arg);
	zf_release_all(&f);
	return NULL;
}

/* Fills the window, has it released in @ms, and does @what, which stops the
 * queue, meanwhile. */
static void with_full_window(void **state, int ms, void (*what)(void))
{
	static int after_ms;
	uint64_t start;
	pthread_t thread;

	init(state, 256);
	hold_all();
	send_to_all(250);
	zf_wait_back(&f, 250 - 128);
	zf_wait_pending(&f, 128);
	start = vl_now_ns();
	after_ms = ms;
	assert_int_equal(
		pthread_create(&thread, NULL, release_later, &after_ms), 0);
	what();
	assert_true(vl_now_ns() - start >= (uint64_t)(ms - 10) * 1000000);
	assert_int_equal(pthread_join(thread, NULL), 0);
	zf_wait_pending(&f, 0);
	zf_take(&f);
	assert_int_equal(f.n_back, 250);
	assert_int_equal(n_bad(), 0);
}

static bool reported; /* the log matters */

static void stop(void)
{
	if (reported)
		vl_log_set_level(VL_LOG_WARNING);
	(void)dev_stop(&f.d, ZF_TX);
	/* The answer is here: nothing is looked at any more. */
	for (uint32_t i = 0; i < ZF_CHAINS; i++)
		memset(dev_ptr(&f.d, f.gpa[i]), 0xdd, ZF_BUFFER);
	reported = false;
}

static void stop_waits_for_what_is_pending(void **state)
{
	with_full_window(state, 60, stop);
	assert_int_equal(zf_zerocopy(&f)->packets, 0);
	dev_start(&f.d, ZF_TX);
	zf_send_many(&f, 1, LEN, 10);
	zf_check_end(&f);
	zf_free(&f);
}

/* One that takes long says in the log for whom it waits. */
static void slow_stop_is_reported(void **state)
{
	char text[1024] = "", want[64];
	FILE *log = tmpfile();
	int err = dup(STDERR_FILENO);
	size_t n;

	assert_true(log && err >= 0);
	(void)fflush(stderr);
	assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
	reported = true;
	with_full_window(state, 1150, stop);
	(void)dup2(err, STDERR_FILENO);
	close(err);
	rewind(log);
	n = fread(text, 1, sizeof(text) - 1, log);
	(void)fclose(log);
	(void)snprintf(want, sizeof(want), "let go of %u packets, the oldest",
		       128u);
	assert_true(n > 0);
	assert_non_null(strstr(text, "stopping for 1 s"));
	assert_non_null(strstr(text, want));
	assert_non_null(strstr(text, "of lane 0"));
	/* Once: again after ten seconds. */
	assert_null(strstr(strstr(text, "stopping") + 1, "stopping"));
	zf_free(&f);
}

/* What SET_MEM_TABLE does. */
static void new_memory(void)
{
	struct vl_guest_mem *mem;
	struct vl_mem_region region = fix_region(&f.d.mem);

	(void)dev_stop(&f.d, ZF_TX);
	assert_int_equal(vl_guest_mem_new(&region, 1, &mem), 0);
	assert_int_equal(vl_device_set_mem(f.d.dev, mem), 0);
	vl_guest_mem_put(f.d.gmem);
	f.d.gmem = mem;
	dev_start(&f.d, ZF_TX);
}

static void new_memory_waits_too(void **state)
{
	with_full_window(state, 60, new_memory);
	zf_send_many(&f, 1, LEN, 10);
	zf_check_end(&f);
	zf_free(&f);
}

static void reset(void)
{
	(void)dev_stop(&f.d, ZF_TX);
	vl_device_reset(f.d.dev);
}

static void reset_waits_too(void **state)
{
	with_full_window(state, 60, reset);
	zf_free(&f);
}

static void end_waits_too(void **state)
{
	static const int ms = 60;
	pthread_t thread;

	init(state, 64);
	hold_all();
	send_to_all(60);
	zf_wait_pending(&f, 32);
	assert_int_equal(pthread_create(&thread, NULL, release_later,
					(void *)(uintptr_t)&ms),
			 0);
	/* As a disconnect does it, and the end of the daemon. */
	vl_device_free(f.d.dev);
	f.d.dev = NULL;
	assert_int_equal(pthread_join(thread, NULL), 0);
	zf_take(&f);
	assert_int_equal(f.n_back, 60);
	zf_free(&f);
}

/* The guest breaks its queue; what is pending comes back nevertheless. */
static void break_queue(void)
{
	f.d.ring[ZF_TX].avail->idx += 1000;
	rd_kick(&f.d.ring[ZF_TX]);
	zf_nap_ms(20);
	dev_snapshot(&f.d, &f.snap);
	assert_true(f.snap.pair[0].txq.broken);
	assert_int_equal(f.snap.pair[0].zc.descs, 128);
	(void)dev_stop(&f.d, ZF_TX);
}

static void broken_while_pending(void **state)
{
	with_full_window(state, 60, break_queue);
	zf_free(&f);
}

/* Two memories at once: new packets are copied while a stop waits. */
static void nothing_new_while_stopping(void **state)
{
	with_full_window(state, 60, stop);
	assert_int_equal(sum(f.zc_sent), 128);
	zf_free(&f);
}

/* Side lanes that are full, sends that are refused while their memory is in
 * use, stops in between: everything comes back, in order of each destination,
 * and unchanged. */
static void lanes_and_stops(void **state)
{
	const struct dev_config c = {
		.engine = *(const enum vl_io_engine *)*state,
		.num = 256,
		.ways = 4,
	};
	uint64_t rnd = 1;

	zf_init(&f, &c, VL_ZEROCOPY_ON);
	stall(1);
	stall(2);
	hold(1);
	hold(3);
	for (unsigned int round = 0; round < 400; round++) {
		uint32_t dest = rd_range(&rnd, 0, 5);

		for (uint32_t n = rd_range(&rnd, 1, 40); n; n--)
			if (f.ids + 300 > ZF_IDS ||
			    zf_send(&f, dest, rd_range(&rnd, 100, 5000),
				    &(struct zf_shape){ rd_range(&rnd, 1, 4),
							RD_INDIRECT }) < 0)
				break;
		dev_kick(&f.d, ZF_TX);
		zf_take(&f);
		dev_snapshot(&f.d, &f.snap);
		assert_true(f.snap.pair[0].held_descs <= 128);
		assert_true(f.snap.pair[0].zc.descs <= 128);
		if (round % 8 == 7) {
			zf_release_all(&f);
			stall(1 + round / 8 % 3);
			hold(round / 8 % 5);
		}
		if (round % 40 == 39) {
			zf_release_all(&f);
			(void)dev_stop(&f.d, ZF_TX);
			zf_take(&f);
			assert_int_equal(f.d.ring[ZF_TX].in_flight,
					 (uint16_t)(f.d.ring[ZF_TX].avail_idx -
						    f.d.ring[ZF_TX].last_used));
			dev_start(&f.d, ZF_TX);
		}
	}
	assert_true(f.snap.pair[0].tx.zc_packets > 100);
	zf_release_all(&f);
	zf_check_end(&f);
	zf_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_is_half_of_the_ring),
		cmocka_unit_test(window_as_wanted),
		cmocka_unit_test(slow_one_leaves_the_window_to_others),
		cmocka_unit_test(fast_ones_come_back_first),
		cmocka_unit_test(failed_send_is_freed_by_its_second_event),
		cmocka_unit_test(refused_with_memory_in_use),
		cmocka_unit_test(refused_then_stopped),
		cmocka_unit_test(no_memory_to_lock),
		cmocka_unit_test(useless_is_left_alone),
		cmocka_unit_test(what_is_old_is_slow),
		cmocka_unit_test(small_ones_are_joined),
		cmocka_unit_test(classic_waits),
		cmocka_unit_test(stop_waits_for_what_is_pending),
		cmocka_unit_test(slow_stop_is_reported),
		cmocka_unit_test(new_memory_waits_too),
		cmocka_unit_test(reset_waits_too),
		cmocka_unit_test(end_waits_too),
		cmocka_unit_test(broken_while_pending),
		cmocka_unit_test(nothing_new_while_stopping),
		cmocka_unit_test(lanes_and_stops),
	};

	return dev_run_with_engines(tests, VL_ARRAY_SIZE(tests));
}
