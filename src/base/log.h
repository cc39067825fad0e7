/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines on standard error: "virtlane: warning: tx0: text".
 *
 * No line is ever written per packet. Places that a guest, a peer or the host
 * network can reach again and again use vl_log_limited(), which lets a few
 * lines pass per interval and then says how many it held back.
 */
#ifndef VL_BASE_LOG_H
#define VL_BASE_LOG_H

#include <stdint.h>

enum vl_log_level {
	VL_LOG_ERROR,
	VL_LOG_WARNING,
	VL_LOG_INFO,
	VL_LOG_DEBUG,
};

/* Lines above this level are not written. Default VL_LOG_INFO. Any thread. */
void vl_log_set_level(enum vl_log_level level);

/* "error", "warning", "info", "debug"; NULL for a value that is no level. */
const char *vl_log_level_name(enum vl_log_level level);

/* The level of that name, or -EINVAL. */
int vl_log_level_from_name(const char *name);

/*
 * Writes one line in one write(2); longer than 1 KiB is cut. @obj names what
 * the line is about ("tx0", "vhost", "tap0"), NULL for the process itself.
 * Bytes that are no printable ASCII are written as '?', since some text comes
 * from a peer. A line for which standard error has no room, because nobody reads
 * it, is lost. Any thread.
 */
void vl_log(enum vl_log_level level, const char *obj, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* State of one rate-limited place; all zero is a valid start. */
struct vl_log_limit {
	uint64_t window_start_ns;
	uint32_t written;
	uint32_t held_back;
};

/*
 * As vl_log(), at most 5 lines per 10 s for one @limit; the first line of the
 * next interval is preceded by the number of lines held back. @limit belongs
 * to the calling thread.
 */
void vl_log_limited(struct vl_log_limit *limit, enum vl_log_level level,
		    const char *obj, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
