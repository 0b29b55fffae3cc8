/* SPDX-License-Identifier: MIT */
/* What a client of brig-mcp asks for, and the answers. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "mcp/session.h"
#include "rpc/rpc.h"
#include "rpc/tool.h"

#define INSTRUCTIONS                                                                               \
    "Code and commands run in a sandbox with a copy of the project directory. Changes stay in "    \
    "the "                                                                                         \
    "copy: look at them with diff, and use apply to ask the user to accept them. Use run_command " \
    "for builds and tests. If the result lists something under denied, tell the user the remedy "  \
    "instead of trying other ways."

/* ---- Answers ---- */

/* `id` is borrowed and may be NULL. */
static void send_error(struct session *session, json_t *id, struct rpc_fault *fault)
{
    output_message(&session->out, rpc_error(id, fault));
}

static void refuse(struct session *session, json_t *id, enum rpc_code code, const char *message)
{
    send_error(session, id, &(struct rpc_fault){.code = code, .message = message});
}

/* Takes the result over. */
static void send_result(struct session *session, json_t *id, json_t *result, bool modern)
{
    output_message(&session->out, rpc_result(id, result, modern));
}

void session_answer(struct session *session, const struct call *call)
{
    if (call->cancelled)
        return;
    if (call->result)
        send_result(session, call->id, json_incref(call->result), call->modern);
    else
        refuse(session, call->id, RPC_INTERNAL, "out of memory");
}

void session_progress(struct session *session, const struct call *call, double seconds,
                      const char *message)
{
    output_message(&session->out, rpc_progress(call->progress, seconds, message));
}

/* The ids of requests to the client are texts of ours, so they never equal an id of the client. */
static void print_question(int number, char text[static 32])
{
    (void)snprintf(text, 32, "brig-question-%d", number);
}

void session_ask(struct session *session, struct call *call, json_t *params)
{
    char id[32];
    call->question = ++session->questions;
    call->state = CALL_ASKING;
    print_question(call->question, id);
    output_message(&session->out, json_pack("{s:s, s:s, s:s, s:o}", "jsonrpc", "2.0", "id", id,
                                            "method", "elicitation/create", "params", params));
}

/* ---- Methods ---- */

/* An empty object stands for forms, in the revision that had nothing else. */
static bool can_elicit(const json_t *capabilities)
{
    const json_t *elicitation = json_object_get(capabilities, "elicitation");
    return json_is_object(elicitation) &&
           (json_object_size(elicitation) == 0 || json_object_get(elicitation, "form"));
}

static void do_initialize(struct session *session, const struct rpc_request *request)
{
    struct rpc_fault fault;
    json_t *result = rpc_initialize(request, INSTRUCTIONS, &fault);
    if (!result) {
        send_error(session, request->id, &fault);
        return;
    }
    session->elicits = can_elicit(json_object_get(request->params, "capabilities"));
    send_result(session, request->id, result, false);
}

static void do_ping(struct session *session, const struct rpc_request *request)
{
    send_result(session, request->id, json_object(), false);
}

static void do_discover(struct session *session, const struct rpc_request *request)
{
    send_result(session, request->id, rpc_discover(INSTRUCTIONS), true);
}

static void do_tools_list(struct session *session, const struct rpc_request *request)
{
    send_result(session, request->id, rpc_tools(session->tools, request->modern), request->modern);
}

static void refuse_call(struct session *session, const struct rpc_request *request,
                        const char *text)
{
    send_result(session, request->id, tool_result(text, NULL, true), request->modern);
}

static void do_tools_call(struct session *session, const struct rpc_request *request)
{
    const char *name = json_string_value(json_object_get(request->params, "name"));
    const struct tool *tool = name ? tools_find(name) : NULL;
    const json_t *arguments = json_object_get(request->params, "arguments");
    autofree char *message = NULL;
    if (!tool) {
        autostr struct str unknown = {0};
        tool_append_unknown(session->tools, name, &unknown);
        refuse(session, request->id, RPC_PARAMS, unknown.failed ? "out of memory" : unknown.data);
        return;
    }
    if (arguments && !json_is_object(arguments)) {
        refuse(session, request->id, RPC_PARAMS, "arguments is not an object");
        return;
    }
    if (!arguments)
        (void)json_object_set_new(request->params, "arguments", json_object());
    if (!tool_check(session->tools, name, json_object_get(request->params, "arguments"),
                    &message)) {
        refuse_call(session, request, message ? message : "out of memory");
        return;
    }
    bool elicits = request->modern ? can_elicit(request->capabilities) : session->elicits;
    if (!calls_add(session, request->id, json_incref(request->params), tool, request->modern,
                   elicits))
        refuse_call(session, request, "Too many calls at the same time; wait for others to end.");
}

static void do_cancelled(struct session *session, const struct rpc_request *request)
{
    const json_t *id = json_object_get(request->params, "requestId");
    struct call *call = id ? calls_find(session, id) : NULL;
    if (call)
        calls_cancel(call);
}

enum era { LEGACY = 1, MODERN_ERA = 2 };

static const struct method {
    const char *name;
    unsigned eras;
    bool notification;
    void (*run)(struct session *session, const struct rpc_request *request);
} methods[] = {
    {"initialize", LEGACY, false, do_initialize},
    {"ping", LEGACY, false, do_ping},
    {"server/discover", MODERN_ERA, false, do_discover},
    {"tools/list", LEGACY | MODERN_ERA, false, do_tools_list},
    {"tools/call", LEGACY | MODERN_ERA, false, do_tools_call},
    {"notifications/cancelled", LEGACY | MODERN_ERA, true, do_cancelled},
};

/* ---- Messages ---- */

static void run_method(struct session *session, struct rpc_request *request)
{
    bool notification = request->id == NULL;
    struct rpc_fault fault;
    if (!notification && !rpc_read_meta(request, &fault)) {
        send_error(session, request->id, &fault);
        return;
    }
    unsigned era = request->modern ? MODERN_ERA : LEGACY;
    for (size_t i = 0; i < ARRAY_LENGTH(methods); i++)
        if (strcmp(methods[i].name, request->method) == 0 &&
            methods[i].notification == notification && (notification || methods[i].eras & era)) {
            methods[i].run(session, request);
            return;
        }
    if (!notification)
        refuse(session, request->id, RPC_METHOD, "unknown method");
}

/* The client's answer to a question. */
static void take_response(struct session *session, const json_t *message)
{
    const char *id = json_string_value(json_object_get(message, "id"));
    for (struct call *call = session->calls; id && call; call = call->next) {
        char text[32];
        print_question(call->question, text);
        if (call->state != CALL_ASKING || strcmp(text, id) != 0)
            continue;
        call->state = CALL_WAITING; /* the tool's begin() continues */
        call->tool->answered(session, call, json_object_get(message, "result"));
        if (call->result)
            call->state = CALL_ENDED;
        return;
    }
}

void session_line(struct session *session, const char *line, size_t length)
{
    autorpc struct rpc_request request = {0};
    struct rpc_fault fault;
    if (strspn(line, " \t\r") >= length)
        return;
    if (!rpc_read(line, length, &request, &fault)) {
        if (fault.code != RPC_OK)
            send_error(session, request.id, &fault);
    } else if (!request.method)
        take_response(session, request.message);
    else if (request.id && calls_find(session, request.id))
        refuse(session, request.id, RPC_REQUEST, "a request with this id is still running");
    else
        run_method(session, &request);
}

void session_long_line(struct session *session)
{
    refuse(session, NULL, RPC_PARSE, "the line is longer than 8 MiB");
}
