/* SPDX-License-Identifier: MIT */
/* Jobs of a store, and the thread that blocks on PostgreSQL instead of the history process: name
 * resolution, connecting and each statement can take seconds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "base/str.h"
#include "server/execution.h"
#include "server/history/query.h"
#include "server/history/row.h"

struct store;

enum job_kind { JOB_FEED, JOB_LIST, JOB_GET, JOB_FORGET };

struct job {
    enum job_kind kind;
    /* Used by the caller only. */
    uint64_t tag, given_ms;
    uint64_t sequence; /* FEED: last sequence in the batch; others: must be fed first */
    bool submitted, abandoned;
    /* Input. */
    struct row *rows; /* FEED: owned; without rows the job only tests the connection */
    size_t row_count;
    struct query query;
    char id[EXECUTION_ID_LENGTH + 1];
    char domain[QUERY_WORD_MAX]; /* API key of the client, or "" */
    int64_t before_ns;
    struct row_more more; /* GET: what SQLite knows besides */
    /* Output. */
    bool pending; /* GET: it has not ended */
    int result;   /* 0 or more; negative: see `err` */
    struct brig_error err;
    uint64_t refused; /* FEED: rows that the database will never accept */
    struct str text;  /* LIST, GET: the answer; empty: not found */
};

struct job *job_new(enum job_kind kind); /* NULL: out of memory */
void job_free(struct job *job);          /* accepts NULL */
/* Runs the job; blocks on the store. */
void job_perform(struct job *job, struct store *store);

/* The thread is never joined: it ends with the process, even during a statement. */
struct worker {
    struct store *store;
    int given[2], done[2]; /* pipes of job pointers; the number of jobs is too small to fill them */
};
/* The store is borrowed; from now on only the thread may use it. */
int worker_start(struct worker *worker, struct store *store, struct brig_error *err);
/* Readable when worker_take() has a job. */
int worker_fd(const struct worker *worker);
/* Jobs are run one by one, in order. */
void worker_submit(struct worker *worker, struct job *job);
/* Returns a finished job, or NULL. */
struct job *worker_take(struct worker *worker);
