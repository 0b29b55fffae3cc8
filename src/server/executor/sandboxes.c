/* SPDX-License-Identifier: MIT */
/* The life of a sandbox: looked at, asked for something, ended. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "jail/job/job.h"
#include "server/config/config.h"
#include "server/executor/executor.h"

#define CHECK_MS 1000 /* how often idle programs are looked at */
/* After the end of a sandbox that waited, until another is started: that one could fail the same
 * way. */
#define REFILL_MS 1000

/* ---- answers ---- */

void executor_sandbox_answer(struct executor *executor, struct caller caller,
                             const struct sandbox_answer *answer)
{
    static const struct sandbox_answer too_large = {.fault = SANDBOX_LARGE,
                                                    .message = "the answer is too large"};
    autostr struct str bytes = {0};
    if (sandbox_answer_encode(answer, &bytes, NULL) < 0 || bytes.length > MESSAGE_BYTES_MAX) {
        str_done(&bytes);
        (void)sandbox_answer_encode(&too_large, &bytes, NULL);
    }
    if (!bytes.failed)
        executor_tell_http(executor, caller.http, MESSAGE_SANDBOX_ANSWER, caller.tag, bytes.data,
                           bytes.length);
}

void executor_sandbox_refuse(struct executor *executor, struct caller caller,
                             enum sandbox_fault fault, const char *field, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    executor_sandbox_answer(
        executor, caller,
        &(struct sandbox_answer){.fault = fault, .field = field, .message = message});
}

bool executor_sandbox_blames_directory(struct brig_error *err)
{
    char *advice = strstr(err->message, ". Grant it with");
    if (!str_starts_with(err->message, "cannot enter '"))
        return false;
    if (advice)
        *advice = '\0';
    return true;
}

void executor_sandboxes_count(struct executor *executor)
{
    executor->gauges.sandboxes = executor->sandboxes.count;
    executor->gauges.sandboxes_paused = executor->sandboxes.paused_count;
    executor->gauges.sandboxes_waiting = executor->sandboxes.waiting_count;
    executor->gauges.sandbox_commands = executor->sandboxes.command_count;
}

/* ---- information ---- */

static void fill_usage(const struct sandbox *sandbox, struct sandbox_info *info)
{
    struct cgroup_usage usage;
    const struct cgroup *group = sandbox->job ? sandbox->job->limits.group : NULL;
    if (!group)
        return;
    cgroup_usage(group, &usage);
    cgroup_current(group, &info->memory_bytes, &info->pids);
    (void)cgroup_cpu_us(group, &info->cpu_us);
    info->memory_peak_bytes = usage.peak_memory_bytes;
    info->oom_kills = usage.oom_kills;
    info->pids -= info->pids > 0; /* without init */
}

const struct sandbox_request *executor_sandbox_network(const struct sandbox *sandbox)
{
    return sandbox->network.operation == SANDBOX_NETWORK ? &sandbox->network : &sandbox->request;
}

static struct sandbox_info describe(const struct sandbox *sandbox)
{
    const struct sandbox_request *request = &sandbox->request,
                                 *network = executor_sandbox_network(sandbox);
    uint64_t now_ms = clock_now_ms();
    bool paused = sandbox->state == SANDBOX_PAUSED;
    uint64_t left_ms = paused                          ? sandbox->left_ms
                       : sandbox->deadline_ms > now_ms ? sandbox->deadline_ms - now_ms
                                                       : 0;
    struct sandbox_info info = {
        .id = sandbox->id,
        .name = request->name,
        .language = sandbox->runtime->name,
        .image = request->image,
        .state = sandbox->state,
        .created_ns = sandbox->created_ns,
        .deadline_ns = paused ? 0 : clock_wall_ns() + (int64_t)left_ms * 1000000,
        .left_ms = left_ms,
        .metadata = request->metadata,
        .metadata_count = request->metadata_count,
        .network = network->network,
        .allow = network->allow,
        .allow_count = network->allow_count,
        .pauses = request->pauses,
        .commands = sandbox->running_count,
        .unenforced = sandbox->unenforced,
        .unenforced_count = sandbox->unenforced_count,
    };
    memcpy(info.limits, sandbox->limits, sizeof info.limits);
    return info;
}

void executor_sandbox_tell(struct sandbox *sandbox, struct caller caller)
{
    struct sandbox_info info = describe(sandbox);
    fill_usage(sandbox, &info);
    info.token = sandbox->token;
    executor_sandbox_answer(sandbox->executor, caller,
                            &(struct sandbox_answer){.sandboxes = &info, .sandbox_count = 1});
}

static bool has_pair(const struct sandbox_request *request, const struct execution_pair *wanted)
{
    for (size_t i = 0; i < request->metadata_count; i++)
        if (strcmp(request->metadata[i].name, wanted->name) == 0)
            return strcmp(request->metadata[i].value, wanted->value) == 0;
    return false;
}

static bool matches(const struct sandbox *sandbox, const struct sandbox_request *filter)
{
    if (sandbox->state == SANDBOX_ENDING || sandbox->shape ||
        (*filter->domain && strcmp(sandbox->request.domain, filter->domain) != 0) ||
        (filter->states && !(filter->states & 1U << sandbox->state)))
        return false;
    for (size_t i = 0; i < filter->metadata_count; i++)
        if (!has_pair(&sandbox->request, &filter->metadata[i]))
            return false;
    return true;
}

/* Sandboxes are linked newest first. */
static void answer_list(struct executor *executor, const struct sandbox_request *request,
                        struct caller caller)
{
    autoanswer struct sandbox_answer answer = {0};
    answer.sandboxes =
        arena_alloc(&answer.arena, (executor->sandboxes.count + 1) * sizeof *answer.sandboxes);
    for (const struct sandbox *sandbox = executor->sandboxes.first; sandbox && answer.sandboxes;
         sandbox = sandbox->next) {
        if (!matches(sandbox, request))
            continue;
        answer.incomplete = answer.sandbox_count == SANDBOX_LIST_MAX;
        if (answer.incomplete)
            break;
        answer.sandboxes[answer.sandbox_count++] = describe(sandbox);
    }
    executor_sandbox_answer(executor, caller, &answer);
}

/* ---- the end ---- */

static void free_sandbox(struct sandbox *sandbox)
{
    struct executor *executor = sandbox->executor;
    executor_files_end(sandbox, SANDBOX_NOT_FOUND);
    executor_files_settle(sandbox, UINT64_MAX);
    executor_contexts_end(sandbox);
    executor_interpreters_clear(sandbox, true);
    executor_commands_free(sandbox);
    executor_keys_free(sandbox);
    executor_unwatch(executor, &sandbox->source);
    executor_ended_note(executor, sandbox->slot, NULL, NULL);
    executor_sandbox_release(sandbox);
}

void executor_sandbox_link(struct sandbox *sandbox)
{
    struct executor *executor = sandbox->executor;
    struct sandboxes *all = &executor->sandboxes;
    sandbox->previous = NULL;
    sandbox->next = all->first;
    if (sandbox->next)
        sandbox->next->previous = sandbox;
    all->first = sandbox;
    *(sandbox->shape ? &all->waiting_count : &all->count) += 1;
    all->due_ms = 0;
    sandbox->created_ns = clock_wall_ns();
    sandbox->deadline_ms = clock_now_ms() + (sandbox->shape ? executor->config->sandbox.pool.age_ms
                                                            : sandbox->request.timeout_ms);
    if (!sandbox->shape)
        executor_ended_note(executor, sandbox->slot, sandbox->id, sandbox->request.domain);
    executor_sandboxes_count(executor);
}

void executor_sandbox_unlink(struct sandbox *sandbox)
{
    struct sandboxes *all = &sandbox->executor->sandboxes;
    *(sandbox->previous ? &sandbox->previous->next : &all->first) = sandbox->next;
    if (sandbox->next)
        sandbox->next->previous = sandbox->previous;
    *(sandbox->shape ? &all->waiting_count : &all->count) -= 1;
}

void executor_sandbox_end(struct sandbox *sandbox, const char *why)
{
    struct sandboxes *all = &sandbox->executor->sandboxes;
    if (sandbox->state == SANDBOX_ENDING)
        return;
    if (sandbox->state == SANDBOX_PAUSED) { /* frozen processes do not die */
        (void)cgroup_freeze(sandbox->job->limits.group, false);
        all->paused_count--;
    }
    sandbox->state = SANDBOX_ENDING;
    if (!sandbox->shape) /* no client knows it */
        executor_ended_add(sandbox, why);
    executor_files_end(sandbox, SANDBOX_NOT_FOUND);
    executor_contexts_end(sandbox);
    executor_commands_cancel(sandbox);
    executor_forks_cancel(sandbox);
    (void)brig_job_cancel(sandbox->job, NULL); /* fails if the job is over already */
    all->due_ms = 0;
    if (sandbox->shape)
        all->fill_ms = clock_now_ms() + REFILL_MS;
    executor_sandboxes_count(sandbox->executor);
}

void executor_sandbox_job_ready(void *owner, uint32_t events)
{
    struct sandbox *sandbox = owner;
    (void)events;
    if (brig_job_process(sandbox->job, NULL) == 0)
        return;
    executor_unwatch(sandbox->executor, &sandbox->source);
    sandbox->source.fd = -1;
    sandbox->executor->sandboxes.due_ms = 0;
    executor_sandbox_end(sandbox, "its first process ended");
}

/* ---- operations ---- */

/* Takes the same time wherever the tokens differ. */
static bool has_token(const struct sandbox *sandbox, const char *token)
{
    unsigned char difference = strlen(token) != SANDBOX_TOKEN_LENGTH;
    for (size_t i = 0; !difference && i < SANDBOX_TOKEN_LENGTH; i++)
        difference |= (unsigned char)(sandbox->token[i] ^ token[i]);
    return !difference;
}

/* With the sandbox's token, or with the API key that created it. */
static bool may_use(const struct sandbox *sandbox, const struct sandbox_request *request)
{
    if (*request->token)
        return has_token(sandbox, request->token);
    return !*request->domain || strcmp(sandbox->request.domain, request->domain) == 0;
}

static struct sandbox *find(const struct executor *executor, const struct sandbox_request *request)
{
    for (struct sandbox *sandbox = executor->sandboxes.first; sandbox; sandbox = sandbox->next)
        if (!sandbox->shape && strcasecmp(sandbox->id, request->id) == 0)
            return sandbox->state != SANDBOX_ENDING && may_use(sandbox, request) ? sandbox : NULL;
    return NULL;
}

/* Whether a process in the sandbox has to act. */
static bool needs_processes(enum sandbox_operation operation)
{
    switch (operation) {
    case SANDBOX_CONTEXTS:
    case SANDBOX_CONTEXT:
    case SANDBOX_CONTEXT_END:
    case SANDBOX_NETWORK:
        return false;
    default:
        return operation == SANDBOX_START || operation >= SANDBOX_READ;
    }
}

static void serve(struct sandbox *sandbox, struct sandbox_request *request, struct caller caller)
{
    if (sandbox->state == SANDBOX_PAUSED && needs_processes(request->operation)) {
        executor_sandbox_refuse(sandbox->executor, caller, SANDBOX_CONFLICT, "",
                                "the sandbox is paused: resume it first");
        return;
    }
    switch (request->operation) {
    case SANDBOX_GET:
        executor_sandbox_tell(sandbox, caller);
        return;
    case SANDBOX_END:
        executor_sandbox_end(sandbox, "a request ended it");
        executor_sandbox_answer(sandbox->executor, caller, &(struct sandbox_answer){0});
        return;
    case SANDBOX_TIMEOUT:
        executor_sandbox_set_timeout(sandbox, request, caller);
        return;
    case SANDBOX_PAUSE:
    case SANDBOX_RESUME:
        executor_sandbox_pause(sandbox, request->operation == SANDBOX_PAUSE, caller);
        return;
    case SANDBOX_NETWORK:
        executor_sandbox_set_network(sandbox, request, caller);
        return;
    case SANDBOX_FORK:
        executor_sandbox_fork(sandbox, request, caller);
        return;
    case SANDBOX_START:
    case SANDBOX_RELAY:
        executor_command_start(sandbox, request, caller);
        executor_sandboxes_count(sandbox->executor);
        return;
    case SANDBOX_COMMANDS:
        executor_command_list(sandbox, caller);
        return;
    case SANDBOX_COMMAND:
    case SANDBOX_INPUT:
    case SANDBOX_SIGNAL:
    case SANDBOX_RESIZE:
        executor_command_asked(sandbox, request, caller);
        return;
    case SANDBOX_READ:
    case SANDBOX_WRITE:
    case SANDBOX_REMOVE:
    case SANDBOX_ENTRIES:
    case SANDBOX_STAT:
    case SANDBOX_MOVE:
    case SANDBOX_MAKE:
    case SANDBOX_WATCH:
        executor_files_asked(sandbox, request, caller);
        return;
    case SANDBOX_CONTEXT_CREATE:
    case SANDBOX_CONTEXTS:
    case SANDBOX_CONTEXT:
    case SANDBOX_CONTEXT_END:
    case SANDBOX_CONTEXT_RESTART:
    case SANDBOX_CONTEXT_INTERRUPT:
    case SANDBOX_CONTEXT_RUN:
        executor_context_asked(sandbox, request, &caller);
        executor_sandboxes_count(sandbox->executor);
        return;
    case SANDBOX_CREATE:
    case SANDBOX_LIST:
    case SANDBOX_OPERATIONS_:
        return;
    }
}

int executor_sandbox_asked(struct executor *executor, const struct message *message,
                           struct brig_error *err)
{
    struct sandbox_request request;
    const struct caller caller = {.tag = message->tag, .http = executor->http_processes};
    int result = sandbox_request_decode(message->bytes, message->length, &request, err);
    if (result < 0)
        return result;
    struct sandbox *sandbox = NULL;
    if (request.operation == SANDBOX_CREATE) {
        if ((sandbox = executor_sandbox_create(executor, &request, caller)))
            executor_sandbox_tell(sandbox, caller);
    } else if (request.operation == SANDBOX_LIST)
        answer_list(executor, &request, caller);
    else if ((sandbox = find(executor, &request)))
        serve(sandbox, &request, caller);
    else
        executor_ended_refuse(executor, &request, caller);
    sandbox_request_done(&request);
    return 0;
}

int executor_sandbox_left(struct executor *executor, const struct message *message,
                          struct brig_error *err)
{
    const struct caller caller = {.tag = message->tag, .http = executor->http_processes};
    (void)err;
    for (struct sandbox *sandbox = executor->sandboxes.first; sandbox; sandbox = sandbox->next)
        if (executor_command_left(sandbox, caller) || executor_files_left(sandbox, caller) ||
            executor_contexts_left(sandbox, &caller))
            break;
    return 0;
}

/* ---- the loop ---- */

static bool is_over(const struct sandbox *sandbox)
{
    return sandbox->state == SANDBOX_ENDING && sandbox->running_count == 0 &&
           sandbox->source.fd < 0;
}

static void settle_one(struct sandbox *sandbox, uint64_t now_ms)
{
    struct sandboxes *all = &sandbox->executor->sandboxes;
    executor_files_settle(sandbox, now_ms);
    executor_commands_settle(sandbox);
    uint64_t contexts_due_ms = executor_contexts_settle(sandbox, now_ms);
    bool paused = sandbox->state == SANDBOX_PAUSED;
    if (sandbox->state != SANDBOX_ENDING && now_ms >= sandbox->deadline_ms &&
        !executor_sandbox_pause_at_deadline(sandbox))
        executor_sandbox_end(sandbox, paused ? "it was paused for longer than sandboxes.max_paused"
                                             : "its deadline (timeout) was reached");
    if (is_over(sandbox)) {
        executor_sandbox_unlink(sandbox);
        free_sandbox(sandbox);
        return;
    }
    uint64_t due_ms = sandbox->state == SANDBOX_ENDING ? UINT64_MAX : sandbox->deadline_ms;
    if (sandbox->files && now_ms + CHECK_MS < due_ms)
        due_ms = now_ms + CHECK_MS;
    if (contexts_due_ms < due_ms)
        due_ms = contexts_due_ms;
    if (due_ms < all->due_ms)
        all->due_ms = due_ms;
}

void executor_sandboxes_settle(struct executor *executor, uint64_t now_ms)
{
    struct sandboxes *all = &executor->sandboxes;
    if (all->has_paused && !executor_http_is_full(executor)) {
        all->has_paused = false;
        for (struct sandbox *sandbox = all->first; sandbox; sandbox = sandbox->next) {
            executor_commands_resume_streams(sandbox);
            executor_interpreters_resume(sandbox);
        }
    }
    executor_waiting_settle(executor, now_ms);
    if (now_ms < all->due_ms)
        return;
    all->due_ms = UINT64_MAX;
    for (struct sandbox *sandbox = all->first, *next; sandbox; sandbox = next) {
        next = sandbox->next;
        settle_one(sandbox, now_ms);
    }
    executor_sandboxes_count(executor);
}

uint64_t executor_sandboxes_due_ms(const struct executor *executor)
{
    const struct sandboxes *all = &executor->sandboxes;
    return all->fill_ms < all->due_ms ? all->fill_ms : all->due_ms;
}

bool executor_sandboxes_drain(struct executor *executor, bool soon)
{
    for (struct sandbox *sandbox = executor->sandboxes.first; sandbox; sandbox = sandbox->next)
        if (!soon || sandbox->running_count == 0)
            executor_sandbox_end(sandbox, "the server is stopping");
    return !executor->sandboxes.first;
}

void executor_sandboxes_abandon(struct executor *executor)
{
    executor_forks_abandon(executor);
    for (struct sandbox *sandbox; (sandbox = executor->sandboxes.first);) {
        executor_sandbox_end(sandbox, "the server is stopping");
        executor_sandbox_unlink(sandbox);
        free_sandbox(sandbox);
    }
    executor_waiting_end(executor);
    executor_ended_close(executor);
}
