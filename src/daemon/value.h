/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of options to values. All: 0 or -EINVAL, *out unchanged on failure. */
#ifndef VL_DAEMON_VALUE_H
#define VL_DAEMON_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* A decimal number in [min, max]: digits only, no sign, no space. */
int vl_value_number(const char *text, uint64_t min, uint64_t max,
		    uint64_t *out);

/* Bytes with an optional suffix k or M (1024, 1024^2), at most INT32_MAX;
 * "unlimited" is 0. */
int vl_value_size(const char *text, uint64_t *out);

/* "on" or "off". */
int vl_value_switch(const char *text, bool *out);

/* "52:54:00:12:34:56", not a group address and not all zero. */
int vl_value_mac(const char *text, uint8_t out[6]);

/* "3:4:5": the number of descriptors in the list, which are all >= 0. */
int vl_value_fd_list(const char *text, unsigned int *out);

/* A name that Linux takes for a network interface. */
bool vl_value_is_ifname(const char *text);

#endif
