/* SPDX-License-Identifier: MIT */
/* Prints what a jail has done in git and what has not been taken: for each branch, tag, stash and index the commits that it
 * would make reachable, with their files and marks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/str.h"

struct inventory_item;

enum git_print_form {
    GIT_PRINT_SHORT, /* commits, and of their files those that have a mark */
    GIT_PRINT_FILES, /* all files */
};

struct git_printer {
    enum git_print_form form;
    struct str *out;     /* text; or NULL, and: */
    struct json *writer; /* an array that is open */
    uint64_t items, risky;
    struct str listed; /* commits that were printed: each once; release it with str_done() */
};

/* Prints one item of git. Names and texts of the jail are escaped. */
void git_print_item(struct git_printer *printer, const char *root,
                    const struct inventory_item *item);
