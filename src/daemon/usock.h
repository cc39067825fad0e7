/* SPDX-License-Identifier: BSD-3-Clause */
/* UNIX stream sockets with a path. */
#ifndef VL_DAEMON_USOCK_H
#define VL_DAEMON_USOCK_H

#include <sys/stat.h>
#include <sys/un.h>

/* A listening socket that owns its path. */
struct vl_usock {
	int fd; /* -1: none */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t dev; /* what the path named when it was made */
	ino_t ino;
};

/*
 * Listens on @path, non-blocking; @umask_bits are taken from the permissions
 * of the new file in addition to the process's own. A socket file on which
 * nobody listens any more is replaced. -EADDRINUSE: somebody does;
 * -EEXIST: the path is no socket; other -errno.
 */
int vl_usock_listen(struct vl_usock *s, const char *path, mode_t umask_bits);

/* Closes the socket and removes its file, if that is still ours; a file that
 * has to stay is logged. */
void vl_usock_close(struct vl_usock *s);

/* A new non-blocking socket connected to @path, or -errno. Never waits. */
int vl_usock_connect(const char *path);

/* What is to be done about an error of vl_usock_listen(), for people. */
const char *vl_usock_advice(int err);

#endif
