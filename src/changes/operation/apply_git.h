/* SPDX-License-Identifier: MIT */
/* What an operation that applies files takes of a jail's work in git: the decision about each item. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

#include "changes/operation/operation.h"
#include "git/item.h"

struct hand_over;
struct inventory_item;
struct layers;

struct apply_git {
    struct operation_git git;
    bool (*chosen)(void *data, const struct inventory_item *item); /* NULL: all items are */
    bool risky; /* also what is flagged; else it needs a yes to the question: */
    bool (*ask)(void *data, const struct inventory_item *item); /* NULL: no */
    void *data;
};

/* Call it when the files are planned, before operation_run(): decides about branches, HEAD and index of the reviewed
 * directories among the layers that are `wanted`, by their index (NULL: all), and writes the git record. HEAD, the index and
 * the branch that is checked out move only if no file that they change is left in the jail. *ret_hand_over, which may be NULL
 * afterwards, is for hand_over_end() when the operation was run; free it with hand_over_free(). */
int apply_git_plan(struct operation *operation, const struct layers *layers, const bool *wanted,
                   const struct apply_git *options, struct hand_over **ret_hand_over,
                   struct brig_error *err);
