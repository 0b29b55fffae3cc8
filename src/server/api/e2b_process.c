/* SPDX-License-Identifier: MIT */
/* E2B's service for processes, process.Process: commands of a sandbox. A process id is the number of
 * a command. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/str.h"
#include "server/api/connect.h"
#include "server/api/e2b.h"
#include "server/api/e2b_request.h"
#include "server/execution.h"
#include "server/http/http.h"
#include "server/http/sandbox.h"
#include "server/http/stream.h"

#define STATUS_BYTES 64

/* ---- events ---- */

static void append_idle(struct str *out)
{
    static const char keepalive[] = "{\"event\":{\"keepalive\":{}}}";
    connect_frame(out, 0, keepalive, sizeof keepalive - 1);
}

static const struct stream_form process_form = {.content_type = "application/connect+json",
                                                .idle = append_idle};

/* Frames that are lost, because the client does not read, are told of at the end. */
static void send_event(struct exchange *exchange, const struct str *event)
{
    autostr struct str frame = {0};
    if (!event->failed)
        connect_frame(&frame, 0, event->data, event->length);
    if (event->failed || frame.failed || !stream_append(exchange->stream, frame.data, frame.length))
        e2b_kept(exchange)->dropped = true;
}

static void send_start(struct exchange *exchange, uint64_t pid)
{
    autostr struct str event = {0};
    str_appendf(&event, "{\"event\":{\"start\":{\"pid\":%llu}}}", (unsigned long long)pid);
    send_event(exchange, &event);
}

static void add_piece(struct exchange *exchange, enum sandbox_piece kind, const char *bytes,
                      size_t length)
{
    static const char *const names[] = {
        [SANDBOX_STDOUT] = "stdout", [SANDBOX_STDERR] = "stderr", [SANDBOX_TERMINAL] = "pty"};
    autostr struct str event = {0};
    if (kind < SANDBOX_STDOUT || kind > SANDBOX_TERMINAL)
        return;
    str_concat(&event, "{\"event\":{\"data\":{\"", names[kind], "\":\"");
    base64_append(&event, bytes, length);
    str_append(&event, "\"}}}");
    send_event(exchange, &event);
}

/* ---- the end ---- */

/* As Go prints the state of a process, which E2B's daemon is written in. */
static void describe_end(const struct execution_result *result, char status[STATUS_BYTES])
{
    const char *name = result->signal == SIGKILL   ? "killed"
                       : result->signal == SIGTERM ? "terminated"
                       : result->signal == SIGINT  ? "interrupt"
                       : result->signal == SIGSEGV ? "segmentation fault"
                       : result->signal == SIGABRT ? "aborted"
                                                   : NULL;
    if (name)
        (void)snprintf(status, STATUS_BYTES, "signal: %s", name);
    else if (result->signal)
        (void)snprintf(status, STATUS_BYTES, "signal: %d", result->signal);
    else if (result->exit_code < 0)
        (void)snprintf(status, STATUS_BYTES, "signal: killed");
    else
        (void)snprintf(status, STATUS_BYTES, "exit status %d", result->exit_code);
}

static const char *reason_of(const struct exchange *exchange, const struct execution_result *result)
{
    if (result->status == EXECUTION_OOM)
        return "out of memory: the sandbox's memory limit is reached";
    if (e2b_kept((struct exchange *)(uintptr_t)exchange)->dropped)
        return "output was lost because the client reads too slowly";
    return NULL;
}

static void send_end(struct exchange *exchange, const struct execution_result *result)
{
    autostr struct str event = {0}, last = {0};
    struct json j;
    char status[STATUS_BYTES];
    bool exited = result->signal == 0 && result->exit_code >= 0;
    const char *reason = reason_of(exchange, result);
    if (result->status == EXECUTION_TIMEOUT) {
        connect_last_frame(&last, CONNECT_DEADLINE_EXCEEDED, "the command has reached its timeout");
        stream_finish(exchange->stream, last.data, last.failed ? 0 : last.length);
        return;
    }
    describe_end(result, status);
    json_init(&j, &event);
    json_open_object(&j, NULL);
    json_open_object(&j, "event");
    json_open_object(&j, "end");
    json_int(&j, "exitCode", exited ? result->exit_code : -1);
    json_bool(&j, "exited", exited);
    json_text(&j, "status", status);
    if (reason || !exited || result->exit_code != 0)
        json_text(&j, "error", reason ? reason : status);
    json_close_object(&j);
    json_close_object(&j);
    json_close_object(&j);
    if (!event.failed)
        connect_frame(&last, 0, event.data, event.length);
    connect_last_frame(&last, CONNECT_UNKNOWN, NULL);
    stream_finish(exchange->stream, last.data, last.failed ? 0 : last.length);
}

/* ---- Start and Connect ---- */

static void answer_command(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autoresult struct execution_result result = {0};
    if (answer->command_count != 1) {
        answer_error(exchange, ERROR_INTERNAL, NULL);
        return;
    }
    const struct sandbox_command *command = &answer->commands[0];
    if (!exchange->stream) {
        (void)snprintf(exchange->execution_id, sizeof exchange->execution_id, "%s", command->id);
        if (!stream_begin(exchange, &process_form, false))
            return;
        send_start(exchange, command->number);
    }
    if (answer->more)
        return;
    if (answer->ending)
        e2b_failed(exchange, &(struct sandbox_answer){.fault = SANDBOX_NOT_FOUND, .message = ""});
    else if (execution_result_decode(command->result.data, command->result.length, &result, NULL) <
             0)
        answer_error(exchange, ERROR_INTERNAL, NULL);
    else
        send_end(exchange, &result);
}

static void refuse_with(struct exchange *exchange, const char *message)
{
    e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, message);
}

/* The time limit is the client's for the whole call. */
static bool read_limit(struct exchange *exchange, struct sandbox_request *request)
{
    const char *text = exchange_header(exchange, "Connect-Timeout-Ms");
    unsigned long long ms = 0;
    if (!text || connect_timeout(text, &ms)) {
        request->timeout_ms = ms;
        return true;
    }
    refuse_with(exchange, "Connect-Timeout-Ms has to be a number");
    return false;
}

void e2b_process_start(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_START,
                                                  .wait = SANDBOX_FOLLOW};
    json_auto_t *body = NULL;
    char message[E2B_MESSAGE_MAX];
    if (!e2b_check_user(exchange) || !e2b_body(exchange, &body) || !read_limit(exchange, &request))
        return;
    if (!e2b_read_start(body, &request, message)) {
        refuse_with(exchange, message);
        return;
    }
    if (request.cwd && !(request.cwd = e2b_file_path(exchange, &request.arena, request.cwd)))
        return;
    exchange->piece = add_piece;
    if (http_history_is_full(exchange->http))
        answer_error(exchange, ERROR_HISTORY_FULL, NULL);
    else
        sandbox_ask(exchange, &request, answer_command);
}

/* Reads {"process": {"pid"}}. */
static bool read_selector(struct exchange *exchange, const json_t *body,
                          struct sandbox_request *request)
{
    char message[E2B_MESSAGE_MAX];
    if (e2b_read_selector(body, request, message))
        return true;
    refuse_with(exchange, message);
    return false;
}

void e2b_process_connect(struct exchange *exchange)
{
    struct sandbox_request request = {.operation = SANDBOX_COMMAND, .wait = SANDBOX_FOLLOW};
    json_auto_t *body = NULL;
    exchange->piece = add_piece;
    if (e2b_body(exchange, &body) && read_selector(exchange, body, &request))
        sandbox_ask(exchange, &request, answer_command);
}

/* ---- unary calls ---- */

void e2b_process_input(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_INPUT};
    json_auto_t *body = NULL;
    char message[E2B_MESSAGE_MAX];
    if (!e2b_body(exchange, &body) || !read_selector(exchange, body, &request))
        return;
    if (e2b_read_input(body, &request, message))
        sandbox_ask(exchange, &request, e2b_answer_empty);
    else
        refuse_with(exchange, message);
}

void e2b_process_close(struct exchange *exchange)
{
    struct sandbox_request request = {.operation = SANDBOX_INPUT};
    json_auto_t *body = NULL;
    if (e2b_body(exchange, &body) && read_selector(exchange, body, &request))
        sandbox_ask(exchange, &request, e2b_answer_empty);
}

void e2b_process_signal(struct exchange *exchange)
{
    struct sandbox_request request = {.operation = SANDBOX_SIGNAL};
    json_auto_t *body = NULL;
    char message[E2B_MESSAGE_MAX];
    if (!e2b_body(exchange, &body) || !read_selector(exchange, body, &request))
        return;
    if (e2b_read_signal(body, &request, message))
        sandbox_ask(exchange, &request, e2b_answer_empty);
    else
        refuse_with(exchange, message);
}

void e2b_process_update(struct exchange *exchange)
{
    struct sandbox_request request = {.operation = SANDBOX_RESIZE};
    json_auto_t *body = NULL;
    char message[E2B_MESSAGE_MAX];
    if (!e2b_body(exchange, &body) || !read_selector(exchange, body, &request))
        return;
    if (e2b_read_size(body, &request, message) && request.rows > 0 && request.columns > 0)
        sandbox_ask(exchange, &request, e2b_answer_empty);
    else
        refuse_with(exchange, "pty.size has to have rows and cols");
}

/* Those that run. */
static void answer_list(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_open_array(&j, "processes");
    for (size_t i = 0; i < answer->command_count; i++) {
        const struct sandbox_command *command = &answer->commands[i];
        if (command->result.length > 0 || command->arg_count == 0)
            continue;
        json_open_object(&j, NULL);
        json_uint(&j, "pid", command->number);
        json_open_object(&j, "config");
        json_text(&j, "cmd", command->args[0]);
        json_open_array(&j, "args");
        for (size_t k = 1; k < command->arg_count; k++)
            json_text(&j, NULL, command->args[k]);
        json_close_array(&j);
        if (command->cwd)
            json_text(&j, "cwd", command->cwd);
        json_close_object(&j);
        json_close_object(&j);
    }
    json_close_array(&j);
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

void e2b_process_list(struct exchange *exchange)
{
    json_auto_t *body = NULL;
    if (e2b_body(exchange, &body))
        sandbox_ask(exchange, &(struct sandbox_request){.operation = SANDBOX_COMMANDS},
                    answer_list);
}

/* ---- health ---- */

static void answer_health(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str nothing = {0};
    if (answer->sandbox_count == 1 && answer->sandboxes[0].state == SANDBOX_RUNNING)
        answer_text(exchange, MHD_HTTP_NO_CONTENT, NULL, &nothing);
    else
        e2b_failed(exchange, &(struct sandbox_answer){.fault = SANDBOX_NOT_FOUND, .message = ""});
}

void e2b_health(struct exchange *exchange)
{
    sandbox_ask(exchange, &(struct sandbox_request){.operation = SANDBOX_GET}, answer_health);
}
