/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every message asks for a reply where REPLY_ACK was negotiated, so that an
 * error is reported at the message that caused it.
 */
#include "load_vhost.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	SET_VRING_ERR = 14,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	SET_VRING_ENABLE = 18,
};

#define FLAG_VERSION        1u
#define FLAG_REPLY          4u
#define FLAG_NEED_REPLY     8u
#define F_PROTOCOL_FEATURES (1ULL << 30)
#define PF_MQ               (1ULL << 0)
#define PF_REPLY_ACK        (1ULL << 3)

struct msg {
	uint32_t request;
	uint32_t flags;
	uint32_t size;
	union {
		uint64_t u64;
		struct {
			uint32_t index, num;
		} state;
		struct {
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} addr;
		struct {
			uint32_t n, padding;
			struct {
				uint64_t gpa, size, uva, offset;
			} region[LOAD_REGIONS_MAX];
		} mem;
	} u;
} __attribute__((packed));

#define HEAD offsetof(struct msg, u)

static int failed(const char *what, int err)
{
	fprintf(stderr, "vl-load: %s: %s\n", what, strerror(-err));
	return err;
}

static int send_msg(struct load_vhost *v, const struct msg *m, const int *fds,
		    unsigned int n)
{
	char control[CMSG_SPACE(sizeof(int) * LOAD_REGIONS_MAX)] = { 0 };
	struct msg copy = *m;
	struct iovec iov = { &copy, HEAD + m->size };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n) {
		struct cmsghdr *c;

		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	}
	if (sendmsg(v->sock, &h, MSG_NOSIGNAL) != (ssize_t)iov.iov_len)
		return -errno;
	return 0;
}

static int recv_all(int sock, void *buf, size_t len)
{
	ssize_t n = recv(sock, buf, len, MSG_WAITALL);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -ECONNRESET;
}

static int recv_reply(struct load_vhost *v, struct msg *m, uint32_t request)
{
	int err = recv_all(v->sock, m, HEAD);

	if (err)
		return err;
	if (m->request != request || !(m->flags & FLAG_REPLY) ||
	    m->size > sizeof(m->u))
		return -EPROTO;
	return recv_all(v->sock, &m->u, m->size);
}

/* Sends @m; its reply, if it has one by nature, replaces it. */
static int call(struct load_vhost *v, struct msg *m, const char *what,
		const int *fds, unsigned int n)
{
	uint32_t request = m->request;
	bool reply = request == GET_FEATURES || request == GET_VRING_BASE ||
		     request == GET_PROTOCOL_FEATURES;
	bool ack = !reply && (v->protocol_features & PF_REPLY_ACK);
	int err;

	m->flags = FLAG_VERSION | (ack ? FLAG_NEED_REPLY : 0);
	err = send_msg(v, m, fds, n);
	if (!err && (reply || ack))
		err = recv_reply(v, m, request);
	if (!err && ack && m->u.u64)
		err = -EREMOTEIO;
	return err ? failed(what, err) : 0;
}

static int call_u64(struct load_vhost *v, uint32_t request, const char *what,
		    uint64_t *value)
{
	struct msg m = { .request = request };
	int err;

	if (request != GET_FEATURES && request != GET_PROTOCOL_FEATURES &&
	    request != SET_OWNER) {
		m.size = 8;
		m.u.u64 = *value;
	}
	err = call(v, &m, what, NULL, 0);
	if (!err && value)
		*value = m.u.u64;
	return err;
}

static int call_state(struct load_vhost *v, uint32_t request, const char *what,
		      unsigned int index, uint32_t *num)
{
	struct msg m = { .request = request,
			 .size = 8,
			 .u.state = { index, *num } };
	int err = call(v, &m, what, NULL, 0);

	if (!err && request == GET_VRING_BASE)
		*num = m.u.state.num;
	return err;
}

int load_vhost_connect(struct load_vhost *v, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct timespec pause = { 0, 50000000 };

	*v = (struct load_vhost){ .sock = -1 };
	if (strlen(path) >= sizeof(a.sun_path))
		return failed(path, -ENAMETOOLONG);
	strcpy(a.sun_path, path);
	for (int i = 0; i < 100; i++) {
		int err;

		v->sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (v->sock < 0)
			return failed("socket", -errno);
		if (connect(v->sock, (struct sockaddr *)&a, sizeof(a)) == 0)
			return 0;
		err = errno;
		close(v->sock);
		v->sock = -1;
		if (err != ENOENT && err != ECONNREFUSED && err != EAGAIN)
			return failed(path, -err);
		nanosleep(&pause, NULL);
	}
	return failed(path, -ETIMEDOUT);
}

void load_vhost_close(struct load_vhost *v)
{
	if (v->sock >= 0)
		close(v->sock);
	v->sock = -1;
}

int load_vhost_negotiate(struct load_vhost *v, uint64_t wanted,
			 uint64_t required)
{
	uint64_t offered = 0, protocol = 0;
	int err = call_u64(v, GET_FEATURES, "GET_FEATURES", &offered);

	if (!err && (offered & required) != required) {
		fprintf(stderr, "vl-load: features %#llx are not offered\n",
			(unsigned long long)(required & ~offered));
		return -EPROTO;
	}
	if (!err && (offered & F_PROTOCOL_FEATURES)) {
		wanted |= F_PROTOCOL_FEATURES;
		err = call_u64(v, GET_PROTOCOL_FEATURES,
			       "GET_PROTOCOL_FEATURES", &protocol);
		protocol &= PF_MQ | PF_REPLY_ACK;
		if (!err)
			err = call_u64(v, SET_PROTOCOL_FEATURES,
				       "SET_PROTOCOL_FEATURES",
				       &(uint64_t){ protocol });
	}
	v->protocol_features = protocol;
	if (!err)
		err = call_u64(v, SET_OWNER, "SET_OWNER", NULL);
	v->features = offered & wanted;
	if (!err)
		err = call_u64(v, SET_FEATURES, "SET_FEATURES",
			       &(uint64_t){ v->features });
	return err;
}

int load_vhost_set_memory(struct load_vhost *v, struct rd_mem *const *mem,
			  unsigned int n)
{
	struct msg m = { .request = SET_MEM_TABLE, .size = 8 + 32 * n };
	int fds[LOAD_REGIONS_MAX];

	m.u.mem.n = n;
	for (unsigned int i = 0; i < n; i++) {
		m.u.mem.region[i].gpa = mem[i]->gpa;
		m.u.mem.region[i].size = mem[i]->size;
		m.u.mem.region[i].uva = (uintptr_t)mem[i]->base;
		m.u.mem.region[i].offset = 0;
		fds[i] = mem[i]->fd;
	}
	return call(v, &m, "SET_MEM_TABLE", fds, n);
}

static int set_fd(struct load_vhost *v, uint32_t request, const char *what,
		  unsigned int index, int fd)
{
	struct msg m = { .request = request, .size = 8, .u.u64 = index };

	return call(v, &m, what, &fd, 1);
}

int load_vhost_ring_start(struct load_vhost *v, unsigned int index,
			  const struct rd_ring *r, uint16_t base)
{
	struct msg addr = { .request = SET_VRING_ADDR, .size = 40 };
	uint32_t num = r->num, base32 = base, on = 1;
	int err = call_state(v, SET_VRING_NUM, "SET_VRING_NUM", index, &num);

	addr.u.addr.index = index;
	addr.u.addr.desc = (uintptr_t)r->desc;
	addr.u.addr.avail = (uintptr_t)r->avail;
	addr.u.addr.used = (uintptr_t)r->used;
	if (!err)
		err = call_state(v, SET_VRING_BASE, "SET_VRING_BASE", index,
				 &base32);
	if (!err)
		err = call(v, &addr, "SET_VRING_ADDR", NULL, 0);
	if (!err)
		err = set_fd(v, SET_VRING_CALL, "SET_VRING_CALL", index,
			     r->call_fd);
	if (!err)
		err = set_fd(v, SET_VRING_ERR, "SET_VRING_ERR", index,
			     r->err_fd);
	if (!err)
		err = set_fd(v, SET_VRING_KICK, "SET_VRING_KICK", index,
			     r->kick_fd);
	if (!err && (v->features & F_PROTOCOL_FEATURES))
		err = call_state(v, SET_VRING_ENABLE, "SET_VRING_ENABLE", index,
				 &on);
	return err;
}

int load_vhost_ring_stop(struct load_vhost *v, unsigned int index,
			 uint16_t *base)
{
	uint32_t num = 0;
	int err = call_state(v, GET_VRING_BASE, "GET_VRING_BASE", index, &num);

	*base = (uint16_t)num;
	return err;
}
