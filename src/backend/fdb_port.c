/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port with one address: theory of operation.
 *
 * A routing daemon (zebra of FRR) announces what the bridge has behind a port
 * that is no tunnel. It passes over addresses of the bridge itself, and those
 * that are "permanent", for they are the host's own. And what only the
 * administrator can put in, only he can take out again, while we have given up
 * our privileges long before the guest comes, goes, or dies with us.
 *
 * So the port is a tap of ours, not persistent, and the address gets behind it
 * as any address does: the bridge learns it from a frame. That one is sent to
 * an address that bridges never forward (IEEE 802.1Q, 8.6.3), so it goes
 * nowhere. Without carrier the bridge forgets at once all it had learned, and
 * without the process there is no port. All of that takes nothing but the
 * open descriptor.
 *
 * Bridges forget what they do not hear of: a tick well before tells them again.
 * When the address is learned behind another port, the guest has moved to
 * another host, and we keep still until it is announced again, or until the
 * other host has withdrawn it. A port is not in use at once when it gets its
 * carrier: a notification tells, and the frame is sent then.
 *
 * Nothing is to come out of the tap; what does is not read. Flooding is off for
 * it, and its queue has one place.
 */
#include "backend/fdb_port.h"

#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TUN_DEVICE   "/dev/net/tun"
/* The kernel puts a number there. */
#define NAME_PATTERN "virtlane%d"
#define FRAME        60u
/* For experiments, IEEE 802. */
#define ETHERTYPE    0x88b5u
/* Datagrams that belong to one answer. */
#define ANSWER_MAX   64

/* Of the addresses that are not forwarded, one without a use of its own. */
static const uint8_t to_nobody[6] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x0f };

static int answer_cb(const struct nlmsghdr *nlh, void *data)
{
	struct vl_fdb_link *link = data;

	if (link)
		(void)vl_fdb_link_parse(nlh, link);
	return MNL_CB_OK;
}

int vl_fdb_ask(struct mnl_socket *nl, struct nlmsghdr *nlh,
	       struct vl_fdb_link *link)
{
	unsigned int self = mnl_socket_get_portid(nl);
	char buf[32768];

	nlh->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	nlh->nlmsg_seq = 1;
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	for (int i = 0; i < ANSWER_MAX; i++) {
		ssize_t n = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		int more;

		if (n < 0)
			return -errno;
		more = mnl_cb_run(buf, (size_t)n, 1, self, answer_cb, link);
		if (more == MNL_CB_ERROR)
			return -errno;
		if (more == MNL_CB_STOP)
			return 0;
	}
	return -ELOOP;
}

static struct nlmsghdr *link_request(char *buf, uint16_t type, uint8_t family,
				     uint32_t ifindex)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;

	nlh->nlmsg_type = type;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = family;
	ifi->ifi_index = (int)ifindex;
	return nlh;
}

static int make_tap(struct vl_fdb_port *port)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open(TUN_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	(void)snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", NAME_PATTERN);
	if (ioctl(fd, TUNSETIFF, &ifr) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	port->fd = fd;
	(void)snprintf(port->name, sizeof(port->name), "%s", ifr.ifr_name);
	return 0;
}

/* The port of a bridge that the tap is to be. */
static int join(struct mnl_socket *nl, struct vl_fdb_port *port)
{
	char buf[512];
	struct vl_fdb_link link = { 0 };
	struct nlmsghdr *nlh = link_request(buf, RTM_GETLINK, AF_UNSPEC, 0);
	struct nlattr *nest;
	struct ifinfomsg *ifi;
	int err;

	mnl_attr_put_strz(nlh, IFLA_IFNAME, port->name);
	err = vl_fdb_ask(nl, nlh, &link);
	if (err)
		return err;
	port->ifindex = link.ifindex;

	nlh = link_request(buf, RTM_NEWLINK, AF_UNSPEC, port->ifindex);
	ifi = mnl_nlmsg_get_payload(nlh);
	ifi->ifi_flags = IFF_UP;
	ifi->ifi_change = IFF_UP;
	mnl_attr_put_u32(nlh, IFLA_MASTER, port->bridge);
	mnl_attr_put_u32(nlh, IFLA_TXQLEN, 1);
	err = vl_fdb_ask(nl, nlh, NULL);
	if (err)
		return err;

	nlh = link_request(buf, RTM_SETLINK, AF_BRIDGE, port->ifindex);
	nest = mnl_attr_nest_start(nlh, IFLA_PROTINFO | NLA_F_NESTED);
	mnl_attr_put_u8(nlh, IFLA_BRPORT_UNICAST_FLOOD, 0);
	mnl_attr_put_u8(nlh, IFLA_BRPORT_MCAST_FLOOD, 0);
	mnl_attr_put_u8(nlh, IFLA_BRPORT_BCAST_FLOOD, 0);
	mnl_attr_nest_end(nlh, nest);
	return vl_fdb_ask(nl, nlh, NULL);
}

static void set_carrier(const struct vl_fdb_port *port, int on)
{
	/* Before Linux 5.0 there is always carrier; what is withdrawn is then
	 * forgotten when it has aged. */
	(void)ioctl(port->fd, TUNSETCARRIER, &on);
}

int vl_fdb_port_open(struct mnl_socket *nl, uint32_t bridge,
		     struct vl_fdb_port *port)
{
	int err;

	*port = (struct vl_fdb_port){ .fd = -1, .bridge = bridge };
	err = make_tap(port);
	if (err)
		return err;
	set_carrier(port, 0);
	err = join(nl, port);
	if (err)
		vl_fdb_port_close(port);
	return err;
}

void vl_fdb_port_close(struct vl_fdb_port *port)
{
	if (port->fd >= 0)
		close(port->fd);
	port->fd = -1;
	port->ifindex = 0;
}

/* A frame from the address, for the bridge to learn. */
static void speak(const struct vl_fdb_port *port)
{
	uint8_t frame[FRAME] = { 0 };

	memcpy(frame, to_nobody, 6);
	memcpy(&frame[6], port->mac, 6);
	frame[12] = ETHERTYPE >> 8;
	frame[13] = ETHERTYPE & 0xff;
	/* A port that is down takes none; being up again is notified. */
	(void)!write(port->fd, frame, sizeof(frame));
}

static void speak_if_due(struct vl_fdb_port *port)
{
	if (port->wanted && !port->moved && port->fd >= 0)
		speak(port);
}

void vl_fdb_port_announce(struct vl_fdb_port *port, const uint8_t mac[6])
{
	if (port->wanted && memcmp(port->mac, mac, 6) != 0)
		vl_fdb_port_withdraw(port);
	memcpy(port->mac, mac, 6);
	port->wanted = true;
	port->moved = false;
	set_carrier(port, 1);
	speak_if_due(port);
}

void vl_fdb_port_withdraw(struct vl_fdb_port *port)
{
	port->wanted = false;
	port->learned = false;
	set_carrier(port, 0);
}

void vl_fdb_port_entry(struct vl_fdb_port *port, const struct vl_fdb_entry *e)
{
	bool here = e->ifindex == port->ifindex;

	if (e->self || e->bridge != port->bridge || !port->wanted ||
	    memcmp(e->mac, port->mac, 6) != 0)
		return;
	if (e->present) {
		port->learned = here;
		port->moved = !here;
		return;
	}
	/* Forgotten here, or withdrawn by who had taken it over. */
	port->learned = false;
	port->moved = false;
	speak_if_due(port);
}

void vl_fdb_port_link(struct vl_fdb_port *port, const struct vl_fdb_link *l)
{
	if (l->bridge && l->present && l->ifindex == port->ifindex &&
	    !port->learned)
		speak_if_due(port);
}

void vl_fdb_port_tick(struct vl_fdb_port *port)
{
	speak_if_due(port);
}
