/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fdb=DEV of the VXLAN backend: remotes and MAC addresses come from a kernel
 * device, and the guest's own is announced by who fills that one. See
 * fdb_netlink.h.
 *
 * Control thread only, or while it waits.
 */
#ifndef VL_BACKEND_VXLAN_FOLLOW_H
#define VL_BACKEND_VXLAN_FOLLOW_H

#include "backend/vxlan_fdb.h"
#include "lane/backend.h"

struct vl_vxlan_follow;

/*
 * Puts what params->fdb has into @fdb, which has to outlive it, and goes on to
 * do so. Needs CAP_NET_ADMIN, only here. Returns 0, or -errno with a sentence
 * in @err.
 */
int vl_vxlan_follow_open(const struct vl_backend_params *params,
			 struct vl_vxlan_fdb *fdb, struct vl_vxlan_follow **out,
			 char *err, size_t err_size);
/* NULL: nothing. */
void vl_vxlan_follow_close(struct vl_vxlan_follow *f);

/* Readable when there is something to update. */
int vl_vxlan_follow_fd(const struct vl_vxlan_follow *f);
void vl_vxlan_follow_update(struct vl_vxlan_follow *f);

/* The guest has address @mac / is there or not: it is announced while it is. */
void vl_vxlan_follow_mac(struct vl_vxlan_follow *f, const uint8_t mac[6]);
void vl_vxlan_follow_guest(struct vl_vxlan_follow *f, bool there);

#endif
