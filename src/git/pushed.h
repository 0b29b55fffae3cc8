/* SPDX-License-Identifier: MIT */
/* A remote may be a path of this machine, of which the jail sees a copy: git inside says that a push
 * succeeded, and outside nothing has changed. */
#pragma once

#include "git/private.h"

/* Appends a message about each remote outside that is a path, to which the jail has pushed and which
 * outside lacks what was pushed. Reads one file if no remote is a path. */
int pushed_note(const struct git *git, const struct private_git *private_git, struct str *notes,
                struct brig_error *err);

/* The path of a remote's URL, relative to the working tree unless absolute; NULL if it is no path.
 * Pure. */
const char *pushed_path(const char *url);
