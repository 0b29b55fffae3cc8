/* SPDX-License-Identifier: MIT */
/* The output of `brig status`: lines for people, or one JSON object. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "base/json.h"
#include "base/str.h"

#include "cli/verbs/git_print.h"

struct layer;
struct inventory;

/* Zero-initialise, and fill in the first part. `out` is printed in parts; release it with str_done(). */
struct status_printer {
    bool json;
    bool
        grouped; /* JSON: an ignored directory is one entry, and state of programs is only counted */
    bool state;  /* text: files of programs' state are listed */
    const char *jail; /* borrowed */
    bool running;
    uint64_t held;        /* files that are held back */
    uint64_t interrupted; /* the operation that is not complete, or 0 */
    /* Prints what was done in git, after the files. */
    int (*git)(void *context, struct git_printer *printer, struct brig_error *err);
    void *git_context;

    bool colour;
    uint64_t changes, conflicts, risky; /* of all layers so far */
    struct git_printer items;           /* of git */
    struct json writer;
    struct str out;
};

int status_print_begin(struct status_printer *printer, struct brig_error *err);
int status_print_layer(struct status_printer *printer, const struct layer *layer,
                       struct inventory *inventory, struct brig_error *err);
/* Prints the totals, what to do next, and everything that is left in `out`. */
int status_print_end(struct status_printer *printer, struct brig_error *err);
