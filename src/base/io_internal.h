/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engines of base/io.h share; included by base/io*.c only. */
#ifndef VL_BASE_IO_INTERNAL_H
#define VL_BASE_IO_INTERNAL_H

#include "base/io.h"

/* Polls of one worker: two kicks, a wake-up, two directions of its files. */
#define VL_IO_POLLS 32

struct vl_io_poll {
	uint64_t tag;
	int fd;
	uint32_t events;
	uint32_t gen; /* tells events of this poll from those of earlier ones */
	bool multishot;
	bool armed;
};

struct vl_io_ops {
	int (*start)(struct vl_io *io);
	void (*free)(struct vl_io *io);
	int (*file_set)(struct vl_io *io, int file, int fd);
	unsigned int (*room)(struct vl_io *io);
	void (*rw)(struct vl_io *io, int file, const struct iovec *iov,
		   unsigned int n, unsigned int flags, uint64_t tag);
	void (*msg)(struct vl_io *io, int file, struct msghdr *msg,
		    unsigned int flags, uint64_t tag);
	int (*poll_arm)(struct vl_io *io, unsigned int index);
	/* Ends the poll in entry @index (VL_IO_POLLS: there is none any more) of
	 * @fd, which the caller may close then. @was_armed: no event came. */
	void (*poll_disarm)(struct vl_io *io, int fd, unsigned int index,
			    bool was_armed);
	void (*submit)(struct vl_io *io);
	void (*wait)(struct vl_io *io, int64_t timeout_ns);
	unsigned int (*reap)(struct vl_io *io, struct vl_io_event *ev,
			     unsigned int max);
};

#define VL_IO_WRITE 4u /* with the flags of io.h */

/* Embedded as the first member of each engine's own struct. */
struct vl_io {
	const struct vl_io_ops *ops;
	unsigned int max_ops;
	unsigned int reserved; /* of them */
	bool can_zerocopy;
	struct vl_io_stats stats;
	struct vl_io_poll poll[VL_IO_POLLS];
	int file[VL_IO_FILES]; /* -1: free */

	/* Events that need no kernel: a FIFO of at most max_ops. */
	struct vl_io_event *posted;
	unsigned int posted_head, posted_n;
};

int vl_io_uring_probe(void);
struct vl_io *vl_io_uring_new(unsigned int ops);
struct vl_io *vl_io_sync_new(unsigned int ops);

#endif
