/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend/fdb_netlink leans on what rtnetlink tells of a VXLAN device, and on
 * how a bridge learns and forgets. It takes part, on real devices.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/fdb_netlink.h"
#include "kernel.h"

#define NOBODY 65534
#define MANY   20000u

static const uint8_t guest[6] = { 0x02, 0xaa, 0, 0, 0, 1 };

/* What the ops told, by the last three bytes of the address: the last byte of
 * the destination, and of zero addresses one bit for each. */
static uint8_t place[MANY + 16];
static uint32_t flood;
static unsigned int calls, wrong;

static unsigned int number_of(const uint8_t mac[6])
{
	return (unsigned int)mac[3] << 16 | (unsigned int)mac[4] << 8 | mac[5];
}

static void on_add(void *ctx, const uint8_t mac[6], const struct vl_ip *dst)
{
	unsigned int n = number_of(mac);
	uint8_t last = dst->addr[dst->len - 1];

	(void)ctx;
	calls++;
	if (!mac[0]) {
		wrong += last > 31 || (flood & 1u << last);
		flood |= 1u << (last & 31);
	} else if (n >= sizeof(place) || place[n] == last) {
		wrong++;
	} else {
		place[n] = last;
	}
}

static void on_del(void *ctx, const uint8_t mac[6], const struct vl_ip *dst)
{
	unsigned int n = number_of(mac);
	uint8_t last = dst->addr[dst->len - 1];

	(void)ctx;
	calls++;
	if (!mac[0]) {
		wrong += last > 31 || !(flood & 1u << last);
		flood &= ~(1u << (last & 31));
	} else if (n >= sizeof(place) || place[n] != last) {
		wrong++;
	} else {
		place[n] = 0;
	}
}

static const struct vl_fdb_ops ops = { .add = on_add, .del = on_del };
static struct vl_fdb *fdb;
static char why[256];

static int open_fdb(const char *dev, struct vl_fdb_info *info)
{
	struct vl_fdb_config config = { .dev = dev,
					.announce = true,
					.ops = &ops };

	why[0] = '\0';
	return vl_fdb_open(&config, info, &fdb, why, sizeof(why));
}

/* Until nothing more comes. */
static void update(void)
{
	struct pollfd p = { .fd = vl_fdb_fd(fdb), .events = POLLIN };

	while (poll(&p, 1, 50) > 0)
		vl_fdb_update(fdb);
}

static void check_refusals(void)
{
	struct vl_fdb_info info;

	fact(open_fdb("nosuch0", &info) == -ENODEV && strstr(why, "nosuch0"),
	     "a device that does not exist is refused");
	fact(open_fdb("br0", &info) == -EINVAL && strstr(why, "but a bridge"),
	     "a device that is no vxlan device is refused");
	fact(open_fdb("ext0", &info) == -EINVAL && strstr(why, "external"),
	     "a device for all networks is refused");
	fact(open_fdb("a-name-that-is-too-long", &info) == -EINVAL && why[0],
	     "a name that is too long is refused");
	/* By its name the interface may be a tap's, but not be made. */
	if (seteuid(NOBODY) < 0)
		broken("seteuid");
	fact(open_fdb("vxlan10", &info) == -EPERM && strstr(why, "root"),
	     "without privileges no port can be made");
	if (seteuid(0) < 0)
		broken("seteuid");
	memset(place, 0, sizeof(place));
	flood = 0;
}

static void check_alone(void)
{
	struct vl_fdb_info info;

	fact(!open_fdb("vxlan11", &info) && !info.bridge[0] && info.vni == 11 &&
		     info.port == 4790 && info.local.len == 16,
	     "a device without a bridge is looked at, also of IPv6");
	command("bridge fdb append 00:00:00:00:00:00 dev vxlan11 "
		"dst 2001:db8::3 self");
	update();
	fact(flood == 1u << 3, "entries have IPv6 addresses");
	fact(vl_fdb_announce(fdb, guest) == -EOPNOTSUPP,
	     "where there is no bridge nothing is announced");
	vl_fdb_close(fdb);
	flood = 0;
}

static void check_changes(void)
{
	calls = 0;
	command("bridge fdb append 00:00:00:00:00:00 dev vxlan10 "
		"dst 192.0.2.3 self");
	command("bridge fdb add 02:00:00:00:00:01 dev vxlan10 "
		"dst 192.0.2.2 self");
	command("bridge fdb replace 02:00:00:00:00:01 dev vxlan10 "
		"dst 192.0.2.3 self");
	update();
	fact(flood == (1u << 2 | 1u << 3) && place[1] == 3 && calls == 3,
	     "what is added and replaced is heard of");
	command("bridge fdb add 02:00:00:00:00:02 dev vxlan10 "
		"dst 192.0.2.2 vni 77 self");
	command("bridge fdb add 02:00:00:00:00:03 dev vxlan10 "
		"dst 239.0.0.1 self");
	command("bridge fdb add 02:00:00:00:00:04 dev vxlan10 master static");
	command("bridge fdb add 02:00:00:00:00:05 dev vxlan11 "
		"dst 2001:db8::2 self");
	update();
	fact(calls == 3, "entries of other networks, groups, the bridge and "
			 "other devices are not ours");
	command("bridge fdb del 00:00:00:00:00:00 dev vxlan10 "
		"dst 192.0.2.2 self");
	command("bridge fdb del 02:00:00:00:00:01 dev vxlan10 self");
	update();
	fact(flood == 1u << 3 && !place[1] && calls == 5 &&
		     vl_fdb_count(fdb) == 1,
	     "what is deleted is heard of");
}

/* Runs bridge(8) with a line for each address. */
static void batch(const char *verb)
{
	FILE *pipe = popen("bridge -batch -", "w"); /* NOLINT(cert-env33-c) */

	if (!pipe)
		broken("bridge -batch");
	for (unsigned int n = 0; n < MANY; n++) {
		(void)fprintf(pipe, "fdb %s 02:01:00:%02x:%02x:%02x ", verb,
			      n >> 16, n >> 8 & 0xff, n & 0xff);
		(void)fprintf(pipe, "dev vxlan10 dst 192.0.2.%u self\n",
			      n % 100 + 1);
	}
	if (pclose(pipe) != 0)
		broken("bridge -batch");
}

static bool all_in_place(unsigned int there)
{
	for (unsigned int n = 0; n < MANY; n++)
		if (place[n] != there * (n % 100 + 1))
			return false;
	return true;
}

static void check_lost(void)
{
	batch("add");
	update();
	fact(all_in_place(1) && vl_fdb_count(fdb) == MANY + 1,
	     "20000 entries, more than the socket holds, all arrive");
	/* All at once, so that deletions are lost, too. */
	batch("del");
	update();
	fact(all_in_place(0) && vl_fdb_count(fdb) == 1,
	     "20000 deletions are not missed either");
}

/* The interface that the bridge has the guest's address behind, or "". */
static const char *behind(void)
{
	static char name[32];
	char line[256];
	FILE *pipe = popen("bridge fdb show br br0", /* NOLINT(cert-env33-c) */
			   "r");

	name[0] = '\0';
	while (pipe && fgets(line, sizeof(line), pipe))
		if (strstr(line, "master br0"))
			(void)sscanf(line, "02:aa:00:00:00:01 dev %31s", name);
	if (!pipe || pclose(pipe) != 0)
		broken("bridge fdb show");
	return name;
}

static bool comes_to(const char *where)
{
	for (int i = 0; i < 40; i++) {
		update();
		if (!strncmp(behind(), where, strlen(where) + !where[0]))
			return true;
	}
	return false;
}

/* The port is called virtlane0 or so. */
static void check_announce(void)
{
	static const uint8_t group[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	static const uint8_t zero[6];
	int other = open_tap("other", false);

	command("ip link set other master br0 up");
	command("ip link add br1 type bridge && "
		"ip link add other2 type veth && "
		"ip link set other2 master br1");
	(void)ready(other, POLLIN, 200);
	/* As after the start. */
	if (seteuid(NOBODY) < 0)
		broken("seteuid");
	fact(vl_fdb_announce(fdb, group) == -EINVAL &&
		     vl_fdb_announce(fdb, zero) == -EINVAL,
	     "groups and nobody are not announced");
	fact(!vl_fdb_announced(fdb) && comes_to(""),
	     "nothing is announced at first");
	fact(!vl_fdb_announce(fdb, guest) && comes_to("virtlane") &&
		     vl_fdb_announced(fdb),
	     "an address is learned, without privileges");
	fact(!ready(other, POLLIN, 100), "and no frame leaves the bridge");
	vl_fdb_withdraw(fdb);
	fact(comes_to("") && !vl_fdb_announced(fdb),
	     "it is forgotten when it is withdrawn");
	(void)vl_fdb_announce(fdb, guest);
	fact(comes_to("virtlane"), "and comes back");

	if (seteuid(0) < 0)
		broken("seteuid");
	command("bridge fdb replace 02:aa:00:00:00:01 dev vxlan10 "
		"master extern_learn");
	update();
	fact(comes_to("vxlan10") && !vl_fdb_announced(fdb),
	     "a guest that moved away is let go");
	command("ip link set br0 down; ip link set br0 up");
	update();
	command("bridge fdb add 02:aa:00:00:00:01 dev other2 master static");
	update();
	command("bridge fdb del 02:aa:00:00:00:01 dev other2 master");
	fact(comes_to("vxlan10"),
	     "for good, whatever happens in other bridges");
	command("bridge fdb del 02:aa:00:00:00:01 dev vxlan10 master");
	fact(comes_to("virtlane"), "until the other host has withdrawn it");
	command("bridge fdb del 02:aa:00:00:00:01 dev virtlane0 master");
	fact(comes_to("virtlane"), "what the bridge forgets it is told again");
	command("ip link set virtlane0 down");
	fact(comes_to(""), "a port that is down has no addresses");
	command("ip link set virtlane0 up");
	fact(comes_to("virtlane"), "and has it again when it is up");
	command("ip link set br0 type bridge stp_state 1 forward_delay 200");
	command("ip link set virtlane0 nomaster");
	command("ip link set virtlane0 master br0");
	fact(comes_to("virtlane"), "also with a spanning tree's delay");
	vl_fdb_close(fdb);
	fact(!strcmp(behind(), ""), "nothing is left of it at the end");
	close(other);
}

int main(void)
{
	struct vl_fdb_info info;

	own_network();
	command("ip link add br0 type bridge mcast_snooping 0 && "
		"ip link set br0 up");
	command("ip link add vxlan10 type vxlan id 10 local 192.0.2.1 "
		"dstport 14789 nolearning && "
		"ip link set vxlan10 master br0 up");
	command("ip link add vxlan11 type vxlan id 11 local 2001:db8::1 "
		"dstport 4790 nolearning && ip link set vxlan11 up");
	command("ip link add ext0 type vxlan external dstport 4791");
	command("bridge fdb append 00:00:00:00:00:00 dev vxlan10 "
		"dst 192.0.2.2 self");
	check_refusals();
	check_alone();
	fact(!open_fdb("vxlan10", &info) && info.vni == 10 &&
		     info.port == 14789 && info.local.len == 4 &&
		     info.local.addr[3] == 1 && !strcmp(info.bridge, "br0"),
	     "what the device is, is told");
	fact(flood == 1u << 2 && vl_fdb_count(fdb) == 1,
	     "what was there before is there");
	check_changes();
	check_lost();
	check_announce();
	fact(!wrong, "nothing was told twice, or deleted that was not there");
	return facts_status();
}
