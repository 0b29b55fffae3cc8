/* SPDX-License-Identifier: MIT */
/* Mirrors of package registries that the user has configured, for @npm+mirrors and its kind. Looked
 * for in the user's own files and environment, never in a file of the project. */
#pragma once

#include <brig/brig.h>

struct identity;
struct settings;

#define MIRRORS_RULE_MAX 320 /* "HOST:PORT" */

/* Allows those that the policy asks for, and says which. */
int mirrors_apply(struct settings *settings, const struct identity *identity,
                  struct brig_error *err);

/* The next URL of http or https in a text of `length` bytes, from *at on: as a rule "HOST:PORT", and *at
 * behind it. False if there is none. Pure. */
bool mirrors_next_url(const char *text, size_t length, size_t *at, char rule[MIRRORS_RULE_MAX]);
/* Whether a line of a configuration file, "KEY = VALUE", sets one of these keys (ended by NULL); then
 * *ret_value is where its value begins. For "registry", also "@scope:registry". Pure. */
bool mirrors_is_key(const char *line, size_t length, const char *const *keys, size_t *ret_value);
