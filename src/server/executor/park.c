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

static int build_node(struct run *run, const struct jail *jail, const struct brig_command *plain,
                      struct brig_error *err)
{
    const char *argv[RUNTIME_ARGV_MAX + 3] = {jail->argv[0], "--require", NODE_SCRIPT};
    for (size_t i = 1; i < RUNTIME_ARGV_MAX && jail->argv[i]; i++)
        argv[i + 2] = jail->argv[i];
    const struct brig_pass_fd gate = {.fd = run->gate_end, .number = NODE_GATE};
    struct brig_command command = *plain;
    command.argv = argv;
    command.pass_fds = &gate;
    command.pass_fd_count = 1;
    int result = brig_policy_file(jail->policy, NODE_SCRIPT, park_node_script,
                                  sizeof park_node_script, 0444, err);
    return result < 0 ? result : brig_start(jail->policy, &command, &run->job, err);
}

static int build(struct run *run, const struct jail *jail, struct brig_error *err)
{
    const struct brig_command command = {
        .argv = jail->argv,
        .stdio = {{.kind = BRIG_STDIO_BYTES},
                  {.kind = BRIG_STDIO_FD, .fd = run->output_ends[0]},
                  {.kind = BRIG_STDIO_FD, .fd = run->output_ends[1]}},
    };
    return build_node(run, jail, &command, err);
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
        result = build(run, &jail, err);
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
        .wall_ms = jail_timeout_ms(run->executor->config, run->runtime, request),
    };
    int result = job_release(run->job, &late, err);
    if (result < 0 || run->gate.fd < 0)
        return result;
    executor_unwatch(run->executor, &run->gate);
    /* It stays open: Node may not be ready yet, and has still to say so. */
    ssize_t sent = send(run->gate.fd, "g", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == 1 ? 0 : brig_fail(err, BRIG_E_STATE, 0, "the jail is gone");
}
