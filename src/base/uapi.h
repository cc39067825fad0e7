/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of <linux/virtio_net.h> that Debian 12's kernel headers lack. */
#ifndef VL_BASE_UAPI_H
#define VL_BASE_UAPI_H

#include <linux/virtio_net.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif
#ifndef VIRTIO_NET_F_GUEST_USO4
#define VIRTIO_NET_F_GUEST_USO4 54
#define VIRTIO_NET_F_GUEST_USO6 55
#define VIRTIO_NET_F_HOST_USO   56
#endif

#endif
