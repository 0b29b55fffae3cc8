/* SPDX-License-Identifier: MIT */
/* Forks: a new sandbox like another one, with a copy of its files. Files of sandboxes are in memory that
 * only their jails can reach, so the program of ours in the one writes them to a pipe, and that in the
 * other reads them. The time is that of the bytes, which limits.disk_mb bounds. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/job/job.h"
#include "server/executor/executor.h"
#include "server/executor/jail.h"

#define FORK_MS 60000

/* One end of a copy. It counts as a command of its sandbox until both are over, so that the sandbox is
 * not freed. */
struct fork_end {
    struct sandbox_fork *fork;
    struct sandbox *sandbox;
    struct brig_job *job; /* NULL once it is over */
    struct executor_source source;
};

struct sandbox_fork {
    struct sandbox_fork *next;
    struct caller caller;
    struct fork_end sender, receiver;
    bool failed;
};

static void count(struct sandbox *sandbox, size_t change)
{
    sandbox->running_count += change;
    sandbox->executor->sandboxes.command_count += change;
    sandbox->executor->sandboxes.due_ms = 0;
}

static void drop_job(struct fork_end *end)
{
    if (end->source.fd >= 0)
        executor_unwatch(end->sandbox->executor, &end->source);
    end->source.fd = -1;
    brig_job_free(take_ptr(&end->job));
}

/* Releases both sandboxes. */
static void free_fork(struct executor *executor, struct sandbox_fork *fork)
{
    struct sandbox_fork **at = &executor->sandboxes.forks;
    while (*at != fork)
        at = &(*at)->next;
    *at = fork->next;
    drop_job(&fork->sender);
    drop_job(&fork->receiver);
    count(fork->sender.sandbox, SIZE_MAX);
    count(fork->receiver.sandbox, SIZE_MAX);
    free(fork);
}

/* Both ends are over. */
static void conclude(struct sandbox_fork *fork)
{
    struct sandbox *made = fork->receiver.sandbox;
    struct executor *executor = made->executor;
    struct caller caller = fork->caller;
    bool failed = fork->failed;
    free_fork(executor, fork);
    if (!failed && made->state != SANDBOX_ENDING) {
        executor_sandbox_tell(made, caller);
        return;
    }
    executor_sandbox_refuse(executor, caller, SANDBOX_FAILED, "",
                            "the files could not be copied to the fork");
    executor_sandbox_end(made, "the files could not be copied to it");
}

static void end_ready(void *owner, uint32_t events)
{
    struct fork_end *end = owner;
    struct sandbox_fork *fork = end->fork;
    struct brig_result result = {0};
    (void)events;
    if (!end->job || brig_job_process(end->job, NULL) == 0)
        return;
    fork->failed |= job_take_result(end->job, &result, NULL) < 0 || result.outcome != BRIG_EXITED ||
                    result.exit_code != 0;
    result_done(&result);
    drop_job(end);
    if (!fork->sender.job && !fork->receiver.job)
        conclude(fork);
}

static int start_end(struct fork_end *end, const char *const *argv, int stream, int fd,
                     struct brig_error *err)
{
    struct sandbox *sandbox = end->sandbox;
    struct sandbox_request plain = {.timeout_ms = FORK_MS};
    const struct brig_policy *policy = executor_command_policy(sandbox, &plain, err);
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.stdio[stream] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = fd};
    const struct job_source source = {
        .policy = policy, .attach = &sandbox->attach, .jail = sandbox->job};
    int result = policy ? job_start(&source, &command, &end->job, err) : BRIG_E_NOMEM;
    sandbox_request_done(&plain);
    if (result < 0)
        return result;
    end->source = (struct executor_source){end_ready, end, brig_job_fd(end->job)};
    return executor_watch(sandbox->executor, &end->source, EPOLLIN, err);
}

static int start_copy(struct sandbox_fork *fork, struct brig_error *err)
{
    const char *const send[] = {JAIL_GUEST, "send",         RUNTIME_WORKSPACE,
                                "/tmp",     RUNTIME_OUTPUT, fork->sender.sandbox->request.home,
                                NULL};
    const char *const receive[] = {JAIL_GUEST, "receive", NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    autoclose int out = ends[0], in = ends[1];
    int result = start_end(&fork->receiver, receive, 0, out, err);
    return result < 0 ? result : start_end(&fork->sender, send, 1, in, err);
}

/* The request of the sandbox, with what the fork is to have else. */
static int make_request(const struct sandbox *sandbox, const struct sandbox_request *asked,
                        struct sandbox_request *ret, struct brig_error *err)
{
    autostr struct str bytes = {0};
    struct sandbox_request like = sandbox->request;
    const struct sandbox_request *network = executor_sandbox_network(sandbox);
    like.request_id = asked->request_id;
    like.client = asked->client;
    like.timeout_ms = asked->timeout_ms;
    like.network = network->network;
    like.allow = network->allow;
    like.allow_count = network->allow_count;
    if (*asked->name)
        like.name = asked->name;
    if (asked->metadata_count > 0) {
        like.metadata = asked->metadata;
        like.metadata_count = asked->metadata_count;
    }
    like.idempotency_key = like.body_sha256 = NULL;
    int result = sandbox_request_encode(&like, &bytes, err);
    return result < 0 ? result : sandbox_request_decode(bytes.data, bytes.length, ret, err);
}

void executor_sandbox_fork(struct sandbox *sandbox, const struct sandbox_request *request,
                           struct caller caller)
{
    struct executor *executor = sandbox->executor;
    struct sandbox_request like = {0};
    struct brig_error err = {0};
    struct sandbox_fork *fork = calloc(1, sizeof *fork);
    struct sandbox *made = NULL;
    if (!fork || make_request(sandbox, request, &like, &err) < 0)
        executor_sandbox_refuse(executor, caller, SANDBOX_BUSY, "", "out of memory");
    else
        made = executor_sandbox_create(executor, &like, caller);
    if (!made) {
        sandbox_request_done(&like);
        free(fork);
        return;
    }
    *fork = (struct sandbox_fork){.next = executor->sandboxes.forks,
                                  .caller = caller,
                                  .sender = {fork, sandbox, NULL, {.fd = -1}},
                                  .receiver = {fork, made, NULL, {.fd = -1}}};
    executor->sandboxes.forks = fork;
    count(sandbox, 1);
    count(made, 1);
    if (start_copy(fork, &err) < 0) {
        fork->failed = true;
        conclude(fork);
    }
}

void executor_forks_cancel(const struct sandbox *sandbox)
{
    for (struct sandbox_fork *fork = sandbox->executor->sandboxes.forks; fork; fork = fork->next)
        if (fork->sender.sandbox == sandbox || fork->receiver.sandbox == sandbox) {
            fork->failed = true;
            if (fork->sender.job)
                (void)brig_job_cancel(fork->sender.job, NULL);
            if (fork->receiver.job)
                (void)brig_job_cancel(fork->receiver.job, NULL);
        }
}

void executor_forks_abandon(struct executor *executor)
{
    while (executor->sandboxes.forks)
        free_fork(executor, executor->sandboxes.forks);
}
