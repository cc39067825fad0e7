/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/iov.h"

#include <errno.h>
#include <string.h>

/* Where a byte of the stream lies: entry and offset in it. */
struct cursor {
	size_t entry;
	size_t offset;
};

/*
 * Moves @c to byte @offset of the stream, to the end of the list when the
 * stream is not longer than that. Returns the bytes by which it is too short.
 */
static size_t seek(const struct iovec *iov, size_t n, size_t offset,
		   struct cursor *c)
{
	size_t i;

	for (i = 0; i < n && offset >= iov[i].iov_len; i++)
		offset -= iov[i].iov_len;
	c->entry = i;
	c->offset = i < n ? offset : 0;
	return i < n ? 0 : offset;
}

/* The next piece of at most @max bytes; the cursor moves to the next entry. */
static struct iovec next_piece(const struct iovec *iov, struct cursor *c,
			       size_t max)
{
	struct iovec piece = iov[c->entry];

	/* An empty entry may name no memory: no arithmetic on NULL. */
	if (c->offset)
		piece.iov_base = (char *)piece.iov_base + c->offset;
	piece.iov_len -= c->offset;
	if (piece.iov_len > max)
		piece.iov_len = max;
	c->entry++;
	c->offset = 0;
	return piece;
}

size_t vl_iov_len(const struct iovec *iov, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += iov[i].iov_len;
	return sum;
}

size_t vl_iov_read(const struct iovec *iov, size_t n, size_t offset, void *buf,
		   size_t len)
{
	struct cursor c;
	size_t done = 0;

	seek(iov, n, offset, &c);
	while (c.entry < n && done < len) {
		struct iovec p = next_piece(iov, &c, len - done);

		if (p.iov_len)
			memcpy((char *)buf + done, p.iov_base, p.iov_len);
		done += p.iov_len;
	}
	return done;
}

size_t vl_iov_write(const struct iovec *iov, size_t n, size_t offset,
		    const void *buf, size_t len)
{
	struct cursor c;
	size_t done = 0;

	seek(iov, n, offset, &c);
	while (c.entry < n && done < len) {
		struct iovec p = next_piece(iov, &c, len - done);

		if (p.iov_len)
			memcpy(p.iov_base, (const char *)buf + done, p.iov_len);
		done += p.iov_len;
	}
	return done;
}

int vl_iov_slice(const struct iovec *src, size_t n, size_t offset, size_t len,
		 struct iovec *dst, size_t dst_cap)
{
	struct cursor c;
	size_t used = 0;

	if (seek(src, n, offset, &c))
		return -EINVAL;
	while (len) {
		struct iovec p;

		if (c.entry == n)
			return -EINVAL;
		p = next_piece(src, &c, len);
		if (p.iov_len == 0)
			continue;
		if (used == dst_cap)
			return -ENOBUFS;
		dst[used++] = p;
		len -= p.iov_len;
	}
	return (int)used;
}
