/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small helpers that every module may use: array sizes, checked arithmetic
 * and the one place that says on which machines virtlane runs.
 */
#ifndef VL_BASE_UTIL_H
#define VL_BASE_UTIL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Rings of VIRTIO_F_VERSION_1 devices are little-endian, legacy rings and the
 * tap's virtio header are native. On a little-endian host all three agree and
 * no conversion exists anywhere; a big-endian port has to add them.
 */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "virtlane needs a little-endian host");

#define VL_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define vl_container_of(ptr, type, member)                                     \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define vl_likely(x)   __builtin_expect(!!(x), 1)
#define vl_unlikely(x) __builtin_expect(!!(x), 0)

#define VL_NS_PER_SEC 1000000000ULL

static inline uint32_t vl_min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline int vl_min_int(int a, int b)
{
	return a < b ? a : b;
}

static inline uint32_t vl_max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static inline uint64_t vl_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* True when [start, start + len) does not wrap; *end is start + len then. */
static inline _Bool vl_range_end(uint64_t start, uint64_t len, uint64_t *end)
{
	return !__builtin_add_overflow(start, len, end);
}

#endif
