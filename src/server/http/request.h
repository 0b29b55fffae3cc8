/* SPDX-License-Identifier: MIT */
/* The body of POST /execute: JSON from a stranger into a struct execution_request. */
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

/* A scan that allocates nothing refuses JSON that is nested deeper or has more values than this, before
 * it is parsed. */
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

/* `roots` are the directories below which work_dir may lie. id, request_id, client, domain, stream and
 * events are left to the caller; `ret_runtime` is what language names. False, with the fault filled and
 * nothing to release, if something is wrong. */
bool request_read(const char *text, size_t length, const struct server_config *config,
                  const struct config_list *roots, struct execution_request *ret,
                  const struct runtime **ret_runtime, struct request_fault *fault);

enum request_shape { REQUEST_SHAPE_OK, REQUEST_TOO_DEEP, REQUEST_TOO_MANY };
/* The scan: says nothing about whether it is JSON. */
enum request_shape request_shape(const char *text, size_t length, size_t depth_max,
                                 size_t values_max);

/* One row for each field: how it is read, and its documentation. */
struct request_field {
    const char *name; /* "limits.memory_mb" */
    bool required;
    bool (*read)(struct request_decoder *d, const struct request_field *field, const json_t *value);
    const char *type; /* of JSON */
    const char *allowed, *doc;
};
extern const struct request_field request_fields[];
extern const size_t request_field_count;
