/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"

/* Standard error goes to a pipe while a test captures it. */
struct capture {
	int saved;
	int pipe[2];
};

static void capture_begin(struct capture *c)
{
	assert_int_equal(pipe2(c->pipe, O_CLOEXEC | O_NONBLOCK), 0);
	c->saved = dup(STDERR_FILENO);
	assert_true(c->saved >= 0);
	assert_true(dup2(c->pipe[1], STDERR_FILENO) >= 0);
}

static size_t capture_end(struct capture *c, char *buf, size_t size)
{
	ssize_t n = read(c->pipe[0], buf, size - 1);
	size_t len = n > 0 ? (size_t)n : 0;

	buf[len] = '\0';
	dup2(c->saved, STDERR_FILENO);
	close(c->saved);
	close(c->pipe[0]);
	close(c->pipe[1]);
	return len;
}

static unsigned int lines_in(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void test_line(void **state)
{
	struct capture c;
	char out[256];

	(void)state;
	capture_begin(&c);
	vl_log(VL_LOG_WARNING, "tx0", "%d of %s", 3, "four");
	vl_log(VL_LOG_ERROR, NULL, "plain");
	capture_end(&c, out, sizeof(out));
	assert_string_equal(out, "virtlane: warning: tx0: 3 of four\n"
				 "virtlane: error: plain\n");
}

static void test_levels(void **state)
{
	struct capture c;
	char out[256];

	(void)state;
	capture_begin(&c);
	vl_log(VL_LOG_DEBUG, NULL, "not by default");
	vl_log_set_level(VL_LOG_ERROR);
	vl_log(VL_LOG_WARNING, NULL, "not now");
	vl_log_set_level(VL_LOG_DEBUG);
	vl_log(VL_LOG_DEBUG, NULL, "now");
	vl_log((enum vl_log_level)17, NULL, "no level");
	vl_log_set_level(VL_LOG_INFO);
	capture_end(&c, out, sizeof(out));
	assert_string_equal(out, "virtlane: debug: now\n");
}

static void test_names(void **state)
{
	(void)state;
	for (int l = VL_LOG_ERROR; l <= VL_LOG_DEBUG; l++) {
		const char *name = vl_log_level_name((enum vl_log_level)l);

		assert_non_null(name);
		assert_int_equal(vl_log_level_from_name(name), l);
	}
	assert_null(vl_log_level_name((enum vl_log_level)4));
	assert_null(vl_log_level_name((enum vl_log_level) - 1));
	assert_int_equal(vl_log_level_from_name("loud"), -EINVAL);
	assert_int_equal(vl_log_level_from_name(""), -EINVAL);
}

static void test_unprintable(void **state)
{
	struct capture c;
	char out[256];

	(void)state;
	capture_begin(&c);
	vl_log(VL_LOG_INFO, "a\nb", "x\033[2J\r\n\x80\x7fy");
	capture_end(&c, out, sizeof(out));
	assert_string_equal(out, "virtlane: info: a?b: x?[2J????y\n");
}

static void test_long_line(void **state)
{
	struct capture c;
	char out[4096], text[3000];
	size_t n;

	(void)state;
	memset(text, 'z', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	capture_begin(&c);
	vl_log(VL_LOG_INFO, NULL, "%s", text);
	n = capture_end(&c, out, sizeof(out));
	assert_in_range(n, 1000, 1024);
	assert_int_equal(lines_in(out), 1);
	assert_int_equal(out[n - 1], '\n');

	capture_begin(&c);
	vl_log(VL_LOG_INFO, text, "lost");
	n = capture_end(&c, out, sizeof(out));
	assert_in_range(n, 1000, 1024);
	assert_int_equal(lines_in(out), 1);
}

static void test_errno_kept(void **state)
{
	struct vl_log_limit limit = { 0 };
	struct capture c;
	char out[2048];

	(void)state;
	capture_begin(&c);
	for (int i = 0; i < 10; i++) {
		errno = ENODEV;
		vl_log_limited(&limit, VL_LOG_INFO, NULL, "%m");
		assert_int_equal(errno, ENODEV);
	}
	vl_log(VL_LOG_INFO, NULL, "%m");
	assert_int_equal(errno, ENODEV);
	capture_end(&c, out, sizeof(out));
	assert_non_null(strstr(out, "info: No such device\n"));
}

static void test_limit(void **state)
{
	struct vl_log_limit limit = { 0 };
	struct capture c;
	char out[4096];

	(void)state;
	capture_begin(&c);
	for (int i = 0; i < 1000; i++)
		vl_log_limited(&limit, VL_LOG_INFO, "rx0", "line %d", i);
	capture_end(&c, out, sizeof(out));
	assert_int_equal(lines_in(out), 5);
	assert_non_null(strstr(out, "rx0: line 4\n"));
	assert_null(strstr(out, "line 5"));

	/* The next interval begins with what was held back. */
	limit.window_start_ns -= 10 * VL_NS_PER_SEC;
	capture_begin(&c);
	vl_log_limited(&limit, VL_LOG_INFO, "rx0", "again");
	capture_end(&c, out, sizeof(out));
	assert_int_equal(lines_in(out), 2);
	assert_non_null(strstr(out, "rx0: 995 "));
	assert_non_null(strstr(out, "rx0: again\n"));

	limit.window_start_ns -= 10 * VL_NS_PER_SEC;
	capture_begin(&c);
	vl_log_limited(&limit, VL_LOG_INFO, "rx0", "quiet before");
	capture_end(&c, out, sizeof(out));
	assert_int_equal(lines_in(out), 1);
}

static void test_limit_ignores_hidden_lines(void **state)
{
	struct vl_log_limit limit = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		vl_log_limited(&limit, VL_LOG_DEBUG, NULL, "hidden");
	assert_int_equal(limit.written, 0);
	assert_int_equal(limit.held_back, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_unprintable),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_errno_kept),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_limit_ignores_hidden_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
