/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet backend: packet sockets on an interface of the host.
 *
 * Each way out of each port is a socket of its own, and so has a send buffer of
 * its own: what is sent stays charged to it until it has left the host. These
 * are bound to protocol 0, which is none: they receive nothing. One more socket
 * receives, for the first port. A virtio header is in front of each frame
 * (PACKET_VNET_HDR), so checksums and segmentation pass both ways.
 *
 * Frames of batches, and those received, are in rings that are shared with the
 * kernel: packet_tx.c, packet_rx.c.
 *
 * What is received is filtered in the kernel: frames for the driver's MAC
 * address and for groups, or everything where the interface is promiscuous;
 * nothing while the port is not in use. Frames that the host sends on the
 * interface, ours among them, are not received (PACKET_IGNORE_OUTGOING).
 *
 * The end of a send says where a packet is stuck. EAGAIN: the send buffer of
 * the socket is full, and it will be writable again. ENOBUFS: the queueing
 * discipline of the interface has dropped the packet.
 */
#include "backend/packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/link.h"
#include "backend/packet_rx.h"
#include "backend/packet_tx.h"
#include "base/barrier.h"
#include "base/iov.h"
#include "base/log.h"
#include "base/util.h"
#include "lane/probe.h"

/* Since Linux 6.4; Debian 12's headers are older. */
#ifndef PACKET_VNET_HDR_SZ
#define PACKET_VNET_HDR_SZ 24
#endif

#define PORTS_MAX  64
#define WAYS_MAX   16
#define KERNEL_HDR ((uint32_t)sizeof(struct virtio_net_hdr))

/* Send buffers as the kernel counts them, with the memory of its buffers; see
 * tap.c for the choice. Without an end: the kernel takes half of INT_MAX. */
#define NO_LIMIT     INT_MAX
#define SIDE_SNDBUF  32768
#define SHORT_SNDBUF 8192
/* The kernel makes it the least there is. headroom() does the rest. */
#define PROBE_SNDBUF 2
/* Some 1800 frames of 1514 bytes, or 40 of 64 KiB. */
#define RCVBUF       (4 << 20)
/* Messages of a submit: more than vl_io takes at once. */
#define MSGS         256u
#define MSG_IOV      40u

struct packet;

struct packet_port {
	const struct packet *k;
	int fd[WAYS_MAX + VL_PROBES_MAX];
	int file[WAYS_MAX + VL_PROBES_MAX]; /* numbers in its vl_io */
	int sndbuf[WAYS_MAX + VL_PROBES_MAX];
	int ring_fd, ring_file;
	struct vl_packet_tx *ring; /* NULL: express has none */
	struct msghdr msg[MSGS];
	struct iovec (*iov)[MSG_IOV]; /* NULL: not needed */
	unsigned int next_msg;
};

struct packet {
	struct vl_backend base;
	char ifname[IF_NAMESIZE];
	int ifindex;
	bool promisc;
	bool active; /* the port that receives */
	uint8_t mac[ETH_ALEN];
	bool sized_hdr; /* the kernel's header is as long as we want it */
	uint32_t hdr_len;
	struct vl_link_monitor *monitor; /* NULL: the link cannot be seen */
	int rx_fd;
	char *rx_map;
	struct vl_packet_rx *rx; /* of the first port */
	struct packet_port *port;
};

static struct packet *to_packet(struct vl_backend *b)
{
	return vl_container_of(b, struct packet, base);
}

static void packet_close(struct vl_backend *b)
{
	struct packet *k = to_packet(b);

	vl_link_close(k->monitor);
	vl_packet_rx_free(k->rx);
	if (k->rx_map)
		munmap(k->rx_map,
		       (size_t)VL_PACKET_RX_SLOTS * VL_PACKET_RX_SLOT);
	if (k->rx_fd >= 0)
		close(k->rx_fd);
	for (unsigned int p = 0; k->port && p < b->ports; p++) {
		struct packet_port *port = &k->port[p];

		for (unsigned int w = 0; w < b->ways + b->probes; w++)
			if (port->fd[w] >= 0)
				close(port->fd[w]);
		vl_packet_tx_free(port->ring);
		if (port->ring_fd >= 0)
			close(port->ring_fd);
		free(port->iov);
	}
	free(k->port);
	free(k);
}

static int set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno
								      : 0;
}

/* Beyond net.core.*mem_max where that is permitted, else up to it. */
static int set_buffer(int fd, int force, int name, int bytes)
{
	int err = set_option(fd, SOL_SOCKET, force, bytes);

	return err == -EPERM ? set_option(fd, SOL_SOCKET, name, bytes) : err;
}

/*
 * What the driver shall see of what the interface receives (classic BPF, see
 * packet(7)): nothing, or its own address and groups. Without promiscuity the
 * kernel still hands over all that the device lets in.
 */
static int set_filter(const struct packet *k)
{
	const uint8_t *m = k->mac;
	uint32_t head = (uint32_t)m[0] << 24 | (uint32_t)m[1] << 16 |
			(uint32_t)m[2] << 8 | m[3];
	struct sock_filter mine[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 4, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, head, 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)m[4] << 8 | m[5],
			 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_filter nothing[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog prog = { VL_ARRAY_SIZE(mine), mine };
	int err;

	if (!k->active)
		prog = (struct sock_fprog){ VL_ARRAY_SIZE(nothing), nothing };
	if (k->active && k->promisc) {
		err = set_option(k->rx_fd, SOL_SOCKET, SO_DETACH_FILTER, 0);
		return err == -ENOENT ? 0 : err;
	}
	return setsockopt(k->rx_fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
			  sizeof(prog)) < 0
		       ? -errno
		       : 0;
}

/* Tells the interface what to let in, or not to any more. */
static int set_membership(const struct packet *k, int option, int type)
{
	struct packet_mreq m = {
		.mr_ifindex = k->ifindex,
		.mr_type = (unsigned short)type,
		.mr_alen = type == PACKET_MR_UNICAST ? ETH_ALEN : 0,
	};

	memcpy(m.mr_address, k->mac, ETH_ALEN);
	return setsockopt(k->rx_fd, SOL_PACKET, option, &m, sizeof(m)) < 0
		       ? -errno
		       : 0;
}

static int let_in(const struct packet *k)
{
	int err;

	if (k->promisc)
		return set_membership(k, PACKET_ADD_MEMBERSHIP,
				      PACKET_MR_PROMISC);
	err = set_membership(k, PACKET_ADD_MEMBERSHIP, PACKET_MR_UNICAST);
	if (err)
		return err;
	return set_membership(k, PACKET_ADD_MEMBERSHIP, PACKET_MR_ALLMULTI);
}

/* The interface by its name; it has to be Ethernet. */
static int find_interface(struct packet *k, const char *name, char *err,
			  size_t size)
{
	struct ifreq ifr = { 0 };
	int s;

	if (!name || !name[0] || strlen(name) >= sizeof(k->ifname))
		return vl_backend_fail(
			err, size, -EINVAL,
			"packet: give ifname=INTERFACE, of 1 to %d "
			"characters",
			IF_NAMESIZE - 1);
	(void)snprintf(k->ifname, sizeof(k->ifname), "%s", name);
	k->ifindex = (int)if_nametoindex(name);
	if (!k->ifindex)
		return vl_backend_fail(
			err, size, -ENODEV,
			"%s: no such interface here; \"ip link\" shows "
			"those of this network namespace",
			name);
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (s >= 0 && ioctl(s, SIOCGIFHWADDR, &ifr) == 0 &&
	    ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
		close(s);
		return vl_backend_fail(
			err, size, -EINVAL,
			"%s: not an Ethernet interface; a guest's frames "
			"cannot go there",
			name);
	}
	if (s >= 0)
		close(s);
	return 0;
}

static int set_hdr(const struct packet *k, int fd)
{
	return k->sized_hdr ? set_option(fd, SOL_PACKET, PACKET_VNET_HDR_SZ,
					 (int)k->hdr_len)
			    : set_option(fd, SOL_PACKET, PACKET_VNET_HDR, 1);
}

/* Protocol 0: it only sends. */
static int bind_to(const struct packet *k, int fd, uint16_t protocol)
{
	const struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = k->ifindex,
	};

	return bind(fd, (const struct sockaddr *)(const void *)&a, sizeof(a)) <
			       0
		       ? -errno
		       : 0;
}

/* A socket that only sends, on the interface. */
static int open_socket(struct packet *k)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	err = set_hdr(k, fd);
	if (err == -ENOPROTOOPT && k->sized_hdr) {
		k->sized_hdr = false;
		err = set_hdr(k, fd);
	}
	if (!err)
		err = bind_to(k, fd, 0);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* Where express has no limit its frames may go out by a ring, which has a socket
 * of its own; without one they do by system calls. */
static void open_ring(const struct packet *k, struct packet_port *port)
{
	int fd;

	if (port->sndbuf[0] < NO_LIMIT - 1)
		return;
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	port->ring_fd = fd;
	if (set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, NO_LIMIT) ||
	    vl_packet_tx_new(fd, &port->ring))
		return;
	if (bind_to(k, fd, 0)) {
		vl_packet_tx_free(port->ring);
		port->ring = NULL;
	}
}

static int explain_socket(char *err, size_t size, const char *ifname, int code)
{
	switch (-code) {
	case EPERM:
		return vl_backend_fail(
			err, size, code,
			"%s: not permitted: a packet socket needs "
			"CAP_NET_RAW; start virtlane as root, or with "
			"that capability",
			ifname);
	case EAFNOSUPPORT:
		return vl_backend_fail(
			err, size, code,
			"%s: this kernel has no packet sockets; load the "
			"module af_packet",
			ifname);
	case EMFILE:
		return vl_backend_fail(
			err, size, code,
			"%s: too many open files; give a smaller lanes= "
			"or raise the limit (ulimit -n)",
			ifname);
	default:
		return vl_backend_fail(err, size, code,
				       "%s: cannot open a packet socket: %s",
				       ifname, strerror(-code));
	}
}

/* The send buffer of way @way where @limit is that of express; the kernel
 * doubles what it is given. */
static int set_sndbuf(struct packet *k, struct packet_port *port,
		      unsigned int way, int limit)
{
	const struct vl_backend *b = &k->base;
	socklen_t len = sizeof(port->sndbuf[way]);
	int bytes = limit, err;

	if (way >= b->ways)
		bytes = PROBE_SNDBUF;
	else if (way >= b->ways - b->short_ways)
		bytes = vl_min_int(limit, SHORT_SNDBUF);
	else if (way)
		bytes = vl_min_int(limit, SIDE_SNDBUF);
	err = set_buffer(port->fd[way], SO_SNDBUFFORCE, SO_SNDBUF, bytes / 2);
	if (!err && getsockopt(port->fd[way], SOL_SOCKET, SO_SNDBUF,
			       &port->sndbuf[way], &len) < 0)
		err = -errno;
	return err;
}

static int open_port(struct packet *k, struct packet_port *port,
		     const struct vl_backend_params *p, char *err, size_t size)
{
	const struct vl_backend *b = &k->base;
	int limit =
		p->sndbuf && p->sndbuf < NO_LIMIT ? (int)p->sndbuf : NO_LIMIT;
	int code;

	port->k = k;
	port->ring_fd = -1;
	for (unsigned int w = 0; w < VL_ARRAY_SIZE(port->fd); w++)
		port->fd[w] = -1;
	for (unsigned int w = 0; w < b->ways + b->probes; w++) {
		code = open_socket(k);
		if (code < 0)
			return explain_socket(err, size, k->ifname, code);
		port->fd[w] = code;
		code = set_sndbuf(k, port, w, limit);
		if (code)
			return vl_backend_fail(err, size, code,
					       "%s: sndbuf=%d: %s", k->ifname,
					       limit, strerror(-code));
	}
	open_ring(k, port);
	if (k->sized_hdr)
		return 0;
	port->iov = calloc(MSGS, sizeof(port->iov[0]));
	return port->iov ? 0
			 : vl_backend_fail(err, size, -ENOMEM,
					   "packet: no memory");
}

static int open_ports(struct packet *k, const struct vl_backend_params *p,
		      char *err, size_t size)
{
	int code;

	k->port = calloc(p->queue_pairs, sizeof(k->port[0]));
	if (!k->port)
		return vl_backend_fail(err, size, -ENOMEM, "packet: no memory");
	for (unsigned int i = 0; i < p->queue_pairs; i++) {
		k->base.ports = i + 1;
		code = open_port(k, &k->port[i], p, err, size);
		if (code)
			return code;
	}
	return 0;
}

/* The socket that receives: bound when all is set up, so that no frame comes
 * before. */
static int open_reception(struct packet *k, char *err, size_t size)
{
	int code = 0;

	k->rx_fd =
		socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (k->rx_fd < 0)
		return explain_socket(err, size, k->ifname, -errno);
	k->rx_map = vl_packet_rx_map(k->rx_fd);
	if (!k->rx_map)
		return vl_backend_fail(
			err, size, -errno,
			"%s: cannot make a ring for what it receives: %s",
			k->ifname, strerror(errno));
	k->rx = vl_packet_rx_new(k->rx_map, k->rx_fd);
	if (!k->rx)
		return vl_backend_fail(err, size, -ENOMEM, "packet: no memory");
	code = set_filter(k);
	if (!code)
		code = set_option(k->rx_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING,
				  1);
	if (!code)
		code = set_buffer(k->rx_fd, SO_RCVBUFFORCE, SO_RCVBUF, RCVBUF);
	if (!code)
		code = bind_to(k, k->rx_fd, ETH_P_ALL);
	if (!code)
		code = let_in(k);
	return code ? vl_backend_fail(err, size, code, "%s: cannot receive: %s",
				      k->ifname, strerror(-code))
		    : 0;
}

static void see_link(struct packet *k)
{
	/* The socket is in our network namespace, as everything is. */
	int code = vl_link_open(-1, k->ifname, &k->monitor);

	if (code)
		vl_log(VL_LOG_WARNING, k->ifname,
		       "its link state cannot be seen (%s) and counts as up",
		       strerror(-code));
	else
		vl_link_update(k->monitor, &k->base.link, &k->base.mtu);
	k->base.mtu_offer = vl_min_u32(k->base.mtu, UINT16_MAX);
	if (k->base.link == VL_LINK_DOWN)
		vl_log(VL_LOG_WARNING, k->ifname,
		       "link is down; set it up: ip link set %s up", k->ifname);
}

static void describe(struct packet *k, const struct vl_backend_params *p)
{
	struct vl_backend *b = &k->base;

	b->ops = &vl_backend_packet;
	b->link = VL_LINK_UNKNOWN;
	b->ways = vl_min_u32(vl_max_u32(p->lanes, 1), WAYS_MAX);
	b->probes = b->ways > 1 ? VL_PROBES_MAX : 0;
	b->short_ways = b->ways / 4;
	k->rx_fd = -1;
	k->promisc = p->promisc;
	k->sized_hdr = true;
	k->hdr_len = KERNEL_HDR;
	memcpy(k->mac, p->mac, sizeof(k->mac));
}

static int packet_open(const struct vl_backend_params *params,
		       struct vl_backend **out, char *err, size_t size)
{
	struct packet *k;
	int code;

	if (params->queue_pairs < 1 || params->queue_pairs > PORTS_MAX)
		return vl_backend_fail(err, size, -EINVAL,
				       "packet: 1 to %d queue pairs",
				       PORTS_MAX);
	k = calloc(1, sizeof(*k));
	if (!k)
		return vl_backend_fail(err, size, -ENOMEM, "packet: no memory");
	describe(k, params);
	code = find_interface(k, params->name, err, size);
	if (!code)
		code = open_ports(k, params, err, size);
	if (!code)
		code = open_reception(k, err, size);
	if (code) {
		packet_close(&k->base);
		return code;
	}
	(void)snprintf(k->base.label, sizeof(k->base.label), "%s", k->ifname);
	/* The kernel segments and completes what the device cannot. USO came
	 * to it (Linux 6.2) shortly before headers of any length. */
	k->base.caps = (struct vl_backend_caps){
		.csum = true,
		.tso = true,
		.tso_ecn = true,
		.uso = k->sized_hdr,
	};
	k->base.limited = k->port[0].sndbuf[0] < NO_LIMIT - 1;
	/* The one, and that of the ring. */
	k->base.ops_per_frame = k->port[0].ring ? 1 : 0;
	see_link(k);
	*out = &k->base;
	return 0;
}

/* Each socket has a header length of its own. */
static int set_hdr_len(struct packet *k, uint32_t hdr_len)
{
	const struct vl_backend *b = &k->base;
	int err = 0;

	if (!k->sized_hdr || hdr_len == k->hdr_len)
		return 0;
	for (unsigned int p = 0; p < b->ports; p++)
		for (unsigned int w = 0; w < b->ways + b->probes && !err; w++)
			err = set_option(k->port[p].fd[w], SOL_PACKET,
					 PACKET_VNET_HDR_SZ, (int)hdr_len);
	return err;
}

static int packet_set_offload(struct vl_backend *b, const struct vl_offload *o)
{
	struct packet *k = to_packet(b);
	int err = set_hdr_len(k, o->hdr_len);

	if (err)
		return err;
	k->hdr_len = o->hdr_len;
	vl_packet_rx_set_offload(k->rx, o);
	return 0;
}

static int packet_set_active(struct vl_backend *b, unsigned int port,
			     bool active)
{
	struct packet *k = to_packet(b);
	int err;

	if (port)
		return 0;
	k->active = active;
	err = set_filter(k);
	/* What came before is for nobody. */
	if (!active)
		vl_packet_rx_forget(k->rx);
	return err;
}

static int packet_set_mac(struct vl_backend *b, const uint8_t mac[6])
{
	struct packet *k = to_packet(b);
	struct packet old = *k;
	int err = 0;

	if (!memcmp(k->mac, mac, sizeof(k->mac)))
		return 0;
	memcpy(k->mac, mac, sizeof(k->mac));
	if (k->promisc)
		return 0;
	err = set_membership(k, PACKET_ADD_MEMBERSHIP, PACKET_MR_UNICAST);
	if (!err)
		err = set_filter(k);
	if (err)
		memcpy(k->mac, old.mac, sizeof(k->mac));
	else
		(void)set_membership(&old, PACKET_DROP_MEMBERSHIP,
				     PACKET_MR_UNICAST);
	return err;
}

static int packet_event_fd(const struct vl_backend *b)
{
	const struct packet *k = (const struct packet *)(const void *)b;

	return k->monitor ? vl_link_fd(k->monitor) : -1;
}

static void packet_event(struct vl_backend *b)
{
	struct packet *k = to_packet(b);

	if (k->monitor)
		vl_link_update(k->monitor, &b->link, &b->mtu);
}

/* The frame without the part of its header that the kernel does not know.
 * Returns the number of entries in @out, or -errno. */
static int without_gap(const struct packet *k, const struct vl_frame *f,
		       struct iovec *out)
{
	const size_t len = vl_iov_len(f->iov, f->n);
	int head = vl_iov_slice(f->iov, f->n, 0, KERNEL_HDR, out, 2);
	int rest;

	if (head < 0)
		return head;
	rest = vl_iov_slice(f->iov, f->n, k->hdr_len, len - k->hdr_len,
			    out + head, MSG_IOV - (size_t)head);
	return rest < 0 ? rest : head + rest;
}

static void send_now(void *ctx, unsigned int way, struct vl_io *io,
		     const struct vl_frame *f)
{
	struct packet_port *p = ctx;
	const struct packet *k = p->k;
	unsigned int at = p->next_msg++ % MSGS;
	struct msghdr *m = &p->msg[at];

	/* The kernel only reads it. */
	m->msg_iov = (struct iovec *)(uintptr_t)f->iov;
	m->msg_iovlen = f->n;
	if (!k->sized_hdr && k->hdr_len > KERNEL_HDR) {
		int n = without_gap(k, f, p->iov[at]);

		if (n < 0) {
			vl_io_post(io, n, f->tag);
			return;
		}
		m->msg_iov = p->iov[at];
		m->msg_iovlen = (size_t)n;
	}
	vl_io_sendmsg(io, p->file[way], m, f->linked ? VL_IO_LINKED : 0,
		      f->tag);
}

static int packet_port_start(struct vl_backend *b, unsigned int port,
			     struct vl_io *io, uint64_t tag)
{
	struct packet_port *p = &to_packet(b)->port[port];

	for (unsigned int w = 0; w < b->ways + b->probes; w++) {
		p->file[w] = vl_io_file_add(io, p->fd[w]);
		if (p->file[w] < 0)
			return p->file[w];
	}
	if (p->ring) {
		p->ring_file = vl_io_file_add(io, p->ring_fd);
		if (p->ring_file < 0)
			return p->ring_file;
		vl_packet_tx_start(p->ring, p->ring_file, tag, send_now, p);
	}
	return 0;
}

static void packet_port_stop(struct vl_backend *b, unsigned int port,
			     struct vl_io *io)
{
	struct packet_port *p = &to_packet(b)->port[port];

	for (unsigned int w = 0; w < b->ways + b->probes; w++)
		vl_io_file_remove(io, p->file[w]);
	if (p->ring)
		vl_io_file_remove(io, p->ring_file);
}

static void packet_send(struct vl_backend *b, unsigned int port,
			unsigned int way, struct vl_io *io,
			const struct vl_frame *f)
{
	struct packet *k = to_packet(b);
	struct packet_port *p = &k->port[port];
	uint32_t mtu = vl_read_once(&b->mtu);

	if (!p->ring || !vl_packet_tx_take(p->ring, io, way, f, k->hdr_len,
					   mtu ? mtu + ETH_HLEN : 0))
		send_now(p, way, io, f);
}

static void packet_flush(struct vl_backend *b, unsigned int port,
			 struct vl_io *io)
{
	struct packet *k = to_packet(b);

	if (k->port[port].ring)
		vl_packet_tx_flush(k->port[port].ring, io);
	if (!port)
		vl_packet_rx_flush(k->rx);
}

/* As poll(2) has it: writable while less than half is charged. Of a probe:
 * while nothing is. */
static uint64_t packet_headroom(struct vl_backend *b, unsigned int port,
				unsigned int way)
{
	const struct packet_port *p = &to_packet(b)->port[port];
	int charged;

	if (ioctl(p->fd[way], SIOCOUTQ, &charged) < 0)
		return 0;
	if (way >= b->ways)
		return charged ? 0 : 1;
	return charged < p->sndbuf[way] / 2
		       ? (uint64_t)(p->sndbuf[way] - charged)
		       : 0;
}

static void packet_recv(struct vl_backend *b, unsigned int port,
			struct vl_io *io, const struct vl_frame *f)
{
	if (port)
		vl_io_post(io, -EAGAIN, f->tag);
	else
		vl_packet_rx_recv(to_packet(b)->rx, io, f);
}

static void packet_complete(struct vl_backend *b, unsigned int port,
			    struct vl_io *io, const struct vl_io_event *ev,
			    vl_frame_event_fn *emit, void *ctx)
{
	vl_packet_tx_complete(to_packet(b)->port[port].ring, io, ev->res, emit,
			      ctx);
}

/* Nobody sends to the first socket of another port than the first. */
static int poll_fd(struct vl_backend *b, unsigned int port, unsigned int way,
		   uint32_t events)
{
	const struct packet *k = to_packet(b);

	return events & EPOLLIN && !port ? k->rx_fd : k->port[port].fd[way];
}

static int packet_poll(struct vl_backend *b, unsigned int port,
		       unsigned int way, struct vl_io *io, uint32_t events,
		       uint64_t tag)
{
	return vl_io_poll(io, poll_fd(b, port, way, events), events, false,
			  tag);
}

static void packet_poll_cancel(struct vl_backend *b, unsigned int port,
			       unsigned int way, struct vl_io *io,
			       uint32_t events, uint64_t tag)
{
	vl_io_poll_cancel(io, poll_fd(b, port, way, events), tag);
}

static const char *const keys[] = { "ifname", "lanes", "sndbuf", "promisc",
				    NULL };
static const char *const needs[] = { "ifname", NULL };

const struct vl_backend_ops vl_backend_packet = {
	.name = "packet",
	.help = "packet,ifname=INTERFACE[,lanes=N][,sndbuf=auto|BYTES|"
		"unlimited][,promisc=on|off]: any Ethernet interface of the "
		"host",
	.keys = keys,
	.needs = needs,
	.open = packet_open,
	.close = packet_close,
	.set_offload = packet_set_offload,
	.set_active = packet_set_active,
	.set_mac = packet_set_mac,
	.event_fd = packet_event_fd,
	.event = packet_event,
	.port_start = packet_port_start,
	.port_stop = packet_port_stop,
	.send = packet_send,
	.headroom = packet_headroom,
	.flush = packet_flush,
	.recv = packet_recv,
	.complete = packet_complete,
	.poll = packet_poll,
	.poll_cancel = packet_poll_cancel,
};
