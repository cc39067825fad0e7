/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions: theory of operation.
 *
 * Server: the listening socket is watched while there is no session, so that
 * further front-ends wait in its backlog. A connection that ends without a
 * word (QEMU looks whether the socket works before it uses it) is a session
 * like any other. Client: one connection attempt at a time, the next one after
 * a pause that doubles; a session that lasted a while resets the pause.
 *
 * The protocol opens and closes its descriptors inside vl_vhost_input(), and a
 * front-end may keep copies of what it sent, in which case closing alone would
 * not end a watch. Therefore the back-end channel is watched by a duplicate
 * that belongs to this file. The socket itself has no copies elsewhere (or, if
 * it was passed on to us, we end with it).
 */
#include "daemon/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/usock.h"

#define RETRY_FIRST_NS  (VL_NS_PER_SEC / 10)
#define RETRY_MAX_NS    (5 * VL_NS_PER_SEC)
#define SESSION_LONG_NS VL_NS_PER_SEC /* one that is worth a quick retry */
#define ACCEPT_PAUSE_NS VL_NS_PER_SEC /* out of descriptors or memory */

struct vl_session {
	struct vl_loop *loop;
	struct vl_device *dev;
	struct vl_vhost *vhost;
	const char *connect_path; /* client mode, else NULL */
	struct vl_usock listener; /* its fd: -1 when there is none */
	int connected_fd;         /* a connected --fd, until it is served */
	bool single;              /* the loop ends with the first session */
	int sock_watch;           /* the descriptors that are watched, or -1 */
	int channel_watch;        /* ours: a duplicate */
	int ctrl_watch;
	uint64_t began_ns;
	uint64_t retry_ns;
	struct vl_timer again; /* accept or connect */
	struct vl_timer ctrl_again;
	struct vl_log_limit connect_limit, accept_limit, session_limit;
};

static uint64_t op_features(void *dev)
{
	return vl_device_features(dev);
}

static int op_set_features(void *dev, uint64_t features)
{
	return vl_device_set_features(dev, features);
}

static int op_set_mem(void *dev, struct vl_guest_mem *mem)
{
	return vl_device_set_mem(dev, mem);
}

static int op_vring_start(void *dev, unsigned int index,
			  const struct vl_vring *ring)
{
	return vl_device_vring_start(dev, index, ring);
}

static void op_vring_stop(void *dev, unsigned int index, uint16_t *base)
{
	vl_device_vring_stop(dev, index, base);
}

static void op_vring_call(void *dev, unsigned int index, int fd)
{
	vl_device_vring_call(dev, index, fd);
}

static void op_vring_err(void *dev, unsigned int index, int fd)
{
	vl_device_vring_err(dev, index, fd);
}

static int op_get_config(void *dev, uint32_t offset, void *buf, uint32_t len)
{
	return vl_device_get_config(dev, offset, buf, len);
}

static int op_set_mtu(void *dev, uint64_t mtu)
{
	return vl_device_set_mtu(dev, mtu);
}

static void op_reset(void *dev)
{
	vl_device_reset(dev);
}

static const struct vl_vhost_ops device_ops = {
	.features = op_features,
	.set_features = op_set_features,
	.set_mem = op_set_mem,
	.vring_start = op_vring_start,
	.vring_stop = op_vring_stop,
	.vring_call = op_vring_call,
	.vring_err = op_vring_err,
	.get_config = op_get_config,
	.set_mtu = op_set_mtu,
	.reset = op_reset,
};

static void next_front_end(struct vl_session *s);

static void channel_unwatch(struct vl_session *s)
{
	if (s->channel_watch < 0)
		return;
	vl_loop_remove(s->loop, s->channel_watch);
	close(s->channel_watch);
	s->channel_watch = -1;
}

static void channel_event(void *ctx, uint32_t events);

/* Follows the back-end channel, which may be another one after any message. */
static void channel_sync(struct vl_session *s)
{
	int fd = vl_vhost_backend_fd(s->vhost);

	channel_unwatch(s);
	if (fd < 0)
		return;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return;
	s->channel_watch = fd;
	if (vl_loop_add(s->loop, fd, EPOLLIN, channel_event, s))
		channel_unwatch(s);
}

static void channel_event(void *ctx, uint32_t events)
{
	struct vl_session *s = ctx;

	vl_vhost_backend_input(s->vhost);
	/* A channel that hung up stays "readable"; it serves no more. */
	if (events & (EPOLLHUP | EPOLLERR))
		channel_unwatch(s);
	else
		channel_sync(s);
}

/* The session ended, the socket is closed or about to be. */
static void session_over(struct vl_session *s)
{
	channel_unwatch(s);
	s->sock_watch = -1;
	if (s->single) {
		vl_loop_quit(s->loop, 0);
		return;
	}
	if (vl_now_ns() - s->began_ns >= SESSION_LONG_NS)
		s->retry_ns = RETRY_FIRST_NS;
	next_front_end(s);
}

static void sock_event(void *ctx, uint32_t events)
{
	struct vl_session *s = ctx;
	int err;

	(void)events;
	err = vl_vhost_input(s->vhost);
	vl_device_settle(s->dev);
	if (!err) {
		channel_sync(s);
		return;
	}
	/* Closed already; without copies the kernel ended the watch then. */
	vl_loop_remove(s->loop, s->sock_watch);
	if (err == -ECONNRESET)
		vl_log_limited(&s->session_limit, VL_LOG_INFO, "vhost",
			       "front-end disconnected");
	else
		vl_log_limited(&s->session_limit, VL_LOG_WARNING, "vhost",
			       "session ended: %s", strerror(-err));
	session_over(s);
}

/* Serves the connected socket @fd, which becomes the protocol's. */
static int session_begin(struct vl_session *s, int fd)
{
	int flags = fcntl(fd, F_GETFL);
	int err;

	if (flags >= 0)
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	s->began_ns = vl_now_ns();
	err = vl_vhost_attach(s->vhost, fd);
	if (err)
		return err;
	s->sock_watch = vl_vhost_fd(s->vhost);
	err = vl_loop_add(s->loop, s->sock_watch, EPOLLIN, sock_event, s);
	if (err) {
		vl_vhost_detach(s->vhost);
		s->sock_watch = -1;
		return err;
	}
	vl_log_limited(&s->session_limit, VL_LOG_INFO, "vhost",
		       "front-end connected");
	return 0;
}

static void accept_front_end(void *ctx, uint32_t events)
{
	struct vl_session *s = ctx;
	int err, fd;

	(void)events;
	fd = accept4(s->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 &&
	    (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
		return;
	vl_loop_remove(s->loop, s->listener.fd);
	err = fd < 0 ? -errno : session_begin(s, fd);
	if (!err)
		return;
	vl_log_limited(&s->accept_limit, VL_LOG_WARNING, "vhost",
		       "cannot accept a front-end: %s", strerror(-err));
	vl_loop_timer(s->loop, &s->again, ACCEPT_PAUSE_NS);
}

static void connect_front_end(struct vl_session *s)
{
	int fd = vl_usock_connect(s->connect_path);
	int err = fd < 0 ? fd : session_begin(s, fd);

	if (!err)
		return;
	vl_log_limited(&s->connect_limit, VL_LOG_INFO, "vhost",
		       "%s: %s; trying again", s->connect_path, strerror(-err));
	vl_loop_timer(s->loop, &s->again, s->retry_ns);
	s->retry_ns = vl_min_u64(s->retry_ns * 2, RETRY_MAX_NS);
}

/* Goes on looking for a front-end at once. */
static void look_again(void *ctx)
{
	struct vl_session *s = ctx;
	int err;

	if (s->connect_path) {
		connect_front_end(s);
		return;
	}
	err = vl_loop_add(s->loop, s->listener.fd, EPOLLIN, accept_front_end,
			  s);
	if (err)
		vl_loop_timer(s->loop, &s->again, ACCEPT_PAUSE_NS);
}

static void next_front_end(struct vl_session *s)
{
	if (!s->connect_path) {
		look_again(s);
		return;
	}
	vl_loop_timer(s->loop, &s->again, s->retry_ns);
	s->retry_ns = vl_min_u64(s->retry_ns * 2, RETRY_MAX_NS);
}

/* Sorts a descriptor that we were given. */
static int classify(struct vl_session *s, int fd)
{
	int type, domain, listens;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0 ||
	    type != SOCK_STREAM || domain != AF_UNIX) {
		vl_log(VL_LOG_ERROR, NULL,
		       "--fd=%d: no UNIX stream socket; pass a connected or a "
		       "listening one",
		       fd);
		return -ENOTSOCK;
	}
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (listens) {
		int flags = fcntl(fd, F_GETFL);

		if (flags >= 0)
			fcntl(fd, F_SETFL, flags | O_NONBLOCK);
		/* Its file, if any, is the business of who made it. */
		s->listener.fd = fd;
	} else {
		s->connected_fd = fd;
		s->single = true;
	}
	return 0;
}

int vl_session_open(const struct vl_session_config *config,
		    struct vl_loop *loop, struct vl_session **out)
{
	struct vl_session *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return -ENOMEM;
	s->loop = loop;
	s->listener.fd = -1;
	s->connected_fd = -1;
	s->sock_watch = -1;
	s->channel_watch = -1;
	s->ctrl_watch = -1;
	s->retry_ns = RETRY_FIRST_NS;
	s->again.fn = look_again;
	s->again.ctx = s;
	if (!config->socket_path) {
		err = classify(s, config->fd);
	} else if (config->client) {
		s->connect_path = config->socket_path;
	} else {
		err = vl_usock_listen(&s->listener, config->socket_path, 0);
		if (err)
			vl_log(VL_LOG_ERROR, NULL, "--socket-path=%s: %s; %s",
			       config->socket_path, strerror(-err),
			       vl_usock_advice(err));
	}
	if (err) {
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

int vl_session_start(struct vl_session *s, struct vl_device *dev,
		     unsigned int queue_pairs)
{
	struct vl_vhost_config config = {
		.queue_pairs = queue_pairs,
		.vrings = vl_device_queues(dev),
	};
	int fd = s->connected_fd;
	int err;

	s->dev = dev;
	err = vl_vhost_new(&config, &device_ops, dev, &s->vhost);
	if (err)
		return err;
	s->connected_fd = -1;
	if (fd >= 0)
		return session_begin(s, fd);
	look_again(s);
	return 0;
}

void vl_session_free(struct vl_session *s)
{
	if (!s)
		return;
	vl_loop_timer_stop(s->loop, &s->again);
	if (s->sock_watch >= 0)
		vl_loop_remove(s->loop, s->sock_watch);
	channel_unwatch(s);
	if (s->vhost) {
		vl_vhost_detach(s->vhost);
		vl_vhost_free(s->vhost);
	}
	if (s->ctrl_watch >= 0)
		vl_loop_remove(s->loop, s->ctrl_watch);
	if (s->connected_fd >= 0)
		close(s->connected_fd);
	if (s->listener.fd >= 0)
		vl_loop_remove(s->loop, s->listener.fd);
	vl_usock_close(&s->listener);
	free(s);
}

void vl_session_config_changed(void *session)
{
	struct vl_session *s = session;

	if (s->vhost)
		vl_vhost_config_changed(s->vhost);
}

static void ctrl_run(void *ctx)
{
	struct vl_session *s = ctx;

	/* A driver that keeps the queue full gets its turn among others. */
	if (vl_device_ctrl_kick(s->dev))
		vl_loop_timer(s->loop, &s->ctrl_again, 0);
}

static void ctrl_event(void *ctx, uint32_t events)
{
	(void)events;
	ctrl_run(ctx);
}

void vl_session_ctrl_watch(void *session, int kick_fd)
{
	struct vl_session *s = session;
	int err;

	if (s->ctrl_watch >= 0)
		vl_loop_remove(s->loop, s->ctrl_watch);
	s->ctrl_watch = -1;
	vl_loop_timer_stop(s->loop, &s->ctrl_again);
	if (kick_fd < 0)
		return;
	/* Commands may be there already, and their kick gone. */
	s->ctrl_again = (struct vl_timer){ .fn = ctrl_run, .ctx = s };
	vl_loop_timer(s->loop, &s->ctrl_again, 0);
	err = vl_loop_add(s->loop, kick_fd, EPOLLIN | EPOLLET, ctrl_event, s);
	if (err)
		vl_log(VL_LOG_WARNING, "ctrl",
		       "cannot watch the control queue: %s", strerror(-err));
	else
		s->ctrl_watch = kick_fd;
}

void vl_session_state(const struct vl_session *s, struct vl_vhost_state *out)
{
	memset(out, 0, sizeof(*out));
	if (s->vhost)
		vl_vhost_state(s->vhost, out);
}
