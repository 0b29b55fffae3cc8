/* SPDX-License-Identifier: MIT */
/* Pools: whole jails that wait for code, each for one run. A pool is of one runtime and of one API key,
 * and all of its jails are as a request without wishes of its own has them. What fits takes one; what
 * does not, or finds none, begins cold at once. Jails are made one at a time, when there is time for it,
 * and never come back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/execution.h"
#include "server/executor/pool_size.h"
#include "server/executor/source.h"
#include "server/runtime.h"

struct brig_error;
struct run;
struct executor;
struct zygote;

#define POOL_DOMAIN_MAX 128 /* with its NUL; as the codec has it */

struct pool {
    struct pool *next;
    const struct runtime *runtime;
    char domain[POOL_DOMAIN_MAX + 1];
    struct runtime_program program; /* of all that wait */
    struct pool_size size;
    struct run *waiting; /* the oldest last */
    size_t count;        /* of those */
    size_t made;         /* ever */
    uint64_t bytes_each; /* as was last measured */
    struct pool_zygote *zygote,
        *next_zygote; /* the one that is forked, and its successor; or NULL */
};

struct pools {
    struct pool *first;
    bool enabled;
    int library; /* of zygotes; -1: there are none */
    struct pool_zygote *buried;
    struct pool_retry {
        bool reported; /* that it failed */
        uint64_t at_ms, wait_ms;
    } retry, zygote_retry; /* after a failure */
    uint64_t quiet_ms;     /* until then a request has the machine to itself, */
    uint64_t pause_us;     /* and until then the answer to the last one */
    uint64_t due_ms;       /* when to look after them again */
};

/* Ends all that wait. */
void executor_pools_end(struct executor *executor);
/* A jail that waits for such a request, from now on the caller's; NULL: there is none. */
struct run *executor_pool_take(struct executor *executor, const struct runtime *runtime,
                               const struct execution_request *request);
/* An answer was just sent. */
void executor_pools_answered(struct executor *executor);
/* How long it has the machine to itself still, if there is anything to be made then. */
uint64_t executor_pools_pause_us(const struct executor *executor);
/* One that waits does what it should not. */
void executor_pool_lost(struct run *run);
/* Its job was heard, and brig_job_process() gave this. */
void executor_pool_heard(struct run *run, int result, const struct brig_error *err);
/* A zygote has ended, or could not be forked. */
void executor_pools_zygote_lost(struct executor *executor, const struct brig_error *err);
/* One was told to fork and does not. */
void executor_pools_zygote_stuck(struct executor *executor, const struct zygote *zygote);
/* Ends those that are too old or too many, has others made, and counts. */
void executor_pools_settle(struct executor *executor, uint64_t now_ms);
/* When to settle them although nothing happened; UINT64_MAX: never. */
uint64_t executor_pools_due_ms(const struct executor *executor, uint64_t now_ms);

/* ---- pool parts ---- */

/* What the files of the pools share: pool.c, who waits and who gets it; pool_fill.c, making
 * more. */

struct message_pool;
struct pool;
struct run;
struct runtime;
struct executor;

/* ---- pool.c ---- */

/* What /metrics tells of a runtime. */
struct message_pool *pool_counts(struct executor *executor, const struct runtime *runtime);
/* One more that waits. */
void pool_link(struct pool *pool, struct run *run);
/* One that waits, in a pool or in none yet, ends. */
void pool_discard(struct run *run);

/* ---- pool_fill.c ---- */

/* A jail by a fork of the pool's zygote, in the pool; NULL: there is none. */
struct run *pool_fork(struct executor *executor, struct pool *pool);
/* Has a jail or a zygote made where one lacks, if it is time. */
void pool_fill(struct executor *executor, uint64_t now_ms);
bool pool_lacks_any(const struct executor *executor);

/* ---- pool zygote ---- */

/* The interpreter from which the jails of one pool are forked: one API key's, and replaced in
 * time. */

struct brig_error;
struct runtime;
struct executor;
struct zygote;

struct pool_zygote {
    struct pool_zygote *next; /* of those to be freed */
    struct executor *executor;
    const struct runtime *runtime;
    struct zygote *zygote;
    struct executor_source source;
    uint64_t born_ms, runs;
    bool gone;
};

/* Starts one. Nothing can be forked until it is ready. */
int executor_zygote_new(struct executor *executor, const struct runtime *runtime,
                        struct pool_zygote **ret_zygote, struct brig_error *err);
/* Whether it can be forked; accepts NULL. */
bool executor_zygote_is_ready(const struct pool_zygote *own);
/* Whether there should be another; accepts NULL. */
bool executor_zygote_is_worn(const struct pool_zygote *own, uint64_t now_ms);
/* It is asked for nothing any more. */
void executor_zygote_give_up(struct pool_zygote *own);
/* After this round of the loop it is gone; what was forked from it is not. Accepts NULL. */
void executor_zygote_bury(struct pool_zygote *own);
/* Those that were buried. */
void executor_zygotes_clear(struct executor *executor);
