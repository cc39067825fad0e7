/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device with lanes, for tests of what waits. The network: each way takes
 * LF_CHARGE_MAX packets for destinations that are stalled, any number for
 * others. The destination of a frame is the last byte of its MAC address.
 */
#ifndef TESTS_LANES_FIXTURE_H
#define TESTS_LANES_FIXTURE_H

#include "device_fixture.h"

#define LF_TX         1u
#define LF_RING_MAX   256u
#define LF_WAYS       8u
#define LF_DESTS      16u
#define LF_CHARGE_MAX 8u
#define LF_SMALL      2048u  /* bytes of a small buffer */
#define LF_BIG        65600u /* and of a large one */
#define LF_BIGS       64u
#define LF_PIECES     64u
#define LF_MS         1000000ULL

struct lanes_fixture {
	struct device d;
	struct vl_snapshot snap; /* see lf_check_bounds() */
	uint32_t num;

	/* The network, under d.lock. */
	bool stalled[LF_DESTS];
	uint32_t charged[LF_WAYS];
	uint32_t hdr_len;
	uint64_t taken[LF_DESTS];
	uint64_t bad; /* packets that @check did not like */
	/* Whether packet @p of @len bytes for @dest is as it has to be. */
	bool (*check)(const uint8_t *p, uint32_t len, uint32_t dest);

	/* Buffers of the driver that are not in the ring, and those of the
	 * chains that are: the large ones from LF_RING_MAX on. */
	uint64_t small_gpa[LF_RING_MAX], big_gpa[LF_BIGS];
	uint16_t small_free[LF_RING_MAX], big_free[LF_BIGS];
	uint16_t in_ring[LF_RING_MAX];
	uint32_t n_small, n_big;
};

/* How a packet lies in guest memory. */
struct lf_shape {
	uint32_t first; /* bytes of the first piece; 0: as the others */
	uint32_t piece; /* bytes of each other piece */
	enum rd_layout layout;
};

/* Starts the device with a transmitq of @num entries. Destinations 1 to
 * @stalled are stalled. */
void lf_init(struct lanes_fixture *f, const struct dev_config *c,
	     unsigned int stalled,
	     bool (*check)(const uint8_t *p, uint32_t len, uint32_t dest));

/* Where the driver writes its next packet, of @len bytes with its header;
 * NULL: no buffer is free. */
uint8_t *lf_buffer(struct lanes_fixture *f, uint32_t len);
/* Makes that packet available. Returns false when there is no room. */
bool lf_add(struct lanes_fixture *f, uint32_t len, const struct lf_shape *s);
/* Chains that came back since the last call. */
uint32_t lf_take(struct lanes_fixture *f);
/* Fills all buffers that are not in the ring with 0xee: whoever reads them
 * from now on sends garbage. */
void lf_spoil(struct lanes_fixture *f);

/* All ways have drained; with @keep_stalled they fill again. */
void lf_release(struct lanes_fixture *f, bool keep_stalled);
void lf_nap_ms(long ms);

/* Takes a snapshot: what a person sees is never above what is promised. */
void lf_check_bounds(struct lanes_fixture *f);
/* Packets that waited, or had to, and were dropped; of the last snapshot. */
uint64_t lf_dropped(const struct lanes_fixture *f);
/* Waits until the device has nothing of the driver's but what waits. Returns the
 * chains that came back meanwhile. */
uint32_t lf_quiesce(struct lanes_fixture *f);
/* Waits until nothing waits, and checks that all packets counted as sent were
 * taken, and were good. Returns their number. */
uint64_t lf_settle(struct lanes_fixture *f);
/* Stops the transmitq; @flight chains come back by that, soon. */
void lf_stop_in_time(struct lanes_fixture *f, uint32_t flight);
/* Waits until all destinations are on the express lane. */
void lf_wait_express(struct lanes_fixture *f);

#endif
