/* SPDX-License-Identifier: MIT */
/* Writing JSON into a struct str. Check the failure flag of the string once, at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str;

/* A writer; `out` is borrowed. Values in an object have a key; values in an array and the outermost
 * value have NULL. The caller opens and closes objects and arrays in pairs. */
struct json {
    struct str *out;
    bool comma; /* a comma is needed before the next value */
};

void json_init(struct json *j, struct str *out);
void json_open_object(struct json *j, const char *key);
void json_close_object(struct json *j);
void json_open_array(struct json *j, const char *key);
void json_close_array(struct json *j);
/* NULL writes null. Bytes that are not UTF-8 become U+FFFD each. */
void json_text(struct json *j, const char *key, const char *text);
void json_bytes(struct json *j, const char *key, const void *bytes, size_t length);
void json_int(struct json *j, const char *key, int64_t value);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_bool(struct json *j, const char *key, bool value);
void json_nothing(struct json *j, const char *key);
/* Nanoseconds since 1970 as "2026-11-16T10:00:00.000Z"; null if they are not above 0. */
void json_time(struct json *j, const char *key, int64_t ns);
