/* SPDX-License-Identifier: MIT */
/* A private git directory: what a jail gets instead of the repository's own.
 *
 * It is built anew for every run in a directory of the jail's storage:
 *   private/  mounted in the jail, where git writes to it; untrusted as soon as the run has begun
 *   base/     copies of the same refs, index and config, never visible in a jail: what the jail began with
 *   link      the text of the `.git` file in the jail, where `.git` is a file
 *   about     which working tree and repository it belongs to, for a later run that completes a transfer
 * Objects are not copied: info/alternates names the real object directories, which the jail sees read-only
 * at fixed paths. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "guard/git.h"
#include "guard/repo.h"

#define PRIVATE_PENDING "pending-"     /* names of what private_keep() puts aside */
#define PRIVATE_MOUNTS "/run/brig/git" /* fixed paths in the jail begin with it */

struct private_git {
    unsigned number;
    struct repo repo; /* REPO_NONE: the working tree has none */
    int folder;       /* of the storage: the directory with the parts above */
    int base;         /* in it */
    int top;          /* the working tree */
    char *top_path;
    struct git_sealed sealed;     /* its private directory and object directories */
    int lfs[GIT_OBJECT_DIRS_MAX]; /* beside each object directory the LFS objects, or -1 */
    uint64_t signature;           /* of the private directory when it was built */
    bool resumed;                 /* an earlier run's rebase or merge goes on in it */
    uint64_t fetched;             /* and when private_is_to_fetch() last said so */
};

/* Builds one for a working tree in `folder`, an empty directory; with an empty private directory if the
 * repository is REPO_NONE. Config values that contain credentials are left out, and a line about each is
 * appended to `notes`. `cache` is a directory of the storage that keeps what git has said about a config
 * file or an index that has not changed since, or -1. If an earlier run has left a rebase or merge unfinished
 * in `storage`, it goes on. Takes the repository over. Release with private_done(). */
int private_build(const struct git *git, int folder, int storage, int cache, unsigned number,
                  int top, struct repo *repo, struct private_git *ret_private, struct str *notes,
                  struct brig_error *err);

/* Opens one that an earlier run has left behind. */
int private_open(const struct git *git, int folder, unsigned number,
                 struct private_git *ret_private, struct brig_error *err);
void private_done(struct private_git *private_git);

/* Says that everything was transferred, so that no later run opens it again; and whether it is still to be. */
void private_close(const struct private_git *private_git);
bool private_is_open(int folder);

/* One around a git directory that a jail has made in a working tree: as if it had been the private directory of
 * a tree without a repository. */
int private_wrap(int folder, int dir, int top, struct private_git *ret_private,
                 struct brig_error *err);

/* Puts the private directory aside, with the rebase or merge that goes on in it, for the next run in the same
 * working tree. */
int private_keep(const struct private_git *private_git, int storage, struct brig_error *err);

/* Whether refs, HEAD, index or config of the private directory may have changed since it was built. */
bool private_has_changed(const struct private_git *private_git);

/* Whether they may have changed since it was built, and since this was last true. */
bool private_is_to_fetch(struct private_git *private_git);

/* Where the private directory began empty and is a repository now: makes a new repository in the storage, whose config and hooks are
 * those of a fresh `git init`, so that the private one can be fetched into it. 1, or 0 if the private
 * directory is not a repository. */
int private_recreate(const struct git *git, struct private_git *private_git,
                     struct brig_error *err);

/* Puts the repository that was made so into the working tree, where `.git` must be missing or an empty directory. Does nothing
 * if none was made. */
int private_place(struct private_git *private_git, struct brig_error *err);

/* The paths in the index of a repository that are submodules, each ended by a NUL. */
int private_list_links(const struct git *git, int cache, const struct repo *repo,
                       struct str *ret_links, struct brig_error *err);
