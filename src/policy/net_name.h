/* SPDX-License-Identifier: MIT */
/* Names of hosts, in the one form in which they are compared: lower case, no trailing dot. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct brig_error;

#define NET_NAME_MAX 253 /* bytes of a name, as DNS has it */
#define NET_LABEL_MAX 63

/* Letters, digits, '-' and '_' in labels of 1 to 63, of which none begins or ends with '-'; not an
 * address: the last label is not a number (nor one as 0x7f). One trailing dot is removed. False if
 * it is no name; ret_name is then untouched. */
bool net_name_read(const char *text, size_t length, char ret_name[NET_NAME_MAX + 1]);

/* The same, and says what is wrong with it and what to write instead. */
int net_name_parse(const char *text, size_t length, char ret_name[NET_NAME_MAX + 1],
                   struct brig_error *err);

/* Is the name below the domain: a.example.com below example.com, but example.com not below itself?
 * Both as net_name_read() gives them. */
bool net_name_below(const char *name, const char *domain);

/* Does it mean the machine that asks, on every machine (RFC 6761)? */
bool net_name_is_localhost(const char *name);
