/* SPDX-License-Identifier: MIT */
/* What a request brings along: code, input, arguments, variables, files. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/config.h"
#include "server/environment.h"
#include "server/http/request_json.h"
#include "server/http/request_read.h"

bool request_read_code(struct request_decoder *d, const char *field, const json_t *value)
{
    if (!json_is_string(value))
        return request_wrong_type(d, field, "a string");
    if (!request_read_bytes(d, field, value, EXECUTION_CODE_MAX, &d->out->code))
        return false;
    return d->out->code.length > 0 ||
           request_refuse(d, ERROR_INVALID_FIELD, field, "code is empty");
}

bool request_read_stdin(struct request_decoder *d, const char *field, const json_t *value)
{
    return request_read_bytes(d, field, value, EXECUTION_STDIN_MAX, &d->out->stdin_bytes);
}

bool request_read_args(struct request_decoder *d, const char *field, const json_t *value)
{
    return request_read_texts(d, field, value, EXECUTION_ARGS_MAX, EXECUTION_VALUE_MAX,
                              &d->out->args, &d->out->arg_count);
}

static bool read_variable(struct request_decoder *d, const char *parent, const char *name,
                          const json_t *value, struct execution_pair *ret_pair)
{
    char path[REQUEST_FIELD_MAX];
    request_below(path, parent, name);
    if (!environment_name_is_valid(name) || strlen(name) > EXECUTION_NAME_MAX)
        return request_refuse(d, ERROR_INVALID_FIELD, path,
                              "'%s' is not a valid variable name: use letters, digits and _",
                              str_shown(name).text);
    if (environment_name_is_refused(name))
        return request_refuse(
            d, ERROR_INVALID_FIELD, path,
            "the variable '%s' changes what an interpreter loads or where it looks, and "
            "is refused",
            str_shown(name).text);
    ret_pair->name = arena_strdup(&d->out->arena, name);
    return request_read_text(d, path, value, EXECUTION_VALUE_MAX, &ret_pair->value) &&
           (ret_pair->name || request_no_memory(d));
}

bool request_read_env(struct request_decoder *d, const char *field, const json_t *value)
{
    size_t count = 0, i = 0;
    if (!request_count_object(d, field, value, EXECUTION_ENV_MAX, &count))
        return false;
    struct execution_pair *pairs = arena_alloc(&d->out->arena, (count + 1) * sizeof *pairs);
    if (!pairs)
        return request_no_memory(d);
    const char *name;
    const json_t *text;
    json_t *iterated = (json_t *)(uintptr_t)value;
    json_object_foreach(iterated, name,
                        text) if (!read_variable(d, field, name, text, &pairs[i++])) return false;
    d->out->env = pairs;
    d->out->env_count = count;
    return true;
}

static bool read_file(struct request_decoder *d, const char *parent, const char *name,
                      const json_t *value, struct execution_file *ret_file)
{
    char path[REQUEST_FIELD_MAX];
    request_below(path, parent, name);
    if (strlen(name) > EXECUTION_NAME_MAX || !execution_file_name_is_valid(name))
        return request_refuse(d, ERROR_INVALID_FIELD, path,
                              "'%s' is not a valid file name: use a relative path without . and "
                              ".., at most %d bytes in %d parts",
                              str_shown(name).text, EXECUTION_NAME_MAX, EXECUTION_PARTS_MAX);
    if (d->runtime->input == RUNTIME_FILE && str_equal(name, d->runtime->file_name))
        return request_refuse(d, ERROR_INVALID_FIELD, path, "'%s' is the file that the code is in",
                              name);
    ret_file->name = arena_strdup(&d->out->arena, name);
    return request_read_bytes(d, path, value, EXECUTION_FILE_BYTES_MAX, &ret_file->content) &&
           (ret_file->name || request_no_memory(d));
}

bool request_read_files(struct request_decoder *d, const char *field, const json_t *value)
{
    size_t count = 0, i = 0;
    if (!request_count_object(d, field, value, EXECUTION_FILES_MAX, &count))
        return false;
    struct execution_file *files = arena_alloc(&d->out->arena, (count + 1) * sizeof *files);
    if (!files)
        return request_no_memory(d);
    const char *name;
    const json_t *content;
    json_t *iterated = (json_t *)(uintptr_t)value;
    json_object_foreach(iterated, name,
                        content) if (!read_file(d, field, name, content, &files[i++])) return false;
    d->out->files = files;
    d->out->file_count = count;
    return true;
}

bool request_read_returns(struct request_decoder *d, const char *field, const json_t *value)
{
    if (!request_read_texts(d, field, value, EXECUTION_RETURNS_MAX, EXECUTION_NAME_MAX,
                            &d->out->returns, &d->out->return_count))
        return false;
    for (size_t i = 0; i < d->out->return_count; i++)
        if (!execution_file_name_is_valid(d->out->returns[i]))
            return request_refuse(d, ERROR_INVALID_FIELD, field,
                                  "'%s' is not a valid file pattern: it is relative to the output "
                                  "directory, without . and ..",
                                  str_shown(d->out->returns[i]).text);
    return true;
}
