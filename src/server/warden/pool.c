/* SPDX-License-Identifier: MIT */
/* Pools: whole jails that wait for code. */
#include "server/warden/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "jail/held.h"
#include "server/config.h"
#include "server/warden/warden.h"

#define QUIET_MS 3                      /* after a request, before there is time for others */
#define LOOK_MS 1000                    /* between looks at what waits */
#define READY_MS 10000                  /* what is not ready by then never is */
#define RETRY_MS 1000                   /* after the first failure; then twice as long each time, */
#define RETRY_MAX_MS 60000              /* up to this */
#define MEASURE_EVERY 16                /* of a pool's jails one is measured */
#define BYTES_NODE ((uint64_t)64 << 20) /* until one was */
#define BYTES_OTHER ((uint64_t)1 << 20)

static struct message_pool *counts_of(struct warden *warden, const struct runtime *runtime)
{
    return &warden->gauges.pools[runtime - warden->config->runtimes];
}

/* ---- those that wait ---- */

static void link_run(struct pool *pool, struct run *run)
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

static void discard(struct run *run)
{
    struct warden *warden = run->warden;
    counts_of(warden, run->runtime)->discarded++;
    if (run->pool)
        unlink_run(run);
    warden_unwatch(warden, &run->source);
    warden_unwatch(warden, &run->gate);
    warden_run_bury(run);
}

void warden_pool_lost(struct run *run)
{
    discard(run);
}

static void empty(struct pool *pool)
{
    while (pool->waiting)
        discard(pool->waiting);
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

static struct pool *find(const struct warden *warden, const struct runtime *runtime,
                         const char *domain)
{
    for (struct pool *pool = warden->pools.first; pool; pool = pool->next)
        if (pool->runtime == runtime && strcmp(pool->domain, domain) == 0)
            return pool;
    return NULL;
}

static void drop(struct warden *warden, struct pool *pool)
{
    struct pool **at = &warden->pools.first;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    empty(pool);
    warden_zygote_bury(pool->zygote);
    warden_zygote_bury(pool->next_zygote);
    if (warden->pools.builds_for == pool)
        warden->pools.builds_for = NULL;
    free(pool);
}

/* Of as many keys as may have one, the one that was unused longest makes room. */
static void make_room(struct warden *warden, const struct runtime *runtime)
{
    struct pool *oldest = NULL;
    size_t count = 0;
    for (struct pool *pool = warden->pools.first; pool; pool = pool->next) {
        if (pool->runtime != runtime)
            continue;
        count++;
        if (!oldest || pool->size.used_ms < oldest->size.used_ms)
            oldest = pool;
    }
    if (oldest && count >= warden->config->sandbox.pool.domains)
        drop(warden, oldest);
}

static struct pool *make(struct warden *warden, const struct runtime *runtime, const char *domain)
{
    make_room(warden, runtime);
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
    pool->next = warden->pools.first;
    warden->pools.first = pool;
    return pool;
}

/* ---- failures ---- */

/* Again in a while, each time a longer one; said once. */
static void put_off(struct warden *warden, struct pool_retry *retry, const char *what,
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
    warden_warn(warden, text);
    retry->reported = true;
}

void warden_pools_zygote_lost(struct warden *warden, const struct brig_error *err)
{
    put_off(warden, &warden->pools.zygote_retry, "python is not forked but started", err);
}

static void build_failed(struct warden *warden, struct run *run, const struct brig_error *err)
{
    warden_run_bury(run);
    put_off(warden, &warden->pools.retry, "no jail could be made ahead", err);
}

void warden_pool_heard(struct run *run, int result, const struct brig_error *err)
{
    if (result < 0)
        warden_pools_zygote_lost(run->warden, err);
    if (result != 0)
        discard(run);
    else if (run->gate.fd < 0)
        run->ready = job_is_waiting(run->job);
}

/* ---- forks ---- */

/* A jail by a fork of the pool's zygote, in the pool; NULL: there is none. */
static struct run *fork_one(struct warden *warden, struct pool *pool, bool now)
{
    struct brig_error err = {0};
    if (!warden_zygote_is_ready(pool->zygote) || clock_now_ms() < warden->pools.zygote_retry.at_ms)
        return NULL;
    struct run *run = warden_run_new(warden);
    if (!run)
        return NULL;
    run->runtime = pool->runtime;
    int result = warden_park_fork(run, pool->zygote->zygote, now, &err);
    if (result == 0)
        result = warden_park_adopt(run, &err);
    if (result < 0) {
        warden_run_bury(run);
        warden_pools_zygote_lost(warden, &err);
        return NULL;
    }
    pool->zygote->runs++;
    counts_of(warden, run->runtime)->refills++;
    link_run(pool, run);
    return run;
}

/* ---- a request comes ---- */

/* Another interpreter was installed: what waits has the old one. */
static void look_at_program(struct pool *pool)
{
    struct runtime_program now = {0};
    if (runtime_find_program(pool->runtime, &now) && memcmp(&now, &pool->program, sizeof now) == 0)
        return;
    empty(pool);
    warden_zygote_bury(take_ptr(&pool->zygote));
    warden_zygote_bury(take_ptr(&pool->next_zygote));
    pool->program = now;
    pool->changed = true;
}

static bool may_wait(const struct warden *warden, const struct runtime *runtime,
                     const struct execution_request *request)
{
    return warden->pools.builder.running && runtime->parking != PARKING_NONE &&
           warden_jail_fits_late(request);
}

/* One that waits in the pool for such requests; without a pool there is one from now on. */
static struct run *look_for(struct warden *warden, const struct runtime *runtime,
                            const char *domain)
{
    struct pool *pool = find(warden, runtime, domain);
    if (!pool) {
        (void)make(warden, runtime, domain); /* without memory for it, all begin cold */
        return NULL;
    }
    look_at_program(pool);
    struct run *run = choose(pool);
    uint64_t now = clock_now_ms();
    if (!run) {
        pool_size_missed(&pool->size, now);
        run = fork_one(warden, pool, true);
    }
    if (!run)
        return NULL;
    unlink_run(run);
    pool_size_taken(&pool->size, pool->count, now);
    return run;
}

struct run *warden_pool_take(struct warden *warden, const struct runtime *runtime,
                             const struct execution_request *request)
{
    struct message_pool *counts = counts_of(warden, runtime);
    warden->pools.quiet_ms = clock_now_ms() + QUIET_MS;
    struct run *run =
        may_wait(warden, runtime, request) ? look_for(warden, runtime, request->domain) : NULL;
    if (run)
        run->trace.warm = true;
    *(run ? &counts->hits : &counts->misses) += 1;
    return run;
}

/* ---- making more ---- */

/* One of a few: reading it is slow. */
static void measure(struct pool *pool)
{
    const struct run *newest = pool->waiting;
    if (!newest || !newest->ready || pool->made % MEASURE_EVERY != 0)
        return;
    pool->bytes_each = warden_park_bytes(newest);
}

static void take_run(struct warden *warden, struct pool *pool, struct run *run, int result,
                     struct brig_error *err)
{
    if (result == 0)
        result = warden_park_adopt(run, err);
    if (result < 0) {
        build_failed(warden, run, err);
        return;
    }
    warden->pools.retry.wait_ms = 0;
    counts_of(warden, run->runtime)->refills++;
    if (!pool || pool->changed || warden->draining) {
        discard(run);
        return;
    }
    link_run(pool, run);
    measure(pool);
    pool->made++;
}

static void take_zygote(struct warden *warden, struct pool *pool, struct pool_zygote *own,
                        int result, struct brig_error *err)
{
    if (result == 0)
        result = warden_zygote_adopt(own, err);
    if (result < 0)
        warden_pools_zygote_lost(warden, err);
    if (result < 0 || !pool || pool->changed || warden->draining)
        warden_zygote_bury(own);
    else
        pool->next_zygote = own;
}

/* What the thread has made. */
static void take_built(void *owner, uint32_t events)
{
    struct warden *warden = owner;
    struct pools *pools = &warden->pools;
    struct brig_error err = {0};
    int result;
    (void)events;
    void *made = warden_builder_take(&pools->builder, &result, &err);
    struct pool *pool = take_ptr(&pools->builds_for);
    if (!made)
        return;
    if (pools->builds_zygote)
        take_zygote(warden, pool, made, result, &err);
    else
        take_run(warden, pool, made, result, &err);
}

static void give(struct warden *warden, struct pool *pool, builder_make *work, void *what,
                 bool zygote)
{
    pool->changed = false;
    warden->pools.builds_for = pool;
    warden->pools.builds_zygote = zygote;
    warden_builder_give(&warden->pools.builder, work, what);
}

static void begin_build(struct warden *warden, struct pool *pool)
{
    struct brig_error err = {0};
    if (fork_one(warden, pool, false))
        return;
    struct run *run = warden_run_new(warden);
    if (!run)
        return;
    run->runtime = pool->runtime;
    if (warden_park_prepare(run, &err) < 0)
        build_failed(warden, run, &err);
    else
        give(warden, pool, warden_park_build, run, false);
}

/* ---- zygotes ---- */

/* A new one is made before the old one goes. */
static bool wants_zygote(const struct warden *warden, const struct pool *pool, uint64_t now_ms)
{
    return pool->runtime->parking == PARKING_ZYGOTE && warden->pools.library >= 0 &&
           pool->size.target > 0 && !pool->next_zygote &&
           warden_zygote_is_worn(pool->zygote, now_ms);
}

static void look_after_zygote(struct warden *warden, struct pool *pool)
{
    if (pool->zygote && pool->zygote->gone)
        warden_zygote_bury(take_ptr(&pool->zygote));
    if (pool->next_zygote && pool->next_zygote->gone)
        warden_zygote_bury(take_ptr(&pool->next_zygote));
    if (!warden_zygote_is_ready(pool->next_zygote))
        return;
    warden_zygote_bury(pool->zygote);
    pool->zygote = take_ptr(&pool->next_zygote);
    warden->pools.zygote_retry.wait_ms = 0;
}

static void look_after_zygotes(struct warden *warden, uint64_t now_ms)
{
    struct pools *pools = &warden->pools;
    for (struct pool *pool = pools->first; pool; pool = pool->next) {
        look_after_zygote(warden, pool);
        if (!pools->builder.running || warden_builder_is_busy(&pools->builder) ||
            now_ms < pools->zygote_retry.at_ms || !wants_zygote(warden, pool, now_ms))
            continue;
        struct pool_zygote *own = warden_zygote_new(warden, pool->runtime);
        if (own)
            give(warden, pool, warden_zygote_build, own, true);
    }
    warden_zygotes_clear(warden);
}

/* One at a time, and not at the expense of what runs: each run that may come has its slot. */
static bool may_build(const struct warden *warden, uint64_t now_ms)
{
    const struct pools *pools = &warden->pools;
    uint64_t bytes = 0;
    if (!pools->builder.running || warden_builder_is_busy(&pools->builder) || warden->draining ||
        now_ms < pools->retry.at_ms ||
        warden->slot_count - warden->slots_taken <= warden->run_most - warden->run_count)
        return false;
    for (const struct pool *pool = pools->first; pool; pool = pool->next) {
        bytes += pool->count * pool->bytes_each;
        for (const struct run *run = pool->waiting; run; run = run->next)
            if (!run->ready)
                return false;
    }
    return bytes < warden->config->sandbox.pool.memory_bytes;
}

/* What was just begun has the machine to itself for a moment, until it has ended, unless the next such
 * request would find nothing at all. */
static bool is_due(const struct warden *warden, const struct pool *pool, uint64_t now_ms)
{
    bool nothing = pool->count == 0 && !warden_zygote_is_ready(pool->zygote);
    bool quiet = warden->run_count == 0 || now_ms >= warden->pools.quiet_ms;
    return pool->size.target > pool->count && (nothing || quiet);
}

/* The one that lacks most. */
static struct pool *choose_needy(const struct warden *warden, uint64_t now_ms)
{
    struct pool *needy = NULL;
    size_t most = 0;
    for (struct pool *pool = warden->pools.first; pool; pool = pool->next) {
        size_t lacks = pool->size.target > pool->count ? pool->size.target - pool->count : 0;
        if (lacks <= most || !is_due(warden, pool, now_ms))
            continue;
        most = lacks;
        needy = pool;
    }
    return needy;
}

static bool lacks_any(const struct warden *warden)
{
    for (const struct pool *pool = warden->pools.first; pool; pool = pool->next)
        if (pool->size.target > pool->count)
            return true;
    return false;
}

/* ---- looking after them ---- */

static bool is_stale(const struct run *run, uint64_t now_ms)
{
    uint64_t most = run->ready ? run->warden->config->sandbox.pool.age_ms : READY_MS;
    return now_ms >= run->parked_ms + most;
}

static void look_after(struct warden *warden, struct pool *pool, uint64_t now_ms)
{
    size_t target =
        pool_size_settle(&pool->size, pool->count, warden->config->sandbox.pool.idle_ms, now_ms);
    struct run *oldest = pool->waiting;
    while (oldest && oldest->next)
        oldest = oldest->next;
    while (oldest) {
        struct run *newer = oldest->previous;
        if (pool->count > target || is_stale(oldest, now_ms))
            discard(oldest);
        oldest = newer;
    }
}

static void look_after_all(struct warden *warden, uint64_t now_ms)
{
    for (struct pool *pool = warden->pools.first, *next; pool; pool = next) {
        next = pool->next;
        look_after(warden, pool, now_ms);
        if (pool->size.target == 0 && pool->count == 0 &&
            now_ms >= pool->size.used_ms + warden->config->sandbox.pool.idle_ms)
            drop(warden, pool);
    }
    warden->pools.due_ms = now_ms + LOOK_MS;
}

static void count(struct warden *warden)
{
    struct message_gauges *gauges = &warden->gauges;
    for (size_t i = 0; i < warden->config->runtime_count; i++)
        gauges->pools[i].ready = gauges->pools[i].target = gauges->pools[i].building = 0;
    for (const struct pool *pool = warden->pools.first; pool; pool = pool->next) {
        struct message_pool *counts = counts_of(warden, pool->runtime);
        counts->target += pool->size.target;
        for (const struct run *run = pool->waiting; run; run = run->next)
            *(run->ready ? &counts->ready : &counts->building) += 1;
    }
    if (warden->pools.builds_for && !warden->pools.builds_zygote)
        counts_of(warden, warden->pools.builds_for->runtime)->building++;
}

void warden_pools_settle(struct warden *warden, uint64_t now_ms)
{
    struct pools *pools = &warden->pools;
    if (!pools->first)
        return;
    if (warden->draining) {
        while (pools->first)
            drop(warden, pools->first);
        warden_zygotes_clear(warden);
        return;
    }
    if (now_ms >= pools->due_ms)
        look_after_all(warden, now_ms);
    look_after_zygotes(warden, now_ms);
    struct pool *needy = may_build(warden, now_ms) ? choose_needy(warden, now_ms) : NULL;
    if (needy)
        begin_build(warden, needy);
    count(warden);
}

uint64_t warden_pools_due_ms(const struct warden *warden, uint64_t now_ms)
{
    const struct pools *pools = &warden->pools;
    if (!pools->first)
        return UINT64_MAX;
    bool soon = pools->quiet_ms > now_ms && pools->quiet_ms < pools->due_ms && lacks_any(warden);
    return soon ? pools->quiet_ms : pools->due_ms;
}

/* ---- begin and end ---- */

int warden_pools_begin(struct warden *warden, struct brig_error *err)
{
    struct pools *pools = &warden->pools;
    if (!warden->config->sandbox.pool.enabled)
        return 0;
    int result = warden_builder_begin(&pools->builder, err);
    if (result < 0)
        return result;
    pools->built =
        (struct warden_source){.ready = take_built, .owner = warden, .fd = pools->builder.event};
    return warden_watch(warden, &pools->built, EPOLLIN, err);
}

void warden_pools_end(struct warden *warden)
{
    struct pools *pools = &warden->pools;
    void *left = warden_builder_end(&pools->builder);
    if (left && pools->builds_zygote)
        warden_zygote_bury(left);
    else if (left)
        warden_run_bury(left);
    while (pools->first)
        drop(warden, pools->first);
    warden_zygotes_clear(warden);
    if (pools->library >= 0)
        (void)close(take_fd(&pools->library));
}
