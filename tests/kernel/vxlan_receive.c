/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a UDP socket receives of a kernel's vxlan device at the other end of a
 * veth: frames that nobody segmented and checksums that nobody completed, with
 * hardly a word about it. And what the receive half of a port makes of them.
 */
#include <errno.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/vxlan_rx.h"
#include "base/uapi.h"
#include "kernel.h"
#include "vxlan_frames.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO     104
#endif

#define SEGMENT  1400
#define LARGE    28000u
#define MTU      1450u
#define HDR      12u
#define BYTES    70000u
#define REQUESTS 32u
#define OTHER    (VF_VNI + 1)

static uint8_t data[BYTES];

static const struct vf_frame tso = { .tcp = true, .payload = LARGE };
static const struct vf_frame small = { .payload = 100 };
static const struct vf_frame uso = { .payload = LARGE };

/* What the sender does when it reads the letter. */
static void send_frame(const char *dev, const struct vf_frame *f, int gso_type)
{
	struct {
		struct virtio_net_hdr hdr;
		uint8_t frame[BYTES];
	} __attribute__((packed)) *p = calloc(1, sizeof(*p));
	int fd = open_packet(dev);
	uint32_t len;

	if (!p)
		broken("memory");
	len = vf_frame(f, p->frame);
	p->hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	p->hdr.gso_type = (uint8_t)gso_type;
	p->hdr.csum_start = 34;
	p->hdr.csum_offset = f->tcp ? 16 : 6;
	p->hdr.hdr_len = (uint16_t)vf_head(f);
	p->hdr.gso_size = gso_type ? SEGMENT : 0;
	if (write(fd, p, sizeof(p->hdr) + len) < 0)
		broken("send");
	close(fd);
	free(p);
}

static void send_large(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(4789),
		.sin_addr.s_addr = htonl(0xc0000202),
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	vf_datagram(&uso, VF_VNI, data);
	if (sendto(fd, data, 4000, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		broken("sendto");
	close(fd);
}

static void serve(int commands, int answers)
{
	char c;

	while (read(commands, &c, 1) == 1) {
		if (c == 't')
			send_frame("vx", &tso, VIRTIO_NET_HDR_GSO_TCPV4);
		else if (c == 'u')
			send_frame("vx", &uso, VIRTIO_NET_HDR_GSO_UDP_L4);
		else if (c == 's')
			send_frame("vx", &small, 0);
		else if (c == 'o')
			send_frame("other", &small, 0);
		else if (c == 'f')
			send_large();
		if (write(answers, &c, 1) != 1)
			break;
	}
	_exit(0);
}

static int to_sender, from_sender;

static void order(char what)
{
	char c;

	if (write(to_sender, &what, 1) != 1 || read(from_sender, &c, 1) != 1)
		broken("the sender");
}

/* A process in a namespace of its own, with a vxlan device. */
static pid_t start_sender(void)
{
	int down[2], up[2];
	char text[400];
	pid_t pid;

	if (pipe(down) || pipe(up))
		broken("pipe");
	pid = fork();
	if (pid < 0)
		broken("fork");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(down[1]);
		close(up[0]);
		own_network();
		if (write(up[1], "n", 1) != 1 || read(down[0], text, 1) != 1)
			_exit(1);
		(void)snprintf(
			text, sizeof(text),
			"ip addr add 192.0.2.1/24 dev far && "
			"ip link set far up && for d in 'vx %u' 'other %u'; do "
			"set -- $d; ip link add $1 type vxlan id $2 local "
			"192.0.2.1 remote 192.0.2.2 dstport 4789 && "
			"ip link set $1 up || exit 1; done",
			VF_VNI, OTHER);
		command(text);
		if (write(up[1], "c", 1) == 1)
			serve(down[0], up[1]);
		_exit(1);
	}
	close(down[0]);
	close(up[1]);
	to_sender = down[1];
	from_sender = up[0];
	if (read(from_sender, text, 1) != 1)
		broken("the sender");
	(void)snprintf(text, sizeof(text),
		       "ip link add near type veth peer name far netns %d && "
		       "ip addr add 192.0.2.2/24 dev near && "
		       "ip link set near up",
		       (int)pid);
	command(text);
	order('c');
	return pid;
}

static int open_receiver(void)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET,
		.sin_port = htons(4789),
		.sin_addr.s_addr = htonl(0xc0000202),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	int big = 4 << 20;

	if (vl_vxlan_rx_socket(fd, VF_VNI) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big)) ||
	    bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		broken("socket");
	return fd;
}

struct said {
	ssize_t len;
	int gso_size, frag_size, messages;
};

static struct said receive(int fd)
{
	char control[256];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct said s = { 0 };

	(void)ready(fd, 1, 1000);
	s.len = recvmsg(fd, &msg, 0);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); s.len >= 0 && c;
	     c = CMSG_NXTHDR(&msg, c)) {
		s.messages++;
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			memcpy(&s.gso_size, CMSG_DATA(c), sizeof(int));
		if (c->cmsg_level == IPPROTO_IP &&
		    c->cmsg_type == IP_RECVFRAGSIZE)
			memcpy(&s.frag_size, CMSG_DATA(c), sizeof(int));
	}
	return s;
}

/* The datagram in @data is this frame, byte for byte. */
static bool is_frame(const struct said *s, const struct vf_frame *f)
{
	static uint8_t want[BYTES];
	uint32_t len = vf_datagram(f, VF_VNI, want);

	return s->len == (ssize_t)len && !memcmp(data, want, len);
}

static void facts(int fd)
{
	struct said s;

	order('s');
	s = receive(fd);
	fact(is_frame(&s, &small) && !s.messages,
	     "a checksum arrives partial, and nothing says so");
	order('t');
	s = receive(fd);
	fact(is_frame(&s, &tso) && !s.messages,
	     "a TSO frame arrives whole, and nothing says so");
	order('u');
	s = receive(fd);
	fact(is_frame(&s, &uso) && s.gso_size == SEGMENT,
	     "a USO frame arrives whole, with the size of its segments");
	order('f');
	s = receive(fd);
	fact(s.len == 4000 && s.frag_size > 1000,
	     "a datagram that came in fragments is told from others");
	order('o');
	fact(!ready(fd, 1, 200), "the filter knows the VNI");
}

static struct vl_io *io;
static struct vl_vxlan_rx *rx;
static struct vl_tunnel_counters counters;
static uint8_t memory[REQUESTS][BYTES];
static int results[REQUESTS];

static void on_answer(void *ctx, const struct vl_io_event *ev)
{
	(void)ctx;
	results[ev->tag] = ev->res;
}

/* One batch; returns the frames. */
static unsigned int frames(int fd)
{
	struct vl_io_event ev[2 * REQUESTS];
	struct iovec iov[REQUESTS];
	unsigned int n = 0;

	(void)ready(fd, 1, 1000);
	for (unsigned int i = 0; i < REQUESTS; i++) {
		struct vl_frame f = { .iov = &iov[i], .n = 1, .tag = i };

		iov[i] = (struct iovec){ memory[i], BYTES };
		results[i] = 0;
		vl_vxlan_rx_recv(rx, io, &f);
	}
	vl_vxlan_rx_flush(rx, io);
	vl_io_wait(io, 0);
	for (unsigned int k = vl_io_reap(io, ev, 2 * REQUESTS), i = 0; i < k;
	     i++) {
		if (ev[i].tag >= REQUESTS)
			vl_vxlan_rx_complete(rx, io, &ev[i], on_answer, NULL);
		else
			on_answer(NULL, &ev[i]);
	}
	while (n < REQUESTS && results[n] > 0)
		n++;
	return n;
}

/* All segments of @f, complete and of a size for the MTU. */
static bool cut_right(unsigned int n, const struct vf_frame *f)
{
	uint32_t done = 0, head = vf_head(f);

	for (unsigned int i = 0; i < n; i++) {
		uint32_t len = (uint32_t)results[i] - HDR;

		if (len <= head || len > MTU + 14 || memory[i][0] ||
		    vf_verify(f, memory[i] + HDR, len))
			return false;
		done += len - head;
	}
	return done == f->payload;
}

static void module(int fd)
{
	struct vl_vxlan_rx_config config = {
		.vni = VF_VNI,
		.fd = fd,
		.mtu = MTU,
		.counters = &counters,
	};
	struct vl_offload offload = { .hdr_len = HDR };
	struct vl_ip ip;
	unsigned int n;

	if (vl_vxlan_fdb_new(0, &config.fdb) || vl_ip_parse("192.0.2.1", &ip) ||
	    vl_vxlan_fdb_remote(config.fdb, &ip) ||
	    vl_io_new(VL_IO_SYNC, 2 * REQUESTS, &io) || vl_io_start(io) ||
	    vl_vxlan_rx_new(&config, &rx) || vl_vxlan_rx_start(rx, io, 1 << 20))
		broken("module");
	vl_vxlan_fdb_set_flood(config.fdb, 0, true);
	vl_vxlan_rx_set_offload(rx, &offload);
	order('s');
	n = frames(fd);
	fact(n == 1 && cut_right(n, &small) && counters.csum_completed == 1,
	     "virtlane: the checksum is completed");
	order('t');
	n = frames(fd);
	fact(n == 20 && cut_right(n, &tso), "virtlane: TCP is cut");
	order('u');
	n = frames(fd);
	fact(n == 20 && cut_right(n, &uso), "virtlane: UDP is cut");
	offload =
		(struct vl_offload){ HDR, true, true, true, true, true, true };
	vl_vxlan_rx_set_offload(rx, &offload);
	order('t');
	order('u');
	n = frames(fd);
	fact(n == 2 && memory[0][1] == VIRTIO_NET_HDR_GSO_TCPV4 &&
		     memory[1][1] == VIRTIO_NET_HDR_GSO_UDP_L4 &&
		     results[0] == HDR + 54 + LARGE &&
		     results[1] == HDR + 42 + LARGE,
	     "virtlane: a driver that takes large frames gets them");
	order('f');
	n = frames(fd);
	fact(n == 0 && counters.drop_fragment == 1,
	     "virtlane: what was fragmented is dropped");
	vl_vxlan_rx_stop(rx, io);
	vl_vxlan_rx_free(rx);
	vl_io_free(io);
	vl_vxlan_fdb_free(config.fdb);
}

int main(void)
{
	pid_t pid;
	int fd;

	own_network();
	pid = start_sender();
	fd = open_receiver();
	facts(fd);
	module(fd);
	kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return facts_status();
}
