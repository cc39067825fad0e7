/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "lane/steer.h"

/* A turn that has not ended after so many rounds never does. */
#define ROUNDS_MAX 5000u
#define FRAME_MAX  65536u
/* What the kernel charges for a packet besides its bytes. */
#define OVERHEAD   700u

static uint8_t filler[FRAME_MAX];

static struct lane_net *to_net(struct vl_backend *b)
{
	return vl_container_of(b, struct lane_net, base);
}

static int set_active(struct vl_backend *b, unsigned int port, bool active)
{
	(void)port;
	(void)active;
	return to_net(b)->active_result;
}

static int port_start(struct vl_backend *b, unsigned int port, struct vl_io *io,
		      uint64_t tag)
{
	(void)tag;
	(void)b;
	(void)port;
	(void)io;
	return 0;
}

static void port_stop(struct vl_backend *b, unsigned int port, struct vl_io *io)
{
	(void)b;
	(void)port;
	(void)io;
}

static void arrive(struct lane_net *n, const struct net_packet *p,
		   unsigned int way)
{
	struct net_dest *d = &n->dest[p->dest];

	if (d->taken && ((int32_t)(p->pkt.seq - d->last_seq) < 0 ||
			 (p->pkt.seq == d->last_seq &&
			  (!p->whole || p->offset <= d->last_offset))))
		n->reordered++;
	d->last_seq = p->pkt.seq;
	d->last_offset = p->offset;
	d->taken++;
	d->taken_bytes += p->pkt.len;
	if (d->taken_ns && n->ls.now_ns - d->taken_ns > d->stall_ns)
		d->stall_ns = n->ls.now_ns - d->taken_ns;
	d->taken_ns = n->ls.now_ns;
	n->way[way].sent++;
	if (!d->rate)
		return;
	assert_true(d->count < NET_QUEUE);
	d->queue[(d->first + d->count++) % NET_QUEUE] =
		(struct net_queued){ (uint8_t)way, p->small, p->pkt.len,
				     p->added_ns };
	n->way[way].charged += p->pkt.len + OVERHEAD;
}

/* Way @way executes the send of packet @index. */
static void execute(struct lane_net *n, uint32_t index, unsigned int way,
		    bool linked)
{
	const struct net_packet *p = &n->packet[index];
	struct net_way *w = &n->way[way];
	int res = (int)p->pkt.len;

	if (n->broken_link && linked) {
		vl_io_post(n->io, -ECANCELED, index);
		return;
	}
	n->sends++;
	if (w->sndbuf && w->charged >= w->sndbuf) {
		res = -EAGAIN;
	} else if (w->fail) {
		res = w->fail;
		w->fail = 0;
	} else if (n->fail_every && n->sends % n->fail_every == 0) {
		res = -EINVAL;
	} else {
		arrive(n, p, way);
	}
	if (linked)
		n->broken_link = res < 0;
	vl_io_post(n->io, res, index);
}

static void net_send(struct vl_backend *b, unsigned int port, unsigned int way,
		     struct vl_io *io, const struct vl_frame *f)
{
	struct lane_net *n = to_net(b);
	const struct net_packet *p = &n->packet[f->tag];

	assert_int_equal(port, 0);
	assert_ptr_equal(io, n->io);
	assert_true(p->used);
	assert_int_equal(p->pkt.lane, way < b->ways ? way : VL_PKT_BY_PROBE);
	assert_false(f->linked && way >= b->ways);
	if (f->linked && b->probes)
		n->linked[n->n_linked++] = (uint32_t)f->tag;
	else
		execute(n, (uint32_t)f->tag, way, f->linked);
}

static void submit(struct lane_net *n)
{
	for (uint32_t i = 0; i < n->n_linked; i++)
		execute(n, n->linked[i], n->packet[n->linked[i]].pkt.lane,
			true);
	n->n_linked = 0;
	n->broken_link = false;
	vl_io_submit(n->io);
}

static uint64_t net_headroom(struct vl_backend *b, unsigned int port,
			     unsigned int way)
{
	const struct net_way *w = &to_net(b)->way[way];

	(void)port;
	/* A tap that is down is not writable. */
	if (way >= b->ways)
		return !w->charged && b->link != VL_LINK_DOWN;
	return 2 * w->charged < w->sndbuf ? w->sndbuf / 2 : 0;
}

static int net_poll(struct vl_backend *b, unsigned int port, unsigned int way,
		    struct vl_io *io, uint32_t events, uint64_t tag)
{
	struct lane_net *n = to_net(b);

	(void)port;
	(void)io;
	(void)tag;
	assert_int_equal(events, EPOLLOUT);
	n->way[way].armed = !n->poll_result;
	return n->poll_result;
}

static void net_poll_cancel(struct vl_backend *b, unsigned int port,
			    unsigned int way, struct vl_io *io, uint32_t events,
			    uint64_t tag)
{
	(void)port;
	(void)io;
	(void)events;
	if (tag)
		to_net(b)->way[way].armed = false;
}

static const struct vl_backend_ops net_ops = {
	.name = "net",
	.set_active = set_active,
	.port_start = port_start,
	.port_stop = port_stop,
	.send = net_send,
	.headroom = net_headroom,
	.poll = net_poll,
	.poll_cancel = net_poll_cancel,
};

static struct net_packet *to_packet(struct vl_pkt *pkt)
{
	return vl_container_of(pkt, struct net_packet, pkt);
}

static void give_back(struct lane_net *n, struct net_packet *p)
{
	assert_true(p->used);
	p->used = false;
	n->n_used--;
	n->pool -= p->kept;
}

static void on_done(void *owner, struct vl_pkt *pkt, enum vl_pkt_end end)
{
	struct lane_net *n = owner;
	struct net_packet *p = to_packet(pkt);
	struct net_dest *d = &n->dest[p->dest];

	assert_false(pkt->sending);
	assert_int_equal(p->parts, 0);
	d->ended[end]++;
	if (end != VL_PKT_SENT)
		d->largest_dropped = vl_max_u32(d->largest_dropped, pkt->len);
	if (p->whole && !--p->whole->parts)
		give_back(n, p->whole);
	give_back(n, p);
}

static bool on_park(void *owner, struct vl_pkt *pkt, bool may_copy)
{
	struct lane_net *n = owner;
	struct net_packet *p = to_packet(pkt);

	assert_true(p->used);
	assert_false(p->kept);
	n->parks[p->dest]++;
	if (!may_copy || n->pool == n->pool_max)
		return false;
	n->pool++;
	if (n->pool > n->pool_peak)
		n->pool_peak = n->pool;
	p->kept = true;
	return true;
}

static struct net_packet *free_packet(struct lane_net *n)
{
	for (uint32_t i = 0; i < NET_PACKETS; i++)
		if (!n->packet[i].used)
			return &n->packet[i];
	fail_msg("more packets wait than the pool holds");
	return n->packet;
}

/* Part of @w with @len bytes of payload behind @offset. */
static struct net_packet *make_part(struct lane_net *n, struct net_packet *w,
				    uint32_t offset, uint32_t len)
{
	struct net_packet *p = free_packet(n);
	uint32_t head = NET_SEGMENT - NET_MSS;

	*p = (struct net_packet){
		.pkt = {
			.iov = p->iov,
			.n_iov = 2,
			.len = head + len,
			.seq = w->pkt.seq,
			.tag = (uint64_t)(p - n->packet),
		},
		.dest = w->dest,
		.used = true,
		.kept = w->kept,
		.whole = w,
		.offset = offset,
		.added_ns = w->added_ns,
	};
	memcpy(p->head, w->head, sizeof(p->head));
	p->iov[0] = (struct iovec){ p->head, sizeof(p->head) };
	p->iov[1] = (struct iovec){ filler, p->pkt.len - VL_DEST_PEEK };
	n->n_used++;
	n->pool += p->kept;
	w->parts++;
	return p;
}

static struct vl_pkt *on_cut(void *owner, struct vl_pkt *pkt, uint32_t bytes)
{
	struct lane_net *n = owner;
	struct net_packet *w = to_packet(pkt);
	uint32_t payload = pkt->len - (NET_SEGMENT - NET_MSS);
	uint32_t part = vl_max_u32(bytes / NET_MSS, 1) * NET_MSS;
	uint32_t parts = (payload + part - 1) / part;
	struct vl_pkt *first = NULL, **link = &first;

	assert_true(pkt->can_cut);
	assert_true(w->used);
	assert_false(pkt->sending);
	assert_true(pkt->len > bytes);
	assert_true(n->ls.side[pkt->lane].slow);
	n->cut_calls++;
	pkt->can_cut = n->cut != NET_CUT_NEVER;
	if (n->cut != NET_CUT || parts < 2 ||
	    n->n_used + parts + VL_LANES_BATCH > NET_PACKETS ||
	    (w->kept && n->pool + parts > n->pool_max))
		return NULL;
	for (uint32_t done = 0; done < payload; done += part) {
		*link = &make_part(n, w, done, vl_min_u32(part, payload - done))
				 ->pkt;
		link = &(*link)->next;
	}
	n->pool_peak = vl_max_u32(n->pool_peak, n->pool);
	n->dest[w->dest].cuts++;
	n->dest[w->dest].offered += parts - 1;
	return first;
}

static const struct vl_lane_set_ops lane_ops = {
	.done = on_done,
	.park = on_park,
	.cut = on_cut,
};

static void init(struct lane_net *n, enum vl_tx_full mode, uint64_t express,
		 uint64_t side)
{
	n->dest = calloc(NET_DESTS, sizeof(n->dest[0]));
	assert_non_null(n->dest);
	n->base.ops = &net_ops;
	n->base.ports = 1;
	n->base.link = VL_LINK_UP;
	n->pool_max = 512;
	for (unsigned int i = 0; i < n->base.ways; i++) {
		n->way[i].sndbuf = i ? side : express;
		n->ls.lane[i].tag_out = 1000000 + i;
	}
	for (unsigned int i = 0; i < n->base.probes; i++)
		n->way[n->base.ways + i].sndbuf = 1;
	n->ls.ops = &lane_ops;
	n->ls.owner = n;
	n->ls.mode = mode;
	n->ls.now_ns = VL_NS_PER_SEC;
	/* Enough for all that run at a submit. */
	assert_int_equal(
		vl_io_new(VL_IO_SYNC, n->base.probes ? 1024 : 128, &n->io), 0);
	assert_int_equal(vl_io_start(n->io), 0);
	assert_int_equal(vl_lane_set_start(&n->ls, &n->base, 0, n->io), 0);
	assert_int_equal(vl_lane_set_activate(&n->ls, true), 0);
}

void net_init(struct lane_net *n, enum vl_tx_full mode, unsigned int ways,
	      uint64_t express, uint64_t side)
{
	memset(n, 0, sizeof(*n));
	n->base.ways = ways;
	n->base.limited = true;
	init(n, mode, express, side);
}

void net_init_probes(struct lane_net *n, unsigned int ways, uint64_t express,
		     uint64_t side, unsigned int probes)
{
	memset(n, 0, sizeof(*n));
	n->base.ways = ways;
	n->base.limited = express;
	n->base.probes = probes;
	init(n, VL_TX_FULL_LANES, express, side);
}

void net_free(struct lane_net *n)
{
	vl_lane_set_stop(&n->ls);
	vl_io_free(n->io);
	free(n->dest);
}

static void make_frame(struct net_packet *p, unsigned int dest, uint32_t len)
{
	uint8_t *frame = p->head + NET_HDR_LEN;

	memset(p->head, 0, sizeof(p->head));
	frame[0] = 2;
	frame[5] = (uint8_t)dest; /* some share a MAC address */
	frame[12] = 0x08;
	frame[30] = 10;
	frame[32] = (uint8_t)(dest >> 8);
	frame[33] = (uint8_t)dest;
	p->dest = (uint16_t)dest;
	p->iov[0] =
		(struct iovec){ p->head,
				NET_HDR_LEN + vl_min_u32(len, VL_DEST_PEEK) };
	p->iov[1] =
		(struct iovec){ filler,
				len > VL_DEST_PEEK ? len - VL_DEST_PEEK : 0 };
}

bool net_add(struct lane_net *n, unsigned int dest, uint32_t len)
{
	struct net_packet *p;

	if (!vl_lane_set_ready(&n->ls) && !n->ls.in_flight)
		return false;
	if (n->ls.in_flight >= VL_LANES_BATCH || !vl_io_room(n->io))
		return false;
	p = free_packet(n);
	make_frame(p, dest, len);
	p->used = true;
	p->kept = false;
	p->small = len <= NET_SEGMENT;
	p->whole = NULL;
	p->offset = 0;
	p->parts = 0;
	p->added_ns = n->ls.now_ns;
	n->n_used++;
	p->pkt.iov = p->iov;
	p->pkt.n_iov = 2;
	p->pkt.len = len;
	p->pkt.seq = n->seq++;
	p->pkt.can_cut = !p->small;
	p->pkt.tag = (uint64_t)(p - n->packet);
	n->dest[dest].offered++;
	vl_lane_set_send(&n->ls, &p->pkt);
	return true;
}

static void reap(struct lane_net *n)
{
	struct vl_io_event ev[64];
	unsigned int k;

	submit(n);
	do {
		k = vl_io_reap(n->io, ev, 64);
		for (unsigned int i = 0; i < k; i++)
			vl_lane_set_complete(&n->ls, &n->packet[ev[i].tag].pkt,
					     ev[i].res);
	} while (k);
	assert_int_equal(n->ls.in_flight, 0);
}

void net_turn(struct lane_net *n)
{
	vl_lane_set_pump(&n->ls);
	n->rounds = 0;
	do {
		reap(n);
		if (++n->rounds > ROUNDS_MAX)
			fail_msg("a turn does not end");
	} while (vl_lane_set_settle(&n->ls));
}

static void drain(struct lane_net *n, struct net_dest *d, uint64_t ns)
{
	d->credit_ns += ns;
	while (d->count) {
		struct net_queued *q = &d->queue[d->first];
		uint64_t takes = d->rate ? q->len * VL_NS_PER_SEC / d->rate : 0;

		if (takes > d->credit_ns)
			return;
		d->credit_ns -= takes;
		d->smalls += q->small;
		if (q->small && n->ls.now_ns - q->added_ns > d->small_ns)
			d->small_ns = n->ls.now_ns - q->added_ns;
		n->way[q->way].charged -= q->len + OVERHEAD;
		d->first = (d->first + 1) % NET_QUEUE;
		d->count--;
	}
	/* No credit is saved up while there is nothing to take. */
	d->credit_ns = 0;
}

void net_advance(struct lane_net *n, uint64_t ns)
{
	n->ls.now_ns += ns;
	for (unsigned int i = 0; i < NET_DESTS; i++)
		drain(n, &n->dest[i], ns);
	for (unsigned int i = 0; i < n->ls.n; i++) {
		struct net_way *w = &n->way[i];

		if (!w->armed || 2 * w->charged > w->sndbuf)
			continue;
		w->armed = false;
		vl_lane_set_writable(&n->ls, i);
	}
	vl_steer_back(&n->ls);
	vl_probes_look(&n->ls);
}

uint64_t net_dropped(const struct lane_net *n, unsigned int dest)
{
	uint64_t sum = 0;

	for (int i = VL_PKT_SENT + 1; i <= VL_PKT_POOL; i++)
		sum += n->dest[dest].ended[i];
	return sum;
}
