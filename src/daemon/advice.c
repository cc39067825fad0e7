/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/advice.h"

#include <fcntl.h>
#include <unistd.h>

#include "lane/lane_set.h"

/* Whether the setting @path is there, and not 0. */
static bool is_on(const char *path)
{
	/* Missing where br_netfilter is not loaded. */
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char c = '0';

	if (fd < 0)
		return false;
	if (read(fd, &c, 1) != 1)
		c = '0';
	close(fd);
	return c != '0';
}

bool vl_bridge_hides_pressure(void)
{
	return is_on("/proc/sys/net/bridge/bridge-nf-call-iptables") ||
	       is_on("/proc/sys/net/bridge/bridge-nf-call-ip6tables");
}

const char *vl_lanes_advice(const struct vl_conf *conf,
			    const struct vl_backend *b, bool bridge_hides)
{
	/* Others are not on a bridge as a rule. */
	bool on_tap = !conf->backend || conf->backend->interface;

	if (conf->tx_full != VL_TX_FULL_LANES)
		return NULL;
	if (b->ways > 1 && !b->limited && !b->probes)
		return "sndbuf is unlimited, so nothing ever pushes back and "
		       "lanes are not used; give sndbuf=auto, or lanes=1 if "
		       "this is meant";
	if ((b->limited || b->probes) && bridge_hides && on_tap)
		return "net.bridge.bridge-nf-call-iptables or -ip6tables is "
		       "1: through a bridge no back-pressure reaches the tap, "
		       "and lanes cannot help; set both to 0";
	if (b->ways == 1 && b->limited && conf->params.fds &&
	    conf->params.lanes > 1)
		return "one lane only: a slow destination makes others wait; "
		       "give --queue-pairs and more descriptors in fds=";
	return NULL;
}
