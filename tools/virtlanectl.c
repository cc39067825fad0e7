/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtlanectl: shows what a running virtlane tells on its stats socket.
 *
 * The daemon answers with one line of JSON (virtlanectl(1)); this program
 * turns it into a screen for people: ctl_stat.c, ctl_top.c.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "ctl.h"

volatile sig_atomic_t ctl_interrupted;

static void on_signal(int sig)
{
	(void)sig;
	ctl_interrupted = 1;
}

static const struct {
	const char *name;
	int (*run)(const struct options *opt);
} commands[] = {
	{ "stat", ctl_stat },
	{ "top", ctl_top },
};

static const char usage[] =
	"Usage: virtlanectl stat SOCKET [--json] [--watch[=SECONDS]]\n"
	"       virtlanectl top SOCKET [--watch=SECONDS]\n"
	"\n"
	"Shows what the virtlane does that was started with --stats=SOCKET.\n"
	"\n"
	"  stat               counters, reasons of drops, cost\n"
	"  top                a live view of the lanes: who is slow; q ends\n"
	"\n"
	"  --json             the answer of the daemon as it is, one line\n"
	"  --watch[=SECONDS]  again and again, as rates per second (default: "
	"1)\n"
	"  --version          print the version and exit\n"
	"  --help             print this text and exit (or -h)\n"
	"\n"
	"Exit status: 0 shown, 1 no answer, 2 wrong arguments.\n";

/* Says what is wrong with @word. */
static int wrong(const char *word, const char *advice)
{
	fprintf(stderr, "virtlanectl: %s: %s\n", word, advice);
	return EXIT_USAGE;
}

/* "--watch" or "--watch=SECONDS". */
static int parse_watch(const char *word, struct options *opt)
{
	char *end;

	opt->watch_s = 1;
	if (!strcmp(word, "--watch"))
		return 0;
	opt->watch_s = strtod(word + strlen("--watch="), &end);
	if (*end || !(opt->watch_s >= 0.1 && opt->watch_s <= 86400))
		return wrong(word, "give 0.1 to 86400 seconds");
	return 0;
}

static int (*find_command(const char *name))(const struct options *opt)
{
	for (size_t i = 0; i < VL_ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, name))
			return commands[i].run;
	return NULL;
}

/* Whether @word can only be meant as the seconds of --watch before it. */
static bool is_interval(const char *before, const char *word)
{
	char *end;

	if (strcmp(before, "--watch"))
		return false;
	(void)strtod(word, &end);
	return end != word && !*end;
}

static int wrong_interval(const char *word)
{
	fprintf(stderr, "virtlanectl: for an interval write --watch=%s\n",
		word);
	return EXIT_USAGE;
}

/* Reports every wrong word, not just the first. */
static int parse_args(int argc, char *argv[], struct options *opt)
{
	int status = 0;

	if (argc < 2) {
		fputs("virtlanectl: no command given; try: virtlanectl stat "
		      "SOCKET\n",
		      stderr);
		return EXIT_USAGE;
	}
	if (!find_command(argv[1]))
		status = wrong(argv[1], "no such command; known: stat, top");
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			opt->json = true;
		else if (!strcmp(argv[i], "--watch") ||
			 !strncmp(argv[i], "--watch=", strlen("--watch=")))
			status |= parse_watch(argv[i], opt);
		else if (is_interval(argv[i - 1], argv[i]))
			status = wrong_interval(argv[i]);
		else if (argv[i][0] == '-')
			status = wrong(argv[i], "no such option; see --help");
		else if (opt->socket)
			status = wrong(argv[i], "one socket at a time");
		else
			opt->socket = argv[i];
	}
	if (opt->json && !strcmp(argv[1], "top"))
		status = wrong("--json", "top is a screen; use stat --json");
	if (!opt->socket)
		status = wrong("SOCKET", "is missing; give the path that "
					 "virtlane got as --stats");
	return status;
}

int main(int argc, char *argv[])
{
	struct sigaction act = { .sa_handler = on_signal };
	struct options opt = { 0 };

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return EXIT_OK;
		}
		if (!strcmp(argv[i], "--version")) {
			printf("virtlanectl %s\n", VL_VERSION);
			return EXIT_OK;
		}
	}
	if (parse_args(argc, argv, &opt))
		return EXIT_USAGE;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
	sigaction(SIGQUIT, &act, NULL);
	return find_command(argv[1])(&opt);
}
