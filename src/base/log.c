/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/util.h"

#define LINE_MAX_BYTES 1024
#define LIMIT_LINES    5
#define LIMIT_NS       (10 * VL_NS_PER_SEC)

static const char *const level_names[] = {
	[VL_LOG_ERROR] = "error",
	[VL_LOG_WARNING] = "warning",
	[VL_LOG_INFO] = "info",
	[VL_LOG_DEBUG] = "debug",
};
_Static_assert(VL_ARRAY_SIZE(level_names) == VL_LOG_DEBUG + 1,
	       "every level has a name");

static unsigned int max_level = VL_LOG_INFO;

void vl_log_set_level(enum vl_log_level level)
{
	vl_write_once(&max_level, (unsigned int)level);
}

const char *vl_log_level_name(enum vl_log_level level)
{
	unsigned int i = (unsigned int)level;

	return i < VL_ARRAY_SIZE(level_names) ? level_names[i] : NULL;
}

int vl_log_level_from_name(const char *name)
{
	for (unsigned int i = 0; i < VL_ARRAY_SIZE(level_names); i++) {
		if (strcmp(name, level_names[i]) == 0)
			return (int)i;
	}
	return -EINVAL;
}

static bool wanted(enum vl_log_level level)
{
	return (unsigned int)level <= vl_read_once(&max_level) &&
	       vl_log_level_name(level);
}

/* What snprintf() stored, of what it would have liked to store. */
static size_t stored(int n, size_t room)
{
	if (n < 0)
		return 0;
	return (size_t)n < room ? (size_t)n : room - 1;
}

/* Whoever reads standard error may have stopped doing so; packets must not wait
 * for that. (Threads that find room at the same time may still find that the
 * other one took it, once.) */
static bool stderr_has_room(void)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&p, 1, 0) == 1 && p.revents & (POLLOUT | POLLERR);
}

__attribute__((format(printf, 3, 0))) static void
write_line(enum vl_log_level level, const char *obj, const char *fmt,
	   va_list args)
{
	char line[LINE_MAX_BYTES];
	size_t room = sizeof(line) - 1, len; /* one byte for the newline */
	int saved = errno;
	ssize_t ignored;

	len = stored(snprintf(line, room, "virtlane: %s: %s%s",
			      vl_log_level_name(level), obj ? obj : "",
			      obj ? ": " : ""),
		     room);
	/* %m in @fmt means the caller's errno. */
	errno = saved;
	len += stored(vsnprintf(line + len, room - len, fmt, args), room - len);
	for (size_t i = 0; i < len; i++) {
		if (line[i] < ' ' || line[i] > '~')
			line[i] = '?';
	}
	line[len++] = '\n';
	/* Nobody is left to tell when standard error is gone. */
	ignored = stderr_has_room() ? write(STDERR_FILENO, line, len) : 0;
	(void)ignored;
	errno = saved;
}

void vl_log(enum vl_log_level level, const char *obj, const char *fmt, ...)
{
	va_list args;

	if (!wanted(level))
		return;
	va_start(args, fmt);
	write_line(level, obj, fmt, args);
	va_end(args);
}

/* Opens the next interval of @limit when the current one has passed. */
static void next_window(struct vl_log_limit *limit, enum vl_log_level level,
			const char *obj)
{
	uint64_t now = vl_now_ns();

	if (limit->window_start_ns && now - limit->window_start_ns < LIMIT_NS)
		return;
	if (limit->held_back)
		vl_log(level, obj, "%u more lines of the following kind",
		       limit->held_back);
	*limit = (struct vl_log_limit){ .window_start_ns = now };
}

void vl_log_limited(struct vl_log_limit *limit, enum vl_log_level level,
		    const char *obj, const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	if (!wanted(level))
		return;
	next_window(limit, level, obj);
	if (limit->written == LIMIT_LINES) {
		limit->held_back++;
		errno = saved;
		return;
	}
	limit->written++;
	errno = saved;
	va_start(args, fmt);
	write_line(level, obj, fmt, args);
	va_end(args);
}
