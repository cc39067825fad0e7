/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_guest.h"

#include <linux/virtio_ring.h>
#include <string.h>

#include "base/barrier.h"
#include "base/log.h"

void fuzz_guest_init(struct fuzz_guest *g)
{
	struct vl_mem_region region[2];

	/* Hostile rings are logged; here they are all hostile. */
	vl_log_set_level(VL_LOG_ERROR);
	fuzz_check(rd_mem_init(&g->low, 0, FUZZ_LOW) == 0);
	fuzz_check(rd_mem_init(&g->high, FUZZ_LOW, FUZZ_HIGH) == 0);
	region[0] = (struct vl_mem_region){
		.gpa = 0,
		.size = FUZZ_LOW,
		.uva = 0x10000000,
		.fd = g->low.fd,
	};
	region[1] = (struct vl_mem_region){
		.gpa = FUZZ_LOW,
		.size = FUZZ_HIGH,
		.uva = 0x20000000,
		.fd = g->high.fd,
	};
	fuzz_check(vl_guest_mem_new(region, 2, &g->mem) == 0);
}

static void *at(const struct fuzz_guest *g, uint32_t gpa)
{
	return gpa < FUZZ_LOW ? g->low.base + gpa
			      : g->high.base + (gpa - FUZZ_LOW);
}

void fuzz_guest_reset(struct fuzz_guest *g, struct fuzz_input *in)
{
	memset(g->low.base, 0, FUZZ_LOW);
	memset(g->high.base, 0, FUZZ_HIGH);
	for (unsigned int q = 0; q < FUZZ_RINGS; q++) {
		struct vring_avail *avail = at(g, FUZZ_AVAIL(q));
		struct vring_used *used = at(g, FUZZ_USED(q));

		g->num[q] = 2u << (fuzz_u8(in) & 7);
		g->avail_idx[q] = fuzz_u16(in);
		avail->idx = g->avail_idx[q];
		used->idx = g->avail_idx[q];
	}
}

/* The device's own mapping of @gpa. */
static void *host(const struct fuzz_guest *g, uint32_t gpa)
{
	struct vl_mem_hint hint = { 0 };
	uint64_t len = 1;

	return vl_guest_mem_gpa(g->mem, &hint, gpa, &len);
}

struct vl_vring fuzz_guest_vring(const struct fuzz_guest *g, unsigned int q)
{
	return (struct vl_vring){
		.num = g->num[q],
		.base = g->avail_idx[q],
		.desc = host(g, FUZZ_RING(q)),
		.avail = host(g, FUZZ_AVAIL(q)),
		.used = host(g, FUZZ_USED(q)),
		.kick_fd = -1,
		.call_fd = -1,
		.err_fd = -1,
		.event_idx = true,
		.indirect = true,
	};
}

static void read_desc(struct fuzz_input *in, struct vring_desc *d)
{
	uint8_t flags;

	d->addr = fuzz_u32(in);
	/* The top of the address space is as interesting as the bottom. */
	if (d->addr >= 0xff000000)
		d->addr |= 0xffffffff00000000ULL;
	d->len = fuzz_u32(in);
	flags = fuzz_u8(in);
	d->flags = (uint16_t)(flags & 7);
	d->next = fuzz_u16(in);
}

static void patch(struct fuzz_guest *g, struct fuzz_input *in)
{
	uint32_t offset = fuzz_u16(in);
	uint32_t gpa = offset + (fuzz_u8(in) % 3u) * 0x10000u;

	for (uint8_t n = fuzz_u8(in); n && in->left; n--, gpa++)
		if (gpa < FUZZ_LOW + FUZZ_HIGH)
			*(uint8_t *)at(g, gpa) = fuzz_u8(in);
}

bool fuzz_guest_step(struct fuzz_guest *g, uint8_t op, struct fuzz_input *in)
{
	struct vring_desc d;
	struct vring_avail *avail;
	unsigned int q;
	uint32_t i;

	switch (op) {
	case 0:
		patch(g, in);
		return true;
	case 1:
		q = fuzz_u8(in) % FUZZ_RINGS;
		i = fuzz_u16(in) & (g->num[q] - 1);
		read_desc(in, &d);
		memcpy(at(g, FUZZ_RING(q) + 16 * i), &d, sizeof(d));
		return true;
	case 2:
		q = fuzz_u8(in) % FUZZ_RINGS;
		avail = at(g, FUZZ_AVAIL(q));
		i = g->avail_idx[q]++ & (g->num[q] - 1);
		vl_write_once(&avail->ring[i], fuzz_u16(in));
		vl_store_release(&avail->idx, g->avail_idx[q]);
		return true;
	case 3:
		i = fuzz_u16(in);
		read_desc(in, &d);
		memcpy(at(g, i), &d, sizeof(d));
		return true;
	default:
		return false;
	}
}

bool fuzz_guest_owns(const struct fuzz_guest *g, const void *p, size_t len)
{
	const char *low = host(g, 0), *high = host(g, FUZZ_LOW);
	const char *c = p;

	if (c >= low && c < low + FUZZ_LOW)
		return len <= (size_t)(low + FUZZ_LOW - c);
	return c >= high && c < high + FUZZ_HIGH &&
	       len <= (size_t)(high + FUZZ_HIGH - c);
}
