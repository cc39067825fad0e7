/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vl-flood: as many frames through a vhost-user back-end as it can take, in
 * one direction, with nothing looked at.
 *
 * tx: the driver keeps its ring full of frames that were made once. Counted
 *     is what arrives at the tap.
 * rx: the same thread is the driver, which always has buffers posted, and the
 *     host, which puts frames into the tap. Only so many are under way that
 *     neither the tap's queue nor the ring overflows, so a back-end that drops
 *     when the ring is empty is not wronged. Counted is what the driver gets.
 *
 * The driver never sleeps and never asks for a call. The CPU time of the
 * back-end is read at both ends of the same interval.
 */
#include <errno.h>
#include <getopt.h>
#include <linux/virtio_config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cpu_time.h"
#include "flood_frame.h"
#include "flood_source.h"
#include "load_vhost.h"
#include "ring_driver.h"

#define RX_INDEX    0u
#define TX_INDEX    1u
#define PIECES_MAX  64u
#define RX_BUFFER   2048u
#define RX_WINDOW   512u
#define GSO_MSS     1448u
#define WARM_UP_NS  (VL_NS_PER_SEC / 4)
/* Frames under way that did not move for so long were dropped. */
#define LOST_NS     (VL_NS_PER_SEC / 50)
/* Rounds between two looks at the clock. */
#define CLOCK_EVERY 64u

#define BIT(n)  (1ULL << (n))
#define F_ANY   BIT(27)
#define F_IND   BIT(28)
#define F_EVENT BIT(29)

struct options {
	const char *socket, *ifname;
	bool rx, partial;
	uint32_t size, pieces, ring;
	int pid;
	double seconds;
};

struct flood {
	struct options o;
	struct load_vhost vhost;
	struct rd_mem rings, buffers;
	struct rd_ring rxq, txq;
	struct flood_source *source;
	struct rd_seg *seg; /* PIECES_MAX per slot */
	uint64_t done;      /* chains handed back */
	uint64_t sent;      /* frames put into the tap */
	uint64_t lost, moved_ns;
};

struct sample {
	uint64_t ns, cpu_ns, own_cpu_ns, packets;
};

static const char usage[] =
	"usage: vl-flood --socket=PATH --ifname=TAP --mode=tx|rx [options]\n"
	"  --size=N     bytes of a frame, 60 to 1514; tx also up to 65536 "
	"(64)\n"
	"  --partial    tx, a frame up to 1514: the checksum is to be "
	"completed\n"
	"  --pieces=N   buffers of a transmitted frame (1)\n"
	"  --ring=N     descriptors per ring (256, rx 1024)\n"
	"  --pid=PID    the back-end, whose CPU time is to be measured\n"
	"  --seconds=S  how long to measure (1)\n"
	"Runs in the network namespace of the tap; prints one line of JSON.\n";

static int parse_number(uint32_t max, uint32_t *out)
{
	char *end;
	unsigned long n = strtoul(optarg, &end, 10);

	*out = (uint32_t)n;
	return *end || !n || n > max ? -EINVAL : 0;
}

static int parse_option(struct options *o, int c)
{
	uint32_t n;
	int err;

	switch (c) {
	case 's':
		o->socket = optarg;
		return 0;
	case 'i':
		o->ifname = optarg;
		return 0;
	case 'm':
		o->rx = !strcmp(optarg, "rx");
		return o->rx || !strcmp(optarg, "tx") ? 0 : -EINVAL;
	case 'z':
		return parse_number(FLOOD_FRAME_MAX, &o->size);
	case 'c':
		o->partial = true;
		return 0;
	case 'p':
		return parse_number(PIECES_MAX, &o->pieces);
	case 'r':
		err = parse_number(32768, &o->ring);
		return o->ring & (o->ring - 1) ? -EINVAL : err;
	case 'P':
		err = parse_number(INT32_MAX, &n);
		o->pid = (int)n;
		return err;
	case 't':
		o->seconds = atof(optarg);
		return o->seconds > 0 ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option table[] = {
		{ "socket", 1, NULL, 's' },  { "ifname", 1, NULL, 'i' },
		{ "mode", 1, NULL, 'm' },    { "size", 1, NULL, 'z' },
		{ "pieces", 1, NULL, 'p' },  { "ring", 1, NULL, 'r' },
		{ "pid", 1, NULL, 'P' },     { "seconds", 1, NULL, 't' },
		{ "partial", 0, NULL, 'c' }, { NULL, 0, NULL, 0 },
	};
	int c;

	*o = (struct options){ .size = 64, .pieces = 1, .seconds = 1 };
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1)
		if (parse_option(o, c))
			return -EINVAL;
	if (!o->ring)
		o->ring = o->rx ? 1024 : 256;
	if (o->partial && (o->rx || o->size > FLOOD_MTU_FRAME))
		return -EINVAL;
	if (o->rx && (o->size > FLOOD_MTU_FRAME || o->ring <= RX_WINDOW))
		return -EINVAL;
	return o->socket && o->ifname && o->size >= FLOOD_FRAME_MIN ? 0
								    : -EINVAL;
}

static int negotiate(struct flood *f)
{
	uint64_t need = BIT(VIRTIO_F_VERSION_1) | F_EVENT | F_IND |
			BIT(VIRTIO_NET_F_MRG_RXBUF);

	if (f->o.partial)
		need |= BIT(VIRTIO_NET_F_CSUM);
	if (f->o.size > FLOOD_MTU_FRAME)
		need |= BIT(VIRTIO_NET_F_CSUM) | BIT(VIRTIO_NET_F_HOST_TSO4);
	return load_vhost_negotiate(&f->vhost, need | F_ANY, need);
}

/* The buffers of slot @i: a frame in @pieces parts, or one to receive into. */
static int make_slot(struct flood *f, uint32_t i)
{
	struct rd_seg *seg = f->seg + (size_t)i * PIECES_MAX;
	uint32_t len = f->o.rx ? RX_BUFFER : FLOOD_HDR_LEN + f->o.size;
	uint32_t part = len / f->o.pieces;
	uint64_t gpa = rd_mem_alloc(&f->buffers, len, 64);

	if (!gpa)
		return -ENOMEM;
	if (f->o.rx)
		memset(rd_mem_ptr(&f->buffers, gpa), 0, len);
	else
		flood_frame_make(rd_mem_ptr(&f->buffers, gpa), FLOOD_HDR_LEN,
				 f->o.size,
				 f->o.size > FLOOD_MTU_FRAME ? GSO_MSS : 0);
	if (f->o.partial)
		flood_frame_partial(rd_mem_ptr(&f->buffers, gpa), FLOOD_HDR_LEN,
				    f->o.size);
	for (uint32_t p = 0; p < f->o.pieces; p++)
		seg[p] = (struct rd_seg){ gpa + p * part, part };
	seg[f->o.pieces - 1].len += len % f->o.pieces;
	return 0;
}

static int make_queues(struct flood *f)
{
	const struct rd_ring_config c = {
		.num = f->o.ring,
		.table_max = PIECES_MAX,
		.event_idx = true,
	};
	uint64_t slot = f->o.rx ? RX_BUFFER : FLOOD_HDR_LEN + f->o.size;
	int err;

	f->seg = calloc((size_t)c.num * PIECES_MAX, sizeof(*f->seg));
	if (!f->seg)
		return -ENOMEM;
	err = rd_mem_init(&f->rings, 0x100000,
			  2ULL * c.num * (32 + 16 * c.table_max) + 65536);
	if (!err)
		err = rd_mem_init(&f->buffers, 1ULL << 32,
				  c.num * (slot + 64) + 4096);
	if (!err)
		err = rd_ring_init(&f->rxq, &f->rings, &c);
	if (!err)
		err = rd_ring_init(&f->txq, &f->rings, &c);
	for (uint32_t i = 0; !err && i < c.num; i++)
		err = make_slot(f, i);
	return err;
}

static int start(struct flood *f)
{
	struct rd_mem *mem[] = { &f->rings, &f->buffers };
	int err = load_vhost_connect(&f->vhost, f->o.socket);

	if (!err)
		err = negotiate(f);
	if (!err)
		err = make_queues(f);
	if (!err)
		err = load_vhost_set_memory(&f->vhost, mem, 2);
	if (!err)
		err = load_vhost_ring_start(&f->vhost, RX_INDEX, &f->rxq, 0);
	if (!err)
		err = load_vhost_ring_start(&f->vhost, TX_INDEX, &f->txq, 0);
	if (!err && f->o.rx)
		err = flood_source_open(f->o.ifname, f->o.size, &f->source);
	rd_disable_call(&f->rxq);
	rd_disable_call(&f->txq);
	return err;
}

static void add_slot(struct flood *f, struct rd_ring *r, uint32_t slot)
{
	unsigned int n_out = f->o.rx ? 0 : f->o.pieces;

	/* Cannot fail: a ring has as many descriptors as there are slots. */
	(void)rd_add(r, f->seg + (size_t)slot * PIECES_MAX, n_out,
		     f->o.rx ? 1 : 0, f->o.pieces > 1 ? RD_INDIRECT : RD_DIRECT,
		     slot);
}

/* Every chain that comes back goes out again. Returns how many did. */
static unsigned int turn_over(struct flood *f, struct rd_ring *r)
{
	struct rd_done done;
	unsigned int n = 0;

	while (n < r->num && rd_take(r, &done) > 0) {
		add_slot(f, r, done.cookie);
		n++;
	}
	if (n) {
		rd_publish(r);
		rd_kick_if_wanted(r);
	}
	f->done += n;
	return n;
}

static int feed(struct flood *f, bool moved, uint64_t now)
{
	uint64_t under_way = f->sent - f->done - f->lost;
	int n;

	if (moved)
		f->moved_ns = now;
	if (under_way + flood_source_burst(f->source) > RX_WINDOW) {
		if (now - f->moved_ns > LOST_NS) {
			f->lost += under_way;
			f->moved_ns = now;
		}
		return 0;
	}
	n = flood_source_send(f->source);
	if (n > 0)
		f->sent += (uint64_t)n;
	return n < 0 ? n : 0;
}

/* Floods until @end_ns. */
static int flood_until(struct flood *f, uint64_t end_ns)
{
	struct rd_ring *r = f->o.rx ? &f->rxq : &f->txq;
	uint64_t now = vl_now_ns();

	f->moved_ns = now;
	for (unsigned int round = 1; now < end_ns; round++) {
		bool moved = turn_over(f, r) > 0;
		int err = f->o.rx ? feed(f, moved, now) : 0;

		if (err)
			return err;
		if (round % CLOCK_EVERY == 0)
			now = vl_now_ns();
	}
	return 0;
}

static int tap_count(const char *ifname, uint64_t *packets)
{
	unsigned long long n;
	char path[128];
	FILE *file;
	int got;

	/* What a back-end writes, the tap receives. */
	(void)snprintf(path, sizeof(path),
		       "/sys/class/net/%.15s/statistics/rx_packets", ifname);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	got = fscanf(file, "%llu", &n);
	(void)fclose(file);
	*packets = n;
	return got == 1 ? 0 : -EIO;
}

static int take_sample(struct flood *f, struct sample *s)
{
	int err = f->o.pid ? cpu_time_ns(f->o.pid, &s->cpu_ns) : 0;

	s->packets = f->done;
	if (!err && !f->o.rx)
		err = tap_count(f->o.ifname, &s->packets);
	s->own_cpu_ns = vl_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->ns = vl_now_ns();
	return err;
}

static int run(struct flood *f)
{
	struct rd_ring *r = f->o.rx ? &f->rxq : &f->txq;
	uint64_t span = (uint64_t)(f->o.seconds * (double)VL_NS_PER_SEC);
	struct sample a = { 0 }, b = { 0 };
	uint64_t lost;
	double cpu, s;
	int err;

	for (uint32_t i = 0; i < r->num; i++)
		add_slot(f, r, i);
	rd_publish(r);
	rd_kick(r);
	err = flood_until(f, vl_now_ns() + WARM_UP_NS);
	lost = f->lost;
	if (!err)
		err = take_sample(f, &a);
	if (!err)
		err = flood_until(f, vl_now_ns() + span);
	if (!err)
		err = take_sample(f, &b);
	if (err)
		return err;
	s = (double)(b.ns - a.ns) / 1e9;
	cpu = (double)(b.cpu_ns - a.cpu_ns) / 1e9;
	printf("{\"packets\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.6f, "
	       "\"packets_per_cpu_second\": %.0f, \"load_cpu_seconds\": %.6f, "
	       "\"lost\": %llu}\n",
	       (unsigned long long)(b.packets - a.packets), s, cpu,
	       cpu > 0 ? (double)(b.packets - a.packets) / cpu : 0.0,
	       (double)(b.own_cpu_ns - a.own_cpu_ns) / 1e9,
	       (unsigned long long)(f->lost - lost));
	return 0;
}

int main(int argc, char **argv)
{
	static struct flood f;
	uint16_t base;
	int err;

	if (parse(&f.o, argc, argv)) {
		fputs(usage, stderr);
		return 2;
	}
	f.vhost.sock = f.rings.fd = f.buffers.fd = -1;
	f.rxq.kick_fd = f.rxq.call_fd = f.rxq.err_fd = -1;
	f.txq.kick_fd = f.txq.call_fd = f.txq.err_fd = -1;
	err = start(&f);
	if (!err)
		err = run(&f);
	if (!err)
		err = load_vhost_ring_stop(&f.vhost, TX_INDEX, &base);
	if (!err)
		err = load_vhost_ring_stop(&f.vhost, RX_INDEX, &base);
	if (err)
		fprintf(stderr, "vl-flood: %s\n", strerror(-err));
	load_vhost_close(&f.vhost);
	flood_source_close(f.source);
	rd_ring_free(&f.rxq);
	rd_ring_free(&f.txq);
	rd_mem_free(&f.rings);
	rd_mem_free(&f.buffers);
	free(f.seg);
	return err ? 1 : 0;
}
