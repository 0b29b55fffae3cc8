/* SPDX-License-Identifier: MIT */
/* Every error of the HTTP interface. */
#include "server/http/errors.h"

static const struct error_row rows[ERRORS_] = {
    [ERROR_NONE] = {"OK", 200, "", ""},
    [ERROR_MALFORMED_REQUEST] = {"MALFORMED_REQUEST", 400,
                                 "the head is malformed, or it cannot be told how long the body is",
                                 "A name or value of the head has signs it cannot have, `Host` or "
                                 "`Content-Length` is there "
                                 "twice, or `Transfer-Encoding` is anything but `chunked` alone."},
    [ERROR_INVALID_JSON] = {"INVALID_JSON", 400, "the body is not a JSON object",
                            "The body is not JSON, has a key twice, or is nested too deeply."},
    [ERROR_INVALID_FIELD] = {"INVALID_FIELD", 400, "a field has a wrong value",
                             "A field has a wrong type or is out of range; `field` names it."},
    [ERROR_MISSING_FIELD] = {"MISSING_FIELD", 400, "a field is missing",
                             "A required field is missing; `field` names it."},
    [ERROR_UNKNOWN_FIELD] = {"UNKNOWN_FIELD", 400, "unknown field",
                             "A field is not one of those below; `field` names it."},
    [ERROR_UNKNOWN_LANGUAGE] = {"UNKNOWN_LANGUAGE", 400, "unsupported language",
                                "`language` is not in `GET /runtimes`, or is switched off."},
    [ERROR_RUNTIME_UNAVAILABLE] = {"RUNTIME_UNAVAILABLE", 400,
                                   "this server cannot run the language",
                                   "What runs the language is not installed; `error` says what is "
                                   "missing."},
    [ERROR_INVALID_ID] = {"INVALID_ID", 400, "the id is not a UUID",
                          "The id in the path is not a UUID."},
    [ERROR_INVALID_QUERY] = {"INVALID_QUERY", 400, "a query parameter has a wrong value",
                             "A query parameter is unknown or has a wrong value."},
    [ERROR_UNAUTHORIZED] = {"UNAUTHORIZED", 401,
                            "an API key is needed: send it as X-API-Key or Authorization: Bearer",
                            "No API key, or one that is not in `security.allowed_keys`."},
    [ERROR_ESCAPE_ATTEMPT] = {"ESCAPE_ATTEMPT", 403, "the code looks like an attempt to escape",
                              "The detector found a pattern of severity `critical`."},
    [ERROR_NETWORK_NOT_PERMITTED] =
        {"NETWORK_NOT_PERMITTED", 403, "the operator does not permit this network",
         "The network was asked for without a list of names, or with one too wide, and "
         "`sandbox.allow_network` is off."},
    [ERROR_WORK_DIR_NOT_ALLOWED] = {"WORK_DIR_NOT_ALLOWED", 403, "work_dir is not allowed",
                                    "`work_dir` is not below `sandbox.allowed_workdir_roots`, or, "
                                    "where the key has its own, `workdir_roots`."},
    [ERROR_NOT_FOUND] = {"NOT_FOUND", 404, "there is nothing here",
                         "No such path, or no execution with this id."},
    [ERROR_METHOD_NOT_ALLOWED] = {"METHOD_NOT_ALLOWED", 405, "this method is not for this path",
                                  "The path has other methods; the header `Allow` lists them."},
    [ERROR_BODY_TOO_LARGE] = {"BODY_TOO_LARGE", 413, "the body is too large",
                              "The body is larger than `server.max_body`."},
    [ERROR_UNSUPPORTED_MEDIA_TYPE] = {"UNSUPPORTED_MEDIA_TYPE", 415,
                                      "the body has to be sent with Content-Type: application/json",
                                      "A body came without `Content-Type: application/json`."},
    [ERROR_WRONG_HOST] = {"WRONG_HOST", 421,
                          "without API keys only localhost or an address is answered as Host",
                          "A name stood in `Host` that is not this machine's loopback, and no API "
                          "keys are set: a web page may be behind it."},
    [ERROR_RATE_LIMITED] = {"RATE_LIMITED", 429, "too many requests from this address",
                            "More than `security.rate_limit_rps`; `Retry-After` says when to come "
                            "again."},
    [ERROR_KEY_BUSY] = {"KEY_BUSY", 429,
                        "this API key has as many executions running and waiting as it may have",
                        "The key has `security.max_executions_per_key`; `Retry-After` says when to "
                        "come again."},
    [ERROR_INTERNAL] = {"INTERNAL", 500, "something went wrong inside the server",
                        "A defect, or a lack of memory."},
    [ERROR_SETUP_FAILED] = {"SETUP_FAILED", 500, "the jail could not be built",
                            "Nothing of the code ran; `error` says why, `id` is that of the "
                            "history."},
    [ERROR_EXECUTION_LOST] =
        {"EXECUTION_LOST", 500, "the process that runs the jails ended, and this run with it",
         "The run was ended by a restart of the executor; it can be tried again."},
    [ERROR_QUEUE_FULL] = {"QUEUE_FULL", 503, "as many executions run and wait as may",
                          "`sandbox.max_concurrent` run and `sandbox.max_queued` wait."},
    [ERROR_QUEUE_TIMEOUT] = {"QUEUE_TIMEOUT", 503, "no place became free in time",
                             "The request waited for `sandbox.queue_timeout`."},
    [ERROR_OVERLOADED] = {"OVERLOADED", 503, "too many large requests or answers at this time",
                          "The memory for bodies and answers is used up for now."},
    [ERROR_SHUTTING_DOWN] = {"SHUTTING_DOWN", 503, "the server is shutting down",
                             "The server finishes what runs and takes nothing new."},
    [ERROR_HISTORY_UNAVAILABLE] = {"HISTORY_UNAVAILABLE", 503, "the history does not answer",
                                   "The database does not answer, or there is none."},
};

const struct error_row *error_row(enum http_error error)
{
    return &rows[(unsigned)error < ERRORS_ ? error : ERROR_INTERNAL];
}
