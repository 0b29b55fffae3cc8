/* SPDX-License-Identifier: MIT */
/* The server of `@e2b/code-interpreter`, port 49999 of a sandbox: runs of code, whose answer is a
 * line of JSON for each event, and contexts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "server/api/e2b.h"
#include "server/api/e2b_request.h"
#include "server/api/run_line.h"
#include "server/http/http.h"
#include "server/http/sandbox.h"
#include "server/http/stream.h"

#define KEEPALIVE "{\"type\":\"keepalive\"}\n"
#define END "{\"type\":\"end_of_execution\"}\n"

/* ---- lines ---- */

static void append_idle(struct str *out)
{
    str_append(out, KEEPALIVE);
}

static const struct stream_form code_form = {.content_type = "application/x-ndjson",
                                             .idle = append_idle};

/* The client decodes each piece that it receives by itself, wherever that ends. So a line is ASCII
 * alone: other characters, which JSON has in strings only, are written as \uXXXX. */
static void append_ascii(struct str *out, const struct str *line)
{
    const unsigned char *text = (const unsigned char *)line->data;
    for (size_t i = 0, length; i < line->length; i += length) {
        for (length = 0; i + length < line->length && text[i + length] < 0x80;)
            length++;
        str_append_bytes(out, text + i, length);
        if (length > 0)
            continue;
        length = utf8_length(text + i, line->length - i);
        uint32_t c = length > 0 ? utf8_decode(text + i, length) : 0xfffd;
        length = length ? length : 1;
        if (c >= 0x10000)
            str_appendf(out, "\\u%04x\\u%04x", 0xd800U + ((c - 0x10000) >> 10),
                        0xdc00U + ((c - 0x10000) & 0x3ff));
        else
            str_appendf(out, "\\u%04x", c);
    }
}

static void send_line(struct exchange *exchange, const struct str *line)
{
    autostr struct str ascii = {0};
    append_ascii(&ascii, line);
    str_append_char(&ascii, '\n');
    if (!line->failed && !ascii.failed)
        (void)stream_append(exchange->stream, ascii.data, ascii.length);
}

static void open_line(struct json *j, struct str *line, const char *type)
{
    json_init(j, line);
    json_open_object(j, NULL);
    json_text(j, "type", type);
}

static void send_count(struct exchange *exchange, uint64_t count)
{
    autostr struct str line = {0};
    struct json j;
    open_line(&j, &line, "number_of_executions");
    json_uint(&j, "execution_count", count);
    json_close_object(&j);
    send_line(exchange, &line);
}

static void send_text(struct exchange *exchange, bool is_stderr, const char *bytes, size_t length)
{
    autostr struct str line = {0};
    struct json j;
    if (length == 0)
        return;
    open_line(&j, &line, is_stderr ? "stderr" : "stdout");
    json_bytes(&j, "text", bytes, length);
    json_close_object(&j);
    send_line(exchange, &line);
}

/* The beginning of a character waits for the rest of it. */
static void send_output(struct exchange *exchange, bool is_stderr, const char *bytes, size_t length)
{
    struct e2b_kept *kept = e2b_kept(exchange);
    autostr struct str whole = {0};
    size_t rest = 0;
    str_append_bytes(&whole, kept->begun[is_stderr], kept->begun_length[is_stderr]);
    str_append_bytes(&whole, bytes, length);
    if (whole.failed)
        return;
    for (size_t i = 1; i < sizeof kept->begun[0] && i <= whole.length && rest == 0; i++)
        if (utf8_is_beginning((const unsigned char *)whole.data + whole.length - i, i))
            rest = i;
    memcpy(kept->begun[is_stderr], whole.data + whole.length - rest, rest);
    kept->begun_length[is_stderr] = rest;
    send_text(exchange, is_stderr, whole.data, whole.length - rest);
}

static void send_error(struct exchange *exchange, const char *name, const char *value,
                       const char *traceback)
{
    autostr struct str line = {0};
    struct json j;
    e2b_kept(exchange)->failed = true;
    open_line(&j, &line, "error");
    json_text(&j, "name", name);
    json_text(&j, "value", value);
    json_text(&j, "traceback", traceback);
    json_close_object(&j);
    send_line(exchange, &line);
}

/* ---- results ---- */

/* The name that a form has in E2B; others keep their MIME type. */
static const char *name_of(const char *type)
{
    static const char *const names[][2] = {
        {"text/plain", "text"},        {"text/html", "html"},
        {"text/markdown", "markdown"}, {"image/svg+xml", "svg"},
        {"image/png", "png"},          {"image/jpeg", "jpeg"},
        {"application/pdf", "pdf"},    {"text/latex", "latex"},
        {"application/json", "json"},  {"application/javascript", "javascript"},
        {RUN_TABLE_TYPE, "data"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(type, names[i][0]) == 0)
            return names[i][1];
    return strcmp(type, "type") == 0 || strcmp(type, "is_main_result") == 0 ? NULL : type;
}

/* A text that is a quoted string loses its quotes. */
static json_t *without_quotes(const json_t *value)
{
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    bool quoted = length >= 2 && text[0] == text[length - 1] && (text[0] == '\'' || text[0] == '"');
    return quoted ? json_stringn(text + 1, length - 2) : json_stringn(text, length);
}

static void send_result(struct exchange *exchange, const struct run_line *result)
{
    autostr struct str line = {0};
    json_auto_t *out = json_object();
    const char *type;
    json_t *value;
    bool good = out && json_object_set_new(out, "type", json_string("result")) == 0 &&
                json_object_set_new(out, "is_main_result", json_boolean(result->main)) == 0;
    json_object_foreach(result->data, type, value)
    {
        const char *name = name_of(type);
        bool text = str_equal(name, "text");
        if (good && name)
            good = text ? json_object_set_new(out, name, without_quotes(value)) == 0
                        : json_object_set(out, name, value) == 0;
    }
    char *dumped = good ? json_dumps(out, JSON_COMPACT) : NULL;
    if (!dumped)
        return;
    str_append(&line, dumped);
    free(dumped);
    send_line(exchange, &line);
}

static void add_piece(struct exchange *exchange, enum sandbox_piece kind, const char *bytes,
                      size_t length)
{
    autorunline struct run_line line = {0};
    if (kind == SANDBOX_STDOUT || kind == SANDBOX_STDERR)
        send_output(exchange, kind == SANDBOX_STDERR, bytes, length);
    else if ((kind != SANDBOX_RESULT && kind != SANDBOX_FAILURE) ||
             !run_line_read(bytes, length, &line))
        return;
    else if (line.is_error)
        send_error(exchange, line.name, line.value, line.traceback);
    else
        send_result(exchange, &line);
}

/* ---- a run ---- */

static void finish(struct exchange *exchange)
{
    struct e2b_kept *kept = e2b_kept(exchange);
    for (int i = 0; i < 2; i++)
        send_text(exchange, i == 1, (const char *)kept->begun[i], kept->begun_length[i]);
    stream_finish(exchange->stream, END, sizeof END - 1);
}

void e2b_code_break(struct exchange *exchange, const char *message)
{
    send_error(exchange, "SandboxError", message, message);
    finish(exchange);
}

static void answer_run(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autoresult struct execution_result result = {0};
    if (answer->command_count != 1 || answer->context_count != 1) {
        answer_error(exchange, ERROR_INTERNAL, NULL);
        return;
    }
    const struct sandbox_command *run = &answer->commands[0];
    if (!exchange->stream) {
        (void)snprintf(exchange->execution_id, sizeof exchange->execution_id, "%s", run->id);
        if (!stream_begin(exchange, &code_form, false))
            return;
    }
    if (answer->more)
        return;
    if (answer->ending) { /* the client asks then whether the sandbox is there */
        stream_abort(exchange->stream);
        return;
    }
    bool known = execution_result_decode(run->result.data, run->result.length, &result, NULL) == 0;
    if (known && result.status != EXECUTION_OK && !e2b_kept(exchange)->failed)
        send_error(exchange, "InterpreterError", result.message, result.message);
    send_count(exchange, answer->contexts[0].count);
    finish(exchange);
}

/* Reads the number of a context; 0 is none. */
static uint64_t read_number(const char *id)
{
    uint64_t number = 0;
    return parse_uint(id, UINT64_MAX, 0, &number, NULL) < 0 ? 0 : number;
}

static void refuse_context(struct exchange *exchange)
{
    e2b_refuse(exchange, MHD_HTTP_NOT_FOUND, "there is no context with this id");
}

void e2b_code_execute(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_CONTEXT_RUN,
                                                  .wait = SANDBOX_FOLLOW};
    json_auto_t *body = NULL;
    char message[E2B_MESSAGE_MAX];
    const char *context = NULL;
    if (!e2b_body(exchange, &body))
        return;
    if (!e2b_read_code(body, &request, &context, message)) {
        e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, message);
        return;
    }
    if (context && !(request.command = read_number(context))) {
        refuse_context(exchange);
        return;
    }
    exchange->piece = add_piece;
    if (http_history_is_full(exchange->http))
        answer_error(exchange, ERROR_HISTORY_FULL, NULL);
    else
        sandbox_ask(exchange, &request, answer_run);
}

/* ---- contexts ---- */

static void write_context(struct json *j, const struct sandbox_context *context)
{
    char id[24];
    bool node = strcmp(context->language, "node") == 0;
    (void)snprintf(id, sizeof id, "%llu", (unsigned long long)context->number);
    json_open_object(j, NULL);
    json_text(j, "id", id);
    json_text(j, "language", node ? "javascript" : context->language);
    json_text(j, "cwd", context->cwd ? context->cwd : E2B_HOME);
    json_close_object(j);
}

static void answer_context(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    if (answer->context_count == 1)
        write_context(&j, &answer->contexts[0]);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

static void answer_contexts(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_array(&j, NULL);
    for (size_t i = 0; i < answer->context_count; i++)
        write_context(&j, &answer->contexts[i]);
    json_close_array(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

void e2b_code_create(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_CONTEXT_CREATE};
    json_auto_t *body = NULL;
    char message[E2B_MESSAGE_MAX];
    if (!e2b_body(exchange, &body))
        return;
    if (!e2b_read_context(body, &request, message)) {
        e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, message);
        return;
    }
    if (request.cwd && !(request.cwd = e2b_file_path(exchange, &request.arena, request.cwd)))
        return;
    sandbox_ask(exchange, &request, answer_context);
}

void e2b_code_list(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_CONTEXTS};
    sandbox_ask(exchange, &request, answer_contexts);
}

static void ask_about(struct exchange *exchange, enum sandbox_operation operation)
{
    autosandbox struct sandbox_request request = {.operation = operation};
    request.command = read_number(e2b_path_id(exchange));
    if (request.command)
        sandbox_ask(exchange, &request, sandbox_answer_nothing);
    else
        refuse_context(exchange);
}

void e2b_code_remove(struct exchange *exchange)
{
    ask_about(exchange, SANDBOX_CONTEXT_END);
}

void e2b_code_restart(struct exchange *exchange)
{
    ask_about(exchange, SANDBOX_CONTEXT_RESTART);
}
