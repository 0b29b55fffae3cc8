/* SPDX-License-Identifier: MIT */
/* Every error of the HTTP interface: one table of codes, what they answer with and what they mean. */
#pragma once

#include <stddef.h>

enum http_error {
    ERROR_NONE,
    ERROR_MALFORMED_REQUEST,
    ERROR_INVALID_JSON,
    ERROR_INVALID_FIELD,
    ERROR_MISSING_FIELD,
    ERROR_UNKNOWN_FIELD,
    ERROR_UNKNOWN_LANGUAGE,
    ERROR_RUNTIME_UNAVAILABLE,
    ERROR_INVALID_ID,
    ERROR_INVALID_QUERY,
    ERROR_UNAUTHORIZED,
    ERROR_ESCAPE_ATTEMPT,
    ERROR_NETWORK_NOT_PERMITTED,
    ERROR_WORK_DIR_NOT_ALLOWED,
    ERROR_NOT_FOUND,
    ERROR_METHOD_NOT_ALLOWED,
    ERROR_BODY_TOO_LARGE,
    ERROR_UNSUPPORTED_MEDIA_TYPE,
    ERROR_WRONG_HOST,
    ERROR_RATE_LIMITED,
    ERROR_KEY_BUSY,
    ERROR_INTERNAL,
    ERROR_SETUP_FAILED,
    ERROR_EXECUTION_LOST,
    ERROR_QUEUE_FULL,
    ERROR_QUEUE_TIMEOUT,
    ERROR_OVERLOADED,
    ERROR_SHUTTING_DOWN,
    ERROR_HISTORY_UNAVAILABLE,
    ERRORS_
};

struct error_row {
    const char *code; /* "INVALID_JSON" */
    unsigned status;  /* of HTTP */
    const char *text; /* a message where there is none more precise */
    const char *doc;
};

const struct error_row *error_row(enum http_error error);
