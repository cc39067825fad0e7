/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtlanectl top: a live view of the lanes, one line each, the slow ones
 * first, so that it is seen at once which destination is slow.
 *
 * The screen is the terminal's alternate one and is written as a whole, from
 * a text that is ready before. No library is needed: every terminal of today
 * knows the few sequences used, and the width of each line is ours to keep
 * (lines are cut before colour is added).
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "ctl.h"

#define ROWS_MAX      1024u
#define COLS_MAX      200
#define COLS_MIN      80
/* Width of a destination where the screen has COLS_MIN columns. */
#define DEST_MIN      19
/* A bar of delay is full here; CoDel wants less than 20 ms. */
#define DELAY_FULL_MS 50

#define ENTER "\033[?1049h\033[?25l\033[H\033[2J"
#define LEAVE "\033[?25h\033[?1049l"

enum importance {
	SLOW,
	SIDE,
	EXPRESS,
	IDLE,
	IMPORTANCES
};

static const char *const state_names[] = { "slow", "side", "express", "idle" };
_Static_assert(VL_ARRAY_SIZE(state_names) == IMPORTANCES, "one for each");
/* Red and bold, yellow, none, dim. */
static const char *const colours[] = { "\033[1;31m", "\033[33m", "",
				       "\033[2m" };
_Static_assert(VL_ARRAY_SIZE(colours) == IMPORTANCES, "one for each");

/* A lane over the last interval. */
struct row {
	struct json_object *lane;
	size_t pair, index;
	enum importance importance;
	double drain_rate; /* bit/s, HUGE_VAL when not known */
	double delay_ns;
	double mbit;    /* per second */
	double drops;   /* per second */
	double dropped; /* share of its packets, 0 to 1 */
};

struct top {
	struct json_object *now, *before;
	double seconds;
	unsigned int rows, cols; /* of the terminal */
	bool colour;
	struct termios saved;
	struct row row[ROWS_MAX];
	size_t n_rows;
	double most_mbit;
	FILE *out; /* the text of the screen */
	unsigned int line;
};

static void on_resize(int sig)
{
	(void)sig; /* ends the poll, and the screen is drawn again */
}

static void measure_screen(struct top *t)
{
	struct winsize size = { 0 };

	t->rows = 24;
	t->cols = COLS_MIN;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row &&
	    size.ws_col) {
		t->rows = size.ws_row;
		t->cols = size.ws_col < COLS_MAX ? size.ws_col : COLS_MAX;
	}
}

static void write_out(const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
}

static int enter_screen(struct top *t)
{
	struct sigaction resize = { .sa_handler = on_resize };
	struct termios raw;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &t->saved) < 0) {
		fprintf(stderr, "virtlanectl: top needs a terminal; use stat "
				"--watch without one\n");
		return -ENOTTY;
	}
	sigaction(SIGWINCH, &resize, NULL);
	raw = t->saved;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	/* Suspended, it would leave the terminal as it is now. */
	raw.c_cc[VSUSP] = _POSIX_VDISABLE;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	write_out(ENTER, strlen(ENTER));
	return 0;
}

static void leave_screen(const struct top *t)
{
	write_out(LEAVE, strlen(LEAVE));
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &t->saved);
}

/* One line, cut to the screen, in a colour. */
static void put_line(struct top *t, const char *colour, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void put_line(struct top *t, const char *colour, const char *fmt, ...)
{
	char text[COLS_MAX + 1];
	va_list args;

	if (t->line >= t->rows)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* No newline behind the last line: it would scroll. */
	if (t->line++)
		fputs("\r\n", t->out);
	if (t->colour)
		fputs(colour, t->out);
	fprintf(t->out, "%.*s%s\033[K", (int)t->cols, text,
		t->colour ? "\033[0m" : "");
}

/* @len characters, @part (0 to 1) of them filled; something is seen of
 * everything that is not nothing. */
static const char *bar(double part, unsigned int len, char buf[CTL_TEXT])
{
	double n = ceil(fmin(fmax(part, 0), 1) * len);

	memset(buf, '.', len);
	memset(buf, '#', (size_t)n);
	buf[len] = '\0';
	return buf;
}

/* @text in @len characters, without its middle if need be. */
static void fit(const char *text, unsigned int len, char buf[COLS_MAX])
{
	size_t all = strlen(text);
	unsigned int head = (len - 2) / 3;

	if (all <= len)
		snprintf(buf, COLS_MAX, "%s", text);
	else
		snprintf(buf, COLS_MAX, "%.*s..%s", (int)head, text,
			 text + all - (len - 2 - head));
}

static void name_dest(const struct row *r, unsigned int len, char buf[COLS_MAX])
{
	double n = ctl_number(r->lane, "destinations");
	char more[CTL_TEXT] = "";

	if (r->importance == EXPRESS) {
		snprintf(buf, COLS_MAX, "all others");
		return;
	}
	buf[0] = '\0';
	if (r->importance == IDLE)
		return;
	if (n > 1)
		snprintf(more, sizeof(more), " +%.0f", n - 1);
	if (ctl_count(r->lane, "busiest"))
		fit(ctl_dest(r->lane, 0), len - (unsigned int)strlen(more),
		    buf);
	strncat(buf, more, COLS_MAX - strlen(buf) - 1);
}

static enum importance importance_of(struct json_object *lane)
{
	const char *state = ctl_text(lane, "state");

	for (unsigned int i = 0; i < IMPORTANCES; i++)
		if (!strcmp(state, state_names[i]))
			return (enum importance)i;
	return IDLE;
}

static void add_row(struct top *t, size_t pair, size_t index)
{
	struct json_object *lane = ctl_element(
		ctl_element(t->now, "queue_pairs", pair), "lanes", index);
	struct json_object *was = ctl_element(
		ctl_element(t->before, "queue_pairs", pair), "lanes", index);
	struct row *r = &t->row[t->n_rows];
	double packets =
		ctl_number(lane, "packets") - ctl_number(was, "packets");
	double drops = ctl_lane_drops(lane) - ctl_lane_drops(was);

	if (t->n_rows == ROWS_MAX)
		return;
	t->n_rows++;
	*r = (struct row){
		.lane = lane,
		.pair = pair,
		.index = index,
		.importance = importance_of(lane),
	};
	r->drain_rate = ctl_number(lane, "drain_rate");
	if (r->drain_rate <= 0)
		r->drain_rate = HUGE_VAL;
	/* A lane that sends nothing tells by its first packet. */
	if (r->importance == SLOW || r->importance == SIDE)
		r->delay_ns = fmax(ctl_number(lane, "queue_delay_ns"),
				   ctl_number(lane, "oldest_ns"));
	if (!t->before)
		return;
	r->mbit = (ctl_number(lane, "bytes") - ctl_number(was, "bytes")) * 8 /
		  1e6 / t->seconds;
	r->drops = drops / t->seconds;
	if (drops > 0)
		r->dropped = drops / (drops + fmax(packets, 0));
	t->most_mbit = fmax(t->most_mbit, r->mbit);
}

/* The slowest lane first. Its drain rate is the daemon's mean, so lines do not
 * jump at each drop; one that is not known yet comes behind. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->importance != y->importance)
		return x->importance < y->importance ? -1 : 1;
	if (x->importance == SLOW && x->drain_rate != y->drain_rate)
		return x->drain_rate < y->drain_rate ? -1 : 1;
	if (x->pair != y->pair)
		return x->pair < y->pair ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void collect(struct top *t)
{
	t->n_rows = 0;
	t->most_mbit = 0;
	for (size_t i = 0; i < ctl_pair_count(t->now); i++) {
		size_t lanes = ctl_count(ctl_element(t->now, "queue_pairs", i),
					 "lanes");

		for (size_t k = 0; k < lanes; k++)
			add_row(t, i, k);
	}
	qsort(t->row, t->n_rows, sizeof(t->row[0]), compare_rows);
}

/* What @key of all queues @part grew by, per second. */
static double rate(const struct top *t, const char *part, const char *key)
{
	double sum = 0;

	for (size_t i = 0; t->before && i < ctl_pair_count(t->now); i++)
		sum += ctl_number(ctl_pair_part(t->now, i, part), key) -
		       ctl_number(ctl_pair_part(t->before, i, part), key);
	return t->before ? sum / t->seconds : 0;
}

/* What waits in all pairs. */
static double held(const struct top *t, const char *key)
{
	double sum = 0;

	for (size_t i = 0; i < ctl_pair_count(t->now); i++)
		sum += ctl_number(ctl_pair_part(t->now, i, "held"), key);
	return sum;
}

static void put_head(struct top *t)
{
	char a[CTL_TEXT], b[CTL_TEXT];
	double cpu = ctl_number(t->now, "cpu_ns");

	put_line(t, "\033[1m", "%s   link %s   front-end %s   up %.0f s",
		 ctl_text(t->now, "backend"), ctl_text(t->now, "link"),
		 ctl_is_true(t->now, "connected") ? "connected"
						  : "not connected",
		 ctl_number(t->now, "uptime_ns") / 1e9);
	put_line(t, "",
		 "tx %.1f Mbit/s %s pkt/s   rx %.1f Mbit/s %s pkt/s   "
		 "CPU %.0f %%",
		 rate(t, "tx", "bytes") * 8 / 1e6,
		 ctl_brief(round(rate(t, "tx", "packets")), a),
		 rate(t, "rx", "bytes") * 8 / 1e6,
		 ctl_brief(round(rate(t, "rx", "packets")), b),
		 t->before ? (cpu - ctl_number(t->before, "cpu_ns")) /
				     t->seconds / 1e7
			   : 0);
	put_line(t, "",
		 "waiting packets hold %.0f of %.0f descriptors, %.0f of %.0f "
		 "KiB",
		 held(t, "descriptors"), held(t, "descriptors_max"),
		 held(t, "pool_bytes") / 1024,
		 held(t, "pool_bytes_max") / 1024);
	put_line(t, "", "%s", "");
}

static void put_row(struct top *t, const struct row *r, unsigned int dest_len)
{
	char lane[CTL_TEXT], dest[COLS_MAX], delay[CTL_TEXT], drops[CTL_TEXT];
	char delay_bar[CTL_TEXT], rate_bar[CTL_TEXT], drop_bar[CTL_TEXT];

	snprintf(lane, sizeof(lane), "tx%zu/%zu", r->pair, r->index);
	name_dest(r, dest_len, dest);
	put_line(
		t, colours[r->importance],
		"%-7s %-7s %-*s %7s %s %8.1f %s %6s %s", lane,
		state_names[r->importance], (int)dest_len, dest,
		ctl_duration(r->delay_ns, delay),
		bar(r->delay_ns / 1e6 / DELAY_FULL_MS, 8, delay_bar), r->mbit,
		bar(t->most_mbit > 0 ? r->mbit / t->most_mbit : 0, 8, rate_bar),
		ctl_brief(round(r->drops), drops),
		bar(r->dropped, 4, drop_bar));
}

/* The lanes, as many as there is room for. Idle ones can be left out. */
static void put_rows(struct top *t)
{
	unsigned int dest_len =
		DEST_MIN + (t->cols > COLS_MIN ? t->cols - COLS_MIN : 0);
	size_t room = t->rows > t->line + 2 ? t->rows - t->line - 2 : 0;
	size_t shown = t->n_rows;
	char more[CTL_TEXT] = "";

	if (shown > room)
		shown = room;
	if (shown < t->n_rows)
		snprintf(more, sizeof(more), "   %zu more lanes",
			 t->n_rows - shown);
	put_line(t, "\033[7m", "%-7s %-7s %-*s %7s %-8s %8s %-8s %6s %-4s",
		 "lane", "state", (int)dest_len, "destination", "delay", "",
		 "Mbit/s", "", "drop/s", "");
	for (size_t i = 0; i < shown; i++)
		put_row(t, &t->row[i], dest_len);
	put_line(t, "\033[2m",
		 "bars: delay to %d ms, share of the fastest, share dropped   "
		 "q ends%s",
		 DELAY_FULL_MS, more);
}

static int draw(struct top *t)
{
	char *text = NULL;
	size_t len = 0;

	t->out = open_memstream(&text, &len);
	if (!t->out)
		return -ENOMEM;
	t->line = 0;
	measure_screen(t);
	fputs("\033[H", t->out);
	put_head(t);
	put_rows(t);
	fputs("\033[J", t->out);
	if (fclose(t->out) == 0)
		write_out(text, len);
	free(text);
	return 0;
}

/* Takes @line as the latest answer. Returns false when it is none. */
static bool take_answer(struct top *t, const char *line)
{
	struct json_object *o = json_tokener_parse(line);

	json_object_put(t->before);
	t->before = t->now;
	t->now = o;
	if (!ctl_is_stat(o))
		return false;
	t->seconds = t->before ? (ctl_number(o, "uptime_ns") -
				  ctl_number(t->before, "uptime_ns")) /
					 1e9
			       : 0;
	if (t->seconds <= 0) {
		json_object_put(t->before);
		t->before = NULL;
	}
	collect(t);
	return true;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Draws until @seconds are over, again when the size changes. Returns false
 * when the person wants to end. */
static bool stay(struct top *t, double seconds)
{
	double end = now_s() + seconds;

	while (!ctl_interrupted) {
		struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
		double left = end - now_s();
		char key;

		if (draw(t))
			return false;
		if (left <= 0)
			return true;
		if (poll(&in, 1, (int)ceil(left * 1000)) <= 0)
			continue;
		/* Nobody at the terminal any more ends it, too. */
		if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' ||
		    key == 'Q')
			return false;
	}
	return false;
}

int ctl_top(const struct options *opt)
{
	static struct top t; /* too large for the stack */
	double seconds = opt->watch_s > 0 ? opt->watch_s : 1;
	int fd = ctl_connect(opt->socket);
	char *line = NULL;
	size_t size = 0;
	bool valid = true;
	int err = 0;

	if (fd < 0)
		return EXIT_FAILED;
	t.colour = !getenv("NO_COLOR");
	if (enter_screen(&t)) {
		close(fd);
		return EXIT_FAILED;
	}
	do {
		err = ctl_ask(fd, &line, &size);
		valid = !err && take_answer(&t, line);
		/* The first rates come soon. */
	} while (valid && stay(&t, t.before ? seconds : fmin(seconds, 0.3)));
	leave_screen(&t);
	if (err && !ctl_interrupted)
		err = ctl_no_answer(opt->socket, err);
	else if (!err && !valid)
		err = ctl_no_stat(opt->socket, t.now);
	else
		err = EXIT_OK;
	json_object_put(t.before);
	json_object_put(t.now);
	free(line);
	close(fd);
	return err;
}
