/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options: theory of operation.
 *
 * Everything that is known about an option stands in its row of the table. The
 * command line is read twice: first only for the options that decide what else
 * is read (--config, and those that print something and exit), then, after the
 * configuration file, for all. So the command line has the last word, and a
 * mistake in either place is reported even when the other one overrides it.
 *
 * No mistake ends the reading: each adds a sentence to conf->error, and the
 * caller shows them all.
 */
#include "daemon/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include "backend/registry.h"
#include "base/util.h"
#include "daemon/conf_backend.h"
#include "daemon/value.h"
#include "lane/lane_set.h"
#include "stats/snapshot.h"

#define CONFIG_FILE_MAX 65536
#define MTU_MIN         68    /* RFC 791; virtio 1.2, 5.1.4.1 */
#define MTU_MAX         65535 /* virtio 1.2, 5.1.4.1 */

void vl_conf_fail(struct vl_conf *conf, const struct vl_conf_place *at,
		  const char *fmt, ...)
{
	const char *name = at->option ? at->option->name : NULL;
	char place[128] = "", what[128] = "";
	char *text;
	va_list args;
	int n;

	if (conf->errors == VL_CONF_ERRORS_MAX) {
		conf->error_left_out = true;
		return;
	}
	if (at->file)
		snprintf(place, sizeof(place), "%s:%u: ", at->file, at->line);
	if (name && at->value)
		snprintf(what, sizeof(what), "%s%s%s%s: ", at->file ? "" : "--",
			 name, at->file ? " = " : "=", at->value);
	else if (name)
		snprintf(what, sizeof(what), "%s%s: ", at->file ? "" : "--",
			 name);
	text = conf->error[conf->errors++];
	n = snprintf(text, VL_CONF_ERROR_LEN, "%s%s", place, what);
	va_start(args, fmt);
	vsnprintf(text + n, VL_CONF_ERROR_LEN - (size_t)n, fmt, args);
	va_end(args);
}

static enum vl_conf_source source(const struct vl_conf_place *at)
{
	return at->file ? VL_CONF_FILE : VL_CONF_CMDLINE;
}

/* The value as the path of a socket; NULL after it was reported. */
static const char *socket_path(struct vl_conf *conf,
			       const struct vl_conf_place *at)
{
	struct sockaddr_un addr;

	if (!at->value[0]) {
		vl_conf_fail(conf, at, "give a path");
		return NULL;
	}
	if (strlen(at->value) >= sizeof(addr.sun_path)) {
		vl_conf_fail(conf, at,
			     "a socket path has at most %zu characters; give "
			     "a shorter one",
			     sizeof(addr.sun_path) - 1);
		return NULL;
	}
	return at->value;
}

static void set_socket_path(struct vl_conf *conf,
			    const struct vl_conf_place *at)
{
	conf->socket_path_from = source(at);
	conf->socket_path = socket_path(conf, at);
}

static void set_fd(struct vl_conf *conf, const struct vl_conf_place *at)
{
	uint64_t fd;

	conf->fd_from = source(at);
	if (vl_value_number(at->value, 0, INT32_MAX, &fd)) {
		vl_conf_fail(conf, at, "give the number of an open descriptor");
		return;
	}
	if (fcntl((int)fd, F_GETFD) < 0) {
		vl_conf_fail(conf, at,
			     "no such descriptor is open; the program that "
			     "starts virtlane must pass it on without "
			     "close-on-exec");
		return;
	}
	conf->fd = (int)fd;
}

static void set_socket_mode(struct vl_conf *conf,
			    const struct vl_conf_place *at)
{
	if (strcmp(at->value, "server") && strcmp(at->value, "client")) {
		vl_conf_fail(conf, at, "give server or client");
		return;
	}
	conf->client = !strcmp(at->value, "client");
}

static void set_tx_full(struct vl_conf *conf, const struct vl_conf_place *at)
{
	static const char *const names[] = {
		[VL_TX_FULL_LANES] = "lanes",
		[VL_TX_FULL_BLOCK] = "block",
		[VL_TX_FULL_DROP] = "drop",
	};

	for (unsigned int i = 0; i < VL_ARRAY_SIZE(names); i++) {
		if (strcmp(at->value, names[i]) != 0)
			continue;
		conf->tx_full = (enum vl_tx_full)i;
		return;
	}
	vl_conf_fail(conf, at, "give lanes, block or drop");
}

static void set_queue_pairs(struct vl_conf *conf,
			    const struct vl_conf_place *at)
{
	uint64_t n;

	if (vl_value_number(at->value, 1, VL_SNAPSHOT_PAIRS_MAX, &n)) {
		vl_conf_fail(conf, at, "give a number from 1 to %d",
			     VL_SNAPSHOT_PAIRS_MAX);
		return;
	}
	conf->params.queue_pairs = (unsigned int)n;
	conf->queue_pairs_from = source(at);
}

static void set_mac(struct vl_conf *conf, const struct vl_conf_place *at)
{
	if (vl_value_mac(at->value, conf->mac))
		vl_conf_fail(conf, at,
			     "give six hexadecimal bytes, as "
			     "52:54:00:12:34:56, that are no group address");
	else
		conf->mac_set = true;
}

static void set_mtu(struct vl_conf *conf, const struct vl_conf_place *at)
{
	uint64_t mtu;

	if (vl_value_number(at->value, MTU_MIN, MTU_MAX, &mtu))
		vl_conf_fail(conf, at, "give a number of bytes from %d to %d",
			     MTU_MIN, MTU_MAX);
	else
		conf->mtu = (uint32_t)mtu;
}

static void set_engine(struct vl_conf *conf, const struct vl_conf_place *at)
{
	if (!strcmp(at->value, "auto"))
		conf->engine = VL_IO_AUTO;
	else if (!strcmp(at->value, "uring"))
		conf->engine = VL_IO_URING;
	else if (!strcmp(at->value, "sync"))
		conf->engine = VL_IO_SYNC;
	else
		vl_conf_fail(conf, at, "give auto, uring or sync");
}

static void set_stats(struct vl_conf *conf, const struct vl_conf_place *at)
{
	conf->stats_path = socket_path(conf, at);
}

static void set_log_level(struct vl_conf *conf, const struct vl_conf_place *at)
{
	int level = vl_log_level_from_name(at->value);

	if (level < 0)
		vl_conf_fail(conf, at, "give error, warning, info or debug");
	else
		conf->log_level = (enum vl_log_level)level;
}

static void set_sandbox(struct vl_conf *conf, const struct vl_conf_place *at)
{
	if (vl_value_switch(at->value, &conf->sandbox))
		vl_conf_fail(conf, at, "give on or off");
}

static void set_config(struct vl_conf *conf, const struct vl_conf_place *at)
{
	conf->config_path = at->value;
}

static void set_capabilities(struct vl_conf *conf,
			     const struct vl_conf_place *at)
{
	(void)at;
	conf->print_capabilities = true;
}

static void set_version(struct vl_conf *conf, const struct vl_conf_place *at)
{
	(void)at;
	conf->version = true;
}

static void set_help(struct vl_conf *conf, const struct vl_conf_place *at)
{
	(void)at;
	conf->help = true;
}

const struct vl_option vl_option_table[] = {
	{ "socket-path", "PATH",
	  "UNIX socket on which the front-end is awaited, or to which\n"
	  "virtlane connects (see --socket-mode)",
	  false, set_socket_path },
	{ "fd", "N",
	  "instead of a path: a connected or listening socket, passed on by\n"
	  "the program that starts virtlane",
	  false, set_fd },
	{ "socket-mode", "server|client",
	  "listen on the socket path, or connect to it and try again until\n"
	  "somebody listens (default: server)",
	  false, set_socket_mode },
	{ "backend", "KIND[,KEY=VALUE...]", "the host network (see below)",
	  false, vl_conf_set_backend },
	{ "queue-pairs", "N",
	  "receive and transmit queues offered, one thread each pair\n"
	  "(default: as many as fds= names, else 1)",
	  false, set_queue_pairs },
	{ "mac", "XX:XX:XX:XX:XX:XX",
	  "MAC address of the guest (default: one of its own for this\n"
	  "machine, socket and interface)",
	  false, set_mac },
	{ "mtu", "N", "MTU offered to the guest, 68 to 65535 (default: none)",
	  false, set_mtu },
	{ "engine", "auto|uring|sync",
	  "how the host network is read and written: io_uring, or\n"
	  "readv and writev (default: auto)",
	  false, set_engine },
	{ "tx-full", "lanes|block|drop",
	  "when the host network takes no more: other destinations go on\n"
	  "by lanes of their own, all wait, or packets are dropped\n"
	  "(default: lanes)",
	  false, set_tx_full },
	{ "stats", "PATH",
	  "UNIX socket on which virtlanectl may ask for counters\n"
	  "(default: none)",
	  false, set_stats },
	{ "log-level", "error|warning|info|debug",
	  "what is written to standard error (default: info)", false,
	  set_log_level },
	{ "sandbox", "on|off",
	  "give up privileges and filter system calls (default: on)", false,
	  set_sandbox },
	{ "config", "FILE",
	  "read options from FILE too, lines of 'name = value'; the command\n"
	  "line has the last word",
	  true, set_config },
	{ "print-capabilities", NULL,
	  "print what this back-end can do, as JSON, and exit", true,
	  set_capabilities },
	{ "version", NULL, "print the version and exit", true, set_version },
	{ "help", NULL, "print this text and exit (or -h)", true, set_help },
};
const size_t vl_option_count = VL_ARRAY_SIZE(vl_option_table);

static const struct vl_option *find_option(const char *name, size_t len)
{
	for (size_t i = 0; i < vl_option_count; i++) {
		const struct vl_option *o = &vl_option_table[i];

		if (strlen(o->name) == len && !memcmp(o->name, name, len))
			return o;
	}
	return NULL;
}

/*
 * Reads the option at argv[*i] and moves *i to its last word. Returns false
 * when it is none; that is reported.
 */
static bool next_option(struct vl_conf *conf, int argc, char *const argv[],
			int *i, struct vl_conf_place *at)
{
	const char *word = argv[*i];
	size_t len;

	memset(at, 0, sizeof(*at));
	if (!strcmp(word, "-h"))
		word = "--help";
	if (strncmp(word, "--", 2)) {
		vl_conf_fail(conf, at,
			     "'%s': every option begins with --; see --help",
			     word);
		return false;
	}
	len = strcspn(word + 2, "=");
	at->option = find_option(word + 2, len);
	if (!at->option) {
		vl_conf_fail(conf, at, "%s: no such option; --help lists them",
			     word);
		/* Not a second complaint about what is its value. */
		if (!word[2 + len] && *i + 1 < argc &&
		    strncmp(argv[*i + 1], "--", 2))
			++*i;
		return false;
	}
	at->value = word[2 + len] ? word + 3 + len : NULL;
	if (!at->option->arg && at->value) {
		vl_conf_fail(conf, at, "takes no value; leave it out");
		return false;
	}
	if (!at->option->arg || at->value)
		return true;
	if (*i + 1 >= argc) {
		vl_conf_fail(conf, at, "its value is missing: --%s=%s",
			     at->option->name, at->option->arg);
		return false;
	}
	at->value = argv[++*i];
	return true;
}

static void read_cmdline(struct vl_conf *conf, int argc, char *const argv[],
			 bool first_pass)
{
	struct vl_conf_place at;

	for (int i = 1; i < argc; i++) {
		if (next_option(conf, argc, argv, &i, &at) &&
		    at.option->cmdline_only == first_pass)
			at.option->set(conf, &at);
	}
}

/* @s without the white space around it. */
static char *trim(char *s)
{
	size_t len;

	s += strspn(s, " \t\r");
	len = strlen(s);
	while (len && strchr(" \t\r", s[len - 1]))
		len--;
	s[len] = '\0';
	return s;
}

/*
 * What other formats have around a value is no part of it here, and hardly
 * meant as one: reported, and taken off so that nothing else is said.
 */
static char *plain_value(struct vl_conf *conf, const struct vl_conf_place *at,
			 char *value)
{
	char *comment = value;
	char quote = *value;
	size_t len;

	while ((comment = strchr(comment, '#')) && comment > value &&
	       comment[-1] != ' ' && comment[-1] != '\t')
		comment++;
	if (comment) {
		vl_conf_fail(conf, at,
			     "a comment has a line of its own; move '%s' there",
			     comment);
		*comment = '\0';
		value = trim(value);
	}
	if (quote == '"' || quote == '\'') {
		vl_conf_fail(conf, at,
			     "quotes would be a part of the value; leave them "
			     "out");
		len = strlen(++value);
		if (len && value[len - 1] == quote)
			value[len - 1] = '\0';
	}
	return value;
}

/* @first: for each option the line that has set it, 0: none. */
static void read_line(struct vl_conf *conf, char *line,
		      struct vl_conf_place *at, unsigned int *first)
{
	char *name = trim(line), *value;

	at->option = NULL;
	at->value = NULL;
	if (!*name || *name == '#')
		return;
	value = strchr(name, '=');
	if (!value) {
		vl_conf_fail(conf, at, "'%s': write name = value", name);
		return;
	}
	*value++ = '\0';
	name = trim(name);
	value = trim(value);
	at->option = find_option(name, strlen(name));
	if (!at->option) {
		vl_conf_fail(conf, at,
			     "'%s': no such option; virtlane --help lists them",
			     name);
		return;
	}
	at->value = value;
	if (at->option->cmdline_only) {
		vl_conf_fail(conf, at,
			     "works on the command line only; remove the line");
		return;
	}
	at->value = plain_value(conf, at, value);
	first += at->option - vl_option_table;
	if (*first)
		vl_conf_fail(conf, at,
			     "given in line %u too; remove one of the two",
			     *first);
	else
		*first = at->line;
	at->option->set(conf, at);
}

/* Reads the whole file into conf->file_text. Returns 0 or -errno. */
static int load_file(struct vl_conf *conf)
{
	size_t used = 0;
	ssize_t n = 1;
	int fd, err = 0;

	conf->file_text = malloc(CONFIG_FILE_MAX);
	if (!conf->file_text)
		return -ENOMEM;
	fd = open(conf->config_path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	while (n > 0 && used < CONFIG_FILE_MAX) {
		n = read(fd, conf->file_text + used, CONFIG_FILE_MAX - used);
		if (n < 0)
			err = -errno;
		else
			used += (size_t)n;
	}
	close(fd);
	if (!err && used == CONFIG_FILE_MAX)
		err = -EFBIG;
	conf->file_text[err ? 0 : used] = '\0';
	return err;
}

static void read_file(struct vl_conf *conf)
{
	struct vl_conf_place at = {
		.option = find_option("config", strlen("config")),
		.value = conf->config_path,
	};
	unsigned int first[VL_ARRAY_SIZE(vl_option_table)] = { 0 };
	char *next, *line;
	int err = load_file(conf);

	if (err) {
		vl_conf_fail(conf, &at,
			     "cannot be read: %s; name a readable file of "
			     "less than 64 KiB",
			     strerror(-err));
		return;
	}
	at.file = conf->config_path;
	for (line = conf->file_text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		at.line++;
		read_line(conf, line, &at, first);
	}
}

/* Of two options that exclude each other the stronger source wins. */
static void check_socket(struct vl_conf *conf)
{
	static const struct vl_conf_place nowhere;

	if (conf->socket_path_from > conf->fd_from)
		conf->fd = -1;
	else if (conf->fd_from > conf->socket_path_from)
		conf->socket_path = NULL;

	if (conf->fd_from && conf->fd_from == conf->socket_path_from)
		vl_conf_fail(conf, &nowhere,
			     "--socket-path and --fd are both given; the "
			     "front-end comes through one: leave out the "
			     "other");
	else if (!conf->socket_path_from && !conf->fd_from)
		vl_conf_fail(conf, &nowhere,
			     "--socket-path is missing: say where the "
			     "front-end is found, as "
			     "--socket-path=/run/virtlane.sock");
	if (conf->client && conf->fd >= 0)
		vl_conf_fail(conf, &nowhere,
			     "--socket-mode=client needs --socket-path; with "
			     "--fd the socket itself says what it is: leave "
			     "out the mode");
	if (conf->socket_path && conf->stats_path &&
	    !strcmp(conf->socket_path, conf->stats_path))
		vl_conf_fail(conf, &nowhere,
			     "--stats and --socket-path name the same socket; "
			     "give two");
}

int vl_conf_parse(struct vl_conf *conf, int argc, char *const argv[])
{
	memset(conf, 0, sizeof(*conf));
	conf->fd = -1;
	conf->log_level = VL_LOG_INFO;
	conf->sandbox = true;

	read_cmdline(conf, argc, argv, true);
	/* What is wrong with the words themselves shows again below. */
	conf->errors = 0;
	conf->error_left_out = false;
	if (conf->print_capabilities || conf->help || conf->version)
		return 0;
	if (conf->config_path)
		read_file(conf);
	read_cmdline(conf, argc, argv, false);

	if (!conf->queue_pairs_from)
		conf->params.queue_pairs = 1;
	conf->params.mtu = conf->mtu;
	check_socket(conf);
	vl_conf_check_backend(conf);
	return conf->errors ? -EINVAL : 0;
}

void vl_conf_free(struct vl_conf *conf)
{
	free(conf->backend_text);
	free(conf->file_text);
	conf->backend_text = NULL;
	conf->file_text = NULL;
}

void vl_conf_help(FILE *out)
{
	const struct vl_backend_ops *backend;

	fputs("Usage: virtlane --socket-path=PATH --backend=KIND[,KEY=VALUE...]"
	      " [OPTION...]\n\n"
	      "A vhost-user back-end: the network card of a virtual machine."
	      "\n\nOptions ('--name=value' or '--name value'):\n",
	      out);
	for (size_t i = 0; i < vl_option_count; i++) {
		const struct vl_option *o = &vl_option_table[i];
		const char *line = o->help;
		size_t len;

		fprintf(out, "  --%s%s%s\n", o->name, o->arg ? "=" : "",
			o->arg ? o->arg : "");
		for (; *line; line += len + (line[len] == '\n')) {
			len = strcspn(line, "\n");
			fprintf(out, "        %.*s\n", (int)len, line);
		}
	}
	fputs("\nBackends:\n", out);
	for (unsigned int i = 0; (backend = vl_backend_at(i)); i++)
		fprintf(out, "  %s\n        %s\n", backend->name,
			backend->help);
	fputs("\nExit status: 0 ended as asked, 1 failed, 2 wrong options.\n"
	      "More, with examples: virtlane(1).\n",
	      out);
}

/* FNV-1a: spreads names over addresses; nothing here is secret. */
static uint64_t hash(uint64_t h, const char *text)
{
	do {
		h = (h ^ (unsigned char)*text) * 0x100000001b3ULL;
	} while (*text++);
	return h;
}

int vl_conf_default_mac(const struct vl_conf *conf, const char *label,
			uint8_t mac[6])
{
	char id[33] = "";
	uint64_t h = 0xcbf29ce484222325ULL;
	ssize_t n = -1;
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, id, sizeof(id) - 1);
		close(fd);
	}
	if (n == (ssize_t)sizeof(id) - 1) {
		h = hash(h, id);
		h = hash(h, label);
		h = hash(h, conf->socket_path ? conf->socket_path : "");
	} else if (getrandom(&h, sizeof(h), 0) != (ssize_t)sizeof(h)) {
		return -errno;
	}
	h ^= h >> 48; /* the upper bytes are left out below */
	memcpy(mac, &h, 6);
	mac[0] = (uint8_t)((mac[0] & 0xfc) | 0x02);
	return 0;
}
