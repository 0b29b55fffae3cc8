/* SPDX-License-Identifier: MIT */
/* The body of POST /execute: JSON from anybody into a struct execution_request. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/execution.h"
#include "server/http/errors.h"

struct config_list;
struct runtime;
struct server_config;

/* What JSON may look like before it is read: a bomb is refused by a scan that allocates nothing. */
#define REQUEST_DEPTH_MAX 8
#define REQUEST_VALUES_MAX 8192

#define REQUEST_FIELD_MAX 96
#define REQUEST_MESSAGE_MAX 512

/* What is wrong: the code, the field ("limits.memory_mb", may be "") and a sentence. */
struct request_fault {
    enum http_error error;
    char field[REQUEST_FIELD_MAX];
    char message[REQUEST_MESSAGE_MAX];
};

/* `roots` are the directories below which work_dir may lie. `ret` is zeroed or new; id, request_id, client, domain, stream and events are left to the caller.
 * `ret_runtime` is what language names. False, with the fault filled and nothing to release, if
 * something is wrong. */
bool request_json_decode(const char *text, size_t length, const struct server_config *config,
                         const struct config_list *roots, struct execution_request *ret,
                         const struct runtime **ret_runtime, struct request_fault *fault);

/* One row for each field, for the documentation. */
struct request_field {
    const char *name; /* "limits.memory_mb" */
    const char *type; /* of JSON */
    bool required;
    const char *allowed;
    const char *doc;
};
extern const struct request_field request_fields[];
extern const size_t request_field_count;
