/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The guest's memory: an immutable, reference-counted table of regions that
 * the front-end shared (vhost-user: SET_MEM_TABLE, ADD_MEM_REG).
 *
 * A table never changes; a change makes a new table that shares the mappings
 * which both have. Every virtqueue holds a reference while it runs, so memory
 * is never unmapped under a running queue. A mapping is gone when the last
 * table that names it is gone.
 *
 * A front-end may shrink the file behind a region after it was mapped; the
 * access that then raises SIGBUS must not end the process. See
 * vl_guest_mem_guard().
 */
#ifndef VL_VIRTIO_GUEST_MEM_H
#define VL_VIRTIO_GUEST_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Regions in one table; what GET_MAX_MEM_SLOTS answers. */
#define VL_GUEST_MEM_REGIONS_MAX 509

struct vl_guest_mem;

/* One region as the front-end describes it. */
struct vl_mem_region {
	uint64_t gpa;         /* guest physical address of its first byte */
	uint64_t size;        /* bytes */
	uint64_t uva;         /* address in the front-end's own memory */
	uint64_t mmap_offset; /* where it starts in the file */
	int fd;               /* stays the caller's; mapped, not kept */
};

/*
 * Maps @n regions. Refuses with -EINVAL: no region or too many, size 0, ranges
 * that wrap or overlap (by guest address or by front-end address), a file that
 * is shorter than offset + size; -errno of mmap otherwise. Nothing stays
 * mapped on failure. The new table has one reference.
 */
int vl_guest_mem_new(const struct vl_mem_region *regions, size_t n,
		     struct vl_guest_mem **out);

/*
 * A new table: @old (may be NULL) and one region more. Same checks; -ENOSPC
 * when the table is full. @old keeps its reference. A region of the same gpa,
 * uva and size as one that is there is that region once more, and must be
 * removed once more: QEMU (7.2) has a vhost device per queue pair, and each of
 * them adds and removes all regions.
 */
int vl_guest_mem_add(const struct vl_guest_mem *old,
		     const struct vl_mem_region *region,
		     struct vl_guest_mem **out);

/*
 * A new table: @old without the region of the same gpa, uva and size, if it was
 * added once, else with one addition less. -ENOENT when there is none. The result may have no region.
 */
int vl_guest_mem_remove(const struct vl_guest_mem *old,
			const struct vl_mem_region *region,
			struct vl_guest_mem **out);

/* References; any thread. vl_guest_mem_put(NULL) does nothing. */
struct vl_guest_mem *vl_guest_mem_get(struct vl_guest_mem *mem);
void vl_guest_mem_put(struct vl_guest_mem *mem);

size_t vl_guest_mem_count(const struct vl_guest_mem *mem);
/* Bytes of all regions together. */
uint64_t vl_guest_mem_size(const struct vl_guest_mem *mem);

/* The last region that was hit; a hint that belongs to one virtqueue. */
struct vl_mem_hint {
	uint32_t region;
};

/*
 * The host address of guest address @gpa. On return *len is cut to what is
 * contiguous in that region. NULL when @gpa is not mapped or *len is 0.
 */
void *vl_guest_mem_gpa(const struct vl_guest_mem *mem, struct vl_mem_hint *hint,
		       uint64_t gpa, uint64_t *len);

/*
 * The host address of the front-end address @uva when all of [uva, uva + len)
 * lies in one region, else NULL.
 */
void *vl_guest_mem_uva(const struct vl_guest_mem *mem, uint64_t uva,
		       uint64_t len);

/*
 * Installs the SIGBUS handler: an access to a mapped region whose file is gone
 * gets zero pages for that whole region instead, and the region's tables are
 * marked lost. Any other SIGBUS has its default effect. Call once at start.
 */
int vl_guest_mem_guard(void);

/*
 * Regions lost so far in the whole process, of any table. One load: cheap
 * enough to be asked per batch whether vl_guest_mem_lost() is worth asking.
 */
uint32_t vl_guest_mem_losses(void);

/* True once a region of this table was lost. Any thread. */
bool vl_guest_mem_lost(const struct vl_guest_mem *mem);

#endif
