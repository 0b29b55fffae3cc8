/* SPDX-License-Identifier: MIT */
/* Pools: whole jails that wait for code. */
#include "server/executor/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/job/job.h"
#include "server/config.h"
#include "server/executor/executor.h"

#define QUIET_MS 3                      /* after a request, before there is time for others */
#define PAUSE_US 300                    /* after an answer: the client is yet to be woken */
#define LOOK_MS 1000                    /* between looks at what waits */
#define READY_MS 10000                  /* what is not ready by then never is */
#define BYTES_NODE ((uint64_t)64 << 20) /* of one, until one was measured */
#define BYTES_OTHER ((uint64_t)1 << 20)

struct message_pool *pool_counts(struct executor *executor, const struct runtime *runtime)
{
    return &executor->gauges.pools[runtime - executor->config->runtimes];
}

/* ---- those that wait ---- */

void pool_link(struct pool *pool, struct run *run)
{
    run->pool = pool;
    run->previous = NULL;
    run->next = pool->waiting;
    if (run->next)
        run->next->previous = run;
    pool->waiting = run;
    pool->count++;
}

static void unlink_run(struct run *run)
{
    struct pool *pool = run->pool;
    if (run->previous)
        run->previous->next = run->next;
    else
        pool->waiting = run->next;
    if (run->next)
        run->next->previous = run->previous;
    run->next = run->previous = NULL;
    run->pool = NULL;
    pool->count--;
}

void pool_discard(struct run *run)
{
    struct executor *executor = run->executor;
    pool_counts(executor, run->runtime)->discarded++;
    if (run->pool)
        unlink_run(run);
    executor_unwatch(executor, &run->source);
    executor_unwatch(executor, &run->gate);
    executor_run_bury(run);
}

void executor_pool_lost(struct run *run)
{
    pool_discard(run);
}

static void empty(struct pool *pool)
{
    while (pool->waiting)
        pool_discard(pool->waiting);
}

/* The longest ready, else the longest begun: that will be ready sooner than a new one. */
static struct run *choose(const struct pool *pool)
{
    struct run *begun = NULL, *ready = NULL;
    for (struct run *run = pool->waiting; run; run = run->next) {
        begun = run;
        if (run->ready)
            ready = run;
    }
    return ready ? ready : begun;
}

/* ---- pools ---- */

static struct pool *find(const struct executor *executor, const struct runtime *runtime,
                         const char *domain)
{
    for (struct pool *pool = executor->pools.first; pool; pool = pool->next)
        if (pool->runtime == runtime && strcmp(pool->domain, domain) == 0)
            return pool;
    return NULL;
}

static void drop(struct executor *executor, struct pool *pool)
{
    struct pool **at = &executor->pools.first;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    empty(pool);
    executor_zygote_bury(pool->zygote);
    executor_zygote_bury(pool->next_zygote);
    free(pool);
}

/* Of as many keys as may have one, the one that was unused longest makes room. */
static void make_room(struct executor *executor, const struct runtime *runtime)
{
    struct pool *oldest = NULL;
    size_t count = 0;
    for (struct pool *pool = executor->pools.first; pool; pool = pool->next) {
        if (pool->runtime != runtime)
            continue;
        count++;
        if (!oldest || pool->size.used_ms < oldest->size.used_ms)
            oldest = pool;
    }
    if (oldest && count >= executor->config->sandbox.pool.domains)
        drop(executor, oldest);
}

static struct pool *make(struct executor *executor, const struct runtime *runtime,
                         const char *domain)
{
    make_room(executor, runtime);
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool || strlen(domain) >= sizeof pool->domain ||
        !runtime_find_program(runtime, &pool->program)) {
        free(pool);
        return NULL;
    }
    pool->runtime = runtime;
    (void)snprintf(pool->domain, sizeof pool->domain, "%s", domain);
    pool->bytes_each = runtime->parking == PARKING_NODE ? BYTES_NODE : BYTES_OTHER;
    pool_size_init(&pool->size, runtime->pool_min, runtime->pool_max, clock_now_ms());
    pool->next = executor->pools.first;
    executor->pools.first = pool;
    return pool;
}

/* ---- a request comes ---- */

/* Another interpreter was installed: what waits has the old one. */
static void look_at_program(struct pool *pool)
{
    struct runtime_program now = {0};
    if (runtime_find_program(pool->runtime, &now) && memcmp(&now, &pool->program, sizeof now) == 0)
        return;
    empty(pool);
    executor_zygote_bury(take_ptr(&pool->zygote));
    executor_zygote_bury(take_ptr(&pool->next_zygote));
    pool->program = now;
}

static bool may_wait(const struct executor *executor, const struct runtime *runtime,
                     const struct execution_request *request)
{
    bool can = runtime->parking == PARKING_NODE ||
               (runtime->parking == PARKING_ZYGOTE && executor->pools.library >= 0);
    return executor->pools.enabled && can && executor_jail_fits_late(request);
}

/* One that waits in the pool for such requests; without a pool there is one from now on. */
static struct run *look_for(struct executor *executor, const struct runtime *runtime,
                            const char *domain)
{
    struct pool *pool = find(executor, runtime, domain);
    if (!pool) {
        (void)make(executor, runtime, domain); /* without memory for it, all begin cold */
        return NULL;
    }
    look_at_program(pool);
    struct run *run = choose(pool);
    uint64_t now = clock_now_ms();
    if (!run) {
        pool_size_missed(&pool->size, now);
        run = pool_fork(executor, pool);
    }
    if (!run)
        return NULL;
    unlink_run(run);
    pool_size_taken(&pool->size, pool->count, now);
    return run;
}

struct run *executor_pool_take(struct executor *executor, const struct runtime *runtime,
                               const struct execution_request *request)
{
    struct message_pool *counts = pool_counts(executor, runtime);
    executor->pools.quiet_ms = clock_now_ms() + QUIET_MS;
    struct run *run =
        may_wait(executor, runtime, request) ? look_for(executor, runtime, request->domain) : NULL;
    if (run)
        run->trace.warm = true;
    *(run ? &counts->hits : &counts->misses) += 1;
    return run;
}

/* ---- looking after them ---- */

static bool is_stale(const struct run *run, uint64_t now_ms)
{
    uint64_t most = run->ready ? run->executor->config->sandbox.pool.age_ms : READY_MS;
    return now_ms >= run->parked_ms + most;
}

static void look_after(struct executor *executor, struct pool *pool, uint64_t now_ms)
{
    size_t target =
        pool_size_settle(&pool->size, pool->count, executor->config->sandbox.pool.idle_ms, now_ms);
    struct run *oldest = pool->waiting;
    while (oldest && oldest->next)
        oldest = oldest->next;
    while (oldest) {
        struct run *newer = oldest->previous;
        if (pool->count > target || is_stale(oldest, now_ms))
            pool_discard(oldest);
        oldest = newer;
    }
}

static void look_after_all(struct executor *executor, uint64_t now_ms)
{
    for (struct pool *pool = executor->pools.first, *next; pool; pool = next) {
        next = pool->next;
        look_after(executor, pool, now_ms);
        if (pool->size.target == 0 && pool->count == 0 &&
            now_ms >= pool->size.used_ms + executor->config->sandbox.pool.idle_ms)
            drop(executor, pool);
    }
    executor->pools.due_ms = now_ms + LOOK_MS;
}

static void count(struct executor *executor)
{
    struct message_gauges *gauges = &executor->gauges;
    for (size_t i = 0; i < executor->config->runtime_count; i++)
        gauges->pools[i].ready = gauges->pools[i].target = gauges->pools[i].building = 0;
    for (const struct pool *pool = executor->pools.first; pool; pool = pool->next) {
        struct message_pool *counts = pool_counts(executor, pool->runtime);
        counts->target += pool->size.target;
        for (const struct run *run = pool->waiting; run; run = run->next)
            *(run->ready ? &counts->ready : &counts->building) += 1;
    }
}

void executor_pools_settle(struct executor *executor, uint64_t now_ms)
{
    struct pools *pools = &executor->pools;
    bool any = pools->first != NULL;
    if (now_ms >= pools->due_ms) {
        executor_runs_hurry(executor);
        look_after_all(executor, now_ms);
    }
    if (!any)
        return;
    if (executor->draining) {
        while (pools->first)
            drop(executor, pools->first);
        executor_zygotes_clear(executor);
        return;
    }
    pool_fill(executor, now_ms);
    count(executor);
}

uint64_t executor_pools_due_ms(const struct executor *executor, uint64_t now_ms)
{
    const struct pools *pools = &executor->pools;
    if (!pools->first)
        return executor->run_count > 0 && pools->enabled ? pools->due_ms : UINT64_MAX;
    bool soon =
        pools->quiet_ms > now_ms && pools->quiet_ms < pools->due_ms && pool_lacks_any(executor);
    return soon ? pools->quiet_ms : pools->due_ms;
}

void executor_pools_answered(struct executor *executor)
{
    executor->pools.pause_us = clock_now_us() + PAUSE_US;
}

uint64_t executor_pools_pause_us(const struct executor *executor)
{
    uint64_t now = clock_now_us(), until = executor->pools.pause_us;
    bool matters = executor->run_count == 0 && pool_lacks_any(executor);
    return matters && until > now ? until - now : 0;
}

/* ---- the end ---- */

void executor_pools_end(struct executor *executor)
{
    struct pools *pools = &executor->pools;
    while (pools->first)
        drop(executor, pools->first);
    executor_zygotes_clear(executor);
    if (pools->library >= 0)
        (void)close(take_fd(&pools->library));
}

/* ---- pool fill ---- */

/* Filling pools: making jails that wait, one at a time, from scratch or by a fork. */

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
