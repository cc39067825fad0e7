/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a packet socket leaves undone in a frame that it hands over, and a tap
 * does: a VLAN tag that the kernel took off, a checksum that waits for a device
 * to complete it. Pure functions, for any thread.
 */
#ifndef VL_BACKEND_FRAME_FIX_H
#define VL_BACKEND_FRAME_FIX_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

#include "lane/backend.h"

#define VL_TAG_LEN 4u

/* Whether a driver that takes @o takes a frame with this gso_type (virtio 1.2,
 * section 5.1.6.2) as it is. */
bool vl_fix_takes_gso(const struct vl_offload *o, uint8_t gso_type);

/* Whether there is no frame that a driver which takes @o does not. */
bool vl_fix_takes_all(const struct vl_offload *o);

/*
 * Puts a tag (IEEE 802.1Q, clause 9) behind the addresses of a frame. The frame
 * and the @hdr_len bytes of virtio header at @at move VL_TAG_LEN bytes towards
 * lower addresses, where there must be room. @hdr, a copy of that header, is
 * made to agree.
 */
void vl_fix_insert_tag(uint8_t *at, uint32_t hdr_len, uint16_t tpid,
		       uint16_t tci, struct virtio_net_hdr *hdr);

/*
 * Completes the partial checksum that @hdr tells of, in the frame of @len bytes,
 * and takes it out of @hdr. Returns 0, or -EINVAL when it lies outside the
 * frame.
 */
int vl_fix_complete_csum(struct virtio_net_hdr *hdr, uint8_t *frame,
			 uint32_t len);

#endif
