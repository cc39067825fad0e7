/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frames of the load program. Everything about a frame follows from the
 * seed, its direction and its sequence number, so the receiver knows every
 * byte it has to see; the ledger says which were seen, and in which order.
 */
#ifndef BENCH_LOAD_FRAME_H
#define BENCH_LOAD_FRAME_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define LOAD_MTU_FRAME 1514u
/* A device takes no longer one whole (its gso_max_size). */
#define LOAD_GSO_FRAME 65535u

enum load_dir {
	LOAD_TX, /* guest to host */
	LOAD_RX, /* host to guest */
};

struct load_gen {
	uint64_t seed;
	bool gso;      /* some frames are TCP/IPv4, some of them 64 KiB */
	uint8_t *pool; /* payloads are pieces of it */
};

struct load_frame {
	struct virtio_net_hdr hdr; /* of offload fields: what must be seen */
	uint8_t head[80];
	uint32_t head_len;
	const uint8_t *payload;
	uint32_t payload_len;
	uint32_t len; /* of the frame: head and payload */
};

int load_gen_init(struct load_gen *g, uint64_t seed, bool gso);
void load_gen_free(struct load_gen *g);

/* Frame number @seq. */
void load_frame_make(const struct load_gen *g, enum load_dir dir, uint64_t seq,
		     struct load_frame *f);

enum load_verdict {
	LOAD_GOOD,
	LOAD_FOREIGN, /* not of this program (the host's own traffic) */
	LOAD_CHANGED,
};

/*
 * Checks a received frame with its virtio header @hdr: number @seq is set when
 * the result is LOAD_GOOD.
 */
enum load_verdict load_frame_check(const struct load_gen *g, enum load_dir dir,
				   const struct virtio_net_hdr *hdr,
				   const struct iovec *iov, size_t n,
				   uint64_t *seq);

/* What was sent and what has arrived of one direction. */
struct load_ledger {
	uint64_t total; /* to send */
	uint64_t sent;
	uint64_t next; /* highest number that arrived, plus one */
	uint64_t arrived, bytes;
	uint64_t duplicated, reordered, changed, foreign;
	uint8_t *seen; /* one bit per frame */
};

int load_ledger_init(struct load_ledger *l, uint64_t total);
void load_ledger_free(struct load_ledger *l);
/* A good frame arrived; one that was never sent counts as changed. */
void load_ledger_arrive(struct load_ledger *l, uint64_t seq);
/* Frames under way: sent, and nothing at or behind them has arrived. */
uint64_t load_ledger_under_way(const struct load_ledger *l);
/* Of @sent, what never arrived in any form. */
uint64_t load_ledger_lost(const struct load_ledger *l);
bool load_ledger_ok(const struct load_ledger *l);

#endif
