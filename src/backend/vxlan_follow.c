/* SPDX-License-Identifier: BSD-3-Clause */
#include "backend/vxlan_follow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/fdb_netlink.h"
#include "base/log.h"

struct vl_vxlan_follow {
	struct vl_fdb *kernel;
	struct vl_vxlan_fdb *fdb;
	struct vl_ip local;
	const char *dev; /* of the options, which live longer */
	uint8_t mac[6];
	bool there;
	struct vl_log_limit refused;
};

static bool is_flood(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return !memcmp(mac, zero, 6);
}

/* Our own address comes back to us, and what has another kind of address
 * cannot be reached from ours. */
static bool reachable(const struct vl_vxlan_follow *f, const struct vl_ip *dst)
{
	return dst->len == f->local.len && !vl_ip_equal(dst, &f->local);
}

static void on_add(void *ctx, const uint8_t mac[6], const struct vl_ip *dst)
{
	struct vl_vxlan_follow *f = ctx;
	char text[VL_IP_TEXT];
	int code;

	if (!reachable(f, dst)) {
		/* Its place may have been one that is. */
		if (!is_flood(mac))
			(void)vl_vxlan_fdb_static_del(f->fdb, mac);
		return;
	}
	code = vl_vxlan_fdb_remote(f->fdb, dst);
	if (code >= 0 && is_flood(mac))
		vl_vxlan_fdb_set_flood(f->fdb, (unsigned int)code, true);
	else if (code >= 0)
		code = vl_vxlan_fdb_static_add(f->fdb, mac, (unsigned int)code);
	if (code < 0)
		vl_log_limited(&f->refused, VL_LOG_WARNING, f->dev,
			       "no room for an entry of host %s: what it is "
			       "for goes to all hosts that there was room for",
			       vl_ip_text(dst, text));
}

static void on_del(void *ctx, const uint8_t mac[6], const struct vl_ip *dst)
{
	struct vl_vxlan_follow *f = ctx;
	int remote = vl_vxlan_fdb_find(f->fdb, dst);

	if (!is_flood(mac))
		(void)vl_vxlan_fdb_static_del(f->fdb, mac);
	else if (remote >= 0)
		vl_vxlan_fdb_set_flood(f->fdb, (unsigned int)remote, false);
}

static const struct vl_fdb_ops ops = { .add = on_add, .del = on_del };

/* Whether the device is of the same network, and can be beside us. */
static int check(const struct vl_backend_params *p,
		 const struct vl_fdb_info *info, char *err, size_t size)
{
	char ours[VL_IP_TEXT], theirs[VL_IP_TEXT];

	if (info->vni != p->vni)
		(void)snprintf(err, size,
			       "fdb=%s: its VNI is %u: give vni=%u, or the "
			       "device of VNI %u",
			       p->fdb, info->vni, info->vni, p->vni);
	else if (info->port == p->port)
		(void)snprintf(
			err, size,
			"fdb=%s: it has UDP port %u itself: make it with "
			"another dstport, hosts do not get to know it",
			p->fdb, info->port);
	else if (info->local.len && !vl_ip_equal(&info->local, &p->local))
		(void)snprintf(
			err, size,
			"fdb=%s: other hosts are told to send to %s, its "
			"own address, and not to local=%s: give both "
			"the same",
			p->fdb, vl_ip_text(&info->local, theirs),
			vl_ip_text(&p->local, ours));
	else
		return 0;
	return -EINVAL;
}

int vl_vxlan_follow_open(const struct vl_backend_params *params,
			 struct vl_vxlan_fdb *fdb, struct vl_vxlan_follow **out,
			 char *err, size_t err_size)
{
	struct vl_vxlan_follow *f = calloc(1, sizeof(*f));
	struct vl_fdb_config config = {
		.dev = params->fdb,
		.announce = true,
		.ops = &ops,
		.ctx = f,
	};
	struct vl_fdb_info info;
	char why[160] = "";
	int code;

	if (!f)
		return -ENOMEM;
	f->fdb = fdb;
	f->local = params->local;
	f->dev = params->fdb;
	memcpy(f->mac, params->mac, sizeof(f->mac));
	code = vl_fdb_open(&config, &info, &f->kernel, why, sizeof(why));
	if (code)
		(void)snprintf(err, err_size, "fdb=%s: %s", params->fdb,
			       why[0] ? why : strerror(-code));
	else
		code = check(params, &info, err, err_size);
	if (code) {
		vl_vxlan_follow_close(f);
		return code;
	}
	if (!info.bridge[0])
		vl_log(VL_LOG_WARNING, params->fdb,
		       "it is not a port of a bridge: the guest's address is "
		       "not announced");
	*out = f;
	return 0;
}

void vl_vxlan_follow_close(struct vl_vxlan_follow *f)
{
	if (!f)
		return;
	vl_fdb_close(f->kernel);
	free(f);
}

int vl_vxlan_follow_fd(const struct vl_vxlan_follow *f)
{
	return vl_fdb_fd(f->kernel);
}

void vl_vxlan_follow_update(struct vl_vxlan_follow *f)
{
	vl_fdb_update(f->kernel);
}

static void announce(struct vl_vxlan_follow *f)
{
	if (f->there)
		(void)vl_fdb_announce(f->kernel, f->mac);
	else
		vl_fdb_withdraw(f->kernel);
}

void vl_vxlan_follow_mac(struct vl_vxlan_follow *f, const uint8_t mac[6])
{
	memcpy(f->mac, mac, sizeof(f->mac));
	announce(f);
}

void vl_vxlan_follow_guest(struct vl_vxlan_follow *f, bool there)
{
	f->there = there;
	announce(f);
}
