/* SPDX-License-Identifier: MIT */
/* Parses what an interpreter in a sandbox says of a run: results and errors, as lines of JSON, which
 * are untrusted. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/execution.h"

/* A result has at most this many forms. */
#define RUN_FORMS_MAX 64

/* A table, as {"column": [value, …]}. */
#define RUN_TABLE_TYPE "application/vnd.brig.table+json"

/* Texts and values belong to `root`. */
struct run_line {
    json_t *root;
    bool is_error;
    /* A result: */
    bool main;    /* the value of the last expression */
    json_t *data; /* MIME type to a string (bytes in base64) or, for JSON, to any value */
    /* An error: */
    const char *name, *value, *traceback;
};

/* Returns false if the line is neither; then there is nothing to release. */
bool run_line_read(const char *line, size_t length, struct run_line *ret);
/* Takes the next result or error from the beginning of `lines`; other lines are skipped. False: there
 * is none. */
bool run_line_next(struct execution_bytes *lines, struct run_line *ret);
void run_line_done(struct run_line *line);
#define autorunline __attribute__((cleanup(run_line_done)))
