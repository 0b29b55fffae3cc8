/* SPDX-License-Identifier: MIT */
/* Parses the body of POST /execute: a table of fields, and a function for each kind. */
#include "server/http/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/net_rules.h"
#include "server/config.h"
#include "server/config_keys.h"
#include "server/environment.h"
#include "server/executor/jail_check.h"

#define PERMISSIONS "permissions.network"

struct request_decoder {
    const struct server_config *config;
    const struct config_list *roots; /* for work_dir */
    const struct runtime *runtime;   /* from `language`, which is read first */
    struct execution_request *out;
    struct request_fault *fault;
};

/* ---- Errors: each returns false with the fault filled in ---- */

__attribute__((format(printf, 4, 5))) static bool
refuse(struct request_decoder *d, enum http_error error, const char *field, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    d->fault->error = error;
    (void)snprintf(d->fault->field, sizeof d->fault->field, "%s", field);
    (void)vsnprintf(d->fault->message, sizeof d->fault->message, format, args);
    va_end(args);
    return false;
}

static bool no_memory(struct request_decoder *d)
{
    return refuse(d, ERROR_OVERLOADED, "", "out of memory");
}

static bool wrong_type(struct request_decoder *d, const char *field, const char *wanted)
{
    return refuse(d, ERROR_INVALID_FIELD, field, "%s has to be %s", field, wanted);
}

static bool too_many(struct request_decoder *d, const char *field, size_t count, const char *unit,
                     size_t max)
{
    return refuse(d, ERROR_INVALID_FIELD, field, "%s has %zu %s, at most %zu are allowed", field,
                  count, unit, max);
}

/* Writes "files.a.txt" to `path`. */
static const char *below(char path[REQUEST_FIELD_MAX], const char *parent, const char *name)
{
    (void)snprintf(path, REQUEST_FIELD_MAX, "%s%s%s", parent, *parent ? "." : "",
                   str_shown(name).text);
    return path;
}

/* ---- Kinds of values, copied to the request's arena ---- */

/* Reads a string without NUL bytes, of at most max bytes. */
static bool read_text(struct request_decoder *d, const char *field, const json_t *value, size_t max,
                      const char **ret_text)
{
    if (!json_is_string(value))
        return wrong_type(d, field, "a string");
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    if (strlen(text) != length)
        return refuse(d, ERROR_INVALID_FIELD, field, "%s has a NUL in it", field);
    if (length > max)
        return too_many(d, field, length, "bytes", max);
    *ret_text = arena_strdup(&d->out->arena, text);
    return *ret_text || no_memory(d);
}

/* Reads "text", or {"content": …, "encoding": "base64"}. */
static bool read_bytes(struct request_decoder *d, const char *field, const json_t *value,
                       size_t max, struct execution_bytes *ret_bytes)
{
    const json_t *encoding = json_object_get(value, "encoding");
    const json_t *content = json_is_object(value) ? json_object_get(value, "content") : value;
    const char *name = encoding ? json_string_value(encoding) : "utf-8";
    char path[REQUEST_FIELD_MAX];
    if (!json_is_object(value) && !json_is_string(value))
        return wrong_type(d, field, "a string, or an object with content and encoding");
    if (!json_is_string(content) ||
        (content != value && json_object_size(value) != (encoding ? 2 : 1)))
        return wrong_type(d, field, "{\"content\": string, \"encoding\": \"base64\" or \"utf-8\"}");
    if (!str_equal(name, "base64") && !str_equal(name, "utf-8"))
        return wrong_type(d, below(path, field, "encoding"), "\"base64\" or \"utf-8\"");
    size_t length = json_string_length(content);
    char *bytes = arena_alloc(&d->out->arena, length + 1);
    if (!bytes)
        return no_memory(d);
    memcpy(bytes, json_string_value(content), length);
    if (str_equal(name, "base64") && !base64_decode(bytes, length, bytes, &length))
        return wrong_type(d, below(path, field, "content"),
                          "base64 (RFC 4648, padded, on one line)");
    bytes[length] = '\0';
    if (length > max)
        return too_many(d, field, length, "bytes", max);
    *ret_bytes = (struct execution_bytes){.data = bytes, .length = length};
    return true;
}

static bool read_texts(struct request_decoder *d, const char *field, const json_t *value,
                       size_t count_max, size_t max, const char ***ret_texts, size_t *ret_count)
{
    size_t count = json_array_size(value);
    if (!json_is_array(value))
        return wrong_type(d, field, "an array of strings");
    if (count > count_max)
        return too_many(d, field, count, "entries", count_max);
    const char **texts = arena_alloc(&d->out->arena, (count + 1) * sizeof *texts);
    if (!texts)
        return no_memory(d);
    for (size_t i = 0; i < count; i++) {
        char path[REQUEST_FIELD_MAX];
        if (!read_text(d, below(path, field, str_number(i).text), json_array_get(value, i), max,
                       &texts[i]))
            return false;
    }
    *ret_texts = texts;
    *ret_count = count;
    return true;
}

/* Reads the members of an object, each into an item of `size` bytes. */
static bool read_members(struct request_decoder *d, const char *field, const json_t *value,
                         size_t count_max, size_t size,
                         bool (*read)(struct request_decoder *d, const char *path, const char *name,
                                      const json_t *value, void *ret_item),
                         void *ret_items, size_t *ret_count)
{
    json_t *object = (json_t *)(uintptr_t)value; /* jansson's iterators do not accept const */
    size_t count = json_object_size(value);
    if (!json_is_object(value))
        return wrong_type(d, field, "an object");
    if (count > count_max)
        return too_many(d, field, count, "entries", count_max);
    char *item = arena_alloc(&d->out->arena, (count + 1) * size);
    if (!item)
        return no_memory(d);
    memcpy(ret_items, &item, sizeof item);
    *ret_count = count;
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        char path[REQUEST_FIELD_MAX];
        const char *name = json_object_iter_key(i);
        if (!read(d, below(path, field, name), name, json_object_iter_value(i), item))
            return false;
        item += size;
    }
    return true;
}

/* ---- Fields ---- */

static bool read_language(struct request_decoder *d, const struct request_field *field,
                          const json_t *value)
{
    const char *name = NULL;
    if (!read_text(d, field->name, value, EXECUTION_NAME_MAX, &name))
        return false;
    d->runtime = config_find_runtime(d->config, name);
    if (!d->runtime) {
        struct brig_error error = {0};
        (void)config_fail_language(d->config, name, &error);
        return refuse(d, ERROR_UNKNOWN_LANGUAGE, field->name, "%s", error.message);
    }
    d->out->language = d->runtime->name; /* owned by the configuration */
    return true;
}

static bool read_code(struct request_decoder *d, const struct request_field *field,
                      const json_t *value)
{
    if (!json_is_string(value))
        return wrong_type(d, field->name, "a string");
    if (!read_bytes(d, field->name, value, EXECUTION_CODE_MAX, &d->out->code))
        return false;
    return d->out->code.length > 0 || refuse(d, ERROR_INVALID_FIELD, field->name, "code is empty");
}

/* The limit that a field sets; `run` sets those of the run stage, some of which have an older name,
 * too. */
static uint64_t *limit_of(struct execution_request *request, const char *name)
{
    const struct {
        const char *name;
        uint64_t *value;
    } rows[] = {
        {"timeout", &request->timeout_ms},
        {"run.timeout", &request->timeout_ms},
        {"run.cpu_time", &request->cpu_ms},
        {"run.memory_mb", &request->limits[EXECUTION_MEMORY_MB]},
        {"run.output_bytes", &request->output_bytes},
        {"compile.timeout", &request->compile.timeout_ms},
        {"compile.cpu_time", &request->compile.cpu_ms},
        {"compile.memory_mb", &request->compile.memory_mb},
        {"compile.output_bytes", &request->compile.output_bytes},
        {"limits.memory_mb", &request->limits[EXECUTION_MEMORY_MB]},
        {"limits.pids_limit", &request->limits[EXECUTION_PIDS]},
        {"limits.disk_mb", &request->limits[EXECUTION_DISK_MB]},
        {"limits.cpu_percent", &request->limits[EXECUTION_CPU_PERCENT]},
    };
    size_t i = 0;
    while (i < ARRAY_LENGTH(rows) - 1 && strcmp(rows[i].name, name) != 0)
        i++;
    return rows[i].value;
}

static bool set_limit(struct request_decoder *d, const char *field, uint64_t value)
{
    uint64_t *limit = limit_of(d->out, field);
    if (*limit)
        return refuse(d, ERROR_INVALID_FIELD, field, "%s is given twice: also as %s", field,
                      str_ends_with(field, "timeout") ? "timeout" : "limits.memory_mb");
    *limit = value;
    return true;
}

/* A duration as text, or a number of seconds. */
static bool read_timeout(struct request_decoder *d, const struct request_field *field,
                         const json_t *value)
{
    uint64_t value_ms = 0;
    char text[64];
    struct brig_error error = {0};
    if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
        (void)snprintf(text, sizeof text, "%s", json_string_value(value));
    else if (json_is_number(value) && json_number_value(value) < (double)PARSE_DURATION_MS_MAX)
        (void)snprintf(text, sizeof text, "%.3f", json_number_value(value));
    else
        return wrong_type(d, field->name,
                          "a duration like \"10s\" or \"500ms\", or a number of seconds");
    if (parse_duration(text, 0, &value_ms, &error) < 0)
        return refuse(d, ERROR_INVALID_FIELD, field->name, "%s: %s", field->name, error.message);
    return set_limit(d, field->name, value_ms);
}

static bool read_limit(struct request_decoder *d, const struct request_field *field,
                       const json_t *value)
{
    if (!json_is_integer(value) || json_integer_value(value) <= 0)
        return wrong_type(d, field->name, "a whole number above 0");
    return set_limit(d, field->name, (uint64_t)json_integer_value(value));
}

static bool read_output_bytes(struct request_decoder *d, const struct request_field *field,
                              const json_t *value)
{
    if (!json_is_integer(value) || json_integer_value(value) <= 0 ||
        json_integer_value(value) > (json_int_t)EXECUTION_OUTPUT_MAX)
        return wrong_type(d, field->name, "a whole number from 1 to 1048576");
    return set_limit(d, field->name, (uint64_t)json_integer_value(value));
}

static bool read_enabled(struct request_decoder *d, const struct request_field *field,
                         const json_t *value)
{
    if (!json_is_boolean(value))
        return wrong_type(d, field->name, "true or false");
    d->out->network = json_is_true(value);
    return true;
}

/* A request may ask for names and their subdomains. Addresses, services of the host and "*" are up
 * to the operator. */
static bool check_destination(struct request_decoder *d, const char *field, const char *text)
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
                      "'%s' is not a host name: a request cannot ask for addresses or services of "
                      "the server's host",
                      str_shown(text).text);
    return true;
}

static bool read_allow(struct request_decoder *d, const struct request_field *field,
                       const json_t *value)
{
    if (!read_texts(d, field->name, value, EXECUTION_ALLOW_MAX, EXECUTION_NAME_MAX, &d->out->allow,
                    &d->out->allow_count))
        return false;
    for (size_t i = 0; i < d->out->allow_count; i++)
        if (!check_destination(d, field->name, d->out->allow[i]))
            return false;
    return true;
}

/* Checks the path only; the executor checks the opened directory. */
static bool is_below_a_root(const struct config_list *roots, const char *path)
{
    autofree char *normal = NULL;
    if (path_normalise(path, 0, &normal, NULL) < 0 || executor_workdir_is_refused(normal))
        return false;
    for (size_t i = 0; i < roots->count; i++) {
        autofree char *root = NULL;
        if (path_normalise(roots->items[i], 0, &root, NULL) == 0 && path_is_beneath(root, normal))
            return true;
    }
    return false;
}

static bool read_work_dir(struct request_decoder *d, const struct request_field *field,
                          const json_t *value)
{
    const char *path = "";
    if (!read_text(d, field->name, value, EXECUTION_PATH_MAX, &path))
        return false;
    if (path[0] != '/')
        return refuse(d, ERROR_INVALID_FIELD, field->name, "work_dir '%s' is not absolute",
                      str_shown(path).text);
    bool own = d->roots != &d->config->sandbox.allowed_workdir_roots;
    if (!is_below_a_root(d->roots, path))
        return refuse(d, ERROR_WORK_DIR_NOT_ALLOWED, field->name,
                      "work_dir '%s' is not below %s, or is one that is never given to a run",
                      str_shown(path).text,
                      own ? "workdir_roots of this API key" : "sandbox.allowed_workdir_roots");
    d->out->work_dir = path;
    return true;
}

static bool read_stdin(struct request_decoder *d, const struct request_field *field,
                       const json_t *value)
{
    return read_bytes(d, field->name, value, EXECUTION_STDIN_MAX, &d->out->stdin_bytes);
}

static bool read_args(struct request_decoder *d, const struct request_field *field,
                      const json_t *value)
{
    return read_texts(d, field->name, value, EXECUTION_ARGS_MAX, EXECUTION_VALUE_MAX, &d->out->args,
                      &d->out->arg_count);
}

static bool read_compile_args(struct request_decoder *d, const struct request_field *field,
                              const json_t *value)
{
    return read_texts(d, field->name, value, EXECUTION_ARGS_MAX, EXECUTION_VALUE_MAX,
                      &d->out->compile_args, &d->out->compile_arg_count);
}

static bool read_main(struct request_decoder *d, const struct request_field *field,
                      const json_t *value)
{
    return read_text(d, field->name, value, EXECUTION_NAME_MAX, &d->out->main);
}

static bool read_combined(struct request_decoder *d, const struct request_field *field,
                          const json_t *value)
{
    if (!json_is_boolean(value))
        return wrong_type(d, field->name, "true or false");
    d->out->ordered = json_is_true(value);
    return true;
}

static bool read_variable(struct request_decoder *d, const char *path, const char *name,
                          const json_t *value, void *ret_item)
{
    struct execution_pair *ret_pair = ret_item;
    if (!environment_name_is_valid(name) || strlen(name) > EXECUTION_NAME_MAX)
        return refuse(d, ERROR_INVALID_FIELD, path,
                      "'%s' is not a valid variable name: use letters, digits and _",
                      str_shown(name).text);
    if (environment_name_is_refused(name))
        return refuse(d, ERROR_INVALID_FIELD, path,
                      "the variable '%s' changes what an interpreter loads or where it looks, and "
                      "is refused",
                      str_shown(name).text);
    ret_pair->name = arena_strdup(&d->out->arena, name);
    return (ret_pair->name || no_memory(d)) &&
           read_text(d, path, value, EXECUTION_VALUE_MAX, &ret_pair->value);
}

static bool read_env(struct request_decoder *d, const struct request_field *field,
                     const json_t *value)
{
    return read_members(d, field->name, value, EXECUTION_ENV_MAX, sizeof *d->out->env,
                        read_variable, &d->out->env, &d->out->env_count);
}

static bool read_file(struct request_decoder *d, const char *path, const char *name,
                      const json_t *value, void *ret_item)
{
    struct execution_file *ret_file = ret_item;
    if (strlen(name) > EXECUTION_NAME_MAX || !execution_file_name_is_valid(name))
        return refuse(d, ERROR_INVALID_FIELD, path,
                      "'%s' is not a valid file name: use a relative path without . and .., at "
                      "most %d bytes in %d parts",
                      str_shown(name).text, EXECUTION_NAME_MAX, EXECUTION_PARTS_MAX);
    if (d->runtime->input == RUNTIME_FILE &&
        strcmp(name, runtime_file_name(d->runtime, d->out)) == 0)
        return refuse(d, ERROR_INVALID_FIELD, path, "'%s' is the file that the code is in", name);
    ret_file->name = arena_strdup(&d->out->arena, name);
    return (ret_file->name || no_memory(d)) &&
           read_bytes(d, path, value, EXECUTION_FILE_BYTES_MAX, &ret_file->content);
}

static bool read_files(struct request_decoder *d, const struct request_field *field,
                       const json_t *value)
{
    return read_members(d, field->name, value, EXECUTION_FILES_MAX, sizeof *d->out->files,
                        read_file, &d->out->files, &d->out->file_count);
}

static bool read_returns(struct request_decoder *d, const struct request_field *field,
                         const json_t *value)
{
    if (!read_texts(d, field->name, value, EXECUTION_RETURNS_MAX, EXECUTION_NAME_MAX,
                    &d->out->returns, &d->out->return_count))
        return false;
    for (size_t i = 0; i < d->out->return_count; i++)
        if (!execution_file_name_is_valid(d->out->returns[i]))
            return refuse(d, ERROR_INVALID_FIELD, field->name,
                          "'%s' is not a valid file pattern: it is relative to the output "
                          "directory, without . and ..",
                          str_shown(d->out->returns[i]).text);
    return true;
}

static bool read_priority(struct request_decoder *d, const struct request_field *field,
                          const json_t *value)
{
    json_int_t priority = json_integer_value(value);
    if (!json_is_integer(value) || priority < -EXECUTION_PRIORITY_MAX ||
        priority > EXECUTION_PRIORITY_MAX)
        return wrong_type(d, field->name, "a whole number from -10 to 10");
    d->out->priority = (int)priority;
    return true;
}

static bool read_callback_url(struct request_decoder *d, const struct request_field *field,
                              const json_t *value)
{
    return read_text(d, field->name, value, EXECUTION_URL_MAX, &d->out->callback_url);
}

static bool read_callback_secret(struct request_decoder *d, const struct request_field *field,
                                 const json_t *value)
{
    return read_text(d, field->name, value, EXECUTION_SECRET_MAX, &d->out->callback_secret);
}

/* language is first, because the limits of other fields depend on it. */
const struct request_field request_fields[] = {
    {"language", true, read_language, "string", "a name or alias of `GET /runtimes`",
     "What runs the code."},
    {"code", true, read_code, "string", "1 byte to 1 MiB", "The program; for an agent the prompt."},
    {"timeout", false, read_timeout, "string or number",
     "`\"500ms\"`, `\"10s\"`, `\"2m\"` or seconds; at most that of the runtime",
     "Wall clock. Default: the runtime's, 10 s."},
    {"limits.memory_mb", false, read_limit, "integer", "8 to the runtime's maximum",
     "Memory. Default 256."},
    {"limits.pids_limit", false, read_limit, "integer", "1 to the runtime's maximum",
     "Processes and threads at a time. Default 50."},
    {"limits.disk_mb", false, read_limit, "integer", "1 to the runtime's maximum",
     "What can be written to /workspace, /tmp and the output directory. Default 100."},
    {"limits.cpu_percent", false, read_limit, "integer", "1 to the runtime's maximum",
     "Of one processor: 150 is one and a half. Default 100."},
    {"permissions.network.enabled", false, read_enabled, "boolean", "`true`, `false`",
     "The network; without `allow` all public destinations, if the operator permits that. "
     "An agent always reaches its own destinations, whatever this says."},
    {"permissions.network.allow", false, read_allow, "array of strings",
     "at most 64 names: `\"pypi.org\"`, `\"*.example.com:8443\"`; one port, or 443 and 80",
     "What can be reached."},
    {"work_dir", false, read_work_dir, "string",
     "absolute, below `sandbox.allowed_workdir_roots`, or `workdir_roots` of the key",
     "A directory of the server's machine, read-write at /workspace; for agents."},
    {"stdin", false, read_stdin, "string or object",
     "at most 4 MiB; or `{\"content\": …, \"encoding\": \"base64\"}`", "The standard input."},
    {"args", false, read_args, "array of strings",
     "at most 64, of 32 KiB each; with `env` 1.5 MiB in all", "Behind the file of the code."},
    {"env", false, read_env, "object of strings",
     "at most 128, of 32 KiB each; LD_*, PATH, HOME, PYTHON*, NODE_* and their kind are refused",
     "Variables of the environment."},
    {"main", false, read_main, "string", "like a name in `files`",
     "The name of the code's file in /workspace. Default: the runtime's, like `main.py`."},
    {"files", false, read_files, "object",
     "at most 256; name, of at most 16 parts, to text, or to `{\"content\": …, \"encoding\": "
     "\"base64\"}`",
     "Files beside the code in /workspace."},
    {"return_files", false, read_returns, "array of strings",
     "at most 32 patterns (`*`, `?`, `[…]`)",
     "Which files of the output directory come back in `files`."},
    {"priority", false, read_priority, "integer", "-10 to 10, or less: `queue.max_priority`",
     "`POST /executions` only: those with a higher one run first. Default 0."},
    {"callback.url", false, read_callback_url, "string",
     "`http://…` or `https://…`, at most 2048 bytes, a public address",
     "`POST /executions` only: is sent the result; see *Callbacks*."},
    {"callback.secret", false, read_callback_secret, "string", "1 to 256 bytes",
     "Signs the callback. Default: `callback.secret` of the server."},
    {"run.timeout", false, read_timeout, "string or number", "as `timeout`",
     "Another name of `timeout`."},
    {"run.cpu_time", false, read_timeout, "string or number", "as `timeout`",
     "CPU time of all processes of the run stage. Default: no limit but `timeout`."},
    {"run.memory_mb", false, read_limit, "integer", "as `limits.memory_mb`",
     "Another name of `limits.memory_mb`."},
    {"run.output_bytes", false, read_output_bytes, "integer", "1 to 1048576",
     "A stage that writes more to one of its streams is ended. Default: what is too much is left "
     "out."},
    {"compile.timeout", false, read_timeout, "string or number", "as `timeout`",
     "Wall clock of the compile stage. Default: the runtime's."},
    {"compile.cpu_time", false, read_timeout, "string or number", "as `timeout`",
     "As `run.cpu_time`, of the compile stage."},
    {"compile.memory_mb", false, read_limit, "integer", "as `limits.memory_mb`",
     "Memory of the compile stage. Default: the runtime's."},
    {"compile.output_bytes", false, read_output_bytes, "integer", "1 to 1048576",
     "As `run.output_bytes`, of the compile stage."},
    {"compile.args", false, read_compile_args, "array of strings", "as `args`",
     "More arguments of the compiler."},
    {"combined", false, read_combined, "boolean", "`true`, `false`",
     "Whether the result has `combined`. Default `false`."},
};
const size_t request_field_count = ARRAY_LENGTH(request_fields);

/* ---- The whole body ---- */

/* The objects that contain fields of the table. */
static const char *const sections[] = {"",         "limits", "permissions", PERMISSIONS,
                                       "callback", "run",    "compile"};

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

static bool is_known(const char *path)
{
    for (size_t i = 0; i < ARRAY_LENGTH(sections); i++)
        if (strcmp(sections[i], path) == 0)
            return true;
    for (size_t i = 0; i < request_field_count; i++)
        if (strcmp(request_fields[i].name, path) == 0)
            return true;
    return false;
}

static bool unknown_field(struct request_decoder *d, const char *parent, const char *name)
{
    char path[REQUEST_FIELD_MAX];
    autostr struct str known = {0};
    struct nearest nearest;
    (void)snprintf(path, sizeof path, "%s%s", parent, *parent ? "." : "");
    config_names_below(request_fields, sizeof *request_fields, request_field_count, path, name,
                       &known, &nearest);
    below(path, parent, name);
    if (nearest.best[0])
        return refuse(d, ERROR_UNKNOWN_FIELD, path, "unknown field '%s'. Did you mean '%s'?", path,
                      nearest.best);
    return refuse(d, ERROR_UNKNOWN_FIELD, path, "unknown field '%s'; allowed are %s", path,
                  known.data ? known.data : "none");
}

static bool check_names(struct request_decoder *d, const json_t *root)
{
    for (size_t i = 0; i < ARRAY_LENGTH(sections); i++) {
        json_t *object = (json_t *)(uintptr_t)find(root, sections[i]);
        if (object && !json_is_object(object))
            return wrong_type(d, sections[i], "an object");
        for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
            char path[REQUEST_FIELD_MAX];
            const char *name = json_object_iter_key(at);
            if (strchr(name, '.') || !is_known(below(path, sections[i], name)))
                return unknown_field(d, sections[i], name);
        }
    }
    return true;
}

static bool read_fields(struct request_decoder *d, const json_t *root)
{
    for (size_t i = 0; i < request_field_count; i++) {
        const struct request_field *field = &request_fields[i];
        const json_t *value = find(root, field->name);
        if (!value && field->required)
            return refuse(d, ERROR_MISSING_FIELD, field->name, "the field '%s' is missing",
                          field->name);
        if (value && !field->read(d, field, value))
            return false;
    }
    return true;
}

/* Checks combinations of fields, and all that the executor will check again. */
static bool check_whole(struct request_decoder *d)
{
    struct brig_error error = {0};
    const char *field = "";
    if (!d->out->network && d->out->allow_count > 0)
        return refuse(d, ERROR_INVALID_FIELD, PERMISSIONS,
                      "%s.allow names hosts, but %s.enabled is not true", PERMISSIONS, PERMISSIONS);
    if (jail_check_request(d->config, d->runtime, d->out, &field, &error) == 0)
        return true;
    return refuse(d,
                  str_equal(field, PERMISSIONS) ? ERROR_NETWORK_NOT_PERMITTED : ERROR_INVALID_FIELD,
                  field, "%s", error.message);
}

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

static bool decode(struct request_decoder *d, const char *text, size_t length)
{
    json_error_t error;
    json_auto_t *root = NULL;
    enum request_shape shape = request_shape(text, length, REQUEST_DEPTH_MAX, REQUEST_VALUES_MAX);
    if (length == 0)
        return refuse(d, ERROR_INVALID_JSON, "", REQUEST_NO_BODY);
    if (shape == REQUEST_TOO_DEEP)
        return refuse(d, ERROR_INVALID_JSON, "", "the JSON is nested deeper than %d levels",
                      REQUEST_DEPTH_MAX);
    if (shape == REQUEST_TOO_MANY)
        return refuse(d, ERROR_INVALID_JSON, "", "the JSON has more than %d values",
                      REQUEST_VALUES_MAX);
    root = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!root)
        return refuse(d, ERROR_INVALID_JSON, "", "line %d, column %d: %s", error.line, error.column,
                      error.text);
    if (!json_is_object(root))
        return refuse(d, ERROR_INVALID_JSON, "", "the body has to be a JSON object");
    return check_names(d, root) && read_fields(d, root) && check_whole(d);
}

bool request_read(const char *text, size_t length, const struct server_config *config,
                  const struct config_list *roots, struct execution_request *ret,
                  const struct runtime **ret_runtime, struct request_fault *fault)
{
    *ret = (struct execution_request){.callback_url = "", .callback_secret = ""};
    *fault = (struct request_fault){0};
    struct request_decoder d = {.config = config, .roots = roots, .out = ret, .fault = fault};
    if (!decode(&d, text, length)) {
        execution_request_done(ret);
        return false;
    }
    *ret_runtime = d.runtime;
    return true;
}
