/* SPDX-License-Identifier: BSD-3-Clause */
/* An IPv4 or IPv6 address as a value. Pure functions, any thread. */
#ifndef VL_BASE_IP_H
#define VL_BASE_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr_storage;

/* Network byte order; unused bytes are 0, so that two can be compared. */
struct vl_ip {
	uint8_t len; /* 4 or 16; 0: none */
	uint8_t addr[16];
};

/* "192.0.2.1" or "2001:db8::1", and multicast or unspecified ones are not
 * addresses of a host. Returns 0 or -EINVAL. */
int vl_ip_parse(const char *text, struct vl_ip *out);

/* The address as text, in @buf. */
#define VL_IP_TEXT 46
const char *vl_ip_text(const struct vl_ip *ip, char buf[VL_IP_TEXT]);

bool vl_ip_equal(const struct vl_ip *a, const struct vl_ip *b);

/* The address and @port (host byte order) for a socket; returns its length. */
unsigned int vl_ip_sockaddr(const struct vl_ip *ip, uint16_t port,
			    struct sockaddr_storage *out);

/* The address in @sa; an IPv4 address in an IPv6 one is IPv4. */
void vl_ip_from_sockaddr(const struct sockaddr_storage *sa, struct vl_ip *out);

#endif
