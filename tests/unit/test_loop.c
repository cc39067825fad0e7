/* SPDX-License-Identifier: BSD-3-Clause */
/* The event loop: removal inside callbacks, reused descriptors, timers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/loop.h"

#define MS 1000000ULL

struct fixture {
	struct vl_loop *loop;
	int fd[2];
	unsigned int calls[2];
	unsigned int late;
	struct vl_timer timer[3];
	unsigned int order[3], fired;
};

static int set_up(void **state)
{
	static struct fixture f;

	f = (struct fixture){ 0 };
	assert_int_equal(vl_loop_new(&f.loop), 0);
	for (int i = 0; i < 2; i++)
		f.fd[i] = eventfd(1, EFD_NONBLOCK);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	vl_loop_free(f->loop);
	close(f->fd[0]);
	close(f->fd[1]);
	return 0;
}

static void quit(void *ctx)
{
	struct fixture *f = ctx;

	vl_loop_quit(f->loop, 42);
}

/* Runs for @ms. */
static void run(struct fixture *f, unsigned int ms)
{
	struct vl_timer end = { .fn = quit, .ctx = f };

	vl_loop_timer(f->loop, &end, ms * MS);
	assert_int_equal(vl_loop_run(f->loop), 42);
	vl_loop_timer_stop(f->loop, &end);
}

static void late_event(void *ctx, uint32_t events)
{
	struct fixture *f = ctx;

	(void)events;
	f->late++;
}

/*
 * Both descriptors are ready in the same batch; the first one that is served
 * removes the other, and opens an unready descriptor of the same number.
 */
static void remove_other(struct fixture *f, int me)
{
	int other = f->fd[!me];

	f->calls[me]++;
	vl_loop_remove(f->loop, f->fd[me]);
	vl_loop_remove(f->loop, other);
	close(other);
	assert_int_equal(eventfd(0, EFD_NONBLOCK), other);
	assert_int_equal(vl_loop_add(f->loop, other, EPOLLIN, late_event, f),
			 0);
}

static void first_event(void *ctx, uint32_t events)
{
	(void)events;
	remove_other(ctx, 0);
}

static void second_event(void *ctx, uint32_t events)
{
	(void)events;
	remove_other(ctx, 1);
}

static void test_remove_in_callback(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		vl_loop_add(f->loop, f->fd[0], EPOLLIN, first_event, f), 0);
	assert_int_equal(
		vl_loop_add(f->loop, f->fd[1], EPOLLIN, second_event, f), 0);
	run(f, 20);
	assert_int_equal(f->calls[0] + f->calls[1], 1);
	assert_int_equal(f->late, 0);
}

static void count_event(void *ctx, uint32_t events)
{
	struct fixture *f = ctx;

	assert_true(events & (EPOLLIN | EPOLLOUT));
	f->calls[0]++;
}

/* Edge triggered: one call per write, without reading; level: again and
 * again. */
static void test_edge_and_level(void **state)
{
	struct fixture *f = *state;
	uint64_t one = 1;

	assert_int_equal(vl_loop_add(f->loop, f->fd[0], EPOLLIN | EPOLLET,
				     count_event, f),
			 0);
	run(f, 5);
	assert_int_equal(f->calls[0], 1);
	assert_int_equal(write(f->fd[0], &one, sizeof(one)), sizeof(one));
	run(f, 5);
	assert_int_equal(f->calls[0], 2);
	assert_int_equal(vl_loop_modify(f->loop, f->fd[0], EPOLLIN), 0);
	run(f, 5);
	assert_true(f->calls[0] > 3);
}

static void test_misuse(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		vl_loop_add(f->loop, f->fd[0], EPOLLIN, count_event, f), 0);
	assert_int_equal(
		vl_loop_add(f->loop, f->fd[0], EPOLLIN, count_event, f),
		-EEXIST);
	assert_int_equal(vl_loop_modify(f->loop, f->fd[1], EPOLLIN), -ENOENT);
	vl_loop_remove(f->loop, f->fd[1]);
	vl_loop_remove(f->loop, f->fd[0]);
	vl_loop_remove(f->loop, f->fd[0]);
	assert_int_equal(vl_loop_add(f->loop, 987, EPOLLIN, count_event, f),
			 -EBADF);
	run(f, 5);
	assert_int_equal(f->calls[0], 0);
}

static void fire(struct fixture *f, unsigned int i)
{
	f->order[f->fired++] = i;
}

static void fire0(void *ctx)
{
	fire(ctx, 0);
}

static void fire1(void *ctx)
{
	fire(ctx, 1);
}

static void fire2(void *ctx)
{
	struct fixture *f = ctx;

	fire(f, 2);
	vl_loop_timer_stop(f->loop, &f->timer[1]);
}

static void test_timers(void **state)
{
	struct fixture *f = *state;
	uint64_t began = vl_now_ns();

	f->timer[0] = (struct vl_timer){ .fn = fire0, .ctx = f };
	f->timer[1] = (struct vl_timer){ .fn = fire1, .ctx = f };
	f->timer[2] = (struct vl_timer){ .fn = fire2, .ctx = f };
	vl_loop_timer(f->loop, &f->timer[0], 1000 * MS);
	vl_loop_timer(f->loop, &f->timer[1], 30 * MS);
	vl_loop_timer(f->loop, &f->timer[2], 10 * MS);
	vl_loop_timer(f->loop, &f->timer[0], 5 * MS); /* sooner after all */
	run(f, 50);
	assert_true(vl_now_ns() - began >= 50 * MS);
	/* The third stopped the second one. */
	assert_int_equal(f->fired, 2);
	assert_int_equal(f->order[0], 0);
	assert_int_equal(f->order[1], 2);
}

static void again(void *ctx)
{
	struct fixture *f = ctx;

	f->fired++;
	vl_loop_timer(f->loop, &f->timer[0], 0);
}

/* A timer that always arms itself again leaves room for the others. */
static void test_timer_without_end(void **state)
{
	struct fixture *f = *state;

	f->timer[0] = (struct vl_timer){ .fn = again, .ctx = f };
	vl_loop_timer(f->loop, &f->timer[0], 0);
	assert_int_equal(vl_loop_add(f->loop, f->fd[0], EPOLLIN | EPOLLET,
				     count_event, f),
			 0);
	run(f, 5);
	assert_true(f->fired > 1);
	assert_int_equal(f->calls[0], 1);
}

#define LOOP_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOOP_TEST(test_remove_in_callback),
		LOOP_TEST(test_edge_and_level),
		LOOP_TEST(test_misuse),
		LOOP_TEST(test_timers),
		LOOP_TEST(test_timer_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
