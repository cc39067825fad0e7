/* SPDX-License-Identifier: BSD-3-Clause */
/* A small vhost-user front-end: as much of the protocol as the load needs. */
#ifndef BENCH_LOAD_VHOST_H
#define BENCH_LOAD_VHOST_H

#include <stdint.h>

#include "ring_driver.h"

#define LOAD_REGIONS_MAX 8

struct load_vhost {
	int sock;
	uint64_t features;          /* negotiated */
	uint64_t protocol_features; /* negotiated */
};

/*
 * All return 0 or -errno, with a line on standard error that says what went
 * wrong. Connects to @path, waiting up to 5 s for it to appear.
 */
int load_vhost_connect(struct load_vhost *v, const char *path);
void load_vhost_close(struct load_vhost *v);

/* Takes of @wanted what is offered; -EPROTO when one of @required is not. */
int load_vhost_negotiate(struct load_vhost *v, uint64_t wanted,
			 uint64_t required);

int load_vhost_set_memory(struct load_vhost *v, struct rd_mem *const *mem,
			  unsigned int n);

/* Starts ring @index at available index @base / stops it. */
int load_vhost_ring_start(struct load_vhost *v, unsigned int index,
			  const struct rd_ring *ring, uint16_t base);
int load_vhost_ring_stop(struct load_vhost *v, unsigned int index,
			 uint16_t *base);

#endif
