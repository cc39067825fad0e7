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
#include "base/ip.h"

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
struct vl_tunnel_counters;

/* Whether frames are sent from where they lie (rule 12 of datapath.md). */
enum vl_zerocopy {
	VL_ZEROCOPY_OFF,
	VL_ZEROCOPY_AUTO, /* where it pays */
	VL_ZEROCOPY_ON,   /* wherever it can be done */
};

#define VL_REMOTES_MAX 64u
#define VL_STATICS_MAX 64u

/* A MAC address that is always behind the same remote. */
struct vl_static_mac {
	uint8_t mac[6];
	struct vl_ip remote;
};

/* What --backend= says, "tap,name=tap0,sndbuf=0" already split. */
struct vl_backend_params {
	const char *name;   /* interface name, NULL: not given */
	const char *fds;    /* "A:B", NULL: not given */
	uint64_t sndbuf;    /* bytes; 0: not limited */
	bool sndbuf_auto;   /* as the number of lanes needs it */
	unsigned int lanes; /* ways out of each port that are wanted */
	unsigned int queue_pairs;
	uint32_t mtu; /* to set on an interface we create; 0: leave */
	bool promisc; /* take frames for any address */

	/* A tunnel. */
	uint32_t vni;
	struct vl_ip local; /* len 0: not given */
	struct vl_ip remote[VL_REMOTES_MAX];
	unsigned int n_remotes;
	struct vl_static_mac statics[VL_STATICS_MAX];
	unsigned int n_statics;
	uint16_t port;
	uint32_t ageing_s; /* of learned addresses; 0: never */
	const char *fdb;   /* kernel vxlan device, NULL: not given */
	uint8_t mac[6];    /* that the driver is offered */

	enum vl_zerocopy zerocopy;
	uint32_t
		pending; /* descriptors that zero-copy may hold at most; 0: half
			   * of the virtqueue */
};

/* One transmission or one read: virtio header and frame. */
struct vl_frame {
	/* Valid until its event. */
	const struct iovec *iov;
	unsigned int n;
	/* Transmission only: see vl_io_writev(); may be sent from where it
	 * lies, see vl_io_sendmsg(): the event says whether it was. */
	bool linked, zerocopy;
	uint64_t tag;
};

/* Takes an event of a frame, on the worker of its port. */
typedef void vl_frame_event_fn(void *ctx, const struct vl_io_event *ev);

struct vl_backend_ops {
	const char *name; /* "tap" */
	const char *help; /* one line of its parameters, for --help */
	/* Names of the parameters that it takes, and that it needs; each ends
	 * with NULL, and may be NULL. */
	const char *const *keys, *const *needs;
	bool interface; /* needs one of vl_backend_params.name and fds */

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
	/* The driver has another MAC address than params.mac from now on.
	 * Returns 0 or -errno. NULL: it makes no difference. */
	int (*set_mac)(struct vl_backend *b, const uint8_t mac[6]);

	/* Descriptor to watch for link changes, -1: none. */
	int (*event_fd)(const struct vl_backend *b);
	/* It is readable: updates vl_backend.link. */
	void (*event)(struct vl_backend *b);

	/* Worker: binds the port to its engine / releases it. Operations of
	 * its own have tags from @tag to @tag + 2^32 - 1. */
	int (*port_start)(struct vl_backend *b, unsigned int port,
			  struct vl_io *io, uint64_t tag);
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
	/*
	 * Worker: queues what send() and recv() kept back to do it together. The
	 * submit follows. NULL: they keep nothing back.
	 */
	void (*flush)(struct vl_backend *b, unsigned int port,
		      struct vl_io *io);
	/*
	 * Worker: an operation of the port's own ended. Gives @emit the events
	 * of the frames that it was for. NULL: it has no such operations.
	 */
	void (*complete)(struct vl_backend *b, unsigned int port,
			 struct vl_io *io, const struct vl_io_event *ev,
			 vl_frame_event_fn *emit, void *ctx);
	/*
	 * Worker: queues a read of one frame; -EAGAIN when there is none, and
	 * -ECANCELED when it was not tried since another one was.
	 */
	void (*recv)(struct vl_backend *b, unsigned int port, struct vl_io *io,
		     const struct vl_frame *frame);
	/* Worker: arms a one-shot readiness event (EPOLLIN or EPOLLOUT). */
	int (*poll)(struct vl_backend *b, unsigned int port, unsigned int way,
		    struct vl_io *io, uint32_t events, uint64_t tag);
	void (*poll_cancel)(struct vl_backend *b, unsigned int port,
			    unsigned int way, struct vl_io *io, uint32_t events,
			    uint64_t tag);

	/* The tunnel's counters of a port. NULL: there is no tunnel. */
	const struct vl_tunnel_counters *(*tunnel)(const struct vl_backend *b,
						   unsigned int port);
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
	/* Operations that one frame may need; more than that of room is needed
	 * to send it. 0: one. */
	uint32_t ops_per_frame;
	/* A frame with segmentation offload that is larger, or has more
	 * segments, is cut before it is sent. 0: any will do. The number of
	 * segments may become less while others read it. */
	uint32_t gso_bytes, gso_segments;
	/* Frames may be sent from where they lie; ZEROCOPY_OFF: cannot be. */
	enum vl_zerocopy zerocopy;
	uint32_t pending; /* see vl_backend_params */
	char label[48];   /* for logs and stat: "tap0" */
	enum vl_link link;
	uint32_t mtu; /* of the host interface, 0: unknown */
	/* What the driver is to be offered as its MTU, at most; 0: any. */
	uint32_t mtu_offer;
	/* The first way of each port has a send buffer that can be full, so
	 * that order needs linked sends. The others have always. */
	bool limited;
};

/* For open(): writes a sentence to @err, of @size bytes, and returns @code. */
int vl_backend_fail(char *err, size_t size, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

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
