/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/ip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

int vl_ip_parse(const char *text, struct vl_ip *out)
{
	struct in6_addr a6;
	struct in_addr a4;

	if (inet_pton(AF_INET, text, &a4) == 1) {
		if (a4.s_addr == INADDR_ANY || IN_MULTICAST(ntohl(a4.s_addr)) ||
		    a4.s_addr == INADDR_BROADCAST)
			return -EINVAL;
		*out = (struct vl_ip){ .len = 4 };
		memcpy(out->addr, &a4, 4);
		return 0;
	}
	if (inet_pton(AF_INET6, text, &a6) != 1 || IN6_IS_ADDR_MULTICAST(&a6) ||
	    IN6_IS_ADDR_UNSPECIFIED(&a6) || IN6_IS_ADDR_V4MAPPED(&a6))
		return -EINVAL;
	*out = (struct vl_ip){ .len = 16 };
	memcpy(out->addr, &a6, 16);
	return 0;
}

const char *vl_ip_text(const struct vl_ip *ip, char buf[VL_IP_TEXT])
{
	if (ip->len == 0 || !inet_ntop(ip->len == 4 ? AF_INET : AF_INET6,
				       ip->addr, buf, VL_IP_TEXT))
		(void)memcpy(buf, "none", sizeof("none"));
	return buf;
}

bool vl_ip_equal(const struct vl_ip *a, const struct vl_ip *b)
{
	return a->len == b->len && !memcmp(a->addr, b->addr, sizeof(a->addr));
}

unsigned int vl_ip_sockaddr(const struct vl_ip *ip, uint16_t port,
			    struct sockaddr_storage *out)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(port) };
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_port = htons(port) };

	memset(out, 0, sizeof(*out));
	if (ip->len == 16) {
		memcpy(&a6.sin6_addr, ip->addr, 16);
		memcpy(out, &a6, sizeof(a6));
		return sizeof(a6);
	}
	memcpy(&a4.sin_addr, ip->addr, 4);
	memcpy(out, &a4, sizeof(a4));
	return sizeof(a4);
}

void vl_ip_from_sockaddr(const struct sockaddr_storage *sa, struct vl_ip *out)
{
	struct sockaddr_in6 a6;
	struct sockaddr_in a4;

	*out = (struct vl_ip){ 0 };
	if (sa->ss_family == AF_INET) {
		memcpy(&a4, sa, sizeof(a4));
		out->len = 4;
		memcpy(out->addr, &a4.sin_addr, 4);
	} else if (sa->ss_family == AF_INET6) {
		memcpy(&a6, sa, sizeof(a6));
		if (IN6_IS_ADDR_V4MAPPED(&a6.sin6_addr)) {
			out->len = 4;
			memcpy(out->addr, &a6.sin6_addr.s6_addr[12], 4);
			return;
		}
		out->len = 16;
		memcpy(out->addr, &a6.sin6_addr, 16);
	}
}
