/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/value.h"

#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

/* Reads digits at *p up to the first other character. */
static int digits(const char **p, uint64_t *out)
{
	uint64_t v = 0;

	if (!isdigit((unsigned char)**p))
		return -EINVAL;
	for (; isdigit((unsigned char)**p); (*p)++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(**p - '0'), &v))
			return -EINVAL;
	}
	*out = v;
	return 0;
}

int vl_value_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t v;

	if (digits(&text, &v) || *text || v < min || v > max)
		return -EINVAL;
	*out = v;
	return 0;
}

int vl_value_size(const char *text, uint64_t *out)
{
	uint64_t v, unit = 1;

	if (!strcmp(text, "unlimited")) {
		*out = 0;
		return 0;
	}
	if (digits(&text, &v))
		return -EINVAL;
	if (*text == 'k' || *text == 'K')
		unit = 1024;
	else if (*text == 'M')
		unit = 1024ULL * 1024;
	if (unit > 1)
		text++;
	if (*text || __builtin_mul_overflow(v, unit, &v) || v > INT32_MAX)
		return -EINVAL;
	*out = v;
	return 0;
}

int vl_value_switch(const char *text, bool *out)
{
	if (strcmp(text, "on") && strcmp(text, "off"))
		return -EINVAL;
	*out = !strcmp(text, "on");
	return 0;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int vl_value_mac(const char *text, uint8_t out[6])
{
	static const uint8_t zero[6];
	uint8_t mac[6];

	for (int i = 0; i < 6; i++, text += 3) {
		int high = hex(text[0]);
		int low = high < 0 ? -1 : hex(text[1]);

		if (low < 0 || text[2] != (i < 5 ? ':' : '\0'))
			return -EINVAL;
		mac[i] = (uint8_t)(high << 4 | low);
	}
	if (mac[0] & 1 || !memcmp(mac, zero, sizeof(mac)))
		return -EINVAL;
	memcpy(out, mac, sizeof(mac));
	return 0;
}

int vl_value_fd_list(const char *text, unsigned int *out)
{
	unsigned int n = 0;
	uint64_t fd;

	for (;; text++) {
		if (digits(&text, &fd) || fd > INT32_MAX)
			return -EINVAL;
		n++;
		if (!*text)
			break;
		if (*text != ':')
			return -EINVAL;
	}
	*out = n;
	return 0;
}

bool vl_value_is_ifname(const char *text)
{
	size_t len = strlen(text);

	if (!len || len >= IFNAMSIZ || !strcmp(text, ".") ||
	    !strcmp(text, ".."))
		return false;
	for (; *text; text++) {
		if (*text == '/' || *text == ':' || *text == '%' ||
		    !isgraph((unsigned char)*text))
			return false;
	}
	return true;
}
