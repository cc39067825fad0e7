/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TUNSETOFFLOAD decides what a tap delivers: unsegmented frames with partial
 * checksums, or finished ones. It follows from the driver's features.
 */
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kernel.h"

#define FRAME 5000u

/* A TCP/IPv4 frame of FRAME bytes with a partial checksum, to be segmented. */
static void send_tso(int packet)
{
	static uint8_t buf[10 + FRAME];
	struct virtio_net_hdr hdr = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = 54,
		.gso_size = 1448,
		.csum_start = 34,
		.csum_offset = 16,
	};
	uint8_t *f = buf + 10;

	memcpy(buf, &hdr, sizeof(hdr));
	memset(f, 2, 12);
	memcpy(f + 12, "\x08\x00\x45\x00", 4);
	f[16] = (FRAME - 14) >> 8;
	f[17] = (FRAME - 14) & 0xff;
	memcpy(f + 20, "\x40\x00\x40\x06", 4);
	memcpy(f + 26, "\xc0\x00\x02\x01\xc0\x00\x02\x02", 8);
	f[46] = 0x50;
	f[47] = 0x10;
	if (write(packet, buf, sizeof(buf)) != sizeof(buf))
		broken("send");
}

/* Reads all there is: number of frames, the longest one, the flags. */
static int receive(int tap, uint32_t *longest, uint8_t *flags)
{
	static uint8_t buf[70000];
	ssize_t len;
	int n = 0;

	*longest = 0;
	*flags = 0;
	while (ready(tap, 1 /* POLLIN */, 100) &&
	       (len = read(tap, buf, sizeof(buf))) > 12) {
		if ((uint32_t)len - 12 > *longest)
			*longest = (uint32_t)len - 12;
		*flags |= buf[0];
		n++;
	}
	return n;
}

int main(void)
{
	uint32_t longest;
	uint8_t flags;
	int tap, packet, n;

	own_network();
	tap = open_tap("tap0", false);
	command("ip link set tap0 up");
	packet = open_packet("tap0");

	if (ioctl(tap, TUNSETOFFLOAD, 0UL) < 0)
		broken("TUNSETOFFLOAD");
	send_tso(packet);
	n = receive(tap, &longest, &flags);
	fact(n == 4 && longest <= 1514,
	     "without offloads a large TCP frame comes in segments of the MTU");
	fact(flags == 0, "with finished checksums");

	if (ioctl(tap, TUNSETOFFLOAD, (unsigned long)TUN_F_CSUM) < 0)
		broken("TUNSETOFFLOAD");
	send_tso(packet);
	n = receive(tap, &longest, &flags);
	fact(n == 4, "with TUN_F_CSUM alone it is still segmented");

	if (ioctl(tap, TUNSETOFFLOAD,
		  (unsigned long)(TUN_F_CSUM | TUN_F_TSO4)) < 0)
		broken("TUNSETOFFLOAD");
	send_tso(packet);
	n = receive(tap, &longest, &flags);
	fact(n == 1 && longest == FRAME, "with TUN_F_TSO4 it comes whole");
	fact(flags & VIRTIO_NET_HDR_F_NEEDS_CSUM, "with a partial checksum");
	return facts_status();
}
