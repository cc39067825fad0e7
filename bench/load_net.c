/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One AF_PACKET socket with virtio headers (PACKET_VNET_HDR), so that partial
 * checksums and unsegmented frames pass both ways as they are.
 *
 * Sends bypass the queueing discipline, which could drop or reorder; they go
 * straight into the tap's queue, of which the caller fills no more than
 * load_net_tx_window(). Received frames wait in the socket, whose buffer is
 * larger than load_net_rx_window(). The socket counts its own drops, so a
 * mistake in either figure shows up as a loss of the harness.
 */
#include "load_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_ether.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define RCVBUF (96 << 20)
#define SLOT   (sizeof(struct virtio_net_hdr) + LOAD_GSO_FRAME + 64)

struct load_net {
	int fd;
	struct ifreq ifr;
	unsigned int tx_window;
	int refusal;
	uint8_t *slots; /* receive buffers */
	struct mmsghdr rx_msg[LOAD_NET_BATCH], tx_msg[LOAD_NET_BATCH];
	struct iovec rx_iov[LOAD_NET_BATCH], tx_iov[LOAD_NET_BATCH][3];
	struct load_frame tx_frame[LOAD_NET_BATCH];
};

static int failed(const char *what, int err)
{
	fprintf(stderr, "vl-load: %s: %s\n", what, strerror(-err));
	return err;
}

static int set_option(int fd, int level, int name, int value, const char *what)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)) == 0)
		return 0;
	return failed(what, -errno);
}

static int bind_to(struct load_net *n)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_ALL) };

	if (ioctl(n->fd, SIOCGIFTXQLEN, &n->ifr) < 0)
		return -errno;
	/* The tap's queue is as long as this; leave half of it for others. */
	n->tx_window = n->ifr.ifr_qlen > 512 ? 256
		       : n->ifr.ifr_qlen > 3 ? (unsigned)n->ifr.ifr_qlen / 2
					     : 1;
	if (ioctl(n->fd, SIOCGIFINDEX, &n->ifr) < 0)
		return -errno;
	a.sll_ifindex = n->ifr.ifr_ifindex;
	return bind(n->fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
}

static int configure(struct load_net *n)
{
	int err = set_option(n->fd, SOL_PACKET, PACKET_VNET_HDR, 1,
			     "PACKET_VNET_HDR");

	if (!err)
		err = set_option(n->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1,
				 "PACKET_IGNORE_OUTGOING");
	if (!err)
		err = set_option(n->fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1,
				 "PACKET_QDISC_BYPASS");
	if (!err)
		err = set_option(n->fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF,
				 "SO_RCVBUFFORCE");
	if (!err)
		err = set_option(n->fd, SOL_SOCKET, SO_SNDBUFFORCE, RCVBUF,
				 "SO_SNDBUFFORCE");
	return err;
}

static void prepare_messages(struct load_net *n)
{
	for (unsigned int i = 0; i < LOAD_NET_BATCH; i++) {
		n->rx_iov[i] = (struct iovec){ n->slots + i * SLOT, SLOT };
		n->rx_msg[i].msg_hdr.msg_iov = &n->rx_iov[i];
		n->rx_msg[i].msg_hdr.msg_iovlen = 1;
		n->tx_iov[i][0].iov_base = &n->tx_frame[i].hdr;
		n->tx_iov[i][0].iov_len = sizeof(n->tx_frame[i].hdr);
		n->tx_iov[i][1].iov_base = n->tx_frame[i].head;
		n->tx_msg[i].msg_hdr.msg_iov = n->tx_iov[i];
		n->tx_msg[i].msg_hdr.msg_iovlen = 3;
	}
}

int load_net_open(const char *ifname, struct load_net **out)
{
	struct load_net *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return failed("memory", -ENOMEM);
	snprintf(n->ifr.ifr_name, sizeof(n->ifr.ifr_name), "%s", ifname);
	n->slots = malloc(LOAD_NET_BATCH * SLOT);
	/* Protocol 0: nothing is received before the socket is set up. */
	n->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (n->fd < 0 || !n->slots) {
		err = failed("packet socket", n->fd < 0 ? -errno : -ENOMEM);
		load_net_close(n);
		return err;
	}
	err = configure(n);
	if (!err) {
		err = bind_to(n);
		if (err)
			failed(ifname, err);
	}
	if (err) {
		load_net_close(n);
		return err;
	}
	prepare_messages(n);
	*out = n;
	return 0;
}

void load_net_close(struct load_net *n)
{
	if (!n)
		return;
	if (n->fd >= 0)
		close(n->fd);
	free(n->slots);
	free(n);
}

int load_net_fd(const struct load_net *n)
{
	return n->fd;
}

int load_net_wait_carrier(struct load_net *n, unsigned int ms)
{
	const short need = IFF_UP | IFF_RUNNING;

	for (unsigned int t = 0; t <= ms; t += 10) {
		if (ioctl(n->fd, SIOCGIFFLAGS, &n->ifr) < 0)
			return failed(n->ifr.ifr_name, -errno);
		if ((n->ifr.ifr_flags & need) == need)
			return 0;
		poll(NULL, 0, 10);
	}
	return failed("no carrier, or the interface is not up", -ENETDOWN);
}

unsigned int load_net_tx_window(const struct load_net *n)
{
	return n->tx_window;
}

uint64_t load_net_rx_window(const struct load_net *n)
{
	(void)n;
	return RCVBUF / 2;
}

int load_net_receive(struct load_net *n, const struct load_gen *g,
		     struct load_ledger *l)
{
	const uint32_t hdr_len = sizeof(struct virtio_net_hdr);
	int got =
		recvmmsg(n->fd, n->rx_msg, LOAD_NET_BATCH, MSG_DONTWAIT, NULL);

	for (int i = 0; i < got; i++) {
		uint8_t *slot = n->rx_iov[i].iov_base;
		struct virtio_net_hdr hdr;
		struct iovec iov;
		uint64_t seq;

		if (n->rx_msg[i].msg_len < hdr_len)
			continue;
		memcpy(&hdr, slot, hdr_len);
		iov.iov_base = slot + hdr_len;
		iov.iov_len = n->rx_msg[i].msg_len - hdr_len;
		switch (load_frame_check(g, LOAD_TX, &hdr, &iov, 1, &seq)) {
		case LOAD_GOOD:
			load_ledger_arrive(l, seq);
			l->bytes += iov.iov_len;
			break;
		case LOAD_CHANGED:
			l->changed++;
			break;
		case LOAD_FOREIGN:
			l->foreign++;
			break;
		}
	}
	return got < 0 ? 0 : got;
}

int load_net_send(struct load_net *n, const struct load_gen *g,
		  struct load_ledger *l, unsigned int max)
{
	int sent;

	for (unsigned int i = 0; i < max; i++) {
		struct load_frame *f = &n->tx_frame[i];

		load_frame_make(g, LOAD_RX, l->sent + i, f);
		n->tx_iov[i][1].iov_len = f->head_len;
		/* Only read by the kernel. */
		n->tx_iov[i][2].iov_base = (void *)(uintptr_t)f->payload;
		n->tx_iov[i][2].iov_len = f->payload_len;
	}
	sent = sendmmsg(n->fd, n->tx_msg, max, MSG_DONTWAIT);
	n->refusal = sent < 0 ? errno : 0;
	if (sent < 0) {
		if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)
			return 0;
		return failed("send", -errno);
	}
	l->sent += (unsigned int)sent;
	return sent;
}

int load_net_refusal(const struct load_net *n)
{
	return n->refusal;
}

uint64_t load_net_drops(struct load_net *n)
{
	struct tpacket_stats st = { 0 };
	socklen_t len = sizeof(st);

	if (getsockopt(n->fd, SOL_PACKET, PACKET_STATISTICS, &st, &len) < 0)
		return 0;
	return st.tp_drops;
}
