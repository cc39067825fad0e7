/* SPDX-License-Identifier: BSD-3-Clause */
#include "backend/null.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/iov.h"
#include "base/util.h"

#define PORTS_MAX 64
#define WAYS_MAX  16
/* Zero-copy sends whose results are not reaped: more than a submit has. */
#define RESULTS   256u

/* Tags of a port's own operations, as offsets. */
#define TAG_RESULT  0u /* a zero-copy send ended: the next of port.result */
#define TAG_RELEASE 1u /* vl_null_release() was called */

/* What a port needs for zero-copy. */
struct null_port {
	int wake; /* -1: not wanted */
	uint64_t tag;
	struct {
		uint64_t tag;
		bool more;
	} result[RESULTS]; /* a FIFO */
	unsigned int first, end;
	bool release; /* asked for: after the results, as a kernel does it */
};

struct null_backend {
	struct vl_backend base;
	struct vl_null_hooks hooks;
	/* The readiness of each port. Edge or not, a read of it is needed
	 * before it is waited for again. */
	int wake[PORTS_MAX];
	/* The same for each way out; -1 where no hook asks for it. */
	int wake_way[PORTS_MAX][WAYS_MAX];
	/* A read found nothing: those behind it are cancelled, until the port
	 * asks for readiness. */
	bool empty[PORTS_MAX];
	/* The same for a send that was refused: of one way, until it is waited
	 * for; of several, until the end of the submit. */
	bool full[PORTS_MAX];
	unsigned int room[PORTS_MAX]; /* of the engine, with nothing queued */
	struct null_port zc[PORTS_MAX];
};

static struct null_backend *to_null(struct vl_backend *b)
{
	return vl_container_of(b, struct null_backend, base);
}

static void null_close(struct vl_backend *b)
{
	struct null_backend *n = to_null(b);

	for (unsigned int i = 0; i < b->ports; i++)
		if (n->wake[i] >= 0)
			close(n->wake[i]);
	for (unsigned int i = 0; i < PORTS_MAX * WAYS_MAX; i++)
		if (n->wake_way[i / WAYS_MAX][i % WAYS_MAX] >= 0)
			close(n->wake_way[i / WAYS_MAX][i % WAYS_MAX]);
	for (unsigned int i = 0; i < PORTS_MAX; i++)
		if (n->zc[i].wake >= 0)
			close(n->zc[i].wake);
	free(n);
}

static int null_open(const struct vl_backend_params *params,
		     struct vl_backend **out, char *err, size_t err_size)
{
	struct null_backend *n;

	if (params->queue_pairs > PORTS_MAX) {
		(void)snprintf(err, err_size, "at most %d queue pairs",
			       PORTS_MAX);
		return -EINVAL;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	for (unsigned int i = 0; i < PORTS_MAX * WAYS_MAX; i++)
		n->wake_way[i / WAYS_MAX][i % WAYS_MAX] = -1;
	for (unsigned int i = 0; i < PORTS_MAX; i++)
		n->zc[i].wake = -1;
	n->base.ops = &vl_backend_null;
	n->base.ports = params->queue_pairs;
	n->base.ways = 1;
	n->base.link = VL_LINK_UP;
	n->base.caps = (struct vl_backend_caps){
		.csum = true,
		.tso = true,
		.tso_ecn = true,
		.uso = true,
	};
	(void)snprintf(n->base.label, sizeof(n->base.label), "null");
	for (unsigned int i = 0; i < n->base.ports; i++) {
		n->wake[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (n->wake[i] < 0) {
			int e = -errno;

			n->base.ports = i;
			null_close(&n->base);
			(void)snprintf(err, err_size, "eventfd: %m");
			return e;
		}
	}
	*out = &n->base;
	return 0;
}

static int null_set_offload(struct vl_backend *b, const struct vl_offload *o)
{
	(void)b;
	(void)o;
	return 0;
}

static int null_set_active(struct vl_backend *b, unsigned int port, bool active)
{
	(void)b;
	(void)port;
	(void)active;
	return 0;
}

static int null_event_fd(const struct vl_backend *b)
{
	(void)b;
	return -1;
}

static void null_event(struct vl_backend *b)
{
	(void)b;
}

static int null_port_start(struct vl_backend *b, unsigned int port,
			   struct vl_io *io, uint64_t tag)
{
	struct null_backend *n = to_null(b);
	struct null_port *z = &n->zc[port];

	z->tag = tag;
	n->room[port] = vl_io_room(io);
	return z->wake < 0 ? 0
			   : vl_io_poll(io, z->wake, EPOLLIN, true,
					tag + TAG_RELEASE);
}

static void null_port_stop(struct vl_backend *b, unsigned int port,
			   struct vl_io *io)
{
	struct null_port *z = &to_null(b)->zc[port];

	if (z->wake >= 0)
		vl_io_poll_cancel(io, z->wake, z->tag + TAG_RELEASE);
}

static void null_send(struct vl_backend *b, unsigned int port, unsigned int way,
		      struct vl_io *io, const struct vl_frame *f)
{
	struct null_backend *n = to_null(b);
	const struct vl_null_hooks *h = &n->hooks;
	struct null_port *z = &n->zc[port];
	bool zerocopy = f->zerocopy && h->send_zc, more = false;
	int res;

	if (h->ways > 1 && vl_io_room(io) == n->room[port])
		n->full[port] = false;
	if (n->full[port])
		res = -ECANCELED;
	else if (zerocopy)
		res = h->send_zc(h->ctx, port, way, f, &more);
	else if (h->send_way)
		res = h->send_way(h->ctx, port, way, f->iov, f->n);
	else
		res = h->send ? h->send(h->ctx, port, f->iov, f->n)
			      : (int)vl_iov_len(f->iov, f->n);
	n->full[port] |=
		f->linked && (res == -EAGAIN || (h->ways > 1 && res < 0));
	if (!zerocopy) {
		vl_io_post(io, res, f->tag);
		return;
	}
	z->result[z->end % RESULTS].tag = f->tag;
	z->result[z->end++ % RESULTS].more = more;
	vl_io_post(io, res, z->tag + TAG_RESULT);
}

static void null_complete(struct vl_backend *b, unsigned int port,
			  struct vl_io *io, const struct vl_io_event *ev,
			  vl_frame_event_fn *emit, void *ctx)
{
	struct null_backend *n = to_null(b);
	const struct vl_null_hooks *h = &n->hooks;
	struct null_port *z = &n->zc[port];
	struct vl_io_event out = { .res = ev->res };

	if (ev->tag == z->tag + TAG_RESULT) {
		out.tag = z->result[z->first % RESULTS].tag;
		out.more = z->result[z->first++ % RESULTS].more;
		emit(ctx, &out);
	} else {
		z->release = true;
		if (!ev->more)
			(void)vl_io_poll(io, z->wake, EPOLLIN, true, ev->tag);
	}
	if (!z->release || z->first != z->end)
		return;
	z->release = false;
	out = (struct vl_io_event){ .released = true };
	while (h->released(h->ctx, port, &out.tag, &out.copied))
		emit(ctx, &out);
}

static void null_recv(struct vl_backend *b, unsigned int port, struct vl_io *io,
		      const struct vl_frame *f)
{
	struct null_backend *n = to_null(b);
	const struct vl_null_hooks *h = &n->hooks;
	size_t room = vl_iov_len(f->iov, f->n);
	int res;

	if (n->empty[port])
		res = -ECANCELED;
	else
		res = h->recv ? h->recv(h->ctx, port, f->iov, f->n) : -EAGAIN;
	n->empty[port] |= res == -EAGAIN;
	vl_io_post(io, res > 0 && (size_t)res > room ? (int)room : res, f->tag);
}

static int poll_way(struct null_backend *n, unsigned int port, unsigned int way,
		    struct vl_io *io, uint64_t tag)
{
	uint64_t count;
	ssize_t got = read(n->wake_way[port][way], &count, sizeof(count));

	/* Asked after the read: what changes from now on is an event. */
	if (got < 0 && errno != EAGAIN)
		return -errno;
	if (n->hooks.writable(n->hooks.ctx, port, way)) {
		vl_io_post(io, EPOLLOUT, tag);
		return 0;
	}
	return vl_io_poll(io, n->wake_way[port][way], EPOLLIN, false, tag);
}

static int null_poll(struct vl_backend *b, unsigned int port, unsigned int way,
		     struct vl_io *io, uint32_t events, uint64_t tag)
{
	struct null_backend *n = to_null(b);
	uint64_t count;

	if ((events & EPOLLOUT) && n->wake_way[port][way] >= 0)
		return poll_way(n, port, way, io, tag);
	if (events & EPOLLOUT) {
		n->full[port] = false;
		vl_io_post(io, EPOLLOUT, tag);
		return 0;
	}
	n->empty[port] = false;
	/* Frames that came since the last -EAGAIN left the count at nonzero:
	 * then there is no need to wait. */
	if (read(n->wake[port], &count, sizeof(count)) == sizeof(count)) {
		vl_io_post(io, EPOLLIN, tag);
		return 0;
	}
	return vl_io_poll(io, n->wake[port], events, false, tag);
}

static void null_poll_cancel(struct vl_backend *b, unsigned int port,
			     unsigned int way, struct vl_io *io,
			     uint32_t events, uint64_t tag)
{
	struct null_backend *n = to_null(b);

	(void)events;
	vl_io_poll_cancel(io, n->wake[port], tag);
	if (n->wake_way[port][way] >= 0)
		vl_io_poll_cancel(io, n->wake_way[port][way], tag);
}

void vl_null_set_hooks(struct vl_backend *b, const struct vl_null_hooks *hooks)
{
	struct null_backend *n = to_null(b);

	n->hooks = hooks ? *hooks : (struct vl_null_hooks){ 0 };
	b->ways = n->hooks.ways > 1 ? n->hooks.ways : 1;
	b->limited = b->ways > 1;
	b->zerocopy = n->hooks.zerocopy;
	b->pending = n->hooks.pending;
	b->gso_bytes = n->hooks.gso_bytes;
	b->gso_segments = n->hooks.gso_segments;
	for (unsigned int i = 0; n->hooks.send_zc && i < b->ports; i++)
		n->zc[i].wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (unsigned int i = 0; n->hooks.writable && i < b->ports; i++)
		for (unsigned int w = 0; w < b->ways; w++)
			n->wake_way[i][w] =
				eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void vl_null_wake_way(struct vl_backend *b, unsigned int port, unsigned int way)
{
	const uint64_t one = 1;

	if (write(to_null(b)->wake_way[port][way], &one, sizeof(one)) < 0)
		return;
}

void vl_null_release(struct vl_backend *b, unsigned int port)
{
	const uint64_t one = 1;

	if (write(to_null(b)->zc[port].wake, &one, sizeof(one)) < 0)
		return;
}

void vl_null_wake(struct vl_backend *b, unsigned int port)
{
	const uint64_t one = 1;

	/* EAGAIN: the count is far from zero, which is all that matters. */
	if (write(to_null(b)->wake[port], &one, sizeof(one)) < 0)
		return;
}

const struct vl_backend_ops vl_backend_null = {
	.name = "null",
	.help = "null: takes every packet and drops it, receives none",
	.open = null_open,
	.close = null_close,
	.set_offload = null_set_offload,
	.set_active = null_set_active,
	.event_fd = null_event_fd,
	.event = null_event,
	.port_start = null_port_start,
	.port_stop = null_port_stop,
	.send = null_send,
	.complete = null_complete,
	.recv = null_recv,
	.poll = null_poll,
	.poll_cancel = null_poll_cancel,
};
