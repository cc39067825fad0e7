/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What rtnetlink(7) says of forwarding entries and of the interfaces that have
 * them, taken out of its messages. Pure functions, any thread.
 */
#ifndef VL_BACKEND_FDB_MSG_H
#define VL_BACKEND_FDB_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ip.h"

struct nlmsghdr;

/* An entry of a forwarding database, made, changed or deleted. */
struct vl_fdb_entry {
	bool present; /* false: deleted */
	bool self;    /* of the interface itself; else of its bridge */
	uint32_t ifindex;
	uint32_t bridge; /* index, 0: not told */
	uint8_t mac[6];
	struct vl_ip dst; /* end of the tunnel; len 0: none was told */
	uint32_t vni;     /* 0: the one of the interface */
};

/*
 * Returns false when @nlh is no message of this kind, or is too short, or has
 * no MAC address: @out is not valid then. A destination that is no address of
 * a host (a group) counts as none.
 */
bool vl_fdb_entry_parse(const struct nlmsghdr *nlh, struct vl_fdb_entry *out);

#define VL_FDB_NAME 16

/* An interface. */
struct vl_fdb_link {
	bool present; /* false: deleted */
	bool bridge;  /* the message is about its being a port of a bridge */
	uint32_t ifindex;
	uint32_t master; /* index of its bridge, 0: none */
	char name[VL_FDB_NAME];
	char kind[VL_FDB_NAME]; /* "vxlan", "bridge", "": not told */

	/* vxlan */
	uint32_t vni;
	uint16_t port;
	struct vl_ip local; /* len 0: not set */
	bool external;      /* VNI and destination come with each packet */

	/* bridge */
	uint32_t ageing_s;
};

/* As vl_fdb_entry_parse(). */
bool vl_fdb_link_parse(const struct nlmsghdr *nlh, struct vl_fdb_link *out);

#endif
