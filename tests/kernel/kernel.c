/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int status;

void fact(bool holds, const char *text)
{
	printf("%s: %s\n", holds ? "holds" : "DOES NOT HOLD", text);
	fflush(stdout);
	if (!holds)
		status = 1;
}

int facts_status(void)
{
	return status;
}

void skip(const char *why)
{
	printf("SKIP: %s\n", why);
	exit(77);
}

void broken(const char *what)
{
	printf("the experiment failed: %s: %s\n", what, strerror(errno));
	exit(1);
}

void command(const char *cmd)
{
	/* Fixed texts of these programs only. */
	if (system(cmd) != 0) /* NOLINT(cert-env33-c) */
		broken(cmd);
}

void own_network(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		skip("needs root, to make a network namespace");
	command("for f in all default; do f=/proc/sys/net/ipv6/conf/$f/"
		"disable_ipv6; [ ! -e $f ] || echo 1 > $f; done");
}

int open_tap(const char *name, bool multi_queue)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int len = 12;

	if (fd < 0)
		skip("needs /dev/net/tun");
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (multi_queue)
		ifr.ifr_flags |= IFF_MULTI_QUEUE;
	if (ioctl(fd, TUNSETIFF, &ifr) < 0)
		broken("TUNSETIFF");
	if (ioctl(fd, TUNSETVNETHDRSZ, &len) < 0)
		broken("TUNSETVNETHDRSZ");
	return fd;
}

int open_packet(const char *name)
{
	struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name),
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		broken("packet socket");
	return fd;
}

bool ready(int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) == 1;
}
