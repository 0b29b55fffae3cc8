/* SPDX-License-Identifier: MIT */
/* Values of JSON, checked as they are read, with faults that name the field. */
#include "server/http/request_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/str.h"
#include "server/http/request_json.h"

bool request_refuse(struct request_decoder *d, enum http_error error, const char *field,
                    const char *format, ...)
{
    va_list args;
    va_start(args, format);
    d->fault->error = error;
    (void)snprintf(d->fault->field, sizeof d->fault->field, "%s", field);
    (void)vsnprintf(d->fault->message, sizeof d->fault->message, format, args);
    va_end(args);
    return false;
}

/* "files.a.txt" */
const char *request_below(char path[REQUEST_FIELD_MAX], const char *parent, const char *name)
{
    (void)snprintf(path, REQUEST_FIELD_MAX, "%s%s%s", parent, *parent ? "." : "",
                   str_shown(name).text);
    return path;
}

bool request_no_memory(struct request_decoder *d)
{
    (void)request_refuse(d, ERROR_OVERLOADED, "", "out of memory");
    return false;
}

bool request_wrong_type(struct request_decoder *d, const char *field, const char *wanted)
{
    return request_refuse(d, ERROR_INVALID_FIELD, field, "%s has to be %s", field, wanted);
}

/* ---- Kinds of values ---- */

/* A string without a NUL in it, of at most max bytes. */
bool request_read_text(struct request_decoder *d, const char *field, const json_t *value,
                       size_t max, const char **ret_text)
{
    if (!json_is_string(value))
        return request_wrong_type(d, field, "a string");
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    if (strlen(text) != length)
        return request_refuse(d, ERROR_INVALID_FIELD, field, "%s has a NUL in it", field);
    if (length > max)
        return request_refuse(d, ERROR_INVALID_FIELD, field,
                              "%s has %zu bytes, at most %zu are allowed", field, length, max);
    const char *copy = arena_strdup(&d->out->arena, text);
    if (!copy)
        return request_no_memory(d);
    *ret_text = copy;
    return true;
}

static bool keep_bytes(struct request_decoder *d, const char *text, size_t length,
                       struct execution_bytes *ret_bytes)
{
    char *copy = arena_alloc_raw(&d->out->arena, length + 1);
    if (!copy)
        return request_no_memory(d);
    memcpy(copy, text, length);
    copy[length] = '\0';
    *ret_bytes = (struct execution_bytes){.data = copy, .length = length};
    return true;
}

static bool keep_base64(struct request_decoder *d, const char *field, const char *text,
                        size_t length, struct execution_bytes *ret_bytes)
{
    char *bytes = arena_alloc_raw(&d->out->arena, length / 4 * 3 + 1);
    size_t used = 0;
    if (!bytes)
        return request_no_memory(d);
    if (!base64_decode(text, length, bytes, &used))
        return request_refuse(d, ERROR_INVALID_FIELD, field,
                              "%s is not base64 (RFC 4648, padded, on one line)", field);
    bytes[used] = '\0';
    *ret_bytes = (struct execution_bytes){.data = bytes, .length = used};
    return true;
}

static bool read_encoded(struct request_decoder *d, const char *field, const json_t *object,
                         struct execution_bytes *ret_bytes)
{
    const json_t *content = json_object_get(object, "content");
    const json_t *encoding = json_object_get(object, "encoding");
    const char *name = encoding ? json_string_value(encoding) : "utf-8";
    char path[REQUEST_FIELD_MAX];
    if (json_object_size(object) != (encoding ? 2 : 1) || !json_is_string(content))
        return request_refuse(
            d, ERROR_INVALID_FIELD, field,
            "%s has to be {\"content\": string, \"encoding\": \"base64\" or \"utf-8\"}", field);
    const char *text = json_string_value(content);
    size_t length = json_string_length(content);
    if (str_equal(name, "base64"))
        return keep_base64(d, request_below(path, field, "content"), text, length, ret_bytes);
    if (str_equal(name, "utf-8"))
        return keep_bytes(d, text, length, ret_bytes);
    request_below(path, field, "encoding");
    return request_refuse(d, ERROR_INVALID_FIELD, path, "%s has to be \"base64\" or \"utf-8\"",
                          path);
}

/* "text", or {"content": …, "encoding": "base64"}. */
bool request_read_bytes(struct request_decoder *d, const char *field, const json_t *value,
                        size_t max, struct execution_bytes *ret_bytes)
{
    struct execution_bytes bytes = {0};
    bool read = false;
    if (json_is_object(value))
        read = read_encoded(d, field, value, &bytes);
    else if (json_is_string(value))
        read = keep_bytes(d, json_string_value(value), json_string_length(value), &bytes);
    else
        return request_wrong_type(d, field, "a string, or an object with content and encoding");
    if (!read)
        return false;
    if (bytes.length > max)
        return request_refuse(d, ERROR_INVALID_FIELD, field,
                              "%s has %zu bytes, at most %zu are allowed", field, bytes.length,
                              max);
    *ret_bytes = bytes;
    return true;
}

bool request_read_texts(struct request_decoder *d, const char *field, const json_t *value,
                        size_t count_max, size_t max, const char ***ret_texts, size_t *ret_count)
{
    if (!json_is_array(value))
        return request_wrong_type(d, field, "an array of strings");
    size_t count = json_array_size(value);
    if (count > count_max)
        return request_refuse(d, ERROR_INVALID_FIELD, field,
                              "%s has %zu entries, at most %zu are allowed", field, count,
                              count_max);
    const char **texts = arena_alloc(&d->out->arena, (count + 1) * sizeof *texts);
    if (!texts)
        return request_no_memory(d);
    for (size_t i = 0; i < count; i++) {
        char name[24], path[REQUEST_FIELD_MAX];
        (void)snprintf(name, sizeof name, "%zu", i);
        if (!request_read_text(d, request_below(path, field, name), json_array_get(value, i), max,
                               &texts[i]))
            return false;
    }
    *ret_texts = texts;
    *ret_count = count;
    return true;
}

bool request_count_object(struct request_decoder *d, const char *field, const json_t *value,
                          size_t count_max, size_t *ret_count)
{
    if (!json_is_object(value))
        return request_wrong_type(d, field, "an object");
    *ret_count = json_object_size(value);
    if (*ret_count > count_max)
        return request_refuse(d, ERROR_INVALID_FIELD, field,
                              "%s has %zu entries, at most %zu are allowed", field, *ret_count,
                              count_max);
    return true;
}

/* ---- Objects by their table ---- */

static bool unknown_field(struct request_decoder *d, const char *parent, const char *name,
                          const struct request_reader *readers, size_t count)
{
    char path[REQUEST_FIELD_MAX];
    autostr struct str known = {0};
    for (size_t i = 0; i < count; i++)
        str_appendf(&known, "%s%s", i > 0 ? ", " : "", readers[i].name);
    request_below(path, parent, name);
    struct nearest nearest;
    nearest_begin(&nearest, name);
    nearest_offer_words(&nearest, known.data ? known.data : "");
    if (nearest.best[0])
        return request_refuse(d, ERROR_UNKNOWN_FIELD, path,
                              "unknown field '%s'. Did you mean '%s'?", path, nearest.best);
    return request_refuse(d, ERROR_UNKNOWN_FIELD, path, "unknown field '%s'; allowed are %s", path,
                          known.data ? known.data : "none");
}

/* null is as good as absent. */
bool request_read_object(struct request_decoder *d, const char *parent, const json_t *object,
                         const struct request_reader *readers, size_t count)
{
    const char *key;
    const json_t *value;
    json_t *iterated = (json_t *)(uintptr_t)object; /* the macro takes no const */
    json_object_foreach(iterated, key, value)
    {
        const struct request_reader *reader = readers;
        while (reader < readers + count && strcmp(reader->name, key) != 0)
            reader++;
        if (reader == readers + count)
            return unknown_field(d, parent, key, readers, count);
        char path[REQUEST_FIELD_MAX];
        request_below(path, parent, key);
        if (reader->read && !json_is_null(value) && !reader->read(d, path, value))
            return false;
    }
    for (size_t i = 0; i < count; i++) {
        value = json_object_get(object, readers[i].name);
        if (readers[i].required && (!value || json_is_null(value)))
            return request_refuse(d, ERROR_MISSING_FIELD, readers[i].name, "%s is missing",
                                  readers[i].name);
    }
    return true;
}
