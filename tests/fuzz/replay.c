/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a fuzz target over every file of the directories (or files) that are
 * given: the corpus as a test, without a fuzzing compiler. What happens is up
 * to the target, which traps, and to the sanitizers.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned int inputs;

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rbe");
	uint8_t *data;
	size_t size;

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	data = malloc(1 << 20);
	if (!data) {
		fclose(f);
		return -1;
	}
	size = fread(data, 1, 1 << 20, f);
	fclose(f);
	/* Of its exact size, so that reading past its end is noticed. */
	data = realloc(data, size ? size : 1);
	printf("%s: %zu bytes\n", path, size);
	fflush(stdout);
	if (data)
		LLVMFuzzerTestOneInput(data, size);
	free(data);
	inputs++;
	return 0;
}

static int replay_directory(const char *path, DIR *dir)
{
	const struct dirent *e;
	char name[4096];
	int err = 0;

	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
		err |= replay_file(name);
	}
	return err;
}

int main(int argc, char **argv)
{
	int err = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);

		if (!dir) {
			err |= replay_file(argv[i]);
			continue;
		}
		err |= replay_directory(argv[i], dir);
		closedir(dir);
	}
	printf("%u inputs\n", inputs);
	/* An empty corpus tests nothing. */
	return err || inputs == 0;
}
