/* SPDX-License-Identifier: MIT */
/* Git configuration that crosses the border of a jail: what goes in has no credentials, and of what comes
 * out only new remotes and the upstreams of branches are taken over. */
#pragma once

#include <stdbool.h>

#include "guard/git.h"

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
