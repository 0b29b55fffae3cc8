/* SPDX-License-Identifier: MIT */
/* Commands in a sandbox: each is an execution, with a row in the history. A command goes on when
 * its client disconnects. Its output is kept up to a limit, the newest part of it, for clients that
 * connect later; also when it has ended. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "jail/job/job.h"
#include "policy/policy.h"
#include "server/config/config.h"
#include "server/environment.h"
#include "server/executor/executor.h"

#define MEBIBYTE (UINT64_C(1) << 20)
#define DRAIN_ROUNDS 64
#define ENDED_MAX 64 /* ended commands that are kept */
#define TERMINAL_VARIABLE "TERM"

/* A program of ours that connects to a port. It is no execution, is not listed, and ends with its
 * client. */
static bool is_relay(const struct command *command)
{
    return command->request.operation == SANDBOX_RELAY;
}

/* ---- results ---- */

/* A run as outcome.c knows it, with what is kept of the output. */
static void borrow_run(const struct command *command, struct run *ret_run)
{
    bool pty = command->request.pty;
    *ret_run = (struct run){.executor = command->sandbox->executor,
                            .runtime = command->sandbox->runtime,
                            .request = command->row,
                            .started_ns = command->started_ns};
    executor_output_collect(command, pty ? SANDBOX_TERMINAL : SANDBOX_STDOUT,
                            &ret_run->streams[0].kept);
    executor_output_collect(command, SANDBOX_STDERR, &ret_run->streams[1].kept);
    ret_run->streams[0].truncated = ret_run->streams[1].truncated = command->dropped;
}

static void return_run(struct run *run)
{
    for (int i = 0; i < 2; i++)
        str_done(&run->streams[i].kept);
}

/* The result so far of a command that runs. */
static void encode_running(const struct command *command, struct str *out)
{
    struct run run;
    borrow_run(command, &run);
    struct execution_result result = {
        .id = command->row.id,
        .status = EXECUTION_RUNNING,
        .exit_code = -1,
        .output = {run.streams[0].kept.data ? run.streams[0].kept.data : "",
                   run.streams[0].kept.length},
        .error_output = {run.streams[1].kept.data ? run.streams[1].kept.data : "",
                         run.streams[1].kept.length},
        .output_truncated = command->dropped,
        .error_output_truncated = command->dropped,
        .message = "",
        .field = "",
        .started_ns = command->started_ns,
        .duration_us = (uint64_t)(clock_wall_ns() - command->started_ns) / 1000,
    };
    (void)execution_result_encode(&result, out, NULL);
    return_run(&run);
}

static struct sandbox_command describe(const struct command *command)
{
    const struct sandbox_request *request = &command->request;
    return (struct sandbox_command){
        .number = command->number,
        .id = command->row.id,
        .args = request->args,
        .arg_count = request->arg_count,
        .cwd = request->cwd,
        .pty = request->pty,
        .started_ns = command->started_ns,
        .result = {command->result.data ? command->result.data : "", command->result.length},
    };
}

static void answer(const struct command *command, struct caller caller, bool more)
{
    autostr struct str so_far = {0};
    struct sandbox_command one = describe(command);
    if (command->job && !more) {
        encode_running(command, &so_far);
        one.result = (struct execution_bytes){so_far.data ? so_far.data : "", so_far.length};
    }
    executor_sandbox_answer(
        command->sandbox->executor, caller,
        &(struct sandbox_answer){.commands = &one,
                                 .command_count = 1,
                                 .more = more,
                                 .ending = command->sandbox->state == SANDBOX_ENDING,
                                 .replayed = caller.replayed});
}

/* ---- the end of a command ---- */

static void conclude(struct command *command, struct execution_result *result)
{
    struct sandbox *sandbox = command->sandbox;
    struct executor *executor = sandbox->executor;
    (void)execution_result_encode(result, &command->result, NULL);
    executor_output_count(sandbox, command->result.length, 0);
    if (!is_relay(command))
        executor_note_end(executor, sandbox->runtime, result, &command->result);
    executor_send_rows(executor);
    execution_result_done(result);
    for (struct follower *next; command->followers; command->followers = next) {
        next = command->followers->next;
        answer(command, command->followers->caller, false);
        free(command->followers);
    }
    sandbox->running_count--;
    executor->sandboxes.command_count--;
    executor->sandboxes.due_ms = 0;
}

void executor_commands_settle(struct sandbox *sandbox)
{
    size_t ended = 0;
    for (struct command **at = &sandbox->commands; *at;) {
        struct command *command = *at;
        if (command->job || (!is_relay(command) && ++ended <= ENDED_MAX)) {
            at = &command->next;
            continue;
        }
        *at = command->next;
        executor_output_forget(command);
        sandbox_request_done(&command->request);
        free(command);
        sandbox->command_count--;
    }
}

static void drop_job(struct command *command)
{
    executor_unwatch(command->sandbox->executor, &command->source);
    command->source.fd = -1;
    executor_input_done(&command->input);
    for (int i = 0; i < 2; i++)
        executor_stream_close(&command->streams[i]);
    brig_job_free(take_ptr(&command->job));
}

static void finish(struct command *command)
{
    struct brig_result from = {0};
    struct execution_result result;
    struct run run;
    for (int i = 0; i < 2; i++)
        for (int round = 0; round < DRAIN_ROUNDS && command->streams[i].source.fd >= 0; round++)
            if (executor_stream_read(&command->streams[i]) == 0)
                break;
    borrow_run(command, &run);
    if (job_take_result(command->job, &from, NULL) == 0)
        executor_outcome(&run, &from, &result);
    else
        executor_outcome_failed(&run, "its result is missing", &result);
    drop_job(command);
    conclude(command, &result);
    result_done(&from);
    return_run(&run);
}

static void job_ready(void *owner, uint32_t events)
{
    struct command *command = owner;
    (void)events;
    if (command->job && brig_job_process(command->job, NULL) != 0)
        finish(command);
}

/* ---- the start of a command ---- */

/* Replaces a variable of the sandbox, or adds one. */
static void set_variable(struct policy_env *env, size_t *count, const struct execution_pair *pair)
{
    size_t i = 0;
    while (i < *count && strcmp(env[i].name, pair->name) != 0)
        i++;
    *count += i == *count;
    env[i] = (struct policy_env){.kind = POLICY_ENV_SET,
                                 .name = (char *)(uintptr_t)pair->name,
                                 .value = (char *)(uintptr_t)pair->value};
}

static void set_limits(struct brig_policy *policy, const struct sandbox_request *request)
{
    const struct {
        enum brig_limit limit;
        uint64_t value;
    } rows[] = {
        {BRIG_LIMIT_MEMORY_BYTES, request->limits[EXECUTION_MEMORY_MB] * MEBIBYTE},
        {BRIG_LIMIT_PROCESSES, request->limits[EXECUTION_PIDS]},
        {BRIG_LIMIT_CPU_PERCENT, request->limits[EXECUTION_CPU_PERCENT]},
        {BRIG_LIMIT_CPU_MS, request->cpu_ms},
        {BRIG_LIMIT_WALL_MS, request->timeout_ms},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (rows[i].value) {
            policy->limits[rows[i].limit] = rows[i].value;
            policy->limits_asked |= 1U << rows[i].limit;
        }
}

struct brig_policy *executor_command_policy(const struct sandbox *sandbox,
                                            struct sandbox_request *request, struct brig_error *err)
{
    static const struct execution_pair terminal = {TERMINAL_VARIABLE, "xterm-256color"};
    struct arena *arena = &request->arena;
    const struct brig_policy *of = sandbox->attach.record.policy;
    struct brig_policy *policy = arena_copy(arena, of, sizeof *of);
    struct policy_env *env =
        arena_alloc(arena, (of->env_count + request->env_count + 1) * sizeof *env);
    char *cwd = request->cwd && request->cwd[0] == '/' ? arena_strdup(arena, request->cwd)
                : request->cwd ? arena_concat(arena, of->workdir, "/", request->cwd)
                               : of->workdir;
    if (arena->failed) {
        (void)brig_fail_nomem(err);
        return NULL;
    }
    memcpy(env, of->env, of->env_count * sizeof *env);
    policy->env = env;
    if (request->pty)
        set_variable(env, &policy->env_count, &terminal);
    for (size_t i = 0; i < request->env_count; i++)
        set_variable(env, &policy->env_count, &request->env[i]);
    policy->workdir = cwd;
    policy->on_unsupported = BRIG_UNSUPPORTED_WARN;
    set_limits(policy, request);
    return policy;
}

static enum sandbox_fault check_command(const struct sandbox *sandbox,
                                        const struct sandbox_request *request,
                                        const char **ret_field, struct brig_error *err)
{
    size_t bytes = 0;
    *ret_field = "cmd";
    if (request->arg_count == 0 || !*request->args[0]) {
        (void)brig_fail(err, BRIG_E_INVALID, 0, "cmd is empty");
        return SANDBOX_INVALID;
    }
    for (size_t i = 0; i < request->arg_count; i++)
        bytes += strlen(request->args[i]) + 1;
    *ret_field = "env";
    for (size_t i = 0; i < request->env_count; i++) {
        bytes += strlen(request->env[i].name) + strlen(request->env[i].value) + 2;
        if (!environment_name_is_valid(request->env[i].name)) {
            (void)brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not a valid variable name",
                            str_shown(request->env[i].name).text);
            return SANDBOX_INVALID;
        }
    }
    if (bytes > EXECUTION_WORDS_MAX) {
        (void)brig_fail(err, BRIG_E_INVALID, 0, "cmd and env have more than %zu bytes",
                        EXECUTION_WORDS_MAX);
        return SANDBOX_INVALID;
    }
    *ret_field = "limits";
    for (int i = 0; i < EXECUTION_LIMITS_; i++)
        if (request->limits[i] > sandbox->limits[i]) {
            (void)brig_fail(err, BRIG_E_INVALID, 0,
                            "limits.%s is %llu, more than the sandbox has (%llu)",
                            runtime_limit_names[i], (unsigned long long)request->limits[i],
                            (unsigned long long)sandbox->limits[i]);
            return SANDBOX_INVALID;
        }
    *ret_field = "";
    uint64_t most = sandbox->executor->config->sandboxes.max_commands;
    if (sandbox->running_count < most)
        return SANDBOX_OK;
    (void)brig_fail(err, BRIG_E_STATE, 0,
                    "%llu commands run in the sandbox, and there may not be more "
                    "(sandboxes.max_commands)",
                    (unsigned long long)most);
    return SANDBOX_LIMIT;
}

/* Makes the pipes and starts the job. */
static int start_plain(struct command *command, const struct job_source *source,
                       struct brig_error *err)
{
    const struct execution_bytes *bytes = &command->request.bytes;
    struct brig_command plain = {
        .size = sizeof(struct brig_command),
        .argv = command->request.args,
        .stdio = {{.kind = BRIG_STDIO_NULL}, {.kind = BRIG_STDIO_FD}, {.kind = BRIG_STDIO_FD}},
    };
    autoclose int out = -1, error = -1, in = -1;
    int *const theirs[] = {&out, &error};
    for (int i = 0; i < 2; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe for the output");
        *theirs[i] = plain.stdio[i + 1].fd = ends[1];
        int result =
            executor_stream_open(command, i, i ? SANDBOX_STDERR : SANDBOX_STDOUT, ends[0], err);
        if (result < 0)
            return result;
    }
    if (command->request.keep_input) {
        int result = executor_input_start(&command->input, command->sandbox->executor, &in, err);
        if (result < 0)
            return result;
        plain.stdio[0] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = in};
    } else if (bytes->length > 0) {
        plain.stdio[0] = (struct brig_stdio){
            .kind = BRIG_STDIO_BYTES, .bytes = bytes->data, .length = bytes->length};
    }
    return job_start(source, &plain, &command->job, err);
}

static int start_terminal(struct command *command, const struct job_source *source,
                          struct brig_error *err)
{
    const struct sandbox_request *request = &command->request;
    const struct brig_command terminal = {
        .size = sizeof(struct brig_command),
        .argv = request->args,
        .stdio = {{.kind = BRIG_STDIO_PTY}, {.kind = BRIG_STDIO_PTY}, {.kind = BRIG_STDIO_PTY}},
    };
    int result = job_start(source, &terminal, &command->job, err);
    if (result < 0)
        return result;
    if (request->rows > 0 && request->columns > 0)
        (void)brig_job_resize(command->job, (unsigned)request->rows, (unsigned)request->columns,
                              NULL);
    int master = brig_job_terminal(command->job);
    result =
        executor_stream_open(command, 0, SANDBOX_TERMINAL, fcntl(master, F_DUPFD_CLOEXEC, 3), err);
    return result < 0 ? result
                      : executor_input_open(&command->input, command->sandbox->executor,
                                            fcntl(master, F_DUPFD_CLOEXEC, 3), err);
}

static int start_job(struct command *command, struct brig_error *err)
{
    struct sandbox *sandbox = command->sandbox;
    const struct brig_policy *policy = executor_command_policy(sandbox, &command->request, err);
    if (!policy)
        return BRIG_E_NOMEM;
    const struct job_source source = {
        .policy = policy, .attach = &sandbox->attach, .jail = sandbox->job};
    int result = command->request.pty ? start_terminal(command, &source, err)
                                      : start_plain(command, &source, err);
    if (result < 0)
        return result;
    command->source = (struct executor_source){job_ready, command, brig_job_fd(command->job)};
    result = executor_watch(sandbox->executor, &command->source, EPOLLIN, err);
    const struct execution_bytes *bytes = &command->request.bytes;
    if (result == 0 && command->input.source.fd >= 0 && bytes->length > 0) {
        str_append_bytes(&command->input.waiting, bytes->data, bytes->length);
        executor_input_feed(&command->input);
    }
    return result;
}

/* What the history has: the command line is the code. */
static int fill_row(struct command *command, struct brig_error *err)
{
    struct sandbox_request *request = &command->request;
    autostr struct str line = {0};
    char id[EXECUTION_ID_LENGTH + 1];
    bool shell = request->arg_count == 3 && strcmp(request->args[1], "-c") == 0;
    for (size_t i = shell ? 2 : 0; i < request->arg_count; i++)
        str_concat(&line, line.length ? " " : "", request->args[i]);
    execution_id_make(id);
    command->row = (struct execution_request){
        .id = arena_strdup(&request->arena, id),
        .request_id = request->request_id,
        .client = request->client,
        .domain = command->sandbox->request.domain,
        .language = command->sandbox->runtime->name,
        .code = {.data = arena_strdup(&request->arena, line.data ? line.data : ""),
                 .length = line.length < EXECUTION_CODE_MAX ? line.length : EXECUTION_CODE_MAX},
        .stdin_bytes = {.data = ""},
        .network = command->sandbox->request.network,
        .timeout_ms = request->timeout_ms < UINT32_MAX ? request->timeout_ms : UINT32_MAX,
        .sandbox = command->sandbox->id,
        .traceparent = "",
        .idempotency_key = "",
        .body_sha256 = "",
        .callback_url = "",
        .callback_secret = "",
    };
    memcpy(command->row.limits, request->limits, sizeof command->row.limits);
    return line.failed || request->arena.failed ? brig_fail_nomem(err) : 0;
}

/* The row of a command that could not be started is complete, too. */
static void fail(struct command *command, struct caller caller, struct brig_error *error)
{
    struct sandbox *sandbox = command->sandbox;
    struct execution_result result;
    struct run run;
    bool directory = executor_sandbox_blames_directory(error);
    drop_job(command);
    borrow_run(command, &run);
    executor_outcome_failed(&run, error->message, &result);
    autostr struct str bytes = {0};
    (void)execution_result_encode(&result, &bytes, NULL);
    if (!is_relay(command))
        executor_note_end(sandbox->executor, sandbox->runtime, &result, &bytes);
    execution_result_done(&result);
    return_run(&run);
    if (directory || error->code == BRIG_E_NOT_FOUND)
        executor_sandbox_refuse(sandbox->executor, caller, SANDBOX_INVALID,
                                directory ? "cwd" : "cmd", "%s", error->message);
    else
        executor_sandbox_refuse(sandbox->executor, caller, SANDBOX_FAILED, "", "%s",
                                error->message);
    sandbox_request_done(&command->request);
    free(command);
}

static struct command *new_command(struct sandbox *sandbox, struct sandbox_request *request)
{
    struct command *command = malloc(sizeof *command);
    if (!command)
        return NULL;
    *command = (struct command){.sandbox = sandbox,
                                .request = *request,
                                .source = {.fd = -1},
                                .input.source.fd = -1,
                                .started_ns = clock_wall_ns()};
    for (int i = 0; i < 2; i++)
        command->streams[i] = (struct command_stream){.command = command, .source = {.fd = -1}};
    *request = (struct sandbox_request){0};
    return command;
}

static void follow(struct command *command, enum sandbox_wait wait, struct caller caller)
{
    bool output = wait == SANDBOX_FOLLOW;
    if (wait == SANDBOX_AT_ONCE || (!output && !command->job)) {
        answer(command, caller, false);
        return;
    }
    if (output) {
        answer(command, caller, true);
        executor_output_tell(command, caller);
    }
    if (!command->job)
        answer(command, caller, false);
    else if (!executor_follower_add(command, caller, output))
        executor_sandbox_refuse(command->sandbox->executor, caller, SANDBOX_BUSY, "",
                                "out of memory");
}

static struct command *find(const struct sandbox *sandbox, uint64_t number)
{
    struct command *command = sandbox->commands;
    while (command && command->number != number)
        command = command->next;
    return command;
}

/* The command of a relay is ours alone. */
static void fill_relay(struct sandbox_request *request)
{
    const char *words[] = {JAIL_GUEST, "connect", arena_number(&request->arena, request->command),
                           NULL};
    *request = (struct sandbox_request){.arena = request->arena,
                                        .operation = SANDBOX_RELAY,
                                        .request_id = request->request_id,
                                        .client = request->client,
                                        .bytes = request->bytes,
                                        .wait = SANDBOX_FOLLOW};
    request->args = arena_copy(&request->arena, words, sizeof words);
    request->arg_count = request->args && words[2] ? ARRAY_LENGTH(words) - 1 : 0;
}

void executor_command_start(struct sandbox *sandbox, struct sandbox_request *request,
                            struct caller caller)
{
    struct executor *executor = sandbox->executor;
    struct brig_error err = {0};
    const char *field = "";
    uint64_t number = 0;
    if (request->operation == SANDBOX_RELAY)
        fill_relay(request);
    if (executor_key_find(sandbox, request, caller, &number)) {
        if (number > 0)
            follow(find(sandbox, number), request->wait,
                   (struct caller){caller.tag, caller.http, true});
        return;
    }
    enum sandbox_fault fault = check_command(sandbox, request, &field, &err);
    if (fault != SANDBOX_OK) {
        executor_sandbox_refuse(executor, caller, fault, field, "%s", err.message);
        return;
    }
    enum sandbox_wait wait = request->wait;
    struct command *command = new_command(sandbox, request);
    if (!command || fill_row(command, &err) < 0 ||
        (!is_relay(command) &&
         executor_note_begin(executor, &command->row,
                             executor_language(executor, sandbox->runtime)) < 0)) {
        executor_sandbox_refuse(executor, caller, SANDBOX_BUSY, "", "out of memory");
        if (command)
            sandbox_request_done(&command->request);
        free(command);
        return;
    }
    if (start_job(command, &err) < 0) {
        fail(command, caller, &err);
        return;
    }
    command->request.bytes = (struct execution_bytes){.data = ""};
    command->number = ++sandbox->next_number;
    command->next = sandbox->commands;
    sandbox->commands = command;
    sandbox->command_count++;
    sandbox->running_count++;
    executor->sandboxes.command_count++;
    executor_key_add(sandbox, command);
    follow(command, wait, caller);
}

/* ---- requests about commands ---- */

void executor_command_list(struct sandbox *sandbox, struct caller caller)
{
    autoanswer struct sandbox_answer all = {0};
    all.commands = arena_alloc(&all.arena, (sandbox->command_count + 1) * sizeof *all.commands);
    for (const struct command *command = sandbox->commands; command && all.commands;
         command = command->next) {
        if (all.command_count == SANDBOX_COMMANDS_MAX)
            break;
        if (is_relay(command))
            continue;
        all.commands[all.command_count] = describe(command);
        all.commands[all.command_count++].result = (struct execution_bytes){
            command->job ? "" : "1", command->job ? 0 : 1}; /* without its output */
    }
    executor_sandbox_answer(sandbox->executor, caller, &all);
}

static void take_input(struct command *command, const struct sandbox_request *request,
                       struct caller caller)
{
    struct executor *executor = command->sandbox->executor;
    struct executor_input *input = &command->input;
    if (input->source.fd < 0 || input->last) {
        executor_sandbox_refuse(executor, caller, SANDBOX_CONFLICT, "",
                                "the standard input of the command is closed");
        return;
    }
    if (!executor_input_take(input, request->bytes.data, request->bytes.length)) {
        executor_sandbox_refuse(executor, caller, SANDBOX_BUSY, "",
                                "the command has not read %zu bytes of its standard input yet",
                                input->waiting.length - input->sent);
        return;
    }
    input->last = !request->keep_input && !command->request.pty;
    if (command->request.pty && !request->keep_input)
        str_append_char(&input->waiting, '\4'); /* end of file, for a terminal */
    executor_input_feed(input);
    executor_sandbox_answer(executor, caller, &(struct sandbox_answer){0});
}

static void act(struct command *command, const struct sandbox_request *request,
                struct caller caller)
{
    struct executor *executor = command->sandbox->executor;
    struct brig_error err = {0};
    int result = 0;
    if (!command->job) {
        executor_sandbox_refuse(executor, caller, SANDBOX_CONFLICT, "", "the command has ended");
        return;
    }
    if (request->operation == SANDBOX_INPUT) {
        take_input(command, request, caller);
        return;
    }
    if (request->operation == SANDBOX_RESIZE)
        result = brig_job_resize(command->job, (unsigned)request->rows, (unsigned)request->columns,
                                 &err);
    else if (request->signal == SIGKILL) /* all its processes */
        result = brig_job_cancel(command->job, &err);
    else
        result = brig_job_signal(command->job, (int)request->signal, &err);
    if (result < 0)
        executor_sandbox_refuse(executor, caller, SANDBOX_CONFLICT, "", "%s", err.message);
    else
        executor_sandbox_answer(executor, caller, &(struct sandbox_answer){0});
}

void executor_command_asked(struct sandbox *sandbox, const struct sandbox_request *request,
                            struct caller caller)
{
    struct command *command = sandbox->commands;
    while (command && (command->number != request->command || is_relay(command)))
        command = command->next;
    if (!command)
        executor_sandbox_refuse(sandbox->executor, caller, SANDBOX_NO_COMMAND, "",
                                "the sandbox has no command %llu",
                                (unsigned long long)request->command);
    else if (request->operation == SANDBOX_COMMAND)
        follow(command, request->wait, caller);
    else
        act(command, request, caller);
}

bool executor_command_left(struct sandbox *sandbox, struct caller caller)
{
    for (struct command *command = sandbox->commands; command; command = command->next)
        if (executor_follower_remove(command, caller)) {
            if (command->job && (is_relay(command) || command->request.tied))
                (void)brig_job_cancel(command->job, NULL);
            return true;
        }
    return false;
}

/* ---- all commands of a sandbox ---- */

void executor_commands_pause(struct sandbox *sandbox, bool paused)
{
    for (struct command *command = sandbox->commands; command; command = command->next)
        if (command->job)
            job_pause_clock(command->job, paused);
}

void executor_commands_cancel(struct sandbox *sandbox)
{
    for (struct command *command = sandbox->commands; command; command = command->next)
        if (command->job)
            (void)brig_job_cancel(command->job, NULL);
}

void executor_commands_free(struct sandbox *sandbox)
{
    for (struct command *command; (command = sandbox->commands);) {
        sandbox->commands = command->next;
        if (command->job) {
            drop_job(command);
            sandbox->running_count--;
            sandbox->executor->sandboxes.command_count--;
        }
        for (struct follower *next; command->followers; command->followers = next) {
            next = command->followers->next;
            free(command->followers);
        }
        executor_output_forget(command);
        sandbox_request_done(&command->request);
        free(command);
    }
}
