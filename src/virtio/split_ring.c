/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device side of a split virtqueue (virtio 1.2, section 2.7).
 *
 * The driver may change any byte of the ring at any time. Each value is
 * therefore loaded exactly once into a local, checked there and used from
 * there. Indices run freely modulo 2^16; last_avail and used_idx are private
 * and never taken back from shared memory while the queue runs.
 *
 * Ordering, in pairs with the driver:
 *   [A] our acquire of avail->idx sees the entries and descriptors that the
 *       driver wrote before its release of it.
 *   [B] our release of used->idx publishes used entries and buffer contents.
 *   [C] used->idx is visible before avail->flags / used_event is read: full
 *       fence in vl_vq_notify(). The driver does the mirror image.
 *   [D] avail_event / used->flags is visible before avail->idx is read again:
 *       full fence in vl_vq_enable_kick().
 *
 * Errors that leave us in doubt about the ring itself (an impossible index)
 * break the queue. Errors inside one chain cost that chain only.
 */
#include "virtio/virtqueue.h"

#include <errno.h>
#include <linux/virtio_ring.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/barrier.h"
#include "base/log.h"
#include "base/util.h"

static const char *const vq_error_names[] = {
	[VL_VQ_OK] = "ok",
	[VL_VQ_BAD_AVAIL_IDX] = "available index jumped past the ring",
	[VL_VQ_BAD_HEAD] = "head index past the descriptor table",
	[VL_VQ_BAD_NEXT] = "next index past the descriptor table",
	[VL_VQ_LOOP] = "descriptor chain is a loop",
	[VL_VQ_BAD_ADDRESS] = "buffer is not in guest memory",
	[VL_VQ_BAD_INDIRECT] = "bad indirect descriptor table",
	[VL_VQ_BAD_ORDER] = "device-readable buffer after a writable one",
	[VL_VQ_TOO_LONG] = "descriptor chain too long",
	[VL_VQ_MEM_LOST] = "guest memory was taken away by the front-end",
};
_Static_assert(VL_ARRAY_SIZE(vq_error_names) == VL_VQ_ERROR_COUNT,
	       "every queue error has a name");

const char *vl_vq_error_name(enum vl_vq_error e)
{
	return (unsigned int)e < VL_VQ_ERROR_COUNT ? vq_error_names[e]
						   : "unknown";
}

int vl_vq_start(struct vl_virtqueue *vq, const char *name,
		const struct vl_vring *ring, struct vl_guest_mem *mem)
{
	if (ring->num < 2 || ring->num > VL_VQ_SIZE_MAX ||
	    (ring->num & (ring->num - 1)) || !ring->desc || !ring->avail ||
	    !ring->used || !mem)
		return -EINVAL;

	vq->ring = *ring;
	vq->mem = vl_guest_mem_get(mem);
	(void)snprintf(vq->name, sizeof(vq->name), "%s", name);
	/* A driver that restarted has set it anew, one that stayed expects us
	 * to go on from here: the ring is right in both cases. */
	vq->used_idx = vl_load_acquire(&ring->used->idx);
	vq->published = vq->used_idx;
	/* Before a stop everything is handed back, so the base is the same. A
	 * front-end whose back-end was killed may not know it (DPDK's
	 * virtio-user says 0) or count what was in flight: go on behind what
	 * is used, or chains would be done twice, or never. */
	if (ring->base != vq->used_idx)
		vl_log(VL_LOG_DEBUG, name,
		       "goes on at index %u, where the used ring ends, not at "
		       "%u as the front-end said",
		       vq->used_idx, ring->base);
	vq->last_avail = vq->used_idx;
	vq->avail_cache = vq->used_idx;
	vq->signalled_valid = false;
	vq->pushed_since_start = false;
	vq->notify_enabled = true;
	vq->hint.region = 0;
	/* Memory lost before the start counts too: look at the first chance. */
	vq->losses_seen = vl_guest_mem_losses() - 1;
	vl_write_once(&vq->in_flight, 0u);
	vl_write_once(&vq->broken, false);
	vl_write_once(&vq->running, true);
	return 0;
}

uint16_t vl_vq_stop(struct vl_virtqueue *vq)
{
	if (!vq->running)
		return vq->last_avail;
	vl_vq_publish(vq);
	vl_vq_notify(vq);
	vl_write_once(&vq->running, false);
	vl_guest_mem_put(vq->mem);
	vq->mem = NULL;
	return vq->last_avail;
}

void vl_vq_break(struct vl_virtqueue *vq, enum vl_vq_error why)
{
	const uint64_t one = 1;

	if (vq->broken)
		return;
	vl_write_once(&vq->broken, true);
	VL_STAT_INC(vq->errors[why]);
	vl_log_limited(&vq->log_limit, VL_LOG_WARNING, vq->name,
		       "queue broken by its driver: %s; it stands still until "
		       "it is started again",
		       vl_vq_error_name(why));
	/* Nobody may be listening; the state is visible in any case. */
	if (vq->ring.err_fd >= 0 &&
	    write(vq->ring.err_fd, &one, sizeof(one)) < 0)
		vl_log(VL_LOG_DEBUG, vq->name, "error descriptor: %m");
}

/* True when the queue's memory was replaced by zero pages under us. */
static bool memory_lost(struct vl_virtqueue *vq)
{
	uint32_t losses = vl_guest_mem_losses();

	if (vl_likely(losses == vq->losses_seen))
		return false;
	vq->losses_seen = losses;
	return vl_guest_mem_lost(vq->mem);
}

uint32_t vl_vq_available(struct vl_virtqueue *vq)
{
	uint16_t n;

	if (vl_unlikely(!vq->running || vq->broken))
		return 0;
	vq->avail_cache = vl_load_acquire(&vq->ring.avail->idx); /* [A] */
	if (vl_unlikely(memory_lost(vq))) {
		vl_vq_break(vq, VL_VQ_MEM_LOST);
		return 0;
	}
	n = (uint16_t)(vq->avail_cache - vq->last_avail);
	if (vl_unlikely(n > vq->ring.num)) {
		vl_vq_break(vq, VL_VQ_BAD_AVAIL_IDX);
		return 0;
	}
	return n;
}

/* A descriptor in two loads; indirect tables may be at any address. */
struct raw_desc {
	uint64_t addr;
	uint64_t rest; /* len, flags, next in rising bits */
} __attribute__((packed, may_alias));

static void load_desc(const void *p, struct vring_desc *d)
{
	const volatile struct raw_desc *raw = p;
	uint64_t rest;

	d->addr = raw->addr;
	rest = raw->rest;
	d->len = (uint32_t)rest;
	d->flags = (uint16_t)(rest >> 32);
	d->next = (uint16_t)(rest >> 48);
}

/* Where the descriptors of a walk are. */
struct desc_table {
	const char *base; /* NULL: not contiguous in our memory, use gpa */
	uint64_t gpa;
	uint32_t count;
};

static void table_load(struct vl_virtqueue *vq, const struct desc_table *t,
		       uint32_t i, struct vring_desc *d)
{
	char raw[sizeof(*d)];
	uint64_t done = 0;

	if (vl_likely(t->base)) {
		load_desc(t->base + (size_t)i * sizeof(*d), d);
		return;
	}
	while (done < sizeof(raw)) {
		uint64_t part = sizeof(raw) - done;
		const void *p = vl_guest_mem_gpa(
			vq->mem, &vq->hint,
			t->gpa + (uint64_t)i * sizeof(*d) + done, &part);

		/* table_open() saw all of it mapped, and maps never change. */
		if (!p)
			break;
		memcpy(raw + done, p, part);
		done += part;
	}
	memset(raw + done, 0, sizeof(raw) - done);
	load_desc(raw, d);
}

/* The indirect table that @d refers to; all of it must be mapped. */
static bool table_open(struct vl_virtqueue *vq, const struct vring_desc *d,
		       struct desc_table *t)
{
	uint64_t done = 0;

	if (d->len == 0 || d->len % sizeof(*d) ||
	    d->len / sizeof(*d) > VL_VQ_SIZE_MAX)
		return false;
	t->count = d->len / (uint32_t)sizeof(*d);
	t->gpa = d->addr;
	t->base = NULL;
	while (done < d->len) {
		uint64_t part = d->len - done;
		const void *p = vl_guest_mem_gpa(vq->mem, &vq->hint,
						 d->addr + done, &part);

		if (!p)
			return false;
		if (part == d->len)
			t->base = p;
		done += part;
	}
	return true;
}

/* Appends the buffer of @d; several entries where it spans regions. */
static enum vl_vq_error add_buffer(struct vl_virtqueue *vq, struct vl_chain *c,
				   const struct vring_desc *d, bool *no_room)
{
	bool writable = d->flags & VRING_DESC_F_WRITE;
	uint64_t addr = d->addr;
	uint64_t left = d->len;

	if (!writable && c->n_writable)
		return VL_VQ_BAD_ORDER;
	while (left) {
		uint32_t n = c->n_readable + c->n_writable;
		uint64_t part = left;
		void *p = vl_guest_mem_gpa(vq->mem, &vq->hint, addr, &part);

		if (vl_unlikely(!p))
			return VL_VQ_BAD_ADDRESS;
		if (vl_unlikely(n == c->iov_cap)) {
			*no_room = true;
			return VL_VQ_TOO_LONG;
		}
		c->iov[n].iov_base = p;
		c->iov[n].iov_len = part;
		if (writable)
			c->n_writable++;
		else
			c->n_readable++;
		addr += part;
		left -= part;
	}
	if (writable)
		c->len_writable += d->len;
	else
		c->len_readable += d->len;
	return VL_VQ_OK;
}

/*
 * Follows the chain from c->head. Bounded by the number of descriptors of the
 * table it is in, so that no loop is endless whatever the lengths are.
 */
static enum vl_vq_error walk(struct vl_virtqueue *vq, struct vl_chain *c,
			     bool *no_room)
{
	struct desc_table t = {
		.base = (const char *)vq->ring.desc,
		.count = vq->ring.num,
	};
	uint32_t left = t.count;
	uint32_t i = c->head;
	bool indirect = false;

	for (;;) {
		struct vring_desc d;
		enum vl_vq_error err;

		if (vl_unlikely(left-- == 0))
			return VL_VQ_LOOP;
		table_load(vq, &t, i, &d);
		c->descs += !indirect;
		if (d.flags & VRING_DESC_F_INDIRECT) {
			if (indirect || !vq->ring.indirect ||
			    (d.flags & VRING_DESC_F_NEXT) ||
			    !table_open(vq, &d, &t))
				return VL_VQ_BAD_INDIRECT;
			indirect = true;
			left = t.count;
			i = 0;
			continue;
		}
		err = add_buffer(vq, c, &d, no_room);
		if (vl_unlikely(err))
			return err;
		if (!(d.flags & VRING_DESC_F_NEXT))
			break;
		i = d.next;
		if (vl_unlikely(i >= t.count))
			return VL_VQ_BAD_NEXT;
	}
	if (c->len_readable > UINT32_MAX || c->len_writable > UINT32_MAX)
		return VL_VQ_TOO_LONG;
	return VL_VQ_OK;
}

int vl_vq_pop(struct vl_virtqueue *vq, struct vl_chain *c)
{
	uint16_t mask = (uint16_t)(vq->ring.num - 1);
	enum vl_vq_error err;
	bool no_room = false;

	if (vq->last_avail == vq->avail_cache && !vl_vq_available(vq))
		return 0;
	if (vl_unlikely(vq->broken))
		return 0;
	c->head = vl_read_once(&vq->ring.avail->ring[vq->last_avail & mask]);
	if (vl_unlikely(c->head >= vq->ring.num)) {
		vl_vq_break(vq, VL_VQ_BAD_HEAD);
		return 0;
	}
	c->descs = 0;
	c->n_readable = 0;
	c->n_writable = 0;
	c->len_readable = 0;
	c->len_writable = 0;
	err = walk(vq, c, &no_room);
	if (vl_unlikely(no_room && c->iov_cap < VL_CHAIN_IOV_MAX))
		return -ENOBUFS;

	vq->last_avail++;
	vl_write_once(&vq->in_flight, vq->in_flight + 1);
	VL_STAT_INC(vq->popped);
	if (vl_unlikely(err)) {
		VL_STAT_INC(vq->errors[err]);
		return -EBADMSG;
	}
	return 1;
}

void vl_vq_unpop(struct vl_virtqueue *vq, uint32_t n)
{
	vq->last_avail = (uint16_t)(vq->last_avail - n);
	vl_write_once(&vq->in_flight, vq->in_flight - n);
	VL_STAT_ADD(vq->unpopped, n);
}

void vl_vq_push(struct vl_virtqueue *vq, uint16_t head, uint32_t len)
{
	uint16_t mask = (uint16_t)(vq->ring.num - 1);
	struct vring_used_elem *e = &vq->ring.used->ring[vq->used_idx & mask];

	vl_write_once(&e->id, (uint32_t)head);
	vl_write_once(&e->len, len);
	vq->used_idx++;
	vq->pushed_since_start = true;
	vl_write_once(&vq->in_flight, vq->in_flight - 1);
	VL_STAT_INC(vq->pushed);
}

void vl_vq_publish(struct vl_virtqueue *vq)
{
	if (vq->published == vq->used_idx)
		return;
	vl_store_release(&vq->ring.used->idx, vq->used_idx); /* [B] */
	vq->published = vq->used_idx;
}

/* used_event sits behind the available ring, avail_event behind the used one
 * (virtio 1.2, 2.7.6 and 2.7.8). */
static uint16_t load_used_event(const struct vl_virtqueue *vq)
{
	return vl_read_once(&vq->ring.avail->ring[vq->ring.num]);
}

static void store_avail_event(struct vl_virtqueue *vq, uint16_t event)
{
	void *after = &vq->ring.used->ring[vq->ring.num];
	uint16_t *avail_event = after;

	vl_write_once(avail_event, event);
}

static bool driver_wants_notification(struct vl_virtqueue *vq)
{
	uint16_t old = vq->signalled;
	bool first = !vq->signalled_valid;

	vq->signalled = vq->published;
	vq->signalled_valid = true;
	/* What the driver last saw before the queue was (re)started is not
	 * known, so the first completion is always announced. */
	if (first)
		return true;
	if (vq->ring.event_idx)
		return vring_need_event(load_used_event(vq), vq->published,
					old);
	return !(vl_read_once(&vq->ring.avail->flags) &
		 VRING_AVAIL_F_NO_INTERRUPT);
}

void vl_vq_notify(struct vl_virtqueue *vq)
{
	const uint64_t one = 1;

	if (vl_unlikely(!vq->running))
		return;
	if (vq->signalled_valid ? vq->signalled == vq->published
				: !vq->pushed_since_start)
		return;
	vl_full_fence(); /* [C] */
	if (!driver_wants_notification(vq) || vq->ring.call_fd < 0) {
		VL_STAT_INC(vq->notifications_suppressed);
		return;
	}
	VL_STAT_INC(vq->notifications_sent);
	/* EAGAIN: the driver has an unseen notification already. EPIPE: it is
	 * gone, which the vhost-user connection will tell. */
	if (write(vq->ring.call_fd, &one, sizeof(one)) < 0)
		return;
}

bool vl_vq_enable_kick(struct vl_virtqueue *vq)
{
	if (vl_unlikely(!vq->running || vq->broken))
		return false;
	if (vq->ring.event_idx)
		store_avail_event(vq, vq->last_avail);
	else
		vl_write_once(&vq->ring.used->flags, (uint16_t)0);
	vq->notify_enabled = true;
	vl_full_fence(); /* [D] */
	if (vl_vq_available(vq) == 0)
		return false;
	vl_vq_disable_kick(vq);
	return true;
}

void vl_vq_disable_kick(struct vl_virtqueue *vq)
{
	if (!vq->notify_enabled || !vq->running)
		return;
	vq->notify_enabled = false;
	/* With the event index an event in the past asks for nothing. */
	if (!vq->ring.event_idx)
		vl_write_once(&vq->ring.used->flags,
			      (uint16_t)VRING_USED_F_NO_NOTIFY);
}
