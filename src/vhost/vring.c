/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings of a session. Requests only change what is known of a ring; one
 * function, vl_vhost_evaluate(), decides after every request which rings run.
 * So no order of messages is special: a kick before the enable, an enable
 * before the addresses, addresses before the memory all end the same way.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_ring.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vhost/session.h"

#define FEATURE(bit) (1ULL << (bit))

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static unsigned int index_of(const struct vl_vhost *vu,
			     const struct vl_vhost_ring *ring)
{
	return (unsigned int)(ring - vu->ring);
}

void vl_vhost_ring_init(struct vl_vhost_ring *ring)
{
	*ring = (struct vl_vhost_ring){
		.kick_fd = -1,
		.call_fd = -1,
		.err_fd = -1,
	};
}

static void forget_kick(struct vl_vhost_ring *ring)
{
	close_fd(&ring->kick_fd);
	ring->kick_set = false;
}

void vl_vhost_ring_reset(struct vl_vhost_ring *ring)
{
	forget_kick(ring);
	ring->enabled = false;
	ring->addr_set = false;
	ring->base = 0;
}

void vl_vhost_ring_clear(struct vl_vhost_ring *ring)
{
	close_fd(&ring->kick_fd);
	close_fd(&ring->call_fd);
	close_fd(&ring->err_fd);
	vl_vhost_ring_init(ring);
}

void vl_vhost_ring_stop(struct vl_vhost *vu, struct vl_vhost_ring *ring)
{
	if (!ring->running)
		return;
	vu->ops->vring_stop(vu->dev, index_of(vu, ring), &ring->base);
	ring->running = false;
	vl_log(VL_LOG_DEBUG, "vhost", "ring %u stopped at %u",
	       index_of(vu, ring), ring->base);
}

void vl_vhost_stop_all(struct vl_vhost *vu)
{
	for (unsigned int i = 0; i < vu->config.vrings; i++)
		vl_vhost_ring_stop(vu, &vu->ring[i]);
}

/* Host address of a ring part, NULL when it is not wholly in one region. */
static void *resolve(const struct vl_vhost *vu, uint64_t uva, uint64_t len,
		     uint64_t align)
{
	if (uva & (align - 1))
		return NULL;
	return vl_guest_mem_uva(vu->mem, uva, len);
}

/*
 * Translates the three parts with their full sizes (virtio 1.2, 2.7), event
 * index fields included. Returns NULL or the name of the part that is not
 * aligned or not in memory.
 */
static const char *resolve_parts(const struct vl_vhost *vu,
				 const struct vl_vhost_ring *ring,
				 struct vl_vring *out)
{
	uint64_t num = ring->num;

	out->desc = resolve(vu, ring->desc_uva, 16 * num, 16);
	if (!out->desc)
		return "descriptor table";
	out->avail = resolve(vu, ring->avail_uva, 6 + 2 * num, 2);
	if (!out->avail)
		return "available ring";
	out->used = resolve(vu, ring->used_uva, 6 + 8 * num, 4);
	return out->used ? NULL : "used ring";
}

static bool enabled(const struct vl_vhost *vu, const struct vl_vhost_ring *ring)
{
	return ring->enabled ||
	       !(vu->features & FEATURE(VHOST_USER_F_PROTOCOL_FEATURES));
}

/* True when @ring may run; *out is what it runs on then. */
static bool may_run(struct vl_vhost *vu, const struct vl_vhost_ring *ring,
		    struct vl_vring *out)
{
	const char *part;

	/* Before SET_FEATURES the layout of packets is not known. */
	if (!vu->features_set || !ring->kick_set || !ring->addr_set ||
	    !ring->num || !vu->mem || !enabled(vu, ring) ||
	    vl_guest_mem_lost(vu->mem))
		return false;
	part = resolve_parts(vu, ring, out);
	if (part) {
		vl_log_limited(&vu->ring_limit, VL_LOG_WARNING, "vhost",
			       "ring %u does not run: its %s is not in the "
			       "memory that the front-end shared last",
			       index_of(vu, ring), part);
		return false;
	}
	out->num = ring->num;
	out->base = ring->base;
	out->kick_fd = ring->kick_fd;
	out->call_fd = ring->call_fd;
	out->err_fd = ring->err_fd;
	out->event_idx = vu->features & FEATURE(VIRTIO_RING_F_EVENT_IDX);
	out->indirect = vu->features & FEATURE(VIRTIO_RING_F_INDIRECT_DESC);
	return true;
}

static void start(struct vl_vhost *vu, struct vl_vhost_ring *ring,
		  const struct vl_vring *v)
{
	unsigned int index = index_of(vu, ring);
	int err = vu->ops->vring_start(vu->dev, index, v);

	if (err) {
		vl_log_limited(&vu->ring_limit, VL_LOG_ERROR, "vhost",
			       "ring %u (size %u) cannot be started: %s", index,
			       v->num, strerrordesc_np(-err));
		return;
	}
	ring->running = true;
	vl_log(VL_LOG_DEBUG, "vhost", "ring %u started at %u, size %u", index,
	       v->base, v->num);
}

void vl_vhost_evaluate(struct vl_vhost *vu)
{
	for (unsigned int i = 0; i < vu->config.vrings; i++) {
		struct vl_vhost_ring *ring = &vu->ring[i];
		struct vl_vring v;

		if (!may_run(vu, ring, &v))
			vl_vhost_ring_stop(vu, ring);
		else if (!ring->running)
			start(vu, ring, &v);
	}
}

int vl_vhost_set_vring_num(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			   struct vl_vhost_ring *ring)
{
	uint32_t num = msg->payload.state.num;

	if (num < 2 || num > VL_VQ_SIZE_MAX || (num & (num - 1)))
		return vl_vhost_refuse(vu, -EINVAL,
				       "ring %u: size %u is no power of two "
				       "from 2 to %u",
				       index_of(vu, ring), num, VL_VQ_SIZE_MAX);
	ring->num = num;
	return 0;
}

int vl_vhost_set_vring_addr(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			    struct vl_vhost_ring *ring)
{
	const struct vl_msg_vring_addr *a = &msg->payload.addr;
	struct vl_vring v;
	const char *part;

	ring->addr_set = false;
	ring->desc_uva = a->desc;
	ring->avail_uva = a->avail;
	ring->used_uva = a->used;
	if (a->desc & 15 || a->avail & 1 || a->used & 3)
		return vl_vhost_refuse(vu, -EINVAL,
				       "ring %u: a part is not aligned (to 16, "
				       "2 and 4 bytes)",
				       index_of(vu, ring));
	/* Known memory: say at once what is wrong. Else it waits for it. */
	part = vu->mem && ring->num ? resolve_parts(vu, ring, &v) : NULL;
	if (part)
		return vl_vhost_refuse(vu, -EFAULT,
				       "ring %u: its %s is not in shared guest "
				       "memory",
				       index_of(vu, ring), part);
	ring->addr_set = true;
	return 0;
}

int vl_vhost_set_vring_base(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			    struct vl_vhost_ring *ring)
{
	(void)vu;
	/* A split ring has 16 bits of it; the rest is for packed rings. */
	ring->base = (uint16_t)msg->payload.state.num;
	return 0;
}

int vl_vhost_get_vring_base(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			    struct vl_vhost_ring *ring)
{
	(void)vu;
	forget_kick(ring);
	msg->payload.state.num = ring->base;
	return 0;
}

/*
 * The descriptor of a KICK, CALL or ERR message in *fd, -1 with the NOFD bit.
 * Any kind of file that can signal is taken: eventfds, but also sockets and
 * pipes, which some front-ends pass.
 */
static int take_signal_fd(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			  struct vl_vhost_ring *ring, int *fd)
{
	struct stat st;

	*fd = -1;
	if (msg->payload.u64 & VL_MSG_VRING_NOFD)
		return 0;
	if (msg->n_fds != 1)
		return vl_vhost_refuse(vu, -EINVAL,
				       "ring %u: no file descriptor came along",
				       index_of(vu, ring));
	if (fstat(msg->fd[0], &st) < 0 || S_ISREG(st.st_mode) ||
	    S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
		return vl_vhost_refuse(vu, -EINVAL,
				       "ring %u: the descriptor is a file that "
				       "cannot signal; pass an eventfd",
				       index_of(vu, ring));
	*fd = vl_msg_take_fd(msg, 0);
	return 0;
}

/* Whether @fd can be waited for. Files without a poll operation count as always
 * ready, so waiting for one would never sleep; epoll refuses them. */
static bool can_wait_for(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int epfd = epoll_create1(EPOLL_CLOEXEC);
	bool can = epfd >= 0 && !epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev);

	if (epfd >= 0)
		close(epfd);
	return can;
}

int vl_vhost_set_vring_kick(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			    struct vl_vhost_ring *ring)
{
	int fd, err = take_signal_fd(vu, msg, ring, &fd);

	if (err)
		return err;
	if (fd >= 0 && !can_wait_for(fd)) {
		close(fd);
		return vl_vhost_refuse(vu, -EINVAL,
				       "ring %u: the descriptor cannot be "
				       "waited for; pass an eventfd",
				       index_of(vu, ring));
	}
	forget_kick(ring);
	ring->kick_fd = fd;
	ring->kick_set = true;
	return 0;
}

/* The worker writes to it, and must never wait for who should read it. */
static void set_nonblocking(int fd)
{
	int flags = fd >= 0 ? fcntl(fd, F_GETFL) : -1;

	if (flags >= 0)
		(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* Replaces @slot, the call or err descriptor of @ring, by the one of @msg; @tell
 * hands it to a device whose ring runs. */
static int replace_fd(struct vl_vhost *vu, struct vl_vhost_msg *msg,
		      struct vl_vhost_ring *ring, int *slot,
		      void (*tell)(void *dev, unsigned int index, int fd))
{
	int fd, err = take_signal_fd(vu, msg, ring, &fd);

	if (err)
		return err;
	set_nonblocking(fd);
	if (ring->running)
		tell(vu->dev, index_of(vu, ring), fd);
	close_fd(slot);
	*slot = fd;
	return 0;
}

int vl_vhost_set_vring_call(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			    struct vl_vhost_ring *ring)
{
	return replace_fd(vu, msg, ring, &ring->call_fd, vu->ops->vring_call);
}

int vl_vhost_set_vring_err(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			   struct vl_vhost_ring *ring)
{
	return replace_fd(vu, msg, ring, &ring->err_fd, vu->ops->vring_err);
}

int vl_vhost_set_vring_enable(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			      struct vl_vhost_ring *ring)
{
	(void)vu;
	ring->enabled = msg->payload.state.num != 0;
	return 0;
}
