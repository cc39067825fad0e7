/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The VXLAN backend: the device is a tunnel endpoint (VTEP) of one virtual
 * network (RFC 7348), over UDP sockets. No device of the kernel's is needed.
 */
#ifndef VL_BACKEND_VXLAN_H
#define VL_BACKEND_VXLAN_H

#include "lane/backend.h"

extern const struct vl_backend_ops vl_backend_vxlan;

#endif
