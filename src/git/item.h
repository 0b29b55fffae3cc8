/* SPDX-License-Identifier: MIT */
/* What a jail has done in git, as items that reach the user's repository one by one, or stay. The hand-over asks about each
 * item; whoever answers (a person, the rule of --review=auto, the default of a run) sees the old and the new value. */
#pragma once

#include "base/str.h"
#include "git/git.h"

enum git_item_kind {
    GIT_ITEM_REF,      /* a branch, tag or note; no branch that the working tree has checked out */
    GIT_ITEM_WORKTREE, /* HEAD, the index and the checked-out branch of a working tree */
    GIT_ITEM_STASH,    /* a stash that was made (`new`), or used or dropped (`old`) */
    GIT_ITEM_CONFIG,   /* one setting: of a remote, or the upstream of a branch */
    GIT_ITEM_PLACED,   /* a new repository, with all that is in it */
};

/* All is borrowed, and valid until choose() returns. */
struct git_item {
    enum git_item_kind kind;
    const char *top;  /* the working tree: absolute, without links */
    const char *name; /* the full name of a ref, the text of a stash, the key of a setting, or "" */
    /* The object of a ref or stash, the commit that HEAD leads to, or the value of a setting; NULL:
     * none. Objects that are new are in the user's repository already. */
    const char *old, *new;
    /* Of a working tree: "refs/heads/NAME", or the object of a detached HEAD; and the trees of the
     * index, NULL if there is none or it has conflicts: then it follows HEAD. */
    const char *old_head, *new_head;
    const char *old_tree, *new_tree;
    /* Why the item itself needs a look, whatever its commits are: it takes something away; or NULL. Constant. */
    const char *unusual;
    /* The commits alone are judged, also of these objects, a list; or NULL. */
    const struct str *others;
    /* To look at the commits: git, and how it is called for the user's repository and for base/,
     * the refs on which the user and the jail agree (they include refs/remotes). */
    const struct git *git;
    struct git_call outside, base;
};

/* Decides about an item: 1 to take it; 0 to leave it, with the reason, a clause such as "it changes
 * Makefile", appended to `reason`, or without one, and then nothing is said; or a code, which ends
 * the hand-over. NULL takes everything. */
struct git_chooser {
    int (*choose)(void *data, const struct git_item *item, struct str *reason,
                  struct brig_error *err);
    void *data;
    /* Of one that takes everything, and only looks: called at the end of each working tree. Else NULL. */
    void (*end)(void *data);
};
