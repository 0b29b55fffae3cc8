/* SPDX-License-Identifier: MIT */
/* Git configuration that crosses the border of a jail: what goes in has no credentials, and of what comes
 * out only new remotes and the upstreams of branches are taken over. */
#pragma once

#include <stdbool.h>

#include "guard/repo.h"

/* Appends lines about what was left out, a NUL, and the text of the file `name` in a directory without
 * credentials. A temporary copy is made in `folder`. */
int config_sanitise(const struct git *git, int dir, const char *name, int folder,
                    struct str *ret_answer, struct brig_error *err);

/* What a value with credentials becomes: 1 and the URL without user and password, 0 if it has none. Pure. */
int config_strip_url(const char *url, struct str *ret_url);

/* Takes over from a jail's private config what config_may_cross() lets pass: new remotes, and the upstreams of
 * branches. `base` is the directory with the config that the jail began with. What stays behind is mentioned in
 * one line. `call` says on which repository git works. */
int config_cross(const struct git *git, const struct git_sealed *sealed, int base,
                 const struct git_call *call, struct str *notes, struct brig_error *err);

/* Whether a new setting may be taken over from a jail: KEY as `git config --list` prints it. Pure. */
bool config_may_cross(const char *key, const char *value);

/* Settings of git outside that name a file in the project: `core.hooksPath = hooks` in
 * ~/.gitconfig, or an included file. Git outside executes or obeys that file, so a jail must not
 * write to it. */

/* Appends the paths, absolute and each ended by a NUL, that the configuration of git names in a directory.
 * `cache` keeps the answer for as long as no file of the configuration changes; -1: none. */
int outward_find(const struct git *git, int cache, const char *top_path, const struct repo *repo,
                 struct str *ret_paths, struct brig_error *err);
