/* SPDX-License-Identifier: BSD-3-Clause */
/* The stats socket and the UNIX sockets below it: answers and bounds. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/ctl.h"
#include "daemon/loop.h"
#include "daemon/usock.h"

#define MS 1000000ULL

struct fixture {
	char dir[64], path[96];
	struct vl_loop *loop;
	struct vl_ctl *ctl;
	unsigned int pairs;
};

static void fill(void *ctx, struct vl_snapshot *s)
{
	const struct fixture *f = ctx;

	s->pairs = f->pairs;
	s->link = "up";
	s->engine = "sync";
	s->cycles_source = "cpu-time*tsc";
	s->sessions = 77;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/virtlane-test-ctl-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/stats", f->dir);
	f->pairs = 1;
	assert_int_equal(vl_loop_new(&f->loop), 0);
	assert_int_equal(vl_ctl_new(f->path, &f->ctl), 0);
	assert_int_equal(vl_ctl_start(f->ctl, f->loop, fill, f), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	vl_ctl_free(f->ctl);
	vl_loop_free(f->loop);
	/* Fails when the socket was left behind. */
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void quit(void *loop)
{
	vl_loop_quit(loop, 0);
}

static void run(struct fixture *f, unsigned int ms)
{
	struct vl_timer end = { .fn = quit, .ctx = f->loop };

	vl_loop_timer(f->loop, &end, ms * MS);
	assert_int_equal(vl_loop_run(f->loop), 0);
}

/* Sends @request, serves for a moment, returns what came back. */
static ssize_t ask(struct fixture *f, int fd, const char *request, char *buf,
		   size_t size)
{
	ssize_t n;

	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL),
			 strlen(request));
	run(f, 10);
	n = recv(fd, buf, size - 1, MSG_DONTWAIT);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

static void test_answers(void **state)
{
	struct fixture *f = *state;
	char buf[16384], *second;
	int fd = vl_usock_connect(f->path);

	assert_true(fd >= 0);
	assert_true(ask(f, fd, "stat\n", buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf, "\"sessions\":77"));
	assert_ptr_equal(strchr(buf, '\n'), buf + strlen(buf) - 1);

	assert_true(ask(f, fd, "reboot\n", buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf, "{\"error\":"));

	/* A request in pieces, and two in one. */
	assert_int_equal(ask(f, fd, "st", buf, sizeof(buf)), -1);
	assert_true(ask(f, fd, "at\r\nnonsense\nstat\n", buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf, "\"sessions\":77"));
	second = strchr(buf, '\n') + 1;
	assert_int_equal(strncmp(second, "{\"error\":", 9), 0);
	assert_non_null(strstr(second, "\"sessions\":77"));
	close(fd);
}

/* Longer than any request: hung up on, whether or not a newline comes. */
static void test_long_request(void **state)
{
	struct fixture *f = *state;
	char request[VL_CTL_REQUEST + 1], buf[64];
	int fd = vl_usock_connect(f->path);

	memset(request, 'x', VL_CTL_REQUEST);
	request[VL_CTL_REQUEST] = '\0';
	assert_int_equal(ask(f, fd, request, buf, sizeof(buf)), 0);
	close(fd);
}

static void test_too_many_clients(void **state)
{
	struct fixture *f = *state;
	char buf[16384];
	int fd[VL_CTL_CLIENTS], more;

	for (int i = 0; i < VL_CTL_CLIENTS; i++) {
		fd[i] = vl_usock_connect(f->path);
		assert_true(fd[i] >= 0);
	}
	run(f, 10);
	more = vl_usock_connect(f->path);
	run(f, 10);
	assert_true(recv(more, buf, sizeof(buf), MSG_DONTWAIT) > 0);
	assert_non_null(strstr(buf, "too many clients"));
	assert_int_equal(recv(more, buf, sizeof(buf), MSG_DONTWAIT), 0);
	close(more);
	/* A place that is given up is there for the next one. */
	close(fd[3]);
	run(f, 10);
	fd[3] = vl_usock_connect(f->path);
	assert_true(ask(f, fd[3], "stat\n", buf, sizeof(buf)) > 0);
	assert_true(ask(f, fd[0], "stat\n", buf, sizeof(buf)) > 0);
	for (int i = 0; i < VL_CTL_CLIENTS; i++)
		close(fd[i]);
}

/* Whoever stays and asks nothing makes room, the longest first. */
static void test_idle_clients(void **state)
{
	const unsigned int half = (unsigned int)(VL_CTL_IDLE_NS / MS) / 2 + 50;
	struct fixture *f = *state;
	char buf[16384];
	int fd[VL_CTL_CLIENTS], more, one_more;

	for (int i = 0; i < VL_CTL_CLIENTS; i++) {
		fd[i] = vl_usock_connect(f->path);
		run(f, 5);
	}
	run(f, half);
	/* All but the third ask again: it is idle, though not the first. */
	for (int i = 0; i < VL_CTL_CLIENTS; i++) {
		if (i != 2)
			assert_true(ask(f, fd[i], "stat\n", buf, sizeof(buf)) >
				    0);
	}
	run(f, half);
	more = vl_usock_connect(f->path);
	assert_true(ask(f, more, "stat\n", buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf, "\"sessions\":77"));
	assert_true(recv(fd[2], buf, sizeof(buf), MSG_DONTWAIT) > 0);
	assert_non_null(strstr(buf, "dropped: idle"));
	assert_int_equal(recv(fd[2], buf, sizeof(buf), MSG_DONTWAIT), 0);
	/* Nobody else is idle for long enough. */
	one_more = vl_usock_connect(f->path);
	run(f, 10);
	assert_true(recv(one_more, buf, sizeof(buf), MSG_DONTWAIT) > 0);
	assert_non_null(strstr(buf, "too many clients"));
	for (int i = 0; i < VL_CTL_CLIENTS; i++) {
		if (i != 2)
			assert_true(ask(f, fd[i], "stat\n", buf, sizeof(buf)) >
				    0);
		close(fd[i]);
	}
	close(more);
	close(one_more);
}

/*
 * A client that asks and does not read costs one answer of memory and is
 * dropped; one that reads late but reads gets every byte.
 */
static void test_slow_reader(void **state)
{
	struct fixture *f = *state;
	static char buf[1 << 20];
	int slow, dead;
	size_t got = 0;
	ssize_t n;

	f->pairs = VL_SNAPSHOT_PAIRS_MAX;
	slow = vl_usock_connect(f->path);
	dead = vl_usock_connect(f->path);
	for (int i = 0; i < 10; i++) {
		send(slow, "stat\n", 5, MSG_NOSIGNAL);
		send(dead, "stat\n", 5, MSG_NOSIGNAL);
	}
	for (int i = 0; i < 60; i++) {
		run(f, 20);
		while ((n = recv(slow, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
			for (ssize_t k = 0; k < n; k++)
				got += buf[k] == '\n';
		}
		if (got == 10)
			break;
	}
	assert_int_equal(got, 10);
	run(f, (unsigned int)(VL_CTL_PATIENCE_NS / MS) + 100);
	/* What the socket holds can be read, then it is over. */
	while ((n = recv(dead, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		;
	assert_int_equal(n, 0);
	assert_true(ask(f, slow, "no\n", buf, sizeof(buf)) > 0);
	close(slow);
	close(dead);
}

static void test_listen(void **state)
{
	struct fixture *f = *state;
	struct vl_usock a, b;
	struct stat st;
	char path[128];
	int fd;

	/* Somebody listens. */
	assert_int_equal(vl_usock_listen(&b, f->path, 0), -EADDRINUSE);
	assert_int_equal(b.fd, -1);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 0117, 0);

	/* Nobody does any more: replaced, and the old owner, who closes
	 * late, leaves the new file alone. */
	snprintf(path, sizeof(path), "%s/front", f->dir);
	assert_int_equal(vl_usock_listen(&a, path, 0), 0);
	fd = a.fd;
	a.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(fd);
	assert_int_equal(vl_usock_listen(&b, path, 0), 0);
	vl_usock_close(&a);
	assert_int_equal(stat(path, &st), 0);
	fd = vl_usock_connect(path);
	assert_true(fd >= 0);
	close(fd);
	vl_usock_close(&b);
	assert_int_equal(stat(path, &st), -1);

	/* Never something that is no socket. */
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(vl_usock_listen(&a, path, 0), -EEXIST);
	assert_int_equal(unlink(path), 0);

	snprintf(path, sizeof(path), "%s/no/front", f->dir);
	assert_int_equal(vl_usock_listen(&a, path, 0), -ENOENT);
	vl_usock_close(&a);
}

#define CTL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CTL_TEST(test_answers),     CTL_TEST(test_long_request),
		CTL_TEST(test_listen),      CTL_TEST(test_too_many_clients),
		CTL_TEST(test_slow_reader), CTL_TEST(test_idle_clients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
