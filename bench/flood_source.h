/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from the host into a tap, as many as one thread can make. */
#ifndef BENCH_FLOOD_SOURCE_H
#define BENCH_FLOOD_SOURCE_H

#include <stdint.h>

struct flood_source;

/* Opens a packet socket on @ifname for frames of @size bytes. 0 or -errno,
 * with a line on standard error. */
int flood_source_open(const char *ifname, uint32_t size,
		      struct flood_source **out);
void flood_source_close(struct flood_source *s);

/* Frames that one flood_source_send() makes. */
unsigned int flood_source_burst(const struct flood_source *s);

/* Sends one burst. Returns the frames, 0 when there was no room, -errno. */
int flood_source_send(struct flood_source *s);

#endif
