/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device over a network that takes packets from where they lie, and releases
 * them when a test says so. Each frame has an id and is filled with a pattern
 * made of it: the network compares it when it is sent and again when it is
 * released, and the driver overwrites what it gets back at once.
 */
#ifndef TESTS_ZCOPY_FIXTURE_H
#define TESTS_ZCOPY_FIXTURE_H

#include "device_fixture.h"

#define ZF_TX     1u
#define ZF_DESTS  32u
#define ZF_BUFFER 6144u /* bytes, the header included */
#define ZF_CHAINS 1024u
#define ZF_MAX    2048u /* sends that are not released */
#define ZF_IDS    65536u

/* A send that is not released. */
struct zf_send {
	uint64_t tag;
	uint32_t id, len, dest;
	unsigned int n;
	struct iovec iov[36];
	bool failed;
	bool release; /* as soon as the device asks */
};

struct zcopy_fixture {
	struct device d;
	struct vl_snapshot snap;
	uint32_t num;

	/* The network, under d.lock. */
	struct zf_send pending[ZF_MAX]; /* in the order of sending */
	uint32_t n_pending;
	bool hold[ZF_DESTS];    /* what is sent to it stays pending */
	bool stalled[ZF_DESTS]; /* and is charged to its way */
	uint32_t charged[4];
	bool copied; /* what the kernel says of those released */
	int result;  /* how the next fail_n sends end */
	uint32_t fail_n;
	uint64_t zc_sent[ZF_DESTS], copy_sent[ZF_DESTS]; /* taken */
	uint64_t bad, reordered;
	uint32_t next_id[ZF_DESTS]; /* lowest that may come */

	/* The driver. */
	uint64_t gpa[ZF_CHAINS];
	uint16_t free_buf[ZF_CHAINS];
	uint32_t n_buf;
	uint16_t buf_of[ZF_IDS];
	uint32_t ids;          /* sent so far */
	uint32_t back[ZF_IDS]; /* ids in the order in which they came back */
	uint32_t n_back;
};

/* How a frame lies in guest memory: in @pieces, as @layout. */
struct zf_shape {
	unsigned int pieces;
	enum rd_layout layout;
};

/* Starts the device and a transmitq of c->num entries. */
void zf_init(struct zcopy_fixture *f, const struct dev_config *c,
	     enum vl_zerocopy mode);
void zf_free(struct zcopy_fixture *f);

/* Makes a frame of @len bytes (with its header) for @dest available. Returns
 * its id, -1 if there is no room. */
int zf_send(struct zcopy_fixture *f, uint32_t dest, uint32_t len,
	    const struct zf_shape *s);
/* The same for @n of them, in one piece; kicks. */
void zf_send_many(struct zcopy_fixture *f, uint32_t dest, uint32_t len,
		  uint32_t n);

/* Takes what came back; returns the number. */
uint32_t zf_take(struct zcopy_fixture *f);
/* Does so until @n chains or more came back in all; fails after 3 s. */
void zf_wait_back(struct zcopy_fixture *f, uint32_t n);
/* Waits until @n sends are pending. */
void zf_wait_pending(struct zcopy_fixture *f, uint32_t n);

/* Releases the pending send that was the @nth of all. */
void zf_release(struct zcopy_fixture *f, uint32_t nth);
/* Releases all, now and from now on. */
void zf_release_all(struct zcopy_fixture *f);

/* The counters of the transmitq, now. */
const struct vl_tx_counters *zf_counters(struct zcopy_fixture *f);
const struct vl_zc_snapshot *zf_zerocopy(struct zcopy_fixture *f);

/* Nothing is pending or waits, everything came back, and all was good. */
void zf_check_end(struct zcopy_fixture *f);

void zf_nap_ms(long ms);

#endif
