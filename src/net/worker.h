/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: the thread of one queue pair, with its I/O engine, its lane and
 * both queues. Everything in it belongs to the thread; the control thread
 * reaches it through vl_worker_call() and reads counters.
 */
#ifndef VL_NET_WORKER_H
#define VL_NET_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/log.h"
#include "net/rx.h"
#include "net/tx.h"
#include "stats/cycles.h"

struct vl_worker;

/* Runs on the worker's thread, between two turns. */
typedef void vl_worker_fn(struct vl_worker *w, void *arg);

struct vl_worker {
	/* Constant after start. */
	struct vl_backend *backend;
	unsigned int index;
	enum vl_io_engine engine;
	pthread_t thread;
	int wake_fd;

	/* Worker thread only. */
	struct vl_io *io;
	struct vl_txq tx;
	struct vl_rxq rx;
	struct vl_log_limit log_limit;
	int start_result;
	bool stop;

	/* The call in progress: control thread writes, worker answers. */
	pthread_mutex_t lock;
	pthread_cond_t answered;
	vl_worker_fn *fn;
	void *arg;
	bool call_pending; /* also read without the lock, as a hint */

	struct vl_cycles cycles;
};

/*
 * Starts the thread of pair @index. Returns when it is ready to be called, 0
 * or -errno (then there is no thread).
 */
int vl_worker_start(struct vl_worker *w, struct vl_backend *backend,
		    unsigned int index, enum vl_io_engine engine,
		    enum vl_tx_full tx_full);

/* Ends the thread; its queues must be stopped. */
void vl_worker_join(struct vl_worker *w);

/* Runs @fn on the worker and waits for it: at most one turn and @fn itself.
 * One caller at a time. */
void vl_worker_call(struct vl_worker *w, vl_worker_fn *fn, void *arg);

/* For functions run by vl_worker_call(). */
int vl_worker_vring_start(struct vl_worker *w, bool tx,
			  const struct vl_vring *ring, struct vl_guest_mem *mem,
			  uint64_t features);
uint16_t vl_worker_vring_stop(struct vl_worker *w, bool tx);

#endif
