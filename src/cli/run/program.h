/* SPDX-License-Identifier: MIT */
/* The program of a profile: where it is installed, how it gets visible in the jail, what it is
 * started with, and what the user is told about it. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

struct identity;
struct settings;

/* Finds the program outside, also in places that are not in PATH, and grants it read-only if the
 * jail would not show it. Does nothing without a profile. */
int program_show(struct settings *settings, const struct identity *identity, const char *command,
                 struct brig_error *err);

/* Adds the hosts of the profile to the rules, if only named hosts are allowed. */
int program_allow_hosts(struct settings *settings, struct brig_error *err);

/* Adds the arguments of the profile after the command. The caller frees the array and with
 * program_free_words() its words. */
struct program_words {
    const char **words; /* NULL-terminated; owned, the texts of the caller are borrowed */
    char **added;       /* NULL-terminated; owned */
};
int program_words(const struct settings *settings, const char *const *argv,
                  struct program_words *ret_words, struct brig_error *err);
void program_words_done(struct program_words *words);

/* Says which credentials of the program were not passed on, and at the first use in a project what
 * the program can and cannot do. With `remember` the latter is recorded in the storage. */
void program_tell(const struct settings *settings, const struct identity *identity, bool remember);
