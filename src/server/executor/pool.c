/* SPDX-License-Identifier: MIT */
/* Pools: complete jails that wait for code. Namespaces, mounts, limits, filters and supervision are
 * in place; only the code is missing. How far the program has started depends on the runtime's
 * `parking`. */
#include "server/executor/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "jail/job/job.h"
#include "jail/prepare/template.h"
#include "jail/prepare/zygote.h"
#include "server/config/config.h"
#include "server/executor/executor.h"
#include "server/executor/jail_check.h"
#include "server/park_node.h" /* generated from park_node.js */

#define QUIET_MS 3         /* after a request, before jails are built */
#define LOOK_MS 1000       /* between checks of the pools */
#define READY_MS 10000     /* a jail that is not ready by then is discarded */
#define RETRY_MS 1000      /* after the first failure; then doubled */
#define RETRY_MAX_MS 60000 /* maximum */
/* Memory of a waiting jail; see bench/memory. */
#define BYTES_NODE ((uint64_t)40 << 20)
#define BYTES_FORKED ((uint64_t)4 << 20)
/* In the jail's private /tmp, which exists in every view. */
#define NODE_SCRIPT "/tmp/.brig-park.js"
/* High enough that Node's own fds keep their usual numbers. */
#define NODE_GATE 200

/* The counters of a runtime for /metrics. */
static struct message_pool *counts_of(struct executor *executor, const struct runtime *runtime)
{
    return &executor->gauges.pools[runtime - executor->config->runtimes];
}

/* Delays the next attempt, longer each time; logs the first failure only. */
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

static void zygote_lost(struct executor *executor, const struct brig_error *err)
{
    put_off(executor, &executor->pools.zygote_retry, "python is not forked but started", err);
}

/* ---- Waiting jails ---- */

static void unlink_run(struct run *run)
{
    executor_run_unlink(&run->pool->waiting, run);
    run->pool->count--;
    run->pool = NULL;
}

void executor_pool_discard(struct run *run)
{
    counts_of(run->executor, run->runtime)->discarded++;
    unlink_run(run);
    executor_unwatch(run->executor, &run->source);
    executor_unwatch(run->executor, &run->gate);
    executor_run_bury(run);
}

void executor_pool_heard(struct run *run, int result, const struct brig_error *err)
{
    if (result < 0)
        zygote_lost(run->executor, err);
    if (result != 0)
        executor_pool_discard(run);
    else if (run->gate.fd < 0)
        run->ready = job_is_waiting(run->job);
}

/* Node sends a letter when it is ready. If it closes the socket instead, its job will end. */
static void gate_ready(void *owner, uint32_t events)
{
    struct run *run = owner;
    char letter;
    (void)events;
    if (run->state != RUN_WAITING || run->gate.fd < 0)
        return;
    if (recv(run->gate.fd, &letter, 1, MSG_DONTWAIT) == 1)
        run->ready = true;
    executor_unwatch(run->executor, &run->gate);
}

int executor_pool_release(struct run *run, struct brig_error *err)
{
    const struct execution_request *request = &run->request;
    bool from_input = run->runtime->input == RUNTIME_STDIN;
    const struct execution_bytes *input = from_input ? &request->code : &request->stdin_bytes;
    const struct job_late late = {
        .code = request->code.data,
        .code_length = request->code.length,
        .input = input->data,
        .input_length = input->length,
        .wall_ms = jail_stage_limits(run->runtime, request, STAGE_RUN).timeout_ms,
    };
    int result = job_release(run->job, &late, err);
    if (result < 0 || run->gate.fd < 0)
        return result;
    executor_unwatch(run->executor, &run->gate);
    /* The socket stays open: Node may not be ready yet, and still has to write its letter. */
    ssize_t sent = send(run->gate.fd, "g", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == 1 ? 0 : brig_fail(err, BRIG_E_STATE, 0, "the jail is gone");
}

/* ---- Making a jail ---- */

static int start_node(struct run *run, const struct jail *jail, const int output[2], int gate_end,
                      struct brig_error *err)
{
    const char *argv[RUNTIME_ARGV_MAX + 3] = {jail->argv[0], "--require", NODE_SCRIPT};
    for (size_t i = 1; i < RUNTIME_ARGV_MAX && jail->argv[i]; i++)
        argv[i + 2] = jail->argv[i];
    const struct brig_pass_fd gate = {.fd = gate_end, .number = NODE_GATE};
    const struct brig_command command = {
        .size = sizeof(struct brig_command),
        .argv = argv,
        .stdio = {{.kind = BRIG_STDIO_BYTES},
                  {.kind = BRIG_STDIO_FD, .fd = output[0]},
                  {.kind = BRIG_STDIO_FD, .fd = output[1]}},
        .pass_fds = &gate,
        .pass_fd_count = 1,
    };
    int result = brig_policy_file(jail->policy, NODE_SCRIPT, park_node_script,
                                  sizeof park_node_script, 0444, err);
    return result < 0 ? result : brig_start(jail->policy, &command, &run->job, err);
}

static int build_node(struct run *run, const int output[2], struct brig_error *err)
{
    struct jail jail;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a gate for a waiting jail");
    autoclose int theirs = ends[1];
    run->gate = (struct executor_source){.ready = gate_ready, .owner = run, .fd = ends[0]};
    int result = executor_jail_make(&run->executor->ground, run->runtime, NULL, JAIL_LATE,
                                    run->host_uid, &jail, err);
    if (result == 0)
        result = start_node(run, &jail, output, theirs, err);
    executor_jail_done(&jail);
    return result < 0 ? result : executor_watch(run->executor, &run->gate, EPOLLIN, err);
}

/* Asks the zygote to fork. The jail is completed asynchronously. */
static int fork_zygote(struct run *run, struct zygote *zygote, const int output[2],
                       struct brig_error *err)
{
    const struct job_source source = {.zygote = zygote, .host_id = run->host_uid};
    const struct brig_command command = {
        .size = sizeof(struct brig_command),
        .argv = run->runtime->argv, /* not used: the program is already running */
        .stdio = {{.kind = BRIG_STDIO_BYTES},
                  {.kind = BRIG_STDIO_FD, .fd = output[0]},
                  {.kind = BRIG_STDIO_FD, .fd = output[1]}},
    };
    return job_start(&source, &command, &run->job, err);
}

static bool zygote_can_fork(const struct pool *pool)
{
    return pool->zygote && !pool->gone && zygote_is_ready(pool->zygote);
}

/* Makes a waiting jail; NULL on failure. */
static struct run *build(struct executor *executor, struct pool *pool)
{
    struct brig_error err = {0};
    struct pools *pools = &executor->pools;
    bool forks = pool->runtime->parking == PARKING_ZYGOTE;
    struct pool_retry *retry = forks ? &pools->zygote_retry : &pools->retry;
    int ends[2] = {-1, -1};
    if ((forks && !zygote_can_fork(pool)) || clock_now_ms() < retry->at_ms)
        return NULL;
    struct run *run = executor_run_new(executor);
    if (!run)
        return NULL;
    run->runtime = pool->runtime;
    run->state = RUN_WAITING;
    run->parked_ms = clock_now_ms();
    int result = executor_output_open(run, ends, &err);
    autoclose int out = ends[0], error = ends[1];
    if (result == 0)
        result = forks ? fork_zygote(run, pool->zygote, ends, &err) : build_node(run, ends, &err);
    if (result == 0)
        result = executor_run_watch(run, &err);
    (void)out;
    (void)error;
    if (result < 0) {
        executor_run_bury(run);
        put_off(executor, retry,
                forks ? "python is not forked but started" : "no jail could be made ahead", &err);
        return NULL;
    }
    retry->wait_ms = 0;
    pool->forks += forks;
    run->pool = pool;
    executor_run_link(&pool->waiting, run);
    pool->count++;
    counts_of(executor, run->runtime)->refills++;
    return run;
}

/* ---- Zygotes ---- */

/* No untrusted code runs in a zygote, and it holds no secrets. Its policy is that of a run. */
static int start_zygote(struct pool *pool, const struct jail *jail, struct brig_error *err)
{
    const struct executor *executor = pool->executor;
    const struct config_list *preload = &executor->config->sandbox.pool.preload;
    char file[sizeof RUNTIME_WORKSPACE + 1 + EXECUTION_NAME_MAX];
    autostr struct str modules = {0};
    for (size_t i = 0; i < preload->count; i++)
        str_concat(&modules, i > 0 ? " " : "", preload->items[i]);
    if (modules.failed)
        return brig_fail_nomem(err);
    (void)snprintf(file, sizeof file, RUNTIME_WORKSPACE "/%s",
                   runtime_file_name(pool->runtime, &(struct execution_request){0}));
    struct zygote_config config = {.policy = jail->policy,
                                   .argv = jail->argv,
                                   .file = file,
                                   .modules = modules.data,
                                   .library = executor->pools.library};
    if (executor->as_root) { /* the uids of all slots, and the spare one */
        config.first_id = executor->config->sandbox.uid_first;
        config.id_count = (uint32_t)executor->slot_count + 1;
    }
    return zygote_new(&config, &pool->zygote, err);
}

static void give_up_zygote(struct pool *pool, const struct brig_error *err)
{
    pool->gone = true;
    executor_unwatch(pool->executor, &pool->source);
    zygote_lost(pool->executor, err);
}

static void zygote_heard(void *owner, uint32_t events)
{
    struct pool *pool = owner;
    struct brig_error err = {0};
    (void)events;
    if (!pool->gone && zygote_process(pool->zygote, &err) < 0)
        give_up_zygote(pool, &err);
}

static int make_zygote(struct pool *pool, uint64_t now_ms, struct brig_error *err)
{
    const struct executor *executor = pool->executor;
    uid_t host_uid = executor->as_root ? executor->config->sandbox.uid_first : (uid_t)-1;
    struct jail jail;
    int result =
        executor_jail_make(&executor->ground, pool->runtime, NULL, JAIL_LATE, host_uid, &jail, err);
    if (result == 0)
        result = start_zygote(pool, &jail, err);
    executor_jail_done(&jail);
    if (result < 0)
        return result;
    pool->gone = false;
    pool->forks = 0;
    pool->born_ms = now_ms;
    pool->source = (struct executor_source){
        .ready = zygote_heard, .owner = pool, .fd = zygote_fd(pool->zygote)};
    return executor_watch(executor, &pool->source, EPOLLIN, err);
}

static void free_zygote(struct pool *pool)
{
    if (!pool->zygote)
        return;
    if (!pool->gone)
        executor_unwatch(pool->executor, &pool->source);
    zygote_free(take_ptr(&pool->zygote));
}

static void look_after_zygote(struct executor *executor, struct pool *pool, uint64_t now_ms)
{
    const struct server_config *config = executor->config;
    struct brig_error err = {0};
    if (pool->gone || pool->forks >= config->sandbox.pool.zygote_runs ||
        now_ms >= pool->born_ms + config->sandbox.pool.zygote_age_ms)
        free_zygote(pool);
    if (pool->zygote || pool->runtime->parking != PARKING_ZYGOTE || pool->size.target == 0 ||
        now_ms < executor->pools.zygote_retry.at_ms)
        return;
    if (make_zygote(pool, now_ms, &err) < 0) {
        free_zygote(pool);
        zygote_lost(executor, &err);
    }
}

void executor_pools_zygote_stuck(struct executor *executor, const struct zygote *zygote)
{
    struct brig_error err = {0};
    (void)brig_fail(&err, BRIG_E_STATE, 0, "the zygote does not answer");
    for (struct pool *pool = executor->pools.first; pool; pool = pool->next)
        if (pool->zygote == zygote && !pool->gone)
            give_up_zygote(pool, &err);
}

/* ---- Requests ---- */

static struct pool *find(const struct executor *executor, const struct runtime *runtime,
                         const char *domain)
{
    for (struct pool *pool = executor->pools.first; pool; pool = pool->next)
        if (pool->runtime == runtime && strcmp(pool->domain, domain) == 0)
            return pool;
    return NULL;
}

/* If memory runs out, requests start cold. */
static void make(struct executor *executor, const struct runtime *runtime, const char *domain)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool || strlen(domain) >= sizeof pool->domain ||
        !runtime_find_program(runtime, &pool->program)) {
        free(pool);
        return;
    }
    pool->executor = executor;
    pool->runtime = runtime;
    (void)snprintf(pool->domain, sizeof pool->domain, "%s", domain);
    pool_size_init(&pool->size, runtime->pool_min, runtime->pool_max, clock_now_ms());
    pool->next = executor->pools.first;
    executor->pools.first = pool;
}

/* The jail that has been ready longest, else the oldest one: it will be ready sooner than a new
 * one. */
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

static bool may_wait(const struct executor *executor, const struct runtime *runtime,
                     const struct execution_request *request)
{
    bool can = runtime->parking == PARKING_NODE ||
               (runtime->parking == PARKING_ZYGOTE && executor->pools.library >= 0);
    return executor->pools.enabled && can && jail_fits_late(runtime, request);
}

/* Finds a waiting jail for such requests. Makes a pool if there is none. */
static struct run *look_for(struct executor *executor, const struct runtime *runtime,
                            const char *domain)
{
    struct runtime_program program = {0};
    struct pool *pool = find(executor, runtime, domain);
    if (!pool)
        make(executor, runtime, domain);
    if (!pool || pool->outdated)
        return NULL;
    if (!runtime_find_program(runtime, &program) ||
        memcmp(&program, &pool->program, sizeof program) != 0) {
        pool->outdated = true;
        pool->program = program;
        return NULL;
    }
    struct run *run = choose(pool);
    uint64_t now = clock_now_ms();
    if (!run) {
        pool_size_missed(&pool->size, now);
        run = runtime->parking == PARKING_ZYGOTE ? build(executor, pool) : NULL;
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
    struct message_pool *counts = counts_of(executor, runtime);
    executor->pools.quiet_ms = clock_now_ms() + QUIET_MS;
    struct run *run =
        may_wait(executor, runtime, request) ? look_for(executor, runtime, request->domain) : NULL;
    if (run)
        run->trace.warm = true;
    *(run ? &counts->hits : &counts->misses) += 1;
    return run;
}

/* ---- Maintenance ---- */

static void empty(struct pool *pool)
{
    while (pool->waiting)
        executor_pool_discard(pool->waiting);
    free_zygote(pool);
}

static void drop(struct executor *executor, struct pool *pool)
{
    struct pool **at = &executor->pools.first;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    empty(pool);
    free(pool);
}

/* If more keys than allowed have a pool, the one that was unused longest is removed. */
static bool is_one_too_many(const struct executor *executor, const struct pool *pool)
{
    size_t newer = 0;
    for (const struct pool *other = executor->pools.first; other; other = other->next)
        newer += other->runtime == pool->runtime && other != pool &&
                 other->size.used_ms >= pool->size.used_ms;
    return newer >= executor->config->sandbox.pool.domains;
}

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
            executor_pool_discard(oldest);
        oldest = newer;
    }
}

static void look_after_all(struct executor *executor, uint64_t now_ms)
{
    bool due = now_ms >= executor->pools.due_ms;
    for (struct pool *pool = executor->pools.first, *next; pool; pool = next) {
        next = pool->next;
        if (due)
            look_after(executor, pool, now_ms);
        bool unused = pool->size.target == 0 && pool->count == 0 &&
                      now_ms >= pool->size.used_ms + executor->config->sandbox.pool.idle_ms;
        if (pool->outdated)
            empty(pool);
        pool->outdated = false;
        if (unused || executor->draining || is_one_too_many(executor, pool))
            drop(executor, pool);
        else
            look_after_zygote(executor, pool, now_ms);
    }
    if (due)
        executor->pools.due_ms = now_ms + LOOK_MS;
}

/* Jails are built one at a time. */
static bool may_build(const struct executor *executor)
{
    uint64_t bytes = 0;
    if (!executor_slots_are_spare(executor))
        return false;
    for (const struct pool *pool = executor->pools.first; pool; pool = pool->next) {
        bytes += pool->count * (pool->runtime->parking == PARKING_NODE ? BYTES_NODE : BYTES_FORKED);
        for (const struct run *run = pool->waiting; run; run = run->next)
            if (!run->ready)
                return false;
    }
    return bytes < executor->config->sandbox.pool.memory_bytes;
}

static size_t lack(const struct pool *pool)
{
    return pool->size.target > pool->count ? pool->size.target - pool->count : 0;
}

/* Chooses the pool that lacks most jails. A run that just started gets the CPU first, unless the
 * next such request would find neither a jail nor a zygote. */
static struct pool *choose_needy(const struct executor *executor, uint64_t now_ms)
{
    bool quiet = executor->run_count == 0 || now_ms >= executor->pools.quiet_ms;
    struct pool *needy = NULL;
    for (struct pool *pool = executor->pools.first; pool; pool = pool->next)
        if (lack(pool) > (needy ? lack(needy) : 0) &&
            (quiet || (pool->count == 0 && !zygote_can_fork(pool))))
            needy = pool;
    return needy;
}

static void count(struct executor *executor)
{
    struct message_gauges *gauges = &executor->gauges;
    for (size_t i = 0; i < executor->config->runtime_count; i++)
        gauges->pools[i].ready = gauges->pools[i].target = gauges->pools[i].building = 0;
    for (const struct pool *pool = executor->pools.first; pool; pool = pool->next) {
        struct message_pool *counts = counts_of(executor, pool->runtime);
        counts->target += pool->size.target;
        for (const struct run *run = pool->waiting; run; run = run->next)
            *(run->ready ? &counts->ready : &counts->building) += 1;
    }
}

void executor_pools_settle(struct executor *executor, uint64_t now_ms)
{
    if (now_ms >= executor->pools.due_ms)
        executor_runs_hurry(executor);
    look_after_all(executor, now_ms);
    struct pool *needy = may_build(executor) ? choose_needy(executor, now_ms) : NULL;
    if (needy)
        (void)build(executor, needy);
    count(executor);
}

uint64_t executor_pools_due_ms(const struct executor *executor, uint64_t now_ms)
{
    const struct pools *pools = &executor->pools;
    bool lacks = false;
    if (!pools->first)
        return executor->run_count > 0 && pools->enabled ? pools->due_ms : UINT64_MAX;
    for (const struct pool *pool = pools->first; pool; pool = pool->next)
        lacks = lacks || lack(pool) > 0;
    bool soon = lacks && pools->quiet_ms > now_ms && pools->quiet_ms < pools->due_ms;
    return soon ? pools->quiet_ms : pools->due_ms;
}

static void drop_all(struct executor *executor)
{
    while (executor->pools.first)
        drop(executor, executor->pools.first);
}

void executor_pools_end(struct executor *executor)
{
    drop_all(executor);
    own_close(&executor->pools.library);
}

/* ---- Frames: what jails that begin cold have in common, one for each runtime ---- */

static struct timespec etc_changed(void)
{
    struct stat info = {0};
    (void)stat("/etc", &info);
    return info.st_mtim;
}

static bool is_current(const struct frame *frame)
{
    struct timespec now = etc_changed();
    return now.tv_sec == frame->etc_changed.tv_sec && now.tv_nsec == frame->etc_changed.tv_nsec &&
           template_is_current(frame->template);
}

static struct frame *frame_of(struct executor *executor, const struct runtime *runtime)
{
    return &executor->frames[runtime - executor->config->runtimes];
}

struct brig_template *executor_frame_find(struct executor *executor, const struct runtime *runtime,
                                          const struct brig_policy *policy)
{
    struct frame *frame = frame_of(executor, runtime);
    /* An agent has a door, a home and a credential of its own; and as root the frame needs an id. */
    if (runtime->agent || runtime->image || runtime->allow[0] ||
        (executor->as_root && !executor->has_spare_id))
        return NULL;
    frame->used_ms = clock_now_ms();
    if (frame->template && !is_current(frame))
        brig_template_free(take_ptr(&frame->template));
    return frame->template && template_fits(frame->template, policy) ? frame->template : NULL;
}

void executor_frame_failed(struct executor *executor, const struct runtime *runtime)
{
    struct frame *frame = frame_of(executor, runtime);
    brig_template_free(take_ptr(&frame->template));
    frame->broken = true;
}

static int make_template(const struct executor *executor, const struct runtime *runtime,
                         struct brig_template **ret_template, struct brig_error *err)
{
    struct jail jail;
    struct template_ids ids = {0};
    if (executor->as_root) { /* each slot's, and the one after them */
        ids.first = executor->config->sandbox.uid_first;
        ids.count = (uint32_t)executor->slot_count + 1;
    }
    uid_t host_uid = executor->as_root ? ids.first : (uid_t)-1;
    int result =
        executor_jail_make(&executor->ground, runtime, NULL, JAIL_COMMON, host_uid, &jail, err);
    if (result == 0)
        result = template_new(jail.policy, PLAN_NESTED, &ids, ret_template, err);
    executor_jail_done(&jail);
    return result;
}

static void drop_frame(struct frame *frame)
{
    brig_template_free(frame->template);
    *frame = (struct frame){0};
}

void executor_frames_settle(struct executor *executor, uint64_t now_ms)
{
    const struct server_config *config = executor->config;
    for (size_t i = 0; i < config->runtime_count; i++) {
        struct frame *frame = &executor->frames[i];
        bool over = now_ms >= frame->born_ms + config->sandbox.pool.age_ms ||
                    now_ms >= frame->used_ms + config->sandbox.pool.idle_ms;
        if (frame->template || frame->broken) {
            if (over)
                drop_frame(frame);
        } else if (frame->used_ms && !executor->draining) {
            frame->etc_changed = etc_changed();
            frame->born_ms = now_ms;
            /* Without one, runs are built from scratch: nothing the log needs to say. */
            frame->broken =
                make_template(executor, &config->runtimes[i], &frame->template, NULL) < 0;
        }
    }
}

void executor_pools_renew(struct executor *executor)
{
    drop_all(executor);
    executor_frames_end(executor);
}

void executor_frames_end(struct executor *executor)
{
    for (size_t i = 0; i < executor->config->runtime_count; i++)
        drop_frame(&executor->frames[i]);
}
