/* SPDX-License-Identifier: BSD-3-Clause */
/* The network side of the load: a packet socket on the tap interface. */
#ifndef BENCH_LOAD_NET_H
#define BENCH_LOAD_NET_H

#include "load_frame.h"

#define LOAD_NET_BATCH 32u

struct load_net;

/* Opens interface @ifname, which must be up. 0 or -errno, with a line on
 * standard error. */
int load_net_open(const char *ifname, struct load_net **out);
void load_net_close(struct load_net *n);

/* For poll(2). */
int load_net_fd(const struct load_net *n);

/* Waits up to @ms for the interface to have a carrier. 0 or -ENETDOWN. */
int load_net_wait_carrier(struct load_net *n, unsigned int ms);

/* Frames that may be under way to the interface without a queue overflow. */
unsigned int load_net_tx_window(const struct load_net *n);

/* Bytes (as load_net_cost() counts) that may wait in the socket. */
uint64_t load_net_rx_window(const struct load_net *n);
/* An upper bound of what a frame of @len bytes takes in the socket. */
static inline uint64_t load_net_cost(uint32_t len)
{
	return 2ULL * len + 2048;
}

/* Receives up to one batch and enters it into @l. Number of frames. */
int load_net_receive(struct load_net *n, const struct load_gen *g,
		     struct load_ledger *l);

/* Sends up to @max (at most a batch) next frames of @l. Number of frames
 * sent; -errno only for errors that will not pass. */
int load_net_send(struct load_net *n, const struct load_gen *g,
		  struct load_ledger *l, unsigned int max);

/* Why the last send took nothing, 0 when it did. */
int load_net_refusal(const struct load_net *n);

/* Frames that this socket itself lost since the last call. */
uint64_t load_net_drops(struct load_net *n);

#endif
