/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's options. One table describes them all: --help, the
 * configuration file and the check of the manual page follow it.
 */
#ifndef VL_DAEMON_CONF_H
#define VL_DAEMON_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/io.h"
#include "base/log.h"
#include "lane/backend.h"
#include "lane/lane_set.h"

/* What is wrong with the options, one sentence each. */
#define VL_CONF_ERRORS_MAX 32
#define VL_CONF_ERROR_LEN  320

/* Where the value of an option came from; the larger one wins. */
enum vl_conf_source {
	VL_CONF_DEFAULT,
	VL_CONF_FILE,
	VL_CONF_CMDLINE,
};

struct vl_conf {
	const char *socket_path; /* NULL: not given */
	int fd;                  /* -1: not given */
	bool client;             /* connect to socket_path, do not listen */
	const struct vl_backend_ops *backend; /* NULL: not given */
	struct vl_backend_params params;
	bool mac_set;
	uint8_t mac[6];
	uint32_t mtu; /* 0: not given */
	enum vl_io_engine engine;
	enum vl_tx_full tx_full;
	const char *stats_path; /* NULL: none */
	enum vl_log_level log_level;
	bool sandbox;
	const char *config_path; /* NULL: none */
	bool print_capabilities;
	bool version;
	bool help;

	/* Below: conf*.c only. */
	enum vl_conf_source socket_path_from, fd_from, queue_pairs_from;
	bool name_given, fds_given; /* to --backend, right or wrong */
	uint32_t keys_given;        /* the same for all, one bit each */
	char *backend_text;         /* what backend and params point into */
	char *file_text; /* what the other strings of the file are in */
	unsigned int errors;
	char error[VL_CONF_ERRORS_MAX][VL_CONF_ERROR_LEN];
	bool error_left_out; /* there were more than fit */
};

/* The option that is being set, and where it stands. */
struct vl_conf_place {
	const struct vl_option *option;
	const char *value;
	const char *file; /* NULL: the command line */
	unsigned int line;
};

struct vl_option {
	const char *name;
	const char *arg;  /* how --help calls its argument; NULL: has none */
	const char *help; /* one line, or several separated by \n */
	bool cmdline_only;
	/* Checks and stores the value; reports by vl_conf_fail(). */
	void (*set)(struct vl_conf *conf, const struct vl_conf_place *at);
};

extern const struct vl_option vl_option_table[];
extern const size_t vl_option_count;

/*
 * Reads the command line and the configuration file it names. Returns 0, or
 * -EINVAL with everything that is wrong in conf->error. With
 * --print-capabilities, --help or --version everything else is ignored and
 * nothing is wrong. The strings of @argv must outlive @conf; vl_conf_free()
 * in either case.
 */
int vl_conf_parse(struct vl_conf *conf, int argc, char *const argv[]);
void vl_conf_free(struct vl_conf *conf);

/* Adds "where: value: sentence" to the errors. */
void vl_conf_fail(struct vl_conf *conf, const struct vl_conf_place *at,
		  const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Writes the text of --help. */
void vl_conf_help(FILE *out);

/*
 * The MAC address when none was given: locally administered, the same every
 * time for this machine, socket and host interface (@label), so that a guest
 * recognises its network card after a restart; random when the machine has no
 * /etc/machine-id. Returns 0 or -errno.
 */
int vl_conf_default_mac(const struct vl_conf *conf, const char *label,
			uint8_t mac[6]);

#endif
