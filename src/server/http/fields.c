/* SPDX-License-Identifier: MIT */
/* Reads the fields of a JSON object: a function for each kind, and the whole body. */
#include "server/http/fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/str.h"

/* ---- Errors: each returns false with the fault filled in ---- */

bool fields_refuse(struct field_reader *reader, enum http_error error, const char *name,
                   const char *format, ...)
{
    struct request_fault *fault = reader->fault;
    va_list args;
    va_start(args, format);
    fault->error = error;
    (void)snprintf(fault->field, sizeof fault->field, "%s",
                   reader->field && !reader->items ? reader->field->name : name);
    (void)vsnprintf(fault->message, sizeof fault->message, format, args);
    va_end(args);
    return false;
}

bool fields_no_memory(struct field_reader *reader)
{
    reader->field = NULL;
    return fields_refuse(reader, ERROR_OVERLOADED, "", "out of memory");
}

bool fields_wrong_type(struct field_reader *reader, const char *name, const char *wanted)
{
    return fields_refuse(reader, ERROR_INVALID_FIELD, name, "%s has to be %s", name, wanted);
}

static bool too_many(struct field_reader *reader, const char *name, size_t count, const char *unit,
                     size_t most)
{
    return fields_refuse(reader, ERROR_INVALID_FIELD, name,
                         "%s has %zu %s, at most %zu are allowed", name, count, unit, most);
}

const char *fields_below(char path[REQUEST_FIELD_MAX], const char *parent, const char *name)
{
    (void)snprintf(path, REQUEST_FIELD_MAX, "%s%s%s", parent, *parent ? "." : "",
                   str_shown(name).text);
    return path;
}

/* ---- Kinds of values, copied to the arena ---- */

bool fields_text(struct field_reader *reader, const char *name, const json_t *value, size_t most,
                 const char **ret_text)
{
    if (!json_is_string(value))
        return fields_wrong_type(reader, name, "a string");
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    if (strlen(text) != length)
        return fields_refuse(reader, ERROR_INVALID_FIELD, name, "%s has a NUL in it", name);
    if (length > most)
        return too_many(reader, name, length, "bytes", most);
    *ret_text = arena_strdup(reader->arena, text);
    return *ret_text || fields_no_memory(reader);
}

bool fields_bytes(struct field_reader *reader, const char *name, const json_t *value, size_t most,
                  struct execution_bytes *ret_bytes)
{
    const json_t *encoding = json_object_get(value, "encoding");
    const json_t *content = json_is_object(value) ? json_object_get(value, "content") : value;
    const char *form = encoding ? json_string_value(encoding) : "utf-8";
    char path[REQUEST_FIELD_MAX];
    if (!json_is_object(value) && !json_is_string(value))
        return fields_wrong_type(reader, name, "a string, or an object with content and encoding");
    if (!json_is_string(content) ||
        (content != value && json_object_size(value) != (encoding ? 2 : 1)))
        return fields_wrong_type(reader, name,
                                 "{\"content\": string, \"encoding\": \"base64\" or \"utf-8\"}");
    if (!str_equal(form, "base64") && !str_equal(form, "utf-8"))
        return fields_wrong_type(reader, fields_below(path, name, "encoding"),
                                 "\"base64\" or \"utf-8\"");
    size_t length = json_string_length(content);
    char *bytes = arena_copy(reader->arena, json_string_value(content), length + 1);
    if (!bytes)
        return fields_no_memory(reader);
    if (str_equal(form, "base64") && !base64_decode(bytes, length, bytes, &length))
        return fields_wrong_type(reader, fields_below(path, name, "content"),
                                 "base64 (RFC 4648, padded, on one line)");
    bytes[length] = '\0';
    if (length > most)
        return too_many(reader, name, length, "bytes", most);
    *ret_bytes = (struct execution_bytes){.data = bytes, .length = length};
    return true;
}

bool fields_duration(struct field_reader *reader, const char *name, const json_t *value,
                     uint64_t *ret_ms)
{
    char text[64];
    struct brig_error error = {0};
    if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
        (void)snprintf(text, sizeof text, "%s", json_string_value(value));
    else if (json_is_number(value) && json_number_value(value) < (double)PARSE_DURATION_MS_MAX)
        (void)snprintf(text, sizeof text, "%.3f", json_number_value(value));
    else
        return fields_wrong_type(reader, name,
                                 "a duration like \"10s\" or \"500ms\", or a number of seconds");
    return parse_duration(text, 0, ret_ms, &error) == 0 ||
           fields_refuse(reader, ERROR_INVALID_FIELD, name, "%s: %s", name, error.message);
}

bool fields_number(struct field_reader *reader, const char *name, const json_t *value,
                   uint64_t most, uint64_t *ret_number)
{
    if (!json_is_integer(value) || json_integer_value(value) <= 0 ||
        (uint64_t)json_integer_value(value) > most)
        return fields_refuse(reader, ERROR_INVALID_FIELD, name,
                             "%s has to be a whole number, 1 to %llu", name,
                             (unsigned long long)most);
    *ret_number = (uint64_t)json_integer_value(value);
    return true;
}

bool fields_members(struct field_reader *reader, const struct field *field, const json_t *value,
                    size_t size,
                    bool (*read)(struct field_reader *reader, const char *path, const char *name,
                                 const json_t *value, void *ret_item))
{
    json_t *object = (json_t *)(uintptr_t)value; /* jansson's iterators do not accept const */
    size_t count = json_object_size(value);
    if (!json_is_object(value))
        return fields_wrong_type(reader, field->name, "an object");
    if (count > field->count_most)
        return too_many(reader, field->name, count, "entries", field->count_most);
    char *item = arena_alloc(reader->arena, (count + 1) * size);
    if (!item)
        return fields_no_memory(reader);
    memcpy((char *)reader->out + field->at, &item, sizeof item);
    memcpy((char *)reader->out + field->count_at, &count, sizeof count);
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        char path[REQUEST_FIELD_MAX];
        const char *name = json_object_iter_key(i);
        if (!read(reader, fields_below(path, field->name, name), name, json_object_iter_value(i),
                  item))
            return false;
        item += size;
    }
    return true;
}

/* ---- Kinds of fields ---- */

static void *place_of(const struct field_reader *reader, size_t at)
{
    return (char *)reader->out + at;
}

bool field_text(struct field_reader *reader, const struct field *field, const json_t *value)
{
    return fields_text(reader, field->name, value, field->most, place_of(reader, field->at));
}

bool field_bytes(struct field_reader *reader, const struct field *field, const json_t *value)
{
    return fields_bytes(reader, field->name, value, field->most, place_of(reader, field->at));
}

bool field_duration(struct field_reader *reader, const struct field *field, const json_t *value)
{
    return fields_duration(reader, field->name, value, place_of(reader, field->at));
}

bool field_number(struct field_reader *reader, const struct field *field, const json_t *value)
{
    return fields_number(reader, field->name, value, field->most, place_of(reader, field->at));
}

bool field_flag(struct field_reader *reader, const struct field *field, const json_t *value)
{
    bool *flag = place_of(reader, field->at);
    if (!json_is_boolean(value))
        return fields_wrong_type(reader, field->name, "true or false");
    *flag = json_is_true(value);
    return true;
}

bool field_texts(struct field_reader *reader, const struct field *field, const json_t *value)
{
    const char ***ret_texts = place_of(reader, field->at);
    size_t *ret_count = place_of(reader, field->count_at), count = json_array_size(value);
    if (!json_is_array(value))
        return fields_wrong_type(reader, field->name, "an array of strings");
    if (count > field->count_most)
        return too_many(reader, field->name, count, "entries", field->count_most);
    const char **texts = arena_alloc(reader->arena, (count + 1) * sizeof *texts);
    if (!texts)
        return fields_no_memory(reader);
    for (size_t i = 0; i < count; i++) {
        char path[REQUEST_FIELD_MAX];
        if (!fields_text(reader, fields_below(path, field->name, str_number(i).text),
                         json_array_get(value, i), field->most, &texts[i]))
            return false;
    }
    *ret_texts = texts;
    *ret_count = count;
    return true;
}

static bool read_pair(struct field_reader *reader, const char *path, const char *name,
                      const json_t *value, void *ret_item)
{
    struct execution_pair *pair = ret_item;
    if (strlen(name) > EXECUTION_NAME_MAX)
        return fields_refuse(reader, ERROR_INVALID_FIELD, path,
                             "the name '%s' has %zu bytes, at most %d are allowed",
                             str_shown(name).text, strlen(name), EXECUTION_NAME_MAX);
    pair->name = arena_strdup(reader->arena, name);
    return (pair->name || fields_no_memory(reader)) &&
           fields_text(reader, path, value, reader->field->most, &pair->value);
}

bool field_pairs(struct field_reader *reader, const struct field *field, const json_t *value)
{
    return fields_members(reader, field, value, sizeof(struct execution_pair), read_pair);
}

/* ---- The whole body ---- */

/* Returns the index of the closing quote, or the length. */
static size_t skip_string(const char *text, size_t length, size_t at)
{
    for (at++; at < length && text[at] != '"'; at++)
        if (text[at] == '\\')
            at++;
    return at;
}

enum request_shape request_shape(const char *text, size_t length, size_t depth_max,
                                 size_t values_max)
{
    size_t depth = 0, values = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '"')
            i = skip_string(text, length, i);
        depth += c == '{' || c == '[';
        depth -= (c == '}' || c == ']') && depth > 0;
        values += c == '{' || c == '[' || c == ',' || c == ':';
        if (depth > depth_max)
            return REQUEST_TOO_DEEP;
        if (values > values_max)
            return REQUEST_TOO_MANY;
    }
    return REQUEST_SHAPE_OK;
}

json_t *fields_parse(struct field_reader *reader, const char *text, size_t length)
{
    json_error_t error;
    json_auto_t *root = NULL;
    enum request_shape shape = request_shape(text, length, REQUEST_DEPTH_MAX, REQUEST_VALUES_MAX);
    if (shape == REQUEST_SHAPE_OK)
        root = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (json_is_object(root))
        return json_incref(root);
    if (length == 0)
        (void)fields_refuse(reader, ERROR_INVALID_JSON, "", REQUEST_NO_BODY);
    else if (shape == REQUEST_TOO_DEEP)
        (void)fields_refuse(reader, ERROR_INVALID_JSON, "",
                            "the JSON is nested deeper than %d levels", REQUEST_DEPTH_MAX);
    else if (shape == REQUEST_TOO_MANY)
        (void)fields_refuse(reader, ERROR_INVALID_JSON, "", "the JSON has more than %d values",
                            REQUEST_VALUES_MAX);
    else if (!root)
        (void)fields_refuse(reader, ERROR_INVALID_JSON, "", "line %d, column %d: %s", error.line,
                            error.column, error.text);
    else
        (void)fields_refuse(reader, ERROR_INVALID_JSON, "", "the body has to be a JSON object");
    return NULL;
}

/* Returns NULL if the field is absent or null. */
static const json_t *find(const json_t *root, const char *path)
{
    while (*path && root) {
        char part[REQUEST_FIELD_MAX];
        size_t length = strcspn(path, ".");
        (void)snprintf(part, sizeof part, "%.*s", (int)length, path);
        root = json_object_get(root, part);
        path += length + (path[length] == '.');
    }
    return json_is_null(root) ? NULL : root;
}

static bool has_field(const struct field_reader *reader, size_t i)
{
    return reader->fields[i].operations & reader->operations;
}

/* A field, or a section with one. */
static bool is_known(const struct field_reader *reader, const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < reader->count; i++) {
        const char *name = reader->fields[i].name;
        if (has_field(reader, i) && str_starts_with(name, path) &&
            (!name[length] || name[length] == '.'))
            return true;
    }
    return false;
}

/* What people write where the field has another name. */
static const char *other_name(const struct field_reader *reader, const char *name)
{
    static const char *const names[][2] = {
        {"command", "cmd"}, {"envs", "env"}, {"template", "language"}};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(names[i][0], name) == 0 && is_known(reader, names[i][1]))
            return names[i][1];
    return name;
}

static bool unknown_field(struct field_reader *reader, const char *section, const char *name)
{
    char path[REQUEST_FIELD_MAX], told[REQUEST_FIELD_MAX];
    autostr struct str known = {0};
    struct nearest nearest;
    const char *before = "", *dot = *section ? "." : "";
    size_t skip = strlen(section) + strlen(dot);
    nearest_begin(&nearest, other_name(reader, name));
    for (size_t i = 0; i < reader->count; i++) {
        const char *whole = reader->fields[i].name, *part = whole + skip;
        if (!has_field(reader, i) || !str_starts_with(whole, section) ||
            (*section && whole[strlen(section)] != '.'))
            continue;
        nearest_offer_section(&nearest, part, &before, &known);
    }
    fields_below(path, section, name);
    fields_below(told, reader->items ? section : "", name);
    if (nearest.best[0])
        return fields_refuse(reader, ERROR_UNKNOWN_FIELD, told,
                             "unknown field '%s'. Did you mean '%s%s%s'?", path, section, dot,
                             nearest.best);
    return fields_refuse(reader, ERROR_UNKNOWN_FIELD, told, "unknown field '%s'; allowed are %s",
                         path, known.data ? known.data : "none");
}

static bool check_names(struct field_reader *reader, const json_t *root)
{
    for (const char *const *section = reader->sections; *section; section++) {
        json_t *object = (json_t *)(uintptr_t)find(root, *section);
        if (object && !json_is_object(object))
            return fields_wrong_type(reader, *section, "an object");
        for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
            char path[REQUEST_FIELD_MAX];
            const char *name = json_object_iter_key(at);
            if (strchr(name, '.') || !is_known(reader, fields_below(path, *section, name)))
                return unknown_field(reader, *section, name);
        }
    }
    return true;
}

bool fields_read(struct field_reader *reader, const json_t *root)
{
    if (!check_names(reader, root))
        return false;
    for (size_t i = 0; i < reader->count; i++) {
        const struct field *field = &reader->fields[i];
        const json_t *value = has_field(reader, i) ? find(root, field->name) : NULL;
        reader->field = field;
        if (!value && has_field(reader, i) && field->required)
            return fields_refuse(reader, ERROR_MISSING_FIELD, field->name,
                                 "the field '%s' is missing", field->name);
        if (value && !field->read(reader, field, value))
            return false;
    }
    reader->field = NULL;
    return true;
}
