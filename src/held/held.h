/* SPDX-License-Identifier: MIT */
/* Which files are held back: those that a run has created and that a program outside would execute. What becomes of them is
 * in changes/operation/hold.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "base/str.h"

struct held_rules {
    const char *const *unprotect; /* names that are not held back */
    size_t unprotect_count;
    bool report_only; /* leave files in place, and only report them */
};

/* Which of the held names exist in a directory. */
#define HELD_NAMES_MAX 256
struct held_set {
    uint64_t words[HELD_NAMES_MAX / 64]; /* a bit for each, in the order of names_next_held() */
};
bool held_set_has(const struct held_set *set, size_t index);
/* Looks which of them exist in a directory now. */
void held_look_at(int top, struct held_set *ret_set);
/* The same as a text without NUL, which another version of brig can read. */
void held_set_write(const struct held_set *set, struct str *text);
void held_set_read(const char *text, struct held_set *ret_set);
/* Removes what is not in such a text. */
void held_set_keep(struct held_set *set, const char *text);

/* A granted directory, as it was at the start of the run. */
struct held_root {
    int top;
    char *path;
    struct held_set existed;
};

/* Records the state of a directory, and keeps a duplicate of the fd. Release with
 * held_root_done(). */
int held_look(int top, const char *path, struct held_root *ret_root, struct brig_error *err);
void held_root_done(struct held_root *root);

/* Whether one of the names exists that did not at the start. */
bool held_has_new(const struct held_root *root);

struct names_held_name;

/* What holds back one name and appends a line about it to `notes`: hold_name() of changes/operation/hold.h. */
struct held_keeper {
    int (*hold)(int record, const struct held_root *root, const struct names_held_name *name,
                struct str *notes, struct brig_error *err); /* NULL: files are only reported */
    int record;                                             /* NAME.record of the jail */
};

/* Holds back each name in the directory that is new, and not excepted by the rules. A line about each is appended to `notes`.
 * Returns the first failure, after the others. */
int held_take(const struct held_root *root, const struct held_keeper *keeper,
              const struct held_rules *rules, struct str *notes);
