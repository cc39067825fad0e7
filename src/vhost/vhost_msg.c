/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages are read in pieces of whatever size arrives. A read never asks for
 * more than the rest of the header or the rest of the payload, so descriptors
 * that come with a read always belong to the message under construction:
 * Linux does not merge bytes across a boundary where descriptors travel.
 */
#include "vhost/vhost_msg.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
	char buf[CMSG_SPACE(VL_MSG_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int vl_msg_take_fd(struct vl_vhost_msg *msg, uint32_t i)
{
	int fd;

	if (i >= msg->n_fds)
		return -1;
	fd = msg->fd[i];
	msg->fd[i] = -1;
	return fd;
}

void vl_msg_close_fds(struct vl_vhost_msg *msg)
{
	for (uint32_t i = 0; i < msg->n_fds; i++) {
		if (msg->fd[i] >= 0)
			close(msg->fd[i]);
	}
	msg->n_fds = 0;
}

/* Moves the descriptors of one control message into @msg. */
static int take_rights(struct vl_vhost_msg *msg, struct cmsghdr *c)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		if (msg->n_fds < VL_MSG_FDS_MAX) {
			msg->fd[msg->n_fds++] = fd;
		} else {
			close(fd);
			err = -EMFILE;
		}
	}
	return err;
}

/* Bytes received, 0 when none are there yet, -errno. */
static ssize_t receive(struct vl_vhost_msg *msg, int sock, void *to,
		       size_t want)
{
	struct iovec iov = { .iov_base = to, .iov_len = want };
	union control control;
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n;
	int err = 0;

	do {
		n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c;
	     c = CMSG_NXTHDR(&mh, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		    take_rights(msg, c))
			err = -EMFILE;
	}
	if (mh.msg_flags & MSG_CTRUNC)
		err = -EMFILE;
	if (err)
		return err;
	return n ? n : -ECONNRESET;
}

static int check_header(const struct vl_msg_header *h)
{
	if ((h->flags & VL_MSG_VERSION_MASK) != VL_MSG_VERSION)
		return -EPROTO;
	if (h->size > VL_MSG_PAYLOAD_MAX)
		return -EMSGSIZE;
	return 0;
}

/* Where the next bytes go and how many of them belong to this part. */
static size_t next_part(struct vl_msg_reader *r, char **to)
{
	if (r->got < VL_MSG_HEADER_SIZE) {
		*to = (char *)&r->msg.header + r->got;
		return VL_MSG_HEADER_SIZE - r->got;
	}
	*to = (char *)&r->msg.payload + (r->got - VL_MSG_HEADER_SIZE);
	return VL_MSG_HEADER_SIZE + r->msg.header.size - r->got;
}

static int read_on(struct vl_msg_reader *r, int sock)
{
	char *to;
	size_t want;

	while ((want = next_part(r, &to)) > 0) {
		ssize_t n = receive(&r->msg, sock, to, want);

		if (n <= 0)
			return (int)n;
		r->got += (uint32_t)n;
		if (r->got == VL_MSG_HEADER_SIZE) {
			int err = check_header(&r->msg.header);

			if (err)
				return err;
			/* A short payload must not show the last message's. */
			memset(&r->msg.payload, 0, sizeof(r->msg.payload));
		}
	}
	return 1;
}

int vl_msg_read(struct vl_msg_reader *r, int sock)
{
	int ret = read_on(r, sock);

	if (ret)
		r->got = 0;
	if (ret < 0)
		vl_msg_close_fds(&r->msg);
	return ret;
}

const char *vl_msg_read_error(int err)
{
	switch (-err) {
	case ECONNRESET:
		return "the front-end closed the connection";
	case EMSGSIZE:
		return "a message header claims more payload than any message "
		       "has; is the peer a vhost-user front-end?";
	case EPROTO:
		return "a message header has an unknown protocol version; is "
		       "the peer a vhost-user front-end?";
	case EMFILE:
		return "file descriptors of a message were lost; raise the "
		       "limit of open files (ulimit -n) if it is low";
	default:
		return strerrordesc_np(-err);
	}
}

int vl_msg_send(int sock, const struct vl_msg_header *header,
		const void *payload)
{
	union {
		const void *in;
		void *out;
	} body = { .in = payload }, head = { .in = header };
	struct iovec iov[2] = {
		{ .iov_base = head.out, .iov_len = sizeof(*header) },
		{ .iov_base = body.out, .iov_len = header->size },
	};
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	do {
		n = sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -ENOBUFS : -errno;
	return (size_t)n == sizeof(*header) + header->size ? 0 : -EIO;
}
