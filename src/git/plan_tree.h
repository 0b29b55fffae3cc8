/* SPDX-License-Identifier: MIT */
/* One working tree while it is planned what of it is taken. Only for the files of plan.h. */
#pragma once

#include "base/path.h"
#include "git/plan.h"

/* A ref that differs, inside, from the initial state. */
struct plan_ref {
    const char *name, *old, *new; /* NULL: there is none */
    int chosen;                   /* the answer about it; -1: not asked yet */
    bool moves, current;          /* it is checked out outside, so it moves with HEAD and index */
    const char *unusual;          /* what it takes away, or NULL */
    struct str why;
};

/* The record while it is made. */
struct plan {
    const struct plan_options *options;
    struct str record, placed; /* the second comes first */
    size_t tree_count;
    struct str moved; /* "COMMON DIRECTORY\nREF", which a working tree before has moved */
};

/* One working tree while it is looked at. */
struct plan_tree {
    struct plan *plan;
    struct transfer t;
    const struct private_git *p;
    struct plan_report *report;
    const char *folder;
    bool running, unsearched;
    bool
        lists; /* nothing is taken: each answer counts as yes, so that all that can move is asked about */
    struct side outside, remotes;
    struct str worktrees;
    struct plan_ref *refs;
    size_t ref_count;
    bool same_index; /* outside it is the initial one, or the one inside */
    bool staged;     /* the index inside differs from the initial one */
    bool goes_on;    /* a rebase or merge inside: HEAD and index stay */
    bool takes;      /* the working tree is taken: HEAD, index, current branch */
    int chosen;      /* the answer about it; -1: not asked yet */
    char index_path[2][PATH_LENGTH_MAX];
    char hash[2][65], commit[2][REFS_ID_MAX + 1]; /* of the copies of the index */
};

/* ---- plan_decide.c: what is taken ---- */

/* Counts a name of a tree in a size_t, for `each` of a call; false if there are too many. */
bool plan_count_file(void *count, const char *name, size_t length);
/* The short name of a ref, for a message. */
struct str_shown plan_shown(const char *name);
/* Whether a branch is checked out, rebased or bisected in another worktree. */
bool plan_is_elsewhere(const struct plan_tree *tree, const char *name);
/* The ref among those that differ; NULL if it does not. */
const struct plan_ref *plan_find_ref(const struct plan_tree *tree, const char *name);
/* Asks the chooser about an item: its answer, see item.h. */
int plan_ask(const struct plan_tree *tree, struct git_item *item, struct str *why,
             struct brig_error *err);
/* Lists the refs that differ and that the user does not have already. */
int plan_list_refs(struct plan_tree *tree, struct brig_error *err);
/* Decides which refs move, and whether HEAD and the index do. */
int plan_decide(struct plan_tree *tree, struct brig_error *err);
/* Leaves out what git would refuse: *ret_refused. */
int plan_preflight(struct plan_tree *tree, bool *ret_refused, struct brig_error *err);
/* The commit that HEAD of a side leads to, or NULL. */
const char *plan_commit_of(const struct side *side, const char *head);

/* ---- plan_index.c: the index that comes with HEAD ---- */

/* Calls git for one of the copies of the index, which are in the directory of the record. */
struct git_call plan_on_copy(const struct plan_tree *tree, int number);
/* Makes both copies. Returns 1 if the new one cannot be made, with the reason. */
int plan_make_index(struct plan_tree *tree, const char **ret_why, struct brig_error *err);

/* ---- plan_tell.c: messages ---- */

/* The summary, prepared for another part. */
struct str *plan_next_part(struct plan_tree *tree);
/* "2 files staged". */
void plan_summarise_staged(struct plan_tree *tree);
/* What has become of each ref. */
void plan_tell_refs(struct plan_tree *tree);
/* What stays in the jail: a rebase that goes on, and the like. */
void plan_tell_state(struct plan_tree *tree);
