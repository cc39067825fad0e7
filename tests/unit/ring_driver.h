/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver's side of a split virtqueue (virtio 1.2, section 2.7), for tests,
 * fuzz targets and the load program: guest memory in a memfd, descriptor
 * chains of every layout, and the rules for notifications both ways. It
 * depends on nothing of the device but base/barrier.h.
 */
#ifndef TESTS_RING_DRIVER_H
#define TESTS_RING_DRIVER_H

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>

/* One region of guest memory. The driver's own address of it is also what it
 * tells the device as its user address. */
struct rd_mem {
	int fd;
	uint8_t *base;
	uint64_t gpa;
	uint64_t size;
	uint64_t used; /* bytes handed out from the start */
};

/* Makes and maps @size zero bytes at guest address @gpa. 0 or -errno. */
int rd_mem_init(struct rd_mem *m, uint64_t gpa, uint64_t size);
void rd_mem_free(struct rd_mem *m);

/* Takes @size bytes, @align a power of two. Guest address, 0 when full
 * (address 0 itself is therefore never handed out). */
uint64_t rd_mem_alloc(struct rd_mem *m, uint64_t size, uint64_t align);

/* The driver's own address of guest address @gpa, which lies in @m. */
void *rd_mem_ptr(const struct rd_mem *m, uint64_t gpa);

struct rd_seg {
	uint64_t gpa;
	uint32_t len;
};

enum rd_layout {
	RD_DIRECT,   /* one descriptor per segment, chained */
	RD_INDIRECT, /* one descriptor that names a table with all segments */
	RD_MIXED,    /* the first half direct, the rest in a table */
	RD_LAYOUTS,
};

struct rd_ring_config {
	uint32_t num;       /* power of two, 2 to 32768 */
	uint32_t table_max; /* entries of an indirect table, 0: none */
	uint16_t start;     /* first avail and used index */
	bool event_idx;
};

/* What the driver remembers of a chain, by head. */
struct rd_chain {
	uint32_t cookie;
	uint16_t n_desc; /* 0: not with the device */
};

struct rd_ring {
	struct rd_mem *mem;
	uint32_t num;
	uint32_t table_max;
	bool event_idx;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint64_t desc_gpa, avail_gpa, used_gpa, table_gpa;
	int kick_fd, call_fd, err_fd;

	uint16_t avail_idx;  /* next entry to fill */
	uint16_t kicked_idx; /* avail_idx at the last look at the kick rule */
	uint16_t last_used;  /* next used entry to read */
	uint16_t *free;      /* stack of free descriptors */
	uint32_t n_free;
	uint32_t in_flight; /* chains with the device */
	uint16_t *next;     /* private copy of the chain links */
	struct rd_chain *chain;
	uint64_t kicks, kicks_saved;
	uint64_t bad_used; /* used entries that name no chain in flight */
};

/* Lays the ring out in @mem and makes its event descriptors (non-blocking
 * eventfds). 0 or -errno. */
int rd_ring_init(struct rd_ring *r, struct rd_mem *mem,
		 const struct rd_ring_config *c);
void rd_ring_free(struct rd_ring *r);

/* Forgets all chains and starts again with both indices at @start. */
void rd_ring_reset(struct rd_ring *r, uint16_t start);

/* Fills descriptor @i; no accounting. For hand-made chains. */
void rd_desc(struct rd_ring *r, uint16_t i, struct rd_seg seg, uint16_t flags,
	     uint16_t next);

/* Appends @head to the avail ring; no accounting, seen after rd_publish(). */
void rd_avail(struct rd_ring *r, uint16_t head);

/*
 * Makes a chain of @n_out device-readable and then @n_in device-writable
 * segments. The device sees it after rd_publish(). Returns the head,
 * -ENOSPC when there are too few free descriptors, -E2BIG when the layout
 * cannot hold so many segments.
 */
int rd_add(struct rd_ring *r, const struct rd_seg *seg, unsigned int n_out,
	   unsigned int n_in, enum rd_layout layout, uint32_t cookie);

/* One release store of avail->idx for everything added. */
void rd_publish(struct rd_ring *r);

/* After a publish: does the device want a kick? (2.7.10, 2.7.13.3) */
bool rd_want_kick(struct rd_ring *r);

/* Kicks unconditionally / only when wanted. */
void rd_kick(struct rd_ring *r);
void rd_kick_if_wanted(struct rd_ring *r);

/* A chain the device handed back. */
struct rd_done {
	uint16_t head;
	uint32_t len;
	uint32_t cookie;
};

/* Chains handed back and not taken yet. */
uint32_t rd_used_count(const struct rd_ring *r);

/*
 * Takes the next used entry. Returns 1, 0 when there is none, -EINVAL for an
 * entry that names no chain in flight (skipped, counted in bad_used).
 */
int rd_take(struct rd_ring *r, struct rd_done *done);

/*
 * Asks for a call when @after further chains are used (0 counts as 1), then
 * looks again: true when that many are there already.
 */
bool rd_enable_call(struct rd_ring *r, uint16_t after);
void rd_disable_call(struct rd_ring *r);

/* Takes the calls that arrived; their number (0: none). */
uint64_t rd_calls(struct rd_ring *r);
/* The same for the err descriptor. */
uint64_t rd_errors(struct rd_ring *r);

/* The indices that the event index feature shares. */
uint16_t rd_avail_event(const struct rd_ring *r);
uint16_t rd_used_event(const struct rd_ring *r);
void rd_set_used_event(struct rd_ring *r, uint16_t idx);

/* A small pseudo-random generator (xorshift64*), reproducible by seed. */
static inline uint64_t rd_random(uint64_t *state)
{
	uint64_t x = *state ? *state : 0x9e3779b97f4a7c15ULL;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dULL;
}

/* Uniform enough in [lo, hi]. */
static inline uint32_t rd_range(uint64_t *state, uint32_t lo, uint32_t hi)
{
	return lo +
	       (uint32_t)((rd_random(state) >> 32) * ((uint64_t)hi - lo + 1) >>
			  32);
}

#endif
