/* SPDX-License-Identifier: MIT */
/* Settings of git outside that name a file in the project: `core.hooksPath = hooks` in ~/.gitconfig, or an
 * included file. Git outside executes or obeys that file, so a jail must not write to it. */
#pragma once

#include "guard/git.h"
#include "guard/repo.h"

/* Appends the paths, absolute and each ended by a NUL, that the configuration of git names in a directory.
 * `cache` keeps the answer for as long as no file of the configuration changes; -1: none. */
int outward_find(const struct git *git, int cache, int top, const char *top_path,
                 const struct repo *repo, struct str *ret_paths, struct brig_error *err);
