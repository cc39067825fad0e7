/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port of a bridge behind which a MAC address is, so that what watches the
 * bridge takes it to be at home on this host. See fdb_port.c.
 *
 * Control thread only.
 */
#ifndef VL_BACKEND_FDB_PORT_H
#define VL_BACKEND_FDB_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/fdb_msg.h"

struct mnl_socket;

struct vl_fdb_port {
	int fd;
	uint32_t ifindex, bridge;
	char name[VL_FDB_NAME];
	uint8_t mac[6];
	bool wanted;  /* the address is to be there */
	bool learned; /* the bridge has it behind this port */
	bool moved;   /* the bridge has it behind another port */
};

/*
 * Makes a port of bridge @bridge (an index), which exists as long as it is
 * open. Needs CAP_NET_ADMIN; nothing below does. @nl is used for the requests.
 * Returns 0 or -errno.
 */
int vl_fdb_port_open(struct mnl_socket *nl, uint32_t bridge,
		     struct vl_fdb_port *port);
void vl_fdb_port_close(struct vl_fdb_port *port);

/* @mac is here from now on, also if it was elsewhere up to now. */
void vl_fdb_port_announce(struct vl_fdb_port *port, const uint8_t mac[6]);
/* It is not here any more. */
void vl_fdb_port_withdraw(struct vl_fdb_port *port);

/* What the kernel tells: about addresses in bridges, and about ports. */
void vl_fdb_port_entry(struct vl_fdb_port *port, const struct vl_fdb_entry *e);
void vl_fdb_port_link(struct vl_fdb_port *port, const struct vl_fdb_link *l);

/* Time has passed: sees to it that the bridge does not forget. */
void vl_fdb_port_tick(struct vl_fdb_port *port);

/*
 * Sends the request @nlh on the blocking socket @nl and waits for its end.
 * @link, unless NULL: takes an answer. Returns 0 or -errno.
 */
int vl_fdb_ask(struct mnl_socket *nl, struct nlmsghdr *nlh,
	       struct vl_fdb_link *link);

#endif
