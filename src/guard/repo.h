/* SPDX-License-Identifier: MIT */
/* Finds the git directory of a working tree by the files that point to it: `.git`, `commondir`, `gitdir`
 * and `info/alternates`. No other file of git is read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "guard/git.h"

#define REPO_POINTER_MAX 4096 /* bytes of a file that contains one path */
#define REPO_OBJECTS_MAX GIT_OBJECT_DIRS_MAX

/* Of a `.git` file, "gitdir: PATH": 1 and the path, or 0 if it is not as git writes it. Pure. */
int repo_parse_gitdir(const char *text, size_t length, char ret_path[REPO_POINTER_MAX]);
/* The same for files that contain a path and nothing else. Pure. */
int repo_parse_path(const char *text, size_t length, char ret_path[REPO_POINTER_MAX]);

enum repo_kind {
    REPO_NONE,      /* no `.git`, or an empty directory */
    REPO_DIRECTORY, /* `.git` is the git directory */
    REPO_FILE,      /* `.git` is a file: a linked worktree or a submodule */
    REPO_FOREIGN,   /* `.git` is something else, or names a directory that does not name it back */
};

struct repo {
    enum repo_kind kind;
    int git_dir;    /* of this working tree; -1 unless one was found */
    int common;     /* where refs, objects and config are; an fd of its own */
    char *git_path; /* the paths of both, as the kernel has them */
    char *common_path;
    const char *why; /* REPO_FOREIGN: what is wrong, for a message; constant */
};
#define REPO_INIT                                                                                  \
    (struct repo)                                                                                  \
    {                                                                                              \
        .git_dir = -1, .common = -1                                                                \
    }

/* Looks at `.git` in a directory. Files that point must belong to the owner. Release with repo_done(). */
int repo_find(int top, uid_t owner, struct repo *ret_repo, struct brig_error *err);
void repo_done(struct repo *repo);

/* Whether git takes a directory for a git directory: it has HEAD, objects and refs. */
bool repo_has_parts(int git_dir);

/* Whether a directory has no entries. */
bool repo_is_empty(int dir);

/* The object directories: the repository's own and all that its alternates name. The caller closes
 * them. */
int repo_objects(const struct repo *repo, int ret_fds[REPO_OBJECTS_MAX], size_t *ret_count,
                 struct brig_error *err);

/* The path that a pointer file of the owner's contains: 1, or 0 if there is none. */
int repo_read_path(int dir, const char *name, uid_t owner, char ret_path[REPO_POINTER_MAX]);

/* The path of an open directory as the kernel has it, for the caller to free. */
int repo_path_of(int fd, char **ret_path, struct brig_error *err);
