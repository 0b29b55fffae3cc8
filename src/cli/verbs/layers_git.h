/* SPDX-License-Identifier: MIT */
/* What jails did in the repositories of reviewed directories: moved with the files, see
 * guard/reviewed.h. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

#include "git/git.h"

struct layers;

/* For each reviewed directory of which no change is left, and which is `wanted` by its index (NULL:
 * all are): moves branches, HEAD and index to the user's repository. Others of which no change is
 * left are named. Call it without the lock of the record. Messages are appended to `notes`, one per
 * line. `user` owns the repository, if the caller is root. */
int layers_apply_git(const struct layers *layers, const bool *wanted, const char *storage,
                     struct git_user user, struct str *notes, struct brig_error *err);

/* Drops it. */
int layers_discard_git(const struct layers *layers, const bool *wanted, const char *storage,
                       struct str *notes, struct brig_error *err);
