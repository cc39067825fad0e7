/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stats socket: theory of operation.
 *
 * A client is in one of two states. Reading: its request is collected until
 * the newline. Writing: its answer is larger than what the socket takes at
 * once; until it is gone no further request is read, so that a client can
 * make us hold one answer at most, and a timer runs that drops it. Requests
 * that were sent together are answered one after the other.
 *
 * Clients that stay connected and ask nothing cannot lock others out: see
 * idle_client(). One that has just come is not taken for idle, since its
 * request may be on the way.
 */
#include "daemon/ctl.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/usock.h"
#include "stats/json.h"

/* After accept() failed for want of descriptors or memory. */
#define ACCEPT_PAUSE_NS VL_NS_PER_SEC

struct client {
	struct vl_ctl *ctl;
	int fd; /* -1: free */
	char request[VL_CTL_REQUEST];
	size_t used;
	char *answer; /* NULL: reading */
	size_t answer_len, answer_sent;
	uint64_t asked_ns; /* when it came or asked last */
	struct vl_timer patience;
};

struct vl_ctl {
	struct vl_loop *loop;
	struct vl_usock sock;
	struct vl_timer accept_again;
	struct vl_log_limit idle_limit;
	void (*fill)(void *ctx, struct vl_snapshot *s);
	void *ctx;
	struct client client[VL_CTL_CLIENTS];
	struct vl_snapshot snapshot; /* too large for the stack */
};

static void drop(struct client *c)
{
	vl_loop_timer_stop(c->ctl->loop, &c->patience);
	vl_loop_remove(c->ctl->loop, c->fd);
	close(c->fd);
	free(c->answer);
	c->answer = NULL;
	c->fd = -1;
}

static void patience_over(void *ctx)
{
	struct client *c = ctx;

	vl_log(VL_LOG_WARNING, "stats", "dropped a client that does not read");
	drop(c);
}

/* The answer to the request line, ended by a newline; NULL: out of memory. */
static char *make_answer(struct vl_ctl *ctl, const char *line)
{
	char *json, *text;
	int n;

	if (strcmp(line, "stat"))
		return strdup("{\"error\":\"unknown request; known: stat\"}\n");
	memset(&ctl->snapshot, 0, sizeof(ctl->snapshot));
	ctl->fill(ctl->ctx, &ctl->snapshot);
	json = vl_snapshot_json(&ctl->snapshot);
	if (!json)
		return NULL;
	n = asprintf(&text, "%s\n", json);
	free(json);
	return n < 0 ? NULL : text;
}

/* Sends what is left of the answer. Returns 0 (all or for the moment) or
 * -errno. */
static int send_answer(struct client *c)
{
	while (c->answer_sent < c->answer_len) {
		ssize_t n = send(c->fd, c->answer + c->answer_sent,
				 c->answer_len - c->answer_sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		c->answer_sent += (size_t)n;
	}
	free(c->answer);
	c->answer = NULL;
	return 0;
}

/* Answers the first complete request. Returns 1 when there was one, 0 when
 * there was none, -errno to drop the client. */
static int serve_one(struct client *c)
{
	char *end = memchr(c->request, '\n', c->used);
	size_t len;
	int err;

	if (!end)
		return c->used == sizeof(c->request) ? -EMSGSIZE : 0;
	len = (size_t)(end - c->request) + 1;
	*end = '\0';
	if (len > 1 && end[-1] == '\r')
		end[-1] = '\0';
	c->asked_ns = vl_now_ns();
	c->answer = make_answer(c->ctl, c->request);
	if (!c->answer)
		return -ENOMEM;
	c->answer_len = strlen(c->answer);
	c->answer_sent = 0;
	c->used -= len;
	memmove(c->request, c->request + len, c->used);
	err = send_answer(c);
	return err ? err : 1;
}

/* Reads and answers as far as it goes without waiting. */
static int serve(struct client *c)
{
	int err;

	do {
		err = serve_one(c);
	} while (err > 0 && !c->answer);
	return err < 0 ? err : 0;
}

static void client_event(void *ctx, uint32_t events)
{
	struct client *c = ctx;
	bool was_writing = c->answer;
	ssize_t n;
	int err = 0;

	if (was_writing) {
		err = events & EPOLLERR ? -EPIPE : send_answer(c);
	} else {
		n = recv(c->fd, c->request + c->used,
			 sizeof(c->request) - c->used, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			err = -ECONNRESET;
		else if (n > 0)
			c->used += (size_t)n;
	}
	if (!err && !c->answer)
		err = serve(c);
	if (err) {
		drop(c);
		return;
	}
	if (c->answer) {
		/* Being called means that the client took something. */
		vl_loop_timer(c->ctl->loop, &c->patience, VL_CTL_PATIENCE_NS);
		vl_loop_modify(c->ctl->loop, c->fd, EPOLLOUT);
	} else if (was_writing) {
		vl_loop_timer_stop(c->ctl->loop, &c->patience);
		vl_loop_modify(c->ctl->loop, c->fd, EPOLLIN);
	}
}

static struct client *free_client(struct vl_ctl *ctl)
{
	for (unsigned int i = 0; i < VL_CTL_CLIENTS; i++) {
		if (ctl->client[i].fd < 0)
			return &ctl->client[i];
	}
	return NULL;
}

/* The client that has been idle for the longest time; NULL: none has. */
static struct client *idle_client(struct vl_ctl *ctl)
{
	uint64_t now = vl_now_ns();
	struct client *oldest = NULL;

	for (unsigned int i = 0; i < VL_CTL_CLIENTS; i++) {
		struct client *c = &ctl->client[i];

		if (c->answer || now - c->asked_ns < VL_CTL_IDLE_NS)
			continue;
		if (!oldest || c->asked_ns < oldest->asked_ns)
			oldest = c;
	}
	return oldest;
}

/* Sends a last line: new or idle sockets take this much; if not, closing says
 * it too. */
static void send_last(int fd, const char *line)
{
	send(fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The place of an idle client, which is dropped; NULL: there is none. */
static struct client *idle_place(struct vl_ctl *ctl)
{
	struct client *c = idle_client(ctl);

	if (!c)
		return NULL;
	vl_log_limited(&ctl->idle_limit, VL_LOG_INFO, "stats",
		       "all %d places are taken: dropped the client that was "
		       "idle for the longest time",
		       VL_CTL_CLIENTS);
	send_last(c->fd, "{\"error\":\"dropped: idle, and others wanted the "
			 "place; connect again\"}\n");
	drop(c);
	return c;
}

static void accept_again(void *ctx)
{
	struct vl_ctl *ctl = ctx;

	vl_loop_modify(ctl->loop, ctl->sock.fd, EPOLLIN);
}

static void new_client(void *ctx, uint32_t events)
{
	struct vl_ctl *ctl = ctx;
	struct client *c = free_client(ctl);
	int fd;

	(void)events;
	fd = accept4(ctl->sock.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
			return;
		vl_log(VL_LOG_WARNING, "stats", "accept: %s", strerror(errno));
		vl_loop_modify(ctl->loop, ctl->sock.fd, 0);
		vl_loop_timer(ctl->loop, &ctl->accept_again, ACCEPT_PAUSE_NS);
		return;
	}
	if (!c)
		c = idle_place(ctl);
	if (!c) {
		send_last(fd, "{\"error\":\"too many clients; close one and "
			      "try again\"}\n");
		close(fd);
		return;
	}
	memset(c, 0, sizeof(*c));
	c->ctl = ctl;
	c->fd = fd;
	c->asked_ns = vl_now_ns();
	c->patience.fn = patience_over;
	c->patience.ctx = c;
	if (vl_loop_add(ctl->loop, fd, EPOLLIN, client_event, c)) {
		close(fd);
		c->fd = -1;
	}
}

int vl_ctl_new(const char *path, struct vl_ctl **out)
{
	struct vl_ctl *ctl = calloc(1, sizeof(*ctl));
	int err;

	if (!ctl)
		return -ENOMEM;
	/* Not for everybody: rw-rw---- at most. */
	err = vl_usock_listen(&ctl->sock, path, 0117);
	if (err) {
		free(ctl);
		return err;
	}
	for (unsigned int i = 0; i < VL_CTL_CLIENTS; i++)
		ctl->client[i].fd = -1;
	*out = ctl;
	return 0;
}

int vl_ctl_start(struct vl_ctl *ctl, struct vl_loop *loop,
		 void (*fill)(void *ctx, struct vl_snapshot *s), void *ctx)
{
	ctl->loop = loop;
	ctl->fill = fill;
	ctl->ctx = ctx;
	ctl->accept_again.fn = accept_again;
	ctl->accept_again.ctx = ctl;
	return vl_loop_add(loop, ctl->sock.fd, EPOLLIN, new_client, ctl);
}

void vl_ctl_free(struct vl_ctl *ctl)
{
	if (!ctl)
		return;
	for (unsigned int i = 0; i < VL_CTL_CLIENTS; i++) {
		if (ctl->client[i].fd >= 0)
			drop(&ctl->client[i]);
	}
	if (ctl->loop) {
		vl_loop_timer_stop(ctl->loop, &ctl->accept_again);
		vl_loop_remove(ctl->loop, ctl->sock.fd);
	}
	vl_usock_close(&ctl->sock);
	free(ctl);
}
