/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io_uring on a tap (Linux 6.4 and later). Why base/io_uring.c asks for
 * RWF_NOWAIT, and why reads are not linked as if a short one were a success.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernel.h"

#define PENDING 1

static struct io_uring ring;

static struct io_uring_sqe *queue_read(void *buf, unsigned int len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_read(sqe, 0, buf, len, 0);
	sqe->flags = IOSQE_FIXED_FILE;
	return sqe;
}

/* The result of the next operation, PENDING if it does not end. */
static int result(int ms)
{
	struct __kernel_timespec ts = { 0, ms * 1000000LL };
	struct io_uring_cqe *cqe;
	int res;

	if (io_uring_wait_cqe_timeout(&ring, &cqe, &ts))
		return PENDING;
	res = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	return res;
}

static void send_frame(int packet, unsigned int len)
{
	char frame[2048] = { 0 };

	memset(frame + 10, 2, 12);
	frame[22] = (char)0x88;
	frame[23] = (char)0xb5;
	if (write(packet, frame, len + 10) != (ssize_t)(len + 10))
		broken("send");
}

int main(void)
{
	struct io_uring_params p = {
		.flags = IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
	};
	static char buf[4][2048];
	struct utsname u;
	int major = 0, minor = 0, tap, packet;

	uname(&u);
	if (sscanf(u.release, "%d.%d", &major, &minor) != 2 || major < 6 ||
	    (major == 6 && minor < 4))
		skip("needs Linux 6.4");
	if (io_uring_queue_init_params(16, &ring, &p))
		skip("needs io_uring");
	own_network();
	tap = open_tap("tap0", false);
	command("ip link set tap0 up");
	packet = open_packet("tap0");
	if (io_uring_register_files(&ring, &tap, 1))
		broken("register");

	queue_read(buf[0], 2048)->rw_flags = RWF_NOWAIT;
	io_uring_submit(&ring);
	fact(result(100) == -EAGAIN,
	     "with RWF_NOWAIT a read of an empty tap ends with EAGAIN");

	queue_read(buf[0], 2048);
	io_uring_submit(&ring);
	fact(result(100) == PENDING,
	     "without it, it stays pending, whatever O_NONBLOCK says");
	send_frame(packet, 60);
	fact(result(1000) == 72, "and takes the next frame");

	send_frame(packet, 60);
	send_frame(packet, 61);
	for (int i = 0; i < 2; i++) {
		struct io_uring_sqe *sqe = queue_read(buf[i], 2048);

		sqe->rw_flags = RWF_NOWAIT;
		if (i == 0)
			sqe->flags |= IOSQE_IO_LINK;
	}
	io_uring_submit_and_wait(&ring, 2);
	fact(result(0) == 72 && result(0) == -ECANCELED,
	     "a read that gets less than its buffer holds ends a chain of "
	     "links");

	for (int i = 0; i < 2; i++)
		queue_read(buf[i], 2048)->rw_flags = RWF_NOWAIT;
	io_uring_submit_and_get_events(&ring);
	fact(result(0) == 73 && result(0) == -EAGAIN,
	     "reads without links are done in their order, within the enter");
	io_uring_queue_exit(&ring);
	return facts_status();
}
