/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event loop: theory of operation.
 *
 * A watch is a slot of an array; epoll is told the number of the slot and the
 * slot's generation, which grows with every use. An event whose generation is
 * not the slot's belongs to a watch that was removed after the kernel had
 * reported it, and is dropped. So nothing has to be freed late, and a
 * descriptor number that is closed and opened again within one batch of events
 * cannot get the events of its predecessor.
 *
 * There are few watches (a handful and one for each client of the stats
 * socket), so slots and timers are searched one by one.
 */
#include "daemon/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

#define WATCHES_MAX 64
#define BATCH       16
#define NS_PER_MS   1000000ULL

struct watch {
	vl_loop_fn fn; /* NULL: free slot */
	void *ctx;
	int fd;
	uint32_t generation;
};

struct vl_loop {
	int epoll_fd;
	bool quit;
	int status;
	struct vl_timer *timers; /* sorted, the next one first */
	struct watch watch[WATCHES_MAX];
};

int vl_loop_new(struct vl_loop **out)
{
	struct vl_loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		int err = -errno;

		free(loop);
		return err;
	}
	*out = loop;
	return 0;
}

void vl_loop_free(struct vl_loop *loop)
{
	if (!loop)
		return;
	close(loop->epoll_fd);
	free(loop);
}

static struct watch *find(struct vl_loop *loop, int fd)
{
	for (unsigned int i = 0; i < WATCHES_MAX; i++) {
		if (loop->watch[i].fn && loop->watch[i].fd == fd)
			return &loop->watch[i];
	}
	return NULL;
}

static struct epoll_event event_of(const struct vl_loop *loop,
				   const struct watch *w, uint32_t events)
{
	uint64_t slot = (uint64_t)(w - loop->watch);
	struct epoll_event ev = {
		.events = events,
		.data.u64 = (uint64_t)w->generation << 32 | slot,
	};

	return ev;
}

int vl_loop_add(struct vl_loop *loop, int fd, uint32_t events, vl_loop_fn fn,
		void *ctx)
{
	struct watch *w = NULL;
	struct epoll_event ev;

	if (find(loop, fd))
		return -EEXIST;
	for (unsigned int i = 0; i < WATCHES_MAX && !w; i++) {
		if (!loop->watch[i].fn)
			w = &loop->watch[i];
	}
	if (!w)
		return -ENOSPC;
	w->generation++;
	ev = event_of(loop, w, events);
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	w->fd = fd;
	w->fn = fn;
	w->ctx = ctx;
	return 0;
}

int vl_loop_modify(struct vl_loop *loop, int fd, uint32_t events)
{
	struct watch *w = find(loop, fd);
	struct epoll_event ev;

	if (!w)
		return -ENOENT;
	ev = event_of(loop, w, events);
	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &ev) < 0 ? -errno
								     : 0;
}

void vl_loop_remove(struct vl_loop *loop, int fd)
{
	struct watch *w = find(loop, fd);

	if (!w)
		return;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	w->fn = NULL;
}

void vl_loop_timer(struct vl_loop *loop, struct vl_timer *timer,
		   uint64_t delay_ns)
{
	struct vl_timer **at = &loop->timers;

	vl_loop_timer_stop(loop, timer);
	timer->due_ns = vl_now_ns() + delay_ns;
	while (*at && (*at)->due_ns <= timer->due_ns)
		at = &(*at)->next;
	timer->next = *at;
	timer->armed = true;
	*at = timer;
}

void vl_loop_timer_stop(struct vl_loop *loop, struct vl_timer *timer)
{
	struct vl_timer **at = &loop->timers;

	if (!timer->armed)
		return;
	while (*at && *at != timer)
		at = &(*at)->next;
	if (*at)
		*at = timer->next;
	timer->armed = false;
}

/* Milliseconds until the next timer, rounded up; -1 without one. */
static int wait_ms(const struct vl_loop *loop)
{
	uint64_t now, ms;

	if (!loop->timers)
		return -1;
	now = vl_now_ns();
	if (loop->timers->due_ns <= now)
		return 0;
	ms = (loop->timers->due_ns - now + NS_PER_MS - 1) / NS_PER_MS;
	return (int)vl_min_u64(ms, INT_MAX);
}

/*
 * Calls the timers that were due when it began: one that arms itself again
 * without delay has to wait for the next round.
 */
static void run_timers(struct vl_loop *loop)
{
	uint64_t now;

	if (!loop->timers)
		return;
	now = vl_now_ns();
	while (loop->timers && loop->timers->due_ns < now) {
		struct vl_timer *t = loop->timers;

		vl_loop_timer_stop(loop, t);
		t->fn(t->ctx);
	}
}

int vl_loop_run(struct vl_loop *loop)
{
	struct epoll_event ev[BATCH];

	loop->quit = false;
	while (!loop->quit) {
		int n = epoll_wait(loop->epoll_fd, ev, BATCH, wait_ms(loop));

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++) {
			uint32_t slot = (uint32_t)ev[i].data.u64;
			struct watch *w = &loop->watch[slot];

			if (w->fn &&
			    w->generation == (uint32_t)(ev[i].data.u64 >> 32))
				w->fn(w->ctx, ev[i].events);
		}
		run_timers(loop);
	}
	return loop->status;
}

void vl_loop_quit(struct vl_loop *loop, int status)
{
	loop->quit = true;
	loop->status = status;
}
