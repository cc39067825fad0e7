/* SPDX-License-Identifier: BSD-3-Clause */
/* What of the host keeps lanes from their work, as far as it can be seen. */
#ifndef VL_DAEMON_ADVICE_H
#define VL_DAEMON_ADVICE_H

#include <stdbool.h>

#include "daemon/conf.h"

/* Whether bridges of our network namespace let netfilter look at packets, which
 * then no longer count for the send buffer that they came from. */
bool vl_bridge_hides_pressure(void);

/*
 * A sentence for the log when a slow destination can make others wait, or can
 * be queued for without bound, although it was not asked for; else NULL.
 * @b: as opened for @conf.
 */
const char *vl_lanes_advice(const struct vl_conf *conf,
			    const struct vl_backend *b, bool bridge_hides);

#endif
