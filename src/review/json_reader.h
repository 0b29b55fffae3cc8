/* SPDX-License-Identifier: MIT */
/* Reads JSON in pieces, as they arrive from a pipe, and reports each value. It keeps one text at a
 * time, so memory does not grow with the document, and it does not recurse. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define JSON_DEPTH_MAX 32
#define JSON_TEXT_MAX ((size_t)1 << 20) /* bytes of one string or number */

enum json_event {
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

/* Called for each event. `text` belongs to a key, a string or a number: it is terminated, and valid
 * during the call. Returns false to stop. */
typedef bool (*json_visit)(void *context, enum json_event event, const char *text, size_t length);

struct json_reader {
    json_visit visit;
    void *context;
    struct str text;
    uint32_t arrays; /* one bit for each open value: it is an array */
    unsigned depth;
    int state;
    bool is_key;
    bool failed;
    unsigned code, digits; /* of \uXXXX */
    unsigned high;         /* the first half of a surrogate pair, or 0 */
};

void json_reader_init(struct json_reader *reader, json_visit visit, void *context);
void json_reader_done(struct json_reader *reader);
/* Returns false if the bytes are not JSON, a limit is exceeded or the visitor has stopped; then
 * nothing more is reported. */
bool json_reader_feed(struct json_reader *reader, const char *bytes, size_t length);
/* Whether a complete value was read. */
bool json_reader_complete(const struct json_reader *reader);
