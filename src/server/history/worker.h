/* SPDX-License-Identifier: MIT */
/* What a store has to do, and the thread that waits for PostgreSQL so that the history process does not: a
 * name server, a connection or a statement can each take seconds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "base/str.h"
#include "server/execution.h"
#include "server/history/query.h"

struct row;
struct store;

enum job_kind { JOB_FEED, JOB_LIST, JOB_GET, JOB_FORGET };

struct job {
    enum job_kind kind;
    /* For the caller. */
    uint64_t tag, given_ms;
    uint64_t
        sequence; /* FEED: all rows up to it are in the batch or before; else: are to be fed first */
    bool submitted, abandoned;
    /* What is to be done. */
    struct row *rows; /* FEED: owned; may be none: then only whether the database answers */
    size_t row_count;
    struct query query;
    char id[EXECUTION_ID_LENGTH + 1];
    char domain[QUERY_WORD_MAX]; /* of the API key that asks, or "" */
    int64_t before_ns;
    /* What came of it. */
    int result; /* 0 or more; negative with `err` */
    struct brig_error err;
    uint64_t refused; /* FEED: rows that the database will never take */
    struct str text;  /* LIST, GET: the answer; empty if there is none */
};

struct job *job_new(enum job_kind kind); /* NULL if memory is short */
void job_free(struct job *job);          /* accepts NULL */
/* Waits for the store. */
void job_perform(struct job *job, struct store *store);

/* The thread. It ends with the process: a statement may take seconds, and nothing waits for it then. */
struct worker {
    struct store *store;   /* NULL: there is no thread */
    int given[2], done[2]; /* pipes; neither is ever full: there are far fewer jobs */
};
/* The store is borrowed, and used by the thread alone from now on. */
int worker_start(struct worker *worker, struct store *store, struct brig_error *err);
/* Readable when there is a job to take. */
int worker_fd(const struct worker *worker);
/* Jobs are done one by one, in the order they were given. */
void worker_submit(struct worker *worker, struct job *job);
/* A job that is done, or NULL. */
struct job *worker_take(struct worker *worker);
