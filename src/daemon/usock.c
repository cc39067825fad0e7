/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/usock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

static int address(const char *path, struct sockaddr_un *addr)
{
	size_t len = strlen(path);

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (!len || len >= sizeof(addr->sun_path))
		return -ENAMETOOLONG;
	memcpy(addr->sun_path, path, len);
	return 0;
}

int vl_usock_connect(const char *path)
{
	struct sockaddr_un addr;
	int err = address(path, &addr);
	int fd;

	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* Removes a socket file on which nobody listens. */
static int remove_stale(const char *path)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = vl_usock_connect(path);
	if (fd >= 0)
		close(fd);
	/* Anything but a refusal may come from a listener that is busy. */
	if (fd != -ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(path) < 0 ? -errno : 0;
}

static int bind_path(int fd, const struct sockaddr_un *addr, mode_t umask_bits)
{
	mode_t old = umask(0777);
	int err;

	umask(old | umask_bits);
	err = bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0
		      ? -errno
		      : 0;
	umask(old);
	return err;
}

int vl_usock_listen(struct vl_usock *s, const char *path, mode_t umask_bits)
{
	struct sockaddr_un addr;
	struct stat st = { 0 };
	int err = address(path, &addr);

	s->fd = -1;
	if (err)
		return err;
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	err = bind_path(s->fd, &addr, umask_bits);
	if (err == -EADDRINUSE) {
		err = remove_stale(path);
		if (!err)
			err = bind_path(s->fd, &addr, umask_bits);
	}
	if (!err && (listen(s->fd, SOMAXCONN) < 0 || lstat(path, &st) < 0)) {
		err = -errno;
		unlink(path);
	}
	if (err) {
		close(s->fd);
		s->fd = -1;
		return err;
	}
	snprintf(s->path, sizeof(s->path), "%s", path);
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return 0;
}

/* Without capabilities even root may not change every directory. */
static void left_behind(const char *path, int err)
{
	if (err != ENOENT)
		vl_log(VL_LOG_WARNING, NULL,
		       "%s: the socket cannot be removed: %s; it stays, and "
		       "the next start replaces it",
		       path, strerror(err));
}

void vl_usock_close(struct vl_usock *s)
{
	struct stat st;
	int fd;

	if (s->fd < 0)
		return;
	close(s->fd);
	s->fd = -1;
	/*
	 * Somebody may have taken the path over in the meantime. File systems
	 * use inode numbers again, so that the number alone proves nothing.
	 */
	if (lstat(s->path, &st) < 0) {
		left_behind(s->path, errno);
		return;
	}
	if (st.st_dev != s->dev || st.st_ino != s->ino)
		return;
	fd = vl_usock_connect(s->path);
	if (fd >= 0)
		close(fd);
	else if (fd != -EAGAIN && unlink(s->path) < 0)
		left_behind(s->path, errno);
}

const char *vl_usock_advice(int err)
{
	switch (-err) {
	case EADDRINUSE:
		return "another process listens there: end it or give "
		       "another path";
	case EEXIST:
		return "the path exists and is no socket: remove it or give "
		       "another one";
	case ENOENT:
		return "its directory does not exist: create it first";
	case EACCES:
	case EPERM:
	case EROFS:
		return "give a path in a directory that this user may write";
	case ENOTDIR:
		return "a part of the path is no directory: correct it";
	default:
		return "give another path";
	}
}
