/* SPDX-License-Identifier: BSD-3-Clause */
#include "backend/fdb_msg.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>

/* Of IFLA_BR_AGEING_TIME, on every machine. */
#define TICKS_PER_SECOND 100u

/* Whether there is a header of @size bytes, and attributes behind it end where
 * the message does: the library takes the end to be aligned. */
static bool complete(const struct nlmsghdr *nlh, size_t size)
{
	return mnl_nlmsg_get_payload_len(nlh) >= size &&
	       nlh->nlmsg_len % NLMSG_ALIGNTO == 0;
}

static uint16_t length(const struct nlattr *attr)
{
	return mnl_attr_get_payload_len(attr);
}

static uint32_t get_u32(const struct nlattr *attr)
{
	return length(attr) >= 4 ? mnl_attr_get_u32(attr) : 0;
}

static bool host_address(const struct vl_ip *ip)
{
	char text[VL_IP_TEXT];
	struct vl_ip again;

	/* Which addresses belong to hosts is known in one place. */
	return !vl_ip_parse(vl_ip_text(ip, text), &again);
}

static void get_ip(const struct nlattr *attr, struct vl_ip *out)
{
	struct vl_ip ip = { 0 };

	*out = ip;
	if (length(attr) != 4 && length(attr) != 16)
		return;
	ip.len = (uint8_t)length(attr);
	memcpy(ip.addr, mnl_attr_get_payload(attr), ip.len);
	if (host_address(&ip))
		*out = ip;
}

static void get_name(const struct nlattr *attr, char out[VL_FDB_NAME])
{
	size_t n = length(attr);

	if (n > VL_FDB_NAME - 1)
		n = VL_FDB_NAME - 1;
	memcpy(out, mnl_attr_get_payload(attr), n);
	out[n] = '\0';
}

bool vl_fdb_entry_parse(const struct nlmsghdr *nlh, struct vl_fdb_entry *out)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	struct nlattr *attr;
	bool has_mac = false;

	if ((nlh->nlmsg_type != RTM_NEWNEIGH &&
	     nlh->nlmsg_type != RTM_DELNEIGH) ||
	    !complete(nlh, sizeof(*ndm)) || ndm->ndm_family != AF_BRIDGE)
		return false;
	*out = (struct vl_fdb_entry){
		.present = nlh->nlmsg_type == RTM_NEWNEIGH,
		.self = ndm->ndm_flags & NTF_SELF,
		.ifindex = (uint32_t)ndm->ndm_ifindex,
	};
	mnl_attr_for_each(attr, nlh, sizeof(*ndm))
	{
		switch (mnl_attr_get_type(attr)) {
		case NDA_LLADDR:
			if (length(attr) != sizeof(out->mac))
				return false;
			memcpy(out->mac, mnl_attr_get_payload(attr),
			       sizeof(out->mac));
			has_mac = true;
			break;
		case NDA_DST:
			get_ip(attr, &out->dst);
			break;
		case NDA_MASTER:
			out->bridge = get_u32(attr);
			break;
		case NDA_VNI:
			out->vni = get_u32(attr);
			break;
		default:
			break;
		}
	}
	return has_mac;
}

static void get_vxlan(const struct nlattr *data, struct vl_fdb_link *out)
{
	struct nlattr *attr;

	mnl_attr_for_each_nested(attr, data)
	{
		switch (mnl_attr_get_type(attr)) {
		case IFLA_VXLAN_ID:
			out->vni = get_u32(attr);
			break;
		case IFLA_VXLAN_PORT:
			if (length(attr) >= 2)
				out->port = ntohs(mnl_attr_get_u16(attr));
			break;
		case IFLA_VXLAN_LOCAL:
		case IFLA_VXLAN_LOCAL6:
			get_ip(attr, &out->local);
			break;
		case IFLA_VXLAN_COLLECT_METADATA:
			out->external =
				length(attr) >= 1 && mnl_attr_get_u8(attr);
			break;
		default:
			break;
		}
	}
}

static void get_bridge(const struct nlattr *data, struct vl_fdb_link *out)
{
	struct nlattr *attr;

	mnl_attr_for_each_nested(attr, data) if (mnl_attr_get_type(attr) ==
						 IFLA_BR_AGEING_TIME)
		out->ageing_s = get_u32(attr) / TICKS_PER_SECOND;
}

static void get_info(const struct nlattr *info, struct vl_fdb_link *out)
{
	const struct nlattr *data = NULL;
	struct nlattr *attr;

	mnl_attr_for_each_nested(attr, info)
	{
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
			get_name(attr, out->kind);
		else if (mnl_attr_get_type(attr) == IFLA_INFO_DATA)
			data = attr;
	}
	if (data && !strcmp(out->kind, "vxlan"))
		get_vxlan(data, out);
	else if (data && !strcmp(out->kind, "bridge"))
		get_bridge(data, out);
}

bool vl_fdb_link_parse(const struct nlmsghdr *nlh, struct vl_fdb_link *out)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct nlattr *attr;

	if ((nlh->nlmsg_type != RTM_NEWLINK &&
	     nlh->nlmsg_type != RTM_DELLINK) ||
	    !complete(nlh, sizeof(*ifi)))
		return false;
	*out = (struct vl_fdb_link){
		.present = nlh->nlmsg_type == RTM_NEWLINK,
		.bridge = ifi->ifi_family == AF_BRIDGE,
		.ifindex = (uint32_t)ifi->ifi_index,
	};
	mnl_attr_for_each(attr, nlh, sizeof(*ifi))
	{
		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			get_name(attr, out->name);
			break;
		case IFLA_MASTER:
			out->master = get_u32(attr);
			break;
		case IFLA_LINKINFO:
			get_info(attr, out);
			break;
		default:
			break;
		}
	}
	return true;
}
