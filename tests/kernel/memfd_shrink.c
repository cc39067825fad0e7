/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that is shorter than what is mapped of it: our own access raises
 * SIGBUS, which vl_guest_mem_guard() handles; the kernel's access on our
 * behalf answers EFAULT. A frame that was read into such memory is lost.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel.h"

static sigjmp_buf back;

static void on_sigbus(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

int main(void)
{
	int fd = memfd_create("m", 0), pair[2];
	volatile char *p;
	char c;

	if (fd < 0 || ftruncate(fd, 8192) < 0 ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) < 0)
		broken("set-up");
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		broken("mmap");
	p[4096] = 1;
	if (ftruncate(fd, 4096) < 0)
		broken("ftruncate");
	signal(SIGBUS, on_sigbus);
	if (sigsetjmp(back, 1) == 0) {
		p[4096] = 1;
		fact(false, "an access behind the end raises SIGBUS");
	} else {
		fact(true, "an access behind the end raises SIGBUS");
	}
	p[4095] = 1;
	fact(p[4095] == 1, "what is left of the file still works");
	if (write(pair[0], "x", 1) != 1)
		broken("write");
	fact(read(pair[1], (char *)(uintptr_t)p + 4096, 1) < 0 &&
		     errno == EFAULT,
	     "a system call answers EFAULT instead");
	fact(read(pair[1], &c, 1) < 0 && errno == EAGAIN,
	     "and what it was to read is gone");
	return facts_status();
}
