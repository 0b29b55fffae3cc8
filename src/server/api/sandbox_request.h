/* SPDX-License-Identifier: MIT */
/* Parses the JSON bodies of the requests below /sandboxes, which are untrusted. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/http/request.h"
#include "server/sandbox.h"

struct sandbox_reader;

/* One row for each field: the operations that have it, how it is read, and its documentation. */
struct sandbox_field {
    const char *name;    /* "limits.memory_mb" */
    unsigned operations; /* bits of enum sandbox_operation */
    bool required;
    bool (*read)(struct sandbox_reader *reader, const struct sandbox_field *field,
                 const json_t *value);
    const char *type, *allowed, *doc;
};
extern const struct sandbox_field sandbox_fields[];
extern const size_t sandbox_field_count;

/* Reads the fields of request->operation into the request. On failure returns false with the fault
 * filled in. The caller releases the request in any case. */
bool sandbox_request_read(const char *text, size_t length, struct sandbox_request *request,
                          struct request_fault *fault);
