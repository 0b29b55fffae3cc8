/* SPDX-License-Identifier: MIT */
/* One jail that waits for its code. All of it is there: namespaces, mounts, limits, filters, the
 * supervision; and its code is not. How far its program gets is a column of the table of runtimes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "jail/job/job.h"
#include "jail/prepare/zygote.h"
#include "server/config.h"
#include "server/executor/executor.h"
#include "server/executor/jail_check.h"
#include "server/executor/pool.h"
#include "server/park_node.h" /* made from park_node.js */

/* In the jail's own /tmp: there is one in every view. */
#define NODE_SCRIPT "/tmp/.brig-park.js"
/* A number of which Node's own fds stay clear, so that they have the ones they always have. */
#define NODE_GATE 200
/* What the kernel keeps for a jail: namespaces, mounts, a network; see bench/memory. */
#define KERNEL_BYTES ((uint64_t)512 << 10)
#define CHILDREN_MAX 4

/* ---- making it ---- */

static int open_gate(struct run *run, struct brig_error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a gate for a waiting jail");
    run->gate.fd = ends[0];
    run->gate_end = ends[1];
    return 0;
}

/* The jail has them now. */
static void close_given(struct run *run)
{
    int *const given[] = {&run->output_ends[0], &run->output_ends[1], &run->gate_end};
    for (size_t i = 0; i < ARRAY_LENGTH(given); i++)
        if (*given[i] >= 0)
            (void)close(take_fd(given[i]));
}

static int start_node(struct run *run, const struct jail *jail, struct brig_error *err)
{
    const char *argv[RUNTIME_ARGV_MAX + 3] = {jail->argv[0], "--require", NODE_SCRIPT};
    for (size_t i = 1; i < RUNTIME_ARGV_MAX && jail->argv[i]; i++)
        argv[i + 2] = jail->argv[i];
    const struct brig_pass_fd gate = {.fd = run->gate_end, .number = NODE_GATE};
    const struct brig_command command = {
        .argv = argv,
        .stdio = {{.kind = BRIG_STDIO_BYTES},
                  {.kind = BRIG_STDIO_FD, .fd = run->output_ends[0]},
                  {.kind = BRIG_STDIO_FD, .fd = run->output_ends[1]}},
        .pass_fds = &gate,
        .pass_fd_count = 1,
    };
    int result = brig_policy_file(jail->policy, NODE_SCRIPT, park_node_script,
                                  sizeof park_node_script, 0444, err);
    return result < 0 ? result : brig_start(jail->policy, &command, &run->job, err);
}

int executor_park_build(struct run *run, struct brig_error *err)
{
    struct jail jail;
    int result = executor_output_open(run, run->output_ends, err);
    if (result < 0 || (result = open_gate(run, err)) < 0)
        return result;
    result =
        executor_jail_make_late(&run->executor->ground, run->runtime, run->host_uid, &jail, err);
    if (result == 0)
        result = start_node(run, &jail, err);
    executor_jail_done(&jail);
    close_given(run);
    return result;
}

int executor_park_fork(struct run *run, struct zygote *zygote, struct brig_error *err)
{
    int result = executor_output_open(run, run->output_ends, err);
    const struct job_source source = {.zygote = zygote, .host_id = run->host_uid};
    const struct brig_command command = {
        .argv = run->runtime->argv, /* of no meaning here: it runs already */
        .stdio = {{.kind = BRIG_STDIO_BYTES},
                  {.kind = BRIG_STDIO_FD, .fd = run->output_ends[0]},
                  {.kind = BRIG_STDIO_FD, .fd = run->output_ends[1]}},
    };
    if (result == 0)
        result = job_start(&source, &command, &run->job, err);
    close_given(run);
    return result;
}

/* ---- while it waits ---- */

/* Node says a letter; its end says nothing, and is noticed as the job's. */
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

int executor_park_adopt(struct run *run, struct brig_error *err)
{
    run->state = RUN_WAITING;
    run->parked_ms = clock_now_ms();
    int result = executor_run_watch(run, err);
    if (result < 0 || run->gate.fd < 0)
        return result;
    run->gate.ready = gate_ready;
    run->gate.owner = run;
    return executor_watch(run->executor, &run->gate, EPOLLIN, err);
}

bool executor_park_is_building(const struct run *run)
{
    return run->job && run->job->building;
}

/* Of what it shares with others, its part. */
static uint64_t process_bytes(pid_t pid)
{
    char path[64], line[256];
    unsigned long long kilobytes = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (str_starts_with(line, "Pss:")) {
            kilobytes = strtoull(line + strlen("Pss:"), NULL, 10);
            break;
        }
    if (file)
        (void)fclose(file);
    return kilobytes * 1024;
}

uint64_t executor_park_bytes(const struct run *run)
{
    pid_t first = brig_job_pid(run->job);
    uint64_t bytes = KERNEL_BYTES + process_bytes(first);
    char path[64], text[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", first, first);
    FILE *file = fopen(path, "re");
    if (file && fgets(text, sizeof text, file)) {
        char *at = text;
        for (int i = 0; i < CHILDREN_MAX && *at; i++)
            bytes += process_bytes((pid_t)strtol(at, &at, 10));
    }
    if (file)
        (void)fclose(file);
    return bytes;
}

/* ---- and goes ---- */

int executor_park_release(struct run *run, struct brig_error *err)
{
    const struct execution_request *request = &run->request;
    bool from_input = run->runtime->input == RUNTIME_STDIN;
    const struct execution_bytes *input = from_input ? &request->code : &request->stdin_bytes;
    const struct job_late late = {
        .code = request->code.data,
        .code_length = request->code.length,
        .input = input->data,
        .input_length = input->length,
        .wall_ms = jail_timeout_ms(run->runtime, request),
    };
    int result = job_release(run->job, &late, err);
    if (result < 0 || run->gate.fd < 0)
        return result;
    executor_unwatch(run->executor, &run->gate);
    /* It stays open: Node may not be ready yet, and has still to say so. */
    ssize_t sent = send(run->gate.fd, "g", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == 1 ? 0 : brig_fail(err, BRIG_E_STATE, 0, "the jail is gone");
}

/* ---- zygotes ---- */

/* The interpreter from which the jails of one pool are forked. No code of anybody's runs in it,
 * and it holds no secret: its policy is the one of a run. */

static int start(struct pool_zygote *own, const struct jail *jail, const char *modules,
                 struct brig_error *err)
{
    const struct executor *executor = own->executor;
    char file[sizeof RUNTIME_WORKSPACE + 1 + EXECUTION_NAME_MAX];
    (void)snprintf(file, sizeof file, RUNTIME_WORKSPACE "/%s", jail_file_name(own->runtime));
    struct zygote_config config = {.policy = jail->policy,
                                   .argv = jail->argv,
                                   .file = file,
                                   .modules = modules,
                                   .library = executor->pools.library};
    if (executor->as_root) { /* each slot's, and the one behind them */
        config.first_id = executor->config->sandbox.uid_first;
        config.id_count = (uint32_t)executor->slot_count + 1;
    }
    return zygote_new(&config, &own->zygote, err);
}

static int build(struct pool_zygote *own, struct brig_error *err)
{
    const struct executor *executor = own->executor;
    const struct config_list *preload = &executor->config->sandbox.pool.preload;
    autostr struct str modules = {0};
    struct jail jail;
    for (size_t i = 0; i < preload->count; i++)
        str_appendf(&modules, "%s%s", i > 0 ? " " : "", preload->items[i]);
    if (modules.failed)
        return brig_fail_nomem(err);
    uid_t host_uid = executor->as_root ? executor->config->sandbox.uid_first : (uid_t)-1;
    int result = executor_jail_make_late(&executor->ground, own->runtime, host_uid, &jail, err);
    if (result == 0)
        result = start(own, &jail, modules.data, err);
    executor_jail_done(&jail);
    return result;
}

void executor_zygote_give_up(struct pool_zygote *own)
{
    own->gone = true;
    executor_unwatch(own->executor, &own->source);
}

static void heard(void *owner, uint32_t events)
{
    struct pool_zygote *own = owner;
    struct brig_error err = {0};
    (void)events;
    if (own->gone || zygote_process(own->zygote, &err) == 0)
        return;
    executor_zygote_give_up(own);
    executor_pools_zygote_lost(own->executor, &err);
}

static int adopt(struct pool_zygote *own, struct brig_error *err)
{
    own->born_ms = clock_now_ms();
    own->source =
        (struct executor_source){.ready = heard, .owner = own, .fd = zygote_fd(own->zygote)};
    return executor_watch(own->executor, &own->source, EPOLLIN, err);
}

int executor_zygote_new(struct executor *executor, const struct runtime *runtime,
                        struct pool_zygote **ret_zygote, struct brig_error *err)
{
    struct pool_zygote *own = calloc(1, sizeof *own);
    if (!own)
        return brig_fail_nomem(err);
    *own = (struct pool_zygote){.executor = executor, .runtime = runtime, .source.fd = -1};
    int result = build(own, err);
    if (result == 0)
        result = adopt(own, err);
    if (result < 0) {
        zygote_free(own->zygote);
        free(own);
        return result;
    }
    *ret_zygote = own;
    return 0;
}

bool executor_zygote_is_ready(const struct pool_zygote *own)
{
    return own && own->zygote && !own->gone && zygote_is_ready(own->zygote);
}

bool executor_zygote_is_worn(const struct pool_zygote *own, uint64_t now_ms)
{
    if (!own || own->gone)
        return true;
    const struct server_config *config = own->executor->config;
    return own->runs >= config->sandbox.pool.zygote_runs ||
           now_ms >= own->born_ms + config->sandbox.pool.zygote_age_ms;
}

void executor_zygote_bury(struct pool_zygote *own)
{
    if (!own)
        return;
    if (!own->gone)
        executor_unwatch(own->executor, &own->source);
    own->gone = true;
    own->next = own->executor->pools.buried;
    own->executor->pools.buried = own;
}

void executor_zygotes_clear(struct executor *executor)
{
    while (executor->pools.buried) {
        struct pool_zygote *own = executor->pools.buried;
        executor->pools.buried = own->next;
        zygote_free(own->zygote);
        free(own);
    }
}
