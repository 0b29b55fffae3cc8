/* SPDX-License-Identifier: MIT */
/* The thread that waits for the database, so that the history process does not. Jobs are done one by one, in
 * the order they were given. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "base/str.h"
#include "server/execution.h"
#include "server/history/query.h"
#include "server/history/spool.h"

struct store;
struct store_operations;

enum job_kind { JOB_APPLY, JOB_LIST, JOB_GET, JOB_FORGET };

struct job {
    struct job *next;
    enum job_kind kind;
    /* For who gave it. */
    uint64_t tag, given_ms, behind; /* behind: how many records are to be brought before it */
    bool submitted, abandoned;
    /* What is to be done. */
    struct spool_batch batch; /* APPLY; may be empty: then only whether the database answers */
    struct query query;
    char id[EXECUTION_ID_LENGTH + 1];
    char domain[QUERY_WORD_MAX]; /* who asks for it, or "" */
    int64_t before_ns;
    /* What came of it. */
    int result; /* 0 or more; negative with `err` */
    struct brig_error err;
    uint64_t refused; /* APPLY: rows that the database will never take */
    struct str text;  /* LIST, GET: the answer; empty if there is none */
};

struct job *job_new(enum job_kind kind); /* NULL if memory is short */
void job_free(struct job *job);          /* accepts NULL */

struct worker;
/* Both are borrowed, and used by the thread alone from now on. */
int worker_new(const struct store_operations *operations, struct store *store,
               struct worker **ret_worker, struct brig_error *err);
/* Readable when there is something to take. */
int worker_fd(const struct worker *worker);
void worker_submit(struct worker *worker, struct job *job);
/* A job that is done, or NULL. */
struct job *worker_take(struct worker *worker);
/* Waits until the job in hand is done, at most so long; false if it is not. Then the store is still in
 * use, and nothing may be released. */
bool worker_stop(struct worker *worker, int timeout_ms);
