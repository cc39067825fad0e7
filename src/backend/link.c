/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of an interface as rtnetlink(7) tells it: one request at start,
 * then the notifications of group RTNLGRP_LINK. When notifications were lost
 * (ENOBUFS) the request is sent again.
 */
#include "backend/link.h"

#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/barrier.h"

/* How long the first answer may take. */
#define FIRST_ANSWER_MS  1000
/* Datagrams read per call, so that a flood of changes cannot hold us. */
#define READS_PER_UPDATE 64

struct vl_link_monitor {
	struct mnl_socket *nl;
	char ifname[IFNAMSIZ];
	int ifindex; /* 0: not known yet */
	bool failed; /* the request was answered with an error */
	enum vl_link link;
	uint32_t mtu;
};

static int attr_cb(const struct nlattr *attr, void *data)
{
	const struct nlattr **tb = data;
	uint16_t type = mnl_attr_get_type(attr);

	if (type == IFLA_MTU || type == IFLA_IFNAME)
		tb[type] = attr;
	return MNL_CB_OK;
}

static int message_cb(const struct nlmsghdr *nlh, void *data)
{
	struct vl_link_monitor *m = data;
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[IFLA_MAX + 1] = { 0 };
	bool up;

	if (nlh->nlmsg_type != RTM_NEWLINK && nlh->nlmsg_type != RTM_DELLINK)
		return MNL_CB_OK;
	/* Bridge ports send messages of their own family. */
	if (ifi->ifi_family != AF_UNSPEC)
		return MNL_CB_OK;
	mnl_attr_parse(nlh, sizeof(*ifi), attr_cb, tb);
	if (!m->ifindex && tb[IFLA_IFNAME] &&
	    !strcmp(mnl_attr_get_str(tb[IFLA_IFNAME]), m->ifname))
		m->ifindex = ifi->ifi_index;
	if (!m->ifindex || ifi->ifi_index != m->ifindex)
		return MNL_CB_OK;
	if (nlh->nlmsg_type == RTM_DELLINK) {
		m->link = VL_LINK_GONE;
		return MNL_CB_OK;
	}
	up = (ifi->ifi_flags & IFF_UP) && (ifi->ifi_flags & IFF_LOWER_UP);
	m->link = up ? VL_LINK_UP : VL_LINK_DOWN;
	if (tb[IFLA_MTU])
		m->mtu = mnl_attr_get_u32(tb[IFLA_MTU]);
	return MNL_CB_OK;
}

static int send_request(struct vl_link_monitor *m)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;

	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_index = m->ifindex;
	if (!m->ifindex)
		mnl_attr_put_strz(nlh, IFLA_IFNAME, m->ifname);
	return mnl_socket_sendto(m->nl, nlh, nlh->nlmsg_len) < 0 ? -errno : 0;
}

static void read_messages(struct vl_link_monitor *m)
{
	/* One link's attributes; a datagram that does not fit is cut, which
	 * the parser notices. */
	char buf[16384];

	for (int i = 0; i < READS_PER_UPDATE; i++) {
		ssize_t n = mnl_socket_recvfrom(m->nl, buf, sizeof(buf));

		if (n < 0 && errno == ENOBUFS) {
			(void)send_request(m);
			continue;
		}
		if (n <= 0)
			return;
		if (mnl_cb_run(buf, (size_t)n, 0, 0, message_cb, m) ==
		    MNL_CB_ERROR) {
			m->failed = true;
			if (m->ifindex && errno == ENODEV)
				m->link = VL_LINK_GONE;
		}
	}
}

/* A socket in the namespace of @tun_fd when it can be entered, else in ours. */
static struct mnl_socket *open_in_namespace(int tun_fd)
{
	struct mnl_socket *nl;
	int theirs = ioctl(tun_fd, SIOCGSKNS);
	int ours = -1;

	if (theirs >= 0)
		ours = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (ours >= 0 && setns(theirs, CLONE_NEWNET) < 0) {
		close(ours);
		ours = -1;
	}
	nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (ours >= 0) {
		/* Were this to fail, sockets opened later would be in the
		 * tap's namespace; entering it just worked, so will this. */
		(void)setns(ours, CLONE_NEWNET);
		close(ours);
	}
	if (theirs >= 0)
		close(theirs);
	return nl;
}

static int await_answer(struct vl_link_monitor *m)
{
	struct pollfd p = { .fd = mnl_socket_get_fd(m->nl), .events = POLLIN };

	while (!m->ifindex && !m->failed) {
		if (poll(&p, 1, FIRST_ANSWER_MS) <= 0)
			return -ETIMEDOUT;
		read_messages(m);
	}
	return m->ifindex ? 0 : -ENODEV;
}

int vl_link_open(int tun_fd, const char *ifname, struct vl_link_monitor **out)
{
	struct vl_link_monitor *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	(void)snprintf(m->ifname, sizeof(m->ifname), "%s", ifname);
	m->nl = open_in_namespace(tun_fd);
	if (!m->nl) {
		err = -errno;
		free(m);
		return err;
	}
	err = mnl_socket_bind(m->nl, RTMGRP_LINK, MNL_SOCKET_AUTOPID) < 0
		      ? -errno
		      : send_request(m);
	if (!err)
		err = await_answer(m);
	if (err) {
		vl_link_close(m);
		return err;
	}
	*out = m;
	return 0;
}

void vl_link_close(struct vl_link_monitor *m)
{
	if (!m)
		return;
	mnl_socket_close(m->nl);
	free(m);
}

int vl_link_fd(const struct vl_link_monitor *m)
{
	return mnl_socket_get_fd(m->nl);
}

void vl_link_update(struct vl_link_monitor *m, enum vl_link *link,
		    uint32_t *mtu)
{
	read_messages(m);
	*link = m->link;
	/* Read by workers. */
	vl_write_once(mtu, m->mtu);
}
