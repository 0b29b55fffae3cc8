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

#define PRIVATE_MOUNTS "/run/brig/git" /* fixed paths in the jail begin with it */

struct private_git {
    unsigned number;
    enum repo_kind kind;
    int folder;       /* of the storage: the directory with the parts above */
    int base;         /* in it */
    int top;          /* the working tree */
    char *top_path;
    char *git_path;    /* the repository's, NULL if there is none */
    char *common_path;
    dev_t top_dev, git_dev; /* what these paths must still lead to later */
    ino_t top_ino, git_ino;
    struct git_sealed sealed; /* its private directory and object directories */
    uint64_t signature;       /* of the private directory when it was built */
};

/* Builds one for a working tree in `folder`, an empty directory; with an empty private directory if the
 * repository is REPO_NONE. Config values that contain credentials are left out, and a line about each is
 * appended to `notes`. `cache` is a directory of the storage that keeps what git has said about a config
 * file or an index that has not changed since, or -1. Release with private_done(). */
int private_build(const struct git *git, int folder, int cache, unsigned number, int top,
                  const struct repo *repo, struct private_git *ret_private, struct str *notes,
                  struct brig_error *err);

/* Opens one that an earlier run has left behind. */
int private_open(int folder, struct private_git *ret_private, struct brig_error *err);
void private_done(struct private_git *private_git);

/* Whether refs, HEAD, index or config of the private directory may have changed since it was built. */
bool private_has_changed(const struct private_git *private_git);

/* The paths in the index of a repository that are submodules, each ended by a NUL. */
int private_list_links(const struct git *git, int cache, int top, const struct repo *repo,
                       struct str *ret_links, struct brig_error *err);
