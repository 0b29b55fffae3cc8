/* SPDX-License-Identifier: MIT */
/* Finds the git directory of a working tree through the pointer files `.git`, `commondir`, `gitdir`
 * and `info/alternates`. No other file of git is read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "git/git.h"

#define REPO_POINTER_MAX 4096 /* bytes of a file that contains one path */
#define REPO_OBJECTS_MAX GIT_OBJECT_DIRS_MAX

/* Parses a `.git` file, "gitdir: PATH": 1 and the path, or 0 if git would not have written it.
 * Pure. */
int repo_parse_gitdir(const char *text, size_t length, char ret_path[REPO_POINTER_MAX]);
/* Parses a file that contains only a path, in the same way. Pure. */
int repo_parse_path(const char *text, size_t length, char ret_path[REPO_POINTER_MAX]);

enum repo_kind {
    REPO_NONE,      /* no `.git`, or an empty directory */
    REPO_DIRECTORY, /* `.git` is the git directory */
    REPO_FILE,      /* `.git` is a file: a linked worktree or a submodule */
    REPO_FOREIGN,   /* `.git` has another type, or names a directory that does not point back */
};

struct repo {
    enum repo_kind kind;
    int git_dir;    /* of this working tree, or -1 */
    int common;     /* with refs, objects and config; a separate fd */
    char *git_path; /* the paths of both, from the kernel */
    char *common_path;
    const char *why; /* REPO_FOREIGN: the reason, for a message; constant */
};
#define REPO_INIT                                                                                  \
    (struct repo)                                                                                  \
    {                                                                                              \
        .git_dir = -1, .common = -1                                                                \
    }

/* Examines `.git` in a directory. Pointer files must belong to `owner`. Release with
 * repo_done(). */
int repo_find(int top, uid_t owner, struct repo *ret_repo, struct brig_error *err);
void repo_done(struct repo *repo);

/* Whether git accepts a directory as a git directory: it has HEAD, objects and refs. */
bool repo_has_parts(int git_dir);

/* The object directories: the repository's and all its alternates. The caller closes them. */
int repo_objects(const struct repo *repo, int ret_fds[REPO_OBJECTS_MAX], size_t *ret_count,
                 struct brig_error *err);

/* In a jail, object directories of the user's repositories are below this path, with their paths
 * outside. */
#define REPO_BORROWED "/run/brig/objects"
#define REPO_ALTERNATES_MAX 65536 /* bytes of a file info/alternates */

/* Whether this is the path of a list of alternates. Pure. */
bool repo_is_alternates(const char *path);
/* Appends a list of alternates that was written in a jail, as it is right outside. Pure. */
void repo_alternates_outside(const char *inside, struct str *ret_text);

/* Reads the path in a pointer file that belongs to `owner`: 1, or 0 if there is none. */
int repo_read_path(int dir, const char *name, uid_t owner, char ret_path[REPO_POINTER_MAX]);

/* The kernel's path of an open directory, for the caller to free. */
int repo_path_of(int fd, char **ret_path, struct brig_error *err);
