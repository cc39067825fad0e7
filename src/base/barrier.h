/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every memory-ordering primitive of the project. Ring code uses these names
 * only, and each use says which access of the driver it pairs with
 * (virtio 1.2, section 2.7.13 and 2.7.14).
 */
#ifndef VL_BASE_BARRIER_H
#define VL_BASE_BARRIER_H

/* One access, never torn, repeated or invented by the compiler. */
#define vl_read_once(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define vl_write_once(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/* Loads after it see what the other side stored before its release. */
#define vl_load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define vl_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/* Replaces *p by @new_ if it is @old; whether it was. Full order, both ways. */
#define vl_cas(p, old, new_)                                                   \
	__extension__({                                                        \
		__typeof__(*(p)) vl_cas_old = (old);                           \
		__atomic_compare_exchange_n((p), &vl_cas_old, (new_), 0,       \
					    __ATOMIC_SEQ_CST,                  \
					    __ATOMIC_RELAXED);                 \
	})

/*
 * A store before it is visible before a load after it is made: "I published,
 * now is the other side asleep?". ThreadSanitizer does not know fences, so
 * under it the same order comes from a read-modify-write.
 */
#if defined(__SANITIZE_THREAD__)
#define VL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VL_TSAN 1
#endif
#endif

static inline void vl_full_fence(void)
{
#ifdef VL_TSAN
	static int order;

	(void)__atomic_fetch_add(&order, 1, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * Counters have one writing thread and any number of readers: no locked
 * instruction is needed, only accesses that do not tear.
 */
#define VL_STAT_ADD(field, n)                                                  \
	vl_write_once(&(field), vl_read_once(&(field)) + (n))
#define VL_STAT_INC(field) VL_STAT_ADD(field, 1)

#endif
