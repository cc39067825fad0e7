/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker loop:
 *
 *   take a call of the control thread, if there is one
 *   a turn of the transmitq, a turn of the receiveq
 *   when neither has more to do: sleep until an event
 *   reap the events: packets sent and read, kicks, readiness of the lane
 *   flush both queues: used entries and notifications, once for all of it
 *
 * Turns submit, reaping comes after: no event is ever handled inside a turn.
 * A queue asks for kicks only when its turn found nothing (and looks again
 * after asking), so a busy queue costs no notification at all.
 *
 * Kick descriptors are eventfds that are never read: their polls are edge
 * triggered, each write of the driver is one event.
 *
 * Call descriptors are non-blocking, but the front-end shares them and can make
 * them blocking again. A full one then holds the worker in write(2). The thread
 * that waits for the worker's answer interrupts it with a signal.
 */
#include "net/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "lane/steer.h"
#include "net/tags.h"

#define EVENTS_PER_REAP 64u
/* How often a ring without a kick descriptor is looked at. */
#define NO_KICK_POLL_NS 100000
/* How often a stop looks at the clock. */
#define STOP_LOOK_NS    1000000
/* How long an answer may take before the worker is interrupted. */
#define ANSWER_NS       (VL_NS_PER_SEC / 10)

static int kick_fd(const struct vl_virtqueue *vq)
{
	return vq->running ? vq->ring.kick_fd : -1;
}

static void watch_kick(struct vl_worker *w, struct vl_virtqueue *vq,
		       enum vl_tag_kind kind)
{
	int err = kick_fd(vq) < 0 ? 0
				  : vl_io_poll(w->io, kick_fd(vq), EPOLLIN,
					       true, VL_TAG(kind, 0));

	if (err)
		vl_log_limited(&w->log_limit, VL_LOG_WARNING, vq->name,
			       "cannot wait for its kick descriptor (error %d)",
			       -err);
}

static void on_kick(struct vl_worker *w, struct vl_virtqueue *vq,
		    uint64_t *counter, const struct vl_io_event *ev)
{
	VL_STAT_INC(*counter);
	if (ev->more)
		return;
	if (ev->res >= 0 && !(ev->res & (EPOLLERR | EPOLLHUP))) {
		watch_kick(w, vq, vl_tag_kind(ev->tag));
		return;
	}
	vl_log_limited(&w->log_limit, VL_LOG_WARNING, vq->name,
		       "its kick descriptor failed; give a new one with "
		       "SET_VRING_KICK");
}

static void dispatch(void *arg, const struct vl_io_event *ev)
{
	struct vl_worker *w = arg;

	switch (vl_tag_kind(ev->tag)) {
	case VL_TAG_TX_SLOT:
		vl_txq_event(&w->tx, vl_tag_index(ev->tag), ev);
		break;
	case VL_TAG_RX_READ:
		vl_rxq_complete(&w->rx, vl_tag_index(ev->tag), ev->res);
		break;
	case VL_TAG_TX_KICK:
		on_kick(w, &w->tx.vq, &w->tx.counters.kicks, ev);
		break;
	case VL_TAG_RX_KICK:
		on_kick(w, &w->rx.vq, &w->rx.counters.kicks, ev);
		break;
	case VL_TAG_LANE_IN:
		vl_lane_readable(&w->tx.lanes.lane[0]);
		break;
	case VL_TAG_LANE_OUT:
		vl_lane_set_writable(&w->tx.lanes, vl_tag_index(ev->tag));
		break;
	case VL_TAG_BACKEND:
		w->backend->ops->complete(w->backend, w->index, w->io, ev,
					  dispatch, w);
		break;
	case VL_TAG_CALL:
		if (!ev->more)
			(void)vl_io_poll(w->io, w->wake_fd, EPOLLIN, true,
					 VL_TAG(VL_TAG_CALL, 0));
		break;
	}
}

static void reap(struct vl_worker *w)
{
	struct vl_io_event ev[EVENTS_PER_REAP];
	unsigned int n;

	do {
		/* Bounded: a turn queues at most a batch of each queue. */
		do {
			n = vl_io_reap(w->io, ev, EVENTS_PER_REAP);
			for (unsigned int i = 0; i < n; i++)
				dispatch(w, &ev[i]);
		} while (n == EVENTS_PER_REAP);
	} while (vl_txq_flush(&w->tx));
	vl_rxq_flush(&w->rx);
}

static void take_call(struct vl_worker *w)
{
	if (vl_likely(!vl_load_acquire(&w->call_pending)))
		return;
	/* Without the lock, which who waits takes to look at the clock. */
	w->fn(w, w->arg);
	pthread_mutex_lock(&w->lock);
	vl_store_release(&w->call_pending, false);
	pthread_cond_signal(&w->answered);
	pthread_mutex_unlock(&w->lock);
}

static int64_t sleep_limit(const struct vl_worker *w)
{
	bool unkicked = (w->tx.vq.running && w->tx.vq.ring.kick_fd < 0) ||
			(w->rx.vq.running && w->rx.vq.ring.kick_fd < 0);

	return unkicked ? NO_KICK_POLL_NS : vl_steer_timeout(&w->tx.lanes);
}

static void answer_start(struct vl_worker *w, int result)
{
	pthread_mutex_lock(&w->lock);
	w->start_result = result;
	vl_store_release(&w->call_pending, false);
	pthread_cond_signal(&w->answered);
	pthread_mutex_unlock(&w->lock);
}

static int thread_init(struct vl_worker *w)
{
	char name[16];
	int err;

	(void)snprintf(name, sizeof(name), "virtlane/%u", w->index);
	(void)pthread_setname_np(pthread_self(), name);
	vl_cycles_open(&w->cycles);
	err = vl_io_start(w->io);
	if (!err)
		err = vl_lane_set_start(&w->tx.lanes, w->backend, w->index,
					w->io);
	if (!err)
		err = vl_io_poll(w->io, w->wake_fd, EPOLLIN, true,
				 VL_TAG(VL_TAG_CALL, 0));
	return err;
}

static void *worker_main(void *arg)
{
	struct vl_worker *w = arg;
	int err = thread_init(w);

	answer_start(w, err);
	while (!err && !w->stop) {
		bool more;

		take_call(w);
		more = vl_txq_turn(&w->tx);
		more |= vl_rxq_turn(&w->rx);
		if (!more && !vl_load_acquire(&w->call_pending) && !w->stop)
			vl_io_wait(w->io, sleep_limit(w));
		else if (w->engine == VL_IO_SYNC)
			/* Only a wait looks for events; a busy queue must not
			 * keep those of the other one from being seen. */
			vl_io_wait(w->io, 0);
		reap(w);
	}
	if (!err)
		vl_lane_set_stop(&w->tx.lanes);
	vl_io_free(w->io);
	w->io = NULL;
	vl_cycles_close(&w->cycles);
	return NULL;
}

static void free_parts(struct vl_worker *w)
{
	vl_txq_free(&w->tx);
	vl_rxq_free(&w->rx);
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	pthread_cond_destroy(&w->answered);
	pthread_mutex_destroy(&w->lock);
}

/* Its only effect is that a blocking system call ends with EINTR. */
static void on_interrupt(int sig)
{
	(void)sig;
}

static int allow_interrupts(void)
{
	struct sigaction sa = { .sa_handler = on_interrupt };

	sigemptyset(&sa.sa_mask);
	return sigaction(SIGUSR1, &sa, NULL) < 0 ? -errno : 0;
}

/* The condition's clock must not jump. */
static void init_answered(struct vl_worker *w)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->answered, &attr);
	pthread_condattr_destroy(&attr);
}

/* Waits until the worker has answered what is pending; @w->lock is held. */
static void await_answer(struct vl_worker *w)
{
	while (vl_load_acquire(&w->call_pending)) {
		uint64_t end = vl_clock_ns(CLOCK_MONOTONIC) + ANSWER_NS;
		struct timespec until = {
			.tv_sec = (time_t)(end / VL_NS_PER_SEC),
			.tv_nsec = (long)(end % VL_NS_PER_SEC),
		};

		if (pthread_cond_timedwait(&w->answered, &w->lock, &until) ==
		    ETIMEDOUT)
			pthread_kill(w->thread, SIGUSR1);
	}
}

/* Operations of one submit: a batch of each queue. */
#define IO_OPS (VL_TX_BATCH + VL_RX_BATCH)

int vl_worker_start(struct vl_worker *w, struct vl_backend *backend,
		    unsigned int index, enum vl_io_engine engine,
		    enum vl_tx_full tx_full)
{
	int err;

	w->backend = backend;
	w->index = index;
	w->engine = engine;
	w->call_pending = true;
	w->tx.lanes.mode = tx_full;
	w->tx.zc.classic = tx_full == VL_TX_FULL_BLOCK;
	w->tx.lanes.tag_backend = VL_TAG(VL_TAG_BACKEND, 0);
	w->tx.lanes.lane[0].tag_in = VL_TAG(VL_TAG_LANE_IN, 0);
	for (unsigned int i = 0; i < VL_LANES_MAX; i++)
		w->tx.lanes.lane[i].tag_out = VL_TAG(VL_TAG_LANE_OUT, i);
	pthread_mutex_init(&w->lock, NULL);
	init_answered(w);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = w->wake_fd < 0 ? -errno : allow_interrupts();
	if (!err)
		err = vl_io_new(engine, IO_OPS + backend->ops_per_frame,
				&w->io);
	if (!err)
		err = vl_txq_init(&w->tx, backend, w->io);
	if (!err)
		err = vl_rxq_init(&w->rx, &w->tx.lanes.lane[0], w->io);
	if (!err)
		err = -pthread_create(&w->thread, NULL, worker_main, w);
	if (err) {
		vl_io_free(w->io);
		free_parts(w);
		return err;
	}
	pthread_mutex_lock(&w->lock);
	while (vl_load_acquire(&w->call_pending))
		pthread_cond_wait(&w->answered, &w->lock);
	pthread_mutex_unlock(&w->lock);
	err = w->start_result;
	if (err) {
		pthread_join(w->thread, NULL);
		free_parts(w);
	}
	return err;
}

void vl_worker_call(struct vl_worker *w, vl_worker_fn *fn, void *arg)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&w->lock);
	w->fn = fn;
	w->arg = arg;
	vl_store_release(&w->call_pending, true);
	/* Cannot fail: the counter of an eventfd that nobody else writes. */
	if (write(w->wake_fd, &one, sizeof(one)) < 0)
		vl_log(VL_LOG_ERROR, NULL, "worker %u: cannot wake: %m",
		       w->index);
	await_answer(w);
	pthread_mutex_unlock(&w->lock);
}

static void stop_thread(struct vl_worker *w, void *arg)
{
	(void)arg;
	w->stop = true;
}

void vl_worker_join(struct vl_worker *w)
{
	vl_worker_call(w, stop_thread, NULL);
	pthread_join(w->thread, NULL);
	free_parts(w);
}

int vl_worker_vring_start(struct vl_worker *w, bool tx,
			  const struct vl_vring *ring, struct vl_guest_mem *mem,
			  uint64_t features)
{
	struct vl_virtqueue *vq = tx ? &w->tx.vq : &w->rx.vq;
	char name[16];
	int err;

	(void)snprintf(name, sizeof(name), "%s%u", tx ? "tx" : "rx", w->index);
	err = tx ? vl_txq_start(&w->tx, name, ring, mem, features)
		 : vl_rxq_start(&w->rx, name, ring, mem, features);
	if (!err)
		watch_kick(w, vq, tx ? VL_TAG_TX_KICK : VL_TAG_RX_KICK);
	return err;
}

/*
 * What was submitted has been answered by the kernel already or will be without
 * waiting for anyone: files are non-blocking. But what is pending is released
 * when it has left the host; meanwhile the receiveq goes on.
 */
static void wait_for_kernel(struct vl_worker *w, bool tx)
{
	bool more = tx && vl_rxq_turn(&w->rx);

	vl_io_wait(w->io, more ? 0 : STOP_LOOK_NS);
	reap(w);
}

uint16_t vl_worker_vring_stop(struct vl_worker *w, bool tx)
{
	struct vl_virtqueue *vq = tx ? &w->tx.vq : &w->rx.vq;

	while (tx ? vl_txq_stopping(&w->tx, vl_now_ns())
		  : vl_rxq_in_flight(&w->rx) > 0)
		wait_for_kernel(w, tx);
	if (kick_fd(vq) >= 0)
		vl_io_poll_cancel(
			w->io, kick_fd(vq),
			VL_TAG(tx ? VL_TAG_TX_KICK : VL_TAG_RX_KICK, 0));
	return tx ? vl_txq_stop(&w->tx) : vl_rxq_stop(&w->rx);
}
