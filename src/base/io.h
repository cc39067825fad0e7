/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous file I/O with one interface and two engines.
 *
 * Operations are queued, then submitted together, then their events are
 * reaped; the three steps are apart so that a batch costs one system call and
 * reaping never happens inside the submit path.
 *
 *   uring  one io_uring per worker. vl_io_submit() is one io_uring_enter.
 *   sync   readv/writev at submit, epoll to wait. For kernels without
 *          io_uring, or whose io_uring is blind to taps (before Linux 6.4).
 *
 * A vl_io belongs to the thread that calls vl_io_start() on it; no function
 * locks. Files are expected to be non-blocking: an operation that cannot be
 * done at once ends with -EAGAIN, and the caller asks for readiness with
 * vl_io_poll(). Nothing is ever left running in the kernel except polls and
 * zero-copy sends, so memory named by another operation is free again as soon as
 * its event was reaped.
 */
#ifndef VL_BASE_IO_H
#define VL_BASE_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct msghdr;
struct vl_io;

enum vl_io_engine {
	VL_IO_AUTO,
	VL_IO_URING,
	VL_IO_SYNC,
};

/* What came of one operation, or one readiness event of a poll. */
struct vl_io_event {
	uint64_t tag; /* as given with the operation */
	int32_t res;  /* bytes, poll events (EPOLLIN...), or -errno */
	/* Another event with this tag comes: a multishot poll stays armed, the
	 * memory of a zero-copy send is still in use. */
	bool more;
	/* That other event of a zero-copy send: its memory is free. The kernel
	 * made a copy after all. */
	bool released, copied;
};

/* Counters of one vl_io; written by its thread only. */
struct vl_io_stats {
	uint64_t syscalls; /* system calls made by the engine */
	uint64_t waits;    /* times the thread went to sleep */
};

/*
 * Which engine @wanted means on this machine. Probes io_uring with a ring of
 * its own. Returns VL_IO_URING or VL_IO_SYNC and sets *why to a static
 * sentence for the log; -errno when @wanted is VL_IO_URING and cannot be had
 * (*why says the reason). Any thread.
 */
int vl_io_choose(enum vl_io_engine wanted, const char **why);

/*
 * Allocates an engine for at most @ops queued operations per submit. Returns
 * 0 or -errno. Any thread; vl_io_start() must follow on the thread that uses
 * it.
 */
int vl_io_new(enum vl_io_engine engine, unsigned int ops, struct vl_io **out);

/* Binds to the calling thread. Returns 0 or -errno. */
int vl_io_start(struct vl_io *io);

/* Ends all polls and frees the engine. Same thread as vl_io_start(). */
void vl_io_free(struct vl_io *io);

const struct vl_io_stats *vl_io_stats(const struct vl_io *io);

/*
 * Makes @fd known under a small number that reads and writes name; the
 * descriptor stays the caller's. Returns the number or -errno (-ENOSPC after
 * VL_IO_FILES).
 */
#define VL_IO_FILES 64
int vl_io_file_add(struct vl_io *io, int fd);
void vl_io_file_remove(struct vl_io *io, int file);

/* Queued operations that still fit before a submit is needed. */
unsigned int vl_io_room(struct vl_io *io);

/* @n operations more (or less, if negative) will be queued before the submit:
 * they are taken off the room. */
void vl_io_reserve(struct vl_io *io, int n);

/*
 * Queue one read or write on the file @file. @iov must stay valid until
 * vl_io_submit() returned, the memory it names until the event was reaped.
 * The caller checked vl_io_room(). Tags below 2^62.
 *
 * With @linked the next write to the same file is linked to this one: when this
 * one fails, it and all that are linked behind it end with -ECANCELED and were
 * not tried. A write to another file, and a submit, end the links. Reads cannot
 * be linked (io_uring takes a read that is shorter than its buffer for a
 * failure): one behind a read that found nothing may be tried, and may find
 * what came meanwhile, or end with -ECANCELED.
 */
void vl_io_writev(struct vl_io *io, int file, const struct iovec *iov,
		  unsigned int n, bool linked, uint64_t tag);
void vl_io_readv(struct vl_io *io, int file, const struct iovec *iov,
		 unsigned int n, uint64_t tag);

/*
 * The same for messages of a socket. @msg and all it points to must stay valid
 * until the event was reaped; the data of a send only until the last event if it
 * is VL_IO_ZEROCOPY, which needs vl_io_can_zerocopy(): one with the result, which
 * may be an error, and, when that has "more", one with "released".
 */
#define VL_IO_LINKED   1u
#define VL_IO_ZEROCOPY 2u
void vl_io_sendmsg(struct vl_io *io, int file, const struct msghdr *msg,
		   unsigned int flags, uint64_t tag);
void vl_io_recvmsg(struct vl_io *io, int file, struct msghdr *msg,
		   uint64_t tag);

/* Whether the engine sends without a copy. After vl_io_start(). */
bool vl_io_can_zerocopy(const struct vl_io *io);

/*
 * Posts an event without any kernel operation, for files that are none (the
 * null backend). It is reaped after the submit like the others.
 */
void vl_io_post(struct vl_io *io, int res, uint64_t tag);

/*
 * Asks for readiness of @fd (a plain descriptor). One-shot: one event, then
 * the poll is gone. Multishot: an event per wake-up of the file (edge
 * triggered: an eventfd need not be read), until an event without "more".
 * A one-shot poll that is armed twice with the same tag is armed once.
 * Returns 0 or -errno.
 */
int vl_io_poll(struct vl_io *io, int fd, uint32_t events, bool multishot,
	       uint64_t tag);

/* Ends a poll; its last event, if any, is reaped and dropped inside. */
void vl_io_poll_cancel(struct vl_io *io, int fd, uint64_t tag);

/* Starts what is queued: one system call at most (uring). Never blocks. */
void vl_io_submit(struct vl_io *io);

/* Submits and sleeps until an event is there or @timeout_ns passed (-1: no
 * limit, 0: only look). */
void vl_io_wait(struct vl_io *io, int64_t timeout_ns);

/* Moves up to @max events into @ev; no system call. Returns their number. */
unsigned int vl_io_reap(struct vl_io *io, struct vl_io_event *ev,
			unsigned int max);

#endif
