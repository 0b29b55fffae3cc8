/* SPDX-License-Identifier: MIT */
/* What came of an execution, as the answer of POST /execute. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct execution_result;
struct json;

/* The whole object; without `output` and `stderr` where they were streamed already, of which
 * `dropped` says whether the reader was too slow for all of them. */
void result_json_write(struct json *j, const struct execution_result *result, bool streamed,
                       bool dropped);

/* One row for each member, for the documentation. */
struct result_field {
    const char *name;
    const char *type;
    const char *doc;
};
extern const struct result_field result_fields[];
extern const size_t result_field_count;
