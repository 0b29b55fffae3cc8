/* SPDX-License-Identifier: MIT */
/* Scripts that a shell sources in the jail before it starts the command. */
#pragma once

#include <brig/brig.h>

struct identity;
struct settings;

#define SCRIPT_LENGTH_MAX ((size_t)4 << 20) /* bytes of all scripts together */

/* Called after all settings were applied: reads the scripts with the ids of the user, concatenates
 * them in settings->script for settings->script_path, sets BRIG_SCRIPT and JAI_SCRIPT with the
 * lowest precedence, and has them sourced unless --command was given. Does nothing if there are no
 * scripts. */
int script_prepare(struct settings *settings, const struct identity *identity,
                   struct brig_error *err);

/* Builds the command line for these words, NULL-terminated: the words themselves, or a shell that
 * runs settings->command with them as arguments. One allocation for the caller to free; it points
 * into `words` and the settings. */
int script_words(const struct settings *settings, const char *const *words,
                 const char *const **ret_words, struct brig_error *err);

/* ---- Programs that run once for a new home of a jail, outside the jail, as the user ---- */

/* Creates the directory for the jail's home, or for the changes to it, if it does not exist, and
 * runs settings->initjails in it, before anything is mounted. If several runs start at once, one
 * does this and the others wait. A program that fails causes a warning. A missing program is an
 * error unless it is optional; then no directory is created. */
int initjail_run(const struct settings *settings, const struct identity *identity,
                 struct brig_error *err);

/* The script in the jail's /tmp, readable by the jail only; unused if there is no script. */
struct policy_file script_file(const struct settings *settings);
