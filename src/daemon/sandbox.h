/* SPDX-License-Identifier: BSD-3-Clause */
/* What the process gives up before it looks at anything of a guest. */
#ifndef VL_DAEMON_SANDBOX_H
#define VL_DAEMON_SANDBOX_H

#include <stdbool.h>

/*
 * Gives up every capability for good (also the ones that execve could bring
 * back) of the calling thread and of the threads it makes from now on; must
 * run before the first of them. Returns 0 or -errno.
 */
int vl_sandbox_drop_privileges(void);

/*
 * Lets only the system calls pass that the rest of the program needs; others
 * fail with EPERM. Same rule about threads. Returns 0 or -errno.
 */
int vl_sandbox_filter(void);

/* False in builds with a sanitizer, whose run time needs more system calls. */
bool vl_sandbox_can_filter(void);

#endif
