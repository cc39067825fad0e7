/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The guest side of the load: one transmitq and one receiveq with chains of
 * random layout, each buffer of the receiveq followed by a canary.
 */
#ifndef BENCH_LOAD_GUEST_H
#define BENCH_LOAD_GUEST_H

#include "load_frame.h"
#include "ring_driver.h"

#define LOAD_SEGMENTS_MAX 32u
#define LOAD_SLOTS_MAX    1024u
#define LOAD_BATCH_MAX    64u

/* What was negotiated, and what was asked for. */
struct load_shape {
	uint32_t hdr_len; /* 10 or 12 */
	bool mrg;
	bool indirect;
	bool gso;
	unsigned int segments; /* most descriptors in a chain */
};

/* A buffer area, and how the chain that uses it now was laid out. */
struct load_slot {
	uint64_t gpa;
	uint32_t n;
	uint32_t capacity; /* bytes of all segments */
	struct rd_seg seg[LOAD_SEGMENTS_MAX];
};

struct load_queue {
	struct rd_ring ring;
	struct rd_mem *mem;
	struct load_slot *slot;
	uint16_t *free; /* slots without a chain */
	uint32_t n_free;
	uint32_t slot_size;
	uint64_t rnd;
	bool hold; /* adds nothing until the device has caught up */
};

struct load_errors {
	uint64_t canary; /* bytes behind a buffer were written */
	uint64_t used;   /* used entries that name no chain, wrong lengths */
	uint64_t num_buffers;
	uint64_t empty; /* receive buffers handed back with nothing in them */
};

int load_queue_init(struct load_queue *q, struct rd_mem *rings,
		    struct rd_mem *buffers, const struct rd_ring_config *c,
		    uint32_t slot_size);
void load_queue_free(struct load_queue *q);

/* The slot size that load_tx_send() / load_rx_post() need. */
uint32_t load_slot_size(const struct load_shape *s, enum load_dir dir);

/* Takes back what the device has sent. Number of chains. */
unsigned int load_tx_reap(struct load_queue *q, struct load_errors *e);

/* Adds, publishes and kicks up to @max next frames of @l. Their number. */
unsigned int load_tx_send(struct load_queue *q, const struct load_shape *s,
			  const struct load_gen *g, struct load_ledger *l,
			  unsigned int max);

/* Checks what was received and enters it into @l. Number of chains. */
unsigned int load_rx_reap(struct load_queue *q, const struct load_shape *s,
			  const struct load_gen *g, struct load_ledger *l,
			  struct load_errors *e);

/* Posts up to @max buffers. Their number. */
unsigned int load_rx_post(struct load_queue *q, const struct load_shape *s,
			  unsigned int max);

#endif
