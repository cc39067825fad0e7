/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of sockets, of both I/O engines; without a copy where an engine can. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/io.h"

#define OPS      64u
#define MSEC     1000000LL
#define TOO_LONG 70000u /* for UDP */

static struct vl_io *io;
static int a, b; /* UDP sockets, connected to each other */
static int file_a, file_b;

static int udp(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	*addr = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	if (fd < 0 || bind(fd, (struct sockaddr *)addr, sizeof(*addr)) ||
	    getsockname(fd, (struct sockaddr *)addr, &len))
		return -1;
	return fd;
}

static int setup(void **state)
{
	enum vl_io_engine engine = *(enum vl_io_engine *)*state;
	struct sockaddr_in at_a, at_b;

	a = udp(&at_a);
	b = udp(&at_b);
	if (a < 0 || b < 0 ||
	    connect(a, (struct sockaddr *)&at_b, sizeof(at_b)) ||
	    connect(b, (struct sockaddr *)&at_a, sizeof(at_a)) ||
	    vl_io_new(engine, OPS, &io) || vl_io_start(io))
		return -1;
	file_a = vl_io_file_add(io, a);
	file_b = vl_io_file_add(io, b);
	return file_a < 0 || file_b < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	vl_io_free(io);
	close(a);
	close(b);
	return 0;
}

/* Reaps exactly @n events (waiting up to 1 s) into @ev. */
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

static void expect_data(int fd, const char *text)
{
	char buf[64] = "";

	assert_int_equal(recv(fd, buf, sizeof(buf) - 1, 0), strlen(text));
	assert_string_equal(buf, text);
}

static void no_data(int fd)
{
	char buf[4];

	assert_int_equal(recv(fd, buf, sizeof(buf), 0), -1);
	assert_int_equal(errno, EAGAIN);
}

/* A message of one piece. */
struct message {
	struct iovec iov;
	struct msghdr hdr;
};

static const struct msghdr *text(struct message *m, const char *s)
{
	m->iov = (struct iovec){ (void *)(uintptr_t)s, strlen(s) };
	m->hdr = (struct msghdr){ .msg_iov = &m->iov, .msg_iovlen = 1 };
	return &m->hdr;
}

static const struct msghdr *too_long(struct message *m)
{
	static char data[TOO_LONG];

	m->iov = (struct iovec){ data, sizeof(data) };
	m->hdr = (struct msghdr){ .msg_iov = &m->iov, .msg_iovlen = 1 };
	return &m->hdr;
}

static void sent_and_received(void **state)
{
	char head[3], rest[16] = "";
	struct iovec out[2] = { { (char[]){ "ab" }, 2 },
				{ (char[]){ "cdef" }, 4 } };
	struct iovec in[2] = { { head, 3 }, { rest, 15 } };
	struct sockaddr_in from;
	struct msghdr w = { .msg_iov = out, .msg_iovlen = 2 };
	struct msghdr r = { .msg_iov = in,
			    .msg_iovlen = 2,
			    .msg_name = &from,
			    .msg_namelen = sizeof(from) };
	struct vl_io_event ev;

	(void)state;
	vl_io_sendmsg(io, file_a, &w, 0, 11);
	vl_io_submit(io);
	reap(&ev, 1);
	assert_int_equal(ev.tag, 11);
	assert_int_equal(ev.res, 6);
	assert_false(ev.more || ev.released || ev.copied);
	vl_io_recvmsg(io, file_b, &r, 12);
	vl_io_submit(io);
	reap(&ev, 1);
	assert_int_equal(ev.tag, 12);
	assert_int_equal(ev.res, 6);
	assert_memory_equal(head, "abc", 3);
	assert_string_equal(rest, "def");
	assert_int_equal(ntohl(from.sin_addr.s_addr), INADDR_LOOPBACK);
	/* Nothing more: at once. */
	vl_io_recvmsg(io, file_b, &r, 13);
	vl_io_submit(io);
	reap(&ev, 1);
	assert_int_equal(ev.res, -EAGAIN);
}

static void cut_off_says_so(void **state)
{
	char buf[4];
	struct iovec in = { buf, 4 };
	struct msghdr r = { .msg_iov = &in, .msg_iovlen = 1 };
	struct vl_io_event ev;

	(void)state;
	assert_int_equal(send(a, "123456", 6, 0), 6);
	vl_io_recvmsg(io, file_b, &r, 1);
	vl_io_submit(io);
	reap(&ev, 1);
	assert_int_equal(ev.res, 4);
	assert_true(r.msg_flags & MSG_TRUNC);
}

static void links_end_at_a_failure(void **state)
{
	struct message m[4];
	struct vl_io_event ev[4];

	(void)state;
	vl_io_sendmsg(io, file_a, text(&m[0], "one"), VL_IO_LINKED, 1);
	vl_io_sendmsg(io, file_a, too_long(&m[1]), VL_IO_LINKED, 2);
	vl_io_sendmsg(io, file_a, text(&m[2], "three"), VL_IO_LINKED, 3);
	vl_io_sendmsg(io, file_a, text(&m[3], "four"), 0, 4);
	vl_io_submit(io);
	reap(ev, 4);
	for (unsigned int i = 0; i < 4; i++) {
		static const int res[] = { 3, -EMSGSIZE, -ECANCELED,
					   -ECANCELED };

		assert_int_equal(ev[i].tag, i + 1);
		assert_int_equal(ev[i].res, res[i]);
	}
	expect_data(b, "one");
	no_data(b);
	/* The same without links. */
	vl_io_sendmsg(io, file_a, too_long(&m[1]), 0, 5);
	vl_io_sendmsg(io, file_a, text(&m[2], "three"), 0, 6);
	vl_io_submit(io);
	reap(ev, 2);
	expect_data(b, "three");
}

/* Messages to the end of a queue: a tail is refused, and its first one says
 * why. */
static void full_socket_ends_the_links(void **state)
{
	static const char *const texts[] = { "0", "1", "2", "3", "4", "5", "6",
					     "7", "8", "9", "a", "b", "c", "d",
					     "e", "f", "g", "h", "i", "j" };
	struct message m[20];
	struct vl_io_event ev[20];
	unsigned int taken = 0;
	int pair[2], file;

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &(int){ 1 },
				    sizeof(int)),
			 0);
	file = vl_io_file_add(io, pair[0]);
	assert_true(file >= 0);
	for (unsigned int i = 0; i < 20; i++)
		vl_io_sendmsg(io, file, text(&m[i], texts[i]), VL_IO_LINKED, i);
	vl_io_submit(io);
	reap(ev, 20);
	while (taken < 20 && ev[taken].res == 1)
		taken++;
	assert_in_range(taken, 1, 18);
	for (unsigned int i = 0; i < 20; i++) {
		assert_int_equal(ev[i].tag, i);
		if (i >= taken)
			assert_int_equal(ev[i].res,
					 i == taken ? -EAGAIN : -ECANCELED);
	}
	for (unsigned int i = 0; i < taken; i++)
		expect_data(pair[1], texts[i]);
	no_data(pair[1]);
	vl_io_file_remove(io, file);
	close(pair[0]);
	close(pair[1]);
}

static void links_end_with_the_file(void **state)
{
	struct message m[3];
	struct vl_io_event ev[3];
	unsigned int sent = 0;

	(void)state;
	vl_io_sendmsg(io, file_a, too_long(&m[0]), VL_IO_LINKED, 1);
	vl_io_sendmsg(io, file_b, text(&m[1], "back"), VL_IO_LINKED, 2);
	vl_io_sendmsg(io, file_a, text(&m[2], "forth"), 0, 3);
	vl_io_submit(io);
	reap(ev, 3);
	for (unsigned int i = 0; i < 3; i++)
		sent += ev[i].res > 0;
	assert_int_equal(sent, 2);
	expect_data(a, "back");
	expect_data(b, "forth");
}

static void reserved_room_is_taken(void **state)
{
	unsigned int room = vl_io_room(io);

	(void)state;
	assert_true(room >= OPS);
	vl_io_reserve(io, 10);
	assert_int_equal(vl_io_room(io), room - 10);
	vl_io_reserve(io, 1000);
	assert_int_equal(vl_io_room(io), 0);
	vl_io_reserve(io, -1010);
	assert_int_equal(vl_io_room(io), room);
}

/* Takes the two events of the zero-copy send @tag. */
static void reap_both(uint64_t tag, int res)
{
	struct vl_io_event ev[2];

	reap(ev, 2);
	assert_int_equal(ev[0].tag, tag);
	assert_int_equal(ev[0].res, res);
	assert_true(ev[0].more);
	assert_false(ev[0].released || ev[0].copied);
	assert_int_equal(ev[1].tag, tag);
	assert_false(ev[1].more);
	assert_true(ev[1].released);
}

static void zero_copy_has_two_events(void **state)
{
	struct message m;
	struct vl_io_event ev[2];

	(void)state;
	if (!vl_io_can_zerocopy(io)) {
		assert_int_not_equal(*(enum vl_io_engine *)*state, VL_IO_URING);
		skip();
	}
	vl_io_sendmsg(io, file_a, text(&m, "where it lies"), VL_IO_ZEROCOPY, 7);
	vl_io_submit(io);
	reap(ev, 2);
	assert_int_equal(ev[0].res, 13);
	assert_true(ev[0].more);
	assert_true(ev[1].released);
	/* For a receiver on the same host the kernel copies. */
	assert_true(ev[1].copied);
	assert_int_equal(ev[1].res, 0);
	expect_data(b, "where it lies");
	expect_nothing();
}

static void failed_zero_copy_has_two_events(void **state)
{
	struct message m;

	(void)state;
	if (!vl_io_can_zerocopy(io))
		skip();
	vl_io_sendmsg(io, file_a, too_long(&m), VL_IO_ZEROCOPY, 8);
	vl_io_submit(io);
	reap_both(8, -EMSGSIZE);
	expect_nothing();
}

/* One of a chain fails. Each send that says that its memory is in use is
 * released later, no other one is: also among those that were cancelled. */
static void linked_zero_copy(void **state)
{
	struct message m[4];
	struct vl_io_event ev[8];
	unsigned int n = 0;
	int res[5] = { 0 };
	unsigned int released[5] = { 0 }, more[5] = { 0 };

	(void)state;
	if (!vl_io_can_zerocopy(io))
		skip();
	vl_io_sendmsg(io, file_a, text(&m[0], "one"),
		      VL_IO_ZEROCOPY | VL_IO_LINKED, 1);
	vl_io_sendmsg(io, file_a, too_long(&m[1]),
		      VL_IO_ZEROCOPY | VL_IO_LINKED, 2);
	vl_io_sendmsg(io, file_a, text(&m[2], "three"),
		      VL_IO_ZEROCOPY | VL_IO_LINKED, 3);
	vl_io_sendmsg(io, file_a, text(&m[3], "four"), 0, 4);
	vl_io_submit(io);
	for (unsigned int i = 0; i < 10; i++) {
		vl_io_wait(io, 5 * MSEC);
		n += vl_io_reap(io, ev + n, 8 - n);
	}
	for (unsigned int i = 0; i < n; i++) {
		assert_in_range(ev[i].tag, 1, 4);
		if (ev[i].released) {
			/* Never before the result. */
			assert_true(more[ev[i].tag]);
			released[ev[i].tag]++;
			continue;
		}
		res[ev[i].tag] = ev[i].res;
		more[ev[i].tag] = ev[i].more;
	}
	assert_int_equal(res[1], 3);
	assert_int_equal(res[2], -EMSGSIZE);
	assert_int_equal(res[3], -ECANCELED);
	assert_int_equal(res[4], -ECANCELED);
	assert_true(more[1] && more[2] && !more[4]);
	for (unsigned int i = 1; i <= 4; i++)
		assert_int_equal(released[i], more[i]);
	expect_data(b, "one");
	no_data(b);
	expect_nothing();
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
			T(sent_and_received),
			T(cut_off_says_so),
			T(links_end_at_a_failure),
			T(full_socket_ends_the_links),
			T(links_end_with_the_file),
			T(reserved_room_is_taken),
			T(zero_copy_has_two_events),
			T(failed_zero_copy_has_two_events),
			T(linked_zero_copy),
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
