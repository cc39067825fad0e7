/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that are worth measuring and that nobody answers. */
#ifndef BENCH_FLOOD_FRAME_H
#define BENCH_FLOOD_FRAME_H

#include <linux/virtio_net.h>
#include <stdint.h>

#define FLOOD_HDR_LEN   ((uint32_t)sizeof(struct virtio_net_hdr_mrg_rxbuf))
#define FLOOD_MTU_FRAME 1514u
#define FLOOD_FRAME_MIN 60u
#define FLOOD_FRAME_MAX 65536u
/* Ethernet, IPv4 and TCP headers. */
#define FLOOD_TCP_HEAD  54u

/*
 * Fills @at with a virtio header of @hdr_len bytes (10 or 12) and a frame of
 * @size bytes (FLOOD_FRAME_MIN to FLOOD_FRAME_MAX) for an Ethernet address
 * that no interface here has: the host's stack drops it as soon as it sees it.
 * Without @mss: a UDP datagram without a checksum. With it: a TCP segment with
 * partial checksum that is to be cut into segments of @mss bytes of payload.
 */
void flood_frame_make(uint8_t *at, uint32_t hdr_len, uint32_t size,
		      uint16_t mss);

/* Makes the UDP datagram that flood_frame_make() put at @at one whose checksum
 * the device has to complete. */
void flood_frame_partial(uint8_t *at, uint32_t hdr_len, uint32_t size);

#endif
