/* SPDX-License-Identifier: MIT */
/* Repositories that a run has made below the top of a working tree. Git outside would obey their config and
 * hooks, so each is made anew with `git init`, and its commits are fetched. */
#pragma once

#include <time.h>

#include "guard/private.h"

/* Finds repositories whose `.git` was made since then, by `git ls-files`, and treats them. `folder` is a
 * directory of the storage for what this needs, and `store` that of held files. To be called when no
 * process of the run is left. */
int nested_treat(const struct git *git, const struct private_git *outer, const char *jail,
                 struct timespec since, int folder, struct str *notes, struct brig_error *err);

/* Worktrees that the run has added below the top are made anew for the user's repository, on the same branch, with
 * the files they have. To be called when the branches have been transferred. */
int nested_worktrees(const struct git *git, const struct private_git *outer, struct str *notes,
                     struct brig_error *err);
