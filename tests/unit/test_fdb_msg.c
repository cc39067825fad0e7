/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwarding entries and interfaces in netlink messages, whole and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "backend/fdb_msg.h"

/*
 * RTM_NEWNEIGH as the kernel (Linux 6.18) wrote it for
 *   bridge fdb add 02:aa:00:00:00:01 dev vxlan10 dst 192.0.2.2 self
 * where vxlan10 was interface 3.
 */
/* clang-format off */
static const uint8_t entry_bytes[] = {
	/* nlmsghdr */
	0x44, 0x00, 0x00, 0x00, 0x1c, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* ndmsg: AF_BRIDGE, NUD_NOARP and NUD_PERMANENT, NTF_SELF */
	0x07, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00,
	0xc0, 0x00, 0x02, 0x01,
	/* NDA_LLADDR, NDA_DST */
	0x0a, 0x00, 0x02, 0x00, 0x02, 0xaa, 0x00, 0x00,
	0x00, 0x01, 0x00, 0x00,
	0x08, 0x00, 0x01, 0x00, 0xc0, 0x00, 0x02, 0x02,
	/* NDA_CACHEINFO */
	0x14, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00,
};
/* clang-format on */

static const uint8_t mac[6] = { 0x02, 0xaa, 0, 0, 0, 1 };

/* Bytes that end where their memory ends, for what looks behind the end. */
static struct nlmsghdr *copy(const void *bytes, size_t length)
{
	void *p = malloc(length);

	assert_non_null(p);
	memcpy(p, bytes, length);
	return p;
}

static char text[VL_IP_TEXT];

static void test_entry(void **state)
{
	struct nlmsghdr *nlh = copy(entry_bytes, sizeof(entry_bytes));
	struct vl_fdb_entry e;

	(void)state;
	assert_true(vl_fdb_entry_parse(nlh, &e));
	assert_true(e.present);
	assert_true(e.self);
	assert_int_equal(e.ifindex, 3);
	assert_int_equal(e.bridge, 0);
	assert_int_equal(e.vni, 0);
	assert_memory_equal(e.mac, mac, 6);
	assert_string_equal(vl_ip_text(&e.dst, text), "192.0.2.2");

	nlh->nlmsg_type = RTM_DELNEIGH;
	assert_true(vl_fdb_entry_parse(nlh, &e));
	assert_false(e.present);
	free(nlh);
}

/* A message with what the test says. */
static struct nlmsghdr *entry_begin(char *buf, uint8_t family, uint8_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ndmsg *ndm = mnl_nlmsg_put_extra_header(nlh, sizeof(*ndm));

	nlh->nlmsg_type = RTM_NEWNEIGH;
	ndm->ndm_family = family;
	ndm->ndm_flags = flags;
	ndm->ndm_ifindex = 7;
	return nlh;
}

static void test_other_entries(void **state)
{
	struct vl_ip v6;
	char buf[512];
	struct nlmsghdr *nlh = entry_begin(buf, AF_BRIDGE, 0);
	struct vl_fdb_entry e;

	(void)state;
	/* A bridge's. */
	mnl_attr_put(nlh, NDA_LLADDR, 6, mac);
	mnl_attr_put_u32(nlh, NDA_MASTER, 3);
	assert_true(vl_fdb_entry_parse(nlh, &e));
	assert_false(e.self);
	assert_int_equal(e.bridge, 3);
	assert_int_equal(e.dst.len, 0);

	/* IPv6, and another network. */
	assert_int_equal(vl_ip_parse("2001:db8::5", &v6), 0);
	nlh = entry_begin(buf, AF_BRIDGE, NTF_SELF);
	mnl_attr_put(nlh, NDA_LLADDR, 6, mac);
	mnl_attr_put(nlh, NDA_DST, 16, v6.addr);
	mnl_attr_put_u32(nlh, NDA_VNI, 77);
	assert_true(vl_fdb_entry_parse(nlh, &e));
	assert_true(vl_ip_equal(&e.dst, &v6));
	assert_int_equal(e.vni, 77);

	/* A group is nobody's address. */
	nlh = entry_begin(buf, AF_BRIDGE, NTF_SELF);
	mnl_attr_put(nlh, NDA_LLADDR, 6, mac);
	mnl_attr_put_u32(nlh, NDA_DST, htonl(0xef010101));
	assert_true(vl_fdb_entry_parse(nlh, &e));
	assert_int_equal(e.dst.len, 0);
	nlh = entry_begin(buf, AF_BRIDGE, NTF_SELF);
	mnl_attr_put(nlh, NDA_LLADDR, 6, mac);
	mnl_attr_put_u32(nlh, NDA_DST, 0);
	assert_true(vl_fdb_entry_parse(nlh, &e));
	assert_int_equal(e.dst.len, 0);
}

static void test_no_entries(void **state)
{
	char buf[512];
	struct nlmsghdr *nlh = entry_begin(buf, AF_INET, 0);
	struct vl_fdb_entry e;

	(void)state;
	/* A neighbour of IP. */
	mnl_attr_put(nlh, NDA_LLADDR, 6, mac);
	assert_false(vl_fdb_entry_parse(nlh, &e));

	/* Without an address, and with one of another kind of network. */
	nlh = entry_begin(buf, AF_BRIDGE, NTF_SELF);
	mnl_attr_put_u32(nlh, NDA_DST, htonl(0xc0000202));
	assert_false(vl_fdb_entry_parse(nlh, &e));
	mnl_attr_put(nlh, NDA_LLADDR, 5, mac);
	assert_false(vl_fdb_entry_parse(nlh, &e));

	/* Another message. */
	nlh = entry_begin(buf, AF_BRIDGE, NTF_SELF);
	mnl_attr_put(nlh, NDA_LLADDR, 6, mac);
	nlh->nlmsg_type = RTM_NEWLINK;
	assert_false(vl_fdb_entry_parse(nlh, &e));
}

/* Every length that a message can be cut to, and every length that its
 * attributes can claim: never read behind the end (ASan sees it), and never an
 * entry without its address. */
static void test_damaged_entry(void **state)
{
	const size_t first = NLMSG_LENGTH(sizeof(struct ndmsg));
	struct vl_fdb_entry e;

	(void)state;
	for (size_t n = NLMSG_HDRLEN; n < sizeof(entry_bytes); n++) {
		struct nlmsghdr *nlh = copy(entry_bytes, n);
		bool ok;

		nlh->nlmsg_len = (uint32_t)n;
		ok = vl_fdb_entry_parse(nlh, &e);
		assert_int_equal(ok, n >= first + 12 && n % 4 == 0);
		/* Of the destination nothing is left, or all. */
		if (ok)
			assert_int_equal(e.dst.len, n >= first + 20 ? 4 : 0);
		free(nlh);
	}
	for (size_t at = first; at < sizeof(entry_bytes);) {
		for (uint32_t length = 0; length < 256; length++) {
			struct nlmsghdr *nlh =
				copy(entry_bytes, sizeof(entry_bytes));
			struct nlattr *attr = (void *)((char *)nlh + at);

			attr->nla_len = (uint16_t)length;
			(void)vl_fdb_entry_parse(nlh, &e);
			free(nlh);
		}
		at += MNL_ALIGN(*(const uint16_t *)&entry_bytes[at]);
	}
}

static struct nlmsghdr *link_message(char *buf, const char *kind)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	struct nlattr *info, *data;

	nlh->nlmsg_type = RTM_NEWLINK;
	ifi->ifi_index = 4;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, "vxlan10");
	mnl_attr_put_u32(nlh, IFLA_MASTER, 3);
	info = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, kind);
	data = mnl_attr_nest_start(nlh, IFLA_INFO_DATA);
	mnl_attr_put_u32(nlh, IFLA_VXLAN_ID, 10);
	mnl_attr_put_u16(nlh, IFLA_VXLAN_PORT, htons(14789));
	mnl_attr_put_u32(nlh, IFLA_VXLAN_LOCAL, htonl(0xc0000201));
	mnl_attr_put_u8(nlh, IFLA_VXLAN_COLLECT_METADATA, 0);
	mnl_attr_nest_end(nlh, data);
	mnl_attr_nest_end(nlh, info);
	return nlh;
}

static void test_link(void **state)
{
	char buf[512];
	struct nlmsghdr *nlh = link_message(buf, "vxlan");
	struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct vl_fdb_link l;

	(void)state;
	assert_true(vl_fdb_link_parse(nlh, &l));
	assert_true(l.present);
	assert_false(l.bridge);
	assert_int_equal(l.ifindex, 4);
	assert_int_equal(l.master, 3);
	assert_string_equal(l.name, "vxlan10");
	assert_string_equal(l.kind, "vxlan");
	assert_int_equal(l.vni, 10);
	assert_int_equal(l.port, 14789);
	assert_string_equal(vl_ip_text(&l.local, text), "192.0.2.1");
	assert_false(l.external);

	/* Attributes of other kinds have the same numbers. */
	assert_true(vl_fdb_link_parse(link_message(buf, "veth"), &l));
	assert_string_equal(l.kind, "veth");
	assert_int_equal(l.vni, 0);
	/* 10 is IFLA_BR_AGEING_TIME of no bridge that says so here. */
	assert_true(vl_fdb_link_parse(link_message(buf, "bridge"), &l));
	assert_int_equal(l.vni, 0);

	nlh = link_message(buf, "vxlan");
	ifi->ifi_family = AF_BRIDGE;
	nlh->nlmsg_type = RTM_DELLINK;
	assert_true(vl_fdb_link_parse(nlh, &l));
	assert_true(l.bridge);
	assert_false(l.present);
	nlh->nlmsg_type = RTM_NEWNEIGH;
	assert_false(vl_fdb_link_parse(nlh, &l));
}

static void test_damaged_link(void **state)
{
	char buf[512], long_name[] = "a name that is longer than any";
	struct nlmsghdr *whole = link_message(buf, "vxlan");
	const size_t length = whole->nlmsg_len;
	const size_t first = NLMSG_LENGTH(sizeof(struct ifinfomsg));
	struct vl_fdb_link l;

	(void)state;
	for (size_t n = NLMSG_HDRLEN; n < length; n++) {
		struct nlmsghdr *nlh = copy(buf, n);

		nlh->nlmsg_len = (uint32_t)n;
		assert_int_equal(vl_fdb_link_parse(nlh, &l),
				 n % 4 == 0 && n >= first);
		free(nlh);
	}
	/* Each pair of bytes as if it were another length. */
	for (size_t at = first; at + 2 <= length; at += 4)
		for (uint16_t value = 0; value < 128; value++) {
			struct nlmsghdr *nlh = copy(buf, length);

			memcpy((char *)nlh + at, &value, 2);
			(void)vl_fdb_link_parse(nlh, &l);
			assert_true(strlen(l.name) < VL_FDB_NAME);
			assert_true(strlen(l.kind) < VL_FDB_NAME);
			free(nlh);
		}
	mnl_attr_put(whole, IFLA_IFNAME, sizeof(long_name) - 1, long_name);
	assert_true(vl_fdb_link_parse(whole, &l));
	assert_string_equal(l.name, "a name that is ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entry),
		cmocka_unit_test(test_other_entries),
		cmocka_unit_test(test_no_entries),
		cmocka_unit_test(test_damaged_entry),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_damaged_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
