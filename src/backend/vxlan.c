/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The VXLAN backend: sockets, and who does what.
 *
 * One socket is bound to local= and port=, and all datagrams come in by it, on the
 * first queue pair. What is sent has sockets of its own (vxlan_tx.c), bound to
 * local= and a port that the kernel chooses; nothing is ever received by them.
 * Remotes and MAC addresses are in a table that all ports share (vxlan_fdb.c).
 *
 * The driver is offered the MTU that the underlay leaves. What is larger is refused,
 * never fragmented: RFC 7348, section 4.3.
 */
#include "backend/vxlan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/vxlan_fdb.h"
#include "backend/vxlan_follow.h"
#include "backend/vxlan_proto.h"
#include "backend/vxlan_rx.h"
#include "backend/vxlan_tx.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "lane/probe.h"

#define PORTS_MAX    16u
#define SOCKETS_MAX  VL_VXLAN_SOCKETS_MAX
/* Around a frame: IP, UDP and VXLAN headers, and the frame's own Ethernet one,
 * which its MTU does not count. */
#define OVERHEAD_IP4 (20u + 8u + VL_VXLAN_HDR + 14u)
#define OVERHEAD_IP6 (40u + 8u + VL_VXLAN_HDR + 14u)
/* What IPv4 asks of a network, and of a guest's (RFC 791). */
#define MTU_MIN      68u

/* Send buffer of an express socket unless sndbuf= says otherwise: less than the
 * 1000 packets that a queueing discipline holds by default, so that a slow remote
 * shows. */
#define AUTO_SNDBUF  (512 * 1024)
/* Of side lanes, as the tap's: some 10 ms at 10 Mbit/s; the last quarter of them
 * for the slowest. */
#define SIDE_SNDBUF  32768
#define SHORT_SNDBUF 8192
#define RCVBUF       (8 * 1024 * 1024)

struct port {
	struct vl_vxlan_tx *tx;
	struct vl_vxlan_rx *rx; /* of the first port; NULL */
	struct vl_tunnel_counters counters;
	int fd[SOCKETS_MAX];
	int polled; /* of the express way, for room to send */
};

struct vxlan {
	struct vl_backend base;
	const struct vl_backend_params *params; /* while it opens */
	struct vl_vxlan_fdb *fdb;
	struct vl_vxlan_follow *follow; /* of fdb=, else NULL */
	unsigned int active;            /* ports that take part */
	unsigned int express;           /* sockets of the express way */
	int sndbuf[VL_VXLAN_WAYS_MAX + VL_PROBES_MAX];
	int rx_fd;
	char *err; /* while it opens: where to say what failed */
	size_t err_size;
	struct port port[PORTS_MAX];
};

static struct vxlan *to_vxlan(struct vl_backend *b)
{
	return vl_container_of(b, struct vxlan, base);
}

static void vxlan_close(struct vl_backend *b)
{
	struct vxlan *v = to_vxlan(b);

	for (unsigned int p = 0; p < PORTS_MAX; p++) {
		vl_vxlan_tx_free(v->port[p].tx);
		vl_vxlan_rx_free(v->port[p].rx);
		for (unsigned int i = 0; i < SOCKETS_MAX; i++)
			if (v->port[p].fd[i] >= 0)
				close(v->port[p].fd[i]);
	}
	if (v->rx_fd >= 0)
		close(v->rx_fd);
	vl_vxlan_follow_close(v->follow);
	vl_vxlan_fdb_free(v->fdb);
	free(v);
}

static int interface_mtu(const char *ifname)
{
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int mtu = 0;

	if (fd < 0)
		return 0;
	(void)snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%.*s", IFNAMSIZ - 1,
		       ifname);
	if (ioctl(fd, SIOCGIFMTU, &ifr) == 0)
		mtu = ifr.ifr_mtu;
	close(fd);
	return mtu;
}

/* The interface that has the local address. */
static int find_underlay(const struct vxlan *v, char ifname[IFNAMSIZ])
{
	char text[VL_IP_TEXT];
	struct ifaddrs *list;
	int code = -EADDRNOTAVAIL;

	if (getifaddrs(&list) < 0)
		return vl_backend_fail(v->err, v->err_size, -errno,
				       "cannot list addresses: %s",
				       strerror(errno));
	for (const struct ifaddrs *i = list; i && code; i = i->ifa_next) {
		struct sockaddr_storage sa = { 0 };
		struct vl_ip ip;

		if (!i->ifa_addr)
			continue;
		memcpy(&sa, i->ifa_addr,
		       i->ifa_addr->sa_family == AF_INET6
			       ? sizeof(struct sockaddr_in6)
			       : sizeof(struct sockaddr_in));
		vl_ip_from_sockaddr(&sa, &ip);
		if (!vl_ip_equal(&ip, &v->params->local))
			continue;
		(void)snprintf(ifname, IFNAMSIZ, "%.*s", IFNAMSIZ - 1,
			       i->ifa_name);
		code = 0;
	}
	freeifaddrs(list);
	if (code)
		return vl_backend_fail(
			v->err, v->err_size, code,
			"local=%s: no interface here has this address: "
			"give one of \"ip addr\", or add it with \"ip "
			"addr add\"",
			vl_ip_text(&v->params->local, text));
	return 0;
}

/* The MTU that the underlay leaves to the guest. */
static int find_mtu(struct vxlan *v)
{
	const struct vl_backend_params *p = v->params;
	unsigned int overhead = p->local.len == 4 ? OVERHEAD_IP4 : OVERHEAD_IP6;
	char ifname[IFNAMSIZ];
	int code = find_underlay(v, ifname);
	uint32_t mtu;

	if (code)
		return code;
	mtu = (uint32_t)interface_mtu(ifname);
	if (!mtu)
		return 0;
	if (mtu > UINT16_MAX)
		mtu = UINT16_MAX;
	if (mtu < overhead + MTU_MIN)
		return vl_backend_fail(
			v->err, v->err_size, -EMSGSIZE,
			"%s has an MTU of %u, of which the tunnel needs "
			"%u: raise it with \"ip link set %s mtu %u\" or "
			"more",
			ifname, mtu, overhead, ifname, overhead + MTU_MIN);
	if (p->mtu > mtu - overhead)
		return vl_backend_fail(
			v->err, v->err_size, -EMSGSIZE,
			"--mtu=%u: %s has an MTU of %u, of which the "
			"tunnel needs %u: give --mtu=%u or less, or raise "
			"the MTU of %s to %u",
			p->mtu, ifname, mtu, overhead, mtu - overhead, ifname,
			p->mtu + overhead);
	v->base.mtu = mtu - overhead;
	v->base.mtu_offer = v->base.mtu;
	return 0;
}

/* A socket bound to local= and @port. One that receives has to be set up before;
 * of those that send several have one port. */
static int open_udp(const struct vxlan *v, uint16_t port, bool receives)
{
	struct sockaddr_storage sa;
	socklen_t len = vl_ip_sockaddr(&v->params->local, port, &sa);
	int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);
	int code = 0, on = 1;

	if (fd < 0)
		return -errno;
	if (receives)
		code = vl_vxlan_rx_socket(fd, v->params->vni);
	else if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
		code = -errno;
	if (!code && bind(fd, (const struct sockaddr *)&sa, len) == 0)
		return fd;
	if (!code)
		code = -errno;
	close(fd);
	return code;
}

/* Nothing is fragmented: a datagram that is too large is refused. */
static int forbid_fragments(int fd, bool ip6)
{
	int on = IP_PMTUDISC_DO;

	_Static_assert(IP_PMTUDISC_DO == IPV6_PMTUDISC_DO,
		       "one value for both");
	return setsockopt(fd, ip6 ? IPPROTO_IPV6 : IPPROTO_IP,
			  ip6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &on,
			  sizeof(on)) < 0
		       ? -errno
		       : 0;
}

/* A socket that only sends: whatever comes is dropped. */
static int receive_nothing(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog prog = { .len = 1, .filter = &drop };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
			  sizeof(prog)) < 0
		       ? -errno
		       : 0;
}

/* Sets a buffer of @bytes, beyond the system's limit if we may; returns what it
 * is. The kernel doubles what it is told. */
static int set_buffer(int fd, bool send, int bytes)
{
	int half = bytes / 2, is = bytes;
	socklen_t len = sizeof(is);

	if (setsockopt(fd, SOL_SOCKET, send ? SO_SNDBUFFORCE : SO_RCVBUFFORCE,
		       &half, sizeof(half)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, send ? SO_SNDBUF : SO_RCVBUF,
				 &half, sizeof(half));
	(void)getsockopt(fd, SOL_SOCKET, send ? SO_SNDBUF : SO_RCVBUF, &is,
			 &len);
	return is;
}

/* Send buffer of way @way. */
static int way_sndbuf(const struct vxlan *v, unsigned int way)
{
	const struct vl_backend_params *p = v->params;
	int express = AUTO_SNDBUF;

	if (!p->sndbuf_auto)
		express = p->sndbuf && p->sndbuf < INT_MAX ? (int)p->sndbuf
							   : INT_MAX - 1;
	if (way == 0 || way >= v->base.ways)
		return express;
	return vl_min_int(express, way >= v->base.ways - v->base.short_ways
					   ? SHORT_SNDBUF
					   : SIDE_SNDBUF);
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage sa = { 0 };
	struct sockaddr_in6 a6;
	struct sockaddr_in a4;
	socklen_t len = sizeof(sa);

	(void)getsockname(fd, (struct sockaddr *)&sa, &len);
	memcpy(&a4, &sa, sizeof(a4));
	memcpy(&a6, &sa, sizeof(a6));
	return ntohs(sa.ss_family == AF_INET ? a4.sin_port : a6.sin6_port);
}

/*
 * The sockets of port @p that send: of the express way, then of the others. They
 * have one source port, so that the network, and the queues of the remote's network
 * card, see one flow: packets that change their way do not overtake each other.
 */
static int open_senders(struct vxlan *v, struct port *p)
{
	unsigned int n = v->express + v->base.ways - 1 + v->base.probes;
	bool ip6 = v->params->local.len == 16;
	uint16_t source = 0;

	for (unsigned int i = 0; i < n; i++) {
		unsigned int way = i < v->express ? 0 : i - v->express + 1;
		int wanted = way_sndbuf(v, way), got, code;

		p->fd[i] = open_udp(v, source, false);
		if (i == 0 && p->fd[i] >= 0)
			source = port_of(p->fd[i]);
		if (p->fd[i] < 0)
			return vl_backend_fail(v->err, v->err_size, p->fd[i],
					       "cannot open a socket: %s",
					       strerror(-p->fd[i]));
		code = forbid_fragments(p->fd[i], ip6);
		if (!code)
			code = receive_nothing(p->fd[i]);
		if (code)
			return vl_backend_fail(v->err, v->err_size, code,
					       "cannot set up a socket: %s",
					       strerror(-code));
		got = set_buffer(p->fd[i], true, wanted);
		v->sndbuf[way] = got;
		if (i == 0 && got < wanted && !v->params->sndbuf_auto)
			vl_log(VL_LOG_WARNING, v->base.label,
			       "send buffer of %d bytes, not %d: raise "
			       "net.core.wmem_max, or start virtlane with "
			       "CAP_NET_ADMIN",
			       got, wanted);
	}
	return 0;
}

static int open_receiver(struct vxlan *v)
{
	const struct vl_backend_params *p = v->params;
	char text[VL_IP_TEXT];

	vl_ip_text(&p->local, text);
	v->rx_fd = open_udp(v, p->port, true);
	if (v->rx_fd == -EADDRINUSE)
		return vl_backend_fail(
			v->err, v->err_size, v->rx_fd,
			"UDP port %u of %s is in use, by a vxlan device "
			"of the kernel (\"ip -d link show type vxlan\") "
			"or another program: give another local= or "
			"port=, or the kernel's device another dstport",
			p->port, text);
	if (v->rx_fd < 0)
		return vl_backend_fail(v->err, v->err_size, v->rx_fd,
				       "cannot bind UDP port %u of %s: %s",
				       p->port, text, strerror(-v->rx_fd));
	(void)set_buffer(v->rx_fd, false, RCVBUF);
	return 0;
}

/* The number of the remote @ip, which @what names; or -errno. */
static int add_remote(const struct vxlan *v, const struct vl_ip *ip,
		      const char *what)
{
	char a[VL_IP_TEXT], b[VL_IP_TEXT];

	vl_ip_text(ip, a);
	if (ip->len != v->params->local.len)
		return vl_backend_fail(
			v->err, v->err_size, -EAFNOSUPPORT,
			"%s%s and local=%s: both must be IPv4, or both "
			"IPv6",
			what, a, vl_ip_text(&v->params->local, b));
	if (vl_ip_equal(ip, &v->params->local))
		return vl_backend_fail(v->err, v->err_size, -EINVAL,
				       "%s%s is this host's own address", what,
				       a);
	return vl_vxlan_fdb_remote(v->fdb, ip);
}

static int fill_fdb(struct vxlan *v)
{
	const struct vl_backend_params *p = v->params;
	int code = vl_vxlan_fdb_new(p->ageing_s * VL_NS_PER_SEC, &v->fdb);

	if (code)
		return vl_backend_fail(v->err, v->err_size, code, "no memory");
	if (!p->n_remotes && !p->fdb)
		return vl_backend_fail(
			v->err, v->err_size, -EINVAL,
			"give at least one remote=ADDRESS, or fdb=DEVICE");
	for (unsigned int i = 0; i < p->n_remotes; i++) {
		int remote = add_remote(v, &p->remote[i], "remote=");

		if (remote < 0)
			return remote;
		vl_vxlan_fdb_set_flood(v->fdb, (unsigned int)remote, true);
	}
	for (unsigned int i = 0; i < p->n_statics && !code; i++) {
		const struct vl_static_mac *s = &p->statics[i];
		int remote = add_remote(v, &s->remote, "mac=...@");

		if (remote < 0)
			return remote;
		code = vl_vxlan_fdb_static_add(v->fdb, s->mac,
					       (unsigned int)remote);
	}
	if (code)
		return vl_backend_fail(v->err, v->err_size, code,
				       "mac=: too many addresses");
	if (!p->fdb)
		return 0;
	/* Who fills the device knows better, and knows of moves at once. */
	vl_vxlan_fdb_learn_nothing(v->fdb);
	return vl_vxlan_follow_open(p, v->fdb, &v->follow, v->err, v->err_size);
}

static int make_port(struct vxlan *v, unsigned int index)
{
	const struct vl_backend_params *p = v->params;
	struct port *port = &v->port[index];
	struct vl_vxlan_tx_config tx = {
		.fdb = v->fdb,
		.vni = p->vni,
		.port = p->port,
		.fd = port->fd,
		.express = v->express,
		.ways = v->base.ways + v->base.probes,
		.mtu = v->base.mtu,
		.zerocopy = p->zerocopy != VL_ZEROCOPY_OFF,
		.gso_segments = &v->base.gso_segments,
		.counters = &port->counters,
	};
	struct vl_vxlan_rx_config rx = {
		.fdb = v->fdb,
		.vni = p->vni,
		.fd = v->rx_fd,
		.mtu = v->base.mtu,
		.label = v->base.label,
		.counters = &port->counters,
	};
	int code = open_senders(v, port);

	tx.sndbuf = v->sndbuf[0];
	if (!code)
		code = vl_vxlan_tx_new(&tx, &port->tx);
	if (!code && index == 0)
		code = vl_vxlan_rx_new(&rx, &port->rx);
	return code;
}

static void describe(struct vxlan *v)
{
	const struct vl_backend_params *p = v->params;
	struct vl_backend *b = &v->base;

	b->ops = &vl_backend_vxlan;
	b->ports = p->queue_pairs;
	b->ways = vl_min_u32(p->lanes, VL_VXLAN_WAYS_MAX);
	b->short_ways = b->ways / 4;
	b->probes = b->ways > 1 ? VL_PROBES_MAX : 0;
	b->limited = true;
	b->link = VL_LINK_UNKNOWN;
	b->zerocopy = p->zerocopy;
	b->pending = p->pending;
	b->gso_bytes = VL_VXLAN_GSO_BYTES;
	b->gso_segments = VL_VXLAN_SEGMENTS;
	b->ops_per_frame = p->fdb ? VL_VXLAN_REMOTES : p->n_remotes;
	b->caps = (struct vl_backend_caps){
		.csum = true,
		.tso = true,
		.tso_ecn = true,
		.uso = true,
	};
	(void)snprintf(b->label, sizeof(b->label), "vxlan%u", p->vni);
	v->express = vl_min_u32(VL_VXLAN_EXPRESS_MAX, b->ops_per_frame);
	v->rx_fd = -1;
	for (unsigned int i = 0; i < PORTS_MAX; i++)
		for (unsigned int j = 0; j < SOCKETS_MAX; j++)
			v->port[i].fd[j] = -1;
}

static void say_open(const struct vxlan *v)
{
	const struct vl_backend_params *p = v->params;
	char text[VL_IP_TEXT];

	vl_log(VL_LOG_INFO, v->base.label,
	       "VNI %u on UDP port %u of %s, %u remote%s%s%s, MTU %u", p->vni,
	       p->port, vl_ip_text(&p->local, text), p->n_remotes,
	       p->n_remotes == 1 ? "" : "s", p->fdb ? " and those of " : "",
	       p->fdb ? p->fdb : "", v->base.mtu);
}

static int vxlan_open(const struct vl_backend_params *params,
		      struct vl_backend **out, char *err, size_t size)
{
	struct vxlan *v = calloc(1, sizeof(*v));
	int code;

	if (!v)
		return -ENOMEM;
	v->params = params;
	v->err = err;
	v->err_size = size;
	describe(v);
	if (params->queue_pairs > PORTS_MAX)
		code = vl_backend_fail(v->err, v->err_size, -EINVAL,
				       "at most %u queue pairs", PORTS_MAX);
	else
		code = find_mtu(v);
	if (!code)
		code = open_receiver(v);
	if (!code)
		code = fill_fdb(v);
	for (unsigned int i = 0; i < params->queue_pairs && !code; i++)
		code = make_port(v, i);
	if (!code)
		say_open(v);
	v->params = NULL;
	v->err = NULL;
	if (code)
		vxlan_close(&v->base);
	else
		*out = &v->base;
	return code;
}

static int vxlan_set_offload(struct vl_backend *b, const struct vl_offload *o)
{
	struct vxlan *v = to_vxlan(b);

	for (unsigned int i = 0; i < b->ports; i++)
		vl_vxlan_tx_set_hdr_len(v->port[i].tx, o->hdr_len);
	vl_vxlan_rx_set_offload(v->port[0].rx, o);
	return 0;
}

/* Sockets need no leave to be silent; others are told whether the guest is
 * there. */
static int vxlan_set_active(struct vl_backend *b, unsigned int port,
			    bool active)
{
	struct vxlan *v = to_vxlan(b);
	unsigned int bit = 1u << port;

	v->active = active ? v->active | bit : v->active & ~bit;
	if (v->follow)
		vl_vxlan_follow_guest(v->follow, v->active != 0);
	return 0;
}

static int vxlan_set_mac(struct vl_backend *b, const uint8_t mac[6])
{
	struct vxlan *v = to_vxlan(b);

	if (v->follow)
		vl_vxlan_follow_mac(v->follow, mac);
	return 0;
}

static int vxlan_event_fd(const struct vl_backend *b)
{
	const struct vxlan *v = (const struct vxlan *)(const void *)b;

	return v->follow ? vl_vxlan_follow_fd(v->follow) : -1;
}

static void vxlan_event(struct vl_backend *b)
{
	struct vxlan *v = to_vxlan(b);

	if (v->follow)
		vl_vxlan_follow_update(v->follow);
}

static int vxlan_port_start(struct vl_backend *b, unsigned int port,
			    struct vl_io *io, uint64_t tag)
{
	struct port *p = &to_vxlan(b)->port[port];
	int code = vl_vxlan_tx_start(p->tx, io, tag);

	if (!code && p->rx)
		code = vl_vxlan_rx_start(p->rx, io, tag + VL_VXLAN_TX_TAGS);
	if (!code && b->zerocopy == VL_ZEROCOPY_ON && !vl_io_can_zerocopy(io))
		vl_log(VL_LOG_WARNING, b->label,
		       "zerocopy=on needs io_uring with SENDMSG_ZC (Linux "
		       "6.1): everything is copied");
	return code;
}

static void vxlan_port_stop(struct vl_backend *b, unsigned int port,
			    struct vl_io *io)
{
	struct port *p = &to_vxlan(b)->port[port];

	vl_vxlan_tx_stop(p->tx, io);
	if (p->rx)
		vl_vxlan_rx_stop(p->rx, io);
}

static void vxlan_send(struct vl_backend *b, unsigned int port,
		       unsigned int way, struct vl_io *io,
		       const struct vl_frame *frame)
{
	vl_vxlan_tx_send(to_vxlan(b)->port[port].tx, way, io, frame);
}

static int way_fd(struct vl_backend *b, unsigned int port, unsigned int way)
{
	return vl_vxlan_tx_fd(to_vxlan(b)->port[port].tx, way);
}

/* As poll() sees it: a socket is writable while less than half of its send
 * buffer is charged. Of the express way nothing is known for all sockets. A probe
 * has room while nothing is charged. */
static uint64_t vxlan_headroom(struct vl_backend *b, unsigned int port,
			       unsigned int way)
{
	int size = to_vxlan(b)->sndbuf[way];
	int used;

	if (way == 0 || ioctl(way_fd(b, port, way), SIOCOUTQ, &used) < 0)
		return 0;
	if (way >= b->ways)
		return used == 0;
	return used < size / 2 ? (uint64_t)size / 2 : 0;
}

static void vxlan_recv(struct vl_backend *b, unsigned int port,
		       struct vl_io *io, const struct vl_frame *frame)
{
	struct port *p = &to_vxlan(b)->port[port];

	if (p->rx)
		vl_vxlan_rx_recv(p->rx, io, frame);
	else
		vl_io_post(io, -EAGAIN, frame->tag);
}

static void vxlan_flush(struct vl_backend *b, unsigned int port,
			struct vl_io *io)
{
	struct port *p = &to_vxlan(b)->port[port];

	vl_vxlan_tx_flush(p->tx, io);
	if (p->rx)
		vl_vxlan_rx_flush(p->rx, io);
}

static void vxlan_complete(struct vl_backend *b, unsigned int port,
			   struct vl_io *io, const struct vl_io_event *ev,
			   vl_frame_event_fn *emit, void *ctx)
{
	struct port *p = &to_vxlan(b)->port[port];

	if ((uint32_t)ev->tag < VL_VXLAN_TX_TAGS)
		vl_vxlan_tx_complete(p->tx, ev, emit, ctx);
	else if (p->rx)
		vl_vxlan_rx_complete(p->rx, io, ev, emit, ctx);
}

/* What comes in is on one socket, and on none for the other ports: there it is one
 * that receives nothing. */
static int in_fd(const struct vxlan *v, const struct port *p)
{
	return p->rx ? v->rx_fd : p->fd[0];
}

static int vxlan_poll(struct vl_backend *b, unsigned int port, unsigned int way,
		      struct vl_io *io, uint32_t events, uint64_t tag)
{
	struct port *p = &to_vxlan(b)->port[port];
	int fd = way_fd(b, port, way);

	if (events & EPOLLIN)
		fd = in_fd(to_vxlan(b), p);
	else if (way == 0)
		p->polled = fd;
	return vl_io_poll(io, fd, events, false, tag);
}

static void vxlan_poll_cancel(struct vl_backend *b, unsigned int port,
			      unsigned int way, struct vl_io *io,
			      uint32_t events, uint64_t tag)
{
	const struct port *p = &to_vxlan(b)->port[port];
	int fd = way ? way_fd(b, port, way) : p->polled;

	if (events & EPOLLIN)
		fd = in_fd(to_vxlan(b), p);
	vl_io_poll_cancel(io, fd, tag);
}

static const struct vl_tunnel_counters *vxlan_tunnel(const struct vl_backend *b,
						     unsigned int port)
{
	return &((const struct vxlan *)(const void *)b)->port[port].counters;
}

static const char *const keys[] = { "vni",   "local",  "remote",   "port",
				    "mac",   "ageing", "zerocopy", "pending",
				    "lanes", "sndbuf", "fdb",      NULL };
static const char *const needs[] = { "vni", "local", NULL };

const struct vl_backend_ops vl_backend_vxlan = {
	.name = "vxlan",
	.help = "vxlan,vni=N,local=ADDRESS,remote=ADDRESS[,remote=...]|"
		"fdb=DEVICE[,port=4789][,mac=MAC@ADDRESS...][,ageing=SECONDS]"
		"[,zerocopy=auto|on|off][,pending=N][,lanes=N]"
		"[,sndbuf=auto|BYTES|unlimited]: a VXLAN tunnel endpoint",
	.keys = keys,
	.needs = needs,
	.open = vxlan_open,
	.close = vxlan_close,
	.set_offload = vxlan_set_offload,
	.set_active = vxlan_set_active,
	.set_mac = vxlan_set_mac,
	.event_fd = vxlan_event_fd,
	.event = vxlan_event,
	.port_start = vxlan_port_start,
	.port_stop = vxlan_port_stop,
	.send = vxlan_send,
	.headroom = vxlan_headroom,
	.recv = vxlan_recv,
	.flush = vxlan_flush,
	.complete = vxlan_complete,
	.poll = vxlan_poll,
	.poll_cancel = vxlan_poll_cancel,
	.tunnel = vxlan_tunnel,
};
