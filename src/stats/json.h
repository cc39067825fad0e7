/* SPDX-License-Identifier: BSD-3-Clause */
/* A snapshot as JSON text; the format is described in virtlanectl(1). */
#ifndef VL_STATS_JSON_H
#define VL_STATS_JSON_H

#include "stats/snapshot.h"

/* Writes one line of JSON without a newline into a string that the caller
 * frees with free(). NULL when there is no memory. */
char *vl_snapshot_json(const struct vl_snapshot *s);

#endif
