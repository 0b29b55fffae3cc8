/* SPDX-License-Identifier: MIT */
/* brigd's own dialect of the API for contexts: from HTTP to requests of server/sandbox.h, and from
 * their answers to JSON. */
#include "server/api/contexts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "server/api/run_line.h"
#include "server/api/sandbox_request.h"
#include "server/api/sandboxes.h"
#include "server/config/runtime.h"
#include "server/http/http.h"
#include "server/http/sandbox.h"
#include "server/http/stream.h"

/* ---- JSON ---- */

static void write_context(struct json *j, const struct sandbox_context *context)
{
    json_open_object(j, NULL);
    json_uint(j, "context", context->number);
    json_text(j, "language", context->language);
    json_text(j, "cwd", context->cwd);
    json_bool(j, "default", context->is_default);
    json_uint(j, "runs", context->runs);
    json_uint(j, "execution_count", context->count);
    json_time(j, "created_at", context->created_ns);
    json_close_object(j);
}

/* A member whose value is JSON already. */
static void write_member(struct json *j, const char *key, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (j->comma)
        str_append_char(j->out, ',');
    str_concat(j->out, "\"", key, "\":", text ? text : "null");
    j->out->failed |= !text;
    j->comma = true;
    free(text);
}

static void write_line(struct json *j, const char *key, const struct run_line *line)
{
    json_open_object(j, key);
    if (line->is_error) {
        json_text(j, "name", line->name);
        json_text(j, "value", line->value);
        json_text(j, "traceback", line->traceback);
    } else {
        json_bool(j, "main", line->main);
        write_member(j, "data", line->data);
    }
    json_close_object(j);
}

/* Writes either the results or, with `errors`, the last error. */
static void write_lines(struct json *j, const struct execution_bytes *lines, bool errors)
{
    struct execution_bytes left = *lines;
    autorunline struct run_line last = {0};
    for (struct run_line line; run_line_next(&left, &line);) {
        if (line.is_error && errors) {
            run_line_done(&last);
            last = line;
            continue;
        }
        if (!line.is_error && !errors)
            write_line(j, NULL, &line);
        run_line_done(&line);
    }
    if (errors && last.root)
        write_line(j, "error", &last);
}

static void write_run(struct json *j, const struct exchange *exchange,
                      const struct sandbox_answer *answer)
{
    autoresult struct execution_result result = {0};
    const struct sandbox_command *run = &answer->commands[0];
    bool known = run->result.length > 0 &&
                 execution_result_decode(run->result.data, run->result.length, &result, NULL) == 0;
    json_open_object(j, NULL);
    json_text(j, "id", run->id);
    json_uint(j, "context", answer->contexts[0].number);
    json_text(j, "language", answer->contexts[0].language);
    json_uint(j, "execution_count", answer->contexts[0].count);
    if (known && !exchange->stream) {
        json_open_array(j, "results");
        write_lines(j, &answer->bytes, false);
        json_close_array(j);
        write_lines(j, &answer->bytes, true);
    }
    if (known)
        sandboxes_write_result(j, exchange, &result);
    json_close_object(j);
}

/* ---- answers ---- */

static void answer_context(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    bool created = exchange->route->flags & ROUTE_CREATES;
    json_init(&j, &text);
    if (answer->context_count == 1)
        write_context(&j, &answer->contexts[0]);
    answer_json(exchange, created ? MHD_HTTP_CREATED : MHD_HTTP_OK, &text);
}

static void answer_list(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_open_array(&j, "contexts");
    for (size_t i = 0; i < answer->context_count; i++)
        write_context(&j, &answer->contexts[i]);
    json_close_array(&j);
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

static void answer_run(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    if (answer->command_count != 1 || answer->context_count != 1) {
        answer_error(exchange, ERROR_INTERNAL, NULL);
        return;
    }
    (void)snprintf(exchange->execution_id, sizeof exchange->execution_id, "%s",
                   answer->commands[0].id);
    if (answer->more)
        sandboxes_begin_stream(exchange);
    json_init(&j, &text);
    write_run(&j, exchange, answer);
    const char *json = text.failed ? NULL : text.data;
    if (answer->more && exchange->stream)
        stream_event(exchange->stream, "start", json);
    else if (exchange->stream)
        stream_end(exchange->stream, "end", json);
    else if (!answer->more)
        answer_json(exchange, MHD_HTTP_OK, &text);
}

static void add_piece(struct exchange *exchange, enum sandbox_piece kind, const char *bytes,
                      size_t length)
{
    autorunline struct run_line line = {0};
    autostr struct str text = {0}, event = {0};
    struct json j;
    if (kind == SANDBOX_STDOUT || kind == SANDBOX_STDERR) {
        bool is_stderr = kind == SANDBOX_STDERR;
        stream_live(exchange->stream, is_stderr ? "stderr" : "stdout", is_stderr, bytes, length);
        return;
    }
    if ((kind != SANDBOX_RESULT && kind != SANDBOX_FAILURE) || !run_line_read(bytes, length, &line))
        return;
    json_init(&j, &text);
    write_line(&j, NULL, &line);
    if (text.failed)
        return;
    sse_append_json(&event, line.is_error ? "exception" : "result", text.data);
    if (!event.failed) /* more is kept for a slow client than of output */
        (void)stream_append(exchange->stream, event.data, event.length);
}

/* ---- requests ---- */

void contexts_create(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_CONTEXT_CREATE};
    sandboxes_ask_with_body(exchange, &request, answer_context);
}

void contexts_list(struct exchange *exchange)
{
    sandboxes_ask_plainly(exchange, SANDBOX_CONTEXTS, answer_list);
}

void contexts_get(struct exchange *exchange)
{
    sandboxes_ask_plainly(exchange, SANDBOX_CONTEXT, answer_context);
}

void contexts_end(struct exchange *exchange)
{
    sandboxes_ask_plainly(exchange, SANDBOX_CONTEXT_END, sandbox_answer_nothing);
}

void contexts_restart(struct exchange *exchange)
{
    sandboxes_ask_plainly(exchange, SANDBOX_CONTEXT_RESTART, answer_context);
}

void contexts_interrupt(struct exchange *exchange)
{
    sandboxes_ask_plainly(exchange, SANDBOX_CONTEXT_INTERRUPT, sandbox_answer_nothing);
}

void contexts_run(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_CONTEXT_RUN,
                                                  .wait = SANDBOX_UNTIL_END};
    exchange->piece = add_piece;
    if (sandboxes_read_wait(exchange, &request))
        sandboxes_ask_with_body(exchange, &request, answer_run);
}
