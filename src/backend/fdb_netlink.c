/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy of a forwarding database: theory of operation.
 *
 * One socket both asks for all entries (a dump) and hears of each change. The
 * kernel queues the parts of the answer and the changes in the order in which
 * they came about, so what comes last about an entry is true.
 *
 * Changes are lost when more come than the socket holds (ENOBUFS). Then there
 * is another dump. Each has a number; entries that were seen carry the number
 * of the last one, and what carries an older one when the dump ends is gone.
 * But while entries are deleted, the kernel may pass over others in its dump.
 * So one during which that happened does not count, and the next one begins: a
 * few times, for a database that never rests must not keep what is gone.
 *
 * The copy is there to know what is gone. Who uses the entries has a table of
 * his own, made for look-ups.
 */
#include "backend/fdb_netlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "backend/fdb_port.h"
#include "base/log.h"

/* Datagrams read per call, so that a flood of changes cannot hold us. */
#define READS_PER_UPDATE 64
/* How long an answer may take, and the first dump. */
#define ANSWER_S         1
#define DUMP_MS          1000
#define DUMP_CALLS       1000
/* Dumps in a row that deletions may spoil. */
#define TRIES            8u
/* Room for changes: some 3000, as the kernel counts them. */
#define RECEIVE_BUFFER   (4 << 20)
#define BUCKETS          4096u
#define ENTRIES_MAX      65536u
/* A third of what bridges remember, usually 300 s. */
#define TICK_MAX_S       100u

struct entry {
	struct entry *next;
	uint32_t dump;
	uint8_t mac[6];
	struct vl_ip dst;
};

struct vl_fdb {
	const struct vl_fdb_ops *ops;
	void *ctx;
	char dev[VL_FDB_NAME];
	uint32_t ifindex, vni;
	struct mnl_socket *nl;
	int epoll_fd, timer_fd;
	struct vl_fdb_port port; /* fd -1: none */

	uint32_t dump; /* number of the last one */
	bool dumping;
	bool lost;    /* the dump does not count: changes were lost */
	bool deleted; /* nor if there were deletions meanwhile */
	unsigned int tries;
	int error; /* that ended a dump */

	unsigned int count;
	struct entry *bucket[BUCKETS];
	struct vl_log_limit full, failed;
};

static const uint8_t everybody[6];

static bool is_flood(const uint8_t mac[6])
{
	return !memcmp(mac, everybody, 6);
}

static struct entry **bucket_of(struct vl_fdb *f, const uint8_t mac[6])
{
	uint32_t hash = 2166136261u;

	for (int i = 0; i < 6; i++)
		hash = (hash ^ mac[i]) * 16777619u;
	return &f->bucket[(hash ^ hash >> 16) % BUCKETS];
}

/* The link that leads to the entry, or to NULL. @dst matters for everybody. */
static struct entry **find(struct vl_fdb *f, const uint8_t mac[6],
			   const struct vl_ip *dst)
{
	struct entry **at = bucket_of(f, mac);

	while (*at && (memcmp((*at)->mac, mac, 6) != 0 ||
		       (is_flood(mac) && !vl_ip_equal(&(*at)->dst, dst))))
		at = &(*at)->next;
	return at;
}

static void drop(struct vl_fdb *f, struct entry **at)
{
	struct entry *e = *at;

	*at = e->next;
	f->count--;
	f->ops->del(f->ctx, e->mac, &e->dst);
	free(e);
}

static void add(struct vl_fdb *f, const struct vl_fdb_entry *change)
{
	struct entry **at = find(f, change->mac, &change->dst);
	struct entry *e = *at;

	if (!e) {
		if (f->count < ENTRIES_MAX)
			e = calloc(1, sizeof(*e));
		if (!e) {
			vl_log_limited(&f->full, VL_LOG_WARNING, f->dev,
				       "more than %u forwarding entries; "
				       "some are not used",
				       f->count);
			return;
		}
		memcpy(e->mac, change->mac, 6);
		*at = e;
		f->count++;
	} else if (vl_ip_equal(&e->dst, &change->dst)) {
		e->dump = f->dump;
		return;
	}
	e->dump = f->dump;
	e->dst = change->dst;
	f->ops->add(f->ctx, e->mac, &e->dst);
}

static void on_entry(struct vl_fdb *f, const struct vl_fdb_entry *change)
{
	struct entry **at;

	vl_fdb_port_entry(&f->port, change);
	if (!change->self || change->ifindex != f->ifindex ||
	    !change->dst.len || (change->vni && change->vni != f->vni))
		return;
	if (change->present) {
		add(f, change);
		return;
	}
	f->deleted = true;
	at = find(f, change->mac, &change->dst);
	if (*at && vl_ip_equal(&(*at)->dst, &change->dst))
		drop(f, at);
}

static int start_dump(struct vl_fdb *f)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;

	f->dump++;
	f->lost = false;
	f->deleted = false;
	nlh->nlmsg_type = RTM_GETNEIGH;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = f->dump;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_BRIDGE;
	ifi->ifi_index = (int)f->ifindex;
	f->dumping = mnl_socket_sendto(f->nl, nlh, nlh->nlmsg_len) >= 0;
	return f->dumping ? 0 : -errno;
}

static void dump_failed(struct vl_fdb *f, int err)
{
	f->dumping = false;
	f->error = err;
	vl_log_limited(&f->failed, VL_LOG_WARNING, f->dev,
		       "cannot read the forwarding entries: %s; some may be "
		       "out of date",
		       strerror(-err));
}

static void restart_dump(struct vl_fdb *f)
{
	int err = start_dump(f);

	if (err)
		dump_failed(f, err);
}

/* @nlh ends the dump, with an error or without. */
static void end_dump(struct vl_fdb *f, const struct nlmsghdr *nlh)
{
	const int *code = mnl_nlmsg_get_payload(nlh);

	if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(*code) && *code < 0) {
		dump_failed(f, *code);
		return;
	}
	if (f->lost || (f->deleted && ++f->tries < TRIES)) {
		restart_dump(f);
		return;
	}
	f->dumping = false;
	f->tries = 0;
	for (unsigned int i = 0; i < BUCKETS; i++) {
		struct entry **at = &f->bucket[i];

		while (*at) {
			if ((*at)->dump != f->dump)
				drop(f, at);
			else
				at = &(*at)->next;
		}
	}
}

static void on_link(struct vl_fdb *f, const struct vl_fdb_link *link)
{
	vl_fdb_port_link(&f->port, link);
	if (link->present || link->bridge)
		return;
	if (link->ifindex == f->ifindex)
		vl_log(VL_LOG_WARNING, f->dev,
		       "the interface was deleted; restart virtlane when there "
		       "is one again");
	else if (f->port.fd >= 0 && link->ifindex == f->port.ifindex)
		vl_log(VL_LOG_WARNING, f->dev,
		       "%s was deleted; the guest's address is not announced "
		       "any more",
		       f->port.name);
}

static void on_message(struct vl_fdb *f, const struct nlmsghdr *nlh)
{
	bool ours = f->dumping && nlh->nlmsg_seq == f->dump &&
		    nlh->nlmsg_pid == mnl_socket_get_portid(f->nl);
	struct vl_fdb_entry entry;
	struct vl_fdb_link link;

	if (ours && (nlh->nlmsg_flags & NLM_F_DUMP_INTR))
		f->deleted = true;
	if (vl_fdb_entry_parse(nlh, &entry))
		on_entry(f, &entry);
	else if (vl_fdb_link_parse(nlh, &link))
		on_link(f, &link);
	else if (ours && (nlh->nlmsg_type == NLMSG_DONE ||
			  nlh->nlmsg_type == NLMSG_ERROR))
		end_dump(f, nlh);
}

static void read_messages(struct vl_fdb *f)
{
	char buf[32768];

	for (int i = 0; i < READS_PER_UPDATE; i++) {
		const struct nlmsghdr *nlh = (const void *)buf;
		ssize_t n = mnl_socket_recvfrom(f->nl, buf, sizeof(buf));
		int left = (int)n;

		/* ENOSPC: a datagram was cut. */
		if (n < 0 && (errno == ENOBUFS || errno == ENOSPC)) {
			if (f->dumping)
				f->lost = true;
			else
				restart_dump(f);
			continue;
		}
		if (n <= 0)
			return;
		for (; mnl_nlmsg_ok(nlh, left);
		     nlh = mnl_nlmsg_next(nlh, &left))
			on_message(f, nlh);
	}
}

void vl_fdb_update(struct vl_fdb *f)
{
	uint64_t expired;

	if (read(f->timer_fd, &expired, sizeof(expired)) > 0)
		vl_fdb_port_tick(&f->port);
	read_messages(f);
}

/* A socket to ask with: blocking, with a limit. */
static struct mnl_socket *open_asking(void)
{
	struct timeval limit = { .tv_sec = ANSWER_S };
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);

	if (nl && (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ||
		   setsockopt(mnl_socket_get_fd(nl), SOL_SOCKET, SO_RCVTIMEO,
			      &limit, sizeof(limit)) < 0)) {
		int err = errno;

		mnl_socket_close(nl);
		errno = err;
		return NULL;
	}
	return nl;
}

/* The interface @name, or if that is NULL, number @ifindex. */
static int get_link(struct mnl_socket *nl, const char *name, uint32_t ifindex,
		    struct vl_fdb_link *out)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;

	nlh->nlmsg_type = RTM_GETLINK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_index = (int)ifindex;
	if (name)
		mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	*out = (struct vl_fdb_link){ 0 };
	return vl_fdb_ask(nl, nlh, out);
}

/* Finds the device and its bridge; @bridge->ifindex is 0 if it has none. */
static int look_up(const char *dev, struct mnl_socket *nl,
		   struct vl_fdb_link *link, struct vl_fdb_link *bridge,
		   char *err, size_t err_size)
{
	int code = -EINVAL;

	*bridge = (struct vl_fdb_link){ 0 };
	if (strlen(dev) < VL_FDB_NAME)
		code = get_link(nl, dev, 0, link);
	if (code) {
		(void)snprintf(err, err_size, "no interface %s: %s", dev,
			       strerror(-code));
		return code;
	}
	if (strcmp(link->kind, "vxlan") != 0) {
		(void)snprintf(
			err, err_size,
			"%s is no vxlan device%s%s; give one that FRR or "
			"bridge(8) puts entries into",
			dev, link->kind[0] ? " but a " : "", link->kind);
		return -EINVAL;
	}
	if (link->external) {
		(void)snprintf(
			err, err_size,
			"%s is external, for many networks; make a vxlan "
			"device with an id of its own",
			dev);
		return -EINVAL;
	}
	if (link->master && !get_link(nl, NULL, link->master, bridge) &&
	    strcmp(bridge->kind, "bridge") != 0)
		*bridge = (struct vl_fdb_link){ 0 };
	return 0;
}

static int follow(struct vl_fdb *f)
{
	int room = RECEIVE_BUFFER;
	int fd;

	f->nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (!f->nl)
		return -errno;
	fd = mnl_socket_get_fd(f->nl);
	/* Over the limit of the system as administrator, else up to it. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room,
				 sizeof(room));
	if (mnl_socket_bind(f->nl, RTMGRP_NEIGH | RTMGRP_LINK,
			    MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	return start_dump(f);
}

static int await_dump(struct vl_fdb *f)
{
	struct pollfd p = { .fd = mnl_socket_get_fd(f->nl), .events = POLLIN };

	for (int i = 0; f->dumping; i++) {
		if (i == DUMP_CALLS || poll(&p, 1, DUMP_MS) <= 0)
			return -ETIMEDOUT;
		read_messages(f);
	}
	return f->error;
}

static int watch(struct vl_fdb *f, uint32_t ageing_s)
{
	struct epoll_event ev = { .events = EPOLLIN };
	uint32_t tick = ageing_s / 3;
	struct itimerspec when;

	if (!tick)
		tick = 1;
	else if (tick > TICK_MAX_S)
		tick = TICK_MAX_S;
	when.it_interval = when.it_value =
		(struct timespec){ .tv_sec = (time_t)tick };
	f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	f->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (f->epoll_fd < 0 || f->timer_fd < 0 ||
	    epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, mnl_socket_get_fd(f->nl),
		      &ev) < 0 ||
	    epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, f->timer_fd, &ev) < 0)
		return -errno;
	/* Where nothing is announced there is nothing to refresh. */
	if (f->port.fd >= 0 && timerfd_settime(f->timer_fd, 0, &when, NULL) < 0)
		return -errno;
	return 0;
}

/* Everything but the look-up. */
static int set_up(struct vl_fdb *f, struct mnl_socket *nl,
		  const struct vl_fdb_link *bridge, char *err, size_t err_size)
{
	int code = follow(f);

	if (!code)
		code = await_dump(f);
	if (code) {
		(void)snprintf(err, err_size,
			       "cannot read the forwarding entries of %s: %s",
			       f->dev, strerror(-code));
		return code;
	}
	if (bridge->ifindex) {
		code = vl_fdb_port_open(nl, bridge->ifindex, &f->port);
		if (code) {
			(void)snprintf(err, err_size,
				       "cannot make a port of %s, for the "
				       "guest's address: %s%s",
				       bridge->name, strerror(-code),
				       code == -EPERM
					       ? "; start as root, privileges "
						 "are given up afterwards"
					       : "");
			return code;
		}
	}
	code = watch(f, bridge->ageing_s);
	if (code)
		(void)snprintf(err, err_size, "cannot watch %s: %s", f->dev,
			       strerror(-code));
	return code;
}

/* As vl_fdb_open(), with a socket to ask with. */
static int open_asked(const struct vl_fdb_config *config, struct mnl_socket *nl,
		      struct vl_fdb_info *info, struct vl_fdb **out, char *err,
		      size_t err_size)
{
	struct vl_fdb_link link, bridge;
	struct vl_fdb *f;
	int code = look_up(config->dev, nl, &link, &bridge, err, err_size);

	if (code)
		return code;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->ops = config->ops;
	f->ctx = config->ctx;
	(void)snprintf(f->dev, sizeof(f->dev), "%s", link.name);
	f->ifindex = link.ifindex;
	f->vni = link.vni;
	f->epoll_fd = f->timer_fd = f->port.fd = -1;
	*info = (struct vl_fdb_info){ .vni = link.vni,
				      .port = link.port,
				      .local = link.local };
	memcpy(info->bridge, bridge.name, sizeof(info->bridge));
	if (!config->announce)
		bridge.ifindex = 0;
	code = set_up(f, nl, &bridge, err, err_size);
	if (code) {
		vl_fdb_close(f);
		return code;
	}
	*out = f;
	return 0;
}

int vl_fdb_open(const struct vl_fdb_config *config, struct vl_fdb_info *info,
		struct vl_fdb **out, char *err, size_t err_size)
{
	struct mnl_socket *nl = open_asking();
	int code;

	if (!nl) {
		code = -errno;
		(void)snprintf(err, err_size, "no netlink socket: %s",
			       strerror(-code));
		return code;
	}
	code = open_asked(config, nl, info, out, err, err_size);
	mnl_socket_close(nl);
	return code;
}

void vl_fdb_close(struct vl_fdb *f)
{
	if (!f)
		return;
	vl_fdb_port_close(&f->port);
	if (f->nl)
		mnl_socket_close(f->nl);
	if (f->timer_fd >= 0)
		close(f->timer_fd);
	if (f->epoll_fd >= 0)
		close(f->epoll_fd);
	for (unsigned int i = 0; i < BUCKETS; i++) {
		struct entry *e = f->bucket[i];

		while (e) {
			struct entry *next = e->next;

			free(e);
			e = next;
		}
	}
	free(f);
}

int vl_fdb_fd(const struct vl_fdb *f)
{
	return f->epoll_fd;
}

int vl_fdb_announce(struct vl_fdb *f, const uint8_t mac[6])
{
	if (f->port.fd < 0)
		return -EOPNOTSUPP;
	if ((mac[0] & 1) || is_flood(mac))
		return -EINVAL;
	vl_fdb_port_announce(&f->port, mac);
	return 0;
}

void vl_fdb_withdraw(struct vl_fdb *f)
{
	if (f->port.fd >= 0)
		vl_fdb_port_withdraw(&f->port);
}

bool vl_fdb_announced(const struct vl_fdb *f)
{
	return f->port.learned;
}

unsigned int vl_fdb_count(const struct vl_fdb *f)
{
	return f->count;
}
