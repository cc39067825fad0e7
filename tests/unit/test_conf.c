/* SPDX-License-Identifier: BSD-3-Clause */
/* Options: command line, file, who wins, and what is said about mistakes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/registry.h"
#include "base/util.h"
#include "daemon/advice.h"
#include "daemon/conf.h"
#include "daemon/value.h"

#define ARGS_MAX 24

/* Parses a NULL-terminated list of words. */
static int parse(struct vl_conf *conf, ...)
{
	char *argv[ARGS_MAX] = { (char *)(uintptr_t) "virtlane" };
	int argc = 1;
	va_list args;
	char *word;

	va_start(args, conf);
	while ((word = va_arg(args, char *)) && argc < ARGS_MAX)
		argv[argc++] = word;
	va_end(args);
	return vl_conf_parse(conf, argc, argv);
}

static bool has_error(const struct vl_conf *conf, const char *part)
{
	for (unsigned int i = 0; i < conf->errors; i++) {
		if (strstr(conf->error[i], part))
			return true;
	}
	return false;
}

/* Writes @text to a new file, whose name the caller frees after unlink. */
static char *config_file(const char *text)
{
	char *path = strdup("/tmp/virtlane-test-conf-XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

static void remove_file(char *path)
{
	unlink(path);
	free(path);
}

static void test_defaults(void **state)
{
	struct vl_conf c;

	(void)state;
	assert_int_equal(
		parse(&c, "--socket-path=/run/a", "--backend=null", NULL), 0);
	assert_string_equal(c.socket_path, "/run/a");
	assert_int_equal(c.fd, -1);
	assert_false(c.client);
	assert_string_equal(c.backend->name, "null");
	assert_int_equal(c.params.queue_pairs, 1);
	assert_int_equal(c.params.sndbuf, 0);
	assert_true(c.params.sndbuf_auto);
	assert_int_equal(c.params.lanes, 8);
	assert_int_equal(c.tx_full, VL_TX_FULL_LANES);
	assert_false(c.mac_set);
	assert_int_equal(c.mtu, 0);
	assert_int_equal(c.engine, VL_IO_AUTO);
	assert_null(c.stats_path);
	assert_int_equal(c.log_level, VL_LOG_INFO);
	assert_true(c.sandbox);
	vl_conf_free(&c);
}

static void test_every_option(void **state)
{
	static const uint8_t mac[6] = { 0x52, 0x54, 0, 0x12, 0xaB, 0xcd };
	struct vl_conf c;

	(void)state;
	assert_int_equal(parse(&c, "--socket-path", "/run/a",
			       "--socket-mode=client",
			       "--backend=tap,name=tap7,lanes=16,sndbuf=64k",
			       "--tx-full=drop", "--queue-pairs", "4",
			       "--mac=52:54:00:12:aB:cd", "--mtu=9000",
			       "--engine=sync", "--stats=/run/b",
			       "--log-level=debug", "--sandbox=off", NULL),
			 0);
	assert_true(c.client);
	assert_string_equal(c.backend->name, "tap");
	assert_string_equal(c.params.name, "tap7");
	assert_int_equal(c.params.sndbuf, 65536);
	assert_false(c.params.sndbuf_auto);
	assert_int_equal(c.params.lanes, 16);
	assert_int_equal(c.tx_full, VL_TX_FULL_DROP);
	assert_int_equal(c.params.queue_pairs, 4);
	assert_int_equal(c.params.mtu, 9000);
	assert_true(c.mac_set);
	assert_memory_equal(c.mac, mac, 6);
	assert_int_equal(c.mtu, 9000);
	assert_int_equal(c.engine, VL_IO_SYNC);
	assert_string_equal(c.stats_path, "/run/b");
	assert_int_equal(c.log_level, VL_LOG_DEBUG);
	assert_false(c.sandbox);
	vl_conf_free(&c);
}

/* Every mistake is reported, in one go, with the word that is wrong. */
static void test_all_errors(void **state)
{
	struct vl_conf c;

	(void)state;
	assert_int_equal(
		parse(&c,
		      "--backend=tap,name=a/b,fds=1:x,sndbuf=1x,lanes=17,"
		      "colour=red",
		      "--tx-full=wait", "--queue-pairs=65",
		      "--mac=01:00:00:00:00:01", "--mtu=67", "--engine=fast",
		      "--log-level=loud", "--sandbox=maybe",
		      "--socket-mode=peer", "--fd=987654", "--colour=red",
		      "stray", "--help=yes", "--stats", NULL),
		-EINVAL);
	assert_true(has_error(&c, "'a/b' cannot name an interface"));
	assert_true(has_error(&c, "fds=1:x: "));
	assert_true(has_error(&c, "sndbuf=1x: "));
	assert_true(has_error(&c, "lanes=17: give a number from 1 to 16"));
	assert_true(has_error(&c, "--tx-full=wait: give lanes, block or drop"));
	assert_true(has_error(&c, "'colour' is no parameter"));
	assert_true(has_error(&c, "--queue-pairs=65: "));
	assert_true(has_error(&c, "--mac=01:00:00:00:00:01: "));
	assert_true(has_error(&c, "--mtu=67: "));
	assert_true(has_error(&c, "--engine=fast: "));
	assert_true(has_error(&c, "--log-level=loud: "));
	assert_true(has_error(&c, "--sandbox=maybe: "));
	assert_true(has_error(&c, "--socket-mode=peer: "));
	assert_true(has_error(&c, "--fd=987654: no such descriptor"));
	assert_true(has_error(&c, "--colour=red: no such option"));
	assert_true(has_error(&c, "'stray': every option begins with --"));
	assert_true(has_error(&c, "--help=yes: takes no value"));
	assert_true(has_error(&c, "--stats: its value is missing"));
	assert_true(has_error(&c, "--backend=tap: give name= or fds=, not"));
	assert_int_equal(c.errors, 19);
	assert_false(c.error_left_out);
	vl_conf_free(&c);
}

static void test_missing(void **state)
{
	struct vl_conf c;

	(void)state;
	assert_int_equal(parse(&c, NULL), -EINVAL);
	assert_true(has_error(&c, "--socket-path is missing"));
	assert_true(has_error(&c, "--backend is missing"));
	assert_int_equal(c.errors, 2);
	vl_conf_free(&c);

	assert_int_equal(parse(&c, "--socket-path=/a", "--backend=warp", NULL),
			 -EINVAL);
	assert_true(has_error(&c, "unknown backend; begin with tap, packet, "
				  "vxlan or null"));
	assert_int_equal(c.errors, 1);
	vl_conf_free(&c);

	assert_int_equal(
		parse(&c, "--socket-path=", "--stats=", "--backend=tap", NULL),
		-EINVAL);
	assert_true(has_error(&c, "--socket-path=: give a path"));
	assert_true(has_error(&c, "--stats=: give a path"));
	assert_true(has_error(&c, "--backend=tap: give name=INTERFACE or"));
	assert_int_equal(c.errors, 3);
	vl_conf_free(&c);
}

/* More mistakes than there is room for: the rest is said to exist. */
static void test_error_bound(void **state)
{
	static struct vl_conf c;
	char *argv[VL_CONF_ERRORS_MAX + 10];
	char word[] = "--no=1";

	(void)state;
	for (size_t i = 0; i < VL_ARRAY_SIZE(argv); i++)
		argv[i] = word;
	assert_int_equal(vl_conf_parse(&c, (int)VL_ARRAY_SIZE(argv), argv),
			 -EINVAL);
	assert_int_equal(c.errors, VL_CONF_ERRORS_MAX);
	assert_true(c.error_left_out);
	vl_conf_free(&c);
}

/* A value of any length is cut in its message, not beyond it. */
static void test_long_value(void **state)
{
	struct vl_conf c;
	char word[4096] = "--mtu=";

	(void)state;
	memset(word + 6, '9', sizeof(word) - 7);
	word[sizeof(word) - 1] = '\0';
	assert_int_equal(
		parse(&c, "--socket-path=/a", "--backend=null", word, NULL),
		-EINVAL);
	assert_int_equal(c.errors, 1);
	assert_true(has_error(&c, "--mtu=999"));
	assert_true(has_error(&c, "68 to 65535"));
	vl_conf_free(&c);
}

static void test_file(void **state)
{
	struct vl_conf c;
	char *path = config_file("# a comment\n"
				 "\n"
				 "  socket-path = /run/file \r\n"
				 "backend = tap,name=tap0\n"
				 "mtu=1400\n"
				 "log-level\t=\twarning");

	(void)state;
	assert_int_equal(parse(&c, "--mtu=1300", "--config", path, NULL), 0);
	assert_string_equal(c.socket_path, "/run/file");
	assert_string_equal(c.params.name, "tap0");
	assert_int_equal(c.mtu, 1300); /* the command line wins */
	assert_int_equal(c.log_level, VL_LOG_WARNING);
	vl_conf_free(&c);
	remove_file(path);
}

static void test_file_errors(void **state)
{
	struct vl_conf c;
	char *path = config_file("socket-path = /run/file\n"
				 "backend = null\n"
				 "mtu = 5\n"
				 "no equals sign\n"
				 "colour = red\n"
				 "config = other\n");
	char where[128];

	(void)state;
	assert_int_equal(parse(&c, "--config", path, "--mtu=1500", NULL),
			 -EINVAL);
	snprintf(where, sizeof(where), "%s:3: mtu = 5: ", path);
	assert_true(has_error(&c, where));
	snprintf(where, sizeof(where), "%s:4: 'no equals sign'", path);
	assert_true(has_error(&c, where));
	snprintf(where, sizeof(where), "%s:5: 'colour'", path);
	assert_true(has_error(&c, where));
	snprintf(where, sizeof(where), "%s:6: config = other: works on", path);
	assert_true(has_error(&c, where));
	assert_int_equal(c.errors, 4);
	vl_conf_free(&c);
	remove_file(path);

	assert_int_equal(parse(&c, "--config=/nonexistent", "--backend=null",
			       "--socket-path=/a", NULL),
			 -EINVAL);
	assert_true(has_error(&c, "--config=/nonexistent: cannot be read: No"));
	assert_int_equal(c.errors, 1);
	vl_conf_free(&c);
}

/* What is taken for a part of a value where other formats have an end. */
static void test_file_values(void **state)
{
	struct vl_conf c;
	char *path = config_file("socket-path = /run/a # the front-end\n"
				 "stats = \"/run/b\"\n"
				 "backend = null\n"
				 "mtu = '1400'\n"
				 "mtu = 1400\n"
				 "log-level =\t# none\n");
	char where[128];

	(void)state;
	assert_int_equal(parse(&c, "--config", path, NULL), -EINVAL);
	snprintf(where, sizeof(where), "%s:1: socket-path = ", path);
	assert_true(has_error(&c, where));
	assert_true(has_error(&c, "move '# the front-end' there"));
	snprintf(where, sizeof(where), "%s:2: stats = \"/run/b\": quotes",
		 path);
	assert_true(has_error(&c, where));
	snprintf(where, sizeof(where), "%s:4: mtu = '1400': quotes", path);
	assert_true(has_error(&c, where));
	snprintf(where, sizeof(where), "%s:5: mtu = 1400: given in line 4 too",
		 path);
	assert_true(has_error(&c, where));
	assert_true(has_error(&c, "move '# none' there"));
	assert_true(has_error(&c, "log-level = : give error"));
	assert_int_equal(c.errors, 6);
	vl_conf_free(&c);
	remove_file(path);

	/* A # within a word is like any other character. */
	path = config_file("socket-path = /run/a#1\nbackend = null\n");
	assert_int_equal(parse(&c, "--config", path, NULL), 0);
	assert_string_equal(c.socket_path, "/run/a#1");
	vl_conf_free(&c);
	remove_file(path);
}

/* A descriptor on the command line replaces the path of the file, but two
 * from the same place are a contradiction. */
static void test_fd_and_path(void **state)
{
	struct vl_conf c;
	char *path = config_file("socket-path = /run/file\nbackend = null\n");

	(void)state;
	assert_int_equal(parse(&c, "--config", path, "--fd=0", NULL), 0);
	assert_int_equal(c.fd, 0);
	assert_null(c.socket_path);
	vl_conf_free(&c);
	remove_file(path);

	assert_int_equal(
		parse(&c, "--socket-path=/a", "--fd=0", "--backend=null", NULL),
		-EINVAL);
	assert_true(has_error(&c, "--socket-path and --fd are both given"));
	assert_int_equal(c.errors, 1);
	vl_conf_free(&c);

	/* Also when the descriptor is not even open. */
	assert_int_equal(parse(&c, "--socket-path=/a", "--fd=987654",
			       "--backend=null", NULL),
			 -EINVAL);
	assert_true(has_error(&c, "--socket-path and --fd are both given"));
	assert_true(has_error(&c, "no such descriptor"));
	assert_int_equal(c.errors, 2);
	vl_conf_free(&c);

	assert_int_equal(parse(&c, "--socket-mode=client", "--fd=0",
			       "--backend=null", NULL),
			 -EINVAL);
	assert_true(has_error(&c, "--socket-mode=client needs"));
	assert_int_equal(c.errors, 1);
	vl_conf_free(&c);
}

static void test_fds_and_pairs(void **state)
{
	struct vl_conf c;

	(void)state;
	assert_int_equal(
		parse(&c, "--socket-path=/a", "--backend=tap,fds=0:1:2", NULL),
		0);
	assert_int_equal(c.params.queue_pairs, 3);
	vl_conf_free(&c);
	assert_int_equal(parse(&c, "--socket-path=/a", "--queue-pairs=2",
			       "--backend=tap,fds=0:1:2", NULL),
			 -EINVAL);
	assert_true(has_error(&c, "3 descriptors for 2 queue pairs"));
	vl_conf_free(&c);
	/* Several for each pair: its lanes. */
	assert_int_equal(parse(&c, "--socket-path=/a", "--queue-pairs=2",
			       "--backend=tap,fds=0:1:2:3:4:5", NULL),
			 0);
	assert_int_equal(c.params.queue_pairs, 2);
	vl_conf_free(&c);
	assert_int_equal(
		parse(&c, "--socket-path=/a", "--queue-pairs=1",
		      "--backend=tap,fds=0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0",
		      NULL),
		-EINVAL);
	assert_true(has_error(&c, "17 descriptors for 1 queue pairs"));
	vl_conf_free(&c);
}

static void test_tunnel(void **state)
{
	static const char *const wrong[][2] = {
		{ "local=10.0.0.1,remote=10.0.0.2", "vni= is missing" },
		{ "vni=7,remote=10.0.0.2", "local= is missing" },
		{ "vni=16777216,local=10.0.0.1", "vni=16777216: " },
		{ "vni=7,local=10.0.0.256", "local=10.0.0.256: " },
		{ "vni=7,local=ff02::1", "local=ff02::1: " },
		{ "vni=7,local=0.0.0.0", "local=0.0.0.0: " },
		{ "vni=7,local=10.0.0.1,port=0", "port=0: " },
		{ "vni=7,local=10.0.0.1,mac=10.0.0.2", "mac=10.0.0.2: " },
		{ "vni=7,local=10.0.0.1,mac=01:00:5e:00:00:01@10.0.0.2",
		  "mac=01:00:5e:00:00:01@10.0.0.2: " },
		{ "vni=7,local=10.0.0.1,mac=02:00:00:00:00:01@x",
		  "mac=02:00:00:00:00:01@x: " },
		{ "vni=7,local=10.0.0.1,zerocopy=1", "zerocopy=1: " },
		{ "vni=7,local=10.0.0.1,pending=0", "pending=0: " },
		{ "vni=7,local=10.0.0.1,fds=3", "'fds' is no parameter of" },
		{ "vni=7,local=10.0.0.1,fdb=a/b", "fdb=a/b: " },
	};
	struct vl_conf c;
	char text[160];

	(void)state;
	assert_int_equal(
		parse(&c, "--socket-path=/a",
		      "--backend=vxlan,vni=7,local=10.0.0.1,remote=10.0.0.2,"
		      "remote=10.0.0.3,mac=02:00:00:00:00:01@10.0.0.3,port="
		      "8472,"
		      "ageing=0,zerocopy=on,pending=32,lanes=4",
		      NULL),
		0);
	assert_int_equal(c.params.vni, 7);
	assert_int_equal(c.params.local.len, 4);
	assert_int_equal(c.params.n_remotes, 2);
	assert_int_equal(c.params.remote[1].addr[3], 3);
	assert_int_equal(c.params.n_statics, 1);
	assert_int_equal(c.params.statics[0].mac[5], 1);
	assert_int_equal(c.params.statics[0].remote.addr[3], 3);
	assert_int_equal(c.params.port, 8472);
	assert_int_equal(c.params.ageing_s, 0);
	assert_int_equal(c.params.zerocopy, VL_ZEROCOPY_ON);
	assert_int_equal(c.params.pending, 32);
	assert_int_equal(c.params.lanes, 4);
	vl_conf_free(&c);

	/* The last one counts, and nothing of those before. */
	assert_int_equal(parse(&c, "--socket-path=/a",
			       "--backend=vxlan,vni=7,local=fd00::1,pending=9",
			       "--backend=vxlan,vni=8,local=fd00::2", NULL),
			 0);
	assert_int_equal(c.params.local.len, 16);
	assert_int_equal(c.params.port, 4789);
	assert_int_equal(c.params.ageing_s, 300);
	assert_int_equal(c.params.zerocopy, VL_ZEROCOPY_AUTO);
	assert_int_equal(c.params.pending, 0);
	vl_conf_free(&c);

	for (size_t i = 0; i < VL_ARRAY_SIZE(wrong); i++) {
		(void)snprintf(text, sizeof(text), "--backend=vxlan,%s",
			       wrong[i][0]);
		assert_int_equal(parse(&c, "--socket-path=/a", text, NULL),
				 -EINVAL);
		assert_true(has_error(&c, wrong[i][1]));
		assert_int_equal(c.errors, 1);
		vl_conf_free(&c);
	}
}

static void test_sndbuf_and_lanes(void **state)
{
	struct vl_conf c;

	(void)state;
	assert_int_equal(parse(&c, "--socket-path=/a", "--tx-full=block",
			       "--backend=tap,name=t,lanes=1,sndbuf=unlimited",
			       NULL),
			 0);
	assert_int_equal(c.params.lanes, 1);
	assert_int_equal(c.params.sndbuf, 0);
	assert_false(c.params.sndbuf_auto);
	assert_int_equal(c.tx_full, VL_TX_FULL_BLOCK);
	vl_conf_free(&c);
	assert_int_equal(parse(&c, "--socket-path=/a",
			       "--backend=tap,name=t,sndbuf=auto", NULL),
			 0);
	assert_true(c.params.sndbuf_auto);
	vl_conf_free(&c);
	assert_int_equal(parse(&c, "--socket-path=/a",
			       "--backend=tap,name=t,lanes=0", NULL),
			 -EINVAL);
	assert_true(has_error(&c, "lanes=0: "));
	vl_conf_free(&c);
	/* A tap would never be writable again. */
	assert_int_equal(parse(&c, "--socket-path=/a",
			       "--backend=tap,name=t,sndbuf=5", NULL),
			 -EINVAL);
	assert_true(has_error(&c, "sndbuf=5: "));
	vl_conf_free(&c);
	assert_int_equal(parse(&c, "--socket-path=/a",
			       "--backend=tap,name=t,sndbuf=1k", NULL),
			 0);
	vl_conf_free(&c);
}

/* What is said at the start when lanes cannot do their work. */
static void test_lanes_advice(void **state)
{
	struct vl_conf c = { .tx_full = VL_TX_FULL_LANES };
	struct vl_backend b = { .ways = 8, .limited = true };

	(void)state;
	c.params.lanes = 8;
	assert_null(vl_lanes_advice(&c, &b, false));
	assert_non_null(strstr(vl_lanes_advice(&c, &b, true),
			       "bridge-nf-call-iptables"));
	b.limited = false;
	assert_non_null(strstr(vl_lanes_advice(&c, &b, true), "unlimited"));
	b.probes = 2;
	assert_null(vl_lanes_advice(&c, &b, false));
	assert_non_null(strstr(vl_lanes_advice(&c, &b, true),
			       "bridge-nf-call-iptables"));
	c.backend = vl_backend_find("vxlan");
	assert_null(vl_lanes_advice(&c, &b, true));
	c.backend = NULL;
	b.probes = 0;
	b.ways = 1;
	assert_null(vl_lanes_advice(&c, &b, true));
	b.limited = true;
	assert_null(vl_lanes_advice(&c, &b, false)); /* the tap said why */
	c.params.fds = "7";
	assert_non_null(strstr(vl_lanes_advice(&c, &b, false), "one lane"));
	c.params.lanes = 1;
	assert_null(vl_lanes_advice(&c, &b, false));
	c.tx_full = VL_TX_FULL_DROP;
	assert_null(vl_lanes_advice(&c, &b, true));
}

/* The last --backend counts, with nothing left of the one before. */
static void test_backend_twice(void **state)
{
	struct vl_conf c;

	(void)state;
	assert_int_equal(parse(&c, "--socket-path=/a", "--queue-pairs=2",
			       "--backend=tap,name=tap0,sndbuf=1M",
			       "--backend=tap,name=tap1", NULL),
			 0);
	assert_string_equal(c.params.name, "tap1");
	assert_int_equal(c.params.sndbuf, 0);
	assert_int_equal(c.params.queue_pairs, 2);
	vl_conf_free(&c);
}

/* Back-end program conventions: everything else is ignored. */
static void test_print_capabilities(void **state)
{
	struct vl_conf c;

	(void)state;
	assert_int_equal(
		parse(&c, "--mtu=1", "--unknown", "--print-capabilities", NULL),
		0);
	assert_true(c.print_capabilities);
	assert_int_equal(c.errors, 0);
	vl_conf_free(&c);
	assert_int_equal(parse(&c, "-h", NULL), 0);
	assert_true(c.help);
	vl_conf_free(&c);
}

static void test_help_names_all(void **state)
{
	char *text = NULL, word[64];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	vl_conf_help(out);
	fclose(out);
	for (size_t i = 0; i < vl_option_count; i++) {
		const struct vl_option *o = &vl_option_table[i];

		snprintf(word, sizeof(word), "  --%s%s%s\n", o->name,
			 o->arg ? "=" : "", o->arg ? o->arg : "");
		assert_non_null(strstr(text, word));
	}
	assert_non_null(strstr(text, "\n  tap\n"));
	free(text);
}

static void test_default_mac(void **state)
{
	struct vl_conf c = { .socket_path = "/run/a" };
	struct vl_conf other = { .socket_path = "/run/b" };
	uint8_t a[6], b[6];

	(void)state;
	assert_int_equal(vl_conf_default_mac(&c, "tap0", a), 0);
	assert_int_equal(a[0] & 3, 2);
	assert_int_equal(vl_conf_default_mac(&c, "tap1", b), 0);
	assert_memory_not_equal(a, b, 6);
	assert_int_equal(vl_conf_default_mac(&other, "tap0", b), 0);
	assert_memory_not_equal(a, b, 6);
	assert_int_equal(vl_conf_default_mac(&c, "tap0", b), 0);
	if (!access("/etc/machine-id", R_OK))
		assert_memory_equal(a, b, 6);
}

static void test_numbers(void **state)
{
	static const char *const bad[] = {
		"", "-1", "+1", " 1", "1 ", "0x10", "4", "18446744073709551617"
	};
	uint64_t v = 7;

	(void)state;
	for (size_t i = 0; i < VL_ARRAY_SIZE(bad); i++)
		assert_int_equal(vl_value_number(bad[i], 0, 3, &v), -EINVAL);
	assert_int_equal(v, 7);
	assert_int_equal(vl_value_number("3", 0, 3, &v), 0);
	assert_int_equal(v, 3);
}

static void test_sizes(void **state)
{
	static const char *const bad[] = {
		"",      "k",  "1kk",        "1m",
		"2048M", "-1", "unlimited1", "99999999999999999999"
	};
	uint64_t v = 7;

	(void)state;
	for (size_t i = 0; i < VL_ARRAY_SIZE(bad); i++)
		assert_int_equal(vl_value_size(bad[i], &v), -EINVAL);
	assert_int_equal(v, 7);
	assert_int_equal(vl_value_size("unlimited", &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(vl_value_size("200000", &v), 0);
	assert_int_equal(v, 200000);
	assert_int_equal(vl_value_size("3k", &v), 0);
	assert_int_equal(v, 3072);
	assert_int_equal(vl_value_size("2047M", &v), 0);
	assert_int_equal(v, 2047ull << 20);
}

static void test_macs_and_names(void **state)
{
	static const char *const bad[] = {
		"",
		"52",
		"52:54:00:12:34",
		"52:54:00:12:34:5",
		"52:54:00:12:34:56:",
		"52-54-00-12-34-56",
		"52:54:00:12:34:5g",
		"00:00:00:00:00:00",
		"ff:ff:ff:ff:ff:ff",
	};
	uint8_t mac[6];

	(void)state;
	for (size_t i = 0; i < VL_ARRAY_SIZE(bad); i++)
		assert_int_equal(vl_value_mac(bad[i], mac), -EINVAL);
	assert_int_equal(vl_value_mac("02:00:00:00:00:01", mac), 0);
	assert_true(vl_value_is_ifname("tap0"));
	assert_true(vl_value_is_ifname("a23456789012345"));
	assert_false(vl_value_is_ifname("a234567890123456"));
	assert_false(vl_value_is_ifname(""));
	assert_false(vl_value_is_ifname(".."));
	assert_false(vl_value_is_ifname("tap%d"));
	assert_false(vl_value_is_ifname("a b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_option),
		cmocka_unit_test(test_all_errors),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_error_bound),
		cmocka_unit_test(test_long_value),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_file_errors),
		cmocka_unit_test(test_file_values),
		cmocka_unit_test(test_fd_and_path),
		cmocka_unit_test(test_fds_and_pairs),
		cmocka_unit_test(test_tunnel),
		cmocka_unit_test(test_sndbuf_and_lanes),
		cmocka_unit_test(test_lanes_advice),
		cmocka_unit_test(test_backend_twice),
		cmocka_unit_test(test_print_capabilities),
		cmocka_unit_test(test_help_names_all),
		cmocka_unit_test(test_default_mac),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_macs_and_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
