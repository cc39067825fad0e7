/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From datagrams of a real UDP socket to frames. Trains and segmented frames of
 * UDP are made with UDP_SEGMENT: lo hands them over as they are, if the receiver
 * takes them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/vxlan_rx.h"
#include "base/uapi.h"
#include "base/util.h"
#include "vxlan_frames.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define OPS   256u
#define TAG   (1ULL << 32)
#define MAX   64u
#define ROOM  70000u
#define HDR   12u
#define AGAIN (-EAGAIN)
#define MTU   1450u

static struct vl_io *io;
static struct vl_vxlan_fdb *fdb;
static struct vl_vxlan_rx *rx;
static struct vl_tunnel_counters counters;
static struct sockaddr_in to;
static int receiver, sender;

/* A receiveq: its requests and what came of them. */
static uint8_t memory[MAX][ROOM];
static int results[MAX + 1];
static unsigned int answers[MAX + 1];
/* What was dropped in between leaves its request without a frame. */
static bool holes;
/* Of the frames of a train. */
static enum vf_csum train_csum;

static const struct vl_offload takes_nothing = { .hdr_len = HDR };
static const struct vl_offload takes_all = {
	.hdr_len = HDR,
	.csum = true,
	.tso4 = true,
	.tso6 = true,
	.ecn = true,
	.uso4 = true,
	.uso6 = true,
};

static int bound(const char *address, uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	inet_pton(AF_INET, address, &sa.sin_addr);
	assert_return_code(fd, errno);
	assert_return_code(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), errno);
	return fd;
}

static int setup(void **state)
{
	enum vl_io_engine engine = *(enum vl_io_engine *)*state;
	struct vl_vxlan_rx_config config = { .vni = VF_VNI, .mtu = MTU };
	struct vl_ip ip;
	socklen_t len = sizeof(to);
	int big = 4 << 20;

	memset(&counters, 0, sizeof(counters));
	holes = false;
	train_csum = VF_FULL;
	receiver = bound("127.0.0.1", 0);
	sender = bound("127.0.0.1", 0);
	if (vl_vxlan_rx_socket(receiver, VF_VNI))
		return -1;
	(void)setsockopt(receiver, SOL_SOCKET, SO_RCVBUFFORCE, &big,
			 sizeof(big));
	(void)setsockopt(sender, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof(big));
	getsockname(receiver, (struct sockaddr *)&to, &len);
	if (vl_vxlan_fdb_new(0, &fdb) || vl_ip_parse("127.0.0.1", &ip) ||
	    vl_vxlan_fdb_remote(fdb, &ip))
		return -1;
	vl_vxlan_fdb_set_flood(fdb, 0, true);
	config.fdb = fdb;
	config.fd = receiver;
	config.counters = &counters;
	if (vl_io_new(engine, OPS, &io) || vl_io_start(io) ||
	    vl_vxlan_rx_new(&config, &rx) || vl_vxlan_rx_start(rx, io, TAG))
		return -1;
	vl_vxlan_rx_set_offload(rx, &takes_nothing);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	vl_vxlan_rx_stop(rx, io);
	vl_vxlan_rx_free(rx);
	vl_vxlan_fdb_free(fdb);
	vl_io_free(io);
	close(receiver);
	close(sender);
	return 0;
}

static void on_answer(void *ctx, const struct vl_io_event *ev)
{
	unsigned int *n = ctx;

	assert_in_range(ev->tag, 0, MAX);
	results[ev->tag] = ev->res;
	answers[ev->tag]++;
	(*n)++;
}

static void on_event(const struct vl_io_event *ev, unsigned int *n)
{
	if (ev->tag >= TAG)
		vl_vxlan_rx_complete(rx, io, ev, on_answer, n);
	else
		on_answer(n, ev);
}

/* Offers @n requests of @room bytes, in pieces of @piece; returns how many got a
 * frame: the first ones. */
static unsigned int receive_into(unsigned int n, uint32_t room, uint32_t piece)
{
	static struct iovec iov[MAX][8];
	unsigned int answered = 0, got = 0;

	memset(answers, 0, sizeof(answers));
	for (unsigned int i = 0; i < n; i++) {
		struct vl_frame f = { .iov = iov[i], .tag = i };

		memset(memory[i], 0xee, room + 1);
		for (uint32_t at = 0; at < room; at += piece)
			iov[i][f.n++] =
				(struct iovec){ memory[i] + at,
						vl_min_u32(piece, room - at) };
		vl_vxlan_rx_recv(rx, io, &f);
	}
	vl_vxlan_rx_flush(rx, io);
	/* Lists are needed until here only. */
	vl_io_submit(io);
	memset(iov, 0, sizeof(iov));
	for (unsigned int i = 0; i < 10 && answered < n; i++) {
		struct vl_io_event ev[OPS];
		unsigned int events;

		vl_io_wait(io, 0);
		events = vl_io_reap(io, ev, OPS);
		for (unsigned int e = 0; e < events; e++)
			on_event(&ev[e], &answered);
	}
	assert_int_equal(answered, n);
	for (unsigned int i = 0; i < n; i++)
		got += results[i] > 0;
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(answers[i], 1);
		assert_int_equal(memory[i][room], 0xee);
		if (!holes)
			assert_int_equal(results[i] > 0, i < got);
	}
	return got;
}

static unsigned int receive(unsigned int n)
{
	return receive_into(n, ROOM - 1, ROOM);
}

/* At most one says that there is no more. */
static void expect_empty(unsigned int from, unsigned int n)
{
	assert_int_equal(results[from], AGAIN);
	for (unsigned int i = from + 1; i < n; i++)
		assert_int_equal(results[i], -ECANCELED);
}

static void send_from(int fd, const void *data, size_t len, int segment)
{
	assert_int_equal(setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment,
				    sizeof(segment)),
			 0);
	assert_int_equal(
		sendto(fd, data, len, 0, (struct sockaddr *)&to, sizeof(to)),
		len);
}

static void send_frame(const struct vf_frame *f)
{
	static uint8_t data[ROOM];

	send_from(sender, data, vf_datagram(f, VF_VNI, data), 0);
}

static struct vf_frame udp(unsigned int id, uint32_t payload)
{
	return (struct vf_frame){
		.id = (uint16_t)id,
		.payload = payload,
		.csum = VF_FULL,
	};
}

/* A train of frames with these numbers; number @alien has another VNI. */
static void send_train(unsigned int first, unsigned int n, uint32_t payload,
		       unsigned int alien)
{
	static uint8_t data[ROOM];
	uint32_t len = 0, size = 0;

	for (unsigned int i = 0; i < n; i++) {
		/* The last one is shorter. */
		struct vf_frame f = udp(first + i, payload - (i == n - 1));

		f.csum = train_csum;
		len += vf_datagram(&f, first + i == alien ? 99 : VF_VNI,
				   data + len);
		size = size ? size : len;
	}
	send_from(sender, data, len, (int)size);
}

static const struct virtio_net_hdr *header(unsigned int i)
{
	return (const struct virtio_net_hdr *)(const void *)memory[i];
}

static unsigned int id_of(unsigned int i)
{
	return (unsigned int)memory[i][HDR + 10] << 8 | memory[i][HDR + 11];
}

/* Request @i has just this frame, ready for a driver that takes nothing. */
static void expect_frame(unsigned int i, struct vf_frame f)
{
	static const struct virtio_net_hdr none;
	static uint8_t data[ROOM];
	uint32_t len;

	if (f.csum == VF_PARTIAL)
		f.csum = VF_FULL;
	len = vf_frame(&f, data);
	assert_int_equal(results[i], HDR + len);
	assert_memory_equal(header(i), &none, sizeof(none));
	assert_memory_equal(memory[i] + HDR, data, len);
}

static void one_frame_each(void **state)
{
	static const struct vf_frame f[] = {
		{ .id = 1, .payload = 100, .csum = VF_FULL },
		{ .id = 2, .payload = 1472, .csum = VF_FULL, .ipv6 = true },
		{ .id = 3, .payload = 0, .csum = VF_FULL, .tcp = true },
		{ .id = 4, .payload = 99, .csum = VF_BAD },
	};

	(void)state;
	assert_int_equal(receive(5), 0);
	expect_empty(0, 5);
	for (unsigned int i = 0; i < VL_ARRAY_SIZE(f); i++)
		send_frame(&f[i]);
	assert_int_equal(receive(6), 4);
	for (unsigned int i = 0; i < VL_ARRAY_SIZE(f); i++)
		expect_frame(i, f[i]);
	expect_empty(4, 6);
	assert_int_equal(counters.learned, 4);
	assert_int_equal(counters.csum_completed, 0);
	/* In pieces, the virtio header across two of them. */
	for (unsigned int i = 0; i < VL_ARRAY_SIZE(f); i++)
		send_frame(&f[i]);
	assert_int_equal(receive_into(4, 2000, 300), 4);
	for (unsigned int i = 0; i < VL_ARRAY_SIZE(f); i++)
		expect_frame(i, f[i]);
	send_frame(&f[0]);
	assert_int_equal(receive_into(4, 55, 7), 1);
	assert_int_equal(results[0], HDR + 42 + 100);
}

/* More than there are reads, then more than there are requests. */
static void many(void **state)
{
	unsigned int got;

	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		send_frame(&(struct vf_frame){ .id = (uint16_t)i,
					       .payload = 200 });
	for (unsigned int i = 0; i < 100; i += got) {
		got = receive(MAX);
		assert_in_range(got, 1, MAX);
		for (unsigned int k = 0; k < got; k++)
			assert_int_equal(id_of(k), i + k);
	}
	assert_int_equal(receive(3), 0);
	expect_empty(0, 3);
}

static void partial_checksums(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vf_frame f = {
			.tcp = i & 1,
			.ipv6 = i & 2,
			.id = (uint16_t)i,
			.payload = 101 + i / 4,
		};

		vl_vxlan_rx_set_offload(rx, &takes_nothing);
		send_frame(&f);
		assert_int_equal(receive_into(1, 2000, 333), 1);
		expect_frame(0, f);
		assert_int_equal(counters.csum_completed, i + 1);

		vl_vxlan_rx_set_offload(rx, &takes_all);
		send_frame(&f);
		assert_int_equal(receive(1), 1);
		assert_int_equal(header(0)->flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
		assert_int_equal(header(0)->csum_start, f.ipv6 ? 54 : 34);
		assert_int_equal(header(0)->csum_offset, f.tcp ? 16 : 6);
		assert_int_equal(header(0)->gso_type, 0);
		assert_int_equal(counters.csum_completed, i + 1);
	}
}

/* A batch with trains in it, read in both ways; order holds. */
static void trains(void **state)
{
	unsigned int next = 10;

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		struct vf_frame f = udp(1, 50);

		send_frame(&f);
		send_train(10, 7, 1000, 0);
		f = udp(17, 60);
		send_frame(&f);
		send_train(18, 40, 900, 0);
		send_train(58, 2, 30, 0);
		assert_int_equal(receive(8), 8);
		expect_frame(0, udp(1, 50));
		for (unsigned int i = 1; i < 7; i++)
			expect_frame(i, udp(9 + i, 1000));
		expect_frame(7, udp(16, 999));
		for (next = 17; next < 60;) {
			unsigned int got = receive(5);

			assert_in_range(got, 1, 5);
			for (unsigned int i = 0; i < got; i++, next++)
				assert_int_equal(id_of(i), next);
		}
		assert_int_equal(receive(5), 0);
		expect_empty(0, 5);
		assert_int_equal(counters.trains, 3 * (round + 1));
		assert_int_equal(counters.train_frames, 49 * (round + 1));
	}
	/* Direct again after a while, and still right. */
	for (unsigned int i = 0; i < 200; i++) {
		struct vf_frame f = udp(i, 100);

		send_frame(&f);
		assert_int_equal(receive(2), 1);
		expect_frame(0, f);
	}
}

static void partial_checksums_in_trains(void **state)
{
	(void)state;
	train_csum = VF_PARTIAL;
	for (unsigned int round = 0; round < 4; round++) {
		bool takes = round & 1;

		vl_vxlan_rx_set_offload(rx,
					takes ? &takes_all : &takes_nothing);
		send_train(1, 3, 501, 0);
		assert_int_equal(receive(4), 3);
		for (unsigned int i = 0; i < 3; i++) {
			if (!takes)
				expect_frame(i, udp(1 + i, 501 - (i == 2)));
			else
				assert_int_equal(header(i)->flags,
						 VIRTIO_NET_HDR_F_NEEDS_CSUM);
			assert_int_equal(header(i)->csum_start, takes ? 34 : 0);
		}
	}
	assert_int_equal(counters.csum_completed, 6);
}

/* Few reads, as each may be a train; many again when there were none. */
static void reads_follow_what_comes(void **state)
{
	struct vf_frame f = udp(1, 10);

	(void)state;
	send_train(1, 3, 500, 0);
	assert_int_equal(receive(8), 3);
	for (unsigned int i = 0; i < 80; i++)
		send_frame(&f);
	for (unsigned int i = 0; i < 16; i++)
		assert_int_equal(receive(10), 4);
	assert_int_equal(receive(10), 10);
}

static void train_in_small_requests(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 2; round++) {
		send_train(1, 4, 1000, 0);
		/* The receiveq drops what does not fit; the next one does. */
		assert_int_equal(receive_into(2, 500, 100), 2);
		assert_int_equal(results[0], HDR + 42 + 1000);
		assert_int_equal(results[1], HDR + 42 + 1000);
		assert_int_equal(receive_into(1, 2000, 300), 1);
		expect_frame(0, udp(3, 1000));
		assert_int_equal(receive_into(2, 2000, 2000), 1);
		expect_frame(0, udp(4, 999));
	}
	/* The same for single ones. */
	for (unsigned int i = 0; i < 70; i++) {
		struct vf_frame f = udp(i, 1000);

		send_frame(&f);
		assert_int_equal(receive_into(1, 500, 100), 1);
		assert_int_equal(results[0], HDR + 42 + 1000);
	}
}

static void strangers_among(void **state)
{
	struct vf_frame f = udp(1, 100);
	uint8_t data[4096];
	int stranger = bound("127.0.0.2", 0);

	(void)state;
	/* Another VNI in the middle of a train; in front, the filter sees it. */
	send_train(1, 5, 500, 3);
	assert_int_equal(receive(8), 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(id_of(i), i < 2 ? i + 1 : i + 2);
	assert_int_equal(counters.drop_vni, 1);
	for (unsigned int n = 0; n < 2; n++) {
		send_from(sender, data, vf_datagram(&f, 99, data), 0);
		send_from(sender, data, vf_datagram(&f, VF_VNI | 1, data), 0);
		vf_datagram(&f, VF_VNI, data);
		data[0] = 0xf7; /* all but the I flag */
		send_from(sender, data, 142, 0);
		send_from(sender, data, 3, 0);
		send_from(sender, data, 0, 0);
		assert_int_equal(receive(1), 0);
		expect_empty(0, 1);
		/* Reserved bits do not matter. */
		vf_datagram(&f, VF_VNI, data);
		data[0] = data[1] = data[7] = 0xff;
		send_from(sender, data, 150, 0);
		assert_int_equal(receive(3), 1);
		expect_frame(0, f);

		send_frame(&f);
		vf_datagram(&f, VF_VNI, data);
		send_from(stranger, data, 150, 0);
		send_from(sender, data, 21, 0);
		send_from(sender, data, 22, 0);
		holes = true;
		assert_int_equal(receive(2) + receive(4), 2);
		holes = false;
		/* Direct for the second time. */
		for (unsigned int i = 0; i < 70; i++) {
			send_frame(&f);
			assert_int_equal(receive(1), 1);
		}
		assert_int_equal(counters.drop_peer, n + 1);
		assert_int_equal(counters.drop_short, n + 1);
	}
	/* Without the filter. */
	assert_int_equal(setsockopt(receiver, SOL_SOCKET, SO_DETACH_FILTER,
				    &stranger, sizeof(stranger)),
			 0);
	send_from(sender, data, vf_datagram(&f, 99, data), 0);
	assert_int_equal(receive(1), 0);
	assert_int_equal(counters.drop_vni, 2);
	/* No longer a remote. */
	vl_vxlan_fdb_set_flood(fdb, 0, false);
	send_frame(&f);
	assert_int_equal(receive(1), 0);
	assert_int_equal(counters.drop_peer, 3);
	close(stranger);
}

/* Sends a frame that was not segmented. */
static void send_super(const struct vf_frame *f, int gso_size)
{
	static uint8_t data[ROOM];

	send_from(sender, data, vf_datagram(f, VF_VNI, data), gso_size);
}

static void super_frames_as_they_are(void **state)
{
	(void)state;
	vl_vxlan_rx_set_offload(rx, &takes_all);
	for (unsigned int i = 0; i < 16; i++) {
		struct vf_frame f = {
			.tcp = i & 1,
			.ipv6 = i & 2,
			.cwr = i & 4,
			.id = (uint16_t)i,
			.payload = 28000,
			/* Whatever it is: the segments get their own. */
			.csum = i & 4 && !(i & 1) ? VF_BAD : VF_PARTIAL,
		};
		uint32_t head = vf_head(&f),
			 size = f.tcp ? MTU + 14 - head : 1300;
		const struct virtio_net_hdr *h = header(0);
		unsigned int type = VIRTIO_NET_HDR_GSO_UDP_L4;
		static uint8_t data[ROOM];

		if (f.tcp)
			type = (f.ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6
				       : VIRTIO_NET_HDR_GSO_TCPV4) |
			       (f.cwr ? VIRTIO_NET_HDR_GSO_ECN : 0u);
		/* Then by copy. */
		if (i == 8) {
			send_train(1, 2, 100, 0);
			assert_int_equal(receive(2), 2);
		}
		send_super(&f, f.tcp ? 0 : (int)size);
		assert_int_equal(receive(2), 1);
		assert_int_equal(results[0], HDR + head + f.payload);
		assert_int_equal(h->gso_type, type);
		assert_int_equal(h->gso_size, size);
		assert_int_equal(h->hdr_len, head);
		assert_int_equal(h->flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
		assert_int_equal(h->csum_start, f.ipv6 ? 54 : 34);
		f.csum = VF_PARTIAL;
		vf_frame(&f, data);
		assert_memory_equal(memory[0] + HDR, data, head + f.payload);
		assert_int_equal(counters.superframes, i + 1);
	}
	assert_int_equal(counters.segmented, 0);
	assert_int_equal(counters.trains, 1);
}

/* Checks the segment in request @i and returns its payload. */
static uint32_t check_segment(unsigned int i, const struct vf_frame *f,
			      uint32_t done, bool completed)
{
	const uint8_t *frame = memory[i] + HDR;
	uint32_t head = vf_head(f);
	uint32_t len = (uint32_t)results[i] - HDR;

	assert_in_range(len, head + 1, MTU + 14);
	assert_int_equal(header(i)->gso_type, 0);
	if (completed) {
		assert_int_equal(header(i)->flags, 0);
		assert_int_equal(vf_verify(f, frame, len), 0);
	} else {
		assert_int_equal(header(i)->flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	}
	for (uint32_t b = done ? 0 : 2; b < len - head; b++)
		if (frame[head + b] != vf_byte(done + b))
			fail_msg("byte %u is wrong", done + b);
	return len - head;
}

static void super_frames_cut(void **state)
{
	struct vl_offload csum_only = { .hdr_len = HDR, .csum = true };

	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct vf_frame f = {
			.tcp = i & 1,
			.ipv6 = i & 2,
			.id = (uint16_t)i,
			.payload = 28001,
		};
		struct vf_frame after = udp(77, 100);
		bool completed = i & 4;
		uint32_t done = 0;

		vl_vxlan_rx_set_offload(rx, completed ? &takes_nothing
						      : &csum_only);
		send_super(&f, f.tcp ? 0 : 1300);
		send_frame(&after);
		/* Over many requests, and a stop. */
		while (done < f.payload) {
			unsigned int got = receive(3);

			assert_in_range(got, 1, 3);
			for (unsigned int k = 0; k < got && done < f.payload;
			     k++) {
				done += check_segment(k, &f, done, completed);
				if (done == f.payload && k + 1 < got)
					expect_frame(k + 1, after);
			}
			vl_vxlan_rx_stop(rx, io);
			assert_int_equal(vl_vxlan_rx_start(rx, io, TAG), 0);
		}
		assert_int_equal(done, f.payload);
		while (receive(3))
			expect_frame(0, after);
		assert_int_equal(counters.segmented, i + 1);
		assert_int_equal(counters.superframes, i + 1);
	}
}

/* The payload of a super-frame pretends that a train goes on. */
static void payload_is_no_train(void **state)
{
	static uint8_t data[ROOM];
	struct vf_frame f = { .id = 1, .payload = 5200 };
	struct vf_frame forged = udp(666, 100);
	uint32_t len = vf_datagram(&f, VF_VNI, data);
	unsigned int got;

	(void)state;
	vf_datagram(&forged, VF_VNI, data + 1300);
	send_from(sender, data, len, 1300);
	got = receive(8);
	assert_int_equal(got, 4);
	for (unsigned int i = 0; i < got; i++)
		assert_int_equal(id_of(i), 1);
	assert_int_equal(counters.learned, 1);
	assert_int_equal(counters.trains, 0);
	/* Not what the kernel says, and not to be cut. */
	data[8 + 14 + 9] = 1;
	send_from(sender, data, len, 1300);
	assert_int_equal(receive(8), 0);
	assert_int_equal(counters.drop_uncut, 1);
}

static void leftovers(void **state)
{
	struct vl_offload short_hdr = { .hdr_len = 10 };

	(void)state;
	send_train(1, 10, 100, 0);
	assert_int_equal(receive(2), 2);
	vl_vxlan_rx_stop(rx, io);
	assert_int_equal(vl_vxlan_rx_start(rx, io, TAG), 0);
	/* What follows has the new form. */
	vl_vxlan_rx_set_offload(rx, &short_hdr);
	send_train(50, 3, 100, 0);
	assert_int_equal(receive(1), 1);
	assert_int_equal(results[0], 10 + 142);
	assert_int_equal(memory[0][10 + 11], 3);
	vl_vxlan_rx_set_offload(rx, &takes_nothing);
	assert_int_equal(receive(MAX), 10);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(id_of(i), i < 7 ? 4 + i : 43 + i);
}

/* Guest memory that is gone: the one request fails, others do not. */
static void bad_memory(void **state)
{
	static uint8_t room[200];
	struct iovec iov[2] = { { room, HDR }, { (void *)16, 1000 } };
	struct vl_frame f = { .iov = iov, .n = 2, .tag = 0 };
	struct vf_frame frame = udp(1, 100);
	unsigned int answered = 0;
	struct vl_io_event ev[4];
	unsigned int n;

	(void)state;
	send_frame(&frame);
	vl_vxlan_rx_recv(rx, io, &f);
	vl_vxlan_rx_flush(rx, io);
	vl_io_wait(io, 0);
	n = vl_io_reap(io, ev, 4);
	for (unsigned int i = 0; i < n; i++)
		on_event(&ev[i], &answered);
	assert_int_equal(answered, 1);
	assert_int_equal(results[0], -EFAULT);
	send_frame(&frame);
	assert_int_equal(receive(1), 1);
}

/* Too many requests, or pieces, are not tried; nothing is lost. */
static void too_much(void **state)
{
	static struct iovec iov[1024];
	static uint8_t room[1024][2];
	struct vl_frame f = { .iov = iov, .n = 1024 };
	struct vf_frame frame = udp(5, 500);
	unsigned int answered = 0, frames = 0;
	struct vl_io_event ev;

	(void)state;
	for (unsigned int i = 0; i < 1024; i++)
		iov[i] = (struct iovec){ room[i], 2 };
	send_frame(&frame);
	for (unsigned int i = 0; i < 6; i++) {
		f.tag = i;
		vl_vxlan_rx_recv(rx, io, &f);
	}
	vl_vxlan_rx_flush(rx, io);
	for (unsigned int round = 0; round < 4; round++) {
		vl_io_wait(io, 0);
		while (vl_io_reap(io, &ev, 1))
			on_event(&ev, &answered);
	}
	assert_int_equal(answered, 6);
	for (unsigned int i = 0; i < 6; i++)
		frames += results[i] > 0;
	assert_int_equal(frames, 1);
	assert_int_equal(results[0], HDR + 542);
	assert_int_equal(room[HDR / 2 + 5][1], 5);
	assert_int_equal(results[5], -ECANCELED);
	f.n = 1;
	for (f.tag = 0; f.tag <= MAX; f.tag++)
		vl_vxlan_rx_recv(rx, io, &f);
	answered = 0;
	while (vl_io_reap(io, &ev, 1))
		on_event(&ev, &answered);
	assert_int_equal(answered, 1);
	assert_int_equal(results[MAX], -ECANCELED);
}

#define T(f)                                                                   \
	cmocka_unit_test_prestate_setup_teardown(f, setup, teardown,           \
						 &engines[i])

int main(void)
{
	static enum vl_io_engine engines[] = { VL_IO_URING, VL_IO_SYNC };
	int status = 0;

	for (unsigned int i = 0; i < VL_ARRAY_SIZE(engines); i++) {
		const char *why;
		const struct CMUnitTest tests[] = {
			T(one_frame_each),
			T(many),
			T(partial_checksums),
			T(trains),
			T(partial_checksums_in_trains),
			T(reads_follow_what_comes),
			T(train_in_small_requests),
			T(strangers_among),
			T(super_frames_as_they_are),
			T(super_frames_cut),
			T(payload_is_no_train),
			T(leftovers),
			T(bad_memory),
			T(too_much),
		};

		if (vl_io_choose(engines[i], &why) < 0) {
			printf("engine uring: %s\n", why);
			continue;
		}
		printf("engine %s\n", i ? "sync" : "uring");
		status |= cmocka_run_group_tests(tests, NULL, NULL);
	}
	return status;
}
