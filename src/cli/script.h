/* SPDX-License-Identifier: MIT */
/* Scripts that a shell reads in the jail before it starts the command. */
#pragma once

#include <brig/brig.h>

struct identity;
struct settings;

#define SCRIPT_LENGTH_MAX ((size_t)4 << 20) /* of all scripts together */

/* After everything was applied: reads the scripts as the user, puts them together in
 * settings->script for settings->script_path, sets BRIG_SCRIPT and JAI_SCRIPT, weaker than all
 * rules, and has them read if no --command was given. Does nothing if no script is there. */
int script_prepare(struct settings *settings, const struct identity *identity,
                   struct brig_error *err);

/* What is to be run for these words, NULL-terminated: they themselves, or a shell with the line of
 * settings->command before them. One allocation for the caller to free; it points into words and
 * the settings. */
int script_words(const struct settings *settings, const char *const *words,
                 const char *const **ret_words, struct brig_error *err);
