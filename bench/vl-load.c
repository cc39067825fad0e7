/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vl-load: driver-side load for a vhost-user network back-end on a tap.
 *
 * One process is the guest (a vhost-user front-end with rings of its own) and
 * the network (a packet socket on the tap), so it knows of every frame whether
 * it arrived, once, unchanged and in order. A transmit buffer that comes back is
 * overwritten at once. Both directions run at the same
 * time in one thread, in random batches; now and then a direction pauses
 * until everything has drained, so that both sides fall asleep and have to be
 * woken, and with --restarts a ring is stopped and started in the middle.
 *
 * The network side is not flow controlled: a window on the frames under way
 * keeps each queue from overflowing, and the socket's own drops are read, so
 * that a loss of this program is never blamed on the back-end.
 */
#include <errno.h>
#include <getopt.h>
#include <linux/virtio_config.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/virtio_net.h>

#include "base/clock.h"
#include "load_guest.h"
#include "load_net.h"
#include "load_vhost.h"

#define RX_INDEX 0u
#define TX_INDEX 1u

/* Nothing moved for so long: what is missing is lost. */
#define STALL_NS (5 * VL_NS_PER_SEC)
/* A sleeper that is woken by this and then finds work was not called. */
#define NAP_MS   500

#define BIT(n)  (1ULL << (n))
#define F_ANY   BIT(27)
#define F_IND   BIT(28)
#define F_EVENT BIT(29)

struct options {
	const char *socket, *ifname;
	uint64_t tx, rx, seed;
	unsigned int queue_size, segments, restarts;
	bool mrg, event_idx, indirect, legacy, gso;
};

struct load {
	struct options o;
	struct load_vhost vhost;
	struct load_net *net;
	struct load_gen gen;
	struct load_shape shape;
	struct rd_mem rings, buffers;
	struct load_queue txq, rxq;
	struct load_ledger tx, rx;
	struct load_errors errors;
	uint64_t rnd;
	uint64_t cost[65536]; /* sum of costs before frame n, by n mod 65536 */
	uint64_t cost_sent;
	uint64_t missed_calls, restarts, bad_base;
	uint64_t start_ns, moved_ns;
	bool stalled;
};

static const char usage[] =
	"usage: vl-load --socket=PATH --ifname=TAP [options]\n"
	"  --tx=N          frames from the guest to the host (100000)\n"
	"  --rx=N          frames from the host to the guest (100000)\n"
	"  --mrg=on|off    mergeable receive buffers (on)\n"
	"  --event-idx=on|off  event index (on)\n"
	"  --indirect=on|off   indirect descriptors (on)\n"
	"  --legacy        without VIRTIO_F_VERSION_1\n"
	"  --gso           some TCP frames, partial checksums, up to 64 KiB\n"
	"  --queue-size=N  descriptors per ring (256)\n"
	"  --segments=N    most buffers in a chain (6)\n"
	"  --restarts=N    stop and start rings N times on the way (0)\n"
	"  --seed=N        of everything random (1)\n"
	"Runs in the network namespace of the tap. Exit status: 0 all "
	"arrived,\n"
	"1 something was lost, duplicated, reordered, changed or a rule "
	"broken,\n"
	"2 it could not be run, or this program itself lost frames.\n";

static int parse_switch(const char *v, bool *out)
{
	if (strcmp(v, "on") && strcmp(v, "off"))
		return -EINVAL;
	*out = !strcmp(v, "on");
	return 0;
}

static int parse_number(const char *v, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(v, &end, 0);
	return errno || *end || end == v || *out > max ? -EINVAL : 0;
}

static int parse_option(struct options *o, int c, const char *v)
{
	uint64_t n = 0;
	int err = 0;

	switch (c) {
	case 's':
		o->socket = v;
		return 0;
	case 'i':
		o->ifname = v;
		return 0;
	case 't':
		return parse_number(v, 1ULL << 40, &o->tx);
	case 'r':
		return parse_number(v, 1ULL << 40, &o->rx);
	case 'm':
		return parse_switch(v, &o->mrg);
	case 'e':
		return parse_switch(v, &o->event_idx);
	case 'd':
		return parse_switch(v, &o->indirect);
	case 'l':
		o->legacy = true;
		return 0;
	case 'g':
		o->gso = true;
		return 0;
	case 'q':
		err = parse_number(v, 32768, &n);
		o->queue_size = (unsigned int)n;
		return n < 2 || (n & (n - 1)) ? -EINVAL : err;
	case 'n':
		err = parse_number(v, LOAD_SEGMENTS_MAX, &n);
		o->segments = (unsigned int)n;
		return n ? err : -EINVAL;
	case 'R':
		err = parse_number(v, 1000000, &n);
		o->restarts = (unsigned int)n;
		return err;
	case 'S':
		return parse_number(v, UINT64_MAX, &o->seed);
	default:
		return -EINVAL;
	}
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option table[] = {
		{ "socket", 1, NULL, 's' },   { "ifname", 1, NULL, 'i' },
		{ "tx", 1, NULL, 't' },       { "rx", 1, NULL, 'r' },
		{ "mrg", 1, NULL, 'm' },      { "event-idx", 1, NULL, 'e' },
		{ "indirect", 1, NULL, 'd' }, { "legacy", 0, NULL, 'l' },
		{ "gso", 0, NULL, 'g' },      { "queue-size", 1, NULL, 'q' },
		{ "segments", 1, NULL, 'n' }, { "restarts", 1, NULL, 'R' },
		{ "seed", 1, NULL, 'S' },     { NULL, 0, NULL, 0 },
	};
	int c, index = 0;

	*o = (struct options){ .tx = 100000,
			       .rx = 100000,
			       .seed = 1,
			       .queue_size = 256,
			       .segments = 6,
			       .mrg = true,
			       .event_idx = true,
			       .indirect = true };
	while ((c = getopt_long(argc, argv, "", table, &index)) != -1) {
		if (c == '?')
			return -EINVAL;
		if (parse_option(o, c, optarg)) {
			fprintf(stderr, "vl-load: --%s=%s: bad value\n",
				table[index].name, optarg);
			return -EINVAL;
		}
	}
	return o->socket && o->ifname && optind == argc ? 0 : -EINVAL;
}

static int negotiate(struct load *l)
{
	const struct options *o = &l->o;
	uint64_t need = 0, want;

	if (!o->legacy)
		need |= BIT(VIRTIO_F_VERSION_1);
	if (o->mrg)
		need |= BIT(VIRTIO_NET_F_MRG_RXBUF);
	if (o->event_idx)
		need |= F_EVENT;
	if (o->indirect)
		need |= F_IND;
	if (o->gso)
		need |= BIT(VIRTIO_NET_F_CSUM) | BIT(VIRTIO_NET_F_GUEST_CSUM) |
			BIT(VIRTIO_NET_F_HOST_TSO4) |
			BIT(VIRTIO_NET_F_GUEST_TSO4);
	want = need | F_ANY;
	l->shape = (struct load_shape){
		.hdr_len = !o->legacy || o->mrg ? 12 : 10,
		.mrg = o->mrg,
		.indirect = o->indirect,
		.gso = o->gso,
		.segments = o->segments,
	};
	return load_vhost_negotiate(&l->vhost, want, need);
}

static int make_queues(struct load *l)
{
	struct rd_ring_config c = {
		.num = l->o.queue_size,
		.table_max = l->o.indirect ? LOAD_SEGMENTS_MAX : 0,
		.start = (uint16_t)rd_random(&l->rnd),
		.event_idx = l->o.event_idx,
	};
	uint32_t tx_slot = load_slot_size(&l->shape, LOAD_TX);
	uint32_t rx_slot = load_slot_size(&l->shape, LOAD_RX);
	uint64_t slots = c.num < LOAD_SLOTS_MAX ? c.num : LOAD_SLOTS_MAX;
	int err;

	/* Two regions with a hole between them, as real machines have. */
	err = rd_mem_init(&l->rings, 0x100000,
			  2ULL * c.num * (32 + 16 * c.table_max) + 65536);
	if (!err)
		err = rd_mem_init(&l->buffers, 1ULL << 32,
				  slots * (tx_slot + rx_slot + 128) +
					  (1 << 20));
	if (!err)
		err = load_queue_init(&l->txq, &l->rings, &l->buffers, &c,
				      tx_slot);
	if (!err)
		err = load_queue_init(&l->rxq, &l->rings, &l->buffers, &c,
				      rx_slot);
	l->txq.rnd = rd_random(&l->rnd);
	l->rxq.rnd = rd_random(&l->rnd);
	return err;
}

static int start(struct load *l)
{
	struct rd_mem *mem[] = { &l->rings, &l->buffers };
	int err = load_vhost_connect(&l->vhost, l->o.socket);

	if (!err)
		err = negotiate(l);
	if (!err)
		err = make_queues(l);
	if (!err)
		err = load_vhost_set_memory(&l->vhost, mem, 2);
	if (!err)
		err = load_vhost_ring_start(&l->vhost, RX_INDEX, &l->rxq.ring,
					    l->rxq.ring.avail_idx);
	if (!err)
		err = load_vhost_ring_start(&l->vhost, TX_INDEX, &l->txq.ring,
					    l->txq.ring.avail_idx);
	if (!err)
		err = load_net_open(l->o.ifname, &l->net);
	if (!err)
		err = load_net_wait_carrier(l->net, 5000);
	return err;
}

/* How many transmitted frames still fit under the socket's window. */
static unsigned int tx_room(struct load *l)
{
	uint64_t waiting = load_ledger_under_way(&l->tx);
	uint64_t cost =
		waiting ? l->cost_sent - l->cost[l->tx.next & 0xffff] : 0;
	uint64_t worst =
		load_net_cost(l->o.gso ? LOAD_GSO_FRAME : LOAD_MTU_FRAME);
	uint64_t room = load_net_rx_window(l->net);

	if (waiting > 32768 || cost + worst > room)
		return 0;
	room = (room - cost) / worst;
	return room > LOAD_BATCH_MAX ? LOAD_BATCH_MAX : (unsigned int)room;
}

static unsigned int step_tx(struct load *l)
{
	unsigned int moved = load_tx_reap(&l->txq, &l->errors);
	unsigned int max = tx_room(l);
	uint64_t first = l->tx.sent;
	struct load_frame f;

	if (l->txq.hold) {
		if (l->txq.ring.in_flight || load_ledger_under_way(&l->tx))
			return moved;
		l->txq.hold = false;
	}
	if (max)
		max = rd_range(&l->rnd, 1, max);
	moved += load_tx_send(&l->txq, &l->shape, &l->gen, &l->tx, max);
	for (; first < l->tx.sent; first++) {
		load_frame_make(&l->gen, LOAD_TX, first, &f);
		l->cost[first & 0xffff] = l->cost_sent;
		l->cost_sent += load_net_cost(f.len);
	}
	if (rd_range(&l->rnd, 0, 999) == 0)
		l->txq.hold = true;
	return moved;
}

static int step_rx(struct load *l)
{
	unsigned int moved =
		load_rx_reap(&l->rxq, &l->shape, &l->gen, &l->rx, &l->errors);
	uint64_t room = load_net_tx_window(l->net);
	uint64_t left = l->rx.total - l->rx.sent;
	int sent = 0;

	if (!l->rxq.hold)
		moved += load_rx_post(&l->rxq, &l->shape,
				      rd_range(&l->rnd, 1, LOAD_BATCH_MAX));
	if (rd_range(&l->rnd, 0, 999) == 0)
		l->rxq.hold = true;
	room -= room < load_ledger_under_way(&l->rx)
			? room
			: load_ledger_under_way(&l->rx);
	if (room > LOAD_NET_BATCH)
		room = LOAD_NET_BATCH;
	if (room > left)
		room = left;
	if (room)
		sent = load_net_send(l->net, &l->gen, &l->rx,
				     rd_range(&l->rnd, 1, (uint32_t)room));
	return sent < 0 ? sent : (int)moved + sent;
}

static bool finished(const struct load *l)
{
	return l->tx.next == l->tx.total && l->rx.next == l->rx.total &&
	       !l->txq.ring.in_flight;
}

/* Nothing to do: sleep until called. False when nothing will come any more. */
static bool nap(struct load *l)
{
	struct pollfd p[3] = {
		{ .fd = l->txq.ring.call_fd, .events = POLLIN },
		{ .fd = l->rxq.ring.call_fd, .events = POLLIN },
		{ .fd = load_net_fd(l->net), .events = POLLIN },
	};
	bool work = rd_enable_call(&l->txq.ring, 1);
	int ready = 1;

	work |= rd_enable_call(&l->rxq.ring, 1);
	if (!work)
		ready = poll(p, 3, NAP_MS);
	if (ready == 0 &&
	    (rd_used_count(&l->txq.ring) || rd_used_count(&l->rxq.ring)))
		l->missed_calls++;
	rd_calls(&l->txq.ring);
	rd_calls(&l->rxq.ring);
	rd_disable_call(&l->txq.ring);
	rd_disable_call(&l->rxq.ring);
	return vl_now_ns() - l->moved_ns < STALL_NS;
}

/* Stops a ring and starts it where the back-end says it stopped. */
static int restart(struct load *l)
{
	bool tx = rd_random(&l->rnd) >> 63;
	struct load_queue *q = tx ? &l->txq : &l->rxq;
	unsigned int index = tx ? TX_INDEX : RX_INDEX;
	uint16_t base, in_flight;
	int err = load_vhost_ring_stop(&l->vhost, index, &base);

	if (err)
		return err;
	if (tx)
		load_tx_reap(q, &l->errors);
	else
		load_rx_reap(q, &l->shape, &l->gen, &l->rx, &l->errors);
	in_flight = (uint16_t)(q->ring.avail_idx - base);
	if (q->ring.in_flight != in_flight)
		l->bad_base++;
	l->restarts++;
	return load_vhost_ring_start(&l->vhost, index, &q->ring, base);
}

/* Restarts are spread over the frames of the busier direction. */
static bool restart_due(const struct load *l)
{
	uint64_t done = l->tx.next + l->rx.next;
	uint64_t total = l->tx.total + l->rx.total;

	return l->restarts < l->o.restarts &&
	       done > total / (l->o.restarts + 1) * (l->restarts + 1);
}

static int run(struct load *l)
{
	l->start_ns = vl_now_ns();
	l->moved_ns = l->start_ns;
	rd_disable_call(&l->txq.ring);
	rd_disable_call(&l->rxq.ring);
	for (unsigned int turn = 0; !finished(l); turn++) {
		int moved = step_rx(l);

		if (moved < 0)
			return moved;
		moved += (int)step_tx(l);
		moved += load_net_receive(l->net, &l->gen, &l->tx);
		if (restart_due(l)) {
			int err = restart(l);

			if (err)
				return err;
		}
		if (moved) {
			if (turn % 64 == 0)
				l->moved_ns = vl_now_ns();
			continue;
		}
		if (l->rxq.hold) {
			l->rxq.hold = false;
			continue;
		}
		if (!nap(l)) {
			l->stalled = true;
			break;
		}
		if (load_net_receive(l->net, &l->gen, &l->tx) ||
		    rd_used_count(&l->txq.ring) || rd_used_count(&l->rxq.ring))
			l->moved_ns = vl_now_ns();
	}
	return 0;
}

/* Both rings stopped: the indices must account for every chain. */
static int stop(struct load *l)
{
	uint16_t base;
	int err = load_vhost_ring_stop(&l->vhost, TX_INDEX, &base);

	if (err)
		return err;
	load_tx_reap(&l->txq, &l->errors);
	if (base != l->txq.ring.avail_idx || l->txq.ring.in_flight)
		l->bad_base++;
	err = load_vhost_ring_stop(&l->vhost, RX_INDEX, &base);
	if (err)
		return err;
	load_rx_reap(&l->rxq, &l->shape, &l->gen, &l->rx, &l->errors);
	if ((uint16_t)(l->rxq.ring.avail_idx - base) != l->rxq.ring.in_flight)
		l->bad_base++;
	return 0;
}

static void print_direction(const char *name, const struct load_ledger *l,
			    const struct rd_ring *r, double s)
{
	printf("%s: frames %llu of %llu, %.0f frames/s, %.0f Mbit/s, "
	       "kicks %llu, kicks saved %llu\n",
	       name, (unsigned long long)l->arrived,
	       (unsigned long long)l->total, (double)l->arrived / s,
	       (double)l->bytes * 8 / s / 1e6, (unsigned long long)r->kicks,
	       (unsigned long long)r->kicks_saved);
	printf("%s: lost %llu duplicated %llu reordered %llu changed %llu\n",
	       name, (unsigned long long)load_ledger_lost(l),
	       (unsigned long long)l->duplicated,
	       (unsigned long long)l->reordered,
	       (unsigned long long)l->changed);
}

static int report(struct load *l)
{
	double s = (double)(vl_now_ns() - l->start_ns) / 1e9;
	const struct load_errors *e = &l->errors;
	uint64_t drops = load_net_drops(l->net);
	uint64_t broken = rd_errors(&l->txq.ring) + rd_errors(&l->rxq.ring);
	bool ok = load_ledger_ok(&l->tx) && load_ledger_ok(&l->rx) &&
		  !e->canary && !e->used && !e->num_buffers && !l->bad_base &&
		  !l->missed_calls && !broken;

	print_direction("tx", &l->tx, &l->txq.ring, s);
	print_direction("rx", &l->rx, &l->rxq.ring, s);
	printf("lost %llu duplicated %llu reordered %llu changed %llu\n",
	       (unsigned long long)(load_ledger_lost(&l->tx) +
				    load_ledger_lost(&l->rx)),
	       (unsigned long long)(l->tx.duplicated + l->rx.duplicated),
	       (unsigned long long)(l->tx.reordered + l->rx.reordered),
	       (unsigned long long)(l->tx.changed + l->rx.changed));
	printf("canaries %llu used-entries %llu num-buffers %llu bases %llu "
	       "missed-calls %llu broken-rings %llu empty %llu restarts "
	       "%llu\n",
	       (unsigned long long)e->canary, (unsigned long long)e->used,
	       (unsigned long long)e->num_buffers,
	       (unsigned long long)l->bad_base,
	       (unsigned long long)l->missed_calls, (unsigned long long)broken,
	       (unsigned long long)e->empty, (unsigned long long)l->restarts);
	if (l->stalled)
		printf("stalled: nothing moved for %llu s\n",
		       (unsigned long long)(STALL_NS / VL_NS_PER_SEC));
	if (l->stalled && load_net_refusal(l->net)) {
		printf("harness: the packet socket refuses frame %llu: %s\n",
		       (unsigned long long)l->rx.sent,
		       strerror(load_net_refusal(l->net)));
		return 2;
	}
	if (drops) {
		printf("harness: the packet socket itself dropped %llu\n",
		       (unsigned long long)drops);
		return 2;
	}
	return ok && !l->stalled ? 0 : 1;
}

int main(int argc, char **argv)
{
	static struct load l;
	int status = 2;

	if (parse(&l.o, argc, argv)) {
		fputs(usage, stderr);
		return 2;
	}
	l.vhost.sock = l.rings.fd = l.buffers.fd = -1;
	l.txq.ring.kick_fd = l.txq.ring.call_fd = l.txq.ring.err_fd = -1;
	l.rxq.ring.kick_fd = l.rxq.ring.call_fd = l.rxq.ring.err_fd = -1;
	l.rnd = l.o.seed * 2 + 1;
	if (load_gen_init(&l.gen, l.o.seed, l.o.gso) ||
	    load_ledger_init(&l.tx, l.o.tx) || load_ledger_init(&l.rx, l.o.rx))
		fputs("vl-load: no memory\n", stderr);
	else if (start(&l) == 0 && run(&l) == 0 && stop(&l) == 0)
		status = report(&l);
	load_vhost_close(&l.vhost);
	load_net_close(l.net);
	load_queue_free(&l.txq);
	load_queue_free(&l.rxq);
	rd_mem_free(&l.rings);
	rd_mem_free(&l.buffers);
	load_ledger_free(&l.tx);
	load_ledger_free(&l.rx);
	load_gen_free(&l.gen);
	return status;
}
