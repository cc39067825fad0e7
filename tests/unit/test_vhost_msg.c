/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "vhost/vhost_msg.h"

/* Two ends of a connection; ours is pair[0]. */
struct link {
	int pair[2];
	struct vl_msg_reader reader;
	unsigned int fds_before;
};

static unsigned int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void link_open(struct link *l)
{
	memset(l, 0, sizeof(*l));
	l->fds_before = open_fds();
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, l->pair), 0);
}

static void link_close(struct link *l)
{
	vl_msg_close_fds(&l->reader.msg);
	for (int i = 0; i < 2; i++) {
		if (l->pair[i] >= 0)
			close(l->pair[i]);
	}
	assert_int_equal(open_fds(), l->fds_before);
}

/* Sends bytes with @n copies of one descriptor. */
static void send_with(int sock, const void *buf, size_t len, unsigned int n)
{
	union {
		char buf[CMSG_SPACE(VL_MSG_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	char bytes[512];
	struct iovec iov = { .iov_base = bytes, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd = -1;

	assert_true(len <= sizeof(bytes));
	memcpy(bytes, buf, len);
	if (n) {
		struct cmsghdr *c = &control.align;

		fd = eventfd(0, EFD_CLOEXEC);
		memset(&control, 0, sizeof(control));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		for (unsigned int i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &mh, MSG_DONTWAIT), len);
	if (fd >= 0)
		close(fd);
}

struct wire {
	struct vl_msg_header h;
	uint8_t payload[VL_MSG_PAYLOAD_MAX + 8];
};

static struct wire message(uint32_t request, uint32_t size)
{
	struct wire w = { .h = { request, VL_MSG_VERSION, size } };

	for (size_t i = 0; i < sizeof(w.payload); i++)
		w.payload[i] = (uint8_t)(i * 7 + request);
	return w;
}

static void test_byte_by_byte(void **state)
{
	struct wire w = message(9, 40);
	struct link l;
	size_t len = VL_MSG_HEADER_SIZE + 40;

	(void)state;
	link_open(&l);
	assert_int_equal(vl_msg_read(&l.reader, l.pair[0]), 0);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < len; i++) {
			/* One descriptor with the first byte of each part. */
			send_with(l.pair[1], (char *)&w + i, 1,
				  i == 0 || i == VL_MSG_HEADER_SIZE);
			assert_int_equal(vl_msg_read(&l.reader, l.pair[0]),
					 i == len - 1);
		}
		assert_int_equal(l.reader.msg.header.request, 9);
		assert_memory_equal(&l.reader.msg.payload, w.payload, 40);
		assert_int_equal(l.reader.msg.n_fds, 2);
		for (int i = 0; i < 2; i++)
			assert_true(fcntl(l.reader.msg.fd[i], F_GETFD) &
				    FD_CLOEXEC);
		vl_msg_close_fds(&l.reader.msg);
	}
	link_close(&l);
}

/* Two messages in one write: each keeps its own bytes and descriptors. */
static void test_never_past_the_end(void **state)
{
	struct wire a = message(12, 8), b = message(13, 8);
	char both[2 * (VL_MSG_HEADER_SIZE + 8)];
	struct link l;

	(void)state;
	link_open(&l);
	memcpy(both, &a, VL_MSG_HEADER_SIZE + 8);
	memcpy(both + VL_MSG_HEADER_SIZE + 8, &b, VL_MSG_HEADER_SIZE + 8);
	send_with(l.pair[1], both, sizeof(both), 0);
	send_with(l.pair[1], &a, VL_MSG_HEADER_SIZE + 8, 2);
	send_with(l.pair[1], &b, VL_MSG_HEADER_SIZE + 8, 5);
	for (int i = 0; i < 4; i++) {
		static const uint32_t fds[] = { 0, 0, 2, 5 };

		assert_int_equal(vl_msg_read(&l.reader, l.pair[0]), 1);
		assert_int_equal(l.reader.msg.header.request, 12 + i % 2);
		assert_memory_equal(&l.reader.msg.payload,
				    i % 2 ? b.payload : a.payload, 8);
		assert_int_equal(l.reader.msg.n_fds, fds[i]);
		vl_msg_close_fds(&l.reader.msg);
	}
	assert_int_equal(vl_msg_read(&l.reader, l.pair[0]), 0);
	link_close(&l);
}

static void test_sizes(void **state)
{
	static const struct {
		uint32_t size;
		int ret;
	} cases[] = {
		{ 0, 1 },
		{ 1, 1 },
		{ VL_MSG_PAYLOAD_MAX, 1 },
		{ VL_MSG_PAYLOAD_MAX + 1, -EMSGSIZE },
		{ 0x7fffffff, -EMSGSIZE },
		{ 0xfffffff4, -EMSGSIZE },
		{ 0xffffffff, -EMSGSIZE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wire w = message(1, cases[i].size);
		size_t len = VL_MSG_HEADER_SIZE;
		struct link l;

		link_open(&l);
		if (cases[i].ret > 0)
			len += cases[i].size;
		send_with(l.pair[1], &w, len, 3);
		assert_int_equal(vl_msg_read(&l.reader, l.pair[0]),
				 cases[i].ret);
		assert_int_equal(l.reader.msg.n_fds, cases[i].ret > 0 ? 3 : 0);
		link_close(&l);
	}
}

static void test_short_payload_is_padded_with_zeroes(void **state)
{
	struct wire w = message(24, VL_MSG_PAYLOAD_MAX);
	uint8_t zero[VL_MSG_PAYLOAD_MAX] = { 0 };
	struct link l;

	(void)state;
	link_open(&l);
	send_with(l.pair[1], &w, VL_MSG_HEADER_SIZE + VL_MSG_PAYLOAD_MAX, 0);
	assert_int_equal(vl_msg_read(&l.reader, l.pair[0]), 1);
	w = message(1, 0);
	send_with(l.pair[1], &w, VL_MSG_HEADER_SIZE, 0);
	assert_int_equal(vl_msg_read(&l.reader, l.pair[0]), 1);
	assert_memory_equal(&l.reader.msg.payload, zero, sizeof(zero));
	link_close(&l);
}

static void test_version(void **state)
{
	(void)state;
	for (uint32_t flags = 0; flags < 16; flags++) {
		struct wire w = message(1, 0);
		struct link l;

		link_open(&l);
		w.h.flags = flags;
		send_with(l.pair[1], &w, VL_MSG_HEADER_SIZE, 1);
		assert_int_equal(vl_msg_read(&l.reader, l.pair[0]),
				 (flags & 3) == 1 ? 1 : -EPROTO);
		link_close(&l);
	}
}

static void test_disconnect_after_each_byte(void **state)
{
	struct wire w = message(9, 40);

	(void)state;
	for (size_t n = 0; n < VL_MSG_HEADER_SIZE + 40; n++) {
		struct link l;

		link_open(&l);
		if (n)
			send_with(l.pair[1], &w, n, 8);
		assert_int_equal(vl_msg_read(&l.reader, l.pair[0]), 0);
		close(l.pair[1]);
		l.pair[1] = -1;
		assert_int_equal(vl_msg_read(&l.reader, l.pair[0]),
				 -ECONNRESET);
		assert_int_equal(l.reader.msg.n_fds, 0);
		link_close(&l);
	}
}

static void test_as_many_fds_as_there_can_be(void **state)
{
	struct wire w = message(1, 8);
	struct link l;

	(void)state;
	for (int round = 0; round < 1000; round++) {
		link_open(&l);
		send_with(l.pair[1], &w, VL_MSG_HEADER_SIZE + 8,
			  VL_MSG_FDS_MAX);
		assert_int_equal(vl_msg_read(&l.reader, l.pair[0]), 1);
		assert_int_equal(l.reader.msg.n_fds, VL_MSG_FDS_MAX);
		link_close(&l);
	}
	/* One more, with the payload. */
	link_open(&l);
	send_with(l.pair[1], &w, VL_MSG_HEADER_SIZE, VL_MSG_FDS_MAX);
	assert_int_equal(vl_msg_read(&l.reader, l.pair[0]), 0);
	send_with(l.pair[1], w.payload, 8, 1);
	assert_int_equal(vl_msg_read(&l.reader, l.pair[0]), -EMFILE);
	link_close(&l);
}

/* The process may not open as many: what was lost cannot be repaired. */
static void test_truncated_fds(void **state)
{
	struct wire w = message(1, 8);
	struct rlimit saved, tight;
	struct link l;
	int ret;

	(void)state;
	link_open(&l);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
	send_with(l.pair[1], &w, VL_MSG_HEADER_SIZE + 8, 100);
	tight = saved;
	tight.rlim_cur = l.fds_before + 20;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	ret = vl_msg_read(&l.reader, l.pair[0]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
	assert_int_equal(ret, -EMFILE);
	link_close(&l);
}

static void test_send(void **state)
{
	struct vl_msg_header h = { 1, VL_MSG_VERSION | VL_MSG_REPLY, 8 };
	uint64_t value = 0x1122334455667788, got[4];
	struct link l;
	int ret, n = 0;

	(void)state;
	link_open(&l);
	assert_int_equal(vl_msg_send(l.pair[0], &h, &value), 0);
	assert_int_equal(recv(l.pair[1], got, sizeof(got), MSG_DONTWAIT), 20);
	assert_memory_equal(got, &h, sizeof(h));
	assert_memory_equal((char *)got + sizeof(h), &value, 8);
	/* Nobody reads: an error, after a bounded number, without waiting. */
	do {
		ret = vl_msg_send(l.pair[0], &h, &value);
	} while (ret == 0 && ++n < 1000000);
	assert_int_equal(ret, -ENOBUFS);
	/* Nobody is there: no SIGPIPE either. */
	close(l.pair[1]);
	l.pair[1] = -1;
	assert_int_equal(vl_msg_send(l.pair[0], &h, &value), -EPIPE);
	link_close(&l);
}

static void test_take_fd(void **state)
{
	struct wire w = message(12, 8);
	struct link l;
	int fd;

	(void)state;
	link_open(&l);
	send_with(l.pair[1], &w, VL_MSG_HEADER_SIZE + 8, 2);
	assert_int_equal(vl_msg_read(&l.reader, l.pair[0]), 1);
	fd = vl_msg_take_fd(&l.reader.msg, 1);
	assert_true(fd >= 0);
	assert_int_equal(vl_msg_take_fd(&l.reader.msg, 1), -1);
	assert_int_equal(vl_msg_take_fd(&l.reader.msg, 2), -1);
	vl_msg_close_fds(&l.reader.msg);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	link_close(&l);
}

static void test_error_texts(void **state)
{
	static const int errors[] = { -ECONNRESET, -EMSGSIZE, -EPROTO, -EMFILE,
				      -EIO };

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		assert_non_null(vl_msg_read_error(errors[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_never_past_the_end),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_short_payload_is_padded_with_zeroes),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_disconnect_after_each_byte),
		cmocka_unit_test(test_as_many_fds_as_there_can_be),
		cmocka_unit_test(test_truncated_fds),
		cmocka_unit_test(test_send),
		cmocka_unit_test(test_take_fd),
		cmocka_unit_test(test_error_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
