/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test is the kernel that fills the ring. What is too large for a slot comes
 * by a pair of UNIX sockets, which hands over messages as a packet socket does,
 * only without VLAN tags beside them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/packet_rx.h"
#include "base/iov.h"
#include "base/uapi.h"
#include "base/util.h"

#define READS      8u
#define ROOM       1600u
#define MSS        1000u
#define HEADS      54u
#define KERNEL_HDR 10u
#define MORE       3500u /* payload of a large frame: four segments */

struct setup {
	struct vl_packet_rx *rx;
	struct vl_io *io;
	char *map;
	uint32_t next; /* slot */
	int fd[2];     /* the kernel's side, ours */
	uint8_t buf[READS][ROOM];
	struct iovec iov[READS][3];
	int res[READS];
	uint32_t hdr_len;
};

static void set_up(struct setup *s, enum vl_io_engine engine)
{
	memset(s, 0, sizeof(*s));
	s->map = calloc(VL_PACKET_RX_SLOTS, VL_PACKET_RX_SLOT);
	assert_non_null(s->map);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, s->fd), 0);
	s->rx = vl_packet_rx_new(s->map, s->fd[1]);
	assert_non_null(s->rx);
	assert_int_equal(vl_io_new(engine, 64, &s->io), 0);
	assert_int_equal(vl_io_start(s->io), 0);
}

static void tear_down(struct setup *s)
{
	vl_io_free(s->io);
	vl_packet_rx_free(s->rx);
	free(s->map);
	close(s->fd[0]);
	close(s->fd[1]);
}

static void take(struct setup *s, const struct vl_offload *o)
{
	s->hdr_len = o->hdr_len;
	vl_packet_rx_set_offload(s->rx, o);
}

/* A TCP/IPv4 frame with @len bytes of payload, each its own position, behind a
 * header of @hdr_len bytes; more than MSS are to be segmented. */
static size_t make(uint8_t *at, uint32_t hdr_len, uint32_t len)
{
	static const uint8_t heads[HEADS] = {
		2,    2, 2,  2, 2,    2,    4,    4, 4,  4, 4, 4, 8,  0,
		0x45, 0, 0,  0, 0,    7,    0x40, 0, 64, 6, 0, 0, 10, 0,
		0,    1, 10, 0, 0,    2,    0,    1, 0,  2, 0, 0, 0,  0,
		0,    0, 0,  0, 0x50, 0x18, 32,   0, 0,  0, 0, 0,
	};
	struct virtio_net_hdr hdr = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = len > MSS ? VIRTIO_NET_HDR_GSO_TCPV4
				      : VIRTIO_NET_HDR_GSO_NONE,
		.gso_size = len > MSS ? MSS : 0,
		.hdr_len = HEADS,
		.csum_start = 34,
		.csum_offset = 16,
	};
	uint8_t *frame = at + hdr_len;

	memset(at, 0, hdr_len);
	memcpy(at, &hdr, sizeof(hdr));
	memcpy(frame, heads, HEADS);
	frame[16] = (uint8_t)((len + 40) >> 8);
	frame[17] = (uint8_t)(len + 40);
	/* The sum of the pseudo-header. */
	frame[50] = (uint8_t)((0x1403 + 6 + 20 + len) >> 8);
	frame[51] = (uint8_t)(0x1403 + 6 + 20 + len);
	for (uint32_t i = 0; i < len; i++)
		frame[HEADS + i] = (uint8_t)(i * 7 + (i >> 8));
	return hdr_len + HEADS + len;
}

/* The kernel has put a frame of @n bytes, its header included, into the ring. */
static void fill(struct setup *s, const uint8_t *message, uint32_t n,
		 uint32_t status)
{
	const uint32_t mac = 96;
	char *slot = s->map + (size_t)(s->next++ % VL_PACKET_RX_SLOTS) *
				      VL_PACKET_RX_SLOT;
	struct tpacket2_hdr *h = (void *)slot;
	uint32_t room = VL_PACKET_RX_SLOT - mac;

	assert_int_equal(h->tp_status, TP_STATUS_KERNEL);
	h->tp_mac = (uint16_t)mac;
	h->tp_len = n - KERNEL_HDR;
	h->tp_snaplen = h->tp_len < room ? h->tp_len : room;
	h->tp_vlan_tci = 0xa005;
	h->tp_vlan_tpid = 0x88a8;
	memcpy(slot + mac - KERNEL_HDR, message, KERNEL_HDR + h->tp_snaplen);
	h->tp_status = TP_STATUS_USER | status;
}

static void arrive_as(struct setup *s, uint32_t len, uint32_t status)
{
	static uint8_t message[8192];
	uint32_t n = (uint32_t)make(message, KERNEL_HDR, len);

	if (len > MSS) {
		status |= TP_STATUS_COPY;
		assert_int_equal(send(s->fd[0], message, n, 0), n);
	}
	fill(s, message, n, status);
}

static void arrive(struct setup *s, uint32_t len)
{
	arrive_as(s, len, 0);
}

/* A batch of @n reads into buffers of three pieces each. */
static void read_batch(struct setup *s, unsigned int n)
{
	struct vl_io_event ev[READS];
	unsigned int got;

	for (unsigned int i = 0; i < n; i++) {
		const size_t sizes[] = { 7, 30, ROOM - 37 };
		uint8_t *at = s->buf[i];

		memset(at, 0xee, ROOM);
		for (unsigned int p = 0; p < 3; at += sizes[p++])
			s->iov[i][p] = (struct iovec){ at, sizes[p] };
		s->res[i] = 0;
		vl_packet_rx_recv(s->rx, s->io,
				  &(struct vl_frame){
					  .iov = s->iov[i], .n = 3, .tag = i });
	}
	vl_packet_rx_flush(s->rx);
	vl_io_submit(s->io);
	got = vl_io_reap(s->io, ev, READS);
	assert_int_equal(got, n);
	for (unsigned int i = 0; i < got; i++)
		s->res[ev[i].tag] = ev[i].res;
}

/* Read @i has payload bytes [@from, @from + @len) of make(). @finished: with a
 * complete checksum. */
static void check_frame(struct setup *s, unsigned int i, uint32_t from,
			uint32_t len, bool finished)
{
	const uint8_t *frame = s->buf[i] + s->hdr_len;
	struct virtio_net_hdr hdr;
	uint32_t sum = 6 + 20 + len;

	assert_int_equal(s->res[i], s->hdr_len + HEADS + len);
	memcpy(&hdr, s->buf[i], sizeof(hdr));
	assert_int_equal(hdr.gso_type, VIRTIO_NET_HDR_GSO_NONE);
	for (uint32_t b = 0; b < len; b++)
		assert_int_equal(frame[HEADS + b],
				 (uint8_t)((from + b) * 7 + ((from + b) >> 8)));
	assert_int_equal(hdr.flags, finished ? 0 : VIRTIO_NET_HDR_F_NEEDS_CSUM);
	if (!finished)
		return;
	for (uint32_t b = 26; b < HEADS + len; b++)
		sum += b & 1 ? frame[b] : (uint32_t)frame[b] << 8;
	sum = (sum & 0xffff) + (sum >> 16);
	assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
}

/* Read @i found nothing, or one before it did. */
static void check_nothing(const struct setup *s, unsigned int i)
{
	assert_true(s->res[i] == -EAGAIN || s->res[i] == -ECANCELED);
}

static const struct vl_offload nothing = { .hdr_len = 12 };
static const struct vl_offload all = { 12, true, true, true, true, true, true };

static void frames_are_read_as_they_are(struct setup *s)
{
	uint8_t want[2048];
	size_t n = make(want, 12, 500);

	take(s, &all);
	arrive(s, 500);
	arrive(s, 200);
	read_batch(s, 4);
	assert_int_equal(s->res[0], n);
	assert_memory_equal(s->buf[0], want, n);
	assert_int_equal(s->buf[0][n], 0xee);
	assert_int_equal(s->res[1], 12 + HEADS + 200);
	assert_int_equal(s->res[2], -EAGAIN);
	/* What comes in the middle of a batch is for the next. */
	assert_int_equal(s->res[3], -ECANCELED);
	for (unsigned int i = 0; i < 3 * VL_PACKET_RX_SLOTS; i++) {
		arrive(s, i % MSS);
		read_batch(s, 2);
		assert_int_equal(s->res[0], 12 + HEADS + i % MSS);
		assert_int_equal(s->res[1], -EAGAIN);
	}
	take(s, &(struct vl_offload){ 10, true, true, true, true, true, true });
	arrive(s, 500);
	read_batch(s, 1);
	n = make(want, 10, 500);
	assert_int_equal(s->res[0], n);
	assert_memory_equal(s->buf[0], want, n);
}

static void tags_are_put_back(struct setup *s)
{
	const uint32_t status =
		TP_STATUS_VLAN_VALID | TP_STATUS_VLAN_TPID_VALID;
	uint8_t want[2048];
	struct virtio_net_hdr hdr;

	(void)make(want, 12, 500);
	take(s, &all);
	arrive(s, 500);
	arrive_as(s, 500, status);
	arrive_as(s, 500, TP_STATUS_VLAN_VALID);
	arrive_as(s, 500, TP_STATUS_VLAN_TPID_VALID);
	read_batch(s, 5);
	check_frame(s, 0, 0, 500, false);
	check_frame(s, 3, 0, 500, false);
	check_nothing(s, 4);
	for (unsigned int i = 1; i < 3; i++) {
		assert_int_equal(s->res[i], 12 + HEADS + 4 + 500);
		memcpy(&hdr, s->buf[i], sizeof(hdr));
		assert_int_equal(hdr.csum_start, 38);
		assert_memory_equal(s->buf[i] + 12, want + 12, 12);
		assert_memory_equal(
			s->buf[i] + 24,
			i == 1 ? "\x88\xa8\xa0\x05" : "\x81\x00\xa0\x05", 4);
		assert_memory_equal(s->buf[i] + 28, want + 24,
				    HEADS - 12 + 500);
	}
}

static void large_ones_are_cut_in_order(struct setup *s)
{
	take(s, &nothing);
	arrive(s, 100);
	arrive(s, MORE);
	arrive(s, 300);
	read_batch(s, 4);
	check_frame(s, 0, 0, 100, true);
	for (unsigned int i = 0; i < 3; i++)
		check_frame(s, 1 + i, i * MSS, MSS, true);
	/* What waits comes first, then what came meanwhile. */
	arrive(s, 400);
	read_batch(s, 4);
	check_frame(s, 0, 3 * MSS, MORE - 3 * MSS, true);
	check_frame(s, 1, 0, 300, true);
	check_frame(s, 2, 0, 400, true);
	check_nothing(s, 3);
}

static void checksums_stay_for_who_takes_them(struct setup *s)
{
	const struct vl_offload csum = { .hdr_len = 12, .csum = true };

	take(s, &csum);
	arrive(s, MORE);
	arrive(s, 300);
	read_batch(s, 5);
	for (unsigned int i = 0; i < 3; i++)
		check_frame(s, i, i * MSS, MSS, false);
	check_frame(s, 3, 3 * MSS, MORE - 3 * MSS, false);
	check_frame(s, 4, 0, 300, false);
}

static void too_long_is_cut_off(struct setup *s)
{
	uint8_t bad[8192];

	take(s, &all);
	arrive(s, MORE);
	arrive(s, 100);
	/* The socket had no room either. */
	(void)make(bad, KERNEL_HDR, MORE);
	fill(s, bad, KERNEL_HDR + HEADS + MORE, 0);
	read_batch(s, 4);
	/* As much as there was room for: the reader knows. */
	assert_int_equal(s->res[0], ROOM);
	check_frame(s, 1, 0, 100, false);
	assert_int_equal(s->res[2], ROOM);
	check_nothing(s, 3);
}

static void what_cannot_be_cut_is_refused(struct setup *s)
{
	uint8_t bad[8192];
	uint32_t n = (uint32_t)make(bad, KERNEL_HDR, MORE);

	take(s, &nothing);
	bad[KERNEL_HDR + 14] = 0x46; /* options */
	assert_int_equal(send(s->fd[0], bad, n, 0), n);
	fill(s, bad, n, TP_STATUS_COPY);
	arrive(s, 100);
	fill(s, bad, KERNEL_HDR + 13, 0);
	read_batch(s, 4);
	assert_int_equal(s->res[0], -EINVAL);
	check_frame(s, 1, 0, 100, true);
	assert_int_equal(s->res[2], -EINVAL);
	check_nothing(s, 3);
}

static void what_waits_can_be_forgotten(struct setup *s)
{
	take(s, &nothing);
	arrive(s, MORE);
	read_batch(s, 1);
	vl_packet_rx_forget(s->rx);
	arrive(s, 100);
	read_batch(s, 2);
	check_frame(s, 0, 0, 100, true);
	check_nothing(s, 1);
	/* A header of another length: it was for another driver. */
	arrive(s, MORE);
	read_batch(s, 1);
	take(s, &(struct vl_offload){ .hdr_len = 10 });
	arrive(s, 200);
	read_batch(s, 2);
	check_frame(s, 0, 0, 200, true);
	check_nothing(s, 1);
}

typedef void scenario(struct setup *s);

static void with_engines(void **state)
{
	scenario *run = *(scenario **)*state;
	struct setup s;
	const char *why;

	set_up(&s, VL_IO_SYNC);
	run(&s);
	tear_down(&s);
	if (vl_io_choose(VL_IO_URING, &why) < 0)
		return;
	set_up(&s, VL_IO_URING);
	run(&s);
	tear_down(&s);
}

#define SCENARIO(name)                                                         \
	{                                                                      \
#name, with_engines, NULL, NULL, &(scenario *)                 \
		{                                                              \
			name                                                   \
		}                                                              \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENARIO(frames_are_read_as_they_are),
		SCENARIO(tags_are_put_back),
		SCENARIO(large_ones_are_cut_in_order),
		SCENARIO(checksums_stay_for_who_takes_them),
		SCENARIO(too_long_is_cut_off),
		SCENARIO(what_cannot_be_cut_is_refused),
		SCENARIO(what_waits_can_be_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
