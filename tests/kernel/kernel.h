/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the small programs that show each behaviour of the kernel that virtlane
 * leans on. Each states facts; one that does not hold on this kernel ends the
 * program with status 1 and says which. 77: what it needs is missing.
 */
#ifndef TESTS_KERNEL_H
#define TESTS_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Notes whether the fact @text holds here. */
void fact(bool holds, const char *text);
/* What main() returns. */
int facts_status(void);
/* Ends the program as skipped. */
void skip(const char *why) __attribute__((noreturn));
/* Ends the program as failed: the experiment itself went wrong. */
void broken(const char *what) __attribute__((noreturn));

/* Moves the process into a network namespace of its own, without the traffic
 * that IPv6 makes by itself; skips when it may not. */
void own_network(void);

/* Runs a shell command that must succeed. */
void command(const char *cmd);

/* Opens tap @name with a virtio header of 12 bytes, non-blocking. */
int open_tap(const char *name, bool multi_queue);

/* A packet socket on interface @name with virtio headers. */
int open_packet(const char *name);

/* True when @events come within @ms. */
bool ready(int fd, short events, int ms);

#endif
