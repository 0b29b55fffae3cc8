/* SPDX-License-Identifier: MIT */
/* Where the repository of a directory is whose `.git` is a file that names it: a linked worktree or
 * a submodule. Such a file may have been planted by an earlier run, to have something else granted to
 * the next: so the repository must name the directory back. No git is run. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/path.h"

enum worktree_kind {
    WORKTREE_NONE,    /* `.git` is no such file */
    WORKTREE_LINKED,  /* it names a repository which names the directory back */
    WORKTREE_FOREIGN, /* it names something else */
};

struct worktree {
    enum worktree_kind kind;
    char git_dir[PATH_LENGTH_MAX + 1]; /* absolute and free of links; empty if there is none */
    char common[PATH_LENGTH_MAX + 1];  /* LINKED: what has to be granted, git_dir or above it */
    const char *why;                   /* FOREIGN: in words, static */
};

/* Looks at `.git` in a directory. All files that are asked must belong to `owner`. */
void worktree_find(int dir_fd, uid_t owner, struct worktree *ret_worktree);

/* Whether a directory has what git asks of a repository. */
bool worktree_is_git_dir(int dir_fd);

/* Whether it has, or its config says that it had: a run can remove all but the config. */
bool worktree_was_git_dir(int dir_fd);

/* The path of an open file or directory, if it still has one: 0 or -1. */
int worktree_path_of(int fd, char ret_path[PATH_LENGTH_MAX + 1]);
