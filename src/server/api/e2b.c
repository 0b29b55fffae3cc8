/* SPDX-License-Identifier: MIT */
/* Requests of E2B's clients: from the path to a handler, and errors in the forms that they expect. */
#include "server/api/e2b.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "server/api/connect.h"
#include "server/api/ports.h"
#include "server/http/http.h"
#include "server/http/request.h"
#include "server/http/sandbox.h"
#include "server/http/stream.h"

#define CONNECT_TYPE "application/connect+json"
#define DEPTH_MAX 16
#define VALUES_MAX 8192
#define GONE "the sandbox was not found: it has ended, or the token is not its own"

/* ---- routes ---- */

#define PROCESS "/process.Process/"
#define FILESYSTEM "/filesystem.Filesystem/"

const struct e2b_route e2b_routes[] = {
    {E2B_API, E2B_REST, "POST", "/v2/sandboxes", e2b_create},
    {E2B_API, E2B_REST, "POST", "/sandboxes", e2b_create},
    {E2B_API, E2B_REST, "GET", "/v2/sandboxes", e2b_list},
    {E2B_API, E2B_REST, "GET", "/sandboxes", e2b_list},
    {E2B_API, E2B_REST, "POST", "/v2/sandboxes/{id}/connect", e2b_connect},
    {E2B_API, E2B_REST, "POST", "/sandboxes/{id}/connect", e2b_connect},
    {E2B_API, E2B_REST, "POST", "/sandboxes/{id}/resume", e2b_resume},
    {E2B_API, E2B_REST, "POST", "/sandboxes/{id}/pause", e2b_pause},
    {E2B_API, E2B_REST, "POST", "/sandboxes/{id}/timeout", e2b_timeout},
    {E2B_API, E2B_REST, "GET", "/sandboxes/{id}/metrics", e2b_metrics},
    {E2B_API, E2B_REST, "GET", "/sandboxes/{id}", e2b_get},
    {E2B_API, E2B_REST, "DELETE", "/sandboxes/{id}", e2b_end},
    {E2B_API, E2B_REST, "PUT", "/sandboxes/{id}/network", e2b_unsupported},
    {E2B_API, E2B_REST, "POST", "/sandboxes/{id}/fork", e2b_unsupported},
    {E2B_API, E2B_REST, "POST", "/sandboxes/{id}/snapshots", e2b_unsupported},
    {E2B_API, E2B_REST, "GET", "/snapshots", e2b_unsupported},
    {E2B_API, E2B_REST, "GET", "/templates", e2b_unsupported},

    {E2B_ENVD, E2B_REST, "GET", "/health", e2b_health},
    {E2B_ENVD, E2B_REST, "GET", "/files", e2b_file_read},
    {E2B_ENVD, E2B_REST, "POST", "/files", e2b_file_write},
    {E2B_ENVD, E2B_STREAM, "POST", PROCESS "Start", e2b_process_start},
    {E2B_ENVD, E2B_STREAM, "POST", PROCESS "Connect", e2b_process_connect},
    {E2B_ENVD, E2B_UNARY, "POST", PROCESS "List", e2b_process_list},
    {E2B_ENVD, E2B_UNARY, "POST", PROCESS "SendInput", e2b_process_input},
    {E2B_ENVD, E2B_UNARY, "POST", PROCESS "CloseStdin", e2b_process_close},
    {E2B_ENVD, E2B_UNARY, "POST", PROCESS "SendSignal", e2b_process_signal},
    {E2B_ENVD, E2B_UNARY, "POST", PROCESS "Update", e2b_process_update},
    {E2B_ENVD, E2B_UNARY, "POST", FILESYSTEM "Stat", e2b_file_stat},
    {E2B_ENVD, E2B_UNARY, "POST", FILESYSTEM "MakeDir", e2b_file_make},
    {E2B_ENVD, E2B_UNARY, "POST", FILESYSTEM "Move", e2b_file_move},
    {E2B_ENVD, E2B_UNARY, "POST", FILESYSTEM "ListDir", e2b_file_list},
    {E2B_ENVD, E2B_UNARY, "POST", FILESYSTEM "Remove", e2b_file_remove},
    {E2B_ENVD, E2B_STREAM, "POST", FILESYSTEM "WatchDir", e2b_file_watch},
    {E2B_ENVD, E2B_UNARY, "POST", FILESYSTEM "CreateWatcher", e2b_unsupported},
    {E2B_ENVD, E2B_UNARY, "POST", FILESYSTEM "GetWatcherEvents", e2b_unsupported},
    {E2B_ENVD, E2B_UNARY, "POST", FILESYSTEM "RemoveWatcher", e2b_unsupported},

    {E2B_INTERPRETER, E2B_TEXT, "POST", "/execute", e2b_code_execute},
    {E2B_INTERPRETER, E2B_TEXT, "POST", "/contexts", e2b_code_create},
    {E2B_INTERPRETER, E2B_TEXT, "GET", "/contexts", e2b_code_list},
    {E2B_INTERPRETER, E2B_TEXT, "DELETE", "/contexts/{id}", e2b_code_remove},
    {E2B_INTERPRETER, E2B_TEXT, "POST", "/contexts/{id}/restart", e2b_code_restart},
    {E2B_INTERPRETER, E2B_REST, "GET", "/health", e2b_health},
};
const size_t e2b_route_count = ARRAY_LENGTH(e2b_routes);

const struct e2b_route *e2b_find(unsigned port, const char *method, const char *path,
                                 char ret_id[EXECUTION_ID_LENGTH + 1])
{
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (size_t i = 0; i < e2b_route_count; i++) {
        const char *id, *number;
        if (e2b_routes[i].port != port || strcmp(e2b_routes[i].method, method) != 0 ||
            !route_has_form(e2b_routes[i].path, path, &id, &number))
            continue;
        size_t length = id ? strcspn(id, "/") : 0;
        if (length > EXECUTION_ID_LENGTH)
            continue;
        memcpy(ret_id, id ? id : "", length);
        ret_id[length] = '\0';
        return &e2b_routes[i];
    }
    return NULL;
}

/* ---- what is kept ---- */

static void free_kept(void *pointer)
{
    struct e2b_kept *kept = pointer;
    arena_done(&kept->arena);
    str_done(&kept->body);
    free(kept);
}

struct e2b_kept *e2b_kept(struct exchange *exchange)
{
    return exchange->kept;
}

const char *e2b_path_id(const struct exchange *exchange)
{
    const struct e2b_kept *kept = exchange->kept;
    return kept->path_id;
}

/* ---- errors ---- */

static enum e2b_form form_of(const struct exchange *exchange)
{
    const struct e2b_kept *kept = exchange->kept;
    const char *type = exchange_header(exchange, "Content-Type");
    if (kept && kept->route)
        return kept->route->form;
    /* Refused before its row was looked for. */
    return !type                                                   ? E2B_REST
           : str_starts_with(type, CONNECT_TYPE)                   ? E2B_STREAM
           : exchange_header(exchange, "Connect-Protocol-Version") ? E2B_UNARY
                                                                   : E2B_REST;
}

static void write_rest_error(struct str *out, unsigned status, const char *message)
{
    struct json j;
    json_init(&j, out);
    json_open_object(&j, NULL);
    json_uint(&j, "code", status);
    json_text(&j, "message", message);
    json_close_object(&j);
}

/* A sandbox that is not there is 502 for the clients, in every form. */
static void refuse_stream(struct exchange *exchange, unsigned status, enum connect_code code,
                          const char *message)
{
    autostr struct str text = {0};
    if (!exchange->stream && status == MHD_HTTP_BAD_GATEWAY) {
        connect_error(&text, code, message);
        answer_json(exchange, status, &text);
        return;
    }
    connect_last_frame(&text, code, message);
    if (exchange->stream)
        stream_finish(exchange->stream, text.failed ? "" : text.data,
                      text.failed ? 0 : text.length);
    else
        answer_text(exchange, MHD_HTTP_OK, CONNECT_TYPE, &text);
}

static void refuse(struct exchange *exchange, unsigned status, enum connect_code code,
                   const char *message)
{
    autostr struct str text = {0};
    enum e2b_form form = form_of(exchange);
    if (form == E2B_STREAM) {
        refuse_stream(exchange, status, code, message);
        return;
    }
    if (form == E2B_TEXT && exchange->stream) {
        e2b_code_break(exchange, message);
        return;
    }
    if (exchange->stream) { /* a file that cannot be read any more */
        stream_abort(exchange->stream);
        return;
    }
    if (form == E2B_UNARY)
        connect_error(&text, code, message);
    else if (form == E2B_REST)
        write_rest_error(&text, status, message);
    else
        str_append(&text, message);
    if (text.failed)
        str_done(&text); /* out of memory: the status alone */
    answer_text(exchange, status, form == E2B_TEXT ? "text/plain" : "application/json", &text);
}

void e2b_refuse(struct exchange *exchange, unsigned status, const char *message)
{
    exchange->error = status < 500 ? ERROR_INVALID_FIELD : ERROR_INTERNAL;
    refuse(exchange, status, connect_code_of(status), message);
}

static void fail(struct exchange *exchange, enum http_error error, const char *field,
                 const char *message)
{
    const struct error_row *row = error_row(error);
    (void)field;
    if (error == ERROR_EXECUTION_LOST) /* sandboxes end with the executor */
        refuse(exchange, MHD_HTTP_BAD_GATEWAY, CONNECT_UNAVAILABLE, GONE);
    else
        refuse(exchange, row->status, connect_code_of(row->status), message ? message : row->text);
}

/* The clients tell these apart: 502 is a sandbox that is gone or paused. */
static unsigned status_of(const struct exchange *exchange, enum sandbox_fault fault)
{
    const struct e2b_kept *kept = exchange->kept;
    bool inside = kept->route->port != E2B_API;
    switch (fault) {
    case SANDBOX_NOT_FOUND:
    case SANDBOX_LOST:
        return inside ? MHD_HTTP_BAD_GATEWAY : MHD_HTTP_NOT_FOUND;
    case SANDBOX_NO_COMMAND:
    case SANDBOX_NO_FILE:
    case SANDBOX_LANGUAGE:
        return MHD_HTTP_NOT_FOUND;
    case SANDBOX_REFUSED:
        return MHD_HTTP_FORBIDDEN;
    case SANDBOX_KIND:
        return MHD_HTTP_BAD_REQUEST;
    default:
        return error_row(sandbox_error(fault))->status;
    }
}

/* A paused sandbox is gone for the clients, and a command that has ended is not found. */
static enum sandbox_fault fault_for(const struct e2b_route *route, enum sandbox_fault fault)
{
    if (fault != SANDBOX_CONFLICT || route->port != E2B_ENVD)
        return fault;
    return str_starts_with(route->path, PROCESS) && route->handle != e2b_process_start
               ? SANDBOX_NO_COMMAND
               : SANDBOX_NOT_FOUND;
}

void e2b_failed(struct exchange *exchange, const struct sandbox_answer *answer)
{
    const struct e2b_kept *kept = exchange->kept;
    if (exchange->admitting) { /* the token is wrong, or the sandbox is gone */
        exchange->error = sandbox_error(answer->fault);
        refuse(exchange, MHD_HTTP_BAD_GATEWAY, CONNECT_UNAVAILABLE, GONE);
        return;
    }
    if (!kept) { /* of a port that is the client's */
        sandbox_fail(exchange, answer);
        return;
    }
    if (kept->route->handle == e2b_file_remove && answer->fault == SANDBOX_NO_FILE) {
        e2b_answer_empty(exchange, answer);
        return;
    }
    enum sandbox_fault fault = fault_for(kept->route, answer->fault);
    unsigned status = status_of(exchange, fault);
    exchange->error = sandbox_error(fault);
    if (fault == SANDBOX_LIMIT || status == MHD_HTTP_SERVICE_UNAVAILABLE)
        exchange->retry_after_s = 1;
    refuse(exchange, status, connect_code_of(status),
           status == MHD_HTTP_BAD_GATEWAY ? GONE
           : *answer->message             ? answer->message
                                          : error_row(exchange->error)->text);
}

const struct dialect e2b_dialect = {.fail = fail, .sandbox_failed = e2b_failed};

void e2b_answer_empty(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    (void)answer;
    str_append(&text, "{}");
    answer_json(exchange, MHD_HTTP_OK, &text);
}

/* ---- parts of requests ---- */

/* The only frame of the body of a stream. */
static bool unwrap(struct exchange *exchange, const char **bytes, size_t *length)
{
    unsigned flags = 0;
    long used = connect_read(*bytes, *length, *length, &flags, bytes, length);
    if (used > 0 && (size_t)used == exchange->body.length && flags == 0)
        return true;
    e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, "the body has to be one uncompressed frame");
    return false;
}

bool e2b_body(struct exchange *exchange, json_t **ret_object)
{
    const struct e2b_kept *kept = exchange->kept;
    const char *bytes = exchange->body.data ? exchange->body.data : "";
    size_t length = exchange->body.length;
    const char *type = exchange_header(exchange, "Content-Type");
    const char *wanted = kept->route->form == E2B_STREAM ? CONNECT_TYPE : "application/json";
    if (length > 0 && (!type || !str_starts_with(type, wanted))) {
        e2b_refuse(exchange, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                   "the body has to be JSON, with its Content-Type");
        return false;
    }
    if (kept->route->form == E2B_STREAM && !unwrap(exchange, &bytes, &length))
        return false;
    if (length == 0) {
        bytes = "{}";
        length = 2;
    }
    if (request_shape(bytes, length, DEPTH_MAX, VALUES_MAX) == REQUEST_SHAPE_OK)
        *ret_object = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(*ret_object))
        return true;
    e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, "the body is not a JSON object");
    return false;
}

const char *e2b_file_path(struct exchange *exchange, struct arena *arena, const char *path)
{
    if (!path || strlen(path) + sizeof E2B_HOME > SANDBOX_PATH_MAX) {
        e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, "the path is missing, or too long");
        return NULL;
    }
    if (path[0] == '~' && (path[1] == '/' || !path[1]))
        path += path[1] ? 2 : 1;
    char tidy[SANDBOX_PATH_MAX + 1];
    const char *whole = arena_concat(arena, path[0] == '/' ? "" : E2B_HOME "/", path);
    if (whole) {
        sandbox_tidy_path(whole, tidy);
        whole = arena_strdup(arena, tidy);
    }
    if (!whole)
        answer_error(exchange, ERROR_OVERLOADED, NULL);
    return whole;
}

static bool is_user(const char *name, size_t length)
{
    return length == 0 || (length == strlen(E2B_USER) && memcmp(name, E2B_USER, length) == 0) ||
           (length == 4 && memcmp(name, "root", 4) == 0);
}

bool e2b_check_user(struct exchange *exchange)
{
    static const char basic[] = "Basic ";
    const char *name = exchange_parameter(exchange, "username");
    const char *authorization = exchange_header(exchange, "Authorization");
    char text[64];
    size_t length = name ? strlen(name) : 0;
    if (!name && authorization && str_starts_with(authorization, basic)) {
        const char *encoded = authorization + strlen(basic);
        if (strlen(encoded) >= sizeof text ||
            !base64_decode(encoded, strlen(encoded), text, &length))
            length = sizeof text;
        else if (memchr(text, ':', length))
            length = (size_t)((char *)memchr(text, ':', length) - text);
        name = text;
    }
    if (!name || is_user(name, length))
        return true;
    refuse(exchange, MHD_HTTP_UNAUTHORIZED, CONNECT_UNAUTHENTICATED,
           "a sandbox has one user, which 'user' and 'root' both mean");
    return false;
}

void e2b_write_time(struct json *j, const char *key, int64_t ns)
{
    json_time(j, key, ns > 0 ? ns : 1);
}

void e2b_unsupported(struct exchange *exchange)
{
    e2b_refuse(exchange, MHD_HTTP_NOT_IMPLEMENTED, "this server does not have this part of E2B");
}

/* ---- dispatch ---- */

bool e2b_read_host(const char *host, unsigned *ret_port, char ret_id[EXECUTION_ID_LENGTH + 1])
{
    size_t digits = strspn(host, "0123456789");
    unsigned port = 0;
    if (digits == 0 || digits > 5 || host[digits] != '-' ||
        strnlen(host + digits + 1, EXECUTION_ID_LENGTH + 2) < EXECUTION_ID_LENGTH + 2 ||
        host[digits + 1 + EXECUTION_ID_LENGTH] != '.')
        return false;
    for (size_t i = 0; i < digits; i++)
        port = port * 10 + (unsigned)(host[i] - '0');
    memcpy(ret_id, host + digits + 1, EXECUTION_ID_LENGTH);
    ret_id[EXECUTION_ID_LENGTH] = '\0';
    *ret_port = port;
    return port > 0 && port <= UINT16_MAX && execution_id_is_valid(ret_id);
}

bool e2b_find_host(const char *host, const struct route **ret_route)
{
    unsigned port;
    char id[EXECUTION_ID_LENGTH + 1];
    if (!host || !e2b_read_host(host, &port, id))
        return false;
    for (size_t i = 0; i < route_count; i++)
        if (str_starts_with(routes[i].path, E2B_HOST))
            *ret_route = &routes[i];
    return *ret_route;
}

bool e2b_answer_stray(struct exchange *exchange)
{
    char id[EXECUTION_ID_LENGTH + 1];
    if (!e2b_find(E2B_API, exchange->method, exchange->path, id))
        return false;
    exchange->error = ERROR_NOT_FOUND;
    refuse(exchange, MHD_HTTP_NOT_FOUND, CONNECT_NOT_FOUND,
           "this server has E2B's interface at " E2B_PATH ": add that to E2B_API_URL, as in "
           "http://HOST:8080" E2B_PATH);
    return true;
}

static bool is_host(const struct exchange *exchange)
{
    return str_starts_with(exchange->route->path, E2B_HOST);
}

/* The sandbox, the port and the token of a request that goes into a sandbox. */
static bool find_sandbox(struct exchange *exchange, unsigned *ret_port)
{
    const char *id = exchange_header(exchange, "E2b-Sandbox-Id");
    const char *port = exchange_header(exchange, "E2b-Sandbox-Port");
    const char *token = exchange_header(exchange, "X-Access-Token");
    char host_id[EXECUTION_ID_LENGTH + 1];
    unsigned host_port;
    uint64_t number = E2B_ENVD;
    if (!token)
        token = exchange_header(exchange, "E2B-Traffic-Access-Token");
    if (is_host(exchange) &&
        e2b_read_host(exchange_header(exchange, "Host"), &host_port, host_id)) {
        id = host_id;
        port = NULL;
        number = host_port;
    }
    if (!id || (port && parse_uint(port, UINT16_MAX, 0, &number, NULL) < 0) || number == E2B_API) {
        e2b_refuse(
            exchange, MHD_HTTP_BAD_REQUEST,
            "the headers E2b-Sandbox-Id and E2b-Sandbox-Port have to name a sandbox and a port");
        return false;
    }
    if (!token || !*token) {
        e2b_refuse(exchange, MHD_HTTP_UNAUTHORIZED,
                   "the sandbox's token is needed, as X-Access-Token");
        return false;
    }
    if (!execution_id_is_valid(id) || strlen(token) != SANDBOX_TOKEN_LENGTH) {
        refuse(exchange, MHD_HTTP_BAD_GATEWAY, CONNECT_UNAVAILABLE, GONE);
        return false;
    }
    (void)snprintf(exchange->path_id, sizeof exchange->path_id, "%s", id);
    (void)snprintf(exchange->sandbox_token, sizeof exchange->sandbox_token, "%s", token);
    *ret_port = (unsigned)number;
    return true;
}

static void take_admitted(struct exchange *exchange, const struct sandbox_answer *answer)
{
    (void)answer;
    exchange->state = EXCHANGE_BODY;
    exchange_resume(exchange);
}

/* Only the executor knows tokens; it answers nothing about a sandbox without the right one. */
void e2b_admit(struct exchange *exchange)
{
    unsigned port;
    if (find_sandbox(exchange, &port))
        sandbox_ask(exchange, &(struct sandbox_request){.operation = SANDBOX_GET}, take_admitted);
}

/* The sandbox of a path of the control interface. */
static bool take_path_id(struct exchange *exchange, const struct e2b_kept *kept)
{
    if (!*kept->path_id)
        return true;
    if (!execution_id_is_valid(kept->path_id)) {
        e2b_refuse(exchange, MHD_HTTP_NOT_FOUND, "there is no sandbox with this id");
        return false;
    }
    memcpy(exchange->path_id, kept->path_id, sizeof exchange->path_id);
    return true;
}

void e2b_handle(struct exchange *exchange)
{
    bool inside = exchange->route->flags & ROUTE_OPEN;
    unsigned port = E2B_API;
    if (inside && !find_sandbox(exchange, &port))
        return;
    const char *prefix = is_host(exchange) ? "" : inside ? E2B_SANDBOX_PATH : E2B_PATH;
    const char *path = exchange->path + strlen(prefix);
    if (inside && port != E2B_ENVD && port != E2B_INTERPRETER) {
        ports_ask(exchange, port, path);
        return;
    }
    struct e2b_kept *kept = calloc(1, sizeof *kept);
    if (!kept) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return;
    }
    kept->route = e2b_find(port, exchange->method, path, kept->path_id);
    if (!kept->route) {
        free(kept);
        e2b_refuse(exchange, MHD_HTTP_NOT_FOUND, "E2B has no such path, or this server has not");
        return;
    }
    exchange->kept = kept;
    exchange->free_kept = free_kept;
    if (inside || take_path_id(exchange, kept))
        kept->route->handle(exchange);
}
