/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A send per frame costs more than a back-end needs to read it. So one TCP
 * segment of many times the size is sent, which the kernel cuts into frames
 * just before it hands them to the tap: the tap has no segmentation offload as
 * long as the driver did not ask for it.
 */
#include "flood_source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flood_frame.h"

#define BURST  40u
#define SNDBUF (64 << 20)

struct flood_source {
	int fd;
	size_t len;
	uint8_t packet[sizeof(struct virtio_net_hdr) + FLOOD_FRAME_MAX];
};

static int set_up(struct flood_source *s, const char *ifname)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET };
	const int on = 1, size = SNDBUF;

	/* Protocol 0: it receives nothing. */
	s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return -errno;
	a.sll_ifindex = (int)if_nametoindex(ifname);
	if (!a.sll_ifindex ||
	    setsockopt(s->fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(s->fd, SOL_SOCKET, SO_SNDBUFFORCE, &size,
		       sizeof(size)) ||
	    bind(s->fd, (struct sockaddr *)&a, sizeof(a)))
		return -errno;
	return 0;
}

int flood_source_open(const char *ifname, uint32_t size,
		      struct flood_source **out)
{
	const uint32_t hdr_len = sizeof(struct virtio_net_hdr);
	struct flood_source *s = calloc(1, sizeof(*s));
	uint32_t mss = size - FLOOD_TCP_HEAD;
	uint32_t len = FLOOD_TCP_HEAD + BURST * mss;
	int err;

	if (!s)
		return -ENOMEM;
	if (size > FLOOD_MTU_FRAME || size < FLOOD_FRAME_MIN)
		err = -EMSGSIZE;
	else
		err = set_up(s, ifname);
	if (err) {
		fprintf(stderr, "vl-flood: source on %s: %s\n", ifname,
			strerror(-err));
		flood_source_close(s);
		return err;
	}
	flood_frame_make(s->packet, hdr_len, len, (uint16_t)mss);
	s->len = hdr_len + len;
	*out = s;
	return 0;
}

void flood_source_close(struct flood_source *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

unsigned int flood_source_burst(const struct flood_source *s)
{
	(void)s;
	return BURST;
}

int flood_source_send(struct flood_source *s)
{
	if (send(s->fd, s->packet, s->len, MSG_DONTWAIT) >= 0)
		return (int)BURST;
	return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? 0
								     : -errno;
}
