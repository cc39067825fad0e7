/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * THE contract between the virtio-net device and a host network.
 *
 * A backend is opened once for a device and has one port per queue pair. A
 * port is used by the worker thread of its queue pair only; everything else
 * is called by the control thread, never while a port function of the same
 * port runs (the device takes care of that).
 *
 * Frames carry a virtio-net header in front, of the length last given to
 * set_offload(), checked by the caller. A transmission is queued on the
 * worker's vl_io and ends in one event with the caller's tag: bytes taken or
 * -errno. Events of different transmissions may come in any order.
 */
#ifndef VL_LANE_BACKEND_H
#define VL_LANE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/io.h"

/* What a backend can do; probed when it is opened, never assumed. */
struct vl_backend_caps {
	bool csum;    /* completes partial checksums and may deliver them */
	bool tso;     /* TCP segmentation both ways, IPv4 and IPv6 */
	bool tso_ecn; /* also with ECN */
	bool uso;     /* UDP segmentation both ways, IPv4 and IPv6 */
};

/* Link states; names by vl_link_name(). */
enum vl_link {
	VL_LINK_UNKNOWN, /* cannot be seen; counts as up */
	VL_LINK_DOWN,
	VL_LINK_UP,
	VL_LINK_GONE, /* the host interface was deleted */
};

const char *vl_link_name(enum vl_link link);

/* What of a received frame the driver can take (from its GUEST_* features). */
struct vl_offload {
	uint32_t hdr_len; /* virtio header in front of each frame, 10 or 12 */
	bool csum;
	bool tso4, tso6, ecn;
	bool uso4, uso6;
};

struct vl_backend;

/* One key=value list, "tap,name=tap0,sndbuf=0" already split. */
struct vl_backend_params {
	const char *name;   /* interface name, NULL: not given */
	const char *fds;    /* "A:B", NULL: not given */
	uint64_t sndbuf;    /* bytes; 0: not limited */
	bool sndbuf_auto;   /* as the number of lanes needs it */
	unsigned int lanes; /* ways out of each port that are wanted */
	unsigned int queue_pairs;
	uint32_t mtu; /* to set on an interface we create; 0: leave */
};

/* One transmission or one read: virtio header and frame. */
struct vl_frame {
	const struct iovec *iov; /* valid until the submit */
	unsigned int n;
	bool linked; /* transmission only, see vl_io_writev() */
	uint64_t tag;
};

struct vl_backend_ops {
	const char *name; /* "tap" */
	const char *help; /* one line of its parameters, for --help */
	bool interface;   /* needs one of vl_backend_params.name and fds */

	/*
	 * Opens the host network. On failure returns -errno and writes a
	 * sentence to @err: what, where, how to mend it.
	 */
	int (*open)(const struct vl_backend_params *params,
		    struct vl_backend **out, char *err, size_t err_size);
	void (*close)(struct vl_backend *b);

	/* What frames to deliver from now on. Returns 0 or -errno. */
	int (*set_offload)(struct vl_backend *b, const struct vl_offload *o);
	/* Whether port @port takes part: an unused one must get no frames. */
	int (*set_active)(struct vl_backend *b, unsigned int port, bool active);

	/* Descriptor to watch for link changes, -1: none. */
	int (*event_fd)(const struct vl_backend *b);
	/* It is readable: updates vl_backend.link. */
	void (*event)(struct vl_backend *b);

	/* Worker: binds the port to its engine / releases it. */
	int (*port_start)(struct vl_backend *b, unsigned int port,
			  struct vl_io *io);
	void (*port_stop)(struct vl_backend *b, unsigned int port,
			  struct vl_io *io);
	/* Worker: queues one frame on way @way. Room was checked. */
	void (*send)(struct vl_backend *b, unsigned int port, unsigned int way,
		     struct vl_io *io, const struct vl_frame *frame);
	/*
	 * Worker: bytes of kernel memory that way @way takes for sure, 0 when
	 * that is not known. NULL: never known. One system call.
	 */
	uint64_t (*headroom)(struct vl_backend *b, unsigned int port,
			     unsigned int way);
	/* Worker: queues a read of one frame; -EAGAIN when there is none. */
	void (*recv)(struct vl_backend *b, unsigned int port, struct vl_io *io,
		     const struct vl_frame *frame);
	/* Worker: arms a one-shot readiness event (EPOLLIN or EPOLLOUT). */
	int (*poll)(struct vl_backend *b, unsigned int port, unsigned int way,
		    struct vl_io *io, uint32_t events, uint64_t tag);
	void (*poll_cancel)(struct vl_backend *b, unsigned int port,
			    unsigned int way, struct vl_io *io, uint64_t tag);
};

/* The part of every backend that others may read. */
struct vl_backend {
	const struct vl_backend_ops *ops;
	struct vl_backend_caps caps;
	unsigned int ports;
	unsigned int ways; /* out of each port; all but the first only send */
	/* The last so many of them have a short send buffer, of a few packets:
	 * for the slowest destinations. */
	unsigned int short_ways;
	/* More ways, numbered behind these, that take a packet only while none
	 * is charged to them; headroom() is 0 as long as one is. */
	unsigned int probes;
	char label[48]; /* for logs and stat: "tap0" */
	enum vl_link link;
	uint32_t mtu; /* of the host interface, 0: unknown */
	/* The first way of each port has a send buffer that can be full, so
	 * that order needs linked sends. The others have always. */
	bool limited;
};

/* How a send or receive ended, from its event's result. */
enum vl_io_verdict {
	VL_IO_DONE,
	VL_IO_AGAIN,   /* full or empty: wait for readiness, order kept */
	VL_IO_DOWN,    /* the interface is down: dropped (EIO) */
	VL_IO_GONE,    /* the interface does not exist any more */
	VL_IO_REFUSED, /* this frame was not taken, the next one may be */
	VL_IO_NOMEM,   /* the kernel had no memory for it: dropped */
	VL_IO_VERDICTS,
};

/* Pure. -EAGAIN and -ECANCELED are VL_IO_AGAIN. */
enum vl_io_verdict vl_io_verdict(int res);

#endif
