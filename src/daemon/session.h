/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sessions with front-ends: where they come from (a listening socket, a
 * connection that we make, or a descriptor we were given), the protocol
 * (vhost/) and the device (net/) tied together on the event loop. One
 * front-end at a time. Control thread only.
 */
#ifndef VL_DAEMON_SESSION_H
#define VL_DAEMON_SESSION_H

#include <stdbool.h>

#include "daemon/loop.h"
#include "net/device.h"
#include "vhost/vhost_user.h"

struct vl_session;

struct vl_session_config {
	const char *socket_path; /* NULL: fd */
	bool client;             /* connect to socket_path */
	int fd; /* connected or listening socket; becomes ours on success */
};

/*
 * Opens the listening socket, or looks at what kind of socket fd is. Returns 0
 * or -errno, logged with what to do about it. Nobody is served before
 * vl_session_start().
 */
int vl_session_open(const struct vl_session_config *config,
		    struct vl_loop *loop, struct vl_session **out);

/*
 * Begins to accept or connect, for @dev with @queue_pairs, which must outlive
 * the session. With a connected descriptor the loop quits with status 0 when
 * its session ends. Returns 0 or -errno.
 */
int vl_session_start(struct vl_session *s, struct vl_device *dev,
		     unsigned int queue_pairs);

/* Ends the session, if there is one, and all watches; removes the listening
 * socket. The device runs no ring afterwards. NULL: nothing. */
void vl_session_free(struct vl_session *s);

/* For struct vl_device_config; their ctx is the session. */
void vl_session_config_changed(void *session);
void vl_session_ctrl_watch(void *session, int kick_fd);

/* State of the protocol; all zero before vl_session_start(). */
void vl_session_state(const struct vl_session *s, struct vl_vhost_state *out);

#endif
