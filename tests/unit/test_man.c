/* SPDX-License-Identifier: BSD-3-Clause */
/* The manual pages name every option, every backend and every counter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/registry.h"
#include "daemon/conf.h"
#include "stats/counters.h"

#define PAGE_MAX 65536

static char page[PAGE_MAX];

static void load(const char *name)
{
	char path[512];
	FILE *in;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", VL_MAN_DIR, name);
	in = fopen(path, "re");
	assert_non_null(in);
	n = fread(page, 1, sizeof(page) - 1, in);
	fclose(in);
	assert_in_range(n, 1, sizeof(page) - 2);
	page[n] = '\0';
}

/* Fails with the word that is missing. */
static void expect(const char *word)
{
	if (!strstr(page, word))
		fail_msg("the manual page lacks: %s", word);
}

static void test_options(void **state)
{
	char word[64];

	(void)state;
	load("virtlane.1.scd");
	for (size_t i = 0; i < vl_option_count; i++) {
		const struct vl_option *o = &vl_option_table[i];

		snprintf(word, sizeof(word), "\n*--%s%s", o->name,
			 o->arg ? "*=" : "*\n");
		expect(word);
	}
	for (unsigned int i = 0; vl_backend_at(i); i++) {
		snprintf(word, sizeof(word), "\n*%s*", vl_backend_at(i)->name);
		expect(word);
	}
}

/* scdoc reads an underscore as emphasis unless it is escaped. */
static void expect_counter(const char *name)
{
	char word[128] = "\n*";
	size_t n = strlen(word);

	for (; *name && n < sizeof(word) - 4; name++) {
		if (*name == '_')
			word[n++] = '\\';
		word[n++] = *name;
	}
	word[n++] = '*';
	word[n] = '\0';
	expect(word);
}

static void test_counters(void **state)
{
	(void)state;
	load("virtlanectl.1.scd");
	for (size_t i = 0; i < vl_tx_counter_count; i++)
		expect_counter(vl_tx_counter_table[i].name);
	for (size_t i = 0; i < vl_rx_counter_count; i++)
		expect_counter(vl_rx_counter_table[i].name);
	for (size_t i = 0; i < vl_lane_counter_count; i++)
		expect_counter(vl_lane_counter_table[i].name);
	for (size_t i = 0; i < vl_tunnel_counter_count; i++)
		expect_counter(vl_tunnel_counter_table[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
