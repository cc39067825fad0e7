/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The io_uring engine.
 *
 * The ring is created on the thread that uses it, with DEFER_TASKRUN: the
 * kernel then does completion work only inside our own enters, never by
 * interrupting the worker. Reads and writes on non-blocking files complete
 * during the enter that submits them; only polls stay behind.
 *
 * user_data: bit 63 clear is the caller's tag of an operation on a file. Set, the low
 * bits name a poll: generation << 16 | index; an event of an older generation
 * belongs to a poll that was cancelled and is dropped. All ones: the event of
 * a cancel request itself, dropped too. Bit 62 is set with the tag of a zero-copy
 * send.
 *
 * A zero-copy send that was cancelled, since one before it in its chain failed, has
 * a second event as all others have, but its first one does not say so (Linux
 * 6.18). Without knowing that, the second event would be taken for one of a
 * later operation with the same tag, whose memory is still in use. Whether the
 * kernel does so is tried out at the start.
 */
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/barrier.h"
#include "base/io_internal.h"
#include "base/uapi.h"
#include "base/util.h"

#define POLL_BIT     (1ULL << 63)
#define ZEROCOPY_BIT (1ULL << 62)
#define IGNORED_DATA UINT64_MAX

struct uring_io {
	struct vl_io io;
	struct io_uring ring;
	struct io_uring_sqe *linked; /* last one queued, if it has a link */
	int linked_file;
	unsigned int n_linked;      /* queued reads and writes of chains */
	bool cancelled_is_released; /* see above */
	bool started;
};

static struct uring_io *to_uring(struct vl_io *io)
{
	return vl_container_of(io, struct uring_io, io);
}

static int ring_init(struct io_uring *ring, unsigned int entries)
{
	struct io_uring_params p = {
		.flags = IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
	};

	return io_uring_queue_init_params(entries, ring, &p);
}

int vl_io_uring_probe(void)
{
	struct io_uring ring;
	int err = ring_init(&ring, 4);

	if (err)
		return err;
	io_uring_queue_exit(&ring);
	return 0;
}

static bool has_sendmsg_zc(struct io_uring *ring)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool has =
		probe && io_uring_opcode_supported(probe, IORING_OP_SENDMSG_ZC);

	io_uring_free_probe(probe);
	return has;
}

/* Cancels a zero-copy send, and looks whether it has a second event. */
static bool try_cancelled(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	struct msghdr msg = { 0 };
	struct io_uring_sqe *sqe;
	unsigned int head, n = 0;
	bool released = false;

	/* No file is registered yet: the first one fails. */
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_rw(IORING_OP_READ, sqe, 0, NULL, 0, 0);
	sqe->flags = IOSQE_FIXED_FILE | IOSQE_IO_LINK;
	sqe->user_data = 0;
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_sendmsg_zc(sqe, 0, &msg, 0);
	sqe->flags = IOSQE_FIXED_FILE;
	sqe->user_data = ZEROCOPY_BIT;
	(void)io_uring_submit_and_wait(ring, 2);
	(void)io_uring_submit_and_get_events(ring);
	io_uring_for_each_cqe(ring, head, cqe)
	{
		released |= cqe->flags & IORING_CQE_F_NOTIF;
		n++;
	}
	io_uring_cq_advance(ring, n);
	return released;
}

static int uring_start(struct vl_io *io)
{
	struct uring_io *u = to_uring(io);
	int err = ring_init(&u->ring, io->max_ops + 2 * VL_IO_POLLS);

	if (err)
		return err;
	err = io_uring_register_files_sparse(&u->ring, VL_IO_FILES);
	if (err < 0) {
		io_uring_queue_exit(&u->ring);
		return err;
	}
	u->started = true;
	io->can_zerocopy = has_sendmsg_zc(&u->ring);
	if (io->can_zerocopy)
		u->cancelled_is_released = try_cancelled(&u->ring);
	return 0;
}

static void uring_free(struct vl_io *io)
{
	struct uring_io *u = to_uring(io);

	if (u->started)
		io_uring_queue_exit(&u->ring);
	free(u);
}

/* Nothing but reads and writes takes part in a chain, and none is open-ended. */
static void end_links(struct uring_io *u)
{
	if (u->linked)
		u->linked->flags &= (uint8_t)~IOSQE_IO_LINK;
	u->linked = NULL;
}

static int uring_file_set(struct vl_io *io, int file, int fd)
{
	struct uring_io *u = to_uring(io);
	int n = io_uring_register_files_update(&u->ring, (unsigned int)file,
					       &fd, 1);

	VL_STAT_INC(io->stats.syscalls);
	return n < 0 ? n : 0;
}

/* Polls may use the entries beyond max_ops, so that they always find one. */
static unsigned int uring_room(struct vl_io *io)
{
	struct uring_io *u = to_uring(io);
	unsigned int left = io_uring_sq_space_left(&u->ring);

	return left > 2 * VL_IO_POLLS ? left - 2 * VL_IO_POLLS : 0;
}

static void uring_submit(struct vl_io *io)
{
	struct uring_io *u = to_uring(io);

	end_links(u);

	if (!io_uring_sq_ready(&u->ring))
		return;
	/* An operation behind a link starts when the one before it ended, in
	 * the part of the enter that waits. None of them can block, so waiting
	 * for all costs no time and keeps the batch in one enter.
	 *
	 * Fails only when the completion queue is full; the operations stay
	 * queued then and go with the next call. */
	if (u->n_linked)
		(void)io_uring_submit_and_wait(&u->ring, u->n_linked);
	else
		(void)io_uring_submit_and_get_events(&u->ring);
	u->n_linked = 0;
	VL_STAT_INC(io->stats.syscalls);
}

static struct io_uring_sqe *get_sqe(struct uring_io *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	if (vl_unlikely(!sqe)) {
		uring_submit(&u->io);
		sqe = io_uring_get_sqe(&u->ring);
	}
	return sqe;
}

/* The entry for an operation on @file, linked to the one before as that one
 * wanted; NULL: none is free, and the event was posted. */
static struct io_uring_sqe *file_sqe(struct uring_io *u, int file, uint64_t tag)
{
	struct io_uring_sqe *sqe;

	if (u->linked && u->linked_file != file)
		end_links(u);
	sqe = get_sqe(u);
	if (vl_unlikely(!sqe))
		vl_io_post(&u->io, -EBUSY, tag);
	return sqe;
}

/* The entry is prepared: the rest, which is the same for all operations. */
static void finish_sqe(struct uring_io *u, struct io_uring_sqe *sqe, int file,
		       unsigned int flags, uint64_t tag)
{
	sqe->flags = IOSQE_FIXED_FILE;
	u->linked = NULL;
	if (flags & VL_IO_LINKED) {
		sqe->flags |= IOSQE_IO_LINK;
		u->linked = sqe;
		u->linked_file = file;
		u->n_linked++;
	}
	sqe->user_data = tag;
}

static void uring_rw(struct vl_io *io, int file, const struct iovec *iov,
		     unsigned int n, unsigned int flags, uint64_t tag)
{
	struct uring_io *u = to_uring(io);
	struct io_uring_sqe *sqe = file_sqe(u, file, tag);
	bool write = flags & VL_IO_WRITE;

	if (vl_unlikely(!sqe))
		return;
	/* One buffer: the kernel need not copy a list in (measured: 80 ns). */
	if (n == 1)
		io_uring_prep_rw(write ? IORING_OP_WRITE : IORING_OP_READ, sqe,
				 file, iov->iov_base,
				 (unsigned int)iov->iov_len, 0);
	else
		io_uring_prep_rw(write ? IORING_OP_WRITEV : IORING_OP_READV,
				 sqe, file, iov, n, 0);
	/* Whatever the file's own flags say, also if someone changes them. */
	sqe->rw_flags = RWF_NOWAIT;
	finish_sqe(u, sqe, file, flags, tag);
}

static void uring_msg(struct vl_io *io, int file, struct msghdr *msg,
		      unsigned int flags, uint64_t tag)
{
	struct uring_io *u = to_uring(io);
	struct io_uring_sqe *sqe = file_sqe(u, file, tag);

	if (vl_unlikely(!sqe))
		return;
	if (!(flags & VL_IO_WRITE)) {
		io_uring_prep_recvmsg(sqe, file, msg, MSG_DONTWAIT);
	} else if (flags & VL_IO_ZEROCOPY) {
		io_uring_prep_sendmsg_zc(sqe, file, msg,
					 MSG_DONTWAIT | MSG_NOSIGNAL);
		sqe->ioprio |= IORING_SEND_ZC_REPORT_USAGE;
	} else if (msg->msg_iovlen == 1 && !msg->msg_name &&
		   !msg->msg_controllen) {
		/* The kernel need not copy the message in (measured: 170 ns). */
		io_uring_prep_send(sqe, file, msg->msg_iov->iov_base,
				   msg->msg_iov->iov_len,
				   MSG_DONTWAIT | MSG_NOSIGNAL);
	} else {
		io_uring_prep_sendmsg(sqe, file, msg,
				      MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	finish_sqe(u, sqe, file, flags,
		   flags & VL_IO_ZEROCOPY ? tag | ZEROCOPY_BIT : tag);
}

static uint64_t poll_data(const struct vl_io_poll *p, unsigned int index)
{
	return POLL_BIT | (uint64_t)p->gen << 16 | index;
}

static int uring_poll_arm(struct vl_io *io, unsigned int index)
{
	struct uring_io *u = to_uring(io);
	struct vl_io_poll *p = &io->poll[index];
	struct io_uring_sqe *sqe;

	end_links(u);
	sqe = get_sqe(u);
	if (!sqe)
		return -EBUSY;
	if (p->multishot)
		io_uring_prep_poll_multishot(sqe, p->fd, p->events);
	else
		io_uring_prep_poll_add(sqe, p->fd, p->events);
	sqe->user_data = poll_data(p, index);
	return 0;
}

static void uring_poll_disarm(struct vl_io *io, int fd, unsigned int index,
			      bool was_armed)
{
	struct uring_io *u = to_uring(io);
	struct io_uring_sqe *sqe;

	(void)fd;
	end_links(u);
	sqe = was_armed ? get_sqe(u) : NULL;
	if (!sqe)
		return;
	io_uring_prep_poll_remove(sqe, poll_data(&io->poll[index], index));
	sqe->user_data = IGNORED_DATA;
	/* At once: the poll holds a reference to the file, which the caller
	 * is about to close. */
	uring_submit(io);
}

static void uring_wait(struct vl_io *io, int64_t timeout_ns)
{
	struct uring_io *u = to_uring(io);
	struct io_uring_cqe *cqe;
	struct __kernel_timespec ts;

	end_links(u);
	if (io_uring_cq_ready(&u->ring))
		timeout_ns = 0;
	VL_STAT_INC(io->stats.syscalls);
	if (timeout_ns == 0) {
		(void)io_uring_submit_and_get_events(&u->ring);
		return;
	}
	VL_STAT_INC(io->stats.waits);
	if (timeout_ns < 0) {
		(void)io_uring_submit_and_wait(&u->ring, 1);
		return;
	}
	ts.tv_sec = timeout_ns / (int64_t)VL_NS_PER_SEC;
	ts.tv_nsec = timeout_ns % (int64_t)VL_NS_PER_SEC;
	(void)io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, &ts, NULL);
}

/* The rest of an event of a zero-copy send. */
static void decode_zerocopy(const struct uring_io *u,
			    const struct io_uring_cqe *cqe,
			    struct vl_io_event *ev)
{
	ev->tag &= ~ZEROCOPY_BIT;
	if (cqe->flags & IORING_CQE_F_NOTIF) {
		ev->released = true;
		ev->copied = (uint32_t)cqe->res & IORING_NOTIF_USAGE_ZC_COPIED;
		ev->res = 0;
	} else if (cqe->res == -ECANCELED) {
		ev->more |= u->cancelled_is_released;
	}
}

/* Fills @ev from @cqe; false for events that nobody waits for any more. */
static bool decode(struct vl_io *io, const struct io_uring_cqe *cqe,
		   struct vl_io_event *ev)
{
	struct vl_io_poll *p;
	uint64_t data = cqe->user_data;

	*ev = (struct vl_io_event){
		.tag = data,
		.res = cqe->res,
		.more = cqe->flags & IORING_CQE_F_MORE,
	};
	if (vl_likely(!(data & POLL_BIT))) {
		if (vl_unlikely(data & ZEROCOPY_BIT))
			decode_zerocopy(to_uring(io), cqe, ev);
		return true;
	}
	if (data == IGNORED_DATA || (data & 0xffff) >= VL_IO_POLLS)
		return false;
	p = &io->poll[data & 0xffff];
	if (!p->armed || data != poll_data(p, data & 0xffff))
		return false;
	if (!ev->more)
		p->armed = false;
	ev->tag = p->tag;
	return true;
}

static unsigned int uring_reap(struct vl_io *io, struct vl_io_event *ev,
			       unsigned int max)
{
	struct uring_io *u = to_uring(io);
	struct io_uring_cqe *cqe;
	unsigned int head, seen = 0, n = 0;

	io_uring_for_each_cqe(&u->ring, head, cqe)
	{
		if (n == max)
			break;
		seen++;
		if (decode(io, cqe, &ev[n]))
			n++;
	}
	io_uring_cq_advance(&u->ring, seen);
	return n;
}

static const struct vl_io_ops uring_ops = {
	.start = uring_start,
	.free = uring_free,
	.file_set = uring_file_set,
	.room = uring_room,
	.rw = uring_rw,
	.msg = uring_msg,
	.poll_arm = uring_poll_arm,
	.poll_disarm = uring_poll_disarm,
	.submit = uring_submit,
	.wait = uring_wait,
	.reap = uring_reap,
};

struct vl_io *vl_io_uring_new(unsigned int ops)
{
	struct uring_io *u = calloc(1, sizeof(*u));

	(void)ops;
	if (!u)
		return NULL;
	u->io.ops = &uring_ops;
	return &u->io;
}
