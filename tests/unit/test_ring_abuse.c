/* SPDX-License-Identifier: BSD-3-Clause */
/* Drivers that break the rules: what costs a chain, what breaks the queue. */
#include <errno.h>
#include <linux/virtio_ring.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "ring_fixture.h"

static struct fixture fix;

#define BUF   (FIX_SPLIT + 0x1000)
#define TABLE (FIX_LOW + 0x300000)
#define NEXT  VRING_DESC_F_NEXT
#define WRITE VRING_DESC_F_WRITE
#define IND   VRING_DESC_F_INDIRECT

static int setup(void **state)
{
	(void)state;
	/* Broken queues are logged, which is checked elsewhere. */
	vl_log_set_level(VL_LOG_ERROR);
	fix_init(&fix, &(struct fix_config){ .num = 8 });
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fix_free(&fix);
	return 0;
}

static struct rd_seg seg(uint64_t gpa, uint32_t len)
{
	return (struct rd_seg){ gpa, len };
}

static void desc(uint16_t i, struct rd_seg s, uint16_t flags, uint16_t next)
{
	rd_desc(&fix.ring, i, s, flags, next);
}

/* Entry @i of the indirect table at TABLE. */
static void entry(uint16_t i, struct rd_seg s, uint16_t flags, uint16_t next)
{
	struct vring_desc *t = rd_mem_ptr(&fix.low, TABLE);

	t[i] = (struct vring_desc){ s.gpa, s.len, flags, next };
}

/* The chain at descriptor 0 is refused for @why; the next one passes. */
static void expect_bad_chain(enum vl_vq_error why)
{
	struct rd_seg good = seg(BUF, 64);
	uint64_t before = fix.vq.errors[why];
	struct rd_done done;

	rd_avail(&fix.ring, 0);
	rd_publish(&fix.ring);
	assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), -EBADMSG);
	if (fix.vq.errors[why] != before + 1)
		fail_msg("not counted as: %s", vl_vq_error_name(why));
	assert_int_equal(fix.chain.head, 0);
	fix_check_balance(&fix.vq);
	vl_vq_push(&fix.vq, fix.chain.head, 0);

	desc(7, good, 0, 0);
	rd_avail(&fix.ring, 7);
	rd_publish(&fix.ring);
	assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), 1);
	assert_int_equal(fix.chain.len_readable, 64);
	vl_vq_push(&fix.vq, fix.chain.head, 0);
	vl_vq_publish(&fix.vq);
	assert_int_equal(rd_used_count(&fix.ring), 2);
	assert_int_equal(rd_take(&fix.ring, &done), -EINVAL); /* hand-made */
	assert_int_equal(done.head, 0);
	assert_int_equal(done.len, 0);
	rd_take(&fix.ring, &done);
	assert_false(fix.vq.broken);
	assert_int_equal(rd_errors(&fix.ring), 0);
}

/* The queue stops for good, says so once, and does nothing more. */
static void expect_broken(enum vl_vq_error why)
{
	assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), 0);
	assert_true(fix.vq.broken);
	assert_int_equal(fix.vq.errors[why], 1);
	assert_int_equal(rd_errors(&fix.ring), 1);
	assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), 0);
	assert_int_equal(vl_vq_available(&fix.vq), 0);
	assert_false(vl_vq_enable_kick(&fix.vq));
	assert_int_equal(fix.vq.errors[why], 1);
	assert_int_equal(rd_errors(&fix.ring), 0);
}

/* A restart by the driver mends it. */
static void expect_mended(void)
{
	vl_vq_stop(&fix.vq);
	rd_ring_reset(&fix.ring, 0);
	fix_start(&fix, 0);
	desc(0, seg(BUF, 64), 0, 0);
	rd_avail(&fix.ring, 0);
	rd_publish(&fix.ring);
	assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), 1);
	vl_vq_push(&fix.vq, fix.chain.head, 0);
}

/* B03 */
static void loops_end(void **state)
{
	(void)state;
	desc(0, seg(BUF, 10), NEXT, 0); /* itself */
	expect_bad_chain(VL_VQ_LOOP);
	desc(0, seg(BUF, 10), NEXT, 1); /* two */
	desc(1, seg(BUF, 10), NEXT, 0);
	expect_bad_chain(VL_VQ_LOOP);
	desc(0, seg(BUF, 0), NEXT, 0); /* nothing that lengths could stop */
	expect_bad_chain(VL_VQ_LOOP);
	desc(0, seg(BUF, 0), NEXT | WRITE, 1);
	desc(1, seg(BUF, 0), NEXT | WRITE, 0);
	expect_bad_chain(VL_VQ_LOOP);
	desc(0, seg(TABLE, 48), IND, 0); /* inside a table */
	entry(0, seg(BUF, 1), NEXT, 1);
	entry(1, seg(BUF, 1), NEXT, 2);
	entry(2, seg(BUF, 1), NEXT, 0);
	expect_bad_chain(VL_VQ_LOOP);
	entry(0, seg(BUF, 0), NEXT, 0);
	expect_bad_chain(VL_VQ_LOOP);
}

/* All of the table in one chain is no loop. */
static void full_table_is_no_loop(void **state)
{
	(void)state;
	for (uint16_t i = 0; i < 8; i++)
		desc(i, seg(BUF, 1), i < 7 ? NEXT : 0, (uint16_t)(i + 1));
	rd_avail(&fix.ring, 0);
	rd_publish(&fix.ring);
	assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), 1);
	assert_int_equal(fix.chain.n_readable, 8);
	vl_vq_push(&fix.vq, fix.chain.head, 0);
}

/* B05 */
static void indirect_length_is_checked(void **state)
{
	static const uint32_t bad[] = { 0,          1,          15,        17,
					16 * 32769, 0xfffffff0, 0xffffffff };

	(void)state;
	entry(0, seg(BUF, 10), 0, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		desc(0, seg(TABLE, bad[i]), IND, 0);
		expect_bad_chain(VL_VQ_BAD_INDIRECT);
	}
}

static void indirect_table_must_be_mapped(void **state)
{
	static const uint64_t at[] = { FIX_END - 8,    FIX_END, FIX_LOW - 16,
				       FIX_LOW - 8,    0,       UINT64_MAX,
				       UINT64_MAX - 15 };

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		desc(0, seg(at[i], 16), IND, 0);
		expect_bad_chain(VL_VQ_BAD_INDIRECT);
	}
	/* Its first entry is mapped and all that is used, the rest is not. */
	memset(rd_mem_ptr(&fix.high, FIX_END - 16), 0, 16);
	desc(0, seg(FIX_END - 16, 32), IND, 0);
	expect_bad_chain(VL_VQ_BAD_INDIRECT);
}

static void indirect_nesting_is_refused(void **state)
{
	(void)state;
	desc(0, seg(TABLE, 32), IND, 0);
	entry(0, seg(TABLE, 32), IND, 0);
	expect_bad_chain(VL_VQ_BAD_INDIRECT);
	entry(0, seg(BUF, 4), NEXT, 1);
	entry(1, seg(TABLE, 32), IND, 0);
	expect_bad_chain(VL_VQ_BAD_INDIRECT);
}

static void indirect_with_next_is_refused(void **state)
{
	(void)state;
	desc(0, seg(TABLE, 16), IND | NEXT, 1);
	desc(1, seg(BUF, 10), 0, 0);
	entry(0, seg(BUF, 10), 0, 0);
	expect_bad_chain(VL_VQ_BAD_INDIRECT);
}

static void indirect_must_be_negotiated(void **state)
{
	struct vl_vring vring;

	(void)state;
	vl_vq_stop(&fix.vq);
	fix_vring(&fix.ring, fix.mem, &vring);
	vring.indirect = false;
	assert_int_equal(vl_vq_start(&fix.vq, "test", &vring, fix.mem), 0);
	desc(0, seg(TABLE, 16), IND, 0);
	entry(0, seg(BUF, 10), 0, 0);
	expect_bad_chain(VL_VQ_BAD_INDIRECT);
}

/* The WRITE flag of the descriptor that names a table means nothing. */
static void direct_then_indirect_is_allowed(void **state)
{
	(void)state;
	desc(0, seg(BUF, 5), NEXT, 1);
	desc(1, seg(TABLE, 32), IND | WRITE, 0);
	entry(0, seg(BUF + 5, 6), NEXT, 1);
	entry(1, seg(BUF + 11, 7), WRITE, 0);
	rd_avail(&fix.ring, 0);
	rd_publish(&fix.ring);
	assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), 1);
	assert_int_equal(fix.chain.len_readable, 11);
	assert_int_equal(fix.chain.len_writable, 7);
	vl_vq_push(&fix.vq, fix.chain.head, 7);
}

static void next_past_the_table(void **state)
{
	(void)state;
	desc(0, seg(BUF, 10), NEXT, 8);
	expect_bad_chain(VL_VQ_BAD_NEXT);
	desc(0, seg(BUF, 10), NEXT, 65535);
	expect_bad_chain(VL_VQ_BAD_NEXT);
	/* In a table its own length counts, not the ring's. */
	desc(0, seg(TABLE, 32), IND, 0);
	entry(0, seg(BUF, 10), NEXT, 2);
	expect_bad_chain(VL_VQ_BAD_NEXT);
}

static void unmapped_buffers(void **state)
{
	static const struct rd_seg bad[] = {
		{ 0, 1 },           { FIX_LOW - 1, 1 },
		{ FIX_LOW - 1, 2 }, { FIX_END, 1 },
		{ FIX_END - 1, 2 }, { FIX_LOW, 0xffffffff },
		{ UINT64_MAX, 1 },  { UINT64_MAX, 0xffffffff },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		desc(0, bad[i], i % 2 ? WRITE : 0, 0);
		expect_bad_chain(VL_VQ_BAD_ADDRESS);
		desc(0, seg(BUF, 3), NEXT, 1);
		desc(1, bad[i], WRITE, 0);
		expect_bad_chain(VL_VQ_BAD_ADDRESS);
		desc(0, seg(TABLE, 16), IND, 0);
		entry(0, bad[i], 0, 0);
		expect_bad_chain(VL_VQ_BAD_ADDRESS);
	}
}

static void readable_after_writable(void **state)
{
	(void)state;
	desc(0, seg(BUF, 3), WRITE | NEXT, 1);
	desc(1, seg(BUF, 3), 0, 0);
	expect_bad_chain(VL_VQ_BAD_ORDER);
}

/* B13 */
static void avail_index_jumps(void **state)
{
	static const uint16_t bad[] = { 9, 0x8000, 65535, 100 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(fix.vq.errors, 0, sizeof(fix.vq.errors));
		fix.ring.avail_idx = bad[i];
		rd_publish(&fix.ring);
		expect_broken(VL_VQ_BAD_AVAIL_IDX);
		expect_mended();
		vl_vq_stop(&fix.vq);
		rd_ring_reset(&fix.ring, 0);
		fix_start(&fix, 0);
	}
}

/* As many as the ring has entries is the most that is right. */
static void avail_index_may_fill_the_ring(void **state)
{
	(void)state;
	for (uint16_t i = 0; i < 8; i++) {
		desc(i, seg(BUF, 1), 0, 0);
		rd_avail(&fix.ring, i);
	}
	rd_publish(&fix.ring);
	for (uint16_t i = 0; i < 8; i++) {
		assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), 1);
		vl_vq_push(&fix.vq, fix.chain.head, 0);
	}
	assert_false(fix.vq.broken);
}

/* B14 */
static void head_past_the_table(void **state)
{
	static const uint16_t bad[] = { 8, 9, 65535 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(fix.vq.errors, 0, sizeof(fix.vq.errors));
		rd_avail(&fix.ring, bad[i]);
		rd_publish(&fix.ring);
		expect_broken(VL_VQ_BAD_HEAD);
		expect_mended();
		vl_vq_stop(&fix.vq);
		rd_ring_reset(&fix.ring, 0);
		fix_start(&fix, 0);
	}
}

/* What was pushed before it broke is still handed back at the stop. */
static void broken_queue_still_returns_buffers(void **state)
{
	(void)state;
	desc(0, seg(BUF, 1), 0, 0);
	rd_avail(&fix.ring, 0);
	rd_publish(&fix.ring);
	assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), 1);
	vl_vq_break(&fix.vq, VL_VQ_BAD_HEAD);
	vl_vq_push(&fix.vq, 0, 0);
	vl_vq_stop(&fix.vq);
	assert_int_equal(rd_used_count(&fix.ring), 1);
}

/* The file behind the memory shrinks: the queue breaks, nothing dies. */
static void lost_memory_breaks_the_queue(void **state)
{
	(void)state;
	assert_int_equal(vl_guest_mem_guard(), 0);
	desc(0, seg(BUF, 1), 0, 0);
	rd_avail(&fix.ring, 0);
	rd_publish(&fix.ring);
	assert_int_equal(ftruncate(fix.low.fd, 0), 0);
	expect_broken(VL_VQ_MEM_LOST);
}

/* The same when it was lost before the queue (re)started. */
static void lost_memory_is_noticed_at_restart(void **state)
{
	volatile char *p;

	(void)state;
	assert_int_equal(vl_guest_mem_guard(), 0);
	assert_int_equal(ftruncate(fix.high.fd, 0), 0);
	p = fix_host(&fix, BUF);
	*p = 1;
	assert_true(vl_guest_mem_lost(fix.mem));
	vl_vq_stop(&fix.vq);
	fix_start(&fix, 0);
	desc(0, seg(BUF, 1), 0, 0);
	rd_avail(&fix.ring, 0);
	rd_publish(&fix.ring);
	assert_int_equal(vl_vq_pop(&fix.vq, &fix.chain), 0);
	assert_true(fix.vq.broken);
	assert_int_equal(fix.vq.errors[VL_VQ_MEM_LOST], 1);
}

static void errors_have_names(void **state)
{
	(void)state;
	for (unsigned int e = 0; e < VL_VQ_ERROR_COUNT; e++)
		assert_string_not_equal(vl_vq_error_name(e), "unknown");
	assert_string_equal(vl_vq_error_name(VL_VQ_ERROR_COUNT), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(loops_end),
		T(full_table_is_no_loop),
		T(indirect_length_is_checked),
		T(indirect_table_must_be_mapped),
		T(indirect_nesting_is_refused),
		T(indirect_with_next_is_refused),
		T(indirect_must_be_negotiated),
		T(direct_then_indirect_is_allowed),
		T(next_past_the_table),
		T(unmapped_buffers),
		T(readable_after_writable),
		T(avail_index_jumps),
		T(avail_index_may_fill_the_ring),
		T(head_past_the_table),
		T(broken_queue_still_returns_buffers),
		T(lost_memory_breaks_the_queue),
		T(lost_memory_is_noticed_at_restart),
		T(errors_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
