/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread's event loop: descriptors (epoll) and one-shot timers.
 *
 * A callback may add and remove any watch and any timer, its own too; an
 * event that was already collected for a removed watch is dropped, even when
 * its descriptor number is in use again. Control thread only.
 */
#ifndef VL_DAEMON_LOOP_H
#define VL_DAEMON_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct vl_loop;

/* @events: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR. */
typedef void (*vl_loop_fn)(void *ctx, uint32_t events);

/* One-shot timer, in memory of its owner; all zero is a stopped one. */
struct vl_timer {
	void (*fn)(void *ctx);
	void *ctx;
	/* Below: loop.c only. */
	struct vl_timer *next;
	uint64_t due_ns;
	bool armed;
};

int vl_loop_new(struct vl_loop **out);
/* Watches that are left are dropped; their descriptors stay open. */
void vl_loop_free(struct vl_loop *loop);

/*
 * Watches @fd, which must not be watched yet, for @events (EPOLLIN, EPOLLOUT,
 * with EPOLLET edge triggered). Returns 0 or -errno; -EEXIST for a second
 * watch.
 */
int vl_loop_add(struct vl_loop *loop, int fd, uint32_t events, vl_loop_fn fn,
		void *ctx);

/* Waits for other events. -ENOENT: not watched. */
int vl_loop_modify(struct vl_loop *loop, int fd, uint32_t events);

/* Ends a watch, before the descriptor is closed. Not watched: nothing. */
void vl_loop_remove(struct vl_loop *loop, int fd);

/* (Re)arms @timer: fn is called once, @delay_ns from now or a little later. */
void vl_loop_timer(struct vl_loop *loop, struct vl_timer *timer,
		   uint64_t delay_ns);
/* Stops it; not armed: nothing. */
void vl_loop_timer_stop(struct vl_loop *loop, struct vl_timer *timer);

/* Serves events until vl_loop_quit(). Returns what was given to it, or -errno
 * when waiting failed. */
int vl_loop_run(struct vl_loop *loop);

/* Makes vl_loop_run() return @status after the callbacks that are due. */
void vl_loop_quit(struct vl_loop *loop, int status);

#endif
