/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl.h"
#include "stats/counters.h"

#define ANSWER_MAX (4u << 20)
#define PATIENCE_S 5

int ctl_connect(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_S };
	const char *advice = "is the path right?";
	struct stat st;
	int fd;

	if (!path[0] || strlen(path) >= sizeof(addr.sun_path)) {
		fprintf(stderr,
			"virtlanectl: %s: a socket path has 1 to %zu "
			"characters\n",
			path, sizeof(addr.sun_path) - 1);
		return -1;
	}
	memcpy(addr.sun_path, path, strlen(path));
	/* Connecting to a file is refused like to a socket left behind. */
	if (!stat(path, &st) && !S_ISSOCK(st.st_mode)) {
		fprintf(stderr,
			"virtlanectl: %s: is no socket; give the path that "
			"virtlane got as --stats\n",
			path);
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 &&
	    !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			sizeof(patience)) &&
	    !connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	if (errno == ENOENT)
		advice = "start virtlane with --stats=PATH and give the same "
			 "path here";
	else if (errno == ECONNREFUSED)
		advice = "the virtlane that made it has ended; start it again";
	else if (errno == EACCES)
		advice = "run virtlanectl as the user of virtlane, or as root";
	fprintf(stderr, "virtlanectl: %s: %s; %s\n", path, strerror(errno),
		advice);
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Reads up to the newline into *buf, which grows. Returns 0 or -errno. */
static int read_line(int fd, char **buf, size_t *size)
{
	size_t used = 0;

	for (;;) {
		ssize_t n;

		if (used + 1 >= *size) {
			size_t more = *size ? *size * 2 : 65536;
			char *p =
				more > ANSWER_MAX ? NULL : realloc(*buf, more);

			if (!p)
				return -ENOMEM;
			*buf = p;
			*size = more;
		}
		n = read(fd, *buf + used, *size - used - 1);
		if (n < 0 && errno == EINTR && !ctl_interrupted)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ECONNRESET;
		used += (size_t)n;
		(*buf)[used] = '\0';
		if ((*buf)[used - 1] == '\n') {
			(*buf)[used - 1] = '\0';
			return 0;
		}
	}
}

struct json_object *ctl_member(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(o, key, &value) ? value : NULL;
}

double ctl_number(struct json_object *o, const char *key)
{
	return json_object_get_double(ctl_member(o, key));
}

const char *ctl_text(struct json_object *o, const char *key)
{
	const char *s = json_object_get_string(ctl_member(o, key));

	return s ? s : "?";
}

bool ctl_is_true(struct json_object *o, const char *key)
{
	return json_object_get_boolean(ctl_member(o, key));
}

size_t ctl_count(struct json_object *o, const char *key)
{
	struct json_object *array = ctl_member(o, key);

	return json_object_is_type(array, json_type_array)
		       ? json_object_array_length(array)
		       : 0;
}

struct json_object *ctl_element(struct json_object *o, const char *key,
				size_t i)
{
	return i < ctl_count(o, key)
		       ? json_object_array_get_idx(ctl_member(o, key), i)
		       : NULL;
}

struct json_object *ctl_pair_part(struct json_object *top, size_t i,
				  const char *part)
{
	return ctl_member(ctl_element(top, "queue_pairs", i), part);
}

size_t ctl_pair_count(struct json_object *top)
{
	return ctl_count(top, "queue_pairs");
}

double ctl_lane_drops(struct json_object *lane)
{
	double sum = 0;

	for (size_t i = 0; i < vl_lane_counter_count; i++)
		if (!strncmp(vl_lane_counter_table[i].name, "drop_", 5))
			sum += ctl_number(lane, vl_lane_counter_table[i].name);
	return sum;
}

const char *ctl_dest(struct json_object *lane, size_t i)
{
	struct json_object *dest = ctl_element(lane, "busiest", i);

	return ctl_text(dest, ctl_member(dest, "ip") ? "ip" : "mac");
}

const char *ctl_brief(double x, char buf[CTL_TEXT])
{
	static const char unit[] = " kMGTP";
	int u = 0;

	if (x < 99999.5) {
		snprintf(buf, CTL_TEXT,
			 x < 10 && x != floor(x) ? "%.2f" : "%.0f", x);
		return buf;
	}
	while (x >= 999.95 && unit[u + 1]) {
		x /= 1000;
		u++;
	}
	snprintf(buf, CTL_TEXT, "%.*f%c", x < 100 ? 2 : 1, x, unit[u]);
	return buf;
}

const char *ctl_duration(double ns, char buf[CTL_TEXT])
{
	if (ns <= 0)
		snprintf(buf, CTL_TEXT, "-");
	else if (ns < 1e3)
		snprintf(buf, CTL_TEXT, "%.0fns", ns);
	else if (ns < 1e6)
		snprintf(buf, CTL_TEXT, "%.1fus", ns / 1e3);
	else if (ns < 1e9)
		snprintf(buf, CTL_TEXT, "%.1fms", ns / 1e6);
	else
		snprintf(buf, CTL_TEXT, "%.1fs", ns / 1e9);
	return buf;
}

int ctl_ask(int fd, char **line, size_t *size)
{
	static const char request[] = "stat\n";

	/* When the daemon has hung up, it may have said why. */
	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0 &&
	    errno != EPIPE)
		return -errno;
	return read_line(fd, line, size);
}

int ctl_no_answer(const char *path, int err)
{
	if (err == -EAGAIN)
		fprintf(stderr,
			"virtlanectl: %s: no answer for %d s; virtlane is "
			"stopped or overloaded, or this is its --socket-path; "
			"give the path of --stats\n",
			path, PATIENCE_S);
	else
		fprintf(stderr,
			"virtlanectl: %s: no answer: %s; virtlane has ended, "
			"or this is another program's socket\n",
			path, strerror(-err));
	return EXIT_FAILED;
}

bool ctl_is_stat(struct json_object *o)
{
	return !ctl_member(o, "error") && ctl_pair_part(o, 0, "tx");
}

int ctl_no_stat(const char *path, struct json_object *o)
{
	fprintf(stderr, "virtlanectl: %s: %s\n", path,
		ctl_member(o, "error") ? ctl_text(o, "error")
				       : "the answer is none of virtlane's");
	return EXIT_FAILED;
}
