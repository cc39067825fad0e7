/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State of a vhost-user session, private to src/vhost: vhost_user.c receives,
 * checks and answers, vring.c keeps the rings.
 */
#ifndef VL_VHOST_SESSION_H
#define VL_VHOST_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "vhost/vhost_msg.h"
#include "vhost/vhost_user.h"

/* A ring as the front-end described it. Descriptors: -1 when there is none. */
struct vl_vhost_ring {
	bool running;
	bool enabled; /* SET_VRING_ENABLE; see vl_vhost_evaluate() */
	bool addr_set;
	bool kick_set; /* SET_VRING_KICK came, with or without descriptor */
	uint16_t base; /* next available index while it does not run */
	uint32_t num;  /* 0: not set */
	uint64_t desc_uva, avail_uva, used_uva;
	int kick_fd, call_fd, err_fd;
};

struct vl_vhost {
	struct vl_vhost_config config;
	const struct vl_vhost_ops *ops;
	void *dev;

	/* One session. */
	int sock;
	int backend_fd;
	struct vl_msg_reader reader;
	bool features_set;
	uint64_t features; /* with VHOST_USER_F_PROTOCOL_FEATURES */
	uint64_t protocol_features;
	uint64_t status;
	struct vl_guest_mem *mem;
	char reason[256]; /* why the current message was refused */

	/* Since start. */
	uint64_t sessions, messages, protocol_errors;
	struct vl_log_limit limit, ring_limit;

	struct vl_vhost_ring ring[]; /* config.vrings */
};

/*
 * What a handler returns besides 0: a negative errno ends the session unless
 * the front-end asked for an acknowledgement; VL_REFUSED does not, because
 * nothing that was agreed upon is lost.
 */
#define VL_REFUSED 1

/* Notes why the current message is refused; returns @err. */
int vl_vhost_refuse(struct vl_vhost *vu, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A ring without anything; no descriptor is closed. */
void vl_vhost_ring_init(struct vl_vhost_ring *ring);

/* Back to what a device reset leaves. The ring does not run. */
void vl_vhost_ring_reset(struct vl_vhost_ring *ring);

/* Closes all of its descriptors. The ring does not run. */
void vl_vhost_ring_clear(struct vl_vhost_ring *ring);

/* Stops rings and keeps their base. */
void vl_vhost_ring_stop(struct vl_vhost *vu, struct vl_vhost_ring *ring);
void vl_vhost_stop_all(struct vl_vhost *vu);

/* Starts and stops rings so that exactly those run which may. */
void vl_vhost_evaluate(struct vl_vhost *vu);

/*
 * Handlers of the requests about one ring. The index was checked, size and
 * number of descriptors too; the ring was stopped where the table says so.
 */
int vl_vhost_set_vring_num(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			   struct vl_vhost_ring *ring);
int vl_vhost_set_vring_addr(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			    struct vl_vhost_ring *ring);
int vl_vhost_set_vring_base(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			    struct vl_vhost_ring *ring);
int vl_vhost_get_vring_base(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			    struct vl_vhost_ring *ring);
int vl_vhost_set_vring_kick(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			    struct vl_vhost_ring *ring);
int vl_vhost_set_vring_call(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			    struct vl_vhost_ring *ring);
int vl_vhost_set_vring_err(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			   struct vl_vhost_ring *ring);
int vl_vhost_set_vring_enable(struct vl_vhost *vu, struct vl_vhost_msg *msg,
			      struct vl_vhost_ring *ring);

#endif
