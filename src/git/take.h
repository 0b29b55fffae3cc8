/* SPDX-License-Identifier: MIT */
/* Moves what a git record lists: refs, HEAD, index, stashes and settings of the user's repositories, from their old values
 * to the new ones or back. Nothing else in brig moves any of them.
 *
 * The record is the file "git" in a directory of the storage, written once, before anything moves (plan.h). Each of its
 * entries has an old and a new value. Which of the two is there is the state, so progress is never written: continuing after
 * a kill, reverting, undo and redo are this one function with a direction. Values move only if all are at one of the two;
 * with any other value nothing is changed. */
#pragma once

#include "git/git.h"

/* A record has these lines (base/record.h), each entry followed by its values, `old` and `new`:
 *   version   of the format, 1
 *   repo      the common directory of a repository, and its `place`
 *   pins      where objects of this repository are kept that would be lost: refs/brig/JAIL/ID
 *   tree      a working tree, of the last `repo`
 *   gitdir    its git directory, and the `place` of that
 *   private   the folder of its private git directory, a name in the storage, whose base/ follows
 * and of that tree:
 *   ref       a full name: objects
 *   head      "refs/heads/NAME", or an object
 *   index     the hash of its entries; a copy lies beside the record as index-N.old and index-N.new, without which
 *             there is no index. N counts trees
 *   staged    the commits of what these indexes have staged: their objects are kept
 *   stashes   the whole list, newest first: "OBJECT TEXT"
 *   config    a key: its values
 * and of none:
 *   placed    a working tree without a repository, and its `place`: the jail has made one, which is put there as a whole.
 *             `new` is the hash of all that it has, and
 *   from      the folder of its private git directory, a name in the storage. It has the repository before; after an undo that is
 *             in the directory of the record, as placed-N
 * The record of an undo is that of another operation, with two lines at its beginning:
 *   of        the directory of that one, beside its own: it has the copies of the indexes
 *   reversed  1: old and new have changed places; without it, it is the undo of an undo */
#define GIT_RECORD "git"
#define GIT_RECORD_VERSION 1
#define GIT_RECORD_LOCKS                                                                           \
    "locks" /* beside it while it is taken: the locks of indexes, by identity */

enum git_direction { GIT_TO_OLD, GIT_TO_NEW };

/* A hand-over in progress: it has the locks of all its indexes. */
struct git_taking;

/* Takes the locks, for which it waits some seconds, and checks each entry. Fails with BRIG_E_STATE, having changed nothing,
 * if a value is neither the old nor the new one, a branch is checked out in another working tree, or a rebase goes on.
 * `storage` has the private git directories, whose base/ follows; -1: none follows. */
int git_taking_begin(const struct git *git, int record, int storage, enum git_direction towards,
                     struct git_taking **ret_taking, struct brig_error *err);
/* Whether it was interrupted before, so that some values may have moved. */
bool git_taking_again(const struct git_taking *taking);
/* Moves everything. If git refuses something, all is moved back. */
int git_taking_move(struct git_taking *taking, struct brig_error *err);
/* Drops the locks, and frees it; accepts NULL. */
void git_taking_end(struct git_taking *taking);

/* The three in one. */
int git_take(const struct git *git, int record, int storage, enum git_direction towards,
             struct brig_error *err);

/* Whether it was begun and not ended. */
bool git_was_interrupted(int record);

/* Whether a line of a record names a working tree. */
bool git_record_names_tree(const char *key);

/* Writes the record of the undo of an operation, whose directory `name` is `from`, in the directory `to` beside it: 1, or 0 if
 * there is no record. Fails with BRIG_E_STATE if it cannot be reversed. */
int git_record_reverse(int from, const char *name, int to, struct brig_error *err);

/* The hash of what a repository has: refs, HEAD, index, configuration, hooks. */
int git_hash_repository(const struct git *git, int git_dir, char ret_hash[65],
                        struct brig_error *err);

/* The hash of an index: of entries, flags and what is to be added. `index` is the path of the file, NULL: the repository's
 * own. It does not depend on the times of files, which `git status` writes. */
int git_hash_index(const struct git *git, int git_dir, const char *index, char ret_hash[65],
                   struct brig_error *err);
