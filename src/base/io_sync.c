/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine without io_uring: operations are kept in a list and done one
 * after the other at submit with readv(2), sendmsg(2) and the like; readiness is epoll's.
 *
 * epoll knows a file once, while callers may poll it for reading and writing
 * under two tags. All polls of one descriptor therefore share one epoll entry
 * whose mask is the union of theirs. One-shot polls use EPOLLONESHOT, so that
 * an event that nobody waits for cannot wake the thread again and again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/barrier.h"
#include "base/io_internal.h"
#include "base/util.h"

struct sync_op {
	const struct iovec *iov;
	struct msghdr *msg; /* instead of iov */
	uint64_t tag;
	int file;
	unsigned int n;
	unsigned int flags;
};

struct sync_io {
	struct vl_io io;
	int epfd;
	unsigned int n_ops;
	struct sync_op *op;
	/* Descriptors that epoll knows, armed or (after an event) silenced. */
	int known[VL_IO_POLLS];
	unsigned int n_known;
	/* Polls that fired and are not reaped yet, as bits; and with what. */
	uint32_t fired;
	uint32_t fired_events[VL_IO_POLLS];
	struct vl_io_event *done;
	unsigned int done_head, done_n;
};

_Static_assert(VL_IO_POLLS <= 32, "one bit per poll in sync_io.fired");

static struct sync_io *to_sync(struct vl_io *io)
{
	return vl_container_of(io, struct sync_io, io);
}

static int sync_start(struct vl_io *io)
{
	struct sync_io *s = to_sync(io);

	s->epfd = epoll_create1(EPOLL_CLOEXEC);
	return s->epfd < 0 ? -errno : 0;
}

static void sync_free(struct vl_io *io)
{
	struct sync_io *s = to_sync(io);

	if (s->epfd >= 0)
		close(s->epfd);
	free(s->op);
	free(s->done);
	free(s);
}

static int sync_file_set(struct vl_io *io, int file, int fd)
{
	(void)io;
	(void)file;
	(void)fd;
	return 0;
}

static unsigned int sync_room(struct vl_io *io)
{
	struct sync_io *s = to_sync(io);

	return io->max_ops - vl_min_u32(io->max_ops, s->n_ops + s->done_n);
}

static void queue_op(struct sync_io *s, const struct sync_op *op)
{
	if (s->n_ops == s->io.max_ops)
		vl_io_post(&s->io, -EBUSY, op->tag);
	else
		s->op[s->n_ops++] = *op;
}

static void sync_rw(struct vl_io *io, int file, const struct iovec *iov,
		    unsigned int n, unsigned int flags, uint64_t tag)
{
	queue_op(to_sync(io), &(struct sync_op){
				      .file = file,
				      .iov = iov,
				      .n = n,
				      .flags = flags,
				      .tag = tag,
			      });
}

static void sync_msg(struct vl_io *io, int file, struct msghdr *msg,
		     unsigned int flags, uint64_t tag)
{
	queue_op(to_sync(io), &(struct sync_op){
				      .file = file,
				      .msg = msg,
				      .flags = flags,
				      .tag = tag,
			      });
}

static void sync_done(struct sync_io *s, uint64_t tag, int res)
{
	unsigned int at = (s->done_head + s->done_n) % s->io.max_ops;

	s->done[at] = (struct vl_io_event){ .tag = tag, .res = res };
	s->done_n++;
}

static int do_op(struct sync_io *s, const struct sync_op *op)
{
	int fd = s->io.file[op->file];
	bool write = op->flags & VL_IO_WRITE;
	ssize_t n;

	if (!op->msg)
		n = write ? writev(fd, op->iov, (int)op->n)
			  : readv(fd, op->iov, (int)op->n);
	else if (write)
		n = sendmsg(fd, op->msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		n = recvmsg(fd, op->msg, MSG_DONTWAIT);

	VL_STAT_INC(s->io.stats.syscalls);
	return n < 0 ? -errno : (int)n;
}

static void sync_submit(struct vl_io *io)
{
	struct sync_io *s = to_sync(io);
	const struct sync_op *failed = NULL;

	for (unsigned int i = 0; i < s->n_ops; i++) {
		const struct sync_op *op = &s->op[i];
		bool read = !(op->flags & VL_IO_WRITE);
		/* Asking an empty file again would only cost a call. */
		bool cancel = failed && failed->file == op->file &&
			      (read || failed->flags & VL_IO_LINKED);
		int res = cancel ? -ECANCELED : do_op(s, op);

		sync_done(s, op->tag, res);
		failed = res < 0 ? op : NULL;
	}
	s->n_ops = 0;
}

/* Where @fd stands among the descriptors that epoll knows; @n_known: nowhere. */
static unsigned int known_index(const struct sync_io *s, int fd)
{
	unsigned int i = 0;

	while (i < s->n_known && s->known[i] != fd)
		i++;
	return i;
}

/* What all armed polls of @fd together wait for; 0: there is none. */
static uint32_t wanted_events(const struct sync_io *s, int fd)
{
	uint32_t events = 0;
	bool multishot = false;

	for (size_t i = 0; i < VL_IO_POLLS; i++) {
		const struct vl_io_poll *p = &s->io.poll[i];

		if (p->fd != fd || !p->armed)
			continue;
		events |= p->events;
		multishot |= p->multishot;
	}
	if (!events)
		return 0;
	return events | (multishot ? EPOLLET : EPOLLONESHOT);
}

/* Tells epoll what the polls of @fd wait for now. */
static int update_fd(struct sync_io *s, int fd)
{
	struct epoll_event ev = {
		.events = wanted_events(s, fd),
		.data.fd = fd,
	};
	unsigned int at = known_index(s, fd);

	VL_STAT_INC(s->io.stats.syscalls);
	if (at < s->n_known) {
		if (ev.events && !epoll_ctl(s->epfd, EPOLL_CTL_MOD, fd, &ev))
			return 0;
		/* Not wanted, or ENOENT: the descriptor was closed and its
		 * number is in use again. */
		(void)epoll_ctl(s->epfd, EPOLL_CTL_DEL, fd, NULL);
		s->known[at] = s->known[--s->n_known];
	}
	if (!ev.events)
		return 0;
	if (s->n_known == VL_IO_POLLS)
		return -ENOSPC;
	if (epoll_ctl(s->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	s->known[s->n_known++] = fd;
	return 0;
}

static int sync_poll_arm(struct vl_io *io, unsigned int index)
{
	struct sync_io *s = to_sync(io);

	s->fired &= ~(1u << index);
	return update_fd(s, io->poll[index].fd);
}

static void sync_poll_disarm(struct vl_io *io, int fd, unsigned int index,
			     bool was_armed)
{
	struct sync_io *s = to_sync(io);

	(void)was_armed;
	if (index < VL_IO_POLLS)
		s->fired &= ~(1u << index);
	if (known_index(s, fd) < s->n_known)
		(void)update_fd(s, fd);
}

/* Marks the polls of @fd that @events answer. */
static void fire(struct sync_io *s, int fd, uint32_t events)
{
	bool left = false;

	for (unsigned int i = 0; i < VL_IO_POLLS; i++) {
		struct vl_io_poll *p = &s->io.poll[i];

		if (!p->armed || p->fd != fd)
			continue;
		if (events & (p->events | EPOLLERR | EPOLLHUP)) {
			s->fired |= 1u << i;
			s->fired_events[i] = events;
		} else {
			left = true;
		}
		if (p->multishot)
			left = false;
	}
	/* EPOLLONESHOT silenced the other direction too. */
	if (left)
		(void)update_fd(s, fd);
}

static void sync_wait(struct vl_io *io, int64_t timeout_ns)
{
	struct sync_io *s = to_sync(io);
	struct epoll_event ev[VL_IO_POLLS];
	struct timespec ts;
	int n;

	sync_submit(io);
	if (s->done_n || s->fired)
		timeout_ns = 0;
	if (timeout_ns != 0)
		VL_STAT_INC(io->stats.waits);
	if (timeout_ns > 0) {
		ts.tv_sec = timeout_ns / (int64_t)VL_NS_PER_SEC;
		ts.tv_nsec = timeout_ns % (int64_t)VL_NS_PER_SEC;
		n = epoll_pwait2(s->epfd, ev, VL_IO_POLLS, &ts, NULL);
	} else {
		n = epoll_wait(s->epfd, ev, VL_IO_POLLS,
			       timeout_ns < 0 ? -1 : 0);
	}
	VL_STAT_INC(io->stats.syscalls);
	for (int i = 0; i < n; i++)
		fire(s, ev[i].data.fd, ev[i].events);
}

static unsigned int sync_reap(struct vl_io *io, struct vl_io_event *ev,
			      unsigned int max)
{
	struct sync_io *s = to_sync(io);
	unsigned int n = 0;

	for (; n < max && s->done_n; n++) {
		ev[n] = s->done[s->done_head];
		s->done_head = (s->done_head + 1) % io->max_ops;
		s->done_n--;
	}
	for (unsigned int i = 0; s->fired && n < max && i < VL_IO_POLLS; i++) {
		struct vl_io_poll *p = &io->poll[i];

		if (!(s->fired & 1u << i))
			continue;
		s->fired &= ~(1u << i);
		if (!p->armed)
			continue;
		if (!p->multishot)
			p->armed = false;
		ev[n++] = (struct vl_io_event){
			.tag = p->tag,
			.res = (int32_t)s->fired_events[i],
			.more = p->multishot,
		};
	}
	return n;
}

static const struct vl_io_ops sync_ops = {
	.start = sync_start,
	.free = sync_free,
	.file_set = sync_file_set,
	.room = sync_room,
	.rw = sync_rw,
	.msg = sync_msg,
	.poll_arm = sync_poll_arm,
	.poll_disarm = sync_poll_disarm,
	.submit = sync_submit,
	.wait = sync_wait,
	.reap = sync_reap,
};

struct vl_io *vl_io_sync_new(unsigned int ops)
{
	struct sync_io *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->io.ops = &sync_ops;
	s->epfd = -1;
	s->op = calloc(ops, sizeof(s->op[0]));
	s->done = calloc(ops, sizeof(s->done[0]));
	if (!s->op || !s->done) {
		sync_free(&s->io);
		return NULL;
	}
	return &s->io;
}
