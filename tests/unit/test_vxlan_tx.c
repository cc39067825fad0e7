/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames to datagrams: what arrives at sockets on the loopback interface, in how
 * many messages, and what comes back to the sender. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/vxlan_proto.h"
#include "backend/vxlan_tx.h"
#include "base/clock.h"
#include "base/uapi.h"

#define OPS     64u
#define VNI     0x123456u
#define REMOTES 2u
#define HDR     12u
#define TAG     (1ULL << 40)
#define EVENTS  256u
#define GUEST   (1u << 20)
#define SNDBUF  (4 << 20)

static struct vl_io *io;
static struct vl_vxlan_fdb *fdb;
static struct vl_vxlan_tx *tx;
static struct vl_tunnel_counters counters;
static int sender[3]; /* two of the express way, one of a side lane */
static uint32_t gso_segments;
static int remote[REMOTES];
static unsigned int remote_index[REMOTES];
static uint8_t *guest; /* memory that the sender must not write to */
static struct iovec iov[64][4];
static struct vl_io_event event[EVENTS];
static unsigned int n_events;

static int bound(const char *text, uint16_t port)
{
	struct sockaddr_storage sa;
	struct vl_ip ip;
	struct timeval wait = { .tv_usec = 200000 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), size = SNDBUF;

	assert_int_equal(vl_ip_parse(text, &ip), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa,
			      vl_ip_sockaddr(&ip, port, &sa)),
			 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	return fd;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in sa;
	socklen_t len = sizeof(sa);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	return ntohs(sa.sin_port);
}

/* Remote @i has the address 127.0.0.@i + 2, all have one port. */
static void make_remotes(void)
{
	struct vl_ip ip = { .len = 4, .addr = { 127, 0, 0, 2 } };

	remote[0] = bound("127.0.0.2", 0);
	remote[1] = bound("127.0.0.3", port_of(remote[0]));
	for (uint8_t i = 0; i < REMOTES; i++) {
		int index;

		ip.addr[3] = (uint8_t)(i + 2);
		index = vl_vxlan_fdb_remote(fdb, &ip);
		assert_true(index >= 0);
		remote_index[i] = (unsigned int)index;
		vl_vxlan_fdb_set_flood(fdb, remote_index[i], true);
	}
}

static void mac_of(uint8_t mac[6], unsigned int i)
{
	memcpy(mac, "\x02\0\0\0\0", 5);
	mac[5] = (uint8_t)(i + 1);
}

/* With senders of protocol @protocol. */
static int setup_with(void **state, int protocol)
{
	enum vl_io_engine engine = *(enum vl_io_engine *)*state;
	struct vl_vxlan_tx_config config = {
		.vni = VNI,
		.fd = sender,
		.express = 2,
		.ways = 2,
		.sndbuf = SNDBUF,
		.zerocopy = true,
		.gso_segments = &gso_segments,
		.counters = &counters,
	};
	uint8_t mac[6];

	memset(&counters, 0, sizeof(counters));
	n_events = 0;
	gso_segments = VL_VXLAN_SEGMENTS;
	for (int i = 0; i < 3; i++)
		sender[i] = socket(AF_INET, SOCK_DGRAM, protocol);
	if (vl_vxlan_fdb_new(0, &fdb))
		return -1;
	make_remotes();
	for (unsigned int i = 0; i < REMOTES; i++) {
		mac_of(mac, i);
		vl_vxlan_fdb_static_add(fdb, mac, remote_index[i]);
	}
	config.fdb = fdb;
	config.port = port_of(remote[0]);
	guest = mmap(NULL, GUEST, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned int i = 0; i < GUEST; i++)
		guest[i] = (uint8_t)(i * 7 + i / 251);
	if (vl_io_new(engine, OPS, &io) || vl_io_start(io) ||
	    vl_vxlan_tx_new(&config, &tx) || vl_vxlan_tx_start(tx, io, TAG))
		return -1;
	vl_vxlan_tx_set_hdr_len(tx, HDR);
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, 0);
}

/* The kernel segments nothing for UDP-Lite (RFC 3828), as for a route with IPsec. */
static int setup_lite(void **state)
{
	return setup_with(state, IPPROTO_UDPLITE);
}

static int teardown(void **state)
{
	(void)state;
	vl_vxlan_tx_stop(tx, io);
	vl_vxlan_tx_free(tx);
	vl_io_free(io);
	vl_vxlan_fdb_free(fdb);
	for (int i = 0; i < 3; i++)
		close(sender[i]);
	for (unsigned int i = 0; i < REMOTES; i++)
		close(remote[i]);
	munmap(guest, GUEST);
	return 0;
}

static void on_event(void *ctx, const struct vl_io_event *ev)
{
	(void)ctx;
	assert_true(n_events < EVENTS);
	event[n_events++] = *ev;
}

/* Submits, and takes events until @n came for frames. */
static void run(unsigned int n)
{
	struct vl_io_event ev[16];

	vl_vxlan_tx_flush(tx, io);
	vl_io_submit(io);
	for (int i = 0; i < 20 && n_events < n; i++) {
		unsigned int got = vl_io_reap(io, ev, 16);

		for (unsigned int j = 0; j < got; j++) {
			if (ev[j].tag < TAG)
				on_event(NULL, &ev[j]);
			else
				vl_vxlan_tx_complete(tx, &ev[j], on_event,
						     NULL);
		}
		if (!got)
			vl_io_wait(io, 50000000);
	}
	assert_int_equal(n_events, n);
}

/* Sends the frame of @len bytes at @at in guest memory; its header is @hdr. */
static void send_at(unsigned int way, uint64_t tag, uint8_t *at, uint32_t len,
		    const struct virtio_net_hdr *hdr, bool zerocopy)
{
	static uint8_t headers[64][HDR];
	struct iovec *v = iov[tag % 64];
	struct vl_frame f = { .iov = v, .n = 3, .zerocopy = zerocopy };

	memset(headers[tag % 64], 0, HDR);
	if (hdr)
		memcpy(headers[tag % 64], hdr, sizeof(*hdr));
	f.tag = tag;
	v[0] = (struct iovec){ headers[tag % 64], HDR };
	v[1] = (struct iovec){ at, len / 3 };
	v[2] = (struct iovec){ at + len / 3, len - len / 3 };
	vl_vxlan_tx_send(tx, way, io, &f);
}

/* A plain frame for remote @to. */
static uint8_t *frame_at(uint32_t offset, unsigned int to)
{
	uint8_t *f = guest + offset;

	mac_of(f, to);
	mac_of(f + 6, 99);
	f[12] = 0x88;
	f[13] = 0xb5;
	return f;
}

/* What comes to remote @i next: checks the VXLAN header, returns the frame's
 * length, -1 for nothing. */
static int arrives(unsigned int i, uint8_t *frame)
{
	uint8_t buf[70000];
	ssize_t n = recv(remote[i], buf, sizeof(buf), 0);

	if (n < 0)
		return -1;
	assert_true(n >= (ssize_t)VL_VXLAN_HDR);
	assert_true(vl_vxlan_is(buf, VNI));
	memcpy(frame, buf + VL_VXLAN_HDR, (size_t)n - VL_VXLAN_HDR);
	return (int)n - (int)VL_VXLAN_HDR;
}

static void expect(unsigned int i, const uint8_t *want, int len)
{
	uint8_t got[70000];

	assert_int_equal(arrives(i, got), len);
	assert_memory_equal(got, want, (size_t)len);
}

static void expect_silence(void)
{
	uint8_t got[70000];

	for (unsigned int i = 0; i < REMOTES; i++)
		assert_int_equal(
			recv(remote[i], got, sizeof(got), MSG_DONTWAIT), -1);
}

static void frames_of_one_size_are_one_message(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 10; i++)
		send_at(0, i, frame_at(i * 2000, 0), i < 9 ? 1000 : 600, NULL,
			false);
	run(10);
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(event[i].tag, i);
		assert_true(event[i].res >= 0);
		assert_false(event[i].more);
		expect(0, guest + (size_t)i * 2000, i < 9 ? 1000 : 600);
	}
	assert_int_equal(counters.messages, 1);
	assert_int_equal(counters.message_frames, 10);
	expect_silence();
}

static void order_holds_over_sizes(void **state)
{
	static const uint32_t size[] = { 500, 500, 200, 500, 900, 100, 100 };

	(void)state;
	for (unsigned int i = 0; i < 7; i++)
		send_at(0, i, frame_at(i * 2000, 0), size[i], NULL, false);
	run(7);
	for (unsigned int i = 0; i < 7; i++)
		expect(0, guest + (size_t)i * 2000, (int)size[i]);
	/* 500 500 200 | 500 | 900 100 | 100 */
	assert_int_equal(counters.messages, 4);
	expect_silence();
}

static void each_remote_gets_its_own(void **state)
{
	(void)state;
	for (unsigned int way = 0; way < 2; way++) {
		for (unsigned int i = 0; i < 4; i++)
			send_at(way, i, frame_at(i * 2000, i % 2), 700, NULL,
				false);
		run(4 * way + 4);
		for (unsigned int i = 0; i < 4; i++)
			expect(i % 2, guest + (size_t)i * 2000, 700);
	}
	/* One for each remote, on each way. */
	assert_int_equal(counters.messages, 4);
}

static void groups_go_to_all(void **state)
{
	uint8_t *f = frame_at(0, 0);

	(void)state;
	memset(f, 0xff, 6);
	send_at(0, 1, f, 300, NULL, false);
	/* Nobody was seen with this one. */
	f = frame_at(2000, 77);
	send_at(0, 2, f, 301, NULL, false);
	run(2);
	assert_true(event[0].res >= 0 && event[1].res >= 0);
	for (unsigned int i = 0; i < REMOTES; i++) {
		expect(i, guest, 300);
		expect(i, guest + 2000, 301);
	}
	assert_int_equal(counters.flood_frames, 2);
	assert_int_equal(counters.flood_copies, 4);
	expect_silence();

	/* With one remote it is a frame like others. */
	vl_vxlan_fdb_set_flood(fdb, remote_index[0], false);
	send_at(0, 3, f, 302, NULL, false);
	run(3);
	assert_true(event[2].res >= 0);
	expect(1, f, 302);
	assert_int_equal(counters.flood_frames, 2);

	vl_vxlan_fdb_set_flood(fdb, remote_index[1], false);
	send_at(0, 4, f, 301, NULL, false);
	run(4);
	assert_true(event[3].res < 0);
	assert_int_equal(counters.drop_no_remote, 1);
	expect_silence();
}

static void learned_addresses_are_used(void **state)
{
	uint8_t *f = frame_at(0, 77);

	(void)state;
	vl_vxlan_fdb_learn(fdb, f, remote_index[1], vl_now_ns());
	send_at(0, 1, f, 300, NULL, false);
	run(1);
	expect(1, f, 300);
	expect_silence();
}

static uint32_t sum(const uint8_t *p, uint32_t len)
{
	uint32_t s = 0;

	for (uint32_t i = 0; i < len; i++)
		s += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

/* Writes IPv4 and TCP headers for @payload bytes at @f; the checksum is partial,
 * as a driver leaves it. Returns the frame's length. */
static uint32_t make_tcp(uint8_t *f, uint32_t payload, uint32_t seq,
			 struct virtio_net_hdr *hdr)
{
	uint8_t pseudo[12] = { 10, 0, 0, 1, 10, 0, 0, 2, 0, 6 };
	uint32_t total = 40 + payload, s;
	uint8_t *ip = f + 14, *tcp = f + 34;

	f[12] = 8;
	f[13] = 0;
	memset(ip, 0, 40);
	ip[0] = 0x45;
	ip[2] = (uint8_t)(total >> 8);
	ip[3] = (uint8_t)total;
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = 6;
	memcpy(ip + 12, pseudo, 8);
	s = ~sum(ip, 20) & 0xffff;
	ip[10] = (uint8_t)(s >> 8);
	ip[11] = (uint8_t)s;
	tcp[0] = 1;
	tcp[2] = 2;
	for (int i = 0; i < 4; i++)
		tcp[4 + i] = (uint8_t)(seq >> (24 - 8 * i));
	tcp[12] = 0x50;
	tcp[13] = 0x18; /* PSH, ACK */
	pseudo[10] = (uint8_t)((20 + payload) >> 8);
	pseudo[11] = (uint8_t)(20 + payload);
	s = sum(pseudo, 12);
	tcp[16] = (uint8_t)(s >> 8);
	tcp[17] = (uint8_t)s;
	*hdr = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_start = 34,
		.csum_offset = 16,
		.hdr_len = 54,
	};
	return 54 + payload;
}

/* Checks the sums of a TCP frame, and that it carries @payload from @offset on. */
static void check_tcp(const uint8_t *f, uint32_t payload, const uint8_t *data,
		      uint32_t seq)
{
	uint8_t all[70000] = { 10, 0, 0, 1, 10, 0, 0, 2, 0, 6 };
	uint32_t got = (uint32_t)f[38] << 24 | (uint32_t)f[39] << 16 |
		       (uint32_t)f[40] << 8 | f[41];

	all[10] = (uint8_t)((20 + payload) >> 8);
	all[11] = (uint8_t)(20 + payload);
	memcpy(all + 12, f + 34, 20 + payload);
	assert_int_equal(sum(f + 14, 20), 0xffff);
	assert_int_equal(sum(all, 32 + payload), 0xffff);
	assert_int_equal(got, seq);
	assert_memory_equal(f + 54, data, payload);
}

static void partial_checksums_are_completed(void **state)
{
	struct virtio_net_hdr hdr;
	uint8_t got[70000], before[3000];
	uint8_t *f = frame_at(0, 0);

	(void)state;
	/* Even and odd, in one message and apart. */
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t payload = 1000 - i % 3, len;

		f = frame_at(i * 4096, 0);
		len = make_tcp(f, payload, i, &hdr);
		memcpy(before, f, len);
		send_at(0, i, f, len, &hdr, false);
		assert_memory_equal(f, before, len);
	}
	run(6);
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t payload = 1000 - i % 3;

		assert_int_equal(arrives(0, got), 54 + payload);
		check_tcp(got, payload, guest + i * 4096 + 54, i);
	}
}

static void frames_are_segmented(void **state)
{
	struct virtio_net_hdr hdr;
	uint8_t got[70000];
	uint8_t *f = frame_at(0, 0);
	uint32_t len = make_tcp(f, 20 * 1400 + 123, 5000, &hdr);

	(void)state;
	hdr.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	hdr.gso_size = 1400;
	assert_int_equal(mprotect(guest, GUEST, PROT_READ), 0);
	send_at(0, 1, f, len, &hdr, false);
	run(1);
	assert_true(event[0].res >= 0);
	for (uint32_t i = 0; i < 21; i++) {
		uint32_t payload = i < 20 ? 1400 : 123;

		assert_int_equal(arrives(0, got), 54 + payload);
		check_tcp(got, payload, f + 54 + i * 1400, 5000 + i * 1400);
		assert_int_equal(got[47], i < 20 ? 0x10 : 0x18);
	}
	assert_int_equal(counters.messages, 1);
	assert_int_equal(counters.message_frames, 21);
	expect_silence();
}

static void what_cannot_be_cut_is_refused(void **state)
{
	struct virtio_net_hdr hdr;
	uint8_t *f = frame_at(0, 0);
	uint32_t len = make_tcp(f, 20000, 5000, &hdr);

	(void)state;
	hdr.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	hdr.gso_size = 10; /* 2000 segments: the device cuts such first */
	send_at(0, 1, f, len, &hdr, false);
	hdr.gso_size = 1400;
	f[47] |= 0x04; /* RST */
	send_at(0, 2, f, len, &hdr, false);
	run(2);
	assert_true(event[0].res < 0 && event[0].res != -EAGAIN);
	assert_true(event[1].res < 0 && event[1].res != -EAGAIN);
	expect_silence();
}

/* Shrinks the send buffer of the express way, and gives as many frames as it
 * takes, and more. */
static void refused_ones_keep_their_order(void **state)
{
	unsigned int taken = 0;
	bool refused = false;
	int size = 4608, lowest = 1;
	uint8_t got[70000];

	(void)state;
	(void)lowest;
	for (int i = 0; i < 2; i++)
		setsockopt(sender[i], SOL_SOCKET, SO_SNDBUF, &size,
			   sizeof(size));
	/* Loopback hands packets on at once, so that a buffer fills only while
	 * the receiver's is full: what matters is that the events agree with
	 * what arrives. */
	for (unsigned int i = 0; i < 60; i++)
		send_at(0, i, frame_at(i * 4096, 0), 3000 - i, NULL, false);
	run(60);
	for (unsigned int i = 0; i < 60; i++) {
		assert_int_equal(event[i].tag, i);
		if (event[i].res < 0)
			refused = true;
		else
			assert_false(refused);
		taken += event[i].res >= 0;
	}
	for (unsigned int i = 0; i < taken; i++) {
		assert_int_equal(arrives(0, got), 3000 - i);
		assert_memory_equal(got, guest + (size_t)i * 4096, 3000 - i);
	}
	expect_silence();
}

static void zero_copy_ends_twice(void **state)
{
	uint8_t *f = frame_at(0, 0);

	(void)state;
	if (!vl_io_can_zerocopy(io)) {
		send_at(0, 7, f, 5000, NULL, true);
		run(1);
		assert_false(event[0].more);
		expect(0, f, 5000);
		return;
	}
	send_at(0, 7, f, 5000, NULL, true);
	send_at(0, 8, frame_at(8192, 0), 5000, NULL, true);
	send_at(0, 9, frame_at(16384, 0), 900, NULL, false);
	run(5);
	for (unsigned int i = 0; i < 5; i++) {
		assert_true(event[i].tag >= 7 && event[i].tag <= 9);
		if (event[i].tag == 9)
			assert_false(event[i].more);
	}
	expect(0, f, 5000);
	expect(0, guest + 8192, 5000);
	expect(0, guest + 16384, 900);
	/* Every message is free again. */
	for (unsigned int round = 0; round < 100; round++) {
		n_events = 0;
		for (unsigned int i = 0; i < 20; i++)
			send_at(0, i, f, 3000 + i, NULL, true);
		run(40);
		for (unsigned int i = 0; i < 20; i++)
			expect(0, f, (int)(3000 + i));
	}
}

static void too_large_for_the_path(void **state)
{
	uint8_t *f = frame_at(0, 0);
	int on = 3; /* IP_PMTUDISC_PROBE */

	(void)state;
	setsockopt(sender[0], IPPROTO_IP, 10, &on, sizeof(on));
	/* Larger than a datagram can be. */
	send_at(0, 1, f, 66000, NULL, false);
	run(1);
	assert_int_equal(event[0].res, -EMSGSIZE);
	assert_int_equal(counters.drop_mtu, 1);
	send_at(0, 2, f, 1000, NULL, false);
	run(2);
	expect(0, f, 1000);
}

static void route_that_does_not_segment(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		send_at(0, i, frame_at(i * 2000, 0), 700, NULL, false);
	run(4);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(event[i].res, -EIO);
	assert_int_equal(counters.messages, 1);
	assert_int_equal(gso_segments, 1);
	for (unsigned int i = 0; i < 4; i++)
		send_at(0, i, frame_at(i * 2000, 0), 700, NULL, false);
	run(8);
	for (unsigned int i = 4; i < 8; i++)
		assert_true(event[i].res > 0);
	assert_int_equal(counters.messages, 5);
}

int main(void)
{
	static enum vl_io_engine engines[] = { VL_IO_URING, VL_IO_SYNC };
	const char *why;
	int status = 0;

	for (int i = 0; i < 2; i++) {
		const struct CMUnitTest tests[] = {
#define T(f) T_WITH(f, setup)
#define T_WITH(f, s)                                                           \
	{ .name = #f,                                                          \
	  .test_func = (f),                                                    \
	  .setup_func = (s),                                                   \
	  .teardown_func = teardown,                                           \
	  .initial_state = &engines[i] }
			T(frames_of_one_size_are_one_message),
			T(order_holds_over_sizes),
			T(each_remote_gets_its_own),
			T(groups_go_to_all),
			T(learned_addresses_are_used),
			T(partial_checksums_are_completed),
			T(frames_are_segmented),
			T(what_cannot_be_cut_is_refused),
			T(refused_ones_keep_their_order),
			T(zero_copy_ends_twice),
			T(too_large_for_the_path),
			T_WITH(route_that_does_not_segment, setup_lite),
		};

		if (engines[i] == VL_IO_URING &&
		    vl_io_choose(VL_IO_URING, &why) < 0) {
			printf("engine uring: %s\n", why);
			continue;
		}
		printf("engine %s\n", i ? "sync" : "uring");
		status |= cmocka_run_group_tests(tests, NULL, NULL);
	}
	return status;
}
