/* SPDX-License-Identifier: MIT */
/* What jails did in the repositories of reviewed directories: moved with the files, see
 * guard/reviewed.h. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

#include "git/item.h"

struct layers;
struct range;

/* What is taken of commits, stashes and the index. What is flagged needs `risky`, or a yes to the question. */
struct layers_git_choice {
    bool risky;
    bool (*ask)(void *data, const struct git_item *item, const struct range *range); /* NULL: no */
    void *data;
};

/* For each reviewed directory of which no change is left, and which is `wanted` by its index (NULL:
 * all are): moves branches, HEAD and index to the user's repository. Others of which no change is
 * left are named. Call it without the lock of the record. Messages are appended to `notes`, one per
 * line. `user` owns the repository, if the caller is root. Returns 1 if something was left. */
int layers_apply_git(const struct layers *layers, const bool *wanted, const char *storage,
                     struct git_user user, const struct layers_git_choice *choice,
                     struct str *notes, struct brig_error *err);

/* Drops it. */
int layers_discard_git(const struct layers *layers, const bool *wanted, const char *storage,
                       struct str *notes, struct brig_error *err);

struct git_printer;

/* Prints what has not been taken of git in these reviewed directories: see git_print.h. Fetches new commits below refs/brig. */
int layers_list_git(const struct layers *layers, const bool *wanted, const char *storage,
                    struct git_printer *printer, struct brig_error *err);

/* Fetches outside from the user's own remotes, so that what is there is the user's: see guard_fetch_remotes(). */
int layers_fetch_git(const struct layers *layers, const bool *wanted, const char *storage,
                     struct str *notes, struct brig_error *err);
