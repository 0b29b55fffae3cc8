/* SPDX-License-Identifier: MIT */
/* The HTTP interface as tables: routes, query parameters and errors. openapi.json and docs/api.md
 * are generated from them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/execution.h"

struct dialect;
struct exchange;
struct str;

#define ROUTE_METHODS_MAX 64

enum route_flag {
    ROUTE_OPEN = 1 << 0,      /* needs no API key */
    ROUTE_UNCOUNTED = 1 << 1, /* exempt from the rate limit */
    ROUTE_BODY = 1 << 2,      /* has a JSON body */
    ROUTE_STREAM = 1 << 3,    /* answers with server-sent events */
    ROUTE_PAGE = 1 << 5,      /* is for browsers, which may load its files */
    ROUTE_PROBE = 1 << 4,     /* answered for any Host, and while the server drains */
    ROUTE_ACCEPTS = 1 << 6,   /* answers 202 */
    ROUTE_BYTES = 1 << 7,     /* has a body of any bytes */
    ROUTE_CREATES = 1 << 8,   /* answers with 201 */
    ROUTE_EMPTY = 1 << 9,     /* answers with 204 and no body */
    ROUTE_FORM = 1 << 10,     /* with API keys also takes a form as its body */
    ROUTE_FOREIGN = 1 << 11,  /* another program's: described apart in openapi.json, docs/api.md */
};

struct route {
    const char *method; /* "*": any but OPTIONS */
    /* "{id}" stands for a UUID, "{pid}" for a number, "*" at the end for anything. */
    const char *path;
    unsigned flags;
    /* Called when the request is complete. Sets an answer, or leaves the exchange waiting. */
    void (*handle)(struct exchange *exchange);
    const char *operation; /* operationId in openapi.json */
    const char *schema;    /* of the answer (schemas.json), or NULL: it is not JSON */
    const char *summary;
    const char *doc;               /* Markdown, for docs/api.md */
    const char *request;           /* schema of the body; NULL: that of /execute */
    const struct dialect *dialect; /* NULL: brigd's own */
    /* For a credential that is not an API key: called when the head of a request with a body is
     * complete. Sets an answer, or asks the executor; the body is read once the state is
     * EXCHANGE_BODY again and the exchange is resumed. NULL: there is none. A request without a body
     * is checked by `handle`. */
    void (*admit)(struct exchange *exchange);
};
extern const struct route routes[];
extern const size_t route_count;

enum route_match { ROUTE_FOUND, ROUTE_NO_PATH, ROUTE_NO_METHOD, ROUTE_OPTIONS, ROUTE_BAD_ID };

/* Whether the path matches the pattern of a route; *ret_id and *ret_number are the parts at {id} and
 * {pid}, which go to the next slash, or NULL. */
bool route_has_form(const char *pattern, const char *path, const char **ret_id,
                    const char **ret_number);
/* HEAD matches GET. ret_id is set for ROUTE_FOUND only, *ret_route also for ROUTE_BAD_ID. */
enum route_match route_find(const char *method, const char *path, const struct route **ret_route,
                            char ret_id[EXECUTION_ID_LENGTH + 1]);
/* The number at {pid} in a path that the route matches; 0 if there is none, or it is not a number. */
uint64_t route_number(const struct route *route, const char *path);
/* Lists the methods of a path: "GET, HEAD, OPTIONS"; false if the path is unknown. */
bool route_methods(const char *path, char ret_methods[ROUTE_METHODS_MAX]);

/* Query parameters, by the methods ("GET PUT") and the path of their routes. */
struct route_parameter {
    const char *methods, *path, *name, *allowed, *doc;
};
extern const struct route_parameter route_parameters[];
extern const size_t route_parameter_count;
bool route_has_parameter(const struct route *route, const struct route_parameter *parameter);

/* Check query parameters. If they return false, they have answered the exchange. */

/* All parameters must belong to the route. */
bool query_check(struct exchange *exchange);
/* ?encoding= of a stream. */
bool query_encoding(struct exchange *exchange, bool *ret_base64);
/* ?wait= of GET /executions/{id}, at most queue.max_wait. */
bool query_wait(struct exchange *exchange, uint64_t *ret_wait_ms);
/* The filters of GET /executions, checked, in the syntax of history/query.h. */
bool query_list(struct exchange *exchange, struct str *out);

/* All errors: code, HTTP status, default message, documentation. */
#define HTTP_ERRORS(X)                                                                             \
    X(MALFORMED_REQUEST, 400, "the head is malformed, or it cannot be told how long the body is",  \
      "A name or value of the head has signs it cannot have, `Host` or `Content-Length` is "       \
      "there twice, or `Transfer-Encoding` is anything but `chunked` alone.")                      \
    X(INVALID_JSON, 400, "the body is not a JSON object",                                          \
      "The body is missing, is not JSON, has a key twice, or is nested too deeply.")               \
    X(INVALID_FIELD, 400, "a field has a wrong value",                                             \
      "A field has a wrong type or is out of range; `field` names it.")                            \
    X(MISSING_FIELD, 400, "a field is missing", "A required field is missing; `field` names it.")  \
    X(UNKNOWN_FIELD, 400, "unknown field", "A field is not one of those below; `field` names it.") \
    X(UNKNOWN_LANGUAGE, 400, "unsupported language",                                               \
      "`language` is not in `GET /runtimes`, or is switched off.")                                 \
    X(RUNTIME_UNAVAILABLE, 400, "this server cannot run the language",                             \
      "What runs the language is not installed; `error` says what is missing.")                    \
    X(INVALID_ID, 400, "the id is not a UUID", "The id in the path is not a UUID.")                \
    X(INVALID_QUERY, 400, "a query parameter has a wrong value",                                   \
      "A query parameter is unknown or has a wrong value.")                                        \
    X(UNAUTHORIZED, 401, "an API key is needed: send it as X-API-Key or Authorization: Bearer",    \
      "No API key, or one that is not in `security.allowed_keys`.")                                \
    X(ESCAPE_ATTEMPT, 403, "the code looks like an attempt to escape",                             \
      "The detector found a pattern of severity `critical`.")                                      \
    X(NETWORK_NOT_PERMITTED, 403, "the operator does not permit this network",                     \
      "The network was asked for without a list of names, or with one too wide, and "              \
      "`sandbox.allow_network` is off.")                                                           \
    X(WORK_DIR_NOT_ALLOWED, 403, "work_dir is not allowed",                                        \
      "`work_dir` is not below `sandbox.allowed_workdir_roots`, or, where the key has its "        \
      "own, `workdir_roots`.")                                                                     \
    X(WRONG_ORIGIN, 403, "this web page may not use the server",                                   \
      "`Origin`, which browsers send for web pages, is not in `server.cors_origins`.")             \
    X(FILE_REFUSED, 403, "the sandbox does not allow this",                                        \
      "The permissions of the file, or of the directory it is in, refuse it in the sandbox.")      \
    X(NOT_FOUND, 404, "there is nothing here",                                                     \
      "No such path, or no execution, sandbox or command with this id; of a sandbox that has "     \
      "ended "                                                                                     \
      "`error` says when and why.")                                                                \
    X(FILE_NOT_FOUND, 404, "there is no such file", "The sandbox has no file of this name.")       \
    X(IN_PROGRESS, 409, "the first request with this Idempotency-Key has not ended",               \
      "`Idempotency-Key` was sent before, and its execution still runs after `queue.max_wait`; "   \
      "`id` is that of the execution.")                                                            \
    X(IDEMPOTENCY_CONFLICT, 422, "this Idempotency-Key was used for another request",              \
      "`Idempotency-Key` was sent before with another body or to another path.")                   \
    X(METHOD_NOT_ALLOWED, 405, "this method is not for this path",                                 \
      "The path has other methods; the header `Allow` lists them.")                                \
    X(CONFLICT, 409, "this is not possible in this state",                                         \
      "The sandbox is paused, or is not; the command has ended; the file exists; `error` says "    \
      "which.")                                                                                    \
    X(WRONG_FILE_TYPE, 409, "not a regular file, or not a directory",                              \
      "Contents are those of regular files, lists those of directories.")                          \
    X(SANDBOX_LOST, 410, "the process that held the sandbox ended, and the sandbox with it",       \
      "The sandbox was ended by a restart of the executor; what was in it is gone.")               \
    X(FILE_TOO_LARGE, 413, "the file is too large for one answer: use offset and length",          \
      "More than 24 MiB at once.")                                                                 \
    X(BODY_TOO_LARGE, 413, "the body is too large", "The body is larger than `server.max_body`.")  \
    X(UNSUPPORTED_MEDIA_TYPE, 415, "the body has to be sent with Content-Type: application/json",  \
      "A body came without `Content-Type: application/json`.")                                     \
    X(WRONG_HOST, 421,                                                                             \
      "without API keys only localhost, an address or a name of server.hosts is answered as Host", \
      "A name stood in `Host` that is not in `server.hosts`, and no API keys are set: a web page " \
      "may be behind it.")                                                                         \
    X(RATE_LIMITED, 429, "too many requests from this address or with this API key",               \
      "More than `security.rate_limit_rps`, or than the key may send; `Retry-After` says when to " \
      "come again.")                                                                               \
    X(TOO_MANY_CONNECTIONS, 429, "too many connections from this address",                         \
      "The address has more than `server.max_connections_per_client` connections.")                \
    X(KEY_BUSY, 429, "this API key has as many executions running and waiting as it may have",     \
      "The key has `security.max_executions_per_key`, or in the queue `queue.max_per_key` or "     \
      "`queue.keep_per_key`; "                                                                     \
      "`Retry-After` says when to come again.")                                                    \
    X(SANDBOX_LIMIT, 429, "too many sandboxes or commands",                                        \
      "`sandboxes.max_per_key`, `memory_per_key`, `pids_per_key` or `max_commands` is reached; "   \
      "`error` says which.")                                                                       \
    X(INTERNAL, 500, "something went wrong inside the server", "A defect, or a lack of memory.")   \
    X(SETUP_FAILED, 500, "the jail could not be built",                                            \
      "Nothing of the code ran; `error` says why, `id` is that of the history.")                   \
    X(EXECUTION_LOST, 500, "the process that runs the jails ended, and this run with it",          \
      "The run was ended by a restart of the executor; it can be tried again.")                    \
    X(NOT_SUPPORTED, 501, "this server cannot do that",                                            \
      "Sandboxes are switched off, or this machine has no cgroup that can be frozen.")             \
    X(FILES_UNAVAILABLE, 503, "the files of the sandbox cannot be reached now",                    \
      "The program that serves them was killed in the sandbox, or does not answer.")               \
    X(NO_SPACE, 507, "the sandbox's disk is full", "`limits.disk_mb` is reached.")                 \
    X(QUEUE_FULL, 503, "too many executions run and wait",                                         \
      "`sandbox.max_concurrent` run and `sandbox.max_queued` wait; or `queue.max` of "             \
      "POST /executions.")                                                                         \
    X(QUEUE_TIMEOUT, 503, "no place became free in time",                                          \
      "The request waited for `sandbox.queue_timeout`.")                                           \
    X(OVERLOADED, 503, "too many large requests or answers at this time",                          \
      "The memory for bodies and answers is used up for now.")                                     \
    X(SHUTTING_DOWN, 503, "the server is shutting down",                                           \
      "The server finishes what runs and takes nothing new.")                                      \
    X(HISTORY_FULL, 503, "too many executions wait to be stored in the history",                   \
      "The database takes no rows, and the spool (twice `database.spool_max`) or the memory for "  \
      "rows is full.")                                                                             \
    X(HISTORY_UNAVAILABLE, 503, "the history does not answer",                                     \
      "The database does not answer, or there is none.")                                           \
    X(PORT_CLOSED, 502, "nothing answers at this port of the sandbox",                             \
      "No program in the sandbox listens at the port, or what it answers is not HTTP/1.")

enum http_error {
    ERROR_NONE,
#define X(code, status, text, doc) ERROR_##code,
    HTTP_ERRORS(X)
#undef X
        ERRORS_
};

struct error_row {
    const char *code; /* "INVALID_JSON" */
    unsigned status;
    const char *text, *doc;
};
const struct error_row *error_row(enum http_error error);
