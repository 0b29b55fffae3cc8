/* SPDX-License-Identifier: MIT */
/* Copies files into a git repository by streaming them to `git fast-import`: one process for all,
 * names quoted, contents exact. Attributes, filters and line endings are not applied. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/str.h"
#include "git/git.h"

struct import {
    struct git_talk git;
    bool escaped; /* contents are for a terminal: see plain.h */
    struct str buffer;
};

/* Starts a commit on `ref` in the repository, an fd. End it with import_end() or import_abort(). */
int import_begin(const struct git *git, int repository, const char *ref, struct import *ret_import,
                 struct brig_error *err);
/* Waits until git has stored everything. */
int import_end(struct import *import, struct brig_error *err);
/* Kills git. Accepts an import that was not started (all zero) or has ended. */
void import_abort(struct import *import);

/* The functions below add, copy or delete a path in the commit. `top` is put before `path`, and is not
 * changed; in `path`, names that git refuses get a '%': see import_maps(). */

/* Adds a regular file; of its mode, only S_IXUSR counts. If it shrinks while it is read, it is filled up; if it grows, it is cut. */
int import_file(struct import *import, const char *top, const char *path, mode_t mode, int fd,
                struct brig_error *err);
/* Adds a file with this content, or a symbolic link with this target: `mode` has the type. */
int import_text(struct import *import, const char *top, const char *path, mode_t mode,
                const void *bytes, size_t length, struct brig_error *err);
/* Deletes a path and what is below it; it need not exist. */
int import_delete(struct import *import, const char *top, const char *path, struct brig_error *err);
/* Copies a directory that exists, without changing any name. */
int import_copy(struct import *import, const char *from, const char *to, struct brig_error *err);

/* Git refuses a path with a component ".git" in any case, and a link named ".gitmodules". Such a
 * component, and one that is the same with '%' at its end, gets one more '%'. Whether that applies
 * to a path of this type. */
bool import_maps(const char *path, mode_t type);
/* Appends the path in git's form. */
void import_append_mapped(struct str *out, const char *path, mode_t type);
