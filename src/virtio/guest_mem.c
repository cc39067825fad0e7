/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guest memory tables.
 *
 * A table is an array of regions sorted by guest address. Each region refers
 * to a mapping, which is shared by all tables that have the region and counts
 * these references; tables count theirs. Both are immutable once published,
 * so readers need no lock: a virtqueue simply keeps its table alive.
 *
 * The SIGBUS guard works on a fixed array of slots, one per mapping, because
 * a signal handler can neither lock nor follow lists that another thread
 * changes. A slot is written before the mapping can be reached through any
 * table and cleared after the last table is gone, so an access that faults
 * always finds its slot complete.
 */
#include "virtio/guest_mem.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/barrier.h"
#include "base/util.h"

/* Two full tables may exist while one replaces the other. */
#define GUARD_SLOTS (2 * VL_GUEST_MEM_REGIONS_MAX + 2)

struct guard_slot {
	char *base; /* NULL: free */
	size_t len;
	bool lost;
};

static struct guard_slot guard_slots[GUARD_SLOTS];
static uint32_t guard_losses;

struct mapping {
	uint32_t refs;
	char *base;
	size_t len;
	struct guard_slot *slot;
};

struct region {
	uint64_t gpa;
	uint64_t size;
	uint64_t uva;
	char *host;
	struct mapping *map;
	uint32_t adds; /* removals it takes until it is gone */
};

struct vl_guest_mem {
	uint32_t refs;
	uint32_t n;
	struct region region[];
};

static struct guard_slot *guard_add(char *base, size_t len)
{
	for (size_t i = 0; i < VL_ARRAY_SIZE(guard_slots); i++) {
		struct guard_slot *slot = &guard_slots[i];

		if (slot->base)
			continue;
		slot->len = len;
		slot->lost = false;
		vl_store_release(&slot->base, base);
		return slot;
	}
	return NULL;
}

static void mapping_put(struct mapping *map)
{
	if (__atomic_sub_fetch(&map->refs, 1, __ATOMIC_ACQ_REL))
		return;
	/* First: the address may be another mapping's right after munmap(). */
	vl_store_release(&map->slot->base, (char *)NULL);
	munmap(map->base, map->len);
	free(map);
}

/* The unit in which the file can be mapped: huge pages report theirs here. */
static uint64_t file_block(const struct stat *st)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t block = (uint64_t)st->st_blksize;

	if (block < page || (block & (block - 1)) || block > (1ULL << 30))
		return page;
	return block;
}

/* Maps @r and fills @out. The file must back all of the region: a shorter one
 * would only fault later. */
static int map_region(const struct vl_mem_region *r, struct region *out)
{
	struct stat st;
	uint64_t file_end, block, start, len;
	struct mapping *map;

	if (fstat(r->fd, &st) < 0)
		return -errno;
	if (!vl_range_end(r->mmap_offset, r->size, &file_end) ||
	    st.st_size < 0 || file_end > (uint64_t)st.st_size)
		return -EINVAL;
	block = file_block(&st);
	start = r->mmap_offset & ~(block - 1);
	len = (file_end - start + block - 1) & ~(block - 1);

	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->refs = 1;
	map->len = len;
	map->base = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, r->fd, (off_t)start);
	if (map->base == MAP_FAILED) {
		int err = -errno;

		free(map);
		return err;
	}
	/* A crash dump is for our own state, not for the guest's secrets. */
	(void)madvise(map->base, len, MADV_DONTDUMP);
	map->slot = guard_add(map->base, len);
	if (!map->slot) {
		munmap(map->base, len);
		free(map);
		return -ENOSPC;
	}
	*out = (struct region){
		.gpa = r->gpa,
		.size = r->size,
		.uva = r->uva,
		.host = map->base + (r->mmap_offset - start),
		.map = map,
		.adds = 1,
	};
	return 0;
}

static bool overlap(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
	return a < b + b_len && b < a + a_len;
}

/* No wrap, and no overlap with the @n regions that are there already. */
static int check_region(const struct vl_guest_mem *mem,
			const struct vl_mem_region *r)
{
	uint64_t end;

	if (r->size == 0 || !vl_range_end(r->gpa, r->size, &end) ||
	    !vl_range_end(r->uva, r->size, &end))
		return -EINVAL;
	for (uint32_t i = 0; i < mem->n; i++) {
		const struct region *o = &mem->region[i];

		if (overlap(r->gpa, r->size, o->gpa, o->size) ||
		    overlap(r->uva, r->size, o->uva, o->size))
			return -EINVAL;
	}
	return 0;
}

static void insert_sorted(struct vl_guest_mem *mem, const struct region *r)
{
	uint32_t i = mem->n;

	/* The analyzer takes entries below n for unset. */
	/* NOLINTNEXTLINE(clang-analyzer-core.*) */
	for (; i > 0 && mem->region[i - 1].gpa > r->gpa; i--)
		mem->region[i] = mem->region[i - 1];
	mem->region[i] = *r;
	mem->n++;
}

static struct vl_guest_mem *alloc_table(size_t room)
{
	struct vl_guest_mem *mem;

	mem = calloc(1, sizeof(*mem) + room * sizeof(mem->region[0]));
	if (mem)
		mem->refs = 1;
	return mem;
}

/* A table with @old's regions but the one at index @skip, room for @extra. */
static struct vl_guest_mem *copy_table(const struct vl_guest_mem *old,
				       uint32_t skip, size_t extra)
{
	struct vl_guest_mem *mem = alloc_table((old ? old->n : 0) + extra);

	if (!mem || !old)
		return mem;
	for (uint32_t i = 0; i < old->n; i++) {
		if (i == skip)
			continue;
		mem->region[mem->n++] = old->region[i];
		__atomic_add_fetch(&old->region[i].map->refs, 1,
				   __ATOMIC_RELAXED);
	}
	return mem;
}

static int add_region(struct vl_guest_mem *mem, const struct vl_mem_region *r)
{
	struct region region;
	int err = check_region(mem, r);

	if (!err)
		err = map_region(r, &region);
	if (!err)
		insert_sorted(mem, &region);
	return err;
}

int vl_guest_mem_new(const struct vl_mem_region *regions, size_t n,
		     struct vl_guest_mem **out)
{
	struct vl_guest_mem *mem;
	int err = 0;

	if (n == 0 || n > VL_GUEST_MEM_REGIONS_MAX)
		return -EINVAL;
	mem = alloc_table(n);
	if (!mem)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		err = add_region(mem, &regions[i]);
	if (err) {
		vl_guest_mem_put(mem);
		return err;
	}
	*out = mem;
	return 0;
}

/* The index of the region that @r names, or @mem->n. */
static uint32_t same_region(const struct vl_guest_mem *mem,
			    const struct vl_mem_region *r)
{
	uint32_t i;

	for (i = 0; i < mem->n; i++) {
		const struct region *o = &mem->region[i];

		if (o->gpa == r->gpa && o->uva == r->uva && o->size == r->size)
			break;
	}
	return i;
}

/* A table like @old in which region @i was added @adds times. */
static int count_adds(const struct vl_guest_mem *old, uint32_t i, uint32_t adds,
		      struct vl_guest_mem **out)
{
	struct vl_guest_mem *mem = copy_table(old, UINT32_MAX, 0);

	if (!mem)
		return -ENOMEM;
	mem->region[i].adds = adds;
	*out = mem;
	return 0;
}

int vl_guest_mem_add(const struct vl_guest_mem *old,
		     const struct vl_mem_region *region,
		     struct vl_guest_mem **out)
{
	struct vl_guest_mem *mem;
	uint32_t i = old ? same_region(old, region) : 0;
	int err;

	/* The count ends before it can wrap. */
	if (old && i < old->n && old->region[i].adds < UINT32_MAX)
		return count_adds(old, i, old->region[i].adds + 1, out);
	if (old && old->n >= VL_GUEST_MEM_REGIONS_MAX)
		return -ENOSPC;
	mem = copy_table(old, UINT32_MAX, 1);
	if (!mem)
		return -ENOMEM;
	err = add_region(mem, region);
	if (err) {
		vl_guest_mem_put(mem);
		return err;
	}
	*out = mem;
	return 0;
}

int vl_guest_mem_remove(const struct vl_guest_mem *old,
			const struct vl_mem_region *region,
			struct vl_guest_mem **out)
{
	uint32_t i = old ? same_region(old, region) : 0;
	struct vl_guest_mem *mem;

	if (!old || i == old->n)
		return -ENOENT;
	if (old->region[i].adds > 1)
		return count_adds(old, i, old->region[i].adds - 1, out);
	mem = copy_table(old, i, 0);
	if (!mem)
		return -ENOMEM;
	*out = mem;
	return 0;
}

struct vl_guest_mem *vl_guest_mem_get(struct vl_guest_mem *mem)
{
	__atomic_add_fetch(&mem->refs, 1, __ATOMIC_RELAXED);
	return mem;
}

void vl_guest_mem_put(struct vl_guest_mem *mem)
{
	if (!mem || __atomic_sub_fetch(&mem->refs, 1, __ATOMIC_ACQ_REL))
		return;
	for (uint32_t i = 0; i < mem->n; i++)
		mapping_put(mem->region[i].map);
	free(mem);
}

size_t vl_guest_mem_count(const struct vl_guest_mem *mem)
{
	return mem ? mem->n : 0;
}

uint64_t vl_guest_mem_size(const struct vl_guest_mem *mem)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; mem && i < mem->n; i++)
		sum += mem->region[i].size;
	return sum;
}

static bool region_has(const struct region *r, uint64_t gpa)
{
	return gpa >= r->gpa && gpa - r->gpa < r->size;
}

/* Index of the region that holds @gpa, mem->n when none does. */
static uint32_t find_region(const struct vl_guest_mem *mem, uint64_t gpa)
{
	uint32_t lo = 0, hi = mem->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (mem->region[mid].gpa <= gpa)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || !region_has(&mem->region[lo - 1], gpa))
		return mem->n;
	return lo - 1;
}

void *vl_guest_mem_gpa(const struct vl_guest_mem *mem, struct vl_mem_hint *hint,
		       uint64_t gpa, uint64_t *len)
{
	uint32_t i = hint->region;
	const struct region *r;
	uint64_t offset;

	if (vl_unlikely(i >= mem->n || !region_has(&mem->region[i], gpa))) {
		i = find_region(mem, gpa);
		if (i == mem->n)
			return NULL;
		hint->region = i;
	}
	if (vl_unlikely(*len == 0))
		return NULL;
	r = &mem->region[i];
	offset = gpa - r->gpa;
	*len = vl_min_u64(*len, r->size - offset);
	return r->host + offset;
}

void *vl_guest_mem_uva(const struct vl_guest_mem *mem, uint64_t uva,
		       uint64_t len)
{
	for (uint32_t i = 0; i < mem->n; i++) {
		const struct region *r = &mem->region[i];

		if (uva >= r->uva && uva - r->uva < r->size)
			return len <= r->size - (uva - r->uva)
				       ? r->host + (uva - r->uva)
				       : NULL;
	}
	return NULL;
}

/* Async-signal-safe: touches the slots, makes one system call. */
static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr;

	(void)context;
	for (size_t i = 0; i < VL_ARRAY_SIZE(guard_slots); i++) {
		struct guard_slot *slot = &guard_slots[i];
		char *base = vl_load_acquire(&slot->base);

		if (!base || addr < (uintptr_t)base ||
		    addr - (uintptr_t)base >= slot->len)
			continue;
		/* MAP_FIXED replaces the mapping: there is nothing to store. */
		/* cppcheck-suppress [invalidFunctionArg,leakReturnValNotUsed] */
		if (mmap(base, slot->len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
				 MAP_NORESERVE,
			 -1, 0) == MAP_FAILED)
			break;
		vl_write_once(&slot->lost, true);
		__atomic_add_fetch(&guard_losses, 1, __ATOMIC_RELEASE);
		return;
	}
	/* Not guest memory: a bug of ours, which should be seen as one. The
	 * access is repeated on return, with the default action. */
	signal(sig, SIG_DFL);
}

int vl_guest_mem_guard(void)
{
	struct sigaction sa = {
		.sa_sigaction = on_sigbus,
		.sa_flags = SA_SIGINFO | SA_NODEFER,
	};

	sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, NULL) < 0 ? -errno : 0;
}

uint32_t vl_guest_mem_losses(void)
{
	return vl_load_acquire(&guard_losses);
}

bool vl_guest_mem_lost(const struct vl_guest_mem *mem)
{
	for (uint32_t i = 0; i < mem->n; i++)
		if (vl_read_once(&mem->region[i].map->slot->lost))
			return true;
	return false;
}
