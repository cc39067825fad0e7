/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Follows the forwarding database of a kernel VXLAN device, which a routing
 * daemon fills, and has the guest's own address announced by that daemon. See
 * fdb_netlink.c.
 *
 * Control thread only.
 */
#ifndef VL_BACKEND_FDB_NETLINK_H
#define VL_BACKEND_FDB_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ip.h"

struct vl_fdb;

/* An all-zero @mac: @dst takes part in what goes to everybody. */
struct vl_fdb_ops {
	/* @mac is behind @dst, and (unless it is zero) nowhere else any more.
	 * Called when that is new, or another @dst than before. */
	void (*add)(void *ctx, const uint8_t mac[6], const struct vl_ip *dst);
	/* What was added last is no longer so. */
	void (*del)(void *ctx, const uint8_t mac[6], const struct vl_ip *dst);
};

struct vl_fdb_config {
	const char *dev; /* a VXLAN device, in our network namespace */
	/* A port in its bridge is wanted, for vl_fdb_announce(). */
	bool announce;
	const struct vl_fdb_ops *ops; /* until the close */
	void *ctx;
};

struct vl_fdb_info {
	uint32_t vni;
	uint16_t port;      /* UDP, that the device itself has */
	struct vl_ip local; /* len 0: it has none */
	char bridge[16];    /* that it is a port of; "": none */
};

/*
 * Looks the device up, calls ops->add with every entry that there is, and goes
 * on watching. With config->announce needs CAP_NET_ADMIN (only here, nothing
 * below does) unless info->bridge is "": then nothing can be announced.
 *
 * Whether VNI and port fit is the caller's to see. Returns 0, or -errno with a
 * sentence in @err: what, and how to mend it.
 */
int vl_fdb_open(const struct vl_fdb_config *config, struct vl_fdb_info *info,
		struct vl_fdb **out, char *err, size_t err_size);

/* Does not call ops->del. The address is not announced any more. NULL: nothing.
 */
void vl_fdb_close(struct vl_fdb *f);

/* Readable when vl_fdb_update() has something to do. */
int vl_fdb_fd(const struct vl_fdb *f);

/* Calls the ops with what has changed. Never blocks; a part of many changes
 * may be left for the next call, the descriptor stays readable then. */
void vl_fdb_update(struct vl_fdb *f);

/*
 * @mac is the guest's and at home on this host: as a port of the bridge the
 * guest sends from it. Has its way when the address was at home on another
 * host up to now; when it moves to another one later, that one has its way.
 * One address at a time, a further one replaces it. -EOPNOTSUPP: there is no
 * bridge; -EINVAL: it is not the address of a card.
 */
int vl_fdb_announce(struct vl_fdb *f, const uint8_t mac[6]);

/* The guest is gone, and its address forgotten. */
void vl_fdb_withdraw(struct vl_fdb *f);

/* The bridge has the announced address as one of this host. */
bool vl_fdb_announced(const struct vl_fdb *f);

/* Entries there are now, of all kinds. */
unsigned int vl_fdb_count(const struct vl_fdb *f);

#endif
