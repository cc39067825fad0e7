/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tap backend: a port is one queue of a Linux tap device
 * (Documentation/networking/tuntap.rst). An existing device is used, which
 * needs no privilege when it is persistent and ours; a missing one is created
 * if we may; or already opened queues are handed in.
 */
#ifndef VL_BACKEND_TAP_H
#define VL_BACKEND_TAP_H

#include "lane/backend.h"

extern const struct vl_backend_ops vl_backend_tap;

#endif
