/* SPDX-License-Identifier: MIT */
/* POST /mcp: methods, answers, progress and cancelling. */
#include "server/api/mcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "rpc/excerpt.h"
#include "rpc/tool.h"
#include "server/config/config.h"
#include "server/http/http.h"
#include "server/http/stream.h"

#define REPORT_MS 200        /* between two reports of new output */
#define REPORT_IDLE_MS 10000 /* without output: shows that the call is still running */
#define REPORT_BYTES 2048    /* of output in one report: the last ones */

#define INSTRUCTIONS                                                                               \
    "Code and commands run in sandboxes on a server. run_code and run_command use a fresh one "    \
    "that is gone afterwards; sandbox_create makes one that keeps files between calls, and "       \
    "variables of run_code in Python, JavaScript and Bash."

static void free_call(void *context)
{
    struct mcp_call *call = context;
    rpc_request_done(&call->request);
    str_done(&call->lines);
    str_done(&call->results);
    free(call);
}

/* ---- Answers ---- */

/* Takes the message over; NULL: memory is lacking. */
static void send_message(struct exchange *exchange, unsigned status, json_t *message)
{
    autofree char *json = message ? json_dumps(message, JSON_COMPACT) : NULL;
    autostr struct str text = {0};
    struct mcp_call *call = exchange->kept;
    json_decref(message);
    call->open = false;
    if (exchange->stream) {
        stream_end(exchange->stream, "message", json);
        return;
    }
    if (!json) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return;
    }
    str_append(&text, json);
    answer_json(exchange, status, &text);
}

static void send_nothing(struct exchange *exchange)
{
    autostr struct str nothing = {0};
    struct mcp_call *call = exchange->kept;
    call->open = false;
    if (exchange->stream)
        stream_end(exchange->stream, "message", NULL);
    else
        answer_text(exchange, MHD_HTTP_ACCEPTED, NULL, &nothing);
}

void mcp_finish(struct exchange *exchange, json_t *result)
{
    const struct mcp_call *call = exchange->kept;
    struct rpc_fault fault = {.code = RPC_INTERNAL, .message = "out of memory"};
    send_message(exchange, MHD_HTTP_OK,
                 result ? rpc_result(call->request.id, result, call->request.modern)
                        : rpc_error(call->request.id, &fault));
}

void mcp_refuse(struct exchange *exchange, const char *text)
{
    autostr struct str clean = {0};
    excerpt_append_clean(&clean, text, strlen(text));
    mcp_finish(exchange, tool_result(clean.data, NULL, true));
}

/* What is wrong with a call is for the model, as its result. What is wrong with the HTTP request, for
 * the client. */
static void fail(struct exchange *exchange, enum http_error error, const char *field,
                 const char *message)
{
    const struct mcp_call *call = exchange->kept;
    if (call && call->open)
        mcp_refuse(exchange, message ? message : error_row(error)->text);
    else
        answer_own_error(exchange, error, field, message);
}

static void answer_begun(struct exchange *exchange)
{
    const struct mcp_call *call = exchange->kept;
    if (call->streams)
        (void)stream_begin(exchange, NULL, false);
}

static void answer_done(struct exchange *exchange, const struct execution_result *result)
{
    mcp_finish(exchange, mcp_run_result(result));
}

/* ---- Progress ---- */

static void report(struct exchange *exchange, struct mcp_call *call)
{
    uint64_t now_ms = exchange->http->now_ms;
    autostr struct str text = {0};
    excerpt_append_clean(&text, call->lines.data ? call->lines.data : "", call->lines.length);
    while (text.length > 0 && text.data[text.length - 1] == '\n')
        text.data[--text.length] = '\0';
    json_t *message = rpc_progress(call->token, (double)(now_ms - call->began_ms) / 1000,
                                   text.length > 0 ? text.data : "running");
    autofree char *json = message ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    call->reported_ms = now_ms;
    str_done(&call->lines);
    str_init(&call->lines);
    stream_event(exchange->stream, "message", json);
}

static void report_if_due(struct exchange *exchange)
{
    struct mcp_call *call = exchange->kept;
    if (!call->open || !exchange->stream)
        return;
    uint64_t pause_ms = call->lines.length > 0 ? REPORT_MS : REPORT_IDLE_MS;
    if (exchange->http->now_ms >= call->reported_ms + pause_ms)
        report(exchange, call);
}

/* Keeps the last bytes. */
void mcp_output(struct exchange *exchange, const char *bytes, size_t length)
{
    struct mcp_call *call = exchange->kept;
    struct str *lines = &call->lines;
    if (length > REPORT_BYTES) {
        bytes += length - REPORT_BYTES;
        length = REPORT_BYTES;
    }
    if (lines->length + length > REPORT_BYTES) {
        size_t drop = lines->length + length - REPORT_BYTES;
        memmove(lines->data, lines->data + drop, lines->length - drop + 1);
        lines->length -= drop;
    }
    str_append_bytes(lines, bytes, length);
    report_if_due(exchange);
}

static void add_output(struct exchange *exchange, bool is_stderr, const char *bytes, size_t length)
{
    (void)is_stderr;
    mcp_output(exchange, bytes, length);
}

const struct dialect mcp_dialect = {
    .fail = fail,
    .begun = answer_begun,
    .done = answer_done,
    .output = add_output,
    .tick = report_if_due,
};

/* ---- Methods ---- */

static void do_initialize(struct exchange *exchange, struct mcp_call *call)
{
    struct rpc_fault fault;
    json_t *result = rpc_initialize(&call->request, INSTRUCTIONS, &fault);
    if (!result) {
        send_message(exchange, MHD_HTTP_OK, rpc_error(call->request.id, &fault));
        return;
    }
    execution_id_make(call->session);
    str_list_add(&exchange->headers, "Mcp-Session-Id");
    str_list_add(&exchange->headers, call->session);
    mcp_finish(exchange, result);
}

static void do_ping(struct exchange *exchange, struct mcp_call *call)
{
    (void)call;
    mcp_finish(exchange, json_object());
}

static void do_discover(struct exchange *exchange, struct mcp_call *call)
{
    (void)call;
    mcp_finish(exchange, rpc_discover(INSTRUCTIONS));
}

static void do_tools_list(struct exchange *exchange, struct mcp_call *call)
{
    json_t *tools = mcp_tool_list(exchange->http->config, &exchange->http->runtimes);
    mcp_finish(exchange, tools ? rpc_tools(tools, call->request.modern) : NULL);
    json_decref(tools);
}

/* Where a report of progress can be sent: the client reads events, and asks for them. */
static bool wants_progress(const struct exchange *exchange, const struct mcp_call *call)
{
    const char *accept = exchange_header(exchange, "Accept");
    return call->token && accept && strstr(accept, "text/event-stream");
}

static void do_tools_call(struct exchange *exchange, struct mcp_call *call)
{
    json_t *params = call->request.params, *arguments = json_object_get(params, "arguments");
    const char *name = json_string_value(json_object_get(params, "name"));
    call->tool = name ? mcp_tool_find(name) : NULL;
    struct rpc_fault fault = {.code = RPC_PARAMS};
    autostr struct str unknown = {0};
    json_auto_t *tools = mcp_tool_list(exchange->http->config, NULL);
    if (!call->tool) {
        tool_append_unknown(tools, name, &unknown);
        fault.message = unknown.failed ? "out of memory" : unknown.data;
    }
    if (call->tool && arguments && !json_is_object(arguments))
        fault.message = "arguments is not an object";
    if (fault.message) {
        send_message(exchange, MHD_HTTP_OK, rpc_error(call->request.id, &fault));
        return;
    }
    if (!arguments && (arguments = json_object()))
        (void)json_object_set_new(params, "arguments", arguments);
    call->arguments = arguments;
    call->token = rpc_progress_token(&call->request);
    call->began_ms = call->reported_ms = exchange->http->now_ms;
    autofree char *message = NULL;
    if (!tools || !arguments || !tool_check(tools, name, arguments, &message)) {
        mcp_refuse(exchange, message ? message : "out of memory");
        return;
    }
    call->open = true;
    call->streams = wants_progress(exchange, call);
    mcp_tool_begin(exchange);
}

/* Ends the run of a legacy client. Modern ones close the connection. */
static void do_cancelled(struct exchange *exchange, struct mcp_call *call)
{
    const json_t *id = json_object_get(call->request.params, "requestId");
    struct exchange *other;
    send_nothing(exchange);
    if (!id || !*call->session)
        return;
    LIST_FOREACH(other, &exchange->http->exchanges, link)
    {
        const struct mcp_call *running = other->route == exchange->route ? other->kept : NULL;
        if (!running || !running->open || !json_equal(running->request.id, id) ||
            strcmp(running->session, call->session) != 0 ||
            strcmp(other->domain, exchange->domain) != 0)
            continue;
        exchange_abandon(other);
        send_nothing(other);
        return;
    }
}

enum era { LEGACY = 1, MODERN = 2 };

static const struct method {
    const char *name;
    unsigned eras;
    bool notification;
    void (*run)(struct exchange *exchange, struct mcp_call *call);
} methods[] = {
    {"initialize", LEGACY, false, do_initialize},
    {"ping", LEGACY, false, do_ping},
    {"server/discover", MODERN, false, do_discover},
    {"tools/list", LEGACY | MODERN, false, do_tools_list},
    {"tools/call", LEGACY | MODERN, false, do_tools_call},
    {"notifications/cancelled", LEGACY, true, do_cancelled},
};

static void run_method(struct exchange *exchange, struct mcp_call *call)
{
    const struct rpc_request *request = &call->request;
    struct rpc_fault fault = {.code = RPC_METHOD, .message = "unknown method"};
    bool notification = request->id == NULL;
    unsigned era = request->modern ? MODERN : LEGACY;
    for (size_t i = 0; i < ARRAY_LENGTH(methods); i++)
        if (strcmp(methods[i].name, request->method) == 0 &&
            methods[i].notification == notification && methods[i].eras & era) {
            methods[i].run(exchange, call);
            return;
        }
    if (notification)
        send_nothing(exchange);
    else
        send_message(exchange, request->modern ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK,
                     rpc_error(request->id, &fault));
}

/* ---- Messages ---- */

void mcp_handle(struct exchange *exchange)
{
    const char *origin = exchange_header(exchange, "Origin");
    struct mcp_call *call = calloc(1, sizeof *call);
    struct rpc_fault fault;
    unsigned status = MHD_HTTP_BAD_REQUEST;
    exchange->free_kept = free_call;
    if (!call) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return;
    }
    exchange->kept = call;
    if (origin && !answer_allows_origin(exchange, origin)) {
        answer_error(exchange, ERROR_WRONG_ORIGIN, NULL);
        return;
    }
    if (!query_check(exchange))
        return;
    const struct mcp_headers headers = {
        .version = exchange_header(exchange, "MCP-Protocol-Version"),
        .method = exchange_header(exchange, "Mcp-Method"),
        .name = exchange_header(exchange, "Mcp-Name"),
        .session = exchange_header(exchange, "Mcp-Session-Id"),
    };
    struct rpc_request *request = &call->request;
    bool good = rpc_read(exchange->body.data ? exchange->body.data : "", exchange->body.length,
                         request, &fault);
    if (good && !request->method) { /* the server asks nothing, so it is no answer */
        send_nothing(exchange);
        return;
    }
    if (!good || !mcp_check(request, &headers, &fault, &status)) {
        if (fault.code == RPC_OK)
            send_nothing(exchange);
        else
            send_message(exchange, status, rpc_error(request->id, &fault));
        return;
    }
    if (!request->modern && headers.session)
        (void)snprintf(call->session, sizeof call->session, "%s", headers.session);
    str_done(&exchange->body);
    str_init(&exchange->body);
    run_method(exchange, call);
}
