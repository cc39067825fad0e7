/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control queue (virtio 1.2, section 5.1.6.5), for front-ends that pass
 * it to the back-end. Control thread only.
 */
#ifndef VL_NET_CTRLQ_H
#define VL_NET_CTRLQ_H

#include <stdbool.h>
#include <stdint.h>

#include "virtio/virtqueue.h"

/*
 * What commands do; owned by the device. They return 0 for VIRTIO_NET_OK,
 * -errno for VIRTIO_NET_ERR.
 */
struct vl_ctrl_ops {
	int (*set_pairs)(void *dev, uint16_t pairs);
	int (*set_mac)(void *dev, const uint8_t mac[6]);
	int (*set_offloads)(void *dev, uint64_t offloads);
	int (*announce_ack)(void *dev);
	/* vl_vq_notify(), on a thread that can be interrupted should the
	 * descriptor block. */
	void (*notify)(void *dev, struct vl_virtqueue *vq);
};

struct vl_ctrlq {
	struct vl_virtqueue vq;
	const struct vl_ctrl_ops *ops;
	void *dev;
	uint64_t commands, errors;
	struct iovec iov[VL_CHAIN_IOV_MAX];
};

/*
 * Executes what is in the queue, a few commands at the most. Returns true when
 * there may be more: call again soon, after others had their turn.
 */
bool vl_ctrlq_run(struct vl_ctrlq *q, uint64_t features);

#endif
