/* SPDX-License-Identifier: MIT */
/* Package registry mirrors that the user has configured, for @npm+mirrors and similar presets. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

#include "base/str.h"

struct identity;
struct settings;

#define MIRRORS_RULE_MAX 320 /* "HOST:PORT" */

/* Allows the mirrors that the policy asks for, and prints them. The jail gets their addresses as
 * variables of the tools. */
int mirrors_apply(struct settings *settings, const struct identity *identity,
                  struct brig_error *err);

/* Finds the next http or https URL in a text of `length` bytes from *at on, writes it as a rule
 * "HOST:PORT" and advances *at past it. False if there is none. Pure. */
bool mirrors_next_url(const char *text, size_t length, size_t *at, char rule[MIRRORS_RULE_MAX]);
/* Appends the text without passwords in its URLs, after a blank if `out` is not empty. Pure. */
void mirrors_clean(const char *text, size_t length, struct str *out);
/* The index of the key (terminated by NULL) that a line "KEY = VALUE" of a configuration file sets, or
 * -1; *ret_value is the offset of the value. The key "registry" also matches "@scope:registry".
 * Pure. */
int mirrors_find_key(const char *line, size_t length, const char *const *keys, size_t *ret_value);
