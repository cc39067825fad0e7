/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why the detached queues of a tap are lanes: each takes frames against a send
 * buffer of its own, whose size was set while it was attached, and none gets
 * frames from the host. And why one with a send buffer of next to nothing is a
 * probe.
 */
#include <errno.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kernel.h"

#define LEN     1442
#define BIG     200000
#define SMALL   32768
#define TINY    4
#define FOREVER 5000

static char frame[12 + LEN];

/* Frames taken until the queue is full, FOREVER when it never is. */
static int fill(int tap)
{
	int n = 0;

	while (n < FOREVER && write(tap, frame, sizeof(frame)) > 0)
		n++;
	return n;
}

static void set_sndbuf(int tap, int bytes)
{
	if (ioctl(tap, TUNSETSNDBUF, &bytes) < 0)
		broken("TUNSETSNDBUF");
}

static void detach(int tap)
{
	struct ifreq ifr = { .ifr_flags = IFF_DETACH_QUEUE };

	if (ioctl(tap, TUNSETQUEUE, &ifr) < 0)
		broken("TUNSETQUEUE");
}

/* Frames for @port, a shaped port of the bridge. */
static void address_to(char port)
{
	memset(frame + 12, 2, 5);
	frame[17] = port;
	memset(frame + 18, 4, 6);
	frame[24] = (char)0x88;
	frame[25] = (char)0xb5;
}

/* tap0 and two shaped ports, each with the address that its frames have. */
static void make_network(void)
{
	command("ip link add br0 type bridge && "
		"for i in 1 2; do ip link add s$i type veth peer name v$i && "
		"ip link set s$i master br0 && "
		"tc qdisc add dev s$i root tbf rate 10mbit burst 3000 "
		"limit 4000000 && "
		"bridge fdb replace 02:02:02:02:02:0$i dev s$i master static "
		"|| exit 1; done; ip link set tap0 master br0 && "
		"for i in tap0 br0 s1 s2 v1 v2; do ip link set $i up; done");
	command("f=/proc/sys/net/bridge/bridge-nf-call-iptables; "
		"[ ! -e $f ] || echo 0 > $f");
}

int main(void)
{
	static char hello[10 + 60];
	int express, side, other, probe, packet, n;
	char buf[2048];

	own_network();
	express = open_tap("tap0", true);
	side = open_tap("tap0", true);
	other = open_tap("tap0", true);
	probe = open_tap("tap0", true);
	make_network();
	set_sndbuf(express, SMALL);
	detach(side);
	detach(other);
	set_sndbuf(express, TINY);
	detach(probe);
	set_sndbuf(express, BIG);
	address_to(1);
	/* The bridge port needs a moment until it forwards. */
	for (int i = 0; i < 100 && fill(express) == FOREVER; i++)
		usleep(20000);
	n = fill(express);
	fact(n < FOREVER && errno == EAGAIN, "the attached queue is full");
	n = fill(side);
	fact(n > 0, "a detached queue takes frames all the same");
	fact(n < FOREVER && errno == EAGAIN,
	     "until a send buffer of its own is full");
	fact(n <= SMALL / LEN,
	     "whose size is the one set while it was attached, not later");
	fact(ready(probe, POLLOUT, 0) && fill(probe) == 1,
	     "a queue with a send buffer of 4 bytes takes one frame, not two");
	fact(!ready(probe, POLLOUT, 0),
	     "and is not writable while that waits in the host");
	address_to(2);
	fact(fill(other) > 0,
	     "a third queue is not full while both others are");
	fact(!ready(side, POLLOUT, 0) && ready(side, POLLOUT, 2000),
	     "a detached queue becomes writable when it has drained");
	fact(ready(probe, POLLOUT, 2000), "but as soon as it has left");
	packet = open_packet("tap0");
	memset(hello + 10, 2, 12);
	for (int i = 0; i < 50; i++)
		if (write(packet, hello, sizeof(hello)) != sizeof(hello))
			broken("send");
	for (n = 0; read(express, buf, sizeof(buf)) > 0; n++)
		;
	fact(n >= 50, "what the host sends comes to the attached queue");
	fact(read(side, buf, sizeof(buf)) < 0 &&
		     read(other, buf, sizeof(buf)) < 0,
	     "and never to a detached one");
	return facts_status();
}
