/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scatter-gather list read as one byte stream. All length arithmetic on
 * lists that a guest laid out lives here; nothing wraps, nothing reads or
 * writes past the end of the list.
 */
#ifndef VL_BASE_IOV_H
#define VL_BASE_IOV_H

#include <stddef.h>
#include <sys/uio.h>

/* Sum of the lengths; the caller guarantees that it fits in size_t. */
size_t vl_iov_len(const struct iovec *iov, size_t n);

/*
 * Copies up to @len bytes out of the stream from byte @offset on. Returns the
 * number of bytes copied, fewer than @len only where the stream ends.
 */
size_t vl_iov_read(const struct iovec *iov, size_t n, size_t offset, void *buf,
		   size_t len);

/* The same into the stream. */
size_t vl_iov_write(const struct iovec *iov, size_t n, size_t offset,
		    const void *buf, size_t len);

/*
 * Describes [offset, offset + len) of @src in @dst (room for @dst_cap
 * entries). Returns the number of entries, -ENOBUFS when @dst is too small,
 * -EINVAL when the stream is shorter than offset + len.
 */
int vl_iov_slice(const struct iovec *src, size_t n, size_t offset, size_t len,
		 struct iovec *dst, size_t dst_cap);

#endif
