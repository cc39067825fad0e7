/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/backend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

const char *vl_link_name(enum vl_link link)
{
	static const char *const names[] = {
		[VL_LINK_UNKNOWN] = "unknown",
		[VL_LINK_DOWN] = "down",
		[VL_LINK_UP] = "up",
		[VL_LINK_GONE] = "gone",
	};

	return names[link];
}

int vl_backend_fail(char *err, size_t size, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(err, size, fmt, ap);
	va_end(ap);
	return code;
}

enum vl_io_verdict vl_io_verdict(int res)
{
	switch (-res) {
	case EAGAIN:
	case ECANCELED: /* linked behind one that got EAGAIN */
		return VL_IO_AGAIN;
	case EIO: /* a tap that is not up */
	case ENETDOWN:
		return VL_IO_DOWN;
	case EBADFD: /* a tap whose interface was deleted */
	case ENODEV:
	case ENXIO:
		return VL_IO_GONE;
	case ENOBUFS:
	case ENOMEM:
		return VL_IO_NOMEM;
	default:
		return res >= 0 ? VL_IO_DONE : VL_IO_REFUSED;
	}
}
