/* SPDX-License-Identifier: MIT */
/* Parses lines of interpreters. */
#include "server/api/run_line.h"

#include <string.h>

#include "base/str.h"
#include "server/http/request.h"

#define DEPTH_MAX 64
#define VALUES_MAX 131072

static const char *text_of(const json_t *root, const char *name)
{
    const json_t *value = json_object_get(root, name);
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value)
               ? json_string_value(value)
               : NULL;
}

static bool is_json(const char *type)
{
    return strcmp(type, "application/json") == 0 || str_ends_with(type, "+json");
}

/* Forms that are neither text nor JSON are removed. */
static bool check_data(json_t *data)
{
    const char *type;
    json_t *value;
    void *next;
    if (!json_is_object(data) || json_object_size(data) > RUN_FORMS_MAX)
        return false;
    json_object_foreach_safe(data, next, type, value) if (!json_is_string(value) && !is_json(type))(
        void) json_object_del(data, type);
    return true;
}

static bool read_members(struct run_line *line)
{
    const char *type = text_of(line->root, "type");
    line->is_error = str_equal(type, "error");
    if (line->is_error) {
        line->name = text_of(line->root, "name");
        line->value = text_of(line->root, "value");
        line->traceback = text_of(line->root, "traceback");
        return line->name && line->value && line->traceback;
    }
    line->main = json_is_true(json_object_get(line->root, "main"));
    line->data = json_object_get(line->root, "data");
    return str_equal(type, "result") && check_data(line->data);
}

bool run_line_read(const char *line, size_t length, struct run_line *ret)
{
    struct run_line found = {0};
    if (request_shape(line, length, DEPTH_MAX, VALUES_MAX) != REQUEST_SHAPE_OK)
        return false;
    found.root = json_loadb(line, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (!found.root || !read_members(&found)) {
        run_line_done(&found);
        return false;
    }
    *ret = found;
    return true;
}

bool run_line_next(struct execution_bytes *lines, struct run_line *ret)
{
    for (const char *end; (end = memchr(lines->data, '\n', lines->length));) {
        const char *line = lines->data;
        size_t length = (size_t)(end - line);
        *lines = (struct execution_bytes){end + 1, lines->length - length - 1};
        if (run_line_read(line, length, ret))
            return true;
    }
    return false;
}

void run_line_done(struct run_line *line)
{
    json_decref(line->root);
    *line = (struct run_line){0};
}
