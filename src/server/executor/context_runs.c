/* SPDX-License-Identifier: MIT */
/* Runs of code in a context, one after the other. The interpreter is not trusted: a line about another
 * run than its own is ignored, and everything that is kept of a run has a limit. */
#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "server/executor/executor.h"
#include "server/executor/interpreter_line.h"

#define RESULTS_MAX 300                     /* of one run */
#define RESULT_BYTES_MAX ((size_t)16 << 20) /* of one run */
#define START_MS 60000                      /* until an interpreter is ready */
#define BEGIN_MS 20000                      /* until it begins a run */
#define CLOSED_MS 5000                      /* until one that closed its channel is ended */
#define SIGNALS_MAX 6                       /* for one interrupt of a shell */
#define SIGNAL_MS 300                       /* between them */
#define GRACE_MS 3000                       /* for a run that was interrupted for its time limit */

/* ---- answers ---- */

static void answer_run(const struct context *context, const struct context_run *run,
                       const struct str *result, bool more)
{
    struct sandbox_context one = executor_context_describe(context);
    struct sandbox_command command = {
        .number = run->number,
        .id = run->row.id,
        .started_ns = run->started_ns,
        .result = {result && result->data ? result->data : "", result ? result->length : 0}};
    if (run->caller.tag == 0)
        return;
    executor_sandbox_answer(
        context->sandbox->executor, run->caller,
        &(struct sandbox_answer){
            .contexts = &one,
            .context_count = 1,
            .commands = &command,
            .command_count = 1,
            .more = more,
            .ending = context->sandbox->state == SANDBOX_ENDING,
            .bytes = {run->results.data ? run->results.data : "", run->results.length}});
}

/* The answer to a client that follows begins. */
static void tell_begin(const struct context *context, struct context_run *run)
{
    if (run->told || run->request.wait != SANDBOX_FOLLOW)
        return;
    run->told = true;
    answer_run(context, run, NULL, true);
}

/* ---- the end of a run ---- */

static void free_run(struct sandbox *sandbox, struct context_run *run)
{
    executor_output_count(sandbox, 0,
                          run->output[0].length + run->output[1].length + run->results.length);
    for (int i = 0; i < 2; i++)
        str_done(&run->output[i]);
    str_done(&run->results);
    sandbox_request_done(&run->request);
    free(run);
}

static struct context_run *take_first(struct context *context)
{
    struct context_run *run = context->runs;
    context->runs = run->next;
    context->run_count--;
    return run;
}

static struct execution_bytes bytes_of(const struct str *str)
{
    return (struct execution_bytes){str->data ? str->data : "", str->length};
}

/* Stores the row, and answers. The run is not in the list any more. */
static void conclude(struct context *context, struct context_run *run, enum execution_status status)
{
    struct sandbox *sandbox = context->sandbox;
    struct executor *executor = sandbox->executor;
    autostr struct str bytes = {0};
    uint64_t cpu_us = 0, memory_bytes = 0;
    if (context->interpreter)
        executor_interpreter_usage(context->interpreter, &cpu_us, &memory_bytes);
    const struct execution_result result = {
        .id = run->row.id,
        .domain = run->row.domain,
        .status = status,
        .exit_code = status == EXECUTION_OK ? 0 : -1,
        .output = bytes_of(&run->output[0]),
        .error_output = bytes_of(&run->output[1]),
        .output_truncated = run->truncated[0],
        .error_output_truncated = run->truncated[1],
        .duration_us = clock_now_us() - run->started_us,
        .cpu_time_us = cpu_us > run->cpu_us ? cpu_us - run->cpu_us : 0,
        .memory_peak_bytes = memory_bytes,
        .message = run->message,
        .field = "",
        .started_ns = run->started_ns,
    };
    (void)execution_result_encode(&result, &bytes, NULL);
    executor_note_end(executor, context->runtime, &result, &bytes);
    executor_send_rows(executor);
    answer_run(context, run, &bytes, false);
    sandbox->running_count--;
    executor->sandboxes.command_count--;
    executor->sandboxes.due_ms = 0;
    free_run(sandbox, run);
}

/* Of a run that was not sent to an interpreter. */
static void refuse_run(struct context *context, struct context_run *run, enum sandbox_fault fault,
                       const char *field, const char *why)
{
    if (run->caller.tag != 0)
        executor_sandbox_refuse(context->sandbox->executor, run->caller, fault, field, "%s", why);
    free_run(context->sandbox, run);
}

static void finish_first(struct context *context)
{
    struct context_run *run = context->runs;
    executor_interpreter_drain(context->interpreter);
    enum execution_status status = run->timed_out                    ? EXECUTION_TIMEOUT
                                   : run->interrupted && run->failed ? EXECUTION_KILLED
                                   : run->failed                     ? EXECUTION_ERROR
                                                                     : EXECUTION_OK;
    conclude(context, take_first(context), status);
}

/* ---- the beginning of a run ---- */

static int fill_row(struct context *context, struct context_run *run, struct brig_error *err)
{
    struct sandbox_request *request = &run->request;
    char id[EXECUTION_ID_LENGTH + 1];
    execution_id_make(id);
    run->row = (struct execution_request){
        .id = arena_strdup(&request->arena, id),
        .request_id = request->request_id,
        .client = request->client,
        .domain = context->sandbox->request.domain,
        .language = context->runtime->name,
        .code = request->bytes,
        .stdin_bytes = {.data = ""},
        .network = context->sandbox->request.network,
        .timeout_ms = request->timeout_ms < UINT32_MAX ? request->timeout_ms : UINT32_MAX,
        .sandbox = context->sandbox->id,
        .traceparent = "",
        .idempotency_key = "",
        .body_sha256 = "",
        .callback_url = "",
        .callback_secret = "",
    };
    return request->arena.failed ? brig_fail_nomem(err) : 0;
}

static bool send_first(struct context *context)
{
    struct sandbox *sandbox = context->sandbox;
    struct executor *executor = sandbox->executor;
    struct context_run *run = context->runs;
    uint64_t memory_bytes;
    if (executor_note_begin(executor, &run->row, executor_language(executor, context->runtime)) <
        0) {
        refuse_run(context, take_first(context), SANDBOX_BUSY, "", "out of memory");
        return false;
    }
    run->sent = true;
    run->started_ns = clock_wall_ns();
    run->started_us = clock_now_us();
    executor_interpreter_usage(context->interpreter, &run->cpu_us, &memory_bytes);
    context->since_ms = clock_now_ms();
    context->count++;
    if (run->request.timeout_ms > 0)
        run->deadline_ms = context->since_ms + run->request.timeout_ms;
    sandbox->running_count++;
    executor->sandboxes.command_count++;
    executor->sandboxes.due_ms = 0;
    tell_begin(context, run);
    executor_interpreter_send(context->interpreter, run->number, &run->request);
    return true;
}

int executor_context_start(struct context *context, struct brig_error *err)
{
    context->interpreter = executor_interpreter_start(context->sandbox, context, context->kind,
                                                      &context->request, err);
    context->since_ms = clock_now_ms();
    context->count = 0;
    context->sandbox->executor->sandboxes.due_ms = 0;
    return context->interpreter ? 0 : err->code ? -1 : BRIG_E_NOMEM;
}

static void refuse_all(struct context *context, enum sandbox_fault fault, const char *field,
                       const char *why)
{
    while (context->runs)
        refuse_run(context, take_first(context), fault, field, why);
}

static void next(struct context *context)
{
    struct brig_error err = {0};
    while (context->runs && !context->runs->sent) {
        if (!context->interpreter && executor_context_start(context, &err) < 0) {
            const char *field = "";
            enum sandbox_fault fault = executor_context_fault(&err, &field);
            refuse_all(context, fault, field, err.message);
            return;
        }
        if (!context->interpreter->ready || send_first(context))
            return;
    }
}

/* ---- what interpreters say ---- */

bool executor_context_is_followed(const struct context *context)
{
    const struct context_run *run = context->runs;
    return run && run->sent && run->caller.tag != 0 && run->request.wait == SANDBOX_FOLLOW;
}

static void tell_piece(const struct context *context, enum sandbox_piece kind, const char *bytes,
                       size_t length)
{
    const struct context_run *run = context->runs;
    autostr struct str piece = {0};
    str_append_char(&piece, (char)kind);
    str_append_bytes(&piece, bytes, length);
    if (!piece.failed)
        executor_tell_http(context->sandbox->executor, run->caller.http, MESSAGE_SANDBOX_PIECE,
                           run->caller.tag, piece.data, piece.length);
}

/* Appends as much as may be kept; returns whether that is all. */
static bool keep(const struct context *context, struct str *to, const char *bytes, size_t length,
                 size_t most)
{
    bool full = !executor_output_has_room(context->sandbox);
    size_t room = full || to->length > most ? 0 : most - to->length;
    size_t part = length < room ? length : room;
    size_t before = to->length;
    str_append_bytes(to, bytes, part);
    executor_output_count(context->sandbox, to->length - before, 0);
    return part == length && !to->failed;
}

/* Between runs, output is dropped. */
void executor_context_output(struct context *context, bool is_stderr, const char *bytes,
                             size_t length)
{
    struct context_run *run = context->runs;
    if (!run || !run->sent)
        return;
    if (!keep(context, &run->output[is_stderr], bytes, length,
              is_stderr ? EXECUTION_STDERR_MAX : EXECUTION_OUTPUT_MAX))
        run->truncated[is_stderr] = true;
    if (executor_context_is_followed(context))
        tell_piece(context, is_stderr ? SANDBOX_STDERR : SANDBOX_STDOUT, bytes, length);
}

/* A result or an error. Returns false if the run has too many. */
static bool take_result(struct context *context, const struct interpreter_line *line,
                        const char *text, size_t length)
{
    struct context_run *run = context->runs;
    run->result_bytes += length;
    if (++run->result_count > RESULTS_MAX || run->result_bytes > RESULT_BYTES_MAX)
        return false;
    bool failed = line->word == INTERPRETER_ERROR;
    if (failed) {
        run->failed = true;
        (void)str_fill(run->message, sizeof run->message, line->name);
    }
    executor_interpreter_drain(context->interpreter);
    if (executor_context_is_followed(context))
        tell_piece(context, failed ? SANDBOX_FAILURE : SANDBOX_RESULT, text, length);
    else if (run->request.wait == SANDBOX_FOLLOW)
        return true; /* the client has left */
    else if (!executor_output_has_room(context->sandbox))
        run->truncated[0] = true;
    else
        (void)keep(context, &run->results, text, length + 1, RESULT_BYTES_MAX + RESULTS_MAX);
    return true;
}

static void send_interrupt(struct context *context)
{
    context->runs->signals++;
    context->runs->signal_ms = clock_now_ms();
    context->sandbox->executor->sandboxes.due_ms = 0;
    executor_interpreter_interrupt(context->interpreter);
}

/* While bash waits for a program, it ends the run only if the program dies of SIGINT. A child that has
 * not called execve(2) yet does not. So the shell is interrupted again. Returns when to look again. */
static uint64_t interrupt_again(struct context *context, uint64_t now_ms)
{
    const struct context_run *run = context->runs;
    if (context->kind != INTERPRETER_BASH || run->signals == 0 || run->signals >= SIGNALS_MAX)
        return UINT64_MAX;
    if (now_ms >= run->signal_ms + SIGNAL_MS)
        send_interrupt(context);
    return run->signal_ms + SIGNAL_MS;
}

void executor_context_heard(struct context *context, const struct interpreter_line *line,
                            const char *text, size_t length)
{
    struct context_run *run = context->runs;
    if (line->word == INTERPRETER_READY) {
        next(context);
        return;
    }
    if (!run || !run->sent || line->run != run->number)
        return;
    switch (line->word) {
    case INTERPRETER_BEGUN:
        run->begun = true;
        if (run->interrupted || run->timed_out)
            send_interrupt(context);
        return;
    case INTERPRETER_RESULT:
    case INTERPRETER_ERROR:
        if (!take_result(context, line, text, length))
            executor_context_broken(context, EXECUTION_OUTPUT_LIMIT,
                                    "the interpreter sent too many results, or too large ones");
        return;
    case INTERPRETER_DONE:
        finish_first(context);
        next(context);
        return;
    case INTERPRETER_READY:
        return;
    }
}

void executor_context_broken(struct context *context, enum execution_status status, const char *why)
{
    struct interpreter *interpreter = context->interpreter;
    struct context_run *run = context->runs;
    bool was_ready = interpreter->ready;
    if (run && run->sent) {
        (void)str_fill(run->message, sizeof run->message, why);
        conclude(context, take_first(context),
                 run->timed_out     ? EXECUTION_TIMEOUT
                 : run->interrupted ? EXECUTION_KILLED
                                    : status);
    }
    context->interpreter = NULL;
    executor_interpreter_end(interpreter);
    if (was_ready)
        next(context);
    else
        refuse_all(context, SANDBOX_FAILED, "", why);
}

/* ---- requests ---- */

void executor_context_add_run(struct context *context, struct sandbox_request *request,
                              struct caller caller)
{
    struct brig_error err = {0};
    struct context_run **at = &context->runs;
    struct context_run *run = calloc(1, sizeof *run);
    if (!run) {
        executor_sandbox_refuse(context->sandbox->executor, caller, SANDBOX_BUSY, "",
                                "out of memory");
        return;
    }
    run->caller = caller;
    run->request = *request;
    run->number = ++context->sandbox->next_run;
    *request = (struct sandbox_request){0};
    if (fill_row(context, run, &err) < 0) {
        refuse_run(context, run, SANDBOX_BUSY, "", err.message);
        return;
    }
    while (*at)
        at = &(*at)->next;
    *at = run;
    if (context->run_count++ > 0)
        tell_begin(context, run);
    next(context);
}

void executor_context_stop(struct context *context, enum sandbox_fault fault, const char *why)
{
    struct interpreter *interpreter = context->interpreter;
    if (context->runs && context->runs->sent) {
        (void)str_fill(context->runs->message, CONTEXT_MESSAGE_BYTES, why);
        conclude(context, take_first(context), EXECUTION_KILLED);
    }
    refuse_all(context, fault, "", why);
    context->interpreter = NULL;
    context->count = 0;
    if (interpreter)
        executor_interpreter_end(interpreter);
}

void executor_context_interrupt(struct context *context)
{
    struct context_run *run = context->runs;
    run->interrupted = true;
    if (run->begun)
        send_interrupt(context);
}

/* A run that waits is dropped, one that runs is interrupted. */
bool executor_context_leave(struct context *context, const struct caller *caller)
{
    for (struct context_run **at = &context->runs; *at; at = &(*at)->next) {
        struct context_run *run = *at;
        if (run->caller.tag != caller->tag || run->caller.http != caller->http)
            continue;
        run->caller.tag = 0;
        if (run->sent) {
            executor_context_interrupt(context);
        } else {
            *at = run->next;
            context->run_count--;
            free_run(context->sandbox, run);
        }
        return true;
    }
    return false;
}

/* ---- the loop ---- */

uint64_t executor_context_settle(struct context *context, uint64_t now_ms)
{
    const uint64_t http = context->sandbox->executor->http_processes;
    struct context_run *run = context->runs;
    if (run && run->caller.tag != 0 && run->caller.http != http) {
        const struct caller old = run->caller; /* of an http process that is gone */
        (void)executor_context_leave(context, &old);
        run = context->runs;
    }
    bool starting = context->interpreter && !context->interpreter->ready;
    bool beginning = run && run->sent && !run->begun;
    bool closed = context->interpreter && context->interpreter->closed_ms;
    uint64_t due_ms = closed      ? context->interpreter->closed_ms + CLOSED_MS
                      : starting  ? context->since_ms + START_MS
                      : beginning ? context->since_ms + BEGIN_MS
                                  : UINT64_MAX;
    if (now_ms >= due_ms) {
        executor_context_broken(context, EXECUTION_ERROR,
                                closed ? "the interpreter closed its channel, and was ended"
                                       : "the interpreter does not answer, and was ended");
        return 0;
    }
    if (!run || !run->sent)
        return due_ms;
    uint64_t again_ms = interrupt_again(context, now_ms);
    due_ms = again_ms < due_ms ? again_ms : due_ms;
    if (run->deadline_ms == 0)
        return due_ms;
    if (now_ms >= run->deadline_ms && run->timed_out) {
        executor_context_broken(context, EXECUTION_TIMEOUT,
                                "the time limit has passed, and the code did not stop when it was "
                                "interrupted: the interpreter was ended");
        return 0;
    }
    if (now_ms >= run->deadline_ms) {
        run->timed_out = true;
        run->deadline_ms = now_ms + GRACE_MS;
        if (run->begun)
            send_interrupt(context);
    }
    return run->deadline_ms < due_ms ? run->deadline_ms : due_ms;
}
