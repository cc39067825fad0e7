/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sandbox: theory of operation.
 *
 * When a guest or a front-end finds a hole in the code that reads its rings or
 * messages, what it gains should be what the device has anyway: the tap queues
 * and the sockets that are open. So everything that needs a privilege or a
 * path is opened before (main.c), and then the process loses
 *
 *   - all capabilities, in every set, and the way back through execve;
 *   - all system calls except those of the list: no new program, no file
 *     opened by path, no debugging of others, no sockets but UNIX ones (client
 *     mode connects again), no memory that is writable and then executable;
 *   - with ioctl: everything but the requests of a tap, of a packet socket, of
 *     a performance counter and of epoll.
 *
 * A refused system call fails with EPERM instead of killing the process: a
 * libc that tries something newer first must be able to fall back.
 *
 * Limit: io_uring performs its operations beside the filter. A process that
 * was taken over could open files through a ring of its own, as far as the
 * permissions of its user allow. Where that matters, run virtlane as a user of
 * its own (an existing tap needs no privilege), or with --engine=sync inside a
 * service manager that forbids io_uring.
 */
#include "daemon/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_tun.h>
#include <linux/perf_event.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
	__has_feature(memory_sanitizer)
#define SANITIZER 1
#endif
#endif

bool vl_sandbox_can_filter(void)
{
#ifdef SANITIZER
	return false;
#else
	return true;
#endif
}

/* Without CAP_SETPCAP the bounding set stays; no_new_privs makes that moot. */
static int drop_bounding_set(void)
{
	for (unsigned long cap = 0; cap <= 63; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) < 0)
			break;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EPERM)
			return -errno;
	}
	return 0;
}

int vl_sandbox_drop_privileges(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	int err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	err = drop_bounding_set();
	if (err)
		return err;
	/* Kernels before 4.3 have no ambient set: nothing to clear then. */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &header, none) < 0)
		return -errno;
	return 0;
}

/* By name, since not every architecture and library knows every one. */
static const char *const allowed[] = {
	/* packets and messages */
	"read",
	"write",
	"readv",
	"writev",
	"recvmsg",
	"recvfrom",
	"recvmmsg",
	"sendmsg",
	"sendto",
	"sendmmsg",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	/* waiting and time */
	"epoll_create1",
	"epoll_ctl",
	"epoll_wait",
	"epoll_pwait",
	"epoll_pwait2",
	"poll",
	"ppoll",
	"eventfd2",
	"clock_gettime",
	"clock_getres",
	"clock_nanosleep",
	"nanosleep",
	"gettimeofday",
	"time",
	/* descriptors */
	"accept4",
	"accept",
	"connect",
	"shutdown",
	"getsockopt",
	"setsockopt",
	"getsockname",
	"getpeername",
	"socketpair",
	"fcntl",
	"dup",
	"close",
	"close_range",
	"fstat",
	"newfstatat",
	"lstat",
	"stat",
	"statx",
	"lseek",
	/* removal of our own sockets at the end */
	"unlink",
	"unlinkat",
	/* memory */
	"munmap",
	"madvise",
	"mremap",
	"brk",
	"mincore",
	"membarrier",
	/* threads and signals */
	"set_robust_list",
	"get_robust_list",
	"rseq",
	"futex",
	"futex_waitv",
	"sched_yield",
	"sched_getaffinity",
	"sched_setaffinity",
	"sched_getparam",
	"sched_getscheduler",
	"set_tid_address",
	"gettid",
	"getpid",
	"getcpu",
	"exit",
	"exit_group",
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigreturn",
	"rt_sigtimedwait",
	"sigaltstack",
	"tgkill",
	"restart_syscall",
	/* facts about the machine and the process */
	"getrandom",
	"uname",
	"sysinfo",
	"getrusage",
	"getrlimit",
	"prlimit64",
	"prctl",
};

/* Requests that the tap, a packet socket and the performance counter get after
 * the start. */
static const unsigned long ioctls[] = {
	TUNGETIFF,
	TUNGETFEATURES,
	TUNSETOFFLOAD,
	TUNSETVNETHDRSZ,
	TUNGETVNETHDRSZ,
	TUNSETVNETLE,
	TUNSETSNDBUF,
	TUNGETSNDBUF,
	TUNSETQUEUE,
	TUNSETCARRIER,
	FIONBIO,
	FIONREAD,
	SIOCOUTQ,
	PERF_EVENT_IOC_ENABLE,
	PERF_EVENT_IOC_DISABLE,
	PERF_EVENT_IOC_RESET,
};

static int allow_names(scmp_filter_ctx ctx)
{
	for (size_t i = 0; i < VL_ARRAY_SIZE(allowed); i++) {
		int nr = seccomp_syscall_resolve_name(allowed[i]);
		int err;

		if (nr == __NR_SCMP_ERROR)
			continue;
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
		if (err)
			return err;
	}
	return 0;
}

static int allow_ioctls(scmp_filter_ctx ctx)
{
	for (size_t i = 0; i < VL_ARRAY_SIZE(ioctls); i++) {
		/* The kernel looks at the lower half only; so do we. */
		int err = seccomp_rule_add(
			ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
			SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffULL, ioctls[i]));

		if (err)
			return err;
	}
	return 0;
}

/* System calls that depend on an argument. */
static int allow_some(scmp_filter_ctx ctx)
{
	int err;

	err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
			       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(
			ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
			SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				       SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
	/*
	 * Threads, not processes. The flags of clone3 are in memory where a
	 * filter cannot look; "no such call" makes the C library use clone.
	 */
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD,
					       CLONE_THREAD));
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS),
				       SCMP_SYS(clone3), 0);
	/* A thread counts its own cycles only: pid 0, any CPU. */
	if (!err)
		err = seccomp_rule_add(
			ctx, SCMP_ACT_ALLOW, SCMP_SYS(perf_event_open), 2,
			SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffULL, 0),
			SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffffULL,
				0xffffffffULL));
	return err;
}

int vl_sandbox_filter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err;

	if (!ctx)
		return -ENOMEM;
	err = allow_names(ctx);
	if (!err)
		err = allow_ioctls(ctx);
	if (!err)
		err = allow_some(ctx);
	if (!err)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	return err;
}
