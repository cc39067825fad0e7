/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The option --backend=KIND[,KEY=VALUE...]. Everything that is known about a
 * KEY stands in its row of the table; which backend takes it and which it needs
 * says the backend (struct vl_backend_ops).
 */
#include "daemon/conf_backend.h"

#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "backend/registry.h"
#include "base/util.h"
#include "daemon/value.h"
#include "stats/snapshot.h"

/* Lanes of each queue pair unless lanes= says otherwise. */
#define LANES_DEFAULT  8
/* With 5 bytes and fewer the kernel never says that a full tap is writable
 * again. Nobody wants less than one small frame either. */
#define SNDBUF_MIN     1024u
#define VNI_MAX        0xffffffu
#define VXLAN_PORT     4789 /* RFC 7348, section 5 */
/* Of learned addresses: as a Linux bridge and vxlan device have it. */
#define AGEING_DEFAULT 300
#define AGEING_MAX     1000000
/* A zero-copy packet takes at least one of a ring of at most 32768. */
#define PENDING_MAX    16384

/* One KEY=VALUE. */
struct param {
	struct vl_conf *conf;
	const struct vl_conf_place *at;
	const char *key, *value;
};

static void set_name(const struct param *p)
{
	p->conf->name_given = true;
	if (vl_value_is_ifname(p->value))
		p->conf->params.name = p->value;
	else
		vl_conf_fail(p->conf, p->at,
			     "'%s' cannot name an interface; give 1 to 15 "
			     "characters without space, / and :",
			     p->value);
}

static void set_fds(const struct param *p)
{
	unsigned int n;

	p->conf->fds_given = true;
	if (!vl_value_fd_list(p->value, &n))
		p->conf->params.fds = p->value;
	else
		vl_conf_fail(p->conf, p->at,
			     "fds=%s: give descriptor numbers separated by "
			     "':', as fds=5:6",
			     p->value);
}

static void set_sndbuf(const struct param *p)
{
	struct vl_backend_params *params = &p->conf->params;

	params->sndbuf_auto = !strcmp(p->value, "auto");
	if (params->sndbuf_auto)
		return;
	if (vl_value_size(p->value, &params->sndbuf))
		vl_conf_fail(p->conf, p->at,
			     "sndbuf=%s: give auto, unlimited, or bytes, with "
			     "k or M for 1024 or 1024^2",
			     p->value);
	else if (params->sndbuf && params->sndbuf < SNDBUF_MIN)
		vl_conf_fail(p->conf, p->at,
			     "sndbuf=%s: give 1k or more, or 0 for no limit",
			     p->value);
}

/* A number from @min to @max; @min when it is none. */
static uint64_t number(const struct param *p, uint64_t min, uint64_t max)
{
	uint64_t v = min;

	if (vl_value_number(p->value, min, max, &v))
		vl_conf_fail(p->conf, p->at,
			     "%s=%s: give a number from %llu to %llu", p->key,
			     p->value, (unsigned long long)min,
			     (unsigned long long)max);
	return v;
}

static void set_lanes(const struct param *p)
{
	p->conf->params.lanes = (unsigned int)number(p, 1, VL_LANES_MAX);
}

static void set_promisc(const struct param *p)
{
	if (vl_value_switch(p->value, &p->conf->params.promisc))
		vl_conf_fail(p->conf, p->at, "promisc=%s: give on or off",
			     p->value);
}

static void set_vni(const struct param *p)
{
	p->conf->params.vni = (uint32_t)number(p, 0, VNI_MAX);
}

static void set_port(const struct param *p)
{
	p->conf->params.port = (uint16_t)number(p, 1, UINT16_MAX);
}

static void set_ageing(const struct param *p)
{
	p->conf->params.ageing_s = (uint32_t)number(p, 0, AGEING_MAX);
}

static void set_pending(const struct param *p)
{
	p->conf->params.pending = (uint32_t)number(p, 1, PENDING_MAX);
}

static bool address(const struct param *p, const char *text, struct vl_ip *out)
{
	if (!vl_ip_parse(text, out))
		return true;
	vl_conf_fail(p->conf, p->at,
		     "%s=%s: give the IPv4 or IPv6 address of a host", p->key,
		     p->value);
	return false;
}

static void set_local(const struct param *p)
{
	(void)address(p, p->value, &p->conf->params.local);
}

static void set_remote(const struct param *p)
{
	struct vl_backend_params *params = &p->conf->params;

	if (params->n_remotes == VL_REMOTES_MAX)
		vl_conf_fail(p->conf, p->at,
			     "more than %u remote= are given; for so many "
			     "hosts use fdb=",
			     VL_REMOTES_MAX);
	else if (address(p, p->value, &params->remote[params->n_remotes]))
		params->n_remotes++;
}

/* MAC@ADDRESS */
static void set_mac(const struct param *p)
{
	struct vl_backend_params *params = &p->conf->params;
	struct vl_static_mac *s;
	char mac[sizeof("52:54:00:12:34:56")];
	const char *at = strchr(p->value, '@');

	if (params->n_statics == VL_STATICS_MAX) {
		vl_conf_fail(p->conf, p->at,
			     "more than %u mac= are given; for so many use "
			     "fdb=",
			     VL_STATICS_MAX);
		return;
	}
	s = &params->statics[params->n_statics];
	if (at && (size_t)(at - p->value) == sizeof(mac) - 1) {
		memcpy(mac, p->value, sizeof(mac) - 1);
		mac[sizeof(mac) - 1] = '\0';
		if (!vl_value_mac(mac, s->mac)) {
			if (address(p, at + 1, &s->remote))
				params->n_statics++;
			return;
		}
	}
	vl_conf_fail(p->conf, p->at,
		     "mac=%s: give the MAC address of a guest and the address "
		     "of its host, as mac=52:54:00:12:34:56@192.0.2.1",
		     p->value);
}

static void set_fdb(const struct param *p)
{
	if (vl_value_is_ifname(p->value))
		p->conf->params.fdb = p->value;
	else
		vl_conf_fail(p->conf, p->at,
			     "fdb=%s: give the name of a vxlan device of the "
			     "kernel",
			     p->value);
}

static void set_zerocopy(const struct param *p)
{
	static const char *const names[] = {
		[VL_ZEROCOPY_AUTO] = "auto",
		[VL_ZEROCOPY_ON] = "on",
		[VL_ZEROCOPY_OFF] = "off",
	};

	for (unsigned int i = 0; i < VL_ARRAY_SIZE(names); i++) {
		if (strcmp(p->value, names[i]) != 0)
			continue;
		p->conf->params.zerocopy = (enum vl_zerocopy)i;
		return;
	}
	vl_conf_fail(p->conf, p->at, "zerocopy=%s: give auto, on or off",
		     p->value);
}

static const struct {
	const char *key;
	void (*set)(const struct param *p);
} param_table[] = {
	{ "name", set_name },       { "ifname", set_name },
	{ "fds", set_fds },         { "lanes", set_lanes },
	{ "sndbuf", set_sndbuf },   { "promisc", set_promisc },
	{ "vni", set_vni },         { "local", set_local },
	{ "remote", set_remote },   { "port", set_port },
	{ "mac", set_mac },         { "ageing", set_ageing },
	{ "fdb", set_fdb },         { "zerocopy", set_zerocopy },
	{ "pending", set_pending },
};

_Static_assert(VL_ARRAY_SIZE(param_table) <= 32,
	       "one bit per key in vl_conf.keys_given");

/* The words of @list, as "a, b or c". */
static void spell(const char *const *list, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (unsigned int i = 0; list && list[i] && used < size; i++) {
		const char *before = !i ? "" : list[i + 1] ? ", " : " or ";

		used += (size_t)snprintf(out + used, size - used, "%s%s",
					 before, list[i]);
	}
}

static bool contains(const char *const *list, const char *word)
{
	for (unsigned int i = 0; list && list[i]; i++)
		if (!strcmp(list[i], word))
			return true;
	return false;
}

static void set_param(const struct param *p)
{
	const struct vl_backend_ops *backend = p->conf->backend;
	char names[160];

	for (unsigned int i = 0; i < VL_ARRAY_SIZE(param_table); i++) {
		if (strcmp(param_table[i].key, p->key) != 0 ||
		    !contains(backend->keys, p->key))
			continue;
		p->conf->keys_given |= 1u << i;
		param_table[i].set(p);
		return;
	}
	spell(backend->keys, names, sizeof(names));
	vl_conf_fail(p->conf, p->at,
		     names[0] ? "'%s' is no parameter of backend %s; give %s"
			      : "'%s' is no parameter of backend %s; it has "
				"none%s",
		     p->key, backend->name, names);
}

/* As if nothing had been given. */
static void reset_params(struct vl_conf *conf)
{
	struct vl_backend_params *p = &conf->params;

	*p = (struct vl_backend_params){
		.queue_pairs = p->queue_pairs,
		.mtu = p->mtu,
		.sndbuf_auto = true,
		.lanes = LANES_DEFAULT,
		.port = VXLAN_PORT,
		.ageing_s = AGEING_DEFAULT,
		.zerocopy = VL_ZEROCOPY_AUTO,
	};
	conf->keys_given = 0;
	conf->name_given = false;
	conf->fds_given = false;
}

void vl_conf_set_backend(struct vl_conf *conf, const struct vl_conf_place *at)
{
	const char *names[16] = { NULL };
	char *save = NULL, *kind, *key;
	char text[128];

	free(conf->backend_text);
	conf->backend = NULL;
	reset_params(conf);
	conf->backend_text = strdup(at->value);
	if (!conf->backend_text) {
		vl_conf_fail(conf, at, "out of memory");
		return;
	}
	kind = strtok_r(conf->backend_text, ",", &save);
	conf->backend = vl_backend_find(kind ? kind : "");
	if (!conf->backend) {
		for (unsigned int i = 0;
		     vl_backend_at(i) && i + 1 < VL_ARRAY_SIZE(names); i++)
			names[i] = vl_backend_at(i)->name;
		spell(names, text, sizeof(text));
		vl_conf_fail(conf, at, "unknown backend; begin with %s", text);
		return;
	}
	while ((key = strtok_r(NULL, ",", &save))) {
		struct param p = { .conf = conf, .at = at, .key = key };
		char *value = strchr(key, '=');

		if (value)
			*value++ = '\0';
		p.value = value ? value : "";
		set_param(&p);
	}
}

static bool given(const struct vl_conf *conf, const char *key)
{
	for (unsigned int i = 0; i < VL_ARRAY_SIZE(param_table); i++)
		if (!strcmp(param_table[i].key, key))
			return conf->keys_given & 1u << i;
	return false;
}

/* The descriptors of fds= are shared evenly by the queue pairs. */
static void check_fds(struct vl_conf *conf)
{
	static const struct vl_conf_place nowhere;
	unsigned int n = 0;

	if (!conf->params.fds || vl_value_fd_list(conf->params.fds, &n))
		return;
	if (!conf->queue_pairs_from)
		conf->params.queue_pairs = n;
	if (conf->params.queue_pairs > VL_SNAPSHOT_PAIRS_MAX ||
	    n % conf->params.queue_pairs != 0 ||
	    n / conf->params.queue_pairs > VL_LANES_MAX)
		vl_conf_fail(conf, &nowhere,
			     "fds=%s has %u descriptors for %u queue pairs; "
			     "give one for each lane of each pair, at most "
			     "%d pairs of %d lanes",
			     conf->params.fds, n, conf->params.queue_pairs,
			     VL_SNAPSHOT_PAIRS_MAX, VL_LANES_MAX);
}

void vl_conf_check_backend(struct vl_conf *conf)
{
	static const struct vl_conf_place nowhere;
	const struct vl_backend_ops *backend = conf->backend;

	if (!backend) {
		if (!conf->backend_text)
			vl_conf_fail(conf, &nowhere,
				     "--backend is missing: say which host "
				     "network to use, as "
				     "--backend=tap,name=tap0");
		return;
	}
	if (backend->interface && conf->name_given == conf->fds_given)
		vl_conf_fail(conf, &nowhere, "--backend=%s: give %s",
			     backend->name,
			     conf->name_given ? "name= or fds=, not both"
					      : "name=INTERFACE or fds=A:B");
	for (unsigned int i = 0; backend->needs && backend->needs[i]; i++)
		if (!given(conf, backend->needs[i]))
			vl_conf_fail(conf, &nowhere,
				     "--backend=%s: %s= is missing: %s",
				     backend->name, backend->needs[i],
				     backend->help);
	check_fds(conf);
}
