/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends without a copy, by io_uring. When memory may be given back, and what can
 * be sent so at all: why net/tx_zcopy.c waits for a second event, why
 * lane/zcopy.c counts pieces, and what base/io_uring.c knows of sends that were
 * cancelled.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/uapi.h"
#include "kernel.h"

#define PAGE   4096u
#define PIECES 46u /* one more than any kernel can be built for */
#define HELD   40u

static struct io_uring ring;
static char *mem; /* PIECES pages */

/* What came of a send: its first event, and its second one. */
struct outcome {
	int res;
	bool first, more, released, copied;
	long released_ms;
};
static struct outcome out[HELD];

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Takes events for @ms. */
static void events(int ms)
{
	long end = now_ms() + ms;

	while (now_ms() < end) {
		struct __kernel_timespec ts = { 0, 1000000 };
		struct io_uring_cqe *cqe;
		struct outcome *o;

		if (io_uring_wait_cqe_timeout(&ring, &cqe, &ts))
			continue;
		o = &out[cqe->user_data];
		if (cqe->flags & IORING_CQE_F_NOTIF) {
			o->released = o->first;
			o->copied = (uint32_t)cqe->res &
				    IORING_NOTIF_USAGE_ZC_COPIED;
			o->released_ms = now_ms();
		} else {
			o->first = true;
			o->res = cqe->res;
			o->more = cqe->flags & IORING_CQE_F_MORE;
		}
		io_uring_cqe_seen(&ring, cqe);
	}
}

static void send_zc(int fd, unsigned int id, const struct msghdr *msg,
		    unsigned int flags)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	out[id] = (struct outcome){ 0 };
	io_uring_prep_sendmsg_zc(sqe, fd, msg, MSG_DONTWAIT);
	sqe->ioprio |= IORING_SEND_ZC_REPORT_USAGE;
	sqe->flags |= flags;
	sqe->user_data = id;
}

/* Sends @n pieces of @len bytes, each in a page of its own. */
static int send_pieces(int fd, unsigned int n, size_t len)
{
	struct iovec iov[PIECES];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };

	for (unsigned int i = 0; i < n; i++)
		iov[i] = (struct iovec){ mem + (size_t)i * PAGE, len };
	send_zc(fd, 0, &msg, 0);
	io_uring_submit(&ring);
	events(50);
	return out[0].res;
}

static int udp_to(const char *addr)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, addr, &to.sin_addr);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		broken("connect");
	return fd;
}

static void one_send(int fd)
{
	struct iovec iov = { mem, 1000 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	send_zc(fd, 0, &msg, 0);
	io_uring_submit(&ring);
	events(50);
	fact(out[0].res == 1000 && out[0].more && out[0].released,
	     "a zero-copy send has two events, first its result, with F_MORE");
	fact(out[0].copied, "through veth the kernel says that it copied");

	iov.iov_len = 70000;
	send_zc(fd, 0, &msg, 0);
	io_uring_submit(&ring);
	events(50);
	fact(out[0].res == -EMSGSIZE && out[0].more && out[0].released,
	     "a failed one has two events as well");
}

static void chain(int fd)
{
	struct iovec iov[2] = { { mem, 70000 }, { mem, 1000 } };
	struct msghdr msg[2] = { { .msg_iov = &iov[0], .msg_iovlen = 1 },
				 { .msg_iov = &iov[1], .msg_iovlen = 1 } };

	send_zc(fd, 0, &msg[1], IOSQE_IO_LINK);
	send_zc(fd, 1, &msg[0], IOSQE_IO_LINK);
	send_zc(fd, 2, &msg[1], IOSQE_IO_LINK);
	send_zc(fd, 3, &msg[1], 0);
	io_uring_submit(&ring);
	events(50);
	fact(out[0].res == 1000 && out[1].res == -EMSGSIZE &&
		     out[2].res == -ECANCELED && out[3].res == -ECANCELED,
	     "a send that fails cancels those that are linked behind it");
	fact(out[2].released && out[3].released,
	     "which have a second event, whether the first one says so or not");
}

/* A byte of the next of our packets that arrives on @packet, -1: none does. */
static int received(int packet)
{
	char frame[2048];

	while (ready(packet, 1, 100)) {
		ssize_t n = recv(packet, frame, sizeof(frame), 0);

		/* Virtio header, Ethernet, IPv4, UDP. */
		if (n == 10 + 14 + 20 + 8 + 1000)
			return frame[10 + 14 + 20 + 8 + 500];
	}
	return -1;
}

static void held(int fd, int packet)
{
	struct iovec iov[HELD];
	struct msghdr msg[HELD];
	long start = now_ms();
	unsigned int n = 0;
	int last = 0, c;

	while (received(packet) >= 0)
		;
	memset(mem, 'a', (size_t)PIECES * PAGE);
	for (unsigned int i = 0; i < HELD; i++) {
		iov[i] = (struct iovec){ mem + (size_t)i * PAGE, 1000 };
		msg[i] = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
		send_zc(fd, i, &msg[i], 0);
	}
	io_uring_submit(&ring);
	events(40);
	for (unsigned int i = 0; i < HELD; i++)
		n += out[i].res == 1000 && !out[i].released;
	fact(n > HELD / 2,
	     "packets that HTB holds were sent, but are not released");
	/* Nobody would do that: it is the guest's memory. */
	for (unsigned int i = 0; i < HELD; i++)
		if (!out[i].released)
			memset(mem + (size_t)i * PAGE, 'b', PAGE);
	events(600);
	for (n = 0; n < HELD && out[n].released; n++)
		;
	fact(n == HELD && out[HELD - 1].released_ms - start > 200,
	     "they are when they have left, one after the other");
	while ((c = received(packet)) >= 0)
		last = c;
	fact(last == 'b', "what is written to their memory before is sent");
}

static void refused(void)
{
	struct iovec iov = { mem, 100 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int tap = open_tap("tap0", false), packet;

	command("ip link set tap0 up");
	packet = open_packet("tap0");
	send_zc(tap, 0, &msg, 0);
	send_zc(packet, 1, &msg, 0);
	io_uring_submit(&ring);
	events(50);
	fact(out[0].res < 0, "a tap refuses them");
	fact(out[1].res == -EOPNOTSUPP, "and so does a packet socket");
	close(tap);
	close(packet);
}

int main(void)
{
	struct io_uring_params p = {
		.flags = IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
	};
	struct io_uring_probe *probe;
	int fd, packet;

	if (io_uring_queue_init_params(128, &ring, &p))
		skip("needs io_uring");
	probe = io_uring_get_probe_ring(&ring);
	if (!probe || !io_uring_opcode_supported(probe, IORING_OP_SENDMSG_ZC))
		skip("needs Linux 6.1");
	io_uring_free_probe(probe);
	mem = mmap(NULL, (size_t)PIECES * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		broken("mmap");
	own_network();
	command("ip link set lo up");
	command("ip link add v0 address 02:00:00:00:00:01 type veth peer "
		"name v1 address 02:00:00:00:00:02");
	command("ip addr add 10.9.9.1/24 dev v0");
	command("ip link set v0 up; ip link set v1 up");
	command("ip neigh add 10.9.9.2 lladdr 02:00:00:00:00:02 dev v0");
	fd = udp_to("10.9.9.2");
	packet = open_packet("v1");

	one_send(fd);
	chain(fd);
	fact(send_pieces(fd, 17, 20) == 17 * 20, "17 pieces can be sent");
	fact(send_pieces(fd, PIECES, 20) == -EMSGSIZE,
	     "too many are refused with EMSGSIZE");
	command("tc qdisc add dev v0 root handle 1: htb default 1");
	command("tc class add dev v0 classid 1:1 htb rate 1mbit burst 2k "
		"cburst 2k");
	held(fd, packet);
	refused();
	io_uring_queue_exit(&ring);
	return facts_status();
}
