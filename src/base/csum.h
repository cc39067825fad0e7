/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Internet checksum (RFC 1071). Pure functions, any thread.
 *
 * A sum is the sum of 16-bit words as they lie in memory, so what vl_csum_fold()
 * returns is stored as it is, without a change of byte order. Sums are added with +;
 * a sum of up to 2^32 bytes does not overflow, nor does one of a few of these.
 */
#ifndef VL_BASE_CSUM_H
#define VL_BASE_CSUM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Sum of @len bytes that begin at an even place of what is summed. A last odd
 * byte counts as if a 0 followed. */
uint64_t vl_csum(const void *data, size_t len);

/* The same sum for bytes that begin at an odd place. */
uint64_t vl_csum_odd(uint64_t sum);

/* Sum of [@offset, @offset + @len) of a list, as far as it reaches. @offset is an
 * even place of what is summed, whatever its value. */
uint64_t vl_csum_iov(const struct iovec *iov, size_t n, size_t offset,
		     size_t len);

/* The 16 bits that @sum becomes: not 0 unless all that was summed was. The
 * checksum of a header is the complement of it. */
uint16_t vl_csum_fold(uint64_t sum);

/*
 * Sum of the pseudo-header of TCP or UDP (RFC 9293, section 3.1; RFC 8200,
 * section 8.1): @addrs are source and destination as they lie in the IP header,
 * 8 bytes of IPv4 or 32 of IPv6; @len those of the transport header and what is
 * behind it.
 */
uint64_t vl_csum_pseudo4(const void *addrs, uint8_t proto, uint32_t len);
uint64_t vl_csum_pseudo6(const void *addrs, uint8_t proto, uint32_t len);

#endif
