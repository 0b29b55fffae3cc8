/* SPDX-License-Identifier: MIT */
/* Filling pools: making jails that wait, one at a time, from scratch or by a fork. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/job/job.h"
#include "server/config.h"
#include "server/executor/executor.h"
#include "server/executor/pool_parts.h"

#define RETRY_MS 1000      /* after the first failure; then twice as long each time, */
#define RETRY_MAX_MS 60000 /* up to this */
#define MEASURE_EVERY 16   /* of a pool's jails one is measured */

/* ---- failures ---- */

/* Again in a while, each time a longer one; said once. */
static void put_off(struct executor *executor, struct pool_retry *retry, const char *what,
                    const struct brig_error *err)
{
    retry->wait_ms = retry->wait_ms == 0 ? RETRY_MS : 2 * retry->wait_ms;
    if (retry->wait_ms > RETRY_MAX_MS)
        retry->wait_ms = RETRY_MAX_MS;
    retry->at_ms = clock_now_ms() + retry->wait_ms;
    if (retry->reported)
        return;
    char text[BRIG_MESSAGE_MAX + 64];
    (void)snprintf(text, sizeof text, "%s: %s", what, err->message);
    executor_warn(executor, text);
    retry->reported = true;
}

void executor_pools_zygote_lost(struct executor *executor, const struct brig_error *err)
{
    put_off(executor, &executor->pools.zygote_retry, "python is not forked but started", err);
}

void executor_pools_zygote_stuck(struct executor *executor, const struct zygote *zygote)
{
    struct brig_error err = {0};
    for (struct pool *pool = executor->pools.first; pool; pool = pool->next) {
        if (!pool->zygote || pool->zygote->gone || pool->zygote->zygote != zygote)
            continue;
        (void)brig_fail(&err, BRIG_E_STATE, 0, "the zygote does not answer");
        executor_zygote_give_up(pool->zygote);
        executor_pools_zygote_lost(executor, &err);
    }
}

static void build_failed(struct executor *executor, struct run *run, const struct brig_error *err)
{
    executor_run_bury(run);
    put_off(executor, &executor->pools.retry, "no jail could be made ahead", err);
}

void executor_pool_heard(struct run *run, int result, const struct brig_error *err)
{
    if (result < 0)
        executor_pools_zygote_lost(run->executor, err);
    if (result != 0)
        pool_discard(run);
    else if (run->gate.fd < 0)
        run->ready = job_is_waiting(run->job);
}

/* ---- forks ---- */

/* A jail by a fork of the pool's zygote, in the pool; NULL: there is none. */
struct run *pool_fork(struct executor *executor, struct pool *pool)
{
    struct brig_error err = {0};
    if (!executor_zygote_is_ready(pool->zygote) ||
        clock_now_ms() < executor->pools.zygote_retry.at_ms)
        return NULL;
    struct run *run = executor_run_new(executor);
    if (!run)
        return NULL;
    run->runtime = pool->runtime;
    int result = executor_park_fork(run, pool->zygote->zygote, &err);
    if (result == 0)
        result = executor_park_adopt(run, &err);
    if (result < 0) {
        executor_run_bury(run);
        executor_pools_zygote_lost(executor, &err);
        return NULL;
    }
    pool->zygote->runs++;
    pool_counts(executor, run->runtime)->refills++;
    pool_link(pool, run);
    return run;
}

/* ---- making more ---- */

/* One of a few: reading it is slow. */
static void measure(struct pool *pool)
{
    const struct run *newest = pool->waiting;
    if (!newest || !newest->ready || pool->made % MEASURE_EVERY != 0)
        return;
    pool->bytes_each = executor_park_bytes(newest);
}

static void build(struct executor *executor, struct pool *pool)
{
    struct brig_error err = {0};
    if (pool_fork(executor, pool) || pool->runtime->parking != PARKING_NODE)
        return;
    struct run *run = executor_run_new(executor);
    if (!run)
        return;
    run->runtime = pool->runtime;
    int result = executor_park_build(run, &err);
    if (result == 0)
        result = executor_park_adopt(run, &err);
    if (result < 0) {
        build_failed(executor, run, &err);
        return;
    }
    executor->pools.retry.wait_ms = 0;
    pool_counts(executor, run->runtime)->refills++;
    pool_link(pool, run);
    measure(pool);
    pool->made++;
}

/* ---- zygotes ---- */

/* A new one is made before the old one goes. */
static bool wants_zygote(const struct executor *executor, const struct pool *pool, uint64_t now_ms)
{
    return pool->runtime->parking == PARKING_ZYGOTE && executor->pools.library >= 0 &&
           pool->size.target > 0 && !pool->next_zygote &&
           executor_zygote_is_worn(pool->zygote, now_ms);
}

static void look_after_zygote(struct executor *executor, struct pool *pool)
{
    if (pool->zygote && pool->zygote->gone)
        executor_zygote_bury(take_ptr(&pool->zygote));
    if (pool->next_zygote && pool->next_zygote->gone)
        executor_zygote_bury(take_ptr(&pool->next_zygote));
    if (!executor_zygote_is_ready(pool->next_zygote))
        return;
    executor_zygote_bury(pool->zygote);
    pool->zygote = take_ptr(&pool->next_zygote);
    executor->pools.zygote_retry.wait_ms = 0;
}

static void look_after_zygotes(struct executor *executor, uint64_t now_ms)
{
    struct pools *pools = &executor->pools;
    for (struct pool *pool = pools->first; pool; pool = pool->next) {
        look_after_zygote(executor, pool);
        if (!pools->enabled || now_ms < pools->zygote_retry.at_ms ||
            !wants_zygote(executor, pool, now_ms))
            continue;
        struct brig_error err = {0};
        if (executor_zygote_new(executor, pool->runtime, &pool->next_zygote, &err) < 0)
            executor_pools_zygote_lost(executor, &err);
    }
    executor_zygotes_clear(executor);
}

/* One at a time, and not at the expense of what runs: each run that may come has its slot. */
static bool may_build(const struct executor *executor, uint64_t now_ms)
{
    const struct pools *pools = &executor->pools;
    uint64_t bytes = 0;
    if (!pools->enabled || executor->draining || now_ms < pools->retry.at_ms ||
        executor->slot_count - executor->slots_taken <= executor->run_most - executor->run_count)
        return false;
    for (const struct pool *pool = pools->first; pool; pool = pool->next) {
        bytes += pool->count * pool->bytes_each;
        for (const struct run *run = pool->waiting; run; run = run->next)
            if (!run->ready)
                return false;
    }
    return bytes < executor->config->sandbox.pool.memory_bytes;
}

/* What was just begun has the machine to itself for a moment, until it has ended and its answer is on its way
 * to the client, unless the next such request would find nothing at all. */
static bool is_due(const struct executor *executor, const struct pool *pool, uint64_t now_ms)
{
    bool nothing = pool->count == 0 && !executor_zygote_is_ready(pool->zygote);
    bool idle = executor->run_count == 0 && executor_pools_pause_us(executor) == 0;
    bool quiet = idle || now_ms >= executor->pools.quiet_ms;
    return pool->size.target > pool->count && (nothing || quiet);
}

/* The one that lacks most. */
static struct pool *choose_needy(const struct executor *executor, uint64_t now_ms)
{
    struct pool *needy = NULL;
    size_t most = 0;
    for (struct pool *pool = executor->pools.first; pool; pool = pool->next) {
        size_t lacks = pool->size.target > pool->count ? pool->size.target - pool->count : 0;
        if (lacks <= most || !is_due(executor, pool, now_ms))
            continue;
        most = lacks;
        needy = pool;
    }
    return needy;
}

bool pool_lacks_any(const struct executor *executor)
{
    for (const struct pool *pool = executor->pools.first; pool; pool = pool->next)
        if (pool->size.target > pool->count)
            return true;
    return false;
}

void pool_fill(struct executor *executor, uint64_t now_ms)
{
    look_after_zygotes(executor, now_ms);
    struct pool *needy = may_build(executor, now_ms) ? choose_needy(executor, now_ms) : NULL;
    if (needy)
        build(executor, needy);
}
