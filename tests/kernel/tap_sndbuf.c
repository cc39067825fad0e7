/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Back-pressure: packets that a queueing discipline holds stay charged to the
 * tap that wrote them, until its send buffer is full.
 */
#include <errno.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kernel.h"

static char frame[12 + 1442];

static int fill(int tap)
{
	int n = 0;

	while (n < 5000 && write(tap, frame, sizeof(frame)) > 0)
		n++;
	return n;
}

int main(void)
{
	int sndbuf = 200000, tap, n;

	own_network();
	tap = open_tap("tap0", false);
	command("ip link add br0 type bridge && "
		"ip link add v0 type veth peer name v1 && "
		"ip link set tap0 master br0 && ip link set v0 master br0 && "
		"for i in tap0 br0 v0 v1; do ip link set $i up; done && "
		"tc qdisc add dev v0 root tbf rate 10mbit burst 3000 "
		"limit 4000000");
	command("f=/proc/sys/net/bridge/bridge-nf-call-iptables; "
		"[ ! -e $f ] || echo 0 > $f");
	if (ioctl(tap, TUNSETSNDBUF, &sndbuf) < 0)
		broken("TUNSETSNDBUF");
	memset(frame + 12, 2, 6);
	memset(frame + 18, 4, 6);
	frame[24] = (char)0x88;
	frame[25] = (char)0xb5;
	/* The bridge port needs a moment until it forwards. */
	for (int i = 0; i < 100 && (n = fill(tap)) == 5000; i++)
		usleep(20000);
	fact(n < 5000 && errno == EAGAIN,
	     "with its send buffer full a tap answers EAGAIN");
	fact(n <= sndbuf / 1442, "before it took more than the limit");
	fact(!ready(tap, POLLOUT, 0), "it is not writable then");
	fact(ready(tap, POLLOUT, 2000), "it becomes writable by itself");
	n = fill(tap);
	fact(n > 10 && n < 5000,
	     "and then takes many, since it waited until it was half empty");
	return facts_status();
}
