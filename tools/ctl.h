/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the commands of virtlanectl share: asking the daemon, looking into its
 * answer, and writing numbers for people.
 */
#ifndef TOOLS_CTL_H
#define TOOLS_CTL_H

#include <json-c/json.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

enum exit_status {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

struct options {
	const char *socket;
	bool json;
	double watch_s; /* seconds between two answers; 0: not given */
};

/* A signal asked us to end. */
extern volatile sig_atomic_t ctl_interrupted;

/* The commands; they return the exit status. */
int ctl_stat(const struct options *opt);
int ctl_top(const struct options *opt);

/* A connected socket, or -1 after it was said what is wrong. */
int ctl_connect(const char *path);

/* Asks once for the answer, a line in *line, which grows and is the caller's.
 * Returns 0 or -errno; -EINTR only when ctl_interrupted. */
int ctl_ask(int fd, char **line, size_t *size);

/* Says that there was no answer; returns the exit status. */
int ctl_no_answer(const char *path, int err);

/* Whether @o, a parsed line, has what was asked for; says why it has not, and
 * returns the exit status. */
bool ctl_is_stat(struct json_object *o);
int ctl_no_stat(const char *path, struct json_object *o);

/*
 * Looking into an answer. Whatever is missing, or missing on the way to it
 * (NULL), is 0, "?", false or NULL.
 */
struct json_object *ctl_member(struct json_object *o, const char *key);
double ctl_number(struct json_object *o, const char *key);
const char *ctl_text(struct json_object *o, const char *key);
bool ctl_is_true(struct json_object *o, const char *key);
size_t ctl_count(struct json_object *o, const char *key); /* of an array */
struct json_object *ctl_element(struct json_object *o, const char *key,
				size_t i);
/* Queue pair @i of an answer, or its part @part. */
struct json_object *ctl_pair_part(struct json_object *top, size_t i,
				  const char *part);
size_t ctl_pair_count(struct json_object *top);
/* Packets of all reasons that the lane @lane dropped. */
double ctl_lane_drops(struct json_object *lane);

#define CTL_TEXT 64

/* At most 7 characters: 99999, 123.4k, 12.34M. Returns @buf. */
const char *ctl_brief(double x, char buf[CTL_TEXT]);
/* 1.2ms; "-" for nothing. Returns @buf. */
const char *ctl_duration(double ns, char buf[CTL_TEXT]);
/* Destination @i of the lane, its IP address or else its MAC address. */
const char *ctl_dest(struct json_object *lane, size_t i);

#endif
