/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which remote a MAC address is behind, and who the remotes are. See
 * vxlan_fdb.c.
 *
 * Shared by all ports of a backend without locks. Functions are for any thread
 * unless they say that they are for the control thread.
 */
#ifndef VL_BACKEND_VXLAN_FDB_H
#define VL_BACKEND_VXLAN_FDB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ip.h"

#define VL_VXLAN_REMOTES 256u
/* Instead of the number of a remote: to all that take part in flooding. */
#define VL_VXLAN_FLOOD   0x7fffu

struct vl_vxlan_fdb;

/* @ageing_ns: how long a learned address is valid, 0: for ever. Returns 0 or
 * -errno. */
int vl_vxlan_fdb_new(uint64_t ageing_ns, struct vl_vxlan_fdb **out);
void vl_vxlan_fdb_free(struct vl_vxlan_fdb *fdb);

/*
 * Control thread: the number of remote @ip, below VL_VXLAN_REMOTES. It is given
 * once and stays that of this address. A new one is not known yet. -ENOSPC: all
 * numbers are used up; -EINVAL: no address.
 */
int vl_vxlan_fdb_remote(struct vl_vxlan_fdb *fdb, const struct vl_ip *ip);

/* The number of @ip, or -ENOENT. */
int vl_vxlan_fdb_find(const struct vl_vxlan_fdb *fdb, const struct vl_ip *ip);

/* The address of remote @remote, which does not change. */
const struct vl_ip *vl_vxlan_fdb_ip(const struct vl_vxlan_fdb *fdb,
				    unsigned int remote);

/* Numbers given so far: those below have an address. */
unsigned int vl_vxlan_fdb_remotes(const struct vl_vxlan_fdb *fdb);

/* Control thread: frames that go to everybody go to @remote too. Asking twice
 * is as asking once. */
void vl_vxlan_fdb_set_flood(struct vl_vxlan_fdb *fdb, unsigned int remote,
			    bool flood);

/* The first remote from @from on that is flooded to; VL_VXLAN_REMOTES: there
 * is no more. */
unsigned int vl_vxlan_fdb_next_flood(const struct vl_vxlan_fdb *fdb,
				     unsigned int from);

/* It is flooded to or a static address is behind it: its datagrams are
 * welcome. */
bool vl_vxlan_fdb_known(const struct vl_vxlan_fdb *fdb, unsigned int remote);

/* Before anybody else uses it: only static addresses count from now on. */
void vl_vxlan_fdb_learn_nothing(struct vl_vxlan_fdb *fdb);

enum vl_vxlan_learnt {
	VL_VXLAN_KNEW,    /* or need not know, or could not be stored */
	VL_VXLAN_LEARNED, /* a new address */
	VL_VXLAN_MOVED,   /* it was behind another remote */
};

/* A frame from @mac came from @remote at @now_ns (vl_now_ns()). */
enum vl_vxlan_learnt vl_vxlan_fdb_learn(struct vl_vxlan_fdb *fdb,
					const uint8_t mac[6],
					unsigned int remote, uint64_t now_ns);

/* The remote that @mac is behind, or VL_VXLAN_FLOOD; group addresses are behind
 * none. */
unsigned int vl_vxlan_fdb_lookup(const struct vl_vxlan_fdb *fdb,
				 const uint8_t mac[6], uint64_t now_ns);

/*
 * Control thread: @mac is behind @remote until it is deleted, whatever comes
 * from others. Replaces an earlier entry. -EINVAL: a group address or zero;
 * -ENOSPC: no room beside other static ones.
 */
int vl_vxlan_fdb_static_add(struct vl_vxlan_fdb *fdb, const uint8_t mac[6],
			    unsigned int remote);
/* Control thread. -ENOENT: there was none. */
int vl_vxlan_fdb_static_del(struct vl_vxlan_fdb *fdb, const uint8_t mac[6]);

struct vl_vxlan_entry {
	uint8_t mac[6];
	bool is_static;
	unsigned int remote;
	uint64_t age_ns; /* since it was seen, to 0.1 s; of a static one 0 */
};

/* Calls @fn (unless NULL) with each valid entry. Returns how many there are. */
typedef void vl_vxlan_entry_fn(void *ctx, const struct vl_vxlan_entry *entry);
unsigned int vl_vxlan_fdb_each(const struct vl_vxlan_fdb *fdb, uint64_t now_ns,
			       vl_vxlan_entry_fn *fn, void *ctx);

#endif
