/* SPDX-License-Identifier: BSD-3-Clause */
/* The VXLAN header (RFC 7348, section 5). */
#ifndef VL_BACKEND_VXLAN_PROTO_H
#define VL_BACKEND_VXLAN_PROTO_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VL_VXLAN_HDR 8u
/* The VNI is valid; the other bits are reserved and not looked at. */
#define VL_VXLAN_I   0x08u

static inline void vl_vxlan_write(uint8_t out[VL_VXLAN_HDR], uint32_t vni)
{
	memset(out, 0, VL_VXLAN_HDR);
	out[0] = VL_VXLAN_I;
	out[4] = (uint8_t)(vni >> 16);
	out[5] = (uint8_t)(vni >> 8);
	out[6] = (uint8_t)vni;
}

static inline bool vl_vxlan_is(const uint8_t hdr[VL_VXLAN_HDR], uint32_t vni)
{
	return (hdr[0] & VL_VXLAN_I) &&
	       ((uint32_t)hdr[4] << 16 | (uint32_t)hdr[5] << 8 | hdr[6]) == vni;
}

#endif
