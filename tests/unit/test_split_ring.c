/* SPDX-License-Identifier: BSD-3-Clause */
/* The device side of the split ring against a driver that follows the rules:
 * layouts, indices, notifications, unpop. Broken drivers: test_ring_abuse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ring_fixture.h"

static struct fixture fix;

#define BUF (FIX_SPLIT + 0x1000)

static struct rd_seg seg(uint64_t gpa, uint32_t len)
{
	return (struct rd_seg){ gpa, len };
}

/* One direct device-readable chain of 64 bytes; its head. */
static uint16_t add_simple(struct fixture *f)
{
	struct rd_seg s = seg(BUF, 64);
	int head = rd_add(&f->ring, &s, 1, 0, RD_DIRECT, 0);

	assert_true(head >= 0);
	return (uint16_t)head;
}

static void pop_ok(struct fixture *f)
{
	assert_int_equal(vl_vq_pop(&f->vq, &f->chain), 1);
}

/* @n chains through the queue and back, in batches of at most @batch. */
static void roundtrip(struct fixture *f, uint32_t n, uint32_t batch)
{
	while (n) {
		uint32_t k = n < batch ? n : batch;
		struct rd_done done;

		for (uint32_t i = 0; i < k; i++)
			add_simple(f);
		rd_publish(&f->ring);
		assert_int_equal(vl_vq_available(&f->vq), k);
		for (uint32_t i = 0; i < k; i++) {
			pop_ok(f);
			vl_vq_push(&f->vq, f->chain.head, i);
		}
		assert_int_equal(vl_vq_pop(&f->vq, &f->chain), 0);
		assert_int_equal(rd_used_count(&f->ring), 0);
		vl_vq_publish(&f->vq);
		assert_int_equal(rd_used_count(&f->ring), k);
		for (uint32_t i = 0; i < k; i++) {
			assert_int_equal(rd_take(&f->ring, &done), 1);
			assert_int_equal(done.len, i);
		}
		n -= k;
	}
	assert_int_equal(f->ring.in_flight, 0);
}

static void every_size_works(void **state)
{
	(void)state;
	for (uint32_t num = 2; num <= VL_VQ_SIZE_MAX; num *= 2) {
		fix_init(&fix, &(struct fix_config){ .num = num });
		roundtrip(&fix, num * 2 + 1, num);
		fix_free(&fix);
	}
}

static void bad_sizes_and_pointers_are_refused(void **state)
{
	static const uint32_t bad[] = { 0, 1, 3, 255, 32767, 32769, 65536 };
	struct vl_virtqueue vq = { 0 };
	struct vl_vring vring, v;

	(void)state;
	fix_init(&fix, &(struct fix_config){ .num = 256 });
	fix_vring(&fix.ring, fix.mem, &vring);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		v = vring;
		v.num = bad[i];
		assert_int_equal(vl_vq_start(&vq, "bad", &v, fix.mem), -EINVAL);
	}
	v = vring;
	v.desc = NULL;
	assert_int_equal(vl_vq_start(&vq, "bad", &v, fix.mem), -EINVAL);
	v = vring;
	v.avail = NULL;
	assert_int_equal(vl_vq_start(&vq, "bad", &v, fix.mem), -EINVAL);
	v = vring;
	v.used = NULL;
	assert_int_equal(vl_vq_start(&vq, "bad", &v, fix.mem), -EINVAL);
	assert_int_equal(vl_vq_start(&vq, "bad", &vring, NULL), -EINVAL);
	assert_false(vq.running);
	fix_free(&fix);
}

static void indices_wrap(void **state)
{
	static const uint16_t starts[] = { 65535, 65534, 65280, 32768, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct fix_config c = { .num = 256,
					.start = starts[i],
					.event_idx = i % 2 };

		fix_init(&fix, &c);
		roundtrip(&fix, 70000, 200);
		assert_int_equal(vl_vq_stop(&fix.vq),
				 (uint16_t)(starts[i] + 70000));
		fix_free(&fix);
	}
}

/* Ordinary layouts: the buffers of a chain appear in order, readable first. */
static void layouts_are_translated(void **state)
{
	struct rd_seg s[4] = { seg(BUF, 10), seg(BUF + 100, 1),
			       seg(FIX_LOW + 0x300000, 1500),
			       seg(BUF + 9000, 7) };

	(void)state;
	for (int layout = RD_DIRECT; layout < RD_LAYOUTS; layout++)
		for (unsigned int n_out = 0; n_out <= 4; n_out++) {
			struct vl_chain *c = &fix.chain;

			fix_init(&fix, &(struct fix_config){ .num = 8 });
			assert_true(rd_add(&fix.ring, s, n_out, 4 - n_out,
					   (enum rd_layout)layout, 0) >= 0);
			rd_publish(&fix.ring);
			pop_ok(&fix);
			assert_int_equal(c->n_readable, n_out);
			assert_int_equal(c->n_writable, 4 - n_out);
			assert_int_equal(c->len_readable + c->len_writable,
					 1518);
			for (unsigned int i = 0; i < 4; i++) {
				assert_ptr_equal(c->iov[i].iov_base,
						 fix_host(&fix, s[i].gpa));
				assert_int_equal(c->iov[i].iov_len, s[i].len);
			}
			vl_vq_push(&fix.vq, c->head, 0);
			fix_free(&fix);
		}
}

/* A buffer across two regions is two entries, even when they are adjacent for
 * the guest. */
static void buffer_across_regions(void **state)
{
	struct rd_seg s[3] = { seg(FIX_SPLIT - 5, 12), seg(FIX_SPLIT - 1, 2),
			       seg(FIX_END - 3, 3) };
	struct vl_chain *c = &fix.chain;

	(void)state;
	fix_init(&fix, &(struct fix_config){ .num = 8 });
	rd_add(&fix.ring, s, 1, 2, RD_DIRECT, 0);
	rd_publish(&fix.ring);
	pop_ok(&fix);
	assert_int_equal(c->n_readable, 2);
	assert_int_equal(c->iov[0].iov_len, 5);
	assert_int_equal(c->iov[1].iov_len, 7);
	assert_int_equal(c->len_readable, 12);
	assert_int_equal(c->n_writable, 3);
	assert_int_equal(c->iov[2].iov_len, 1);
	assert_ptr_equal(c->iov[3].iov_base, fix_host(&fix, FIX_SPLIT));
	assert_int_equal(c->len_writable, 5);
	vl_vq_push(&fix.vq, c->head, 5);
	fix_free(&fix);
}

/* An indirect table across two regions, split inside a descriptor. */
static void table_across_regions(void **state)
{
	(void)state;
	for (unsigned int before = 1; before < 48; before++) {
		struct vring_desc d[3];
		uint64_t gpa = FIX_SPLIT - before;

		fix_init(&fix, &(struct fix_config){ .num = 8 });
		for (unsigned int i = 0; i < 3; i++)
			d[i] = (struct vring_desc){
				.addr = BUF + 64 * i,
				.len = 10 + i,
				.flags = i < 2 ? VRING_DESC_F_NEXT : 0,
				.next = (uint16_t)(i + 1),
			};
		memcpy(rd_mem_ptr(&fix.low, gpa), d, before);
		memcpy(fix.high.base, (char *)d + before, 48 - before);
		rd_desc(&fix.ring, 0, seg(gpa, 48), VRING_DESC_F_INDIRECT, 0);
		rd_avail(&fix.ring, 0);
		rd_publish(&fix.ring);
		pop_ok(&fix);
		assert_int_equal(fix.chain.n_readable, 3);
		assert_int_equal(fix.chain.len_readable, 33);
		vl_vq_push(&fix.vq, 0, 0);
		fix_free(&fix);
	}
}

/* Empty buffers are left out wherever they are and whatever they point at. */
static void empty_buffers_are_left_out(void **state)
{
	(void)state;
	for (unsigned int at = 0; at < 3; at++)
		for (int mapped = 0; mapped < 2; mapped++) {
			struct rd_seg s[3] = { seg(BUF, 20), seg(BUF, 20),
					       seg(BUF, 20) };

			s[at] = seg(mapped ? BUF : UINT64_MAX - 3, 0);
			fix_init(&fix, &(struct fix_config){ .num = 8 });
			rd_add(&fix.ring, s, 3, 0, RD_DIRECT, 0);
			rd_add(&fix.ring, s, 1, 2, RD_INDIRECT, 0);
			rd_publish(&fix.ring);
			pop_ok(&fix);
			assert_int_equal(fix.chain.n_readable, 2);
			assert_int_equal(fix.chain.len_readable, 40);
			vl_vq_push(&fix.vq, fix.chain.head, 0);
			pop_ok(&fix);
			assert_int_equal(fix.chain.len_readable +
						 fix.chain.len_writable,
					 40);
			vl_vq_push(&fix.vq, fix.chain.head, 0);
			fix_free(&fix);
		}
}

static void more_room_is_asked_for(void **state)
{
	struct rd_seg s[3] = { seg(BUF, 1), seg(BUF, 1), seg(BUF, 1) };
	int head;

	(void)state;
	fix_init(&fix, &(struct fix_config){ .num = 8 });
	head = rd_add(&fix.ring, s, 2, 1, RD_DIRECT, 0);
	rd_publish(&fix.ring);
	fix.chain.iov_cap = 2;
	assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), -ENOBUFS);
	assert_int_equal(fix.vq.popped, 0);
	assert_int_equal(vl_vq_available(&fix.vq), 1);
	fix.chain.iov_cap = 3;
	pop_ok(&fix);
	assert_int_equal(fix.chain.head, head);
	vl_vq_push(&fix.vq, fix.chain.head, 1);
	fix_free(&fix);
}

static void longest_chain_that_is_promised(void **state)
{
	struct vl_chain *c = &fix.chain;

	(void)state;
	/* 1024 buffers pass; one more does not, and costs that chain only. */
	for (uint32_t n = VL_CHAIN_IOV_MAX; n <= VL_CHAIN_IOV_MAX + 1; n++) {
		fix_init(&fix, &(struct fix_config){ .num = 2048 });
		for (uint16_t i = 0; i < n; i++)
			rd_desc(&fix.ring, i, seg(BUF + i, 1),
				i + 1u < n ? VRING_DESC_F_NEXT : 0,
				(uint16_t)(i + 1));
		rd_avail(&fix.ring, 0);
		rd_publish(&fix.ring);
		assert_int_equal(vl_vq_pop(&fix.vq, c),
				 n == VL_CHAIN_IOV_MAX ? 1 : -EBADMSG);
		assert_int_equal(fix.vq.errors[VL_VQ_TOO_LONG],
				 n == VL_CHAIN_IOV_MAX ? 0 : 1);
		vl_vq_push(&fix.vq, c->head, 0);
		assert_false(fix.vq.broken);
		fix_free(&fix);
	}
}

/* Chains complete in any order, each with its own length. */
static void completes_out_of_order(void **state)
{
	uint16_t head[4];
	struct rd_done done;

	(void)state;
	fix_init(&fix, &(struct fix_config){ .num = 4 });
	for (int i = 0; i < 4; i++)
		head[i] = add_simple(&fix);
	rd_publish(&fix.ring);
	for (int i = 0; i < 4; i++)
		pop_ok(&fix);
	assert_int_equal(fix.vq.in_flight, 4);
	vl_vq_push(&fix.vq, head[2], 7);
	vl_vq_push(&fix.vq, head[0], 0);
	vl_vq_publish(&fix.vq);
	assert_int_equal(rd_used_count(&fix.ring), 2);
	assert_int_equal(rd_take(&fix.ring, &done), 1);
	assert_int_equal(done.head, head[2]);
	assert_int_equal(done.len, 7);
	assert_int_equal(rd_take(&fix.ring, &done), 1);
	assert_int_equal(done.head, head[0]);
	fix_check_balance(&fix.vq);
	vl_vq_push(&fix.vq, head[3], 0);
	vl_vq_push(&fix.vq, head[1], 0);
	vl_vq_publish(&fix.vq);
	assert_int_equal(rd_used_count(&fix.ring), 2);
	fix_free(&fix);
}

static void unpop_is_as_if_never_seen(void **state)
{
	uint16_t head[3];

	(void)state;
	fix_init(&fix, &(struct fix_config){ .num = 4, .start = 65534 });
	for (int i = 0; i < 3; i++)
		head[i] = add_simple(&fix);
	rd_publish(&fix.ring);
	for (int i = 0; i < 3; i++)
		pop_ok(&fix);
	vl_vq_push(&fix.vq, head[0], 0);
	vl_vq_unpop(&fix.vq, 2);
	fix_check_balance(&fix.vq);
	assert_int_equal(fix.vq.in_flight, 0);
	assert_int_equal(vl_vq_available(&fix.vq), 2);
	/* Stopped now, the driver is told to come again with the second. */
	assert_int_equal(vl_vq_stop(&fix.vq), 65535);
	assert_int_equal(rd_used_count(&fix.ring), 1);
	fix_start(&fix, 65535);
	pop_ok(&fix);
	assert_int_equal(fix.chain.head, head[1]);
	pop_ok(&fix);
	assert_int_equal(fix.chain.head, head[2]);
	assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), 0);
	vl_vq_push(&fix.vq, head[1], 0);
	vl_vq_push(&fix.vq, head[2], 0);
	vl_vq_publish(&fix.vq);
	assert_int_equal(rd_used_count(&fix.ring), 3);
	fix_free(&fix);
}

/* Pops and completes one chain, then says whether a call came. */
static bool complete_one(struct fixture *f)
{
	add_simple(f);
	rd_publish(&f->ring);
	pop_ok(f);
	vl_vq_push(&f->vq, f->chain.head, 0);
	vl_vq_publish(&f->vq);
	vl_vq_notify(&f->vq);
	return rd_calls(&f->ring) == 1;
}

static void take_all(struct fixture *f)
{
	struct rd_done done;

	while (rd_take(&f->ring, &done))
		;
}

static void call_flag_is_obeyed(void **state)
{
	(void)state;
	fix_init(&fix, &(struct fix_config){ .num = 8 });
	rd_enable_call(&fix.ring, 1);
	assert_true(complete_one(&fix));
	rd_disable_call(&fix.ring);
	assert_false(complete_one(&fix));
	assert_false(complete_one(&fix));
	rd_enable_call(&fix.ring, 1);
	take_all(&fix);
	assert_true(complete_one(&fix));
	assert_int_equal(fix.vq.notifications_sent, 2);
	assert_int_equal(fix.vq.notifications_suppressed, 2);
	/* Nothing new was completed: nothing to say. */
	vl_vq_notify(&fix.vq);
	assert_int_equal(rd_calls(&fix.ring), 0);
	take_all(&fix);
	fix_free(&fix);
}

static void call_event_index_is_obeyed(void **state)
{
	(void)state;
	for (uint32_t start = 65530; start < 65540; start++) {
		struct fix_config c = { .num = 16,
					.start = (uint16_t)start,
					.event_idx = true };

		fix_init(&fix, &c);
		assert_true(complete_one(&fix)); /* the first one always */
		take_all(&fix);
		assert_false(rd_enable_call(&fix.ring, 3));
		assert_false(complete_one(&fix));
		assert_false(complete_one(&fix));
		assert_true(complete_one(&fix));
		assert_false(complete_one(&fix));
		take_all(&fix);
		rd_enable_call(&fix.ring, 1);
		assert_true(complete_one(&fix));
		take_all(&fix);
		fix_free(&fix);
	}
}

/* One batch across the event index is one call. */
static void batch_makes_one_call(void **state)
{
	(void)state;
	fix_init(&fix, &(struct fix_config){ .num = 16, .event_idx = true });
	complete_one(&fix);
	take_all(&fix);
	rd_enable_call(&fix.ring, 5);
	for (int i = 0; i < 10; i++)
		add_simple(&fix);
	rd_publish(&fix.ring);
	for (int i = 0; i < 10; i++) {
		pop_ok(&fix);
		vl_vq_push(&fix.vq, fix.chain.head, 0);
	}
	vl_vq_publish(&fix.vq);
	vl_vq_notify(&fix.vq);
	assert_int_equal(rd_calls(&fix.ring), 1);
	take_all(&fix);
	fix_free(&fix);
}

/* B22: what was signalled before a stop says nothing after a restart. */
static void first_completion_after_restart_calls(void **state)
{
	(void)state;
	for (int event_idx = 0; event_idx < 2; event_idx++) {
		struct fix_config c = { .num = 8, .event_idx = event_idx };
		uint16_t base;

		fix_init(&fix, &c);
		complete_one(&fix);
		complete_one(&fix);
		take_all(&fix);
		base = vl_vq_stop(&fix.vq);
		rd_calls(&fix.ring);
		rd_disable_call(&fix.ring);
		if (event_idx)
			rd_set_used_event(&fix.ring, (uint16_t)(base + 100));
		fix_start(&fix, base);
		/* A notification without a completion would be a lie. */
		vl_vq_notify(&fix.vq);
		assert_int_equal(rd_calls(&fix.ring), 0);
		assert_true(complete_one(&fix));
		assert_false(complete_one(&fix));
		take_all(&fix);
		fix_free(&fix);
	}
}

/* Stopping tells the driver of everything that was pushed. */
static void stop_publishes_and_calls(void **state)
{
	(void)state;
	fix_init(&fix, &(struct fix_config){ .num = 8 });
	add_simple(&fix);
	rd_publish(&fix.ring);
	pop_ok(&fix);
	vl_vq_push(&fix.vq, fix.chain.head, 0);
	assert_int_equal(vl_vq_stop(&fix.vq), 1);
	assert_int_equal(rd_used_count(&fix.ring), 1);
	assert_int_equal(rd_calls(&fix.ring), 1);
	assert_false(fix.vq.running);
	assert_int_equal(vl_vq_available(&fix.vq), 0);
	take_all(&fix);
	fix_free(&fix);
}

/* A driver that was reset starts at used index 0 whatever went before. */
static void restart_reads_the_used_index(void **state)
{
	(void)state;
	fix_init(&fix, &(struct fix_config){ .num = 8, .start = 500 });
	roundtrip(&fix, 13, 4);
	vl_vq_stop(&fix.vq);
	rd_ring_reset(&fix.ring, 0);
	fix_start(&fix, 0);
	roundtrip(&fix, 13, 4);
	fix_free(&fix);
}

/* DPDK's virtio-user gives base 0 to the back-end that follows a killed one. */
static void restart_with_a_wrong_base_repeats_nothing(void **state)
{
	(void)state;
	for (uint16_t base = 0; base < 8; base += 7) {
		fix_init(&fix, &(struct fix_config){ .num = 8, .start = 500 });
		roundtrip(&fix, 5, 1);
		vl_vq_stop(&fix.vq);
		fix_start(&fix, base);
		roundtrip(&fix, 13, 4);
		fix_free(&fix);
	}
}

static void kick_flag_follows_the_device(void **state)
{
	(void)state;
	fix_init(&fix, &(struct fix_config){ .num = 8 });
	assert_true(rd_want_kick(&fix.ring)); /* wanted from the start */
	assert_false(vl_vq_enable_kick(&fix.vq));
	vl_vq_disable_kick(&fix.vq);
	assert_false(rd_want_kick(&fix.ring));
	assert_false(vl_vq_enable_kick(&fix.vq));
	assert_true(rd_want_kick(&fix.ring));
	fix_free(&fix);
}

static void kick_event_index_follows_the_device(void **state)
{
	(void)state;
	for (uint32_t start = 65530; start < 65540; start++) {
		struct fix_config c = { .num = 8,
					.start = (uint16_t)start,
					.event_idx = true };

		fix_init(&fix, &c);
		for (int i = 0; i < 3; i++) {
			assert_false(vl_vq_enable_kick(&fix.vq));
			add_simple(&fix);
			rd_publish(&fix.ring);
			assert_true(rd_want_kick(&fix.ring));
			pop_ok(&fix);
			vl_vq_disable_kick(&fix.vq);
			add_simple(&fix);
			rd_publish(&fix.ring);
			assert_false(rd_want_kick(&fix.ring));
			pop_ok(&fix);
			vl_vq_push(&fix.vq, fix.chain.head, 0);
			vl_vq_push(&fix.vq, fix.chain.head == 7 ? 6 : 7, 0);
			vl_vq_publish(&fix.vq);
			take_all(&fix);
		}
		fix_free(&fix);
	}
}

/* B25: what slipped in while notifications were off is found. */
static void enable_kick_looks_again(void **state)
{
	(void)state;
	for (int event_idx = 0; event_idx < 2; event_idx++) {
		struct fix_config c = { .num = 8, .event_idx = event_idx };

		fix_init(&fix, &c);
		assert_false(vl_vq_enable_kick(&fix.vq));
		vl_vq_disable_kick(&fix.vq);
		add_simple(&fix);
		rd_publish(&fix.ring);
		assert_true(vl_vq_enable_kick(&fix.vq));
		pop_ok(&fix);
		vl_vq_push(&fix.vq, fix.chain.head, 0);
		assert_false(vl_vq_enable_kick(&fix.vq));
		fix_free(&fix);
	}
}

/* Random layouts, batches and completion order over several index wraps. */
static void random_traffic_balances(void **state)
{
	static uint16_t held[64];
	uint64_t rnd = 42;
	uint32_t n_held = 0;

	(void)state;
	fix_init(&fix, &(struct fix_config){ .num = 64, .event_idx = true });
	for (uint32_t step = 0; step < 300000; step++) {
		struct rd_seg s[6];
		unsigned int n = rd_range(&rnd, 1, 6);
		unsigned int n_out = rd_range(&rnd, 0, n);
		uint32_t bytes = 0;
		struct rd_done done;

		for (unsigned int i = 0; i < n; i++) {
			s[i] = seg(BUF + rd_range(&rnd, 0, 4000),
				   rd_range(&rnd, 1, 2000));
			bytes += s[i].len;
		}
		if (rd_add(&fix.ring, s, n_out, n - n_out,
			   (enum rd_layout)rd_range(&rnd, 0, 2), bytes) >= 0)
			rd_publish(&fix.ring);
		while (n_held < 64 && rd_range(&rnd, 0, 2) &&
		       vl_vq_pop(&fix.vq, &fix.chain) == 1) {
			if (rd_range(&rnd, 0, 9) == 0) {
				vl_vq_unpop(&fix.vq, 1);
				break;
			}
			assert_int_equal(fix.ring.chain[fix.chain.head].cookie,
					 fix.chain.len_readable +
						 fix.chain.len_writable);
			held[n_held++] = fix.chain.head;
		}
		while (n_held && rd_range(&rnd, 0, 1)) {
			uint32_t i = rd_range(&rnd, 0, n_held - 1);

			vl_vq_push(&fix.vq, held[i], held[i]);
			held[i] = held[--n_held];
		}
		vl_vq_publish(&fix.vq);
		while (rd_take(&fix.ring, &done))
			assert_int_equal(done.len, done.head);
	}
	fix_check_balance(&fix.vq);
	assert_int_equal(fix.ring.bad_used, 0);
	assert_true(fix.vq.pushed > 100000);
	while (n_held)
		vl_vq_push(&fix.vq, held[--n_held], 0);
	fix_free(&fix);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_works),
		cmocka_unit_test(bad_sizes_and_pointers_are_refused),
		cmocka_unit_test(indices_wrap),
		cmocka_unit_test(layouts_are_translated),
		cmocka_unit_test(buffer_across_regions),
		cmocka_unit_test(table_across_regions),
		cmocka_unit_test(empty_buffers_are_left_out),
		cmocka_unit_test(more_room_is_asked_for),
		cmocka_unit_test(longest_chain_that_is_promised),
		cmocka_unit_test(completes_out_of_order),
		cmocka_unit_test(unpop_is_as_if_never_seen),
		cmocka_unit_test(call_flag_is_obeyed),
		cmocka_unit_test(call_event_index_is_obeyed),
		cmocka_unit_test(batch_makes_one_call),
		cmocka_unit_test(first_completion_after_restart_calls),
		cmocka_unit_test(stop_publishes_and_calls),
		cmocka_unit_test(restart_reads_the_used_index),
		cmocka_unit_test(restart_with_a_wrong_base_repeats_nothing),
		cmocka_unit_test(kick_flag_follows_the_device),
		cmocka_unit_test(kick_event_index_follows_the_device),
		cmocka_unit_test(enable_kick_looks_again),
		cmocka_unit_test(random_traffic_balances),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
