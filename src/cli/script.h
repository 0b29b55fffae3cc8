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

/* ---- Programs that run once for a jail's new home, outside the jail, as the user ---- */

/* Makes the directory that the jail's home, or what is changed of it, is kept in, if it is not
 * there yet, and runs settings->initjails in it, before anything is mounted. Of several runs one
 * does it, and the others wait. A program that fails is a warning, one that is missing an error
 * unless it is optional: then nothing was made. */
int initjail_run(const struct settings *settings, const struct identity *identity,
                 struct brig_error *err);
