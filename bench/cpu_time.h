/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU time of another process, to the nanosecond. */
#ifndef BENCH_CPU_TIME_H
#define BENCH_CPU_TIME_H

#include <stdint.h>

/* All threads of process @pid, user and system, in ns. 0 or -errno. */
int cpu_time_ns(int pid, uint64_t *ns);

#endif
