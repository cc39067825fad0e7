/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stats socket (--stats): one line of text asks, one line of JSON answers.
 * "stat" gets a snapshot (stats/json.h), anything else {"error": "..."}.
 *
 * Clients are not trusted with the daemon's time or memory: at most
 * VL_CTL_CLIENTS of them, requests of at most VL_CTL_REQUEST bytes, one answer
 * in memory per client; nothing ever blocks; a client that leaves its answer
 * unread for VL_CTL_PATIENCE_NS is dropped. When all places are taken, a new
 * client gets that of the one that has asked nothing for the longest time, if
 * that is at least VL_CTL_IDLE_NS. Control thread only.
 */
#ifndef VL_DAEMON_CTL_H
#define VL_DAEMON_CTL_H

#include "base/util.h"
#include "daemon/loop.h"
#include "stats/snapshot.h"

#define VL_CTL_CLIENTS     8
#define VL_CTL_REQUEST     256
#define VL_CTL_PATIENCE_NS (5 * VL_NS_PER_SEC)
#define VL_CTL_IDLE_NS     VL_NS_PER_SEC

struct vl_ctl;

/*
 * Listens on @path (mode 0660 and less). Returns 0 or -errno, see
 * vl_usock_listen(). Nobody is answered before vl_ctl_start().
 */
int vl_ctl_new(const char *path, struct vl_ctl **out);

/* Serves clients on @loop; @fill writes the snapshot of now (all zero before)
 * and must not call back. */
int vl_ctl_start(struct vl_ctl *ctl, struct vl_loop *loop,
		 void (*fill)(void *ctx, struct vl_snapshot *s), void *ctx);

/* Drops the clients, removes the socket. NULL: nothing. */
void vl_ctl_free(struct vl_ctl *ctl);

#endif
