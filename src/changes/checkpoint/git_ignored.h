/* SPDX-License-Identifier: MIT */
/* What git ignores in a tree: the host's git lists it, in the repository of the tree and in each nested one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "base/sha256.h"
#include "base/str.h"
#include "git/git.h"

struct git_ignored;

/* Starts with an empty list: nothing is ignored. Release with git_ignored_free(). */
struct git_ignored *git_ignored_new(const struct git *git);
void git_ignored_free(struct git_ignored *ignored);

/* Adds what git ignores in a directory with this path in the tree, "" for the top. Until git_ignored_leave() with the same
 * path, only this list counts. A directory that is in no repository has an empty list. */
int git_ignored_enter(struct git_ignored *ignored, int dir, const char *path,
                      struct brig_error *err);
/* Drops the lists of directories that do not contain this path. */
void git_ignored_leave(struct git_ignored *ignored, const char *path);
/* Whether git ignores exactly this path; what is below an ignored directory is not asked for. */
bool git_ignored_has(const struct git_ignored *ignored, const char *path);

/* The number of bytes in the regular files of an ignored entry. The path of one that is not empty, relative to the
 * directory, is appended to `ret_sample`, if there is one. */
int git_ignored_measure(int dir, const char *name, uint64_t *ret_bytes, struct str *ret_sample,
                        struct brig_error *err);

/* Whether git can read all its rules in a tree, and does not block on a FIFO: 1, 0 or a code. */
int git_ignored_can_ask(int dir, struct brig_error *err);
/* The same for the git directory of a nested repository. */
bool git_ignored_is_sound(int dir, uid_t owner);

/* Hashes the states of the files in the git directory of a tree that decide what is ignored. */
void git_ignored_states(int dir, uid_t owner, char ret_hash[SHA256_HEX_LENGTH + 1]);
