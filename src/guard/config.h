/* SPDX-License-Identifier: MIT */
/* Git configuration that crosses the border of a jail: what goes in has no credentials, and of what comes
 * out only new remotes and the upstreams of branches are taken over. */
#pragma once

#include <stdbool.h>

#include "guard/git.h"

/* Appends lines about what was left out, a NUL, and the text of `config` in the directory `common` without
 * credentials. A temporary copy is made in `folder`. */
int config_sanitise(const struct git *git, int common, int folder, struct str *ret_answer,
                    struct brig_error *err);

/* What a value with credentials becomes: 1 and the URL without user and password, 0 if it has none. Pure. */
int config_strip_url(const char *url, struct str *ret_url);

/* Whether a new setting may be taken over from a jail: KEY as `git config --list` prints it. Pure. */
bool config_may_cross(const char *key, const char *value);
