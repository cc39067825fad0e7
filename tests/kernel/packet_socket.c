/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the packet backend leans on: what a packet socket hands over and takes,
 * how it says that it is full, and what the rings that it shares do.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel.h"

#define HDR     10
#define LEN     1000
#define GSO_LEN 20054
#define SLOT    2048u
#define SLOTS   64u
#define DATA_AT (TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))

static unsigned char frame[HDR + GSO_LEN];
static unsigned char got[70000];

/* A socket on @name that only sends. */
static int open_sender(const char *name, int sndbuf)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	int on = 1;

	a.sll_ifindex = (int)if_nametoindex(name);
	if (fd < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf,
		       sizeof(sndbuf)) ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)))
		broken("packet socket that sends");
	return fd;
}

static void make_frame(unsigned short proto)
{
	memset(frame, 0, sizeof(frame));
	memset(frame + HDR, 2, 12);
	frame[HDR + 12] = (unsigned char)(proto >> 8);
	frame[HDR + 13] = (unsigned char)proto;
}

static int charged(int fd)
{
	int bytes = -1;

	return ioctl(fd, SIOCOUTQ, &bytes) < 0 ? -1 : bytes;
}

static int count(int fd)
{
	int n = 0;

	while (recv(fd, got, sizeof(got), 0) > 0)
		n++;
	return n;
}

static void reception(int rx, int plain, int peer, int tx)
{
	struct virtio_net_hdr h = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.gso_size = 1000,
		.hdr_len = 54,
		.csum_start = 34,
		.csum_offset = 16,
	};
	unsigned char *ip = frame + HDR + 14;

	make_frame(0x88b5);
	(void)count(rx);
	if (write(peer, frame, HDR + LEN) < 0 ||
	    write(tx, frame, HDR + LEN) < 0)
		broken("send");
	fact(count(rx) == 1, "with PACKET_IGNORE_OUTGOING only what comes from "
			     "the other end is received");
	fact(count(tx) == 0, "a socket bound to protocol 0 receives nothing");
	fact(count(plain) == 2,
	     "without it also what another socket sends here");
	make_frame(0x0800);
	memcpy(frame, &h, sizeof(h));
	ip[0] = 0x45;
	ip[2] = (GSO_LEN - 14) >> 8;
	ip[3] = (GSO_LEN - 14) & 0xff;
	ip[9] = 6;
	ip[20 + 12] = 0x50;
	if (write(peer, frame, HDR + GSO_LEN) < 0)
		broken("send a large frame");
	fact(recv(rx, got, sizeof(got), 0) == HDR + GSO_LEN &&
		     !memcmp(got, frame, 2),
	     "a frame that waits for segmentation is handed over in one piece");
}

static void tags(int rx, int peer)
{
	char control[128];
	struct iovec iov = { got, sizeof(got) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	const struct cmsghdr *c;
	struct tpacket_auxdata aux = { 0 };
	ssize_t n;

	make_frame(0x88a8);
	frame[HDR + 15] = 7;
	(void)count(rx);
	if (write(peer, frame, HDR + LEN) < 0)
		broken("send");
	n = recvmsg(rx, &m, 0);
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == PACKET_AUXDATA)
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	fact(n == HDR + LEN - 4 && (aux.tp_status & TP_STATUS_VLAN_VALID) &&
		     (aux.tp_status & TP_STATUS_VLAN_TPID_VALID) &&
		     aux.tp_vlan_tci == 7 && aux.tp_vlan_tpid == 0x88a8,
	     "a tag is taken off and told beside the frame, with its type");
}

/* veth0 is shaped so that nothing leaves for seconds, by a queue of @limit. */
static void shape(const char *limit)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd),
		 "tc qdisc replace dev veth0 root handle 1: tbf rate 8kbit "
		 "burst 1600 limit 1000000 && tc qdisc replace dev veth0 "
		 "parent 1:1 handle 2: pfifo limit %s",
		 limit);
	command(cmd);
}

static void fullness(void)
{
	int a = open_sender("veth0", 16384), b = open_sender("veth0", 16384);
	int least = open_sender("veth0", 1);
	int n = 0;

	shape("1000");
	make_frame(0x88b5);
	fact(charged(a) == 0, "SIOCOUTQ of a socket that sent nothing is 0");
	while (n < 1000 && write(a, frame, HDR + LEN) > 0)
		n++;
	fact(n < 1000 && errno == EAGAIN,
	     "a socket whose send buffer is charged says EAGAIN");
	fact(charged(a) >= 32768, "SIOCOUTQ says how much is charged");
	fact(!ready(a, POLLOUT, 0), "and it is not writable then");
	fact(write(b, frame, HDR + LEN) > 0,
	     "another socket on the interface is not full");
	fact(write(least, frame, HDR + 1514) > 0 && charged(least) > 0,
	     "one with the least send buffer takes a packet, whatever its "
	     "size");
	command("tc qdisc del dev veth0 root");
	fact(ready(a, POLLOUT, 1000) && charged(a) == 0 && charged(least) == 0,
	     "nothing is charged any more when the packets are gone");
	shape("2");
	for (n = 0; n < 20 && write(a, frame, HDR + LEN) > 0; n++)
		;
	fact(n < 20 && errno == ENOBUFS,
	     "what the queueing discipline drops ends with ENOBUFS");
	command("tc qdisc del dev veth0 root");
	close(a);
	close(b);
	close(least);
}

static struct tpacket2_hdr *slot(char *map, unsigned int i)
{
	return (void *)(map + (size_t)(i % SLOTS) * SLOT);
}

/* Puts a frame into slot @i; @len is what the slot says. */
static void put(char *map, unsigned int i, unsigned int len)
{
	struct tpacket2_hdr *h = slot(map, i);
	unsigned short copied = LEN;

	memcpy((char *)h + DATA_AT, frame, HDR + LEN);
	memcpy((char *)h + DATA_AT + 2, &copied, sizeof(copied));
	h->tp_len = len;
	__atomic_store_n(&h->tp_status, TP_STATUS_SEND_REQUEST,
			 __ATOMIC_RELEASE);
}

static int open_ring(char **map)
{
	const struct tpacket_req req = { 65536, SLOTS * SLOT / 65536, SLOT,
					 SLOTS };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	struct sockaddr_ll a = { .sll_family = AF_PACKET };
	int on = 1, version = TPACKET_V2;

	a.sll_ifindex = (int)if_nametoindex("veth0");
	if (fd < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version,
		       sizeof(version)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_LOSS, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &req, sizeof(req)) ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)))
		broken("ring");
	*map = mmap(NULL, (size_t)SLOTS * SLOT, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
	if (*map == MAP_FAILED)
		broken("mmap");
	return fd;
}

static void ring(int far)
{
	char *map;
	int fd = open_ring(&map);

	make_frame(0x88b5);
	(void)count(far);
	for (unsigned int i = 0; i < 5; i++)
		put(map, i, i == 2 ? (unsigned int)-1 : HDR + LEN);
	fact(send(fd, NULL, 0, MSG_DONTWAIT) > 0 && count(far) == 4,
	     "one call sends what is in the ring, and with PACKET_LOSS skips a "
	     "slot of no length");
	fact(slot(map, 2)->tp_status == TP_STATUS_AVAILABLE &&
		     slot(map, 4)->tp_status == TP_STATUS_AVAILABLE,
	     "slots are free when their frames are gone");
	shape("2");
	for (unsigned int i = 5; i < 15; i++)
		put(map, i, HDR + LEN);
	fact(send(fd, NULL, 0, MSG_DONTWAIT) < 0 && errno == ENOBUFS,
	     "a frame that is dropped ends the call with ENOBUFS");
	fact(slot(map, 7)->tp_status == TP_STATUS_SENDING,
	     "a slot is not free while its frame is in a queue of the host");
	fact(slot(map, 14)->tp_status == TP_STATUS_SEND_REQUEST,
	     "those behind the dropped one were not tried");
	command("tc qdisc del dev veth0 root");
	munmap(map, (size_t)SLOTS * SLOT);
	close(fd);
}

/* A ring for what veth0 receives. */
static int open_rx_ring(char **map)
{
	const struct tpacket_req req = { 65536, SLOTS * SLOT / 65536, SLOT,
					 SLOTS };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_ALL) };
	int on = 1, version = TPACKET_V2;

	a.sll_ifindex = (int)if_nametoindex("veth0");
	if (fd < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version,
		       sizeof(version)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_COPY_THRESH, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)) ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)))
		broken("ring to receive by");
	*map = mmap(NULL, (size_t)SLOTS * SLOT, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
	if (*map == MAP_FAILED)
		broken("mmap");
	return fd;
}

static void rx_ring(int far)
{
	const struct tpacket2_hdr *h;
	char *map;
	int fd = open_rx_ring(&map);

	make_frame(0x8100);
	frame[HDR + 15] = 9;
	fact(!ready(fd, POLLIN, 0), "a ring without frames is not readable");
	if (write(far, frame, HDR + LEN) < 0)
		broken("send");
	h = slot(map, 0);
	fact(ready(fd, POLLIN, 0) && h->tp_status & TP_STATUS_USER &&
		     !(h->tp_status & TP_STATUS_COPY),
	     "a frame that fits is in the ring only");
	fact(h->tp_status & TP_STATUS_VLAN_VALID && h->tp_vlan_tci == 9 &&
		     h->tp_vlan_tpid == 0x8100 && h->tp_len == LEN - 4 &&
		     h->tp_snaplen == LEN - 4 &&
		     !memcmp((const char *)h + h->tp_mac - HDR, frame,
			     HDR + 12),
	     "with the virtio header in front of it and the tag beside");
	make_frame(0x88b5);
	command("ip link set veth0 mtu 9000 && ip link set far0 mtu 9000");
	if (write(far, frame, HDR + 5000) < 0)
		broken("send");
	h = slot(map, 1);
	fact(h->tp_status & TP_STATUS_COPY && h->tp_len == 5000 &&
		     h->tp_snaplen < h->tp_len,
	     "the slot of one that does not fit says so");
	fact(recv(fd, got, sizeof(got), 0) == HDR + 5000 &&
		     !memcmp(got, frame, HDR + 5000),
	     "and all of it can be received from the socket");
	munmap(map, (size_t)SLOTS * SLOT);
	close(fd);
}

int main(void)
{
	int rx, plain, peer, tx, on = 1;

	own_network();
	command("ip link add veth0 type veth peer name far0 && "
		"ip link set veth0 up && ip link set far0 up");
	rx = open_packet("veth0");
	plain = open_packet("veth0");
	peer = open_packet("far0");
	tx = open_sender("veth0", 1 << 20);
	if (setsockopt(rx, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on,
		       sizeof(on)) ||
	    setsockopt(rx, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)))
		broken("options");
	reception(rx, plain, peer, tx);
	tags(rx, peer);
	fullness();
	ring(peer);
	rx_ring(peer);
	command("ip link set veth0 down");
	fact(write(tx, frame, HDR + LEN) < 0 && errno == ENETDOWN,
	     "while the interface is down a send ends with ENETDOWN");
	command("ip link del veth0");
	fact(write(tx, frame, HDR + LEN) < 0 && errno == ENXIO,
	     "with ENXIO when it is deleted");
	return facts_status();
}
