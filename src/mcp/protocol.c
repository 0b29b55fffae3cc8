/* SPDX-License-Identifier: MIT */
/* JSON-RPC and the Model Context Protocol, in its two forms. Legacy (2024-11-05 to 2025-11-25):
 * the client introduces itself by `initialize`. Modern (2026-07-28): each request has the version and
 * the client's capabilities in its _meta, and each result a type. */
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "mcp/session.h"

#define MODERN "2026-07-28"
#define LEGACY_NEWEST "2025-11-25"
#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_SERVER "io.modelcontextprotocol/serverInfo"
#define CACHE_MS 3600000 /* how long a client may keep the list of tools */

#define DEPTH_MAX 64       /* of arrays and objects */
#define VALUES_MAX 100000  /* in one message */
#define ID_LENGTH_MAX 1024 /* of an id or a token that is a text */

enum rpc_error {
    RPC_PARSE = -32700,
    RPC_REQUEST = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_VERSION = -32022,
};

static const char *const legacy_versions[] = {LEGACY_NEWEST, "2025-06-18", "2025-03-26",
                                              "2024-11-05", NULL};

#define INSTRUCTIONS                                                                               \
    "Code and commands run in a sandbox with a copy of the project directory. Changes stay in "    \
    "the "                                                                                         \
    "copy: look at them with diff, and use apply to ask the user to accept them. Use run_command " \
    "for builds and tests. If the result lists something under denied, tell the user the remedy "  \
    "instead of trying other ways."

/* ---- Answers ---- */

static json_t *server_info(void)
{
    return json_pack("{s:s, s:s}", "name", "brig", "version", brig_version());
}

/* `id` is borrowed and may be NULL. */
static void send_error(struct session *session, json_t *id, enum rpc_error code,
                       const char *message, json_t *data)
{
    json_t *error =
        json_pack("{s:i, s:s, s:o*}", "code", (int)code, "message", message, "data", data);
    output_message(&session->out, json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id",
                                            id ? json_incref(id) : json_null(), "error", error));
}

/* Takes the result over. */
static void send_result(struct session *session, json_t *id, json_t *result, bool modern)
{
    if (modern) {
        if (!json_object_get(result, "resultType"))
            (void)json_object_set_new(result, "resultType", json_string("complete"));
        (void)json_object_set_new(result, "_meta", json_pack("{s:o}", META_SERVER, server_info()));
    }
    output_message(&session->out,
                   json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result));
}

void session_answer(struct session *session, const struct call *call)
{
    if (call->cancelled)
        return;
    if (call->result)
        send_result(session, call->id, json_incref(call->result), call->modern);
    else
        send_error(session, call->id, RPC_INTERNAL, "out of memory", NULL);
}

void session_progress(struct session *session, const struct call *call, double seconds,
                      const char *message)
{
    output_message(&session->out,
                   json_pack("{s:s, s:s, s:{s:O, s:f, s:s}}", "jsonrpc", "2.0", "method",
                             "notifications/progress", "params", "progressToken", call->progress,
                             "progress", seconds, "message", message));
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

struct request {
    json_t *id; /* NULL: a notification */
    const char *method;
    json_t *params; /* an object; never NULL */
    bool modern;
    const json_t *capabilities; /* of a modern client */
};

/* An empty object stands for forms, in the revision that had nothing else. */
static bool can_elicit(const json_t *capabilities)
{
    const json_t *elicitation = json_object_get(capabilities, "elicitation");
    return json_is_object(elicitation) &&
           (json_object_size(elicitation) == 0 || json_object_get(elicitation, "form"));
}

static json_t *own_capabilities(void)
{
    return json_pack("{s:{}}", "tools");
}

static void do_initialize(struct session *session, const struct request *request)
{
    const char *asked = json_string_value(json_object_get(request->params, "protocolVersion"));
    const char *version = LEGACY_NEWEST;
    if (!asked) {
        send_error(session, request->id, RPC_PARAMS, "protocolVersion is missing", NULL);
        return;
    }
    for (size_t i = 0; legacy_versions[i]; i++)
        if (strcmp(legacy_versions[i], asked) == 0)
            version = legacy_versions[i];
    session->elicits = can_elicit(json_object_get(request->params, "capabilities"));
    send_result(session, request->id,
                json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", version, "capabilities",
                          own_capabilities(), "serverInfo", server_info(), "instructions",
                          INSTRUCTIONS),
                false);
}

static void do_ping(struct session *session, const struct request *request)
{
    send_result(session, request->id, json_object(), false);
}

static void do_discover(struct session *session, const struct request *request)
{
    send_result(session, request->id,
                json_pack("{s:[s], s:o, s:s, s:i, s:s}", "supportedVersions", MODERN,
                          "capabilities", own_capabilities(), "instructions", INSTRUCTIONS, "ttlMs",
                          CACHE_MS, "cacheScope", "private"),
                true);
}

static void do_tools_list(struct session *session, const struct request *request)
{
    json_t *result = json_pack("{s:O}", "tools", session->tools);
    if (request->modern) {
        (void)json_object_set_new(result, "ttlMs", json_integer(CACHE_MS));
        (void)json_object_set_new(result, "cacheScope", json_string("private"));
    }
    send_result(session, request->id, result, request->modern);
}

static void refuse_call(struct session *session, const struct request *request, const char *text)
{
    send_result(
        session, request->id,
        json_pack("{s:[{s:s, s:s}], s:b}", "content", "type", "text", "text", text, "isError", 1),
        request->modern);
}

static void do_tools_call(struct session *session, const struct request *request)
{
    const char *name = json_string_value(json_object_get(request->params, "name"));
    const struct tool *tool = name ? tools_find(name) : NULL;
    const json_t *arguments = json_object_get(request->params, "arguments");
    autofree char *message = NULL;
    if (!tool) {
        send_error(session, request->id, RPC_PARAMS, name ? "unknown tool" : "name is missing",
                   NULL);
        return;
    }
    if (arguments && !json_is_object(arguments)) {
        send_error(session, request->id, RPC_PARAMS, "arguments is not an object", NULL);
        return;
    }
    if (!arguments)
        (void)json_object_set_new(request->params, "arguments", json_object());
    if (!tools_check(session, tool, json_object_get(request->params, "arguments"), &message)) {
        refuse_call(session, request, message ? message : "out of memory");
        return;
    }
    bool elicits = request->modern ? can_elicit(request->capabilities) : session->elicits;
    if (!calls_add(session, request->id, json_incref(request->params), tool, request->modern,
                   elicits))
        refuse_call(session, request, "Too many calls at the same time; wait for others to end.");
}

static void do_cancelled(struct session *session, const struct request *request)
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
    void (*run)(struct session *session, const struct request *request);
} methods[] = {
    {"initialize", LEGACY, false, do_initialize},
    {"ping", LEGACY, false, do_ping},
    {"server/discover", MODERN_ERA, false, do_discover},
    {"tools/list", LEGACY | MODERN_ERA, false, do_tools_list},
    {"tools/call", LEGACY | MODERN_ERA, false, do_tools_call},
    {"notifications/cancelled", LEGACY | MODERN_ERA, true, do_cancelled},
};

/* ---- Messages ---- */

/* The versions for an error; both kinds, as a client may know only one. */
static json_t *supported_versions(const json_t *requested)
{
    json_t *list = json_pack("[s]", MODERN);
    for (size_t i = 0; legacy_versions[i]; i++)
        (void)json_array_append_new(list, json_string(legacy_versions[i]));
    return json_pack("{s:o, s:O}", "supported", list, "requested", requested);
}

/* Finds the era of a request. False if its _meta is not valid; the error is then sent. */
static bool read_meta(struct session *session, struct request *request)
{
    const json_t *meta = json_object_get(request->params, "_meta");
    json_t *version = json_object_get(meta, META_VERSION);
    if (!version && strcmp(request->method, "server/discover") != 0)
        return true;
    const char *message = NULL;
    request->capabilities = json_object_get(meta, META_CAPABILITIES);
    request->modern = true;
    if (!json_is_string(version))
        message = "_meta has no " META_VERSION;
    else if (strcmp(json_string_value(version), MODERN) != 0) {
        send_error(session, request->id, RPC_VERSION, "unsupported protocol version",
                   supported_versions(version));
        return false;
    } else if (!json_is_object(request->capabilities))
        message = "_meta has no " META_CAPABILITIES;
    if (message)
        send_error(session, request->id, RPC_PARAMS, message, NULL);
    return message == NULL;
}

static void run_method(struct session *session, struct request *request)
{
    bool notification = request->id == NULL;
    if (!notification && !read_meta(session, request))
        return;
    unsigned era = request->modern ? MODERN_ERA : LEGACY;
    for (size_t i = 0; i < ARRAY_LENGTH(methods); i++)
        if (strcmp(methods[i].name, request->method) == 0 &&
            methods[i].notification == notification && (notification || methods[i].eras & era)) {
            methods[i].run(session, request);
            return;
        }
    if (!notification)
        send_error(session, request->id, RPC_METHOD, "unknown method", NULL);
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

static bool is_id(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= ID_LENGTH_MAX);
}

static void take_message(struct session *session, json_t *message)
{
    json_t *id = json_object_get(message, "id"), *method = json_object_get(message, "method");
    json_t *params = json_object_get(message, "params");
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));
    const char *wrong = NULL;
    if (!json_is_object(message))
        wrong = json_is_array(message) ? "batches are not supported" : "not an object";
    else if (!version || strcmp(version, "2.0") != 0)
        wrong = "jsonrpc is not \"2.0\"";
    else if (id && !is_id(id))
        wrong = "the id is neither a text nor an integer";
    else if (!method && (json_object_get(message, "result") || json_object_get(message, "error"))) {
        take_response(session, message);
        return;
    } else if (!json_is_string(method))
        wrong = "the method is missing";
    else if (id && calls_find(session, id))
        wrong = "a request with this id is still running";
    if (wrong) {
        send_error(session, is_id(id) ? id : NULL, RPC_REQUEST, wrong, NULL);
        return;
    }
    if (params && !json_is_object(params)) {
        if (id)
            send_error(session, id, RPC_PARAMS, "params is not an object", NULL);
        return;
    }
    if (!params) {
        params = json_object();
        (void)json_object_set_new(message, "params", params);
    }
    struct request request = {.id = id, .method = json_string_value(method), .params = params};
    if (params)
        run_method(session, &request);
}

/* Whether a parser can read the text in bounded depth and memory. Whether it is JSON is the parser's
 * question. */
static bool is_bounded(const char *text, size_t length)
{
    size_t depth = 0, values = 1;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (quoted)
            continue;
        else if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && depth > 0)
            depth--;
        else if (c == ',')
            values++;
        if (depth > DEPTH_MAX || values > VALUES_MAX)
            return false;
    }
    return true;
}

void session_line(struct session *session, const char *line, size_t length)
{
    json_error_t error;
    if (strspn(line, " \t\r") >= length)
        return;
    if (!utf8_is_valid(line, length)) {
        send_error(session, NULL, RPC_PARSE, "the line is not UTF-8", NULL);
        return;
    }
    if (!is_bounded(line, length)) {
        send_error(session, NULL, RPC_PARSE, "the message has too many values", NULL);
        return;
    }
    json_t *message =
        json_loadb(line, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    if (message)
        take_message(session, message);
    else
        send_error(session, NULL, RPC_PARSE, "the line is not JSON", NULL);
    json_decref(message);
}

void session_long_line(struct session *session)
{
    send_error(session, NULL, RPC_PARSE, "the line is longer than 8 MiB", NULL);
}
