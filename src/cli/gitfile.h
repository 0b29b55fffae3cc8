/* SPDX-License-Identifier: MIT */
/* The few files of git that say where a repository is, as text. Pure: no allocation, nothing of the
 * system is asked. What is not exactly as git writes it is refused. */
#pragma once

#include <stddef.h>

#define GITFILE_LINK_MAX 4096          /* bytes of a file with one path in it */
#define GITFILE_CONFIG_MAX (64 * 1024) /* bytes of a config file */
#define GITFILE_PATH_SIZE GITFILE_LINK_MAX

/* Of a `.git` file, "gitdir: PATH": 1 and the path, or 0. */
int gitfile_parse_gitdir(const char *text, size_t length, char ret_path[GITFILE_PATH_SIZE]);

/* Of the files `gitdir` and `commondir`, which hold a path and nothing else: the same. */
int gitfile_parse_path(const char *text, size_t length, char ret_path[GITFILE_PATH_SIZE]);

/* Of a config file: the last core.worktree. 0 also if there is none, if the file is not understood,
 * or if it includes another, which might say something else. */
int gitfile_parse_worktree(const char *text, size_t length, char ret_path[GITFILE_PATH_SIZE]);
