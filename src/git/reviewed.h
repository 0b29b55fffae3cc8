/* SPDX-License-Identifier: MIT */
/* The private git directories of reviewed directories. Their files are copy-on-write (--review), so
 * branches, HEAD and the index outside must not move before the files do. So the private git
 * directory stays in the jail's storage, as review-ID with the parts that private.h describes:
 * concurrent runs share it, as they share the files, and the next run continues with it. At the end
 * of a run only refs/brig/JAIL/ID/ is written. A hand-over (guard.h) is an ordinary one (plan.h), which
 * leaves the directory: its base/ follows, and what was not taken waits. A directory in which nothing
 * waits is made anew by the next run. Further files in it:
 *   review   the number of its mounts, the namespace of its refs, and the reviewed directory
 *   lock     locked by every run that uses it, shared
 *   seen     what the last look has found (seen.h)
 *   record/  while it is listed: copies of the index */
#pragma once

#include <stdint.h>

#include "base/files.h"
#include "git/run.h"

#define REVIEWED_PREFIX "review-"

/* Opens the private git directory of a working tree, or builds it. Takes ownership of the
 * repository. Fills in tree->private_git and tree->reviewed. */
int reviewed_open(struct guard *guard, const char *root, struct tree *tree, struct repo *repo,
                  struct str *notes, struct brig_error *err);

/* Whether git in the jail has changed something since the last fetch. */
bool reviewed_has_changed(const struct tree *tree);

/* Fetches the commits of the run into refs/brig and moves nothing. */
int reviewed_fetch(const struct guard *guard, const struct tree *tree, struct str *notes,
                   struct brig_error *err);

/* Releases it at the end of a run, and removes it if git has changed nothing that counts and no other run uses
 * it. */
void reviewed_release(const struct guard *guard, struct tree *tree);

/* Whether the private git directory of this name has something that guard_apply() would take. */
bool reviewed_waits(int storage, const char *name);

/* ---- for those who hand over what they have (handover.c) ---- */

#define REVIEWED_LOCK "review.lock" /* in the storage: held while one is opened, built or removed */
#define REVIEWED_NAME_SIZE (FILES_ID_MAX + 32)

/* Takes a lock by flock(): an fd, or -1 with errno. */
int reviewed_lock_file(int dir, const char *name, int how);

/* The private git directories of a reviewed directory, those of submodules first. */
struct reviewed_found {
    char name[REVIEWED_NAME_SIZE];
    size_t length; /* of the path of the working tree */
};
int reviewed_find(int storage, const char *root, struct reviewed_found **ret_found,
                  size_t *ret_count, struct brig_error *err);
/* Opens one of them. *ret_space is the namespace of its refs. */
int reviewed_open_private(const struct guard *guard, const char *name, int folder,
                          struct private_git *ret_private, char *ret_space, struct brig_error *err);

void reviewed_show(int storage, const char *name, const char *option, struct str *notes);
