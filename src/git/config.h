/* SPDX-License-Identifier: MIT */
/* Git configuration that crosses the boundary of a jail: credentials are removed from the copy for
 * the jail, and only new remotes and upstreams of branches are taken over from it. */
#pragma once

#include <stdbool.h>

#include "git/repo.h"

/* Appends lines about what was removed, a NUL, and the text of the file `name` in `dir` without
 * credentials. A temporary copy is made in `folder`. */
int config_sanitise(const struct git *git, int dir, const char *name, int folder,
                    struct str *ret_answer, struct brig_error *err);

/* Removes credentials from a value: 1 and the URL without user and password, 0 if it has none.
 * Pure. */
int config_strip_url(const char *url, struct str *ret_url);
/* Appends a text without users and passwords in the URLs in it. Pure. */
void config_strip_text(const char *text, struct str *ret_text);

/* Takes over from a jail's private config what config_may_cross() allows: new remotes, and the
 * upstreams of branches. `base` is the directory with the initial config of the jail. Other changes
 * are mentioned in one line. `call` selects the repository that git works on. */
int config_cross(const struct git *git, const struct git_sealed *sealed, int base,
                 const struct git_call *call, struct str *notes, struct brig_error *err);

/* Whether a new setting may be taken over from a jail; `key` as `git config --list` prints it.
 * Pure. */
bool config_may_cross(const char *key, const char *value);

/* Settings of git outside that name a file in the project: `core.hooksPath = hooks` in
 * ~/.gitconfig, or an included file. Git outside executes or obeys that file, so a jail must not
 * write to it. */

/* Appends the paths, absolute and each terminated by a NUL, that git's configuration in a directory
 * names. The answer is cached in `cache` until a file of the configuration changes; -1: not
 * cached. */
int outward_find(const struct git *git, int cache, const char *top_path, const struct repo *repo,
                 struct str *ret_paths, struct brig_error *err);

/* Appends a git configuration with the user.name and user.email that git uses in the repository, or
 * outside of any repository if `repo` is NULL; nothing if it has neither. Cached likewise. */
int author_find(const struct git *git, int cache, const char *top_path, const struct repo *repo,
                struct str *ret_config, struct brig_error *err);
