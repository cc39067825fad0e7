/* SPDX-License-Identifier: BSD-3-Clause */
/* Both I/O engines: what one promises, the other does too. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/io.h"

#define OPS  64u
#define MSEC 1000000LL

static struct vl_io *io;
static int a, b; /* ends of a packet socket pair, non-blocking */
static int file_a;

static int setup(void **state)
{
	enum vl_io_engine engine = *(enum vl_io_engine *)*state;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair))
		return -1;
	a = pair[0];
	b = pair[1];
	if (vl_io_new(engine, OPS, &io) || vl_io_start(io))
		return -1;
	file_a = vl_io_file_add(io, a);
	return file_a < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	vl_io_free(io);
	close(a);
	close(b);
	return 0;
}

/* Reaps exactly @n events (waiting up to 1 s for each) into @ev. */
static void reap(struct vl_io_event *ev, unsigned int n)
{
	unsigned int got = vl_io_reap(io, ev, n);

	for (int i = 0; got < n && i < 10; i++) {
		vl_io_wait(io, 100 * MSEC);
		got += vl_io_reap(io, ev + got, n - got);
	}
	assert_int_equal(got, n);
}

static void expect_nothing(void)
{
	struct vl_io_event ev[4];

	vl_io_wait(io, 20 * MSEC);
	assert_int_equal(vl_io_reap(io, ev, 4), 0);
}

static void signal_eventfd(int fd)
{
	assert_int_equal(eventfd_write(fd, 1), 0);
}

static void reads_and_writes(void **state)
{
	char out[3][4] = { "abc", "def", "ghi" }, in[8] = "", peer[16];
	struct iovec w[3] = { { out[0], 3 }, { out[1], 3 }, { out[2], 3 } };
	struct iovec r[2] = { { in, 2 }, { in + 2, 4 } };
	struct vl_io_event ev[4];

	(void)state;
	vl_io_writev(io, file_a, w, 3, false, 11);
	vl_io_writev(io, file_a, w, 1, false, 12);
	vl_io_submit(io);
	reap(ev, 2);
	assert_int_equal(ev[0].tag, 11);
	assert_int_equal(ev[0].res, 9);
	assert_int_equal(ev[1].tag, 12);
	assert_int_equal(ev[1].res, 3);
	assert_int_equal(read(b, peer, sizeof(peer)), 9);
	assert_memory_equal(peer, "abcdefghi", 9);
	assert_int_equal(read(b, peer, sizeof(peer)), 3);

	assert_int_equal(write(b, "123456", 6), 6);
	vl_io_readv(io, file_a, r, 2, 13);
	vl_io_submit(io);
	reap(ev, 1);
	assert_int_equal(ev[0].res, 6);
	assert_string_equal(in, "123456");
}

static void empty_file_says_so_at_once(void **state)
{
	char buf[4];
	struct iovec r = { buf, 4 };
	struct vl_io_event ev;

	(void)state;
	vl_io_readv(io, file_a, &r, 1, 5);
	vl_io_submit(io);
	reap(&ev, 1);
	assert_int_equal(ev.tag, 5);
	assert_int_equal(ev.res, -EAGAIN);
	expect_nothing();
}

/* Makes every further write to @a fail with EAGAIN. */
static void fill_up(void)
{
	char block[4096] = { 0 };

	while (write(a, block, sizeof(block)) > 0)
		;
	while (write(a, block, 1) > 0)
		;
	assert_int_equal(errno, EAGAIN);
}

/* The first write that fails ends its chain; others are not concerned. */
static void links_end_at_a_failure(void **state)
{
	char x = 'x';
	struct iovec w = { &x, 1 };
	struct vl_io_event ev[6];
	int32_t res[6];

	(void)state;
	fill_up();
	for (unsigned int i = 0; i < 6; i++)
		/* One chain of five, then one for itself. */
		vl_io_writev(io, file_a, &w, 1, i < 4, i);
	vl_io_submit(io);
	reap(ev, 6);
	for (unsigned int i = 0; i < 6; i++)
		res[ev[i].tag] = ev[i].res;
	assert_int_equal(res[0], -EAGAIN);
	assert_int_equal(res[1], -ECANCELED);
	assert_int_equal(res[2], -ECANCELED);
	assert_int_equal(res[3], -ECANCELED);
	assert_int_equal(res[4], -ECANCELED);
	assert_int_equal(res[5], -EAGAIN);
}

/* Linked writes that succeed are all done within their submit, in order. */
static void linked_writes_are_one_batch(void **state)
{
	char text[6] = { 'a', 'b', 'c', 'd', 'e', 'f' };
	struct iovec w[6];
	struct vl_io_event ev[6];

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		w[i] = (struct iovec){ &text[i], 1 };
		vl_io_writev(io, file_a, &w[i], 1, true, i);
	}
	vl_io_submit(io);
	assert_int_equal(vl_io_reap(io, ev, 6), 6);
	for (unsigned int i = 0; i < 6; i++) {
		char c = 0;

		assert_int_equal(ev[i].res, 1);
		assert_int_equal(read(b, &c, 1), 1);
		assert_int_equal(c, text[i]);
	}
}

/* A full file does not cancel what goes to another one. */
static void links_end_with_the_file(void **state)
{
	char x = 'x';
	struct iovec w = { &x, 1 };
	struct vl_io_event ev[4];
	int32_t res[4];
	int file_b;

	(void)state;
	fill_up();
	file_b = vl_io_file_add(io, b);
	assert_true(file_b >= 0);
	for (unsigned int i = 0; i < 4; i++)
		vl_io_writev(io, i < 2 ? file_a : file_b, &w, 1, true, i);
	vl_io_submit(io);
	reap(ev, 4);
	for (unsigned int i = 0; i < 4; i++)
		res[ev[i].tag] = ev[i].res;
	assert_int_equal(res[0], -EAGAIN);
	assert_int_equal(res[1], -ECANCELED);
	assert_int_equal(res[2], 1);
	assert_int_equal(res[3], 1);
}

static void submit_ends_the_links(void **state)
{
	char x = 'x';
	struct iovec w = { &x, 1 };
	struct vl_io_event ev[2];

	(void)state;
	fill_up();
	vl_io_writev(io, file_a, &w, 1, true, 0);
	vl_io_submit(io);
	vl_io_writev(io, file_a, &w, 1, true, 1);
	vl_io_submit(io);
	reap(ev, 2);
	assert_int_equal(ev[0].res, -EAGAIN);
	assert_int_equal(ev[1].res, -EAGAIN);
}

/* A poll that is armed among linked operations is none of them. */
static void polls_are_not_linked(void **state)
{
	char x = 'x';
	struct iovec w = { &x, 1 };
	struct vl_io_event ev[2];

	(void)state;
	fill_up();
	vl_io_writev(io, file_a, &w, 1, true, 1);
	assert_int_equal(vl_io_poll(io, a, EPOLLIN, false, 2), 0);
	vl_io_submit(io);
	reap(ev, 1);
	assert_int_equal(ev[0].tag, 1);
	assert_int_equal(write(b, "x", 1), 1);
	reap(ev, 1);
	assert_int_equal(ev[0].tag, 2);
	assert_true(ev[0].res & EPOLLIN);
}

/* Reads of a batch that find something are all done, short or not. */
static void short_reads_do_not_end_a_batch(void **state)
{
	char buf[4][8];
	struct iovec r[4];
	struct vl_io_event ev[4];
	int got = 0;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(write(b, "x", 1), 1);
	for (unsigned int i = 0; i < 4; i++) {
		r[i] = (struct iovec){ buf[i], sizeof(buf[i]) };
		vl_io_readv(io, file_a, &r[i], 1, i);
	}
	vl_io_submit(io);
	reap(ev, 4);
	for (unsigned int i = 0; i < 4; i++)
		got += ev[i].res == 1;
	assert_int_equal(got, 3);
}

static void batch_is_one_call_of_io_uring(void **state)
{
	enum vl_io_engine engine = *(enum vl_io_engine *)*state;
	char x = 'x';
	struct iovec w = { &x, 1 };
	struct vl_io_event ev[32];
	uint64_t before = vl_io_stats(io)->syscalls;

	for (unsigned int i = 0; i < 32; i++)
		vl_io_writev(io, file_a, &w, 1, false, i);
	vl_io_submit(io);
	assert_int_equal(vl_io_reap(io, ev, 32), 32);
	assert_int_equal(vl_io_stats(io)->syscalls - before,
			 engine == VL_IO_URING ? 1 : 32);
}

static void room_is_what_fits(void **state)
{
	char x = 'x';
	struct iovec w = { &x, 1 };
	struct vl_io_event ev[4 * OPS];
	unsigned int n = 0;

	(void)state;
	assert_int_equal(vl_io_room(io), OPS);
	for (; vl_io_room(io); n++)
		vl_io_writev(io, file_a, &w, 1, false, n);
	assert_true(n >= OPS);
	vl_io_submit(io);
	reap(ev, n);
	assert_int_equal(vl_io_room(io), OPS);
}

static void posted_events_come_without_a_kernel(void **state)
{
	struct vl_io_event ev[OPS];
	uint64_t before = vl_io_stats(io)->syscalls;

	(void)state;
	for (unsigned int i = 0; i < OPS; i++)
		vl_io_post(io, -(int)i, i);
	assert_int_equal(vl_io_room(io), 0);
	vl_io_submit(io);
	assert_int_equal(vl_io_reap(io, ev, OPS), OPS);
	assert_int_equal(vl_io_stats(io)->syscalls, before);
	for (unsigned int i = 0; i < OPS; i++) {
		assert_int_equal(ev[i].tag, i);
		assert_int_equal(ev[i].res, -(int)i);
	}
	/* And nobody sleeps over them. */
	vl_io_post(io, 0, 1);
	vl_io_wait(io, -1);
	assert_int_equal(vl_io_reap(io, ev, OPS), 1);
}

static void wait_respects_the_time(void **state)
{
	uint64_t t = vl_now_ns();

	(void)state;
	vl_io_wait(io, 0);
	assert_true(vl_now_ns() - t < 20 * MSEC);
	/* The end of an earlier ring may interrupt a sleep. */
	for (int i = 0; i < 50; i++) {
		t = vl_now_ns();
		vl_io_wait(io, 30 * MSEC);
		t = vl_now_ns() - t;
		if (t >= 29 * MSEC)
			break;
	}
	assert_in_range(t, 29 * MSEC, 1000 * MSEC);
}

static void one_shot_poll_fires_once(void **state)
{
	struct vl_io_event ev[2];
	char c;

	(void)state;
	assert_int_equal(vl_io_poll(io, a, EPOLLIN, false, 7), 0);
	assert_int_equal(vl_io_poll(io, a, EPOLLIN, false, 7), 0);
	expect_nothing();
	assert_int_equal(write(b, "x", 1), 1);
	reap(ev, 1);
	assert_int_equal(ev[0].tag, 7);
	assert_true(ev[0].res & EPOLLIN);
	assert_false(ev[0].more);
	expect_nothing(); /* also not for the second arming */
	assert_int_equal(write(b, "y", 1), 1);
	expect_nothing();
	/* Still readable: asked again, it says so at once. */
	assert_int_equal(vl_io_poll(io, a, EPOLLIN, false, 7), 0);
	reap(ev, 1);
	assert_int_equal(ev[0].tag, 7);
	assert_int_equal(read(a, &c, 1), 1);
}

/* Edge triggered: an eventfd is never read, and each write is an event. */
static void multishot_poll_goes_on(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	struct vl_io_event ev[2];

	(void)state;
	assert_int_equal(vl_io_poll(io, fd, EPOLLIN, true, 9), 0);
	for (int i = 0; i < 200; i++) {
		signal_eventfd(fd);
		reap(ev, 1);
		assert_int_equal(ev[0].tag, 9);
		if (!ev[0].more)
			assert_int_equal(vl_io_poll(io, fd, EPOLLIN, true, 9),
					 0);
	}
	expect_nothing();
	vl_io_poll_cancel(io, fd, 9);
	signal_eventfd(fd);
	expect_nothing();
	close(fd);
}

static void cancelled_poll_is_silent(void **state)
{
	struct vl_io_event ev[2];

	(void)state;
	/* Fired already, not reaped yet. */
	assert_int_equal(write(b, "x", 1), 1);
	assert_int_equal(vl_io_poll(io, a, EPOLLIN, false, 3), 0);
	vl_io_wait(io, 20 * MSEC);
	vl_io_poll_cancel(io, a, 3);
	expect_nothing();
	/* Never armed: nothing to do. */
	vl_io_poll_cancel(io, a, 3);
	vl_io_poll_cancel(io, a, 4);
	/* Armed again, it works. */
	assert_int_equal(vl_io_poll(io, a, EPOLLIN, false, 3), 0);
	reap(ev, 1);
	assert_int_equal(ev[0].tag, 3);
}

/* The engine keeps no reference: the peer sees the close. */
static void cancelled_poll_lets_go_of_the_file(void **state)
{
	int pair[2];
	char c;

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(vl_io_poll(io, pair[0], EPOLLIN, true, 3), 0);
	expect_nothing();
	vl_io_poll_cancel(io, pair[0], 3);
	close(pair[0]);
	vl_io_wait(io, 20 * MSEC);
	assert_int_equal(read(pair[1], &c, 1), 0);
	close(pair[1]);
}

static void fill_socket(void)
{
	while (write(a, "0123456789abcdef", 16) > 0)
		;
	assert_int_equal(errno, EAGAIN);
}

static void drain_socket(int fd)
{
	char buf[64];

	while (read(fd, buf, sizeof(buf)) > 0)
		;
}

static void two_polls_share_a_file(void **state)
{
	struct vl_io_event ev[2];

	(void)state;
	fill_socket();
	assert_int_equal(vl_io_poll(io, a, EPOLLIN, false, 1), 0);
	assert_int_equal(vl_io_poll(io, a, EPOLLOUT, false, 2), 0);
	expect_nothing();
	assert_int_equal(write(b, "x", 1), 1);
	reap(ev, 1);
	assert_int_equal(ev[0].tag, 1);
	drain_socket(b);
	reap(ev, 1);
	assert_int_equal(ev[0].tag, 2);
	assert_true(ev[0].res & EPOLLOUT);
	expect_nothing();
}

/* In any order of arming, cancelling one leaves the other in order, however
 * often. */
static void one_of_two_polls_is_cancelled(void **state)
{
	struct vl_io_event ev[2];

	(void)state;
	for (int round = 0; round < 100; round++) {
		bool in_first = round & 1;

		fill_socket();
		assert_int_equal(vl_io_poll(io, a,
					    in_first ? EPOLLIN : EPOLLOUT,
					    false, in_first ? 1 : 2),
				 0);
		assert_int_equal(vl_io_poll(io, a,
					    in_first ? EPOLLOUT : EPOLLIN,
					    false, in_first ? 2 : 1),
				 0);
		vl_io_wait(io, 0);
		vl_io_poll_cancel(io, a, 1);
		drain_socket(b);
		reap(ev, 1);
		assert_int_equal(ev[0].tag, 2);
		fill_socket();
		assert_int_equal(vl_io_poll(io, a, EPOLLOUT, false, 2), 0);
		vl_io_wait(io, 0);
		assert_int_equal(vl_io_reap(io, ev, 2), 0);
		drain_socket(b);
		reap(ev, 1);
		assert_int_equal(ev[0].tag, 2);
	}
}

/* Many descriptors, one after the other, use up nothing. */
static void descriptors_come_and_go(void **state)
{
	struct vl_io_event ev;

	(void)state;
	for (int round = 0; round < 300; round++) {
		int fd = eventfd(0, EFD_NONBLOCK);

		assert_true(fd >= 0);
		assert_int_equal(vl_io_poll(io, fd, EPOLLIN, round & 1, 77), 0);
		signal_eventfd(fd);
		reap(&ev, 1);
		assert_int_equal(ev.tag, 77);
		vl_io_poll_cancel(io, fd, 77);
		close(fd);
	}
}

/* A file that was closed and opened again under the same number. */
static void reused_number_is_a_new_file(void **state)
{
	struct vl_io_event ev;

	(void)state;
	for (int round = 0; round < 50; round++) {
		int fd = eventfd(0, EFD_NONBLOCK);

		assert_int_equal(vl_io_poll(io, fd, EPOLLIN, true, 5), 0);
		vl_io_wait(io, 0);
		vl_io_poll_cancel(io, fd, 5);
		close(fd);
		assert_int_equal(eventfd(0, EFD_NONBLOCK), fd);
		assert_int_equal(vl_io_poll(io, fd, EPOLLIN, true, 5), 0);
		signal_eventfd(fd);
		reap(&ev, 1);
		assert_int_equal(ev.tag, 5);
		vl_io_poll_cancel(io, fd, 5);
		close(fd);
	}
}

static void file_table_is_bounded(void **state)
{
	int file[VL_IO_FILES];
	int n = 0, got;

	(void)state;
	while ((got = vl_io_file_add(io, b)) >= 0)
		file[n++] = got;
	assert_int_equal(got, -ENOSPC);
	assert_int_equal(n, VL_IO_FILES - 1);
	vl_io_file_remove(io, file[5]);
	assert_int_equal(vl_io_file_add(io, b), file[5]);
	vl_io_file_remove(io, -1);
	vl_io_file_remove(io, VL_IO_FILES);
}

static void hang_up_is_an_event(void **state)
{
	struct vl_io_event ev;
	int pair[2];

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(vl_io_poll(io, pair[0], EPOLLIN, false, 8), 0);
	vl_io_submit(io);
	close(pair[1]);
	reap(&ev, 1);
	assert_int_equal(ev.tag, 8);
	assert_true(ev.res > 0);
	assert_true(ev.res & (EPOLLHUP | EPOLLIN));
	close(pair[0]);
}

static void choice_is_explained(void **state)
{
	const char *why = NULL;

	(void)state;
	assert_int_equal(vl_io_choose(VL_IO_SYNC, &why), VL_IO_SYNC);
	assert_non_null(why);
	why = NULL;
	assert_int_not_equal(vl_io_choose(VL_IO_AUTO, &why), VL_IO_AUTO);
	assert_non_null(why);
}

static enum vl_io_engine engines[] = { VL_IO_URING, VL_IO_SYNC };

int main(void)
{
	const char *why;
	int status = 0;

	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		const struct CMUnitTest tests[] = {
#define T(f)                                                                   \
	{ .name = #f,                                                          \
	  .test_func = (f),                                                    \
	  .setup_func = setup,                                                 \
	  .teardown_func = teardown,                                           \
	  .initial_state = &engines[i] }
			T(reads_and_writes),
			T(empty_file_says_so_at_once),
			T(links_end_at_a_failure),
			T(linked_writes_are_one_batch),
			T(short_reads_do_not_end_a_batch),
			T(links_end_with_the_file),
			T(submit_ends_the_links),
			T(polls_are_not_linked),
			T(batch_is_one_call_of_io_uring),
			T(room_is_what_fits),
			T(posted_events_come_without_a_kernel),
			T(wait_respects_the_time),
			T(one_shot_poll_fires_once),
			T(multishot_poll_goes_on),
			T(cancelled_poll_is_silent),
			T(cancelled_poll_lets_go_of_the_file),
			T(two_polls_share_a_file),
			T(one_of_two_polls_is_cancelled),
			T(descriptors_come_and_go),
			T(reused_number_is_a_new_file),
			T(file_table_is_bounded),
			T(hang_up_is_an_event),
			cmocka_unit_test(choice_is_explained),
		};

		if (engines[i] == VL_IO_URING &&
		    vl_io_choose(VL_IO_URING, &why) < 0) {
			printf("engine uring: %s\n", why);
			continue;
		}
		printf("engine %s\n", i ? "sync" : "uring");
		status |= cmocka_run_group_tests(tests, NULL, NULL);
	}
	return status;
}
