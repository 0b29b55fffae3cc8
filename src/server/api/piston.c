/* SPDX-License-Identifier: MIT */
/* The routes of Piston's interface. */
#include "server/api/piston.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "server/api/piston_request.h"
#include "server/config/config.h"
#include "server/http/http.h"

/* The version of Piston that this interface is like. */
#define LIKE_VERSION "3.1.1"

/* ---- answers ---- */

static void answer_message(struct exchange *exchange, unsigned status, const char *message)
{
    autostr struct str text = {0};
    struct json j;
    if (!*message) {
        answer_text(exchange, status, NULL, &text);
        return;
    }
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_text(&j, "message", message);
    json_close_object(&j);
    answer_json(exchange, status, &text);
}

/* Piston has no 403 for code; its clients show the message of a 400. */
static void fail(struct exchange *exchange, enum http_error error, const char *field,
                 const char *message)
{
    const struct error_row *row = error_row(error);
    (void)field;
    if (!message)
        message = row->text;
    if (exchange->upgrade)
        piston_connect_fail(exchange, message);
    else
        answer_message(exchange, error == ERROR_ESCAPE_ATTEMPT ? 400 : row->status, message);
}

/* ---- runtimes ---- */

json_t *piston_runtimes(const struct exchange *exchange)
{
    const struct str *text = &exchange->http->runtimes;
    json_auto_t *root = text->data ? json_loadb(text->data, text->length, 0, NULL) : NULL;
    return json_incref(json_object_get(root, "runtimes"));
}

static void answer_list(struct exchange *exchange,
                        void (*write)(struct json *j, const json_t *runtimes,
                                      const struct server_config *config))
{
    json_auto_t *runtimes = piston_runtimes(exchange);
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    write(&j, runtimes, exchange->http->config);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

static void list_runtimes(struct exchange *exchange)
{
    answer_list(exchange, piston_write_runtimes);
}

static void list_packages(struct exchange *exchange)
{
    answer_list(exchange, piston_write_packages);
}

static void refuse_package(struct exchange *exchange)
{
    answer_message(exchange, MHD_HTTP_FORBIDDEN, "packages are managed by the operator");
}

static void tell_version(struct exchange *exchange)
{
    answer_message(exchange, MHD_HTTP_OK, "Piston v" LIKE_VERSION);
}

/* ---- POST /execute ---- */

json_t *piston_parse(const char *text, size_t length, char ret_problem[PISTON_PROBLEM_MAX])
{
    json_error_t error;
    if (request_shape(text, length, REQUEST_DEPTH_MAX, REQUEST_VALUES_MAX) != REQUEST_SHAPE_OK) {
        (void)snprintf(ret_problem, PISTON_PROBLEM_MAX, "SyntaxError: too many values");
        return NULL;
    }
    json_t *root = json_loadb(text, length, JSON_ALLOW_NUL, &error);
    if (!root && length == 0)
        (void)snprintf(ret_problem, PISTON_PROBLEM_MAX, "SyntaxError: %s", REQUEST_NO_BODY);
    else if (!root)
        (void)snprintf(ret_problem, PISTON_PROBLEM_MAX, "SyntaxError: line %d, column %d: %s",
                       error.line, error.column, error.text);
    return root;
}

/* Piston answers JSON that it cannot parse with the stack of its parser. */
static void answer_syntax(struct exchange *exchange, const char *problem)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_text(&j, "message", problem);
    json_text(&j, "stack", problem);
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_BAD_REQUEST, &text);
}

static void free_call(void *call)
{
    piston_call_done(call);
    free(call);
}

static void answer_result(struct exchange *exchange, const struct execution_result *result)
{
    autostr struct str text = {0};
    struct json j;
    if (exchange->upgrade) {
        piston_connect_done(exchange, result);
        return;
    }
    json_init(&j, &text);
    piston_write_result(&j, exchange->kept, result);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

const struct dialect piston_dialect = {.fail = fail,
                                       .begun = piston_connect_begun,
                                       .output = piston_connect_output,
                                       .stage = piston_connect_stage,
                                       .done = answer_result,
                                       .plain_key = true};

void piston_start(struct exchange *exchange, struct piston_call *call)
{
    char why[REQUEST_MESSAGE_MAX];
    if (!execute_prepare(exchange, &call->request, call->runtime, why))
        answer_error(exchange, ERROR_ESCAPE_ATTEMPT, why);
    else if (http_history_is_full(exchange->http))
        answer_error(exchange, ERROR_HISTORY_FULL, NULL);
    else {
        call->request.stream = call->request.interactive;
        execute_start(exchange, &call->request, false);
    }
    execution_request_done(&call->request); /* the ticket has a copy until it is sent */
}

static void execute(struct exchange *exchange)
{
    char problem[PISTON_PROBLEM_MAX];
    struct piston_fault fault;
    struct piston_call *call = calloc(1, sizeof *call);
    if (!call) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return;
    }
    exchange->kept = call;
    exchange->free_kept = free_call;
    json_auto_t *runtimes = piston_runtimes(exchange);
    json_auto_t *body = piston_parse(exchange->body.data ? exchange->body.data : "",
                                     exchange->body.length, problem);
    if (!body)
        answer_syntax(exchange, problem);
    else if (!piston_read(body, runtimes, exchange->http->config, false, call, &fault))
        answer_message(exchange, fault.status, fault.message);
    else if (execute_take_idempotency(exchange)) {
        str_done(&exchange->body);
        piston_start(exchange, call);
    }
}

/* ---- routes ---- */

const struct piston_route piston_routes[] = {
    {"GET", "/runtimes", list_runtimes, "pistonRuntimes", NULL, "PistonRuntimes",
     "Languages and versions that can be run"},
    {"POST", "/execute", execute, "pistonExecute", "PistonRequest", "PistonResult",
     "Run code and get the result back"},
    {"GET", "/connect", piston_connect, "pistonConnect", NULL, NULL,
     "A WebSocket: run code, send input and signals, get output as it comes"},
    {"GET", "/packages", list_packages, "pistonPackages", NULL, "PistonPackages",
     "List the same as packages, all of them installed"},
    {"POST", "/packages", refuse_package, "pistonInstall", NULL, "PistonMessage",
     "403: packages are managed by the operator"},
    {"DELETE", "/packages", refuse_package, "pistonUninstall", NULL, "PistonMessage",
     "403: packages are managed by the operator"},
    {"GET", "/", tell_version, "pistonVersion", NULL, "PistonMessage",
     "The version of Piston that this is like"},
};
const size_t piston_route_count = ARRAY_LENGTH(piston_routes);

/* As Piston, but some clients send no type, or text/plain. */
static bool type_is_fine(const struct exchange *exchange)
{
    const char *type = exchange_header(exchange, "Content-Type");
    if (strcmp(exchange->method, "GET") == 0 || strcmp(exchange->method, "HEAD") == 0)
        return true;
    if (type && strncasecmp(type, "application/json", strlen("application/json")) == 0)
        return true;
    return !type || strncasecmp(type, "text/plain", strlen("text/plain")) == 0;
}

void piston_handle(struct exchange *exchange)
{
    const char *path = exchange->path + strlen(PISTON_PATH);
    const char *method = strcmp(exchange->method, "HEAD") == 0 ? "GET" : exchange->method;
    if (str_starts_with(path, "/piston/"))
        path += strlen("/piston");
    if (!exchange->http->config->piston.enabled) {
        answer_message(exchange, MHD_HTTP_NOT_FOUND, "Not Found");
        return;
    }
    if (!type_is_fine(exchange)) {
        answer_message(exchange, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                       "requests must be of type application/json");
        return;
    }
    for (size_t i = 0; i < piston_route_count; i++)
        if (strcmp(piston_routes[i].method, method) == 0 &&
            strcmp(piston_routes[i].path, path) == 0) {
            piston_routes[i].handle(exchange);
            return;
        }
    answer_message(exchange, MHD_HTTP_NOT_FOUND, "Not Found");
}
