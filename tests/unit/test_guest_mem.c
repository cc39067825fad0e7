/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of guest memory: what is refused, lookups, lifetime, lost memory. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "virtio/guest_mem.h"

#define KIB      1024ULL
#define FILE_LEN (64 * KIB)

static int memfd;

static int setup(void **state)
{
	(void)state;
	memfd = memfd_create("mem", MFD_CLOEXEC);
	return memfd < 0 || ftruncate(memfd, FILE_LEN) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	return close(memfd);
}

static struct vl_mem_region region(uint64_t gpa, uint64_t size, uint64_t offset)
{
	return (struct vl_mem_region){
		.gpa = gpa,
		.size = size,
		.uva = gpa + (1ULL << 40),
		.mmap_offset = offset,
		.fd = memfd,
	};
}

static void put_byte(char c, off_t at)
{
	assert_int_equal(pwrite(memfd, &c, 1, at), 1);
}

/* Mappings of the test's memfd in this process. */
static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned int n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:mem") != NULL;
	fclose(f);
	return n;
}

static void expect_refused(const struct vl_mem_region *r, size_t n, int err)
{
	struct vl_guest_mem *mem = NULL;

	assert_int_equal(vl_guest_mem_new(r, n, &mem), err);
	assert_int_equal(mappings(), 0);
}

static void refuses_bad_tables(void **state)
{
	struct vl_mem_region r[2] = { region(0x1000, 4 * KIB, 0),
				      region(0x2000, 4 * KIB, 4 * KIB) };
	struct vl_mem_region *many =
		calloc(VL_GUEST_MEM_REGIONS_MAX + 1, sizeof(*many));

	(void)state;
	expect_refused(r, 0, -EINVAL);
	for (size_t i = 0; i <= VL_GUEST_MEM_REGIONS_MAX; i++)
		many[i] = region(i * 4 * KIB, 4 * KIB, 0);
	expect_refused(many, VL_GUEST_MEM_REGIONS_MAX + 1, -EINVAL);
	free(many);

	r[1].size = 0;
	expect_refused(r, 2, -EINVAL);
	r[1] = region(0x1fff, 4 * KIB, 0); /* overlaps by one byte */
	expect_refused(r, 2, -EINVAL);
	r[1] = region(0x2000, 4 * KIB, 0);
	r[1].uva = r[0].uva + 4 * KIB - 1; /* the same in the front-end */
	expect_refused(r, 2, -EINVAL);
	r[1] = region(0x2000, 4 * KIB, 0);
	r[1].gpa = UINT64_MAX - 4 * KIB + 2; /* wraps by one byte */
	expect_refused(r, 2, -EINVAL);
	r[1] = region(0x2000, 4 * KIB, 0);
	r[1].uva = UINT64_MAX - 4 * KIB + 2;
	expect_refused(r, 2, -EINVAL);
}

static void refuses_more_than_the_file(void **state)
{
	struct vl_mem_region r = region(0x1000, FILE_LEN + 1, 0);

	(void)state;
	expect_refused(&r, 1, -EINVAL);
	r = region(0x1000, FILE_LEN, 1);
	expect_refused(&r, 1, -EINVAL);
	r = region(0x1000, 4 * KIB, UINT64_MAX - KIB);
	expect_refused(&r, 1, -EINVAL);
	r = region(0x1000, 4 * KIB, 0);
	r.fd = -1;
	expect_refused(&r, 1, -EBADF);
}

static void translates_guest_addresses(void **state)
{
	/* Given out of order, with adjacent guest addresses and a hole. */
	struct vl_mem_region r[3] = { region(0x9000, 4 * KIB, 32 * KIB),
				      region(0x1000, 8 * KIB, 0),
				      region(0x3000, 4 * KIB, 16 * KIB) };
	struct vl_mem_hint hint = { 0 };
	struct vl_guest_mem *mem;
	uint64_t len;
	char *p;

	(void)state;
	assert_int_equal(vl_guest_mem_new(r, 3, &mem), 0);
	assert_int_equal(vl_guest_mem_count(mem), 3);
	assert_int_equal(vl_guest_mem_size(mem), 16 * KIB);
	put_byte('A', 8 * KIB - 1);
	put_byte('B', 16 * KIB);
	put_byte('C', 36 * KIB - 1);

	len = 100; /* the last byte of one region, then the next one */
	p = vl_guest_mem_gpa(mem, &hint, 0x2fff, &len);
	assert_int_equal(len, 1);
	assert_int_equal(*p, 'A');
	len = 100;
	p = vl_guest_mem_gpa(mem, &hint, 0x3000, &len);
	assert_int_equal(len, 100);
	assert_int_equal(*p, 'B');
	len = UINT64_MAX;
	p = vl_guest_mem_gpa(mem, &hint, 0x9fff, &len);
	assert_int_equal(len, 1);
	assert_int_equal(*p, 'C');

	len = 0; /* nothing, mapped or not */
	assert_null(vl_guest_mem_gpa(mem, &hint, 0x9fff, &len));
	static const uint64_t holes[] = { 0,      0xfff,  0x4000,
					  0x8fff, 0xa000, UINT64_MAX };
	for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
		len = 1;
		assert_null(vl_guest_mem_gpa(mem, &hint, holes[i], &len));
	}
	hint.region = 77; /* a hint of another table is only a hint */
	len = 1;
	assert_non_null(vl_guest_mem_gpa(mem, &hint, 0x1000, &len));
	vl_guest_mem_put(mem);
	assert_int_equal(mappings(), 0);
}

static void translates_front_end_addresses(void **state)
{
	struct vl_mem_region r[2] = { region(0x1000, 4 * KIB, 0),
				      region(0x2000, 4 * KIB, 4 * KIB) };
	const uint64_t uva = r[0].uva;
	struct vl_guest_mem *mem;

	(void)state;
	assert_int_equal(vl_guest_mem_new(r, 2, &mem), 0);
	put_byte('D', 4 * KIB);
	assert_non_null(vl_guest_mem_uva(mem, uva, 4 * KIB));
	assert_null(vl_guest_mem_uva(mem, uva, 4 * KIB + 1));
	assert_null(vl_guest_mem_uva(mem, uva - 1, 2));
	assert_null(vl_guest_mem_uva(mem, uva + 8 * KIB, 1));
	assert_null(vl_guest_mem_uva(mem, uva + 1, UINT64_MAX));
	assert_int_equal(*(char *)vl_guest_mem_uva(mem, uva + 4 * KIB, 1), 'D');
	vl_guest_mem_put(mem);
}

/* An offset that is no multiple of the page size is legal. */
static void maps_odd_offsets(void **state)
{
	struct vl_mem_region r = region(0x1000, 5000, 4097);
	struct vl_mem_hint hint = { 0 };
	struct vl_guest_mem *mem;
	uint64_t len = 5000;

	(void)state;
	put_byte('E', 4097);
	assert_int_equal(vl_guest_mem_new(&r, 1, &mem), 0);
	assert_int_equal(*(char *)vl_guest_mem_gpa(mem, &hint, 0x1000, &len),
			 'E');
	assert_int_equal(len, 5000);
	vl_guest_mem_put(mem);
	assert_int_equal(mappings(), 0);
}

/* QEMU with several queue pairs adds and removes each region once per pair. */
static void added_twice_is_removed_twice(void **state)
{
	struct vl_mem_region r = region(0x1000, 4 * KIB, 0);
	struct vl_guest_mem *once, *twice, *less, *none;
	struct vl_mem_hint hint = { 0 };
	uint64_t len = 1;

	(void)state;
	assert_int_equal(vl_guest_mem_add(NULL, &r, &once), 0);
	assert_int_equal(vl_guest_mem_add(once, &r, &twice), 0);
	assert_int_equal(vl_guest_mem_count(twice), 1);
	assert_int_equal(mappings(), 1);
	assert_int_equal(vl_guest_mem_remove(twice, &r, &less), 0);
	assert_non_null(vl_guest_mem_gpa(less, &hint, 0x1000, &len));
	assert_int_equal(vl_guest_mem_remove(less, &r, &none), 0);
	assert_int_equal(vl_guest_mem_count(none), 0);
	vl_guest_mem_put(once);
	vl_guest_mem_put(twice);
	vl_guest_mem_put(less);
	vl_guest_mem_put(none);
	assert_int_equal(mappings(), 0);
}

static void tables_share_mappings(void **state)
{
	struct vl_mem_region r[2] = { region(0x1000, 4 * KIB, 0),
				      region(0x9000, 4 * KIB, 32 * KIB) };
	struct vl_guest_mem *one, *two, *rest, *none;

	(void)state;
	assert_int_equal(vl_guest_mem_add(NULL, &r[0], &one), 0);
	assert_int_equal(vl_guest_mem_add(one, &r[1], &two), 0);
	assert_int_equal(mappings(), 2);
	assert_int_equal(vl_guest_mem_count(one), 1);
	assert_int_equal(vl_guest_mem_count(two), 2);
	r[1].size--;
	assert_int_equal(vl_guest_mem_add(two, &r[1], &none), -EINVAL);
	assert_int_equal(vl_guest_mem_remove(two, &r[1], &none), -ENOENT);
	r[1].size++;
	r[1].uva++;
	assert_int_equal(vl_guest_mem_remove(two, &r[1], &none), -ENOENT);
	r[1].uva--;
	r[1].gpa++;
	assert_int_equal(vl_guest_mem_remove(two, &r[1], &none), -ENOENT);
	r[1].gpa--;

	assert_int_equal(vl_guest_mem_remove(two, &r[0], &rest), 0);
	assert_int_equal(vl_guest_mem_remove(rest, &r[1], &none), 0);
	assert_int_equal(vl_guest_mem_count(none), 0);
	assert_ptr_equal(vl_guest_mem_get(rest), rest);
	vl_guest_mem_put(one);
	vl_guest_mem_put(two);
	assert_int_equal(mappings(), 1); /* rest still has r[1] */
	vl_guest_mem_put(rest);
	assert_int_equal(mappings(), 1);
	vl_guest_mem_put(rest);
	assert_int_equal(mappings(), 0);
	vl_guest_mem_put(none);
	vl_guest_mem_put(NULL);
}

static void holds_as_many_regions_as_promised(void **state)
{
	struct vl_guest_mem *mem = NULL, *next;
	struct vl_mem_hint hint = { 0 };
	struct vl_mem_region r;

	(void)state;
	for (uint64_t i = 0; i < VL_GUEST_MEM_REGIONS_MAX; i++) {
		r = region(i * 8 * KIB, 4 * KIB, (i % 16) * 4 * KIB);
		assert_int_equal(vl_guest_mem_add(mem, &r, &next), 0);
		vl_guest_mem_put(mem);
		mem = next;
	}
	r = region(1ULL << 32, 4 * KIB, 0);
	assert_int_equal(vl_guest_mem_add(mem, &r, &next), -ENOSPC);
	for (uint64_t i = 0; i < VL_GUEST_MEM_REGIONS_MAX; i++) {
		uint64_t len = 8 * KIB;

		assert_non_null(
			vl_guest_mem_gpa(mem, &hint, i * 8 * KIB, &len));
		assert_int_equal(len, 4 * KIB);
		len = 1;
		assert_null(vl_guest_mem_gpa(mem, &hint, i * 8 * KIB + 4 * KIB,
					     &len));
	}
	vl_guest_mem_put(mem);
	assert_int_equal(mappings(), 0);
}

/* Adding and removing must not use up anything. */
static void survives_many_changes(void **state)
{
	struct vl_mem_region r = region(0x1000, 4 * KIB, 0);
	struct vl_mem_region keep = region(0x9000, 4 * KIB, 0);
	struct vl_guest_mem *mem, *next;

	(void)state;
	assert_int_equal(vl_guest_mem_new(&keep, 1, &mem), 0);
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(vl_guest_mem_add(mem, &r, &next), 0);
		vl_guest_mem_put(mem);
		assert_int_equal(vl_guest_mem_remove(next, &r, &mem), 0);
		vl_guest_mem_put(next);
	}
	assert_int_equal(mappings(), 1);
	vl_guest_mem_put(mem);
}

static void file_that_shrinks_is_noticed(void **state)
{
	struct vl_mem_region r[2] = { region(0x1000, 8 * KIB, 0),
				      region(0x9000, 4 * KIB, 0) };
	int other = memfd_create("other", MFD_CLOEXEC);
	struct vl_guest_mem *mem, *well;
	struct vl_mem_hint hint = { 0 };
	uint64_t len = 8 * KIB;
	uint32_t before = vl_guest_mem_losses();
	volatile char *p;

	(void)state;
	assert_int_equal(ftruncate(other, FILE_LEN), 0);
	r[1].fd = other;
	assert_int_equal(vl_guest_mem_guard(), 0);
	assert_int_equal(vl_guest_mem_new(r, 2, &mem), 0);
	assert_int_equal(vl_guest_mem_new(&r[1], 1, &well), 0);
	p = vl_guest_mem_gpa(mem, &hint, 0x1000, &len);
	p[0] = 1;
	assert_false(vl_guest_mem_lost(mem));
	assert_int_equal(ftruncate(memfd, 4 * KIB), 0);
	assert_int_equal(p[0], 1); /* what is left of the file still works */
	p[5000] = 7;               /* would end the process */
	assert_int_equal(p[5000], 7);
	assert_true(vl_guest_mem_lost(mem));
	assert_false(vl_guest_mem_lost(well));
	assert_int_equal(vl_guest_mem_losses(), before + 1);
	vl_guest_mem_put(mem);
	vl_guest_mem_put(well);
	close(other);
}

/* The guard must not hide bugs of our own. */
static void other_bus_errors_stay_fatal(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = memfd_create("own", MFD_CLOEXEC);
		volatile char *p = mmap(NULL, 4 * KIB, PROT_READ | PROT_WRITE,
					MAP_SHARED, fd, 0);

		vl_guest_mem_guard();
		p[0] = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#else
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(refuses_bad_tables),
		T(refuses_more_than_the_file),
		T(translates_guest_addresses),
		T(translates_front_end_addresses),
		T(maps_odd_offsets),
		T(added_twice_is_removed_twice),
		T(tables_share_mappings),
		T(holds_as_many_regions_as_promised),
		T(survives_many_changes),
		T(file_that_shrinks_is_noticed),
		T(other_bus_errors_stay_fatal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
