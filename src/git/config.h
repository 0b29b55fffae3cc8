/* SPDX-License-Identifier: MIT */
/* Git configuration that crosses the boundary of a jail: credentials are removed from the copy for
 * the jail, and only upstreams of branches are taken over from it. */
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

/* A setting that a jail has added or changed in its private config. */
struct config_change {
    const char *key; /* as `git config --list` prints it */
    const char *old; /* outside before the run; NULL: none */
    const char *new;
    bool crosses; /* an upstream at a remote that existed outside before the run */
};

struct config_changes {
    struct config_change *items;
    size_t count, more;        /* changes above the limit: they stay in the jail */
    struct str inside, before; /* the lists of settings, to which the items point */
};

/* Lists what differs in a jail's private config from the initial one, which is in the directory
 * `base`. Release with config_changes_done(), also after a failure. */
int config_find_changes(const struct git *git, const struct git_sealed *sealed, int base,
                        struct config_changes *ret_changes, struct brig_error *err);
void config_changes_done(struct config_changes *changes);

/* Appends messages about them: what crosses, the commands that add new remotes to the repository at
 * `top`, and the number of the others. */
void config_note(const struct config_changes *changes, const char *top, struct str *notes);

/* Whether a setting is an upstream of a branch that may be taken over from a jail; `key` as `git
 * config --list` prints it. Pure. */
bool config_may_cross(const char *key, const char *value);
/* Whether a setting is the URL of a remote, and of a kind that a message may propose. Pure. */
bool config_is_remote(const char *key, const char *value);

/* Settings of git outside that name a file in the project: `core.hooksPath = hooks` in
 * ~/.gitconfig, or an included file. Git outside executes or obeys that file, so a jail must not
 * write to it. */

/* Appends the paths, absolute and each terminated by a NUL, that git's configuration names in the repository, or outside of any
 * if `repo` is NULL; and a git configuration with the user.name and user.email there, nothing if there is neither. Either may be
 * NULL. The answer is cached in `cache` until a file of the configuration changes; -1: not cached. */
int outward_find(const struct git *git, int cache, const char *top_path, const struct repo *repo,
                 struct str *ret_paths, struct str *ret_author, struct brig_error *err);
