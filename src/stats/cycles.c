/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hardware counter is trusted only after it was seen to count: virtual
 * machines may offer one that stands still.
 */
#include "stats/cycles.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define CALIBRATION_NS (10ULL * 1000 * 1000)
#define PROBE_ROUNDS   20000u

/* What read(2) on the counter gives, as asked for in read_format. */
struct perf_reading {
	uint64_t value;
	uint64_t enabled_ns;
	uint64_t running_ns;
};

/*
 * The kernel takes turns when there are more users than counters; the value is
 * then scaled to the whole time.
 */
static uint64_t perf_read(int fd)
{
	struct perf_reading r;

	if (read(fd, &r, sizeof(r)) != (ssize_t)sizeof(r))
		return 0;
	if (r.running_ns == 0 || r.running_ns >= r.enabled_ns)
		return r.value;
	return (uint64_t)((double)r.value * (double)r.enabled_ns /
			  (double)r.running_ns);
}

static int perf_open(void)
{
	struct perf_event_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = PERF_COUNT_HW_CPU_CYCLES;
	attr.exclude_hv = 1;
	attr.read_format =
		PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	/* This thread (0) on any CPU (-1), no group (-1). */
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1,
		     PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -1 : (int)fd;
}

static bool perf_counts(int fd)
{
	volatile unsigned int spin = 0;

	while (spin < PROBE_ROUNDS)
		spin++;
	return perf_read(fd) > 0;
}

#if defined(__x86_64__) || defined(__i386__)

static struct {
	uint64_t ticks;
	uint64_t ns;
} tsc_start;
static uint64_t tsc_hz;
static pthread_once_t tsc_start_once = PTHREAD_ONCE_INIT;
static pthread_once_t tsc_hz_once = PTHREAD_ONCE_INIT;

static void record_start(void)
{
	tsc_start.ticks = __builtin_ia32_rdtsc();
	tsc_start.ns = vl_now_ns();
}

static void measure_hz(void)
{
	uint64_t ticks, ns = vl_now_ns();
	struct timespec rest;

	while (ns - tsc_start.ns < CALIBRATION_NS) {
		rest.tv_sec = 0;
		rest.tv_nsec = (long)(CALIBRATION_NS - (ns - tsc_start.ns));
		nanosleep(&rest, NULL);
		ns = vl_now_ns();
	}
	ticks = __builtin_ia32_rdtsc() - tsc_start.ticks;
	ns = vl_now_ns() - tsc_start.ns;
	tsc_hz = (uint64_t)((double)ticks * (double)VL_NS_PER_SEC / (double)ns);
}

static void begin_calibration(void)
{
	pthread_once(&tsc_start_once, record_start);
}

/* Measured once and kept, so that cycles derived from it never go back. */
uint64_t vl_tsc_hz(void)
{
	begin_calibration();
	pthread_once(&tsc_hz_once, measure_hz);
	return tsc_hz;
}

#elif defined(__aarch64__)

static void begin_calibration(void)
{
}

/* The generic timer (CNTVCT_EL0) states its own frequency. */
uint64_t vl_tsc_hz(void)
{
	uint64_t hz;

	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz;
}

#else

static void begin_calibration(void)
{
}

uint64_t vl_tsc_hz(void)
{
	return VL_NS_PER_SEC;
}

#endif

void vl_cycles_open(struct vl_cycles *c)
{
	begin_calibration();
	if (pthread_getcpuclockid(pthread_self(), &c->cpu))
		c->cpu = CLOCK_THREAD_CPUTIME_ID;
	c->perf_fd = perf_open();
	if (c->perf_fd >= 0 && !perf_counts(c->perf_fd))
		vl_cycles_close(c);
}

void vl_cycles_close(struct vl_cycles *c)
{
	if (c->perf_fd >= 0)
		close(c->perf_fd);
	c->perf_fd = -1;
}

uint64_t vl_cycles_cpu_ns(const struct vl_cycles *c)
{
	return vl_clock_ns(c->cpu);
}

uint64_t vl_cycles_read(const struct vl_cycles *c)
{
	uint64_t ns, hz;

	if (c->perf_fd >= 0)
		return perf_read(c->perf_fd);
	ns = vl_cycles_cpu_ns(c);
	hz = vl_tsc_hz();
	/* Seconds and rest apart: the product of the rest fits in 64 bits. */
	return ns / VL_NS_PER_SEC * hz +
	       ns % VL_NS_PER_SEC * hz / VL_NS_PER_SEC;
}

const char *vl_cycles_source(const struct vl_cycles *c)
{
	return c->perf_fd >= 0 ? "perf_event" : "cpu-time*tsc";
}
