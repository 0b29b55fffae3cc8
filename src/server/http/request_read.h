/* SPDX-License-Identifier: MIT */
/* Reading the body of POST /execute: what request_json.c, request_grants.c and request_input.c share. All
 * give false when something is wrong, with the fault filled. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/http/errors.h"
#include "server/http/request_json.h"

struct request_decoder {
    const struct server_config *config;
    const struct config_list *roots; /* of work_dir */
    const struct runtime *runtime;   /* what language names: it is read first */
    struct execution_request *out;
    struct request_fault *fault;
};

/* ---- Faults ---- */

bool request_refuse(struct request_decoder *d, enum http_error error, const char *field,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
bool request_no_memory(struct request_decoder *d);
bool request_wrong_type(struct request_decoder *d, const char *field, const char *wanted);
/* "files.a.txt", in `path`. */
const char *request_below(char path[REQUEST_FIELD_MAX], const char *parent, const char *name);

/* ---- Kinds of values; what they give is in the request's arena ---- */

/* A string without a NUL in it, of at most max bytes. */
bool request_read_text(struct request_decoder *d, const char *field, const json_t *value,
                       size_t max, const char **ret_text);
/* "text", or {"content": …, "encoding": "base64"}. */
bool request_read_bytes(struct request_decoder *d, const char *field, const json_t *value,
                        size_t max, struct execution_bytes *ret_bytes);
bool request_read_texts(struct request_decoder *d, const char *field, const json_t *value,
                        size_t count_max, size_t max, const char ***ret_texts, size_t *ret_count);
/* How many members an object has. */
bool request_count_object(struct request_decoder *d, const char *field, const json_t *value,
                          size_t count_max, size_t *ret_count);

/* ---- Objects by their table ---- */

typedef bool request_read_field(struct request_decoder *d, const char *field, const json_t *value);

struct request_reader {
    const char *name;
    request_read_field *read; /* NULL: was read before the others */
    bool required;
};
/* null is as good as absent. */
bool request_read_object(struct request_decoder *d, const char *parent, const json_t *object,
                         const struct request_reader *readers, size_t count);

/* ---- Fields ---- */

/* request_grants.c */
request_read_field request_read_timeout, request_read_limits, request_read_permissions,
    request_read_work_dir;
/* request_input.c */
request_read_field request_read_code, request_read_stdin, request_read_args, request_read_env,
    request_read_files, request_read_returns;
