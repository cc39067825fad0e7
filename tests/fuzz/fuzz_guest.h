/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ring targets share: reading the input, and a guest's memory with
 * three rings that the input fills. Steps of the input, one opcode byte each
 * (see fuzz_guest_step()), let a few bytes make a chain, while every byte of
 * memory stays reachable.
 */
#ifndef TESTS_FUZZ_GUEST_H
#define TESTS_FUZZ_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring_driver.h"
#include "virtio/virtqueue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_RINGS    3u
#define FUZZ_LOW      0x20000u /* bytes of the first region, at address 0 */
#define FUZZ_HIGH     0x10000u /* of the second one, right behind it */
#define FUZZ_NUM_MAX  256u
#define FUZZ_RING(q)  ((q)*0x4000u) /* descriptors; then avail, used */
#define FUZZ_AVAIL(q) (FUZZ_RING(q) + 0x2000u)
#define FUZZ_USED(q)  (FUZZ_RING(q) + 0x3000u)

struct fuzz_input {
	const uint8_t *p;
	size_t left;
};

/* The next byte / little-endian value; 0 at the end. */
static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->p++;
}

static inline uint16_t fuzz_u16(struct fuzz_input *in)
{
	uint16_t lo = fuzz_u8(in);

	return (uint16_t)(lo | fuzz_u8(in) << 8);
}

static inline uint32_t fuzz_u32(struct fuzz_input *in)
{
	uint32_t lo = fuzz_u16(in);

	return lo | (uint32_t)fuzz_u16(in) << 16;
}

/* A finding. */
static inline void fuzz_check(bool ok)
{
	if (!ok)
		__builtin_trap();
}

struct fuzz_guest {
	struct rd_mem low, high;
	struct vl_guest_mem *mem;
	uint32_t num[FUZZ_RINGS];
	uint16_t avail_idx[FUZZ_RINGS];
};

/* Makes the memory, once per process. */
void fuzz_guest_init(struct fuzz_guest *g);

/* All memory zero, ring sizes and start indices from the input. */
void fuzz_guest_reset(struct fuzz_guest *g, struct fuzz_input *in);

/* Ring @q for the device; no descriptors. */
struct vl_vring fuzz_guest_vring(const struct fuzz_guest *g, unsigned int q);

/*
 * One step with opcode @op, if it is one of these (else false):
 *   0  memory: offset u16, in which 64 KiB u8, length u8, bytes
 *   1  descriptor: ring u8, index u16, address u32, length u32, flags u8,
 *      next u16
 *   2  entry of the available ring, index included: ring u8, head u16
 *   3  indirect descriptor at an offset: offset u16, as 1 from address on
 */
bool fuzz_guest_step(struct fuzz_guest *g, uint8_t op, struct fuzz_input *in);

/* True when [p, p + len) lies in one of the guest's regions. */
bool fuzz_guest_owns(const struct fuzz_guest *g, const void *p, size_t len);

#endif
