/* SPDX-License-Identifier: BSD-3-Clause */
/* Which backends there are. A new one is one file and one row. */
#ifndef VL_BACKEND_REGISTRY_H
#define VL_BACKEND_REGISTRY_H

#include "lane/backend.h"

/* The backend called @name, NULL when there is none. */
const struct vl_backend_ops *vl_backend_find(const char *name);

/* The backend of number @i, NULL after the last. */
const struct vl_backend_ops *vl_backend_at(unsigned int i);

#endif
