/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio-net device (virtio 1.2, section 5.1): queue pairs, each with a
 * worker thread, over one backend. Queue indices are those of the spec:
 * 2n is receiveq n, 2n + 1 transmitq n; the control queue follows the last pair
 * (the first one, when VIRTIO_NET_F_MQ was not negotiated).
 *
 * All functions: control thread only. Those that change a running queue hand
 * over to its worker and return when the worker is done.
 */
#ifndef VL_NET_DEVICE_H
#define VL_NET_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "lane/backend.h"
#include "lane/lane_set.h"
#include "stats/snapshot.h"
#include "virtio/virtqueue.h"

struct vl_device;

struct vl_device_config {
	unsigned int queue_pairs; /* 1 to VL_SNAPSHOT_PAIRS_MAX */
	enum vl_io_engine engine; /* VL_IO_URING or VL_IO_SYNC */
	enum vl_tx_full tx_full;  /* when the host network takes no more */
	uint8_t mac[6];
	uint32_t mtu; /* offered to the driver; 0: VIRTIO_NET_F_MTU is not */
	/* The config space changed by itself (link): tell the driver. */
	void (*config_changed)(void *ctx);
	/* The control queue (re)started or stopped: watch kick_fd edge
	 * triggered and call vl_device_ctrl_kick(); -1: stop watching. */
	void (*ctrl_watch)(void *ctx, int kick_fd);
	void *ctx;
};

/*
 * Makes a device over @backend, which stays the caller's and must outlive it.
 * Starts the workers; they sleep until a ring starts. Returns 0 or -errno.
 */
int vl_device_new(const struct vl_device_config *config,
		  struct vl_backend *backend, struct vl_device **out);

/* Stops everything, joins the workers, frees. */
void vl_device_free(struct vl_device *dev);

/* Virtqueues in all: 2 * queue_pairs + 1. */
unsigned int vl_device_queues(const struct vl_device *dev);

/* Feature bits offered, and the negotiated subset. */
uint64_t vl_device_features(const struct vl_device *dev);
int vl_device_set_features(struct vl_device *dev, uint64_t features);

/* See struct vl_vhost_ops for the meaning of the following. */
int vl_device_set_mem(struct vl_device *dev, struct vl_guest_mem *mem);
int vl_device_vring_start(struct vl_device *dev, unsigned int index,
			  const struct vl_vring *ring);
void vl_device_vring_stop(struct vl_device *dev, unsigned int index,
			  uint16_t *base);
void vl_device_vring_call(struct vl_device *dev, unsigned int index, int fd);
void vl_device_vring_err(struct vl_device *dev, unsigned int index, int fd);
/*
 * A batch of starts and stops is over (a message of the front-end was handled):
 * ports without a running ring leave the host network.
 */
void vl_device_settle(struct vl_device *dev);

int vl_device_get_config(struct vl_device *dev, uint32_t offset, void *buf,
			 uint32_t len);
int vl_device_set_mtu(struct vl_device *dev, uint64_t mtu);
void vl_device_reset(struct vl_device *dev);

/* The control queue was kicked: handles what is there, within a bound.
 * Returns true when it must be called again without a kick. */
bool vl_device_ctrl_kick(struct vl_device *dev);

/* The backend's event descriptor is readable. */
void vl_device_backend_event(struct vl_device *dev);

/* Fills the device's part of @s; the caller adds what it knows itself
 * (connected, sessions, ...). */
void vl_device_snapshot(struct vl_device *dev, struct vl_snapshot *s);

#endif
