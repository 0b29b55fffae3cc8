/* SPDX-License-Identifier: MIT */
/* Writes the result of an execution as the answer of POST /execute. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct execution_result;
struct json;

/* Writes the whole object. If `streamed`, leaves out `output` and `stderr`, which were sent
 * already; `dropped` says that the client read too slowly and parts were lost. */
void result_json_write(struct json *j, const struct execution_result *result, bool streamed,
                       bool dropped);

/* Writes `combined`, `stage` and `compile` as members, if the execution has them. */
void result_json_stages(struct json *j, const struct execution_result *result, bool streamed);

/* Writes the returned files as a member, if there are any. */
void result_json_files(struct json *j, const char *key, const struct execution_result *result);

/* One row for each member, for the documentation. */
struct result_field {
    const char *name;
    const char *type;
    const char *doc;
};
extern const struct result_field result_fields[];
extern const size_t result_field_count;
