/* SPDX-License-Identifier: BSD-3-Clause */
/* The option --backend; included by daemon/conf*.c only. */
#ifndef VL_DAEMON_CONF_BACKEND_H
#define VL_DAEMON_CONF_BACKEND_H

#include "daemon/conf.h"

/* Checks and stores its value; everything wrong with it is in conf->error. */
void vl_conf_set_backend(struct vl_conf *conf, const struct vl_conf_place *at);

/* All options are read: is what the backend needs there, and consistent? */
void vl_conf_check_backend(struct vl_conf *conf);

#endif
