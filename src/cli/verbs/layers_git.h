/* SPDX-License-Identifier: MIT */
/* What jails did in the repositories of reviewed directories: listed, fetched, and dropped. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

struct layers;
struct str;

/* Drops what was not taken in the directories that are `wanted`, by their index; NULL: in all. The undo of operation `id`
 * brings it back; 0: none does. */
int layers_discard_git(const struct layers *layers, const bool *wanted, const char *storage,
                       uint64_t id, struct str *notes, struct brig_error *err);

struct git_printer;

/* Prints what has not been taken of git in these reviewed directories: see git_print.h. Fetches new commits below refs/brig. */
int layers_list_git(const struct layers *layers, const bool *wanted, const char *storage,
                    struct git_printer *printer, struct brig_error *err);

/* Fetches outside from the user's own remotes, so that what is there is the user's: see guard_fetch_remotes(). */
int layers_fetch_git(const struct layers *layers, const bool *wanted, const char *storage,
                     struct str *notes, struct brig_error *err);
