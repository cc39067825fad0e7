/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches one network interface over rtnetlink: administrative state, carrier,
 * MTU, deletion. Control thread only.
 */
#ifndef VL_BACKEND_LINK_H
#define VL_BACKEND_LINK_H

#include "lane/backend.h"

struct vl_link_monitor;

/*
 * Watches the interface @ifname. @tun_fd is a queue of it: the interface may
 * be in another network namespace than ours, and only the queue knows which.
 * Looking there needs privileges; without them, and with -1 for @tun_fd, our own
 * namespace is searched.
 * Returns 0 or -errno (-ENODEV: not found).
 */
int vl_link_open(int tun_fd, const char *ifname, struct vl_link_monitor **out);
void vl_link_close(struct vl_link_monitor *m);

/* Readable when something may have changed. */
int vl_link_fd(const struct vl_link_monitor *m);

/* Reads what came; then the current state and MTU. Never blocks. */
void vl_link_update(struct vl_link_monitor *m, enum vl_link *link,
		    uint32_t *mtu);

#endif
