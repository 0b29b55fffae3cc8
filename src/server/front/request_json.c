/* SPDX-License-Identifier: MIT */
/* The body of POST /execute: reading it by a table of fields. */
#include "server/front/request_json.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/own.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/net_rules.h"
#include "server/config.h"
#include "server/front/environment.h"
#include "server/front/json_shape.h"
#include "server/warden/workdir.h"

struct decoder {
    const struct server_config *config;
    const struct runtime *runtime;
    struct execution_request *out;
    struct request_fault *fault;
};

static void own_json(json_t **value)
{
    json_decref(*value);
}
#define autojson __attribute__((cleanup(own_json)))

__attribute__((format(printf, 4, 5))) static bool refuse(struct decoder *d, enum front_error error,
                                                         const char *field, const char *format, ...)
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
static const char *below(char path[REQUEST_FIELD_MAX], const char *parent, const char *name)
{
    (void)snprintf(path, REQUEST_FIELD_MAX, "%s%s%s", parent, *parent ? "." : "",
                   str_shown(name).text);
    return path;
}

static bool refuse_memory(struct decoder *d)
{
    (void)refuse(d, ERROR_OVERLOADED, "", "out of memory");
    return false;
}

static bool wrong_type(struct decoder *d, const char *field, const char *wanted)
{
    return refuse(d, ERROR_INVALID_FIELD, field, "%s has to be %s", field, wanted);
}

/* ---- Kinds of values ---- */

/* A string without a NUL in it, of at most max bytes. */
static bool read_text(struct decoder *d, const char *field, const json_t *value, size_t max,
                      const char **ret_text)
{
    if (!json_is_string(value))
        return wrong_type(d, field, "a string");
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    if (strlen(text) != length)
        return refuse(d, ERROR_INVALID_FIELD, field, "%s has a NUL in it", field);
    if (length > max)
        return refuse(d, ERROR_INVALID_FIELD, field, "%s has %zu bytes, at most %zu are allowed",
                      field, length, max);
    const char *copy = arena_strdup(&d->out->arena, text);
    if (!copy)
        return refuse_memory(d);
    *ret_text = copy;
    return true;
}

static bool keep_bytes(struct decoder *d, const char *text, size_t length,
                       struct execution_bytes *ret_bytes)
{
    char *copy = arena_alloc_raw(&d->out->arena, length + 1);
    if (!copy)
        return refuse_memory(d);
    memcpy(copy, text, length);
    copy[length] = '\0';
    *ret_bytes = (struct execution_bytes){.data = copy, .length = length};
    return true;
}

static bool keep_base64(struct decoder *d, const char *field, const char *text, size_t length,
                        struct execution_bytes *ret_bytes)
{
    char *bytes = arena_alloc_raw(&d->out->arena, length / 4 * 3 + 1);
    size_t used = 0;
    if (!bytes)
        return refuse_memory(d);
    if (!base64_decode(text, length, bytes, &used))
        return refuse(d, ERROR_INVALID_FIELD, field,
                      "%s is no base64 (RFC 4648, padded, on one line)", field);
    bytes[used] = '\0';
    *ret_bytes = (struct execution_bytes){.data = bytes, .length = used};
    return true;
}

static bool read_encoded(struct decoder *d, const char *field, const json_t *object,
                         struct execution_bytes *ret_bytes)
{
    const json_t *content = json_object_get(object, "content");
    const json_t *encoding = json_object_get(object, "encoding");
    const char *name = encoding ? json_string_value(encoding) : "utf-8";
    char path[REQUEST_FIELD_MAX];
    if (json_object_size(object) != (encoding ? 2 : 1) || !json_is_string(content))
        return refuse(d, ERROR_INVALID_FIELD, field,
                      "%s has to be {\"content\": string, \"encoding\": \"base64\" or \"utf-8\"}",
                      field);
    const char *text = json_string_value(content);
    size_t length = json_string_length(content);
    if (str_equal(name, "base64"))
        return keep_base64(d, below(path, field, "content"), text, length, ret_bytes);
    if (str_equal(name, "utf-8"))
        return keep_bytes(d, text, length, ret_bytes);
    below(path, field, "encoding");
    return refuse(d, ERROR_INVALID_FIELD, path, "%s has to be \"base64\" or \"utf-8\"", path);
}

/* "text", or {"content": …, "encoding": "base64"}. */
static bool read_bytes(struct decoder *d, const char *field, const json_t *value, size_t max,
                       struct execution_bytes *ret_bytes)
{
    struct execution_bytes bytes = {0};
    bool read = false;
    if (json_is_object(value))
        read = read_encoded(d, field, value, &bytes);
    else if (json_is_string(value))
        read = keep_bytes(d, json_string_value(value), json_string_length(value), &bytes);
    else
        return wrong_type(d, field, "a string, or an object with content and encoding");
    if (!read)
        return false;
    if (bytes.length > max)
        return refuse(d, ERROR_INVALID_FIELD, field, "%s has %zu bytes, at most %zu are allowed",
                      field, bytes.length, max);
    *ret_bytes = bytes;
    return true;
}

static bool read_texts(struct decoder *d, const char *field, const json_t *value, size_t count_max,
                       size_t max, const char ***ret_texts, size_t *ret_count)
{
    if (!json_is_array(value))
        return wrong_type(d, field, "an array of strings");
    size_t count = json_array_size(value);
    if (count > count_max)
        return refuse(d, ERROR_INVALID_FIELD, field, "%s has %zu entries, at most %zu are allowed",
                      field, count, count_max);
    const char **texts = arena_alloc(&d->out->arena, (count + 1) * sizeof *texts);
    if (!texts)
        return refuse_memory(d);
    for (size_t i = 0; i < count; i++) {
        char name[24], path[REQUEST_FIELD_MAX];
        (void)snprintf(name, sizeof name, "%zu", i);
        if (!read_text(d, below(path, field, name), json_array_get(value, i), max, &texts[i]))
            return false;
    }
    *ret_texts = texts;
    *ret_count = count;
    return true;
}

static bool count_object(struct decoder *d, const char *field, const json_t *value,
                         size_t count_max, size_t *ret_count)
{
    if (!json_is_object(value))
        return wrong_type(d, field, "an object");
    *ret_count = json_object_size(value);
    if (*ret_count > count_max)
        return refuse(d, ERROR_INVALID_FIELD, field, "%s has %zu entries, at most %zu are allowed",
                      field, *ret_count, count_max);
    return true;
}

/* ---- Objects by their table ---- */

typedef bool read_field(struct decoder *d, const char *field, const json_t *value);

struct field_reader {
    const char *name;
    read_field *read; /* NULL: was read before the others */
    bool required;
};

static bool unknown_field(struct decoder *d, const char *parent, const char *name,
                          const struct field_reader *readers, size_t count)
{
    char path[REQUEST_FIELD_MAX];
    autostr struct str known = {0};
    for (size_t i = 0; i < count; i++)
        str_appendf(&known, "%s%s", i > 0 ? ", " : "", readers[i].name);
    below(path, parent, name);
    return refuse(d, ERROR_UNKNOWN_FIELD, path, "there is no field '%s'; %s%s are allowed", path,
                  known.data ? known.data : "", *parent ? " in it" : "");
}

/* null is as good as absent. */
static bool read_object(struct decoder *d, const char *parent, const json_t *object,
                        const struct field_reader *readers, size_t count)
{
    const char *key;
    const json_t *value;
    json_t *iterated = (json_t *)(uintptr_t)object; /* the macro takes no const */
    json_object_foreach(iterated, key, value)
    {
        const struct field_reader *reader = readers;
        while (reader < readers + count && strcmp(reader->name, key) != 0)
            reader++;
        if (reader == readers + count)
            return unknown_field(d, parent, key, readers, count);
        char path[REQUEST_FIELD_MAX];
        below(path, parent, key);
        if (reader->read && !json_is_null(value) && !reader->read(d, path, value))
            return false;
    }
    for (size_t i = 0; i < count; i++) {
        value = json_object_get(object, readers[i].name);
        if (readers[i].required && (!value || json_is_null(value)))
            return refuse(d, ERROR_MISSING_FIELD, readers[i].name, "%s is missing",
                          readers[i].name);
    }
    return true;
}

/* ---- Fields ---- */

static bool is_off(const struct server_config *config, const char *name)
{
    for (size_t i = 0; i < config->runtime_count; i++)
        if (config->runtimes[i].disabled && strcmp(config->runtimes[i].name, name) == 0)
            return true;
    return false;
}

/* First of all: what the others may say depends on it. */
static bool read_language(struct decoder *d, const json_t *object)
{
    const json_t *value = json_object_get(object, "language");
    const char *name = NULL;
    if (!value || json_is_null(value))
        return refuse(d, ERROR_MISSING_FIELD, "language", "language is missing");
    if (!read_text(d, "language", value, EXECUTION_NAME_MAX, &name))
        return false;
    d->runtime = config_find_runtime(d->config, name);
    if (!d->runtime)
        return refuse(d, ERROR_UNKNOWN_LANGUAGE, "language", "%s '%s'%s; GET /runtimes lists them",
                      is_off(d->config, name) ? "the language" : "there is no language",
                      str_shown(name).text,
                      is_off(d->config, name) ? " is switched off by the operator" : "");
    d->out->language = arena_strdup(&d->out->arena, d->runtime->name);
    return d->out->language || refuse_memory(d);
}

static bool read_code(struct decoder *d, const char *field, const json_t *value)
{
    if (!json_is_string(value))
        return wrong_type(d, field, "a string");
    if (!read_bytes(d, field, value, EXECUTION_CODE_MAX, &d->out->code))
        return false;
    return d->out->code.length > 0 || refuse(d, ERROR_INVALID_FIELD, field, "code is empty");
}

static bool read_stdin(struct decoder *d, const char *field, const json_t *value)
{
    return read_bytes(d, field, value, EXECUTION_STDIN_MAX, &d->out->stdin_bytes);
}

static bool read_args(struct decoder *d, const char *field, const json_t *value)
{
    return read_texts(d, field, value, EXECUTION_ARGS_MAX, EXECUTION_VALUE_MAX, &d->out->args,
                      &d->out->arg_count);
}

/* A number of seconds, or a duration as text. */
static bool timeout_ms(struct decoder *d, const char *field, const json_t *value, uint64_t *ret_ms)
{
    char text[64];
    struct brig_error error = {0};
    if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
        (void)snprintf(text, sizeof text, "%s", json_string_value(value));
    else if (json_is_number(value) && json_number_value(value) < (double)PARSE_DURATION_MS_MAX)
        (void)snprintf(text, sizeof text, "%.3f", json_number_value(value));
    else
        return wrong_type(d, field, "a duration like \"10s\" or \"500ms\", or a number of seconds");
    if (parse_duration(text, 0, ret_ms, &error) < 0)
        return refuse(d, ERROR_INVALID_FIELD, field, "%s: %s", field, error.message);
    return true;
}

static bool read_timeout(struct decoder *d, const char *field, const json_t *value)
{
    uint64_t ms = 0;
    uint64_t most =
        d->runtime->max_timeout_ms ? d->runtime->max_timeout_ms : d->config->sandbox.max_timeout_ms;
    if (!timeout_ms(d, field, value, &ms))
        return false;
    if (most && ms > most)
        return refuse(d, ERROR_INVALID_FIELD, field,
                      "timeout is %.3gs, at most %.3gs are allowed for %s", (double)ms / 1000,
                      (double)most / 1000, d->runtime->name);
    d->out->timeout_ms = ms;
    return true;
}

static bool read_limit(struct decoder *d, const char *field, const json_t *value,
                       enum execution_limit limit)
{
    uint64_t most = d->runtime->max_limits[limit] ? d->runtime->max_limits[limit]
                                                  : d->config->sandbox.max_limits[limit];
    if (!json_is_integer(value))
        return wrong_type(d, field, "a whole number");
    json_int_t number = json_integer_value(value);
    if (number < 1 || (most && (uint64_t)number > most))
        return refuse(d, ERROR_INVALID_FIELD, field,
                      "%s is %" JSON_INTEGER_FORMAT ", 1 to %llu are allowed for %s", field, number,
                      (unsigned long long)(most ? most : INT64_MAX), d->runtime->name);
    d->out->limits[limit] = (uint64_t)number;
    return true;
}

static bool read_memory(struct decoder *d, const char *field, const json_t *value)
{
    return read_limit(d, field, value, EXECUTION_MEMORY_MB);
}

static bool read_pids(struct decoder *d, const char *field, const json_t *value)
{
    return read_limit(d, field, value, EXECUTION_PIDS);
}

static bool read_disk(struct decoder *d, const char *field, const json_t *value)
{
    return read_limit(d, field, value, EXECUTION_DISK_MB);
}

static bool read_cpu(struct decoder *d, const char *field, const json_t *value)
{
    return read_limit(d, field, value, EXECUTION_CPU_PERCENT);
}

static bool read_limits(struct decoder *d, const char *field, const json_t *value)
{
    static const struct field_reader readers[] = {
        {.name = "memory_mb", .read = read_memory},
        {.name = "pids_limit", .read = read_pids},
        {.name = "disk_mb", .read = read_disk},
        {.name = "cpu_percent", .read = read_cpu},
    };
    if (!json_is_object(value))
        return wrong_type(d, field, "an object");
    return read_object(d, field, value, readers, ARRAY_LENGTH(readers));
}

static bool read_enabled(struct decoder *d, const char *field, const json_t *value)
{
    if (!json_is_boolean(value))
        return wrong_type(d, field, "true or false");
    d->out->network = json_is_true(value);
    return true;
}

/* Names and what lies below them; addresses, the host's own services and everything at once are
 * for the operator to give. */
static bool check_name(struct decoder *d, const char *field, const char *text)
{
    struct net_rule rule;
    struct brig_error error = {0};
    if (net_rule_parse(text, false, &rule, &error) < 0)
        return refuse(d, ERROR_INVALID_FIELD, field, "%s: %s", field, error.message);
    bool wide =
        rule.kind == NET_RULE_ANY || (rule.kind == NET_RULE_BELOW && !strchr(rule.name, '.'));
    if (wide && !d->config->sandbox.allow_network)
        return refuse(d, ERROR_NETWORK_NOT_PERMITTED, field,
                      "'%s' is too wide: name hosts, like \"pypi.org\" or \"*.example.com\"",
                      str_shown(text).text);
    if (!wide && rule.kind != NET_RULE_NAME && rule.kind != NET_RULE_BELOW)
        return refuse(d, ERROR_NETWORK_NOT_PERMITTED, field,
                      "'%s' is no name: addresses and the host's own services cannot be asked for",
                      str_shown(text).text);
    return true;
}

static bool read_allow(struct decoder *d, const char *field, const json_t *value)
{
    if (!read_texts(d, field, value, EXECUTION_ALLOW_MAX, EXECUTION_NAME_MAX, &d->out->allow,
                    &d->out->allow_count))
        return false;
    for (size_t i = 0; i < d->out->allow_count; i++)
        if (!check_name(d, field, d->out->allow[i]))
            return false;
    return true;
}

static bool read_network(struct decoder *d, const char *field, const json_t *value)
{
    static const struct field_reader readers[] = {
        {.name = "enabled", .read = read_enabled},
        {.name = "allow", .read = read_allow},
    };
    if (!json_is_object(value))
        return wrong_type(d, field, "an object");
    if (!read_object(d, field, value, readers, ARRAY_LENGTH(readers)))
        return false;
    if (!d->out->network && d->out->allow_count > 0)
        return refuse(d, ERROR_INVALID_FIELD, field,
                      "%s.allow names hosts, but %s.enabled is not true", field, field);
    if (d->out->network && d->out->allow_count == 0 && !d->config->sandbox.allow_network &&
        !d->runtime->agent)
        return refuse(d, ERROR_NETWORK_NOT_PERMITTED, field,
                      "the operator does not permit the whole network: name hosts in %s.allow",
                      field);
    return true;
}

static bool read_permissions(struct decoder *d, const char *field, const json_t *value)
{
    static const struct field_reader readers[] = {{.name = "network", .read = read_network}};
    if (!json_is_object(value))
        return wrong_type(d, field, "an object");
    return read_object(d, field, value, readers, ARRAY_LENGTH(readers));
}

/* Below a root of the operator's, by its name alone: the warden looks at what it leads to. */
static bool is_below_a_root(const struct server_config *config, const char *path)
{
    autofree char *normal = NULL;
    if (path_normalise(path, 0, &normal, NULL) < 0 || warden_workdir_is_refused(normal))
        return false;
    for (size_t i = 0; i < config->sandbox.allowed_workdir_roots.count; i++) {
        autofree char *root = NULL;
        if (path_normalise(config->sandbox.allowed_workdir_roots.items[i], 0, &root, NULL) == 0 &&
            path_is_beneath(root, normal))
            return true;
    }
    return false;
}

static bool read_work_dir(struct decoder *d, const char *field, const json_t *value)
{
    const char *path = "";
    if (!read_text(d, field, value, EXECUTION_VALUE_MAX, &path))
        return false;
    if (path[0] != '/')
        return refuse(d, ERROR_INVALID_FIELD, field, "work_dir '%s' is not absolute",
                      str_shown(path).text);
    if (!is_below_a_root(d->config, path))
        return refuse(d, ERROR_WORK_DIR_NOT_ALLOWED, field,
                      "work_dir '%s' is not below sandbox.allowed_workdir_roots, or is one that is "
                      "never given to a run",
                      str_shown(path).text);
    d->out->work_dir = path;
    return true;
}

static bool read_variable(struct decoder *d, const char *parent, const char *name,
                          const json_t *value, struct execution_pair *ret_pair)
{
    char path[REQUEST_FIELD_MAX];
    below(path, parent, name);
    if (!environment_name_is_valid(name) || strlen(name) > EXECUTION_NAME_MAX)
        return refuse(d, ERROR_INVALID_FIELD, path,
                      "'%s' is no name of a variable: letters, digits and _ are allowed",
                      str_shown(name).text);
    if (environment_name_is_refused(name))
        return refuse(d, ERROR_INVALID_FIELD, path,
                      "the variable '%s' changes what an interpreter loads or where it looks, and "
                      "is refused",
                      str_shown(name).text);
    ret_pair->name = arena_strdup(&d->out->arena, name);
    return read_text(d, path, value, EXECUTION_VALUE_MAX, &ret_pair->value) &&
           (ret_pair->name || refuse_memory(d));
}

static bool read_env(struct decoder *d, const char *field, const json_t *value)
{
    size_t count = 0, i = 0;
    if (!count_object(d, field, value, EXECUTION_ENV_MAX, &count))
        return false;
    struct execution_pair *pairs = arena_alloc(&d->out->arena, (count + 1) * sizeof *pairs);
    if (!pairs)
        return refuse_memory(d);
    const char *name;
    const json_t *text;
    json_t *iterated = (json_t *)(uintptr_t)value;
    json_object_foreach(iterated, name,
                        text) if (!read_variable(d, field, name, text, &pairs[i++])) return false;
    d->out->env = pairs;
    d->out->env_count = count;
    return true;
}

static bool read_file(struct decoder *d, const char *parent, const char *name, const json_t *value,
                      struct execution_file *ret_file)
{
    char path[REQUEST_FIELD_MAX];
    below(path, parent, name);
    if (strlen(name) > EXECUTION_NAME_MAX || !execution_file_name_is_valid(name))
        return refuse(d, ERROR_INVALID_FIELD, path,
                      "'%s' is no name of a file: relative, without . and .., at most %d bytes "
                      "in %d parts",
                      str_shown(name).text, EXECUTION_NAME_MAX, EXECUTION_PARTS_MAX);
    if (d->runtime->input == RUNTIME_FILE && str_equal(name, d->runtime->file_name))
        return refuse(d, ERROR_INVALID_FIELD, path, "'%s' is the file that the code is in", name);
    ret_file->name = arena_strdup(&d->out->arena, name);
    return read_bytes(d, path, value, EXECUTION_FILE_BYTES_MAX, &ret_file->content) &&
           (ret_file->name || refuse_memory(d));
}

static bool read_files(struct decoder *d, const char *field, const json_t *value)
{
    size_t count = 0, i = 0;
    if (!count_object(d, field, value, EXECUTION_FILES_MAX, &count))
        return false;
    struct execution_file *files = arena_alloc(&d->out->arena, (count + 1) * sizeof *files);
    if (!files)
        return refuse_memory(d);
    const char *name;
    const json_t *content;
    json_t *iterated = (json_t *)(uintptr_t)value;
    json_object_foreach(iterated, name,
                        content) if (!read_file(d, field, name, content, &files[i++])) return false;
    d->out->files = files;
    d->out->file_count = count;
    return true;
}

static bool read_returns(struct decoder *d, const char *field, const json_t *value)
{
    if (!read_texts(d, field, value, EXECUTION_RETURNS_MAX, EXECUTION_NAME_MAX, &d->out->returns,
                    &d->out->return_count))
        return false;
    for (size_t i = 0; i < d->out->return_count; i++)
        if (!execution_file_name_is_valid(d->out->returns[i]))
            return refuse(d, ERROR_INVALID_FIELD, field,
                          "'%s' is no pattern of files: relative to the output directory, without "
                          ". and ..",
                          str_shown(d->out->returns[i]).text);
    return true;
}

/* ---- The whole ---- */

static const struct field_reader fields[] = {
    {.name = "language", .required = true},
    {.name = "code", .read = read_code, .required = true},
    {.name = "timeout", .read = read_timeout},
    {.name = "limits", .read = read_limits},
    {.name = "permissions", .read = read_permissions},
    {.name = "work_dir", .read = read_work_dir},
    {.name = "stdin", .read = read_stdin},
    {.name = "args", .read = read_args},
    {.name = "env", .read = read_env},
    {.name = "files", .read = read_files},
    {.name = "return_files", .read = read_returns},
};

static bool check_shape(struct decoder *d, const char *text, size_t length)
{
    switch (json_shape(text, length, REQUEST_DEPTH_MAX, REQUEST_VALUES_MAX)) {
    case JSON_SHAPE_OK:
        return true;
    case JSON_SHAPE_TOO_DEEP:
        return refuse(d, ERROR_INVALID_JSON, "", "the JSON is nested deeper than %d levels",
                      REQUEST_DEPTH_MAX);
    case JSON_SHAPE_TOO_MANY:
        return refuse(d, ERROR_INVALID_JSON, "", "the JSON has more than %d values",
                      REQUEST_VALUES_MAX);
    }
    return false;
}

static bool decode(struct decoder *d, const char *text, size_t length)
{
    json_error_t error;
    if (!check_shape(d, text, length))
        return false;
    autojson json_t *object =
        json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!object)
        return refuse(d, ERROR_INVALID_JSON, "", "line %d, column %d: %s", error.line, error.column,
                      error.text);
    if (!json_is_object(object))
        return refuse(d, ERROR_INVALID_JSON, "", "the body has to be a JSON object");
    return read_language(d, object) && read_object(d, "", object, fields, ARRAY_LENGTH(fields));
}

bool request_json_decode(const char *text, size_t length, const struct server_config *config,
                         struct execution_request *ret, const struct runtime **ret_runtime,
                         struct request_fault *fault)
{
    *ret = (struct execution_request){0};
    *fault = (struct request_fault){0};
    struct decoder d = {.config = config, .out = ret, .fault = fault};
    if (!decode(&d, text, length)) {
        arena_done(&ret->arena);
        *ret = (struct execution_request){0};
        return false;
    }
    *ret_runtime = d.runtime;
    return true;
}

/* What the readers above allow, in words. */
const struct request_field request_fields[] = {
    {"language", "string", true, "a name or alias of `GET /runtimes`", "What runs the code."},
    {"code", "string", true, "1 byte to 1 MiB", "The program; for an agent the prompt."},
    {"timeout", "string or number", false,
     "`\"500ms\"`, `\"10s\"`, `\"2m\"` or seconds; at most that of the runtime",
     "Wall clock. Default: the runtime's, 10 s."},
    {"limits.memory_mb", "integer", false, "1 to the runtime's maximum", "Memory. Default 256."},
    {"limits.pids_limit", "integer", false, "1 to the runtime's maximum",
     "Processes and threads at a time. Default 50."},
    {"limits.disk_mb", "integer", false, "1 to the runtime's maximum",
     "What can be written to /tmp and the output directory. Default 100."},
    {"limits.cpu_percent", "integer", false, "1 to the runtime's maximum",
     "Of one processor: 150 is one and a half. Default 100."},
    {"permissions.network.enabled", "boolean", false, "`true`, `false`",
     "The network; without `allow` all public destinations, if the operator permits that."},
    {"permissions.network.allow", "array of strings", false,
     "at most 64 names: `\"pypi.org\"`, `\"*.example.com:443\"`", "What can be reached."},
    {"work_dir", "string", false, "absolute, below `sandbox.allowed_workdir_roots`",
     "A directory of the server's machine, read-write at /workspace; for agents."},
    {"stdin", "string or object", false,
     "at most 4 MiB; or `{\"content\": …, \"encoding\": \"base64\"}`", "The standard input."},
    {"args", "array of strings", false, "at most 64, of 32 KiB each",
     "Behind the file of the code."},
    {"env", "object of strings", false,
     "at most 128, of 32 KiB each; LD_*, PATH, HOME, PYTHON*, NODE_* and their kind are refused",
     "Variables of the environment."},
    {"files", "object", false,
     "at most 256; name, of at most 16 parts, to text, or to `{\"content\": …, \"encoding\": "
     "\"base64\"}`",
     "Files beside the code in /workspace, read-only."},
    {"return_files", "array of strings", false, "at most 32 patterns (`*`, `?`, `[…]`)",
     "Which files of the output directory come back in `files`."},
};
const size_t request_field_count = ARRAY_LENGTH(request_fields);
