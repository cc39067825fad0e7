/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of the I/O engines that does not depend on the engine: choosing
 * one, the tables of files and polls, and events that need no kernel.
 */
#include "base/io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "base/barrier.h"
#include "base/io_internal.h"
#include "base/util.h"

/* From Linux 6.4 on io_uring reads and writes a tap without a helper thread
 * per operation; before, plain readv/writev is quicker. */
#define TAP_NOWAIT_MAJOR 6
#define TAP_NOWAIT_MINOR 4

static bool kernel_has_tap_nowait(void)
{
	struct utsname u;
	char *end;
	unsigned long major, minor;

	if (uname(&u) < 0)
		return false;
	major = strtoul(u.release, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return major > TAP_NOWAIT_MAJOR ||
	       (major == TAP_NOWAIT_MAJOR && minor >= TAP_NOWAIT_MINOR);
}

int vl_io_choose(enum vl_io_engine wanted, const char **why)
{
	int err;

	if (wanted == VL_IO_SYNC) {
		*why = "as asked";
		return VL_IO_SYNC;
	}
	err = vl_io_uring_probe();
	if (wanted == VL_IO_URING) {
		*why = err ? "io_uring is missing, disabled or too old"
			   : "as asked";
		return err ? err : VL_IO_URING;
	}
	if (err) {
		*why = "io_uring is missing, disabled or too old";
		return VL_IO_SYNC;
	}
	if (!kernel_has_tap_nowait()) {
		*why = "io_uring serves taps well only from Linux 6.4 on";
		return VL_IO_SYNC;
	}
	*why = "io_uring works";
	return VL_IO_URING;
}

int vl_io_new(enum vl_io_engine engine, unsigned int ops, struct vl_io **out)
{
	struct vl_io *io = engine == VL_IO_URING ? vl_io_uring_new(ops)
						 : vl_io_sync_new(ops);

	if (!io)
		return -ENOMEM;
	io->max_ops = ops;
	io->posted = calloc(ops, sizeof(io->posted[0]));
	if (!io->posted) {
		io->ops->free(io);
		return -ENOMEM;
	}
	for (size_t i = 0; i < VL_IO_FILES; i++)
		io->file[i] = -1;
	for (size_t i = 0; i < VL_IO_POLLS; i++)
		io->poll[i].fd = -1;
	*out = io;
	return 0;
}

int vl_io_start(struct vl_io *io)
{
	return io->ops->start(io);
}

void vl_io_free(struct vl_io *io)
{
	if (!io)
		return;
	free(io->posted);
	io->ops->free(io);
}

const struct vl_io_stats *vl_io_stats(const struct vl_io *io)
{
	return &io->stats;
}

int vl_io_file_add(struct vl_io *io, int fd)
{
	for (int i = 0; i < VL_IO_FILES; i++) {
		int err;

		if (io->file[i] >= 0)
			continue;
		err = io->ops->file_set(io, i, fd);
		if (err)
			return err;
		io->file[i] = fd;
		return i;
	}
	return -ENOSPC;
}

void vl_io_file_remove(struct vl_io *io, int file)
{
	if (file < 0 || file >= VL_IO_FILES || io->file[file] < 0)
		return;
	io->ops->file_set(io, file, -1);
	io->file[file] = -1;
}

unsigned int vl_io_room(struct vl_io *io)
{
	unsigned int posted = io->max_ops - io->posted_n;
	unsigned int queued = io->ops->room(io);
	unsigned int room = vl_min_u32(posted, queued);

	return room - vl_min_u32(room, io->reserved);
}

void vl_io_reserve(struct vl_io *io, int n)
{
	io->reserved += (unsigned int)n;
}

void vl_io_writev(struct vl_io *io, int file, const struct iovec *iov,
		  unsigned int n, bool linked, uint64_t tag)
{
	io->ops->rw(io, file, iov, n, VL_IO_WRITE | (linked ? VL_IO_LINKED : 0),
		    tag);
}

void vl_io_readv(struct vl_io *io, int file, const struct iovec *iov,
		 unsigned int n, uint64_t tag)
{
	io->ops->rw(io, file, iov, n, 0, tag);
}

void vl_io_sendmsg(struct vl_io *io, int file, const struct msghdr *msg,
		   unsigned int flags, uint64_t tag)
{
	/* The engines do not write to what is sent. */
	io->ops->msg(io, file, (struct msghdr *)(uintptr_t)msg,
		     flags | VL_IO_WRITE, tag);
}

void vl_io_recvmsg(struct vl_io *io, int file, struct msghdr *msg, uint64_t tag)
{
	io->ops->msg(io, file, msg, 0, tag);
}

bool vl_io_can_zerocopy(const struct vl_io *io)
{
	return io->can_zerocopy;
}

void vl_io_post(struct vl_io *io, int res, uint64_t tag)
{
	unsigned int at = (io->posted_head + io->posted_n) % io->max_ops;

	if (io->posted_n == io->max_ops)
		return; /* the caller did not check vl_io_room() */
	io->posted[at] = (struct vl_io_event){ .tag = tag, .res = res };
	io->posted_n++;
}

/* The entry that last served this descriptor and tag, armed or not. */
static struct vl_io_poll *poll_find(struct vl_io *io, int fd, uint64_t tag)
{
	for (size_t i = 0; i < VL_IO_POLLS; i++) {
		struct vl_io_poll *p = &io->poll[i];

		if (p->fd == fd && p->tag == tag)
			return p;
	}
	return NULL;
}

static struct vl_io_poll *poll_free_entry(struct vl_io *io)
{
	for (size_t i = 0; i < VL_IO_POLLS; i++) {
		struct vl_io_poll *p = &io->poll[i];

		if (!p->armed)
			return p;
	}
	return NULL;
}

int vl_io_poll(struct vl_io *io, int fd, uint32_t events, bool multishot,
	       uint64_t tag)
{
	struct vl_io_poll *p = poll_find(io, fd, tag);
	int err;

	if (p && p->armed)
		return 0;
	if (!p)
		p = poll_free_entry(io);
	if (!p)
		return -ENOSPC;
	p->fd = fd;
	p->tag = tag;
	p->events = events;
	p->multishot = multishot;
	p->gen++;
	p->armed = true;
	err = io->ops->poll_arm(io, (unsigned int)(p - io->poll));
	if (err)
		p->armed = false;
	return err;
}

void vl_io_poll_cancel(struct vl_io *io, int fd, uint64_t tag)
{
	struct vl_io_poll *p = poll_find(io, fd, tag);
	bool was_armed = p && p->armed;

	if (!p) {
		io->ops->poll_disarm(io, fd, VL_IO_POLLS, false);
		return;
	}
	p->armed = false;
	io->ops->poll_disarm(io, fd, (unsigned int)(p - io->poll), was_armed);
	p->gen++;
	p->fd = -1;
}

void vl_io_submit(struct vl_io *io)
{
	io->ops->submit(io);
}

void vl_io_wait(struct vl_io *io, int64_t timeout_ns)
{
	io->ops->wait(io, io->posted_n ? 0 : timeout_ns);
}

unsigned int vl_io_reap(struct vl_io *io, struct vl_io_event *ev,
			unsigned int max)
{
	unsigned int n = 0;

	while (n < max && io->posted_n) {
		ev[n++] = io->posted[io->posted_head];
		io->posted_head = (io->posted_head + 1) % io->max_ops;
		io->posted_n--;
	}
	return n < max ? n + io->ops->reap(io, ev + n, max - n) : n;
}
