/* SPDX-License-Identifier: MIT */
/* Parses the body of POST /execute, untrusted JSON, into a struct execution_request. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/execution.h"
#include "server/http/route.h"

struct config_list;
struct request_decoder;
struct runtime;
struct server_config;

/* A scan without allocation refuses JSON that is nested deeper or has more values than this, before
 * it is parsed. */
#define REQUEST_DEPTH_MAX 8
#define REQUEST_VALUES_MAX 8192

#define REQUEST_NO_BODY "the request has no body: send a JSON object"

#define REQUEST_FIELD_MAX 96
#define REQUEST_MESSAGE_MAX 512

/* An error: the code, the field ("limits.memory_mb", may be "") and a sentence. */
struct request_fault {
    enum http_error error;
    char field[REQUEST_FIELD_MAX];
    char message[REQUEST_MESSAGE_MAX];
};

/* `roots` are the directories that may contain work_dir. The caller fills in id, request_id,
 * client, domain, stream and events; *ret_runtime is the runtime that `language` names. On failure
 * returns false with the fault filled in, and there is nothing to release. */
bool request_read(const char *text, size_t length, const struct server_config *config,
                  const struct config_list *roots, struct execution_request *ret,
                  const struct runtime **ret_runtime, struct request_fault *fault);

enum request_shape { REQUEST_SHAPE_OK, REQUEST_TOO_DEEP, REQUEST_TOO_MANY };
/* The scan; it does not check that the text is JSON. */
enum request_shape request_shape(const char *text, size_t length, size_t depth_max,
                                 size_t values_max);

/* One row for each field: how it is read, and its documentation. */
struct request_field {
    const char *name; /* "limits.memory_mb" */
    bool required;
    bool (*read)(struct request_decoder *d, const struct request_field *field, const json_t *value);
    const char *type; /* the JSON type */
    const char *allowed, *doc;
};
extern const struct request_field request_fields[];
extern const size_t request_field_count;
