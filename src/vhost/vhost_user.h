/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The back-end's side of the vhost-user protocol (QEMU,
 * docs/interop/vhost-user.rst) for one front-end connection at a time.
 *
 * This module owns the protocol: framing, descriptors, feature negotiation,
 * the state of each vring, and when a ring may run. What a ring does is the
 * business of the device above, which is called through struct vl_vhost_ops.
 *
 * A ring runs when features were set, its kick was given, size, addresses and
 * memory are known and valid, and it is enabled. Without VHOST_USER_F_PROTOCOL_FEATURES in the
 * last SET_FEATURES every ring counts as enabled. A ring that is not enabled
 * is left alone: its chains wait (as DPDK and rust-vmm do).
 *
 * All functions: control thread only.
 */
#ifndef VL_VHOST_VHOST_USER_H
#define VL_VHOST_VHOST_USER_H

#include <stdbool.h>
#include <stdint.h>

#include "virtio/virtqueue.h"

struct vl_vhost;

/* The device, as the protocol needs it. All return 0 or -errno. */
struct vl_vhost_ops {
	/* Device and ring features offered, without the vhost-user bit 30. */
	uint64_t (*features)(void *dev);
	/* The subset the driver took; no ring runs during the call. */
	int (*set_features)(void *dev, uint64_t features);
	/* The memory that rings started from now on use (no ring runs). The
	 * callee takes its own reference; NULL: no memory any more. */
	int (*set_mem)(void *dev, struct vl_guest_mem *mem);
	/* Runs ring @index. The descriptors stay the protocol's and open
	 * until vring_stop() or vring_call() returned. */
	int (*vring_start)(void *dev, unsigned int index,
			   const struct vl_vring *ring);
	/* Stops it: returns when nothing touches guest memory any more, with
	 * the next available index in *base. Cannot fail. */
	void (*vring_stop)(void *dev, unsigned int index, uint16_t *base);
	/* New call or err descriptor (-1: none) for a ring that runs. */
	void (*vring_call)(void *dev, unsigned int index, int fd);
	void (*vring_err)(void *dev, unsigned int index, int fd);
	/* Reads @len bytes of the config space from @offset. */
	int (*get_config)(void *dev, uint32_t offset, void *buf, uint32_t len);
	/* The MTU the guest agreed to (NET_SET_MTU). -EINVAL refuses it. */
	int (*set_mtu)(void *dev, uint64_t mtu);
	/* Back to the state after creation; no ring runs. */
	void (*reset)(void *dev);
};

struct vl_vhost_config {
	unsigned int queue_pairs; /* what GET_QUEUE_NUM answers */
	unsigned int vrings;      /* 2 * queue_pairs + 1 with a control queue */
};

int vl_vhost_new(const struct vl_vhost_config *config,
		 const struct vl_vhost_ops *ops, void *dev,
		 struct vl_vhost **out);
void vl_vhost_free(struct vl_vhost *vu);

/* Protocol feature bits that are offered (VHOST_USER_PROTOCOL_F_*). */
uint64_t vl_vhost_protocol_features(void);

/* Begins a session on the connected socket @sock, which becomes ours (also
 * on failure). -EBUSY when there is one already. */
int vl_vhost_attach(struct vl_vhost *vu, int sock);

/* The session's socket, -1 without a session. Watch it for reading. */
int vl_vhost_fd(const struct vl_vhost *vu);

/* The back-end request channel (SET_BACKEND_REQ_FD), -1: none. */
int vl_vhost_backend_fd(const struct vl_vhost *vu);

/*
 * The socket is readable or hung up: handles at most 16 messages. Returns 0
 * while the session goes on; -ECONNRESET when the front-end is gone, -EPROTO
 * and others when it broke the protocol (logged). On failure the session has
 * ended as by vl_vhost_detach().
 */
int vl_vhost_input(struct vl_vhost *vu);

/* The back-end channel is readable or hung up: replies are read and dropped. */
void vl_vhost_backend_input(struct vl_vhost *vu);

/* Ends the session: rings stopped, memory and descriptors released, device
 * reset. Without a session: nothing. */
void vl_vhost_detach(struct vl_vhost *vu);

/* The config space changed (link state): tells the front-end if it listens. */
void vl_vhost_config_changed(struct vl_vhost *vu);

/* A line for people: "connected, 2 of 2 rings running". */
struct vl_vhost_state {
	bool connected;
	uint64_t protocol_features; /* negotiated */
	unsigned int rings_running;
	uint64_t sessions;        /* since start */
	uint64_t messages;        /* since start */
	uint64_t protocol_errors; /* since start */
};
void vl_vhost_state(const struct vl_vhost *vu, struct vl_vhost_state *out);

#endif
