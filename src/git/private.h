/* SPDX-License-Identifier: MIT */
/* A private git directory, which a jail gets instead of the repository's real one.
 *
 * For every run it is built in a directory of the jail's storage:
 *   private/  mounted in the jail, where git writes to it; untrusted from the start of the run
 *   base/     the initial refs, index and config of the jail, never visible in a jail
 *   link      the contents of the `.git` file in the jail, if `.git` is a file
 *   about     the working tree and repository, for a later run that completes a transfer
 * Objects are not copied: info/alternates names the real object directories, which the jail sees
 * read-only at fixed paths. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "git/git.h"
#include "git/repo.h"

#define PRIVATE_PENDING "pending-"     /* prefix of directories that private_keep() keeps */
#define PRIVATE_MOUNTS "/run/brig/git" /* prefix of fixed paths in the jail */

struct private_git {
    unsigned number;
    struct repo repo; /* REPO_NONE: the working tree has no repository */
    int folder;       /* the directory in the storage with the parts above */
    int base;         /* `base` in folder */
    int top;          /* the working tree */
    char *top_path;
    struct git_sealed sealed;     /* the private directory and the object directories */
    int lfs[GIT_OBJECT_DIRS_MAX]; /* the LFS objects beside each object directory, or -1 */
    uint64_t signature;           /* of the private directory when it was built */
    bool resumed;                 /* it continues a rebase or merge of an earlier run */
    uint64_t fetched;             /* when private_is_to_fetch() last returned true */
};

/* Builds a private git directory for a working tree in `folder`, an empty directory. It is empty if
 * the repository is REPO_NONE. Config values that contain credentials are left out, and a line
 * about each is appended to `notes`. `cache` is a directory of the storage that caches git's
 * answers about a config file or an index until it changes, or -1. If an earlier run has left an
 * unfinished rebase or merge in `storage`, it is continued. Takes ownership of the repository.
 * Release with private_done(). */
int private_build(const struct git *git, int folder, int storage, int cache, unsigned number,
                  int top, struct repo *repo, struct private_git *ret_private, struct str *notes,
                  struct brig_error *err);

/* Opens a private git directory that an earlier run has left. */
int private_open(const struct git *git, int folder, unsigned number,
                 struct private_git *ret_private, struct brig_error *err);
void private_done(struct private_git *private_git);

/* Marks it as transferred, so that no later run opens it again. private_is_open() tells whether it
 * still has to be transferred. */
void private_close(const struct private_git *private_git);
bool private_is_open(int folder);

/* Wraps a git directory that a jail has created in a working tree, as if it were the private
 * directory of a tree without a repository. */
int private_wrap(int folder, int dir, int top, struct private_git *ret_private,
                 struct brig_error *err);

/* Gives a wrapped directory the object directories of other private directories that its alternates
 * name, as those of a clone that the jail has made do. `dest` is the path of `from` in the jail. */
int private_borrow(struct private_git *private_git, const struct private_git *from,
                   const char *dest, struct brig_error *err);

/* Keeps the private directory, with its unfinished rebase or merge, for the next run in the same
 * working tree. */
int private_keep(const struct private_git *private_git, int storage, struct brig_error *err);
/* Opens it for a working tree; -1 if there is none. */
int private_open_kept(int storage, int top);

/* Names the object directories of the repository anew, in a private directory that an earlier run
 * has written and that no run uses. */
int private_refresh(const struct private_git *private_git, struct brig_error *err);

/* Identifies the state of refs, HEAD, index and config of the private directory. */
uint64_t private_sign(const struct private_git *private_git);
/* The same of a folder that is not opened; 0 if it has no private git directory. */
uint64_t private_sign_folder(int folder);

/* Whether refs, HEAD, index or config of the private directory may have changed since the build. */
bool private_has_changed(const struct private_git *private_git);

/* Whether they may have changed since it was built, and since this function last returned true. */
bool private_is_to_fetch(struct private_git *private_git);

/* If the private directory was empty at first and is a repository now: creates a new repository in
 * the storage, with the config and hooks of a fresh `git init`, to fetch the private one into.
 * Returns 1, or 0 if the private directory is not a repository. */
int private_recreate(const struct git *git, struct private_git *private_git,
                     struct brig_error *err);

#define PRIVATE_NEW "new"        /* in the folder: that repository, until it is placed */
#define PRIVATE_MADE "recreated" /* says that there was one */
/* Whether there is or was one. */
bool private_is_made(const struct private_git *private_git);

/* Moves the new repository into the working tree, where `.git` must be missing or an empty
 * directory. Does nothing if there is no new repository. */
int private_place(struct private_git *private_git, struct brig_error *err);
/* When it was placed, by a git record. */
int private_find_placed(struct private_git *private_git, struct brig_error *err);
/* Moves the contents of a git directory, HEAD last or first: without it, git does not take it for a repository. It can be
 * repeated after a kill. */
int private_move(int from, int to, bool head_last, struct brig_error *err);

/* Lists the submodule paths in the index of a repository, each terminated by a NUL. */
int private_list_links(const struct git *git, int cache, const struct repo *repo,
                       struct str *ret_links, struct brig_error *err);
