/* SPDX-License-Identifier: MIT */
/* Held back files, for other verbs than `brig held` and `brig keep`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

/* Deletes the held back files of a jail, or with NULL of all jails, that have these paths: ret_done[i] is set for a word
 * that was one. Prints what was deleted. Changes to the ids of the user if root acts for one. */
int held_discard_words(const char *jail, int count, char **words, bool *ret_done,
                       struct brig_error *err);

/* Deletes all held back files of the jail, or with `within` those that were in this directory: 1, 0 if there were none, or a code. */
int held_discard_all(const char *jail, const char *within, struct brig_error *err);

/* How many a jail has. */
int held_count(int storage, const char *jail, size_t *ret_count, struct brig_error *err);
