/* SPDX-License-Identifier: MIT */
/* Parses the JSON bodies of the requests below /sandboxes, which are untrusted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/http/fields.h"
#include "server/sandbox.h"

/* The fields of all operations; field.operations has bits of enum sandbox_operation. */
extern const struct field sandbox_fields[];
extern const size_t sandbox_field_count;

/* Reads the fields of request->operation into the request. On failure returns false with the fault
 * filled in. The caller releases the request in any case. */
bool sandbox_request_read(const char *text, size_t length, struct sandbox_request *request,
                          struct request_fault *fault);
