/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio-net device: features, config space, and which queue runs where.
 *
 * The control thread owns everything in struct vl_device except the workers,
 * which it changes through vl_worker_call(). So a ring is started or stopped
 * between two turns of its worker, and when the call returns the worker is
 * done with it.
 *
 * A port of the backend takes part in the host network while a ring of its
 * queue pair runs and the pair is in use: with a control queue here, the
 * driver says how many pairs it uses (VIRTIO_NET_CTRL_MQ); without one the
 * front-end does, by starting rings. A port that is taken out loses what waits
 * in it, so that does not happen when a ring stops only to start again at once
 * (a new memory table), but when the changes are over: vl_device_settle().
 */
#include "net/device.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/barrier.h"
#include "base/log.h"
#include "base/util.h"
#include "net/ctrlq.h"
#include "net/lane_stats.h"
#include "net/worker.h"
#include "virtio/net_hdr.h"

/* What CTRL_GUEST_OFFLOADS may switch. */
#define GUEST_OFFLOADS                                                         \
	(VL_FEATURE(VIRTIO_NET_F_GUEST_CSUM) |                                 \
	 VL_FEATURE(VIRTIO_NET_F_GUEST_TSO4) |                                 \
	 VL_FEATURE(VIRTIO_NET_F_GUEST_TSO6) |                                 \
	 VL_FEATURE(VIRTIO_NET_F_GUEST_ECN) |                                  \
	 VL_FEATURE(VIRTIO_NET_F_GUEST_USO4) |                                 \
	 VL_FEATURE(VIRTIO_NET_F_GUEST_USO6))

struct pair {
	struct vl_worker worker;
	bool running[2]; /* receiveq, transmitq */
	bool active;     /* the port takes part */
	uint32_t size[2];
};

struct vl_device {
	struct vl_device_config config;
	struct vl_backend *backend;
	struct vl_guest_mem *mem;
	uint64_t offered;
	uint64_t features;
	uint64_t offloads; /* GUEST_* features in force */
	uint32_t mtu;      /* agreed by NET_SET_MTU */
	enum vl_link link;
	struct vl_log_limit link_limit;
	bool announce; /* the driver shall announce itself */
	struct virtio_net_config space;

	struct vl_ctrlq *ctrl;
	unsigned int ctrl_pairs; /* in use, as the driver said */

	unsigned int n_pairs;
	struct pair *pairs;
};

static uint64_t offered_features(const struct vl_device *dev)
{
	const struct vl_backend_caps *caps = &dev->backend->caps;
	uint64_t f = VL_FEATURE(VIRTIO_F_VERSION_1) |
		     VL_FEATURE(VIRTIO_F_ANY_LAYOUT) |
		     VL_FEATURE(VIRTIO_RING_F_INDIRECT_DESC) |
		     VL_FEATURE(VIRTIO_RING_F_EVENT_IDX) |
		     VL_FEATURE(VIRTIO_NET_F_MAC) |
		     VL_FEATURE(VIRTIO_NET_F_STATUS) |
		     VL_FEATURE(VIRTIO_NET_F_MRG_RXBUF) |
		     VL_FEATURE(VIRTIO_NET_F_CTRL_VQ) |
		     VL_FEATURE(VIRTIO_NET_F_CTRL_RX) |
		     VL_FEATURE(VIRTIO_NET_F_CTRL_RX_EXTRA) |
		     VL_FEATURE(VIRTIO_NET_F_CTRL_MAC_ADDR) |
		     VL_FEATURE(VIRTIO_NET_F_GUEST_ANNOUNCE);

	if (caps->csum)
		f |= VL_FEATURE(VIRTIO_NET_F_CSUM) |
		     VL_FEATURE(VIRTIO_NET_F_GUEST_CSUM) |
		     VL_FEATURE(VIRTIO_NET_F_CTRL_GUEST_OFFLOADS);
	if (caps->csum && caps->tso)
		f |= VL_FEATURE(VIRTIO_NET_F_HOST_TSO4) |
		     VL_FEATURE(VIRTIO_NET_F_HOST_TSO6) |
		     VL_FEATURE(VIRTIO_NET_F_GUEST_TSO4) |
		     VL_FEATURE(VIRTIO_NET_F_GUEST_TSO6);
	if (caps->csum && caps->tso && caps->tso_ecn)
		f |= VL_FEATURE(VIRTIO_NET_F_HOST_ECN) |
		     VL_FEATURE(VIRTIO_NET_F_GUEST_ECN);
	if (caps->csum && caps->uso)
		f |= VL_FEATURE(VIRTIO_NET_F_HOST_USO) |
		     VL_FEATURE(VIRTIO_NET_F_GUEST_USO4) |
		     VL_FEATURE(VIRTIO_NET_F_GUEST_USO6);
	if (dev->config.mtu)
		f |= VL_FEATURE(VIRTIO_NET_F_MTU);
	if (dev->n_pairs > 1)
		f |= VL_FEATURE(VIRTIO_NET_F_MQ);
	return f;
}

static void update_space(struct vl_device *dev)
{
	bool down = dev->link == VL_LINK_DOWN || dev->link == VL_LINK_GONE;

	dev->space.status =
		(uint16_t)((down ? 0 : VIRTIO_NET_S_LINK_UP) |
			   (dev->announce ? VIRTIO_NET_S_ANNOUNCE : 0));
	dev->space.max_virtqueue_pairs = (uint16_t)dev->n_pairs;
	dev->space.mtu = (uint16_t)dev->config.mtu;
}

/* The features as far as reception is concerned. */
static uint64_t rx_features(const struct vl_device *dev)
{
	return (dev->features & ~GUEST_OFFLOADS) | dev->offloads;
}

static int apply_offloads(struct vl_device *dev)
{
	uint64_t f = rx_features(dev);
	struct vl_offload o = {
		.hdr_len = vl_net_hdr_len(f),
		.csum = f & VL_FEATURE(VIRTIO_NET_F_GUEST_CSUM),
		.tso4 = f & VL_FEATURE(VIRTIO_NET_F_GUEST_TSO4),
		.tso6 = f & VL_FEATURE(VIRTIO_NET_F_GUEST_TSO6),
		.ecn = f & VL_FEATURE(VIRTIO_NET_F_GUEST_ECN),
		.uso4 = f & VL_FEATURE(VIRTIO_NET_F_GUEST_USO4),
		.uso6 = f & VL_FEATURE(VIRTIO_NET_F_GUEST_USO6),
	};
	int err = dev->backend->ops->set_offload(dev->backend, &o);

	/* A deleted interface takes nothing any more; that state has its own
	 * report and must not end the session. */
	if (err &&
	    (dev->link == VL_LINK_GONE || vl_io_verdict(err) == VL_IO_GONE))
		return 0;
	if (err)
		vl_log(VL_LOG_WARNING, dev->backend->label,
		       "cannot set offloads: %s", strerror(-err));
	return err;
}

struct activate_call {
	bool active;
	int err;
};

static void activate_fn(struct vl_worker *w, void *arg)
{
	struct activate_call *call = arg;

	call->err = vl_lane_set_activate(&w->tx.lanes, call->active);
}

static void update_port(struct vl_device *dev, unsigned int i)
{
	struct pair *p = &dev->pairs[i];
	unsigned int used =
		dev->ctrl->vq.running ? dev->ctrl_pairs : dev->n_pairs;
	struct activate_call call = {
		.active = (p->running[0] || p->running[1]) && i < used,
	};

	if (call.active == p->active)
		return;
	vl_worker_call(&p->worker, activate_fn, &call);
	if (call.err && dev->link != VL_LINK_GONE)
		vl_log(VL_LOG_WARNING, dev->backend->label,
		       "cannot %s queue %u: %s",
		       call.active ? "attach" : "detach", i,
		       strerror(-call.err));
	if (!call.err)
		p->active = call.active;
}

static void update_ports(struct vl_device *dev)
{
	for (unsigned int i = 0; i < dev->n_pairs; i++)
		update_port(dev, i);
}

static int ctrl_set_pairs(void *arg, uint16_t pairs)
{
	struct vl_device *dev = arg;

	if (pairs < 1 || pairs > dev->n_pairs)
		return -EINVAL;
	dev->ctrl_pairs = pairs;
	update_ports(dev);
	return 0;
}

static int set_mac(struct vl_device *dev, const uint8_t mac[6])
{
	const struct vl_backend_ops *ops = dev->backend->ops;
	int err = ops->set_mac ? ops->set_mac(dev->backend, mac) : 0;

	if (!err)
		memcpy(dev->space.mac, mac, sizeof(dev->space.mac));
	return err;
}

static int ctrl_set_mac(void *arg, const uint8_t mac[6])
{
	struct vl_device *dev = arg;

	return mac[0] & 1 ? -EINVAL : set_mac(dev, mac);
}

static void rx_features_fn(struct vl_worker *w, void *arg)
{
	const uint64_t *features = arg;

	vl_rxq_set_features(&w->rx, *features);
}

static int ctrl_set_offloads(void *arg, uint64_t offloads)
{
	struct vl_device *dev = arg;
	uint64_t before = dev->offloads;
	uint64_t features;
	int err;

	if (offloads & ~(dev->features & GUEST_OFFLOADS))
		return -EINVAL;
	dev->offloads = offloads;
	err = apply_offloads(dev);
	if (err)
		dev->offloads = before;
	features = rx_features(dev);
	for (unsigned int i = 0; !err && i < dev->n_pairs; i++)
		vl_worker_call(&dev->pairs[i].worker, rx_features_fn,
			       &features);
	return err;
}

static int ctrl_announce_ack(void *arg)
{
	struct vl_device *dev = arg;

	dev->announce = false;
	update_space(dev);
	return 0;
}

static void notify_fn(struct vl_worker *w, void *arg)
{
	(void)w;
	vl_vq_notify(arg);
}

static void ctrl_notify(void *arg, struct vl_virtqueue *vq)
{
	struct vl_device *dev = arg;

	vl_worker_call(&dev->pairs[0].worker, notify_fn, vq);
}

static const struct vl_ctrl_ops ctrl_ops = {
	.set_pairs = ctrl_set_pairs,
	.set_mac = ctrl_set_mac,
	.set_offloads = ctrl_set_offloads,
	.announce_ack = ctrl_announce_ack,
	.notify = ctrl_notify,
};

static int start_workers(struct vl_device *dev)
{
	unsigned int wanted = dev->n_pairs;

	dev->n_pairs = 0;
	for (unsigned int i = 0; i < wanted; i++) {
		struct vl_worker *w = &dev->pairs[i].worker;
		int err = dev->backend->ops->set_active(dev->backend, i, false);

		w->rx.mtu = dev->backend->mtu;
		if (!err)
			err = vl_worker_start(w, dev->backend, i,
					      dev->config.engine,
					      dev->config.tx_full);
		if (err)
			return err;
		dev->n_pairs++;
	}
	return 0;
}

int vl_device_new(const struct vl_device_config *config,
		  struct vl_backend *backend, struct vl_device **out)
{
	struct vl_device *dev;
	int err;

	if (config->queue_pairs < 1 ||
	    config->queue_pairs > VL_SNAPSHOT_PAIRS_MAX ||
	    config->queue_pairs > backend->ports)
		return -EINVAL;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->config = *config;
	dev->backend = backend;
	dev->n_pairs = config->queue_pairs;
	dev->pairs = calloc(dev->n_pairs, sizeof(dev->pairs[0]));
	dev->ctrl = calloc(1, sizeof(*dev->ctrl));
	if (!dev->pairs || !dev->ctrl) {
		dev->n_pairs = 0;
		vl_device_free(dev);
		return -ENOMEM;
	}
	dev->ctrl->ops = &ctrl_ops;
	dev->ctrl->dev = dev;
	dev->link = backend->link;
	dev->offered = offered_features(dev);
	err = start_workers(dev);
	if (err) {
		vl_device_free(dev);
		return err;
	}
	vl_device_reset(dev);
	*out = dev;
	return 0;
}

void vl_device_free(struct vl_device *dev)
{
	uint16_t base;

	if (!dev)
		return;
	for (unsigned int i = 0; dev->ctrl && i < vl_device_queues(dev); i++)
		vl_device_vring_stop(dev, i, &base);
	for (unsigned int i = 0; i < dev->n_pairs; i++)
		vl_worker_join(&dev->pairs[i].worker);
	vl_guest_mem_put(dev->mem);
	free(dev->ctrl);
	free(dev->pairs);
	free(dev);
}

unsigned int vl_device_queues(const struct vl_device *dev)
{
	return 2 * dev->n_pairs + 1;
}

uint64_t vl_device_features(const struct vl_device *dev)
{
	return dev->offered;
}

static void pause_fn(struct vl_worker *w, void *arg)
{
	(void)arg;
	w->tx.lanes.paused = true;
}

static void convert_fn(struct vl_worker *w, void *arg)
{
	const uint32_t *hdr_len = arg;

	vl_txq_convert(&w->tx, *hdr_len);
	w->tx.lanes.paused = false;
}

/* The same, where the header may get another length: packets of the session
 * before may still wait in side lanes. */
static int apply_features(struct vl_device *dev, uint64_t before)
{
	uint32_t old_len = vl_net_hdr_len(before);
	uint32_t hdr_len = vl_net_hdr_len(dev->features);
	int err;

	for (unsigned int i = 0; old_len != hdr_len && i < dev->n_pairs; i++)
		vl_worker_call(&dev->pairs[i].worker, pause_fn, NULL);
	err = apply_offloads(dev);
	for (unsigned int i = 0; old_len != hdr_len && i < dev->n_pairs; i++)
		vl_worker_call(&dev->pairs[i].worker, convert_fn, &hdr_len);
	return err;
}

int vl_device_set_features(struct vl_device *dev, uint64_t features)
{
	uint64_t before;

	if (features & ~dev->offered)
		return -EINVAL;
	before = dev->features;
	dev->features = features;
	dev->offloads = features & GUEST_OFFLOADS;
	return apply_features(dev, before);
}

int vl_device_set_mem(struct vl_device *dev, struct vl_guest_mem *mem)
{
	if (mem)
		vl_guest_mem_get(mem);
	vl_guest_mem_put(dev->mem);
	dev->mem = mem;
	return 0;
}

struct start_call {
	bool tx;
	const struct vl_vring *ring;
	struct vl_guest_mem *mem;
	uint64_t features;
	int err;
};

static void start_fn(struct vl_worker *w, void *arg)
{
	struct start_call *call = arg;

	call->err = vl_worker_vring_start(w, call->tx, call->ring, call->mem,
					  call->features);
}

/* The control queue comes after the pairs that the driver knows of: all with
 * VIRTIO_NET_F_MQ, one without (virtio 1.2, 5.1.2). */
static bool is_ctrl(const struct vl_device *dev, unsigned int index)
{
	unsigned int pairs =
		dev->features & VL_FEATURE(VIRTIO_NET_F_MQ) ? dev->n_pairs : 1;

	return (dev->features & VL_FEATURE(VIRTIO_NET_F_CTRL_VQ)) &&
	       index == 2 * pairs;
}

static int start_ctrl(struct vl_device *dev, const struct vl_vring *ring)
{
	int err = vl_vq_start(&dev->ctrl->vq, "ctrl", ring, dev->mem);

	if (err)
		return err;
	dev->ctrl_pairs = 1;
	update_ports(dev);
	if (dev->config.ctrl_watch)
		dev->config.ctrl_watch(dev->config.ctx, ring->kick_fd);
	return 0;
}

int vl_device_vring_start(struct vl_device *dev, unsigned int index,
			  const struct vl_vring *ring)
{
	struct start_call call = {
		.tx = index & 1,
		.ring = ring,
		.mem = dev->mem,
	};
	struct pair *p;

	if (index >= vl_device_queues(dev) || !dev->mem)
		return -EINVAL;
	if (is_ctrl(dev, index))
		return start_ctrl(dev, ring);
	if (index / 2 >= dev->n_pairs)
		return -EINVAL;
	p = &dev->pairs[index / 2];
	call.features = call.tx ? dev->features : rx_features(dev);
	p->running[call.tx] = true;
	p->size[call.tx] = ring->num;
	update_port(dev, index / 2);
	vl_worker_call(&p->worker, start_fn, &call);
	if (call.err) {
		p->running[call.tx] = false;
		update_port(dev, index / 2);
	}
	return call.err;
}

struct stop_call {
	bool tx;
	uint16_t base;
};

static void stop_fn(struct vl_worker *w, void *arg)
{
	struct stop_call *call = arg;

	call->base = vl_worker_vring_stop(w, call->tx);
}

void vl_device_vring_stop(struct vl_device *dev, unsigned int index,
			  uint16_t *base)
{
	struct stop_call call = { .tx = index & 1 };
	struct pair *p;

	if (index >= vl_device_queues(dev))
		return;
	if (is_ctrl(dev, index)) {
		if (dev->ctrl->vq.running && dev->config.ctrl_watch)
			dev->config.ctrl_watch(dev->config.ctx, -1);
		*base = vl_vq_stop(&dev->ctrl->vq);
		return;
	}
	if (index / 2 >= dev->n_pairs)
		return;
	p = &dev->pairs[index / 2];
	if (!p->running[call.tx])
		return;
	vl_worker_call(&p->worker, stop_fn, &call);
	*base = call.base;
	p->running[call.tx] = false;
}

void vl_device_settle(struct vl_device *dev)
{
	update_ports(dev);
}

struct fd_call {
	bool tx;
	bool err;
	int fd;
};

static void fd_fn(struct vl_worker *w, void *arg)
{
	const struct fd_call *call = arg;
	struct vl_vring *ring = call->tx ? &w->tx.vq.ring : &w->rx.vq.ring;

	if (call->err)
		ring->err_fd = call->fd;
	else
		ring->call_fd = call->fd;
}

static void set_fd(struct vl_device *dev, unsigned int index, int fd, bool err)
{
	struct fd_call call = { .tx = index & 1, .err = err, .fd = fd };
	struct vl_vring *ring = &dev->ctrl->vq.ring;

	if (index >= vl_device_queues(dev))
		return;
	if (is_ctrl(dev, index) && err)
		ring->err_fd = fd;
	else if (is_ctrl(dev, index))
		ring->call_fd = fd;
	else if (index / 2 < dev->n_pairs)
		vl_worker_call(&dev->pairs[index / 2].worker, fd_fn, &call);
}

void vl_device_vring_call(struct vl_device *dev, unsigned int index, int fd)
{
	set_fd(dev, index, fd, false);
}

void vl_device_vring_err(struct vl_device *dev, unsigned int index, int fd)
{
	set_fd(dev, index, fd, true);
}

int vl_device_get_config(struct vl_device *dev, uint32_t offset, void *buf,
			 uint32_t len)
{
	if (len == 0 || offset > sizeof(dev->space) ||
	    len > sizeof(dev->space) - offset)
		return -EINVAL;
	memcpy(buf, (const char *)&dev->space + offset, len);
	return 0;
}

int vl_device_set_mtu(struct vl_device *dev, uint64_t mtu)
{
	if (mtu < 68 || mtu > 65535)
		return -EINVAL;
	dev->mtu = (uint32_t)mtu;
	return 0;
}

static void forget_fn(struct vl_worker *w, void *arg)
{
	(void)arg;
	vl_rxq_forget(&w->rx);
}

void vl_device_reset(struct vl_device *dev)
{
	uint64_t before = dev->features;

	for (unsigned int i = 0; i < dev->n_pairs; i++)
		vl_worker_call(&dev->pairs[i].worker, forget_fn, NULL);
	dev->features = 0;
	dev->offloads = 0;
	dev->mtu = 0;
	dev->announce = false;
	dev->ctrl_pairs = 1;
	if (set_mac(dev, dev->config.mac))
		vl_log(VL_LOG_WARNING, dev->backend->label,
		       "cannot receive for the offered MAC address again");
	update_space(dev);
	(void)apply_features(dev, before);
}

bool vl_device_ctrl_kick(struct vl_device *dev)
{
	return vl_ctrlq_run(dev->ctrl, dev->features);
}

struct link_call {
	enum vl_link link;
	uint32_t mtu;
};

static void link_fn(struct vl_worker *w, void *arg)
{
	const struct link_call *call = arg;

	vl_rxq_set_mtu(&w->rx, call->mtu);
	vl_lane_set_link(&w->tx.lanes, call->link == VL_LINK_DOWN);
}

void vl_device_backend_event(struct vl_device *dev)
{
	struct vl_backend *b = dev->backend;
	uint32_t mtu = b->mtu;
	struct link_call call;

	b->ops->event(b);
	if (b->link == dev->link && b->mtu == mtu)
		return;
	call = (struct link_call){ .link = b->link, .mtu = b->mtu };
	for (unsigned int i = 0; i < dev->n_pairs; i++)
		vl_worker_call(&dev->pairs[i].worker, link_fn, &call);
	if (b->link == dev->link)
		return;
	if (b->link == VL_LINK_GONE)
		vl_log(VL_LOG_WARNING, b->label,
		       "link is gone; make it again and restart virtlane");
	else
		vl_log_limited(&dev->link_limit, VL_LOG_INFO, b->label,
			       "link is %s", vl_link_name(b->link));
	/* Who comes back shall tell the network where it is. */
	if (b->link == VL_LINK_UP &&
	    (dev->features & VL_FEATURE(VIRTIO_NET_F_GUEST_ANNOUNCE)) &&
	    dev->ctrl->vq.running)
		dev->announce = true;
	dev->link = b->link;
	update_space(dev);
	if (dev->config.config_changed)
		dev->config.config_changed(dev->config.ctx);
}

static void queue_snapshot(const struct vl_virtqueue *vq, uint32_t size,
			   const struct vl_hist *latency,
			   struct vl_queue_snapshot *q)
{
	q->running = vl_read_once(&vq->running);
	q->broken = vl_read_once(&vq->broken);
	q->size = size;
	q->pending = vl_read_once(&vq->in_flight);
	q->notifications_sent = vl_read_once(&vq->notifications_sent);
	q->notifications_suppressed =
		vl_read_once(&vq->notifications_suppressed);
	vl_hist_snapshot(latency, &q->latency_ns);
}

static void name_dests_fn(struct vl_worker *w, void *arg)
{
	vl_lane_stats_name(&w->tx, arg);
}

static void tunnel_snapshot(const struct vl_backend *b, unsigned int port,
			    struct vl_pair_snapshot *s)
{
	const struct vl_tunnel_counters *c =
		b->ops->tunnel ? b->ops->tunnel(b, port) : NULL;

	s->has_tunnel = c;
	if (c)
		vl_counters_copy(&s->tunnel, c, sizeof(s->tunnel));
}

static void pair_snapshot(struct pair *p, struct vl_pair_snapshot *s)
{
	struct vl_worker *w = &p->worker;
	const struct vl_io_stats *io = vl_io_stats(w->io);

	queue_snapshot(&w->tx.vq, p->size[1], &w->tx.latency_ns, &s->txq);
	queue_snapshot(&w->rx.vq, p->size[0], &w->rx.latency_ns, &s->rxq);
	vl_counters_copy(&s->tx, &w->tx.counters, sizeof(s->tx));
	vl_counters_copy(&s->rx, &w->rx.counters, sizeof(s->rx));
	s->cpu_ns = vl_cycles_cpu_ns(&w->cycles);
	s->cycles = vl_cycles_read(&w->cycles);
	s->syscalls = vl_read_once(&io->syscalls) + s->txq.notifications_sent +
		      s->rxq.notifications_sent;
	s->waits = vl_read_once(&io->waits);
	tunnel_snapshot(w->backend, w->index, s);
	/* The worker is not disturbed unless there is something to name. */
	if (vl_lane_stats_read(&w->tx, s))
		vl_worker_call(w, name_dests_fn, s);
}

void vl_device_snapshot(struct vl_device *dev, struct vl_snapshot *s)
{
	const uint8_t *mac = dev->space.mac;

	(void)snprintf(s->backend, sizeof(s->backend), "%s %s",
		       dev->backend->ops->name, dev->backend->label);
	s->link = vl_link_name(dev->link);
	s->engine = dev->config.engine == VL_IO_URING ? "uring" : "sync";
	s->cycles_source = vl_cycles_source(&dev->pairs[0].worker.cycles);
	(void)snprintf(s->mac, sizeof(s->mac), "%02x:%02x:%02x:%02x:%02x:%02x",
		       mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	s->mtu = dev->mtu ? dev->mtu : dev->config.mtu;
	s->features = dev->features;
	s->guest_memory = vl_guest_mem_size(dev->mem);
	s->memory_regions = (uint32_t)vl_guest_mem_count(dev->mem);
	s->ctrl_commands = dev->ctrl->commands;
	s->ctrl_errors = dev->ctrl->errors;
	s->pairs = dev->n_pairs;
	for (unsigned int i = 0; i < dev->n_pairs; i++)
		pair_snapshot(&dev->pairs[i], &s->pair[i]);
}
