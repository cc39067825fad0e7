/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole device over the null backend, with a driver's rings: the test's
 * thread is driver and control thread, the device's workers are its own.
 */
#ifndef TESTS_DEVICE_FIXTURE_H
#define TESTS_DEVICE_FIXTURE_H

#include <pthread.h>

#include "backend/null.h"
#include "net/device.h"
#include "ring_driver.h"

#define DEV_PAIRS      2u
#define DEV_LOG        4096u
#define DEV_HEAD       64u
#define DEV_INJECT_MAX 256u

/* A frame that the device sent: its length and first bytes, header first. */
struct dev_sent {
	uint32_t len;
	uint8_t head[DEV_HEAD];
};

struct dev_injected {
	uint32_t len;
	uint8_t *data;
};

struct device {
	struct vl_backend *backend;
	struct vl_device *dev;
	struct rd_mem mem;
	struct vl_guest_mem *gmem;
	struct rd_ring ring[2 * DEV_PAIRS + 1]; /* by virtqueue index */
	uint64_t features;
	uint32_t hdr_len;
	int watched_fd; /* what ctrl_watch() said last */
	unsigned int config_changes;

	/* The network side of port 0 and 1; under the lock. */
	pthread_mutex_t lock;
	struct dev_sent log[DEV_LOG];
	uint64_t sent;   /* frames taken, all ports */
	int send_result; /* nonzero: what every send is answered with */
	uint64_t take;   /* with send_result: so many are taken first */
	uint64_t refused;
	struct dev_injected in[DEV_PAIRS][DEV_INJECT_MAX];
	uint32_t in_first[DEV_PAIRS], in_count[DEV_PAIRS];
	uint64_t in_taken[DEV_PAIRS];
};

struct dev_config {
	enum vl_io_engine engine;
	uint64_t features;
	uint32_t num;   /* 0: 64 */
	uint32_t mtu;   /* of the host interface, 0: unknown */
	uint16_t start; /* first index of all rings */
	/* Lanes: see vl_null_hooks; their context is the device. */
	unsigned int ways;
	int (*send_way)(void *ctx, unsigned int port, unsigned int way,
			const struct iovec *iov, unsigned int n);
	bool (*writable)(void *ctx, unsigned int port, unsigned int way);
	enum vl_tx_full tx_full;
	/* Zero-copy and limits of the backend: these fields are taken. */
	struct vl_null_hooks zc;
};

/* Makes all of it and negotiates; no ring runs. */
void dev_init(struct device *d, const struct dev_config *c);
void dev_free(struct device *d);

/* Starts virtqueue @index where its driver stands, chains that the device has
 * not used counting as not taken; stops it. */
void dev_start(struct device *d, unsigned int index);
uint16_t dev_stop(struct device *d, unsigned int index);
/* The same for receiveq and transmitq of pair 0. */
void dev_start_pair(struct device *d);

/* @size bytes of guest memory, filled with @fill. */
uint64_t dev_alloc(struct device *d, uint32_t size, int fill);
void *dev_ptr(struct device *d, uint64_t gpa);

/* Publishes what was added to ring @index and kicks if wanted. */
void dev_kick(struct device *d, unsigned int index);

/* Waits until @n entries of ring @index or more are used; fails after 2 s. */
void dev_wait_used(struct device *d, unsigned int index, uint32_t n);

/* Frames that the network side took so far. */
uint64_t dev_sent_count(struct device *d);

/* Waits until the network side took @n frames in all. */
void dev_wait_sent(struct device *d, uint64_t n);

/* Adds a frame for the network to deliver: header (10 bytes, zero padded to
 * the length in force) and @len bytes of frame, a repeating pattern from
 * @first on. dev_wake() tells the device. */
void dev_inject(struct device *d, unsigned int port, uint32_t len,
		uint8_t first);
void dev_wake(struct device *d, unsigned int port);

/* Changes how sends are answered. */
void dev_answer_sends(struct device *d, int result, uint64_t take_first);

/* The device's part of a snapshot, taken now. */
void dev_snapshot(struct device *d, struct vl_snapshot *s);

/* Sends one good frame of @len bytes through transmitq @index and waits for
 * it to come out and back. */
void dev_tx_ok(struct device *d, unsigned int index, uint32_t len);

struct CMUnitTest;

/* Runs the @n tests with each I/O engine that works here; their state is the
 * engine. Returns what main() does. */
int dev_run_with_engines(const struct CMUnitTest *tests, size_t n);

#endif
