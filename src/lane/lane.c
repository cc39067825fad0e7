/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/lane.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/iov.h"

void vl_lane_bind(struct vl_lane *lane, struct vl_backend *backend,
		  unsigned int port, unsigned int way, struct vl_io *io)
{
	lane->backend = backend;
	lane->port = port;
	lane->way = way;
	lane->io = io;
	/* A probe is given a packet only when there is room for it. */
	lane->limited = way ? way < backend->ways : backend->limited;
	lane->down = backend->link == VL_LINK_DOWN;
}

static void cancel_polls(struct vl_lane *lane)
{
	const struct vl_backend_ops *ops = lane->backend->ops;

	if (lane->way == 0)
		ops->poll_cancel(lane->backend, lane->port, 0, lane->io,
				 EPOLLIN, lane->tag_in);
	ops->poll_cancel(lane->backend, lane->port, lane->way, lane->io,
			 EPOLLOUT, lane->tag_out);
	lane->full = false;
	lane->empty = false;
}

void vl_lane_release(struct vl_lane *lane)
{
	cancel_polls(lane);
}

int vl_lane_set_active(struct vl_lane *lane, bool active)
{
	int err;

	if (lane->active == active)
		return 0;
	cancel_polls(lane);
	err = lane->backend->ops->set_active(lane->backend, lane->port, active);
	if (!err)
		lane->active = active;
	return err;
}

/* A link costs a packet 80 ns, asking for the headroom 250 ns. */
#define LINKS_WORTH_ASKING 8u

void vl_lane_begin(struct vl_lane *lane, unsigned int packets)
{
	const struct vl_backend_ops *ops = lane->backend->ops;

	lane->headroom = 0;
	if (lane->limited && ops->headroom && lane->active &&
	    packets >= LINKS_WORTH_ASKING)
		lane->headroom =
			ops->headroom(lane->backend, lane->port, lane->way);
}

/* Whether the frame of @n pieces has to be linked: it may be refused. Charged
 * is the memory of the kernel's buffer, not more than twice the frame (rounded
 * up to a power of two) and its descriptor. */
static bool needs_link(struct vl_lane *lane, const struct iovec *iov,
		       unsigned int n)
{
	uint64_t charge;

	if (!vl_lane_can_refuse(lane))
		return false;
	charge = 2 * vl_iov_len(iov, n) + 2048;
	if (lane->headroom < charge) {
		lane->headroom = 0;
		return true;
	}
	lane->headroom -= charge;
	return false;
}

void vl_lane_send(struct vl_lane *lane, const struct iovec *iov, unsigned int n,
		  bool zerocopy, uint64_t tag)
{
	if (!lane->active || lane->down) {
		vl_io_post(lane->io, lane->active ? -EIO : -ENXIO, tag);
		return;
	}
	lane->backend->ops->send(lane->backend, lane->port, lane->way, lane->io,
				 &(struct vl_frame){
					 .iov = iov,
					 .n = n,
					 .linked = needs_link(lane, iov, n),
					 .zerocopy = zerocopy,
					 .tag = tag,
				 });
}

void vl_lane_submit(struct vl_lane *lane)
{
	const struct vl_backend_ops *ops = lane->backend->ops;

	if (ops->flush)
		ops->flush(lane->backend, lane->port, lane->io);
	vl_io_submit(lane->io);
}

void vl_lane_recv(struct vl_lane *lane, const struct iovec *iov, unsigned int n,
		  uint64_t tag)
{
	lane->backend->ops->recv(lane->backend, lane->port, lane->io,
				 &(struct vl_frame){
					 .iov = iov,
					 .n = n,
					 .tag = tag,
				 });
}

void vl_lane_set_full(struct vl_lane *lane)
{
	lane->full = true;
	if (lane->backend->ops->poll(lane->backend, lane->port, lane->way,
				     lane->io, EPOLLOUT, lane->tag_out))
		lane->full = false;
}

void vl_lane_set_empty(struct vl_lane *lane)
{
	lane->empty = true;
	if (lane->backend->ops->poll(lane->backend, lane->port, 0, lane->io,
				     EPOLLIN, lane->tag_in))
		lane->gone = true;
}

void vl_lane_forget_recv(struct vl_lane *lane)
{
	if (!lane->empty)
		return;
	lane->backend->ops->poll_cancel(lane->backend, lane->port, 0, lane->io,
					EPOLLIN, lane->tag_in);
	lane->empty = false;
}

void vl_lane_set_down(struct vl_lane *lane, bool down)
{
	cancel_polls(lane);
	lane->down = down;
}

void vl_lane_readable(struct vl_lane *lane)
{
	lane->empty = false;
}
