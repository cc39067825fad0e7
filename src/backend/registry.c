/* SPDX-License-Identifier: BSD-3-Clause */
#include "backend/registry.h"

#include <string.h>

#include "backend/null.h"
#include "backend/packet.h"
#include "backend/tap.h"
#include "backend/vxlan.h"
#include "base/util.h"

static const struct vl_backend_ops *const backends[] = {
	&vl_backend_tap,
	&vl_backend_packet,
	&vl_backend_vxlan,
	&vl_backend_null,
};

const struct vl_backend_ops *vl_backend_at(unsigned int i)
{
	return i < VL_ARRAY_SIZE(backends) ? backends[i] : NULL;
}

const struct vl_backend_ops *vl_backend_find(const char *name)
{
	for (size_t i = 0; i < VL_ARRAY_SIZE(backends); i++)
		if (!strcmp(backends[i]->name, name))
			return backends[i];
	return NULL;
}
