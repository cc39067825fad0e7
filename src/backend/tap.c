/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tap backend.
 *
 * One queue descriptor per port, non-blocking, with the virtio-net header in
 * front of each frame (IFF_VNET_HDR), whose length follows the guest's so
 * that frames are read straight into guest buffers. Offloads, header length
 * and send buffer are properties of the whole device and are set through
 * queue 0, which always stays attached; the other queues are detached
 * (TUNSETQUEUE) while their queue pair is not in use, or the kernel would
 * steer frames to them that nobody reads.
 */
#include "backend/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/link.h"
#include "base/log.h"
#include "base/util.h"
#include "lane/probe.h"

#define PORTS_MAX  64
#define WAYS_MAX   16
/* Queues of one tap (MAX_TAP_QUEUES of the kernel). */
#define QUEUES_MAX 256

/* Send buffer of the express queues with sndbuf=auto and lanes, but no probes.
 * While half of it is free a batch of small frames needs no links
 * (vl_lane_begin()). */
#define AUTO_SNDBUF  524288
/* Of one for the slowest destinations: three frames, one is left when it is
 * writable again. */
#define SHORT_SNDBUF 8192
/* Of a probe: with one packet it is full, and it is writable without. */
#define PROBE_SNDBUF 4
/* At most this for a side lane: some 10 ms at 10 Mbit/s. A faster one is
 * refilled when half of it has drained. */
#define SIDE_SNDBUF  32768
#define TUN_PATH     "/dev/net/tun"

/* A process that was killed holds its queues a moment longer than it is seen:
 * the kernel ends its io_uring in the background. */
#define BUSY_TRIES    50
#define BUSY_PAUSE_NS 20000000L

/* Since Linux 6.2; Debian 12's headers are older. */
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#define TAP_FLAGS (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR)
#define TUN_TSO   (TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6)

struct tap {
	struct vl_backend base;
	char ifname[IFNAMSIZ];
	/* [port][way]; all ways but the first are detached for good: they take
	 * frames to send and get none. */
	int fd[PORTS_MAX][WAYS_MAX + VL_PROBES_MAX];
	/* Numbers in the port's vl_io. */
	int file[PORTS_MAX][WAYS_MAX + VL_PROBES_MAX];
	int opened[QUEUES_MAX]; /* all of them, in the order of opening */
	unsigned int n_opened;
	bool multi_queue;
	int sndbuf;
	struct vl_link_monitor *monitor; /* NULL: the link cannot be seen */
};

static struct tap *to_tap(struct vl_backend *b)
{
	return vl_container_of(b, struct tap, base);
}

static void tap_close(struct vl_backend *b)
{
	struct tap *t = to_tap(b);

	vl_link_close(t->monitor);
	for (unsigned int i = 0; i < t->n_opened; i++)
		close(t->opened[i]);
	free(t);
}

/* A sentence for a TUNSETIFF that failed with @code. */
static int explain_setiff(char *err, size_t size, const char *ifname,
			  unsigned int queues, int code)
{
	const char *mq = queues > 1 ? " multi_queue" : "";

	switch (-code) {
	case EPERM:
		return vl_backend_fail(
			err, size, code,
			"%s: not permitted: create it first with \"ip "
			"tuntap add dev %s mode tap user USER%s\", or give "
			"virtlane CAP_NET_ADMIN",
			ifname, ifname, mq);
	case EBUSY:
		return vl_backend_fail(
			err, size, code,
			"%s: in use: another program has it open; end "
			"that program or name another tap",
			ifname);
	case EINVAL:
		return vl_backend_fail(
			err, size, code,
			"%s: exists, but is not a tap of the kind needed: "
			"create it with \"ip tuntap add dev %s mode tap%s\"",
			ifname, ifname, mq);
	default:
		return vl_backend_fail(err, size, code, "%s: cannot open: %s",
				       ifname, strerror(-code));
	}
}

static void name_ifreq(struct ifreq *ifr, const char *ifname)
{
	(void)snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%.*s",
		       IFNAMSIZ - 1, ifname);
}

static int open_queue(const char *ifname, short flags)
{
	struct ifreq ifr = { .ifr_flags = flags };
	int fd = open(TUN_PATH, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	name_ifreq(&ifr, ifname);
	if (ioctl(fd, TUNSETIFF, &ifr) < 0) {
		int code = -errno;

		close(fd);
		return code;
	}
	return fd;
}

static bool interface_exists(const char *ifname)
{
	struct ifreq ifr = { 0 };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool exists;

	if (s < 0)
		return true;
	name_ifreq(&ifr, ifname);
	exists = ioctl(s, SIOCGIFINDEX, &ifr) == 0;
	close(s);
	return exists;
}

/* The first queue, which a predecessor may not have let go of yet. *existed:
 * whether the interface was there before. */
static int open_first(const char *ifname, short flags, bool *existed)
{
	const struct timespec pause = { .tv_nsec = BUSY_PAUSE_NS };
	int fd = -EBUSY;

	for (int i = 0; i < BUSY_TRIES && fd == -EBUSY; i++) {
		if (i)
			(void)nanosleep(&pause, NULL);
		*existed = interface_exists(ifname);
		fd = open_queue(ifname, flags);
	}
	return fd;
}

/* Brings an interface up that we just made; nobody else may do it for us. */
static void configure_new(const struct tap *t, uint32_t mtu)
{
	struct ifreq ifr = { 0 };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (s < 0)
		return;
	name_ifreq(&ifr, t->ifname);
	ifr.ifr_mtu = (int)mtu;
	if (mtu && ioctl(s, SIOCSIFMTU, &ifr) < 0)
		vl_log(VL_LOG_WARNING, t->ifname, "cannot set MTU %u: %s", mtu,
		       strerror(errno));
	if (ioctl(s, SIOCGIFFLAGS, &ifr) == 0) {
		ifr.ifr_flags |= IFF_UP;
		if (ioctl(s, SIOCSIFFLAGS, &ifr) < 0)
			vl_log(VL_LOG_WARNING, t->ifname,
			       "created, but cannot be set up: %s",
			       strerror(errno));
	}
	close(s);
}

/* An express queue. When there is to be only one, an existing tap may be of
 * either kind, and decides. */
static int open_express(struct tap *t, unsigned int i, bool only, bool *existed)
{
	short flags = TAP_FLAGS | (t->multi_queue ? IFF_MULTI_QUEUE : 0);
	int fd = i ? open_queue(t->ifname, flags)
		   : open_first(t->ifname, flags, existed);

	if (fd != -EINVAL || !only)
		return fd;
	t->multi_queue = !t->multi_queue;
	return open_first(t->ifname, flags ^ IFF_MULTI_QUEUE, existed);
}

/* Of @queues for a port those that are probes: two, but not more than half. */
static unsigned int probes_of(unsigned int queues)
{
	return queues < 3 ? 0 : vl_min_u32(queues - 2, VL_PROBES_MAX);
}

/* As many side lanes and probes for each port as the tap allows, up to what is
 * wanted. */
static void open_side_lanes(struct tap *t, const struct vl_backend_params *p)
{
	unsigned int queues = 1, lanes;
	int code = t->multi_queue ? 0 : -EINVAL;

	if (t->multi_queue && p->lanes > 1)
		queues = p->lanes + VL_PROBES_MAX;
	while (t->n_opened < p->queue_pairs * queues && !code) {
		int fd = t->n_opened < QUEUES_MAX
				 ? open_queue(t->ifname,
					      TAP_FLAGS | IFF_MULTI_QUEUE)
				 : -E2BIG;

		if (fd < 0)
			code = fd;
		else
			t->opened[t->n_opened++] = fd;
	}
	while (t->n_opened % p->queue_pairs)
		close(t->opened[--t->n_opened]);
	queues = t->n_opened / p->queue_pairs;
	lanes = queues - probes_of(queues);
	if (lanes < p->lanes)
		vl_log(VL_LOG_WARNING, t->ifname,
		       "%u of %u lanes: %s; a slow destination may make "
		       "others wait",
		       lanes, p->lanes,
		       t->multi_queue ? strerror(-code)
				      : "the tap has one queue only (create it "
					"with multi_queue)");
}

static int open_by_name(struct tap *t, const struct vl_backend_params *p,
			char *err, size_t size)
{
	bool existed = true;

	if (!p->name[0] || strlen(p->name) >= IFNAMSIZ)
		return vl_backend_fail(err, size, -EINVAL,
				       "name=%s: an interface name has 1 to %d "
				       "characters",
				       p->name, IFNAMSIZ - 1);
	(void)snprintf(t->ifname, sizeof(t->ifname), "%s", p->name);
	t->multi_queue = p->queue_pairs > 1 || p->lanes > 1;
	for (unsigned int i = 0; i < p->queue_pairs; i++) {
		int fd = open_express(t, i, p->queue_pairs == 1, &existed);

		if (fd == -ENOENT || fd == -EACCES)
			return vl_backend_fail(err, size, fd,
					       TUN_PATH
					       ": %s: load the tun module, or "
					       "give this user access to it",
					       strerror(-fd));
		if (fd < 0)
			return explain_setiff(err, size, t->ifname,
					      p->queue_pairs, fd);
		t->opened[t->n_opened++] = fd;
	}
	if (!existed) {
		vl_log(VL_LOG_INFO, t->ifname,
		       "did not exist, made it; it goes away when virtlane "
		       "ends");
		configure_new(t, p->mtu);
	}
	open_side_lanes(t, p);
	return 0;
}

static int adopt_fd(struct tap *t, int fd, char *err, size_t size)
{
	struct ifreq ifr = { 0 };
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || ioctl(fd, TUNGETIFF, &ifr) < 0)
		return vl_backend_fail(
			err, size, -EBADF,
			"fds: %d is not an open tap descriptor: open " TUN_PATH
			" and call TUNSETIFF before starting "
			"virtlane",
			fd);
	if ((ifr.ifr_flags & (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR)) !=
	    (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
		return vl_backend_fail(
			err, size, -EINVAL,
			"fds: %d (%.15s) must be opened with IFF_TAP, "
			"IFF_NO_PI and IFF_VNET_HDR",
			fd, ifr.ifr_name);
	if (t->n_opened && strncmp(t->ifname, ifr.ifr_name, IFNAMSIZ) != 0)
		return vl_backend_fail(
			err, size, -EINVAL,
			"fds: %d belongs to %.15s, the one before to %s: "
			"all must be queues of one tap",
			fd, ifr.ifr_name, t->ifname);
	(void)memcpy(t->ifname, ifr.ifr_name, IFNAMSIZ - 1);
	t->multi_queue = ifr.ifr_flags & IFF_MULTI_QUEUE;
	/* A blocking queue would block the worker for ever. */
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return vl_backend_fail(err, size, -errno, "fds: %d: %s", fd,
				       strerror(errno));
	t->opened[t->n_opened++] = fd;
	return 0;
}

static int open_by_fds(struct tap *t, const struct vl_backend_params *p,
		       char *err, size_t size)
{
	const char *s = p->fds;
	int code;

	while (*s) {
		char *end;
		long fd = strtol(s, &end, 10);

		if (end == s || fd < 0 || fd > INT_MAX || (*end && *end != ':'))
			return vl_backend_fail(
				err, size, -EINVAL,
				"fds=%s: give descriptor numbers with "
				"colons between them, as in fds=7:8",
				p->fds);
		if (t->n_opened == QUEUES_MAX)
			return vl_backend_fail(err, size, -E2BIG,
					       "fds: more than %d descriptors",
					       QUEUES_MAX);
		code = adopt_fd(t, (int)fd, err, size);
		if (code)
			return code;
		s = *end ? end + 1 : end;
	}
	if (t->n_opened && t->n_opened % p->queue_pairs == 0 &&
	    t->n_opened / p->queue_pairs <= WAYS_MAX)
		return 0;
	return vl_backend_fail(
		err, size, -EINVAL,
		"fds=%s: one descriptor is needed for each of the %u "
		"queue pairs (--queue-pairs), or one for each lane of "
		"each",
		p->fds, p->queue_pairs);
}

/* Gives each port its ways: first all express queues, then the others, the
 * probes last. */
static void distribute(struct tap *t, const struct vl_backend_params *p)
{
	t->base.ports = p->queue_pairs;
	t->base.ways = t->n_opened / p->queue_pairs;
	t->base.probes = probes_of(t->base.ways);
	t->base.ways -= t->base.probes;
	t->base.short_ways = t->base.ways / 4;
	for (unsigned int i = 0; i < t->n_opened; i++)
		t->fd[i % p->queue_pairs][i / p->queue_pairs] = t->opened[i];
}

/* What this kernel's taps can do is found by asking for it. */
static void probe_caps(struct tap *t)
{
	struct vl_backend_caps *c = &t->base.caps;
	int fd = t->fd[0][0];

	c->csum = ioctl(fd, TUNSETOFFLOAD, (unsigned long)TUN_F_CSUM) == 0;
	c->tso = ioctl(fd, TUNSETOFFLOAD, (unsigned long)TUN_TSO) == 0;
	c->tso_ecn = ioctl(fd, TUNSETOFFLOAD,
			   (unsigned long)(TUN_TSO | TUN_F_TSO_ECN)) == 0;
	c->uso = ioctl(fd, TUNSETOFFLOAD,
		       (unsigned long)(TUN_TSO | TUN_F_USO4 | TUN_F_USO6)) == 0;
	(void)ioctl(fd, TUNSETOFFLOAD, 0UL);
}

/* The send buffer of way @way, where @value is that of the express queues. */
static int way_sndbuf(const struct vl_backend *b, unsigned int way, int value)
{
	if (way == 0)
		return value;
	if (way >= b->ways)
		return PROBE_SNDBUF;
	return vl_min_int(value, way >= b->ways - b->short_ways ? SHORT_SNDBUF
								: SIDE_SNDBUF);
}

static int set_attached(int fd, bool attached)
{
	struct ifreq ifr = {
		.ifr_flags = attached ? IFF_ATTACH_QUEUE : IFF_DETACH_QUEUE,
	};

	return ioctl(fd, TUNSETQUEUE, &ifr) < 0 ? -errno : 0;
}

/* One way other than express: attached only to be given its send buffer. */
static int arrange_way(struct tap *t, unsigned int port, unsigned int way,
		       int value)
{
	int fd = t->fd[port][way];
	int bytes = way_sndbuf(&t->base, way, value);
	int code = set_attached(fd, true);

	if (code)
		return code;
	if (ioctl(fd, TUNSETSNDBUF, &bytes) < 0)
		return -errno;
	return set_attached(fd, false);
}

/*
 * Gives side lanes and probes their send buffers and leaves only the express
 * queues attached. TUNSETSNDBUF is for all attached queues; a detached one keeps
 * what it has.
 *
 * A queue gets its number, that of the attached ones, when it is attached, and
 * keeps it too. Receive packet steering and the choice of a transmit queue go by
 * the number. So all queues of a port are given the same, or their frames could
 * overtake each other.
 */
static int arrange(struct tap *t, int value)
{
	unsigned int ways = t->base.ways + t->base.probes;
	int code = 0;

	for (unsigned int i = 0; ways > 1 && !code && i < t->n_opened; i++)
		code = set_attached(t->opened[i], false);
	for (unsigned int p = 0; ways > 1 && p < t->base.ports; p++) {
		for (unsigned int w = 1; w < ways && !code; w++)
			code = arrange_way(t, p, w, value);
		if (!code)
			code = set_attached(t->fd[p][0], true);
	}
	return code;
}

static int set_sndbuf(struct tap *t, const struct vl_backend_params *p,
		      char *err, size_t size)
{
	unsigned int ways = t->base.ways;
	int value = INT_MAX, code;

	if (p->sndbuf_auto && ways > 1 && !t->base.probes)
		value = AUTO_SNDBUF;
	else if (p->sndbuf && p->sndbuf < INT_MAX)
		value = (int)p->sndbuf;
	code = arrange(t, value);
	if (code)
		return vl_backend_fail(
			err, size, code,
			"%s: cannot make lanes of its queues: %s; give "
			"lanes=1",
			t->ifname, strerror(-code));
	/* Whoever opened the queues may have chosen a size already. */
	if ((p->sndbuf || !p->fds || ways > 1) &&
	    ioctl(t->fd[0][0], TUNSETSNDBUF, &value) < 0)
		return vl_backend_fail(err, size, -errno, "%s: sndbuf=%d: %s",
				       t->ifname, value, strerror(errno));
	if (ioctl(t->fd[0][0], TUNGETSNDBUF, &t->sndbuf) < 0)
		t->sndbuf = value;
	t->base.limited = t->sndbuf < INT_MAX;
	return 0;
}

static void update_link(struct tap *t)
{
	struct ifreq ifr = { 0 };

	vl_link_update(t->monitor, &t->base.link, &t->base.mtu);
	if (t->base.link == VL_LINK_GONE &&
	    ioctl(t->fd[0][0], TUNGETIFF, &ifr) == 0)
		t->base.link = VL_LINK_UNKNOWN;
}

static int tap_open(const struct vl_backend_params *params,
		    struct vl_backend **out, char *err, size_t size)
{
	struct tap *t;
	int code;

	if (!params->name == !params->fds)
		return vl_backend_fail(
			err, size, -EINVAL,
			"tap: give either name=INTERFACE or fds=A:B");
	if (params->queue_pairs < 1 || params->queue_pairs > PORTS_MAX)
		return vl_backend_fail(err, size, -EINVAL,
				       "tap: 1 to %d queue pairs", PORTS_MAX);
	t = calloc(1, sizeof(*t));
	if (!t)
		return vl_backend_fail(err, size, -ENOMEM, "tap: no memory");
	t->base.ops = &vl_backend_tap;
	t->base.link = VL_LINK_UNKNOWN;

	code = params->fds ? open_by_fds(t, params, err, size)
			   : open_by_name(t, params, err, size);
	if (!code) {
		distribute(t, params);
		code = set_sndbuf(t, params, err, size);
	}
	if (code) {
		tap_close(&t->base);
		return code;
	}
	(void)snprintf(t->base.label, sizeof(t->base.label), "%s", t->ifname);
	probe_caps(t);
	code = vl_link_open(t->fd[0][0], t->ifname, &t->monitor);
	if (code)
		vl_log(VL_LOG_WARNING, t->ifname,
		       "its link state cannot be seen (%s) and counts as up",
		       strerror(-code));
	else
		update_link(t);
	if (t->base.link == VL_LINK_DOWN)
		vl_log(VL_LOG_WARNING, t->ifname,
		       "link is down; set it up: ip link set %s up", t->ifname);
	*out = &t->base;
	return 0;
}

static int tap_set_offload(struct vl_backend *b, const struct vl_offload *o)
{
	struct tap *t = to_tap(b);
	unsigned int flags = 0;
	int hdr_len = (int)o->hdr_len;

	if (o->csum)
		flags |= TUN_F_CSUM;
	if (o->csum && o->tso4)
		flags |= TUN_F_TSO4;
	if (o->csum && o->tso6)
		flags |= TUN_F_TSO6;
	if (o->csum && o->ecn && (o->tso4 || o->tso6))
		flags |= TUN_F_TSO_ECN;
	/* The kernel takes both or none. */
	if (o->csum && o->uso4 && o->uso6)
		flags |= TUN_F_USO4 | TUN_F_USO6;
	if (ioctl(t->fd[0][0], TUNSETOFFLOAD, (unsigned long)flags) < 0 ||
	    ioctl(t->fd[0][0], TUNSETVNETHDRSZ, &hdr_len) < 0)
		return -errno;
	return 0;
}

static int tap_set_active(struct vl_backend *b, unsigned int port, bool active)
{
	struct tap *t = to_tap(b);
	int code;

	if (port == 0 || !t->multi_queue)
		return 0;
	code = set_attached(t->fd[port][0], active);
	if (code && code != -EINVAL)
		return code; /* EINVAL: it is so already */
	if (active && ioctl(t->fd[port][0], TUNSETSNDBUF, &t->sndbuf) < 0)
		return -errno;
	return 0;
}

static int tap_event_fd(const struct vl_backend *b)
{
	const struct tap *t = (const struct tap *)(const void *)b;

	return t->monitor ? vl_link_fd(t->monitor) : -1;
}

static void tap_event(struct vl_backend *b)
{
	struct tap *t = to_tap(b);

	if (t->monitor)
		update_link(t);
}

static int tap_port_start(struct vl_backend *b, unsigned int port,
			  struct vl_io *io, uint64_t tag)
{
	struct tap *t = to_tap(b);

	(void)tag;
	for (unsigned int w = 0; w < b->ways + b->probes; w++) {
		t->file[port][w] = vl_io_file_add(io, t->fd[port][w]);
		if (t->file[port][w] < 0)
			return t->file[port][w];
	}
	return 0;
}

static void tap_port_stop(struct vl_backend *b, unsigned int port,
			  struct vl_io *io)
{
	for (unsigned int w = 0; w < b->ways + b->probes; w++)
		vl_io_file_remove(io, to_tap(b)->file[port][w]);
}

static void tap_send(struct vl_backend *b, unsigned int port, unsigned int way,
		     struct vl_io *io, const struct vl_frame *f)
{
	vl_io_writev(io, to_tap(b)->file[port][way], f->iov, f->n, f->linked,
		     f->tag);
}

/* A tap is writable while less than half of its send buffer is charged. */
static uint64_t tap_headroom(struct vl_backend *b, unsigned int port,
			     unsigned int way)
{
	struct tap *t = to_tap(b);
	struct pollfd p = { .fd = t->fd[port][way], .events = POLLOUT };

	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return 0;
	return (uint64_t)way_sndbuf(b, way, t->sndbuf) / 2;
}

static void tap_recv(struct vl_backend *b, unsigned int port, struct vl_io *io,
		     const struct vl_frame *f)
{
	vl_io_readv(io, to_tap(b)->file[port][0], f->iov, f->n, f->tag);
}

static int tap_poll(struct vl_backend *b, unsigned int port, unsigned int way,
		    struct vl_io *io, uint32_t events, uint64_t tag)
{
	return vl_io_poll(io, to_tap(b)->fd[port][way], events, false, tag);
}

static void tap_poll_cancel(struct vl_backend *b, unsigned int port,
			    unsigned int way, struct vl_io *io, uint32_t events,
			    uint64_t tag)
{
	(void)events;
	vl_io_poll_cancel(io, to_tap(b)->fd[port][way], tag);
}

static const char *const keys[] = { "name", "fds", "lanes", "sndbuf", NULL };

const struct vl_backend_ops vl_backend_tap = {
	.name = "tap",
	.help = "tap,name=INTERFACE|fds=A:B...[,lanes=N][,sndbuf=auto|BYTES|"
		"unlimited]: a Linux tap "
		"device",
	.keys = keys,
	.interface = true,
	.open = tap_open,
	.close = tap_close,
	.set_offload = tap_set_offload,
	.set_active = tap_set_active,
	.event_fd = tap_event_fd,
	.event = tap_event,
	.port_start = tap_port_start,
	.port_stop = tap_port_stop,
	.send = tap_send,
	.headroom = tap_headroom,
	.recv = tap_recv,
	.poll = tap_poll,
	.poll_cancel = tap_poll_cancel,
};
