/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tap-rawloop: the least that writing frames to a tap can cost.
 *
 * The same frames go out again and again through io_uring, a fixed number of
 * writes per enter, the tap a registered file: no guest, no virtqueue, nothing
 * looked at. What a back-end does beyond this is its own overhead.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <liburing.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "flood_frame.h"

#define PIECES_MAX 64u
#define GSO_MSS    1448u

struct options {
	const char *ifname;
	uint32_t size, pieces, batch, frames;
	double seconds;
};

struct loop {
	struct options o;
	struct io_uring ring;
	struct iovec *iov; /* PIECES_MAX per frame */
	uint8_t *memory;
	uint32_t next;
	uint64_t written, failed;
	int last_error;
};

static const char usage[] =
	"usage: tap-rawloop --ifname=TAP [--size=64] [--pieces=1] "
	"[--batch=32]\n"
	"                   [--frames=256] [--seconds=1]\n"
	"Writes frames of SIZE bytes, each in PIECES parts, BATCH per system "
	"call,\n"
	"from FRAMES different places. Frames over 1514 bytes are TCP to be "
	"segmented.\n";

static int parse_number(uint32_t max, uint32_t *out)
{
	char *end;
	unsigned long n = strtoul(optarg, &end, 10);

	*out = (uint32_t)n;
	return *end || !n || n > max ? -EINVAL : 0;
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option table[] = {
		{ "ifname", 1, NULL, 'i' }, { "size", 1, NULL, 's' },
		{ "pieces", 1, NULL, 'p' }, { "batch", 1, NULL, 'b' },
		{ "frames", 1, NULL, 'f' }, { "seconds", 1, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	int c, err = 0;

	*o = (struct options){ .size = 64,
			       .pieces = 1,
			       .batch = 32,
			       .frames = 256,
			       .seconds = 1 };
	while (!err && (c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (c) {
		case 'i':
			o->ifname = optarg;
			break;
		case 's':
			err = parse_number(FLOOD_FRAME_MAX, &o->size);
			break;
		case 'p':
			err = parse_number(PIECES_MAX, &o->pieces);
			break;
		case 'b':
			err = parse_number(1024, &o->batch);
			break;
		case 'f':
			err = parse_number(65536, &o->frames);
			break;
		case 't':
			o->seconds = atof(optarg);
			break;
		default:
			return -EINVAL;
		}
	}
	return err || !o->ifname || o->size < FLOOD_FRAME_MIN ? -EINVAL : 0;
}

static int open_tap(const char *ifname)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	int hdr = (int)FLOOD_HDR_LEN, err = 0;
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	(void)snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	for (int i = 0; i < 100; i++) {
		/* A ring that has just ended may still hold the tap. */
		err = ioctl(fd, TUNSETIFF, &ifr) ? -errno : 0;
		if (err != -EBUSY)
			break;
		usleep(20000);
	}
	if (!err && ioctl(fd, TUNSETVNETHDRSZ, &hdr))
		err = -errno;
	if (err) {

		close(fd);
		return err;
	}
	return fd;
}

static int open_ring(struct io_uring *ring, unsigned int entries, int fd)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER |
					      IORING_SETUP_DEFER_TASKRUN };
	int err = io_uring_queue_init_params(entries, ring, &p);

	if (err)
		return err;
	err = io_uring_register_files(ring, &fd, 1);
	if (err)
		io_uring_queue_exit(ring);
	return err;
}

/* One area with all frames, as the memory of a guest is. */
static int make_frames(struct loop *l)
{
	size_t len = FLOOD_HDR_LEN + l->o.size;
	size_t stride = (len + 63) & ~(size_t)63;
	size_t total = stride * l->o.frames;

	l->iov = calloc((size_t)l->o.frames * PIECES_MAX, sizeof(*l->iov));
	l->memory = mmap(NULL, total, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (!l->iov || l->memory == MAP_FAILED)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->o.frames; i++) {
		struct iovec *iov = l->iov + (size_t)i * PIECES_MAX;
		uint8_t *at = l->memory + i * stride;
		size_t part = len / l->o.pieces;

		flood_frame_make(at, FLOOD_HDR_LEN, l->o.size,
				 l->o.size > FLOOD_MTU_FRAME ? GSO_MSS : 0);
		for (uint32_t p = 0; p < l->o.pieces; p++)
			iov[p] = (struct iovec){ at + p * part, part };
		iov[l->o.pieces - 1].iov_len += len % l->o.pieces;
	}
	return 0;
}

static void queue(struct loop *l)
{
	const struct iovec *iov = l->iov + (size_t)l->next * PIECES_MAX;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&l->ring);

	if (l->o.pieces == 1)
		io_uring_prep_write(sqe, 0, iov->iov_base,
				    (unsigned int)iov->iov_len, 0);
	else
		io_uring_prep_writev(sqe, 0, iov, l->o.pieces, 0);
	sqe->flags |= IOSQE_FIXED_FILE;
	l->next = l->next + 1 == l->o.frames ? 0 : l->next + 1;
}

static void batch(struct loop *l)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	for (uint32_t i = 0; i < l->o.batch; i++)
		queue(l);
	(void)io_uring_submit_and_wait(&l->ring, l->o.batch);
	io_uring_for_each_cqe(&l->ring, head, cqe)
	{
		n++;
		if (cqe->res < 0) {
			l->failed++;
			l->last_error = cqe->res;
		} else {
			l->written++;
		}
	}
	io_uring_cq_advance(&l->ring, n);
}

static int run(struct loop *l)
{
	uint64_t limit = (uint64_t)(l->o.seconds * (double)VL_NS_PER_SEC);
	uint64_t cpu, ns, start;

	for (int i = 0; i < 100; i++)
		batch(l);
	l->written = l->failed = 0;
	start = vl_now_ns();
	cpu = vl_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	do {
		batch(l);
		ns = vl_now_ns() - start;
	} while (ns < limit);
	cpu = vl_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("{\"packets\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.6f, "
	       "\"packets_per_cpu_second\": %.0f, \"load_cpu_seconds\": "
	       "%.6f}\n",
	       (unsigned long long)l->written, (double)ns / 1e9,
	       (double)cpu / 1e9, (double)l->written / ((double)cpu / 1e9),
	       (double)cpu / 1e9);
	if (!l->failed)
		return 0;
	fprintf(stderr, "tap-rawloop: %llu writes failed, the last with: %s\n",
		(unsigned long long)l->failed, strerror(-l->last_error));
	return 1;
}

int main(int argc, char **argv)
{
	static struct loop l;
	int fd, err;

	if (parse(&l.o, argc, argv)) {
		fputs(usage, stderr);
		return 2;
	}
	fd = open_tap(l.o.ifname);
	err = fd < 0 ? fd : open_ring(&l.ring, l.o.batch, fd);
	if (!err)
		err = make_frames(&l);
	if (err) {
		fprintf(stderr, "tap-rawloop: %s: %s\n", l.o.ifname,
			strerror(-err));
		return 2;
	}
	err = run(&l);
	/* Otherwise the kernel holds the tap until it gets to end the ring. */
	(void)io_uring_unregister_files(&l.ring);
	io_uring_queue_exit(&l.ring);
	close(fd);
	return err;
}
