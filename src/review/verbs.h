/* SPDX-License-Identifier: MIT */
/* Running brig's verbs as child processes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/str.h"

struct changes;
struct entry;

/* Which brig, for which jail. The texts are borrowed. */
struct verbs {
    const char *brig;
    const char *jail;        /* NULL: the one of the working directory */
    const struct str *paths; /* a list: only changes at these and below them; empty: all */
};

/* A verb that is running. It has no terminal, so it cannot ask. */
struct verb_child {
    pid_t pid; /* 0: none */
    int output;
    int errors; /* a file */
};

/* Starts `brig VERB [-j JAIL] OPTIONS… PATHS…`. `options` ends with NULL and may be NULL; `paths` is
 * a list of str_list_add() or NULL. `items` (NULL: none) is its input, see entry_list_item(). */
int verb_start(const struct verbs *verbs, const char *verb, const char *const *options,
               const struct str *paths, const struct str *items, struct verb_child *ret_child,
               struct brig_error *err);

/* Starts `brig diff` of an entry: of a file only as it was listed, otherwise it ends with VERB_CHANGED. */
#define VERB_CHANGED 1
int verb_start_diff(const struct verbs *verbs, const struct changes *changes,
                    const struct entry *entry, struct verb_child *ret_child,
                    struct brig_error *err);

/* Waits, and appends what the verb has written to standard error. Returns its exit status, 128 and
 * the number of a signal, or -1. */
int verb_wait(struct verb_child *child, struct str *errors);
/* Ends a verb that only reads, and waits. */
void verb_cancel(struct verb_child *child);

/* Runs a verb with this process's terminal, and waits. Returns the exit status. */
int verb_run_here(const struct verbs *verbs, const char *verb, const char *const *options,
                  const struct str *paths);
