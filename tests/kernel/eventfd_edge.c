/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An eventfd that nobody reads: each write is one event of an edge-triggered
 * epoll and of a multishot poll of io_uring. So kicks need no read.
 */
#include <liburing.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kernel.h"

#define ROUNDS 1000

static void with_epoll(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(0), events = 0;

	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
	for (int i = 0; i < ROUNDS; i++) {
		eventfd_write(fd, 1);
		events += epoll_wait(ep, &ev, 1, 1000);
	}
	fact(events == ROUNDS, "EPOLLET: one event per write, never read");
	fact(epoll_wait(ep, &ev, 1, 50) == 0, "and none without a write");
	close(ep);
}

static void with_io_uring(int fd)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	struct __kernel_timespec ts = { 0, 50000000 };
	int events = 0;

	if (io_uring_queue_init(8, &ring, 0))
		return;
	io_uring_prep_poll_multishot(io_uring_get_sqe(&ring), fd, EPOLLIN);
	io_uring_submit(&ring);
	/* The count was not zero: the first event is about that. */
	if (io_uring_wait_cqe(&ring, &cqe) == 0)
		io_uring_cqe_seen(&ring, cqe);
	for (int i = 0; i < ROUNDS; i++) {
		eventfd_write(fd, 1);
		if (io_uring_wait_cqe(&ring, &cqe) || cqe->res < 0 ||
		    !(cqe->flags & IORING_CQE_F_MORE))
			break;
		io_uring_cqe_seen(&ring, cqe);
		events++;
	}
	fact(events == ROUNDS, "multishot poll: the same, and it stays armed");
	fact(io_uring_wait_cqe_timeout(&ring, &cqe, &ts) != 0,
	     "and none without a write");
	io_uring_queue_exit(&ring);
}

int main(void)
{
	int fd = eventfd(0, EFD_NONBLOCK);

	with_epoll(fd);
	with_io_uring(fd);
	return facts_status();
}
