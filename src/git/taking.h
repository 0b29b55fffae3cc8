/* SPDX-License-Identifier: MIT */
/* A git record that is being taken. Only for the files of take.h. */
#pragma once

#include "base/place.h"
#include "base/str.h"
#include "git/side.h"
#include "git/take.h"

enum take_kind { TAKE_REF, TAKE_HEAD, TAKE_INDEX, TAKE_STAGED, TAKE_STASHES, TAKE_CONFIG };

struct take_value {
    enum git_direction side;
    const char *text;
};

struct take_entry {
    enum take_kind kind;
    size_t tree;
    const char *name;
    size_t first, count; /* of its values */
};

struct take_tree {
    size_t repo;
    const char *path, *git_path, *folder; /* the last may be NULL */
    struct place place;
    int git_dir;
    bool locked;
    char head[SIDE_HEAD_MAX]; /* when everything was checked */
};

struct take_repo {
    const char *path, *pins;
    struct place place;
    int common;
    struct side now;
    struct str worktrees; /* what is checked out or rebased, as lines "\nbranch NAME\n" */
};

/* A new repository. */
struct take_placed {
    const char *path, *folder, *hash;
    struct place place;
    int top;
};

struct git_taking {
    const struct git *git;
    int record, storage;
    int copies; /* the directory with the copies of indexes */
    enum git_direction towards;
    bool again;  /* it was interrupted before */
    bool partly; /* the values are, or may be, of both sides */
    struct str text, locks;
    struct take_repo *repos;
    struct take_tree *trees;
    struct take_entry *entries;
    struct take_value *values;
    struct take_placed *placed;
    size_t placed_count;
    size_t repo_count, tree_count, entry_count, value_count;
};

/* Runs git: its exit status or a code. */
int take_run(const struct git_taking *t, const struct git_call *how, struct brig_error *err,
             const char *const *words);
#define GIT(t, how, err, ...) take_run((t), (how), (err), (const char *const[]){__VA_ARGS__, NULL})

#define INDEX_LOCK "index.lock"
#define INDEX_AHEAD "index.brig" /* becomes index.lock when its identity is written down */

/* ---- take_record.c ---- */

/* The other direction. */
enum git_direction take_other(enum git_direction towards);
/* Reads the record. */
int take_read(struct git_taking *t, struct brig_error *err);
/* Opens what it names: another directory at one of the places is refused. */
int take_open(struct git_taking *t, struct brig_error *err);
/* A value of an entry on one side: the Nth, or NULL. */
const char *take_value(const struct git_taking *t, const struct take_entry *entry,
                       enum git_direction side, size_t n);
/* The value of an entry before, and the one that it gets. */
const char *take_from(const struct git_taking *t, const struct take_entry *entry);
const char *take_to(const struct git_taking *t, const struct take_entry *entry);
/* The entry of a kind of a working tree, or NULL. */
const struct take_entry *take_find(const struct git_taking *t, size_t tree, enum take_kind kind);

/* ---- take_check.c ---- */

/* Removes a lock of an index, if it is ours. */
void take_drop_lock(const struct git_taking *t, const struct take_tree *tree);
/* The name of the copy of an index that comes. */
void take_index_name(const struct git_taking *t, size_t tree, char ret_name[32]);
/* Takes it, and waits some seconds for another process. */
int take_lock(struct git_taking *t, size_t number, struct brig_error *err);
int take_lock_all(struct git_taking *t, struct brig_error *err);
size_t take_id_length(const char *stash);
/* Whether a value is this stash; and the length of its object. */
bool take_is_stash(const char *text, const char *id);
/* The number of values of one side. */
size_t take_count_values(const struct git_taking *t, const struct take_entry *entry,
                         enum git_direction side);
/* The value of a key; "" if there is none. */
int take_read_config(const struct git_taking *t, const struct take_entry *entry,
                     const struct git_call *how, struct str *ret_value, struct brig_error *err);
/* Checks all entries. */
int take_check(struct git_taking *t, struct brig_error *err);

/* ---- take_placed.c: new repositories ---- */

/* It must be missing, or be as it was put there. */
int take_check_placed(const struct git_taking *t, const struct take_placed *placed,
                      struct brig_error *err);
/* Moves it there, or back. */
int take_move_placed(const struct git_taking *t, const struct take_placed *placed,
                     struct brig_error *err);
