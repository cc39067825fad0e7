/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames come by a pair of UNIX sockets, which hands over messages as a packet
 * socket does, only without VLAN tags beside them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/packet_rx.h"
#include "base/iov.h"
#include "base/uapi.h"
#include "base/util.h"

#define TAG   0x500000000ULL
#define READS 8u
#define ROOM  1600u
#define MSS   1000u
#define HEADS 54u
#define MORE  3500u /* payload of a large frame: four segments */

struct setup {
	struct vl_packet_rx *rx;
	struct vl_io *io;
	int fd[2]; /* the kernel's side, ours */
	uint8_t buf[READS][ROOM];
	struct iovec iov[READS][3];
	int res[READS];
	uint32_t hdr_len;
};

static void set_up(struct setup *s, enum vl_io_engine engine)
{
	int file;

	memset(s, 0, sizeof(*s));
	s->rx = vl_packet_rx_new();
	assert_non_null(s->rx);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, s->fd), 0);
	assert_int_equal(vl_io_new(engine, 64, &s->io), 0);
	assert_int_equal(vl_io_start(s->io), 0);
	file = vl_io_file_add(s->io, s->fd[1]);
	assert_true(file >= 0);
	vl_packet_rx_start(s->rx, file, TAG);
}

static void tear_down(struct setup *s)
{
	vl_io_free(s->io);
	vl_packet_rx_free(s->rx);
	close(s->fd[0]);
	close(s->fd[1]);
}

static void take(struct setup *s, const struct vl_offload *o, uint32_t kernel)
{
	s->hdr_len = o->hdr_len;
	vl_packet_rx_set_offload(s->rx, o, kernel);
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

static void arrive(struct setup *s, uint32_t hdr_len, uint32_t len)
{
	static uint8_t message[8192];
	size_t n = make(message, hdr_len, len);

	assert_int_equal(send(s->fd[0], message, n, 0), n);
}

static void note(void *ctx, const struct vl_io_event *ev)
{
	((struct setup *)ctx)->res[ev->tag] = ev->res;
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
	vl_io_submit(s->io);
	do {
		vl_io_wait(s->io, 0);
		got = vl_io_reap(s->io, ev, READS);
		for (unsigned int i = 0; i < got; i++) {
			if (ev[i].tag >= TAG)
				vl_packet_rx_complete(s->rx, &ev[i], note, s);
			else
				note(s, &ev[i]);
		}
	} while (got);
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

	take(s, &all, 12);
	arrive(s, 12, 500);
	arrive(s, 12, 200);
	read_batch(s, 4);
	assert_int_equal(s->res[0], n);
	assert_memory_equal(s->buf[0], want, n);
	assert_int_equal(s->buf[0][n], 0xee);
	assert_int_equal(s->res[1], 12 + HEADS + 200);
	check_nothing(s, 2);
	check_nothing(s, 3);
}

static void large_ones_are_cut_in_order(struct setup *s)
{
	take(s, &nothing, 12);
	arrive(s, 12, 100);
	arrive(s, 12, MORE);
	arrive(s, 12, 300);
	read_batch(s, 4);
	check_frame(s, 0, 0, 100, true);
	for (unsigned int i = 0; i < 3; i++)
		check_frame(s, 1 + i, i * MSS, MSS, true);
	/* What waits comes first, then what came meanwhile. */
	arrive(s, 12, 400);
	read_batch(s, 4);
	check_frame(s, 0, 3 * MSS, MORE - 3 * MSS, true);
	check_frame(s, 1, 0, 300, true);
	check_frame(s, 2, 0, 400, true);
	check_nothing(s, 3);
}

static void checksums_stay_for_who_takes_them(struct setup *s)
{
	const struct vl_offload csum = { .hdr_len = 12, .csum = true };

	take(s, &csum, 12);
	arrive(s, 12, MORE);
	arrive(s, 12, 300);
	read_batch(s, 5);
	for (unsigned int i = 0; i < 3; i++)
		check_frame(s, i, i * MSS, MSS, false);
	check_frame(s, 3, 3 * MSS, MORE - 3 * MSS, false);
	check_frame(s, 4, 0, 300, false);
}

static void short_headers_are_made_long(struct setup *s)
{
	take(s, &all, 10);
	arrive(s, 10, 500);
	read_batch(s, 1);
	check_frame(s, 0, 0, 500, false);
	take(s, &nothing, 10);
	arrive(s, 10, MORE);
	arrive(s, 10, 500);
	read_batch(s, 6);
	for (unsigned int i = 0; i < 3; i++)
		check_frame(s, i, i * MSS, MSS, true);
	check_frame(s, 4, 0, 500, true);
	check_nothing(s, 5);
}

static void too_long_is_cut_off(struct setup *s)
{
	take(s, &all, 12);
	arrive(s, 12, MORE);
	arrive(s, 12, 100);
	read_batch(s, 2);
	/* As much as there was room for: the reader knows. */
	assert_int_equal(s->res[0], ROOM);
	check_frame(s, 1, 0, 100, false);
}

static void what_cannot_be_cut_is_refused(struct setup *s)
{
	uint8_t bad[8192];
	size_t n = make(bad, 12, MORE);

	take(s, &nothing, 12);
	bad[12 + 14] = 0x46; /* options */
	assert_int_equal(send(s->fd[0], bad, n, 0), n);
	arrive(s, 12, 100);
	assert_int_equal(send(s->fd[0], bad, 15, 0), 15);
	read_batch(s, 4);
	assert_int_equal(s->res[0], -EINVAL);
	check_frame(s, 1, 0, 100, true);
	assert_int_equal(s->res[2], -EINVAL);
	check_nothing(s, 3);
}

static void what_waits_can_be_forgotten(struct setup *s)
{
	take(s, &nothing, 12);
	arrive(s, 12, MORE);
	read_batch(s, 1);
	vl_packet_rx_forget(s->rx);
	arrive(s, 12, 100);
	read_batch(s, 2);
	check_frame(s, 0, 0, 100, true);
	check_nothing(s, 1);
	/* A header of another length: it was for another driver. */
	arrive(s, 12, MORE);
	read_batch(s, 1);
	take(s, &(struct vl_offload){ .hdr_len = 10 }, 10);
	arrive(s, 10, 200);
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
		SCENARIO(large_ones_are_cut_in_order),
		SCENARIO(checksums_stay_for_who_takes_them),
		SCENARIO(short_headers_are_made_long),
		SCENARIO(too_long_is_cut_off),
		SCENARIO(what_cannot_be_cut_is_refused),
		SCENARIO(what_waits_can_be_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
