/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tap that is down, deleted, detached; a frame larger than the buffer. What
 * vl_io_verdict() and the receiveq make of the answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kernel.h"

static char frame[12 + 60];

static int send_tap(int tap)
{
	return write(tap, frame, sizeof(frame)) < 0 ? -errno : 0;
}

static void send_packet(int packet, size_t len)
{
	static char buf[10 + 1500];

	memcpy(buf + 10, frame + 12, 14);
	if (write(packet, buf, 10 + len) != (ssize_t)(10 + len))
		broken("send");
}

static int set_queue(int tap, short flag)
{
	struct ifreq ifr = { .ifr_flags = flag };

	return ioctl(tap, TUNSETQUEUE, &ifr) < 0 ? -errno : 0;
}

static void large_frames(int tap, int packet)
{
	char small[100], more[2000];
	struct iovec iov[2] = { { small, sizeof(small) },
				{ more, sizeof(more) } };

	send_packet(packet, 500);
	send_packet(packet, 61);
	fact(read(tap, small, sizeof(small)) == sizeof(small),
	     "a frame that is larger than the buffer is cut, without a word");
	fact(read(tap, more, sizeof(more)) == 73, "and its rest is gone");
	send_packet(packet, 500);
	fact(readv(tap, iov, 2) == 512, "a list of buffers takes it whole");
}

static void detached_queues(void)
{
	int a = open_tap("tap1", true), b = open_tap("tap1", true), packet;
	char buf[200];

	command("ip link set tap1 up");
	packet = open_packet("tap1");
	fact(set_queue(b, IFF_DETACH_QUEUE) == 0,
	     "a tap queue can be detached");
	for (int i = 0; i < 50; i++)
		send_packet(packet, 60);
	for (int i = 0; i < 50; i++)
		if (read(a, buf, sizeof(buf)) != 72)
			broken("read");
	fact(read(b, buf, sizeof(buf)) < 0,
	     "a detached queue gets no frames, the others get them all");
	fact(send_tap(b) == 0, "it still takes frames for the host");
	fact(set_queue(b, IFF_ATTACH_QUEUE) == 0 && send_tap(b) == 0,
	     "it can be attached again");
	send_packet(packet, 60);
	set_queue(a, IFF_DETACH_QUEUE);
	set_queue(b, IFF_DETACH_QUEUE);
	set_queue(a, IFF_ATTACH_QUEUE);
	set_queue(b, IFF_ATTACH_QUEUE);
	fact(read(a, buf, sizeof(buf)) < 0 && read(b, buf, sizeof(buf)) < 0,
	     "what waits in a queue is lost when it is detached");
	close(packet);
	close(a);
	close(b);
}

int main(void)
{
	char buf[200];
	int tap, packet;

	own_network();
	memset(frame + 12, 2, 12);
	frame[24] = (char)0x88;
	frame[25] = (char)0xb5;
	tap = open_tap("tap0", false);
	fact(send_tap(tap) == -EIO, "a tap that is down answers EIO");
	fact(!ready(tap, POLLOUT, 0), "and is not writable to poll");
	command("ip link set tap0 up");
	fact(ready(tap, POLLOUT, 1000), "it is as soon as it is up");
	packet = open_packet("tap0");
	fact(send_tap(tap) == 0, "up, it takes frames");
	fact(read(tap, buf, sizeof(buf)) < 0 && errno == EAGAIN,
	     "empty, a non-blocking read answers EAGAIN");
	large_frames(tap, packet);
	command("ip link del tap0");
	fact(send_tap(tap) == -EBADFD, "deleted, it answers EBADFD to a write");
	fact(read(tap, buf, sizeof(buf)) < 0 && errno == EBADFD,
	     "and to a read");
	fact(ready(tap, 0, 0), "and poll says so without being asked");
	detached_queues();
	return facts_status();
}
