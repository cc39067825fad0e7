/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet backend: any Ethernet interface of the host, through AF_PACKET. */
#ifndef VL_BACKEND_PACKET_H
#define VL_BACKEND_PACKET_H

#include "lane/backend.h"

extern const struct vl_backend_ops vl_backend_packet;

#endif
