/* SPDX-License-Identifier: MIT */
/* Parses the bodies of requests about sandboxes: a table of fields, and a function for each kind. */
#include "server/api/sandbox_request.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/str.h"
#include "server/config_keys.h"
#include "server/environment.h"
#include "server/runtime.h"

struct sandbox_reader {
    struct sandbox_request *out;
    struct request_fault *fault;
};

#define ON(operation) (1U << SANDBOX_##operation)
_Static_assert(SANDBOX_OPERATIONS_ <= 32, "sandbox_field.operations has a bit for each");

/* ---- errors: each returns false with the fault filled in ---- */

__attribute__((format(printf, 4, 5))) static bool refuse(struct sandbox_reader *reader,
                                                         enum http_error error, const char *field,
                                                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    reader->fault->error = error;
    (void)snprintf(reader->fault->field, sizeof reader->fault->field, "%s", field);
    (void)vsnprintf(reader->fault->message, sizeof reader->fault->message, format, args);
    va_end(args);
    return false;
}

static bool wrong_type(struct sandbox_reader *reader, const char *field, const char *wanted)
{
    return refuse(reader, ERROR_INVALID_FIELD, field, "%s has to be %s", field, wanted);
}

static bool no_memory(struct sandbox_reader *reader)
{
    return refuse(reader, ERROR_OVERLOADED, "", "out of memory");
}

/* ---- kinds of values, copied to the request's arena ---- */

static bool read_text(struct sandbox_reader *reader, const char *field, const json_t *value,
                      size_t most, const char **ret_text)
{
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return wrong_type(reader, field, "a string without NUL");
    if (json_string_length(value) > most)
        return refuse(reader, ERROR_INVALID_FIELD, field,
                      "%s has %zu bytes, at most %zu are allowed", field, json_string_length(value),
                      most);
    *ret_text = arena_strdup(&reader->out->arena, json_string_value(value));
    return *ret_text || no_memory(reader);
}

/* "text", or {"content": …, "encoding": "base64"}. */
static bool read_content(struct sandbox_reader *reader, const char *field, const json_t *value,
                         size_t most)
{
    const json_t *content = json_is_object(value) ? json_object_get(value, "content") : value;
    const char *encoding =
        json_is_object(value) ? json_string_value(json_object_get(value, "encoding")) : "utf-8";
    bool base64 = str_equal(encoding, "base64");
    if (!json_is_string(content) || (!base64 && encoding && !str_equal(encoding, "utf-8")))
        return wrong_type(reader, field,
                          "a string, or {\"content\": string, \"encoding\": \"base64\" or "
                          "\"utf-8\"}");
    size_t length = json_string_length(content);
    char *bytes = arena_copy(&reader->out->arena, json_string_value(content), length + 1);
    if (!bytes)
        return no_memory(reader);
    if (base64 && !base64_decode(bytes, length, bytes, &length))
        return wrong_type(reader, field, "base64 (RFC 4648, padded, on one line)");
    if (length > most)
        return refuse(reader, ERROR_INVALID_FIELD, field,
                      "%s has %zu bytes, at most %zu are allowed", field, length, most);
    bytes[length] = '\0';
    reader->out->bytes = (struct execution_bytes){bytes, length};
    return true;
}

static bool read_list(struct sandbox_reader *reader, const char *field, const json_t *value,
                      size_t count_max, size_t most, const char ***ret_texts, size_t *ret_count)
{
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > count_max)
        return refuse(reader, ERROR_INVALID_FIELD, field,
                      "%s has to be an array of at most %zu strings", field, count_max);
    const char **texts = arena_alloc(&reader->out->arena, (count + 1) * sizeof *texts);
    if (!texts)
        return no_memory(reader);
    for (size_t i = 0; i < count; i++)
        if (!read_text(reader, field, json_array_get(value, i), most, &texts[i]))
            return false;
    *ret_texts = texts;
    *ret_count = count;
    return true;
}

static bool read_pairs(struct sandbox_reader *reader, const char *field, const json_t *value,
                       size_t count_max, size_t most, struct execution_pair **ret_pairs,
                       size_t *ret_count)
{
    json_t *object = (json_t *)(uintptr_t)value; /* jansson's iterators do not accept const */
    size_t count = json_object_size(value);
    if (!json_is_object(value) || count > count_max)
        return refuse(reader, ERROR_INVALID_FIELD, field,
                      "%s has to be an object of at most %zu strings", field, count_max);
    struct execution_pair *pair = arena_alloc(&reader->out->arena, (count + 1) * sizeof *pair);
    if (!pair)
        return no_memory(reader);
    *ret_pairs = pair;
    *ret_count = count;
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i), pair++) {
        const char *name = json_object_iter_key(i);
        if (strlen(name) > EXECUTION_NAME_MAX)
            return refuse(reader, ERROR_INVALID_FIELD, field, "a name in %s is too long", field);
        pair->name = arena_strdup(&reader->out->arena, name);
        if (!pair->name)
            return no_memory(reader);
        if (!read_text(reader, field, json_object_iter_value(i), most, &pair->value))
            return false;
    }
    return true;
}

/* A duration as text, or a number of seconds. */
static bool read_duration(struct sandbox_reader *reader, const char *field, const json_t *value,
                          uint64_t *ret_ms)
{
    char text[64];
    struct brig_error error = {0};
    if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
        (void)snprintf(text, sizeof text, "%s", json_string_value(value));
    else if (json_is_number(value) && json_number_value(value) >= 0 &&
             json_number_value(value) < (double)PARSE_DURATION_MS_MAX)
        (void)snprintf(text, sizeof text, "%.3f", json_number_value(value));
    else
        return wrong_type(reader, field,
                          "a duration like \"10s\" or \"500ms\", or a number of seconds");
    return parse_duration(text, 0, ret_ms, &error) == 0 ||
           refuse(reader, ERROR_INVALID_FIELD, field, "%s: %s", field, error.message);
}

static bool read_number(struct sandbox_reader *reader, const char *field, const json_t *value,
                        uint64_t most, uint64_t *ret_number)
{
    if (!json_is_integer(value) || json_integer_value(value) <= 0 ||
        (uint64_t)json_integer_value(value) > most)
        return refuse(reader, ERROR_INVALID_FIELD, field, "%s has to be a whole number, 1 to %llu",
                      field, (unsigned long long)most);
    *ret_number = (uint64_t)json_integer_value(value);
    return true;
}

static bool read_flag(struct sandbox_reader *reader, const char *field, const json_t *value,
                      bool *ret_flag)
{
    if (!json_is_boolean(value))
        return wrong_type(reader, field, "true or false");
    *ret_flag = json_is_true(value);
    return true;
}

/* ---- fields ---- */

#define FIELD(name)                                                                                \
    static bool name(struct sandbox_reader *reader, const struct sandbox_field *field,             \
                     const json_t *value)

FIELD(read_language)
{
    return read_text(reader, field->name, value, EXECUTION_NAME_MAX, &reader->out->language);
}

FIELD(read_name)
{
    return read_text(reader, field->name, value, SANDBOX_NAME_MAX, &reader->out->name);
}

FIELD(read_timeout)
{
    return read_duration(reader, field->name, value, &reader->out->timeout_ms);
}

FIELD(read_cpu_time)
{
    return read_duration(reader, field->name, value, &reader->out->cpu_ms);
}

FIELD(read_limit)
{
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++)
        if (str_ends_with(field->name, runtime_limit_names[i]))
            return read_number(reader, field->name, value, UINT32_MAX, &reader->out->limits[i]);
    return false;
}

FIELD(read_env)
{
    struct sandbox_request *out = reader->out;
    if (!read_pairs(reader, field->name, value, EXECUTION_ENV_MAX, EXECUTION_VALUE_MAX, &out->env,
                    &out->env_count))
        return false;
    for (size_t i = 0; i < out->env_count; i++)
        if (!environment_name_is_valid(out->env[i].name))
            return refuse(reader, ERROR_INVALID_FIELD, field->name,
                          "'%s' is not a valid variable name: use letters, digits and _",
                          str_shown(out->env[i].name).text);
    return true;
}

FIELD(read_metadata)
{
    return read_pairs(reader, field->name, value, SANDBOX_METADATA_MAX, SANDBOX_METADATA_BYTES,
                      &reader->out->metadata, &reader->out->metadata_count);
}

FIELD(read_image)
{
    return read_text(reader, field->name, value, EXECUTION_NAME_MAX, &reader->out->image);
}

FIELD(read_network)
{
    return read_flag(reader, field->name, value, &reader->out->network);
}

FIELD(read_allow)
{
    bool good = read_list(reader, field->name, value, EXECUTION_ALLOW_MAX, EXECUTION_NAME_MAX,
                          &reader->out->allow, &reader->out->allow_count);
    /* New rules can be none. */
    reader->out->network =
        reader->out->allow_count > 0 || reader->out->operation != SANDBOX_NETWORK;
    return good;
}

FIELD(read_cmd)
{
    struct sandbox_request *out = reader->out;
    const char **args = arena_alloc(&out->arena, 4 * sizeof *args);
    if (!args)
        return no_memory(reader);
    if (json_is_array(value))
        return wrong_type(reader, field->name, "a string; an array is sent as argv");
    args[0] = "/bin/sh";
    args[1] = "-c";
    out->args = args;
    out->arg_count = 3;
    return read_text(reader, field->name, value, EXECUTION_VALUE_MAX, &args[2]);
}

FIELD(read_argv)
{
    if (reader->out->arg_count > 0)
        return refuse(reader, ERROR_INVALID_FIELD, field->name, "cmd and argv exclude each other");
    return read_list(reader, field->name, value, EXECUTION_ARGS_MAX, EXECUTION_VALUE_MAX,
                     &reader->out->args, &reader->out->arg_count);
}

FIELD(read_cwd)
{
    return read_text(reader, field->name, value, SANDBOX_PATH_MAX, &reader->out->cwd);
}

FIELD(read_stdin)
{
    return read_content(reader, field->name, value, EXECUTION_STDIN_MAX);
}

FIELD(read_keep)
{
    return read_flag(reader, field->name, value, &reader->out->keep_input);
}

FIELD(read_close)
{
    bool close = false;
    bool good = read_flag(reader, field->name, value, &close);
    reader->out->keep_input = !close;
    return good;
}

FIELD(read_data)
{
    return read_content(reader, field->name, value, SANDBOX_INPUT_MAX);
}

FIELD(read_pty)
{
    return read_flag(reader, field->name, value, &reader->out->pty);
}

FIELD(read_rows)
{
    return read_number(reader, field->name, value, SANDBOX_SIZE_MAX, &reader->out->rows);
}

FIELD(read_columns)
{
    return read_number(reader, field->name, value, SANDBOX_SIZE_MAX, &reader->out->columns);
}

FIELD(read_background)
{
    bool background = false;
    bool good = read_flag(reader, field->name, value, &background);
    if (background)
        reader->out->wait = SANDBOX_AT_ONCE;
    return good;
}

FIELD(read_signal)
{
    static const struct {
        const char *name;
        int number;
    } names[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT},  {"KILL", SIGKILL},
                 {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM},  {"CONT", SIGCONT},
                 {"STOP", SIGSTOP}, {"TSTP", SIGTSTP}, {"WINCH", SIGWINCH}};
    if (json_is_integer(value))
        return read_number(reader, field->name, value, 64, &reader->out->signal);
    const char *name = json_string_value(value);
    if (name && str_starts_with(name, "SIG"))
        name += 3;
    for (size_t i = 0; name && i < ARRAY_LENGTH(names); i++)
        if (strcmp(name, names[i].name) == 0) {
            reader->out->signal = (uint64_t)names[i].number;
            return true;
        }
    return wrong_type(reader, field->name, "a name like \"SIGTERM\", or a number from 1 to 64");
}

FIELD(read_path)
{
    return read_text(reader, field->name, value, SANDBOX_PATH_MAX, &reader->out->path);
}

FIELD(read_code)
{
    return read_content(reader, field->name, value, EXECUTION_CODE_MAX);
}

FIELD(read_target)
{
    return read_text(reader, field->name, value, SANDBOX_PATH_MAX, &reader->out->target);
}

#define LIMITS (ON(CREATE) | ON(START))

const struct sandbox_field sandbox_fields[] = {
    {"language", ON(CREATE), false, read_language, "string", "a name or alias of `GET /runtimes`",
     "Whose root directory, system calls and limits it has. Default: `bash`."},
    {"runtime", ON(CREATE), false, read_language, "string", "as `language`",
     "Another name for `language`."},
    {"image", ON(CREATE), false, read_image, "string",
     "a name of `brig image list` for the store `sandbox.image_dir`",
     "A container image whose files are the root directory, instead of the runtime's."},
    {"name", ON(CREATE), false, read_name, "string", "at most 128 bytes", "For people."},
    {"timeout", ON(CREATE) | ON(START), false, read_timeout, "string or number",
     "`\"90s\"`, `\"2h\"` or seconds; of a sandbox at most `sandboxes.max_timeout`",
     "After this time the sandbox, or the command, is ended. Default for a sandbox: "
     "`sandboxes.default_timeout`; for a command: none."},
    {"timeout", ON(TIMEOUT), true, read_timeout, "string or number",
     "`\"90s\"`, `\"2h\"` or seconds; at most `sandboxes.max_timeout`",
     "The new deadline, counted from now."},
    {"timeout", ON(FORK), false, read_timeout, "string or number",
     "`\"90s\"`, `\"2h\"` or seconds; at most `sandboxes.max_timeout`",
     "After this time the fork is ended. Default: `sandboxes.default_timeout`."},
    {"name", ON(FORK), false, read_name, "string", "at most 128 bytes",
     "For people. Default: that of the sandbox."},
    {"metadata", ON(FORK), false, read_metadata, "object of strings", "at most 64, of 4 KiB each",
     "Instead of that of the sandbox."},
    {"env", LIMITS, false, read_env, "object of strings", "at most 128, of 32 KiB each",
     "Variables of the environment: of every command, or of this one. A sandbox cannot set "
     "LD_*, PATH, HOME, PYTHON*, NODE_* and their kind; a command can."},
    {"limits.memory_mb", LIMITS, false, read_limit, "integer", "8 to the runtime's maximum",
     "Memory of all commands together, or of this one."},
    {"limits.pids_limit", LIMITS, false, read_limit, "integer", "1 to the runtime's maximum",
     "Processes and threads at a time."},
    {"limits.disk_mb", ON(CREATE), false, read_limit, "integer", "1 to the runtime's maximum",
     "What can be written to /workspace, /tmp and /output."},
    {"limits.cpu_percent", LIMITS, false, read_limit, "integer", "1 to the runtime's maximum",
     "Of one processor: 150 is one and a half."},
    {"network", ON(CREATE), false, read_network, "boolean", "`true`, `false`",
     "The network; without `allow` all public destinations, if the operator permits that."},
    {"allow", ON(CREATE), false, read_allow, "array of strings",
     "at most 64 names: `\"pypi.org\"`, `\"*.example.com:8443\"`", "What can be reached."},
    {"network", ON(NETWORK), false, read_network, "boolean", "`true`, `false`",
     "`true`, without `allow`: all public destinations, if the operator permits that. `false`, the "
     "default: none."},
    {"allow", ON(NETWORK), false, read_allow, "array of strings",
     "at most 64 names: `\"pypi.org\"`, `\"*.example.com:8443\"`; or none",
     "What can be reached from now on, instead of what could be before."},
    {"metadata", ON(CREATE), false, read_metadata, "object of strings", "at most 64, of 4 KiB each",
     "Anything; `GET /sandboxes` can select by it."},
    {"cmd", ON(START), false, read_cmd, "string", "at most 32 KiB", "A line for `/bin/sh -c`."},
    {"argv", ON(START), false, read_argv, "array of strings", "at most 64, of 32 KiB each",
     "Instead of `cmd`: a program and its arguments."},
    {"cwd", ON(START), false, read_cwd, "string", "a directory; relative to /workspace",
     "The working directory. Default: /workspace."},
    {"stdin", ON(START), false, read_stdin, "string or object",
     "at most 4 MiB; or `{\"content\": …, \"encoding\": \"base64\"}`", "The standard input."},
    {"keep_stdin", ON(START), false, read_keep, "boolean", "`true`, `false`",
     "Whether standard input stays open for `POST …/stdin`. Default: `false`."},
    {"pty", ON(START), false, read_pty, "boolean", "`true`, `false`",
     "Whether the command has a terminal for its three streams."},
    {"rows", ON(START) | ON(RESIZE), false, read_rows, "integer", "1 to 10000",
     "Lines of the terminal."},
    {"cols", ON(START) | ON(RESIZE), false, read_columns, "integer", "1 to 10000",
     "Columns of the terminal."},
    {"cpu_time", ON(START), false, read_cpu_time, "string or number", "as `timeout`",
     "Most CPU time of the command."},
    {"background", ON(START), false, read_background, "boolean", "`true`, `false`",
     "Whether to answer at once."},
    {"data", ON(INPUT), false, read_data, "string or object",
     "at most 1 MiB; or `{\"content\": …, \"encoding\": \"base64\"}`", "Input for the command."},
    {"close", ON(INPUT), false, read_close, "boolean", "`true`, `false`",
     "Whether the command then reads the end of the file."},
    {"signal", ON(SIGNAL), true, read_signal, "string or integer", "`\"SIGTERM\"`, `15`",
     "The signal. SIGKILL ends all processes of the command."},
    {"path", ON(MAKE), true, read_path, "string", "at most 4095 bytes; relative to /workspace",
     "The directory."},
    {"language", ON(CONTEXT_CREATE) | ON(CONTEXT_RUN), false, read_language, "string",
     "`python`, `node`, `bash` or an alias",
     "The interpreter. Default: that of the sandbox. For a run in a context: leave it out."},
    {"cwd", ON(CONTEXT_CREATE), false, read_cwd, "string", "a directory; relative to /workspace",
     "The working directory at first. Default: /workspace."},
    {"env", ON(CONTEXT_CREATE) | ON(CONTEXT_RUN), false, read_env, "object of strings",
     "at most 128, of 32 KiB each",
     "Variables of the environment: of the interpreter, or during this run."},
    {"code", ON(CONTEXT_RUN), true, read_code, "string", "at most 1 MiB", "What is run."},
    {"timeout", ON(CONTEXT_RUN), false, read_timeout, "string or number",
     "`\"90s\"`, `\"2h\"` or seconds",
     "After this time the run is interrupted, and if it does not end then, its interpreter is "
     "ended. Default: none."},
    {"from", ON(MOVE), true, read_path, "string", "at most 4095 bytes; relative to /workspace",
     "What is moved."},
    {"to", ON(MOVE), true, read_target, "string", "at most 4095 bytes; relative to /workspace",
     "Where to; a file there is replaced."},
};
const size_t sandbox_field_count = ARRAY_LENGTH(sandbox_fields);

/* ---- the whole body ---- */

static const json_t *find(const json_t *root, const char *name)
{
    const char *dot = strchr(name, '.');
    if (dot) {
        root = json_object_get(root, "limits");
        name = dot + 1;
    }
    const json_t *value = json_object_get(root, name);
    return json_is_null(value) ? NULL : value;
}

static bool is_known(unsigned operation, const char *prefix, const char *name)
{
    for (size_t i = 0; i < sandbox_field_count; i++) {
        const struct sandbox_field *field = &sandbox_fields[i];
        if (field->operations & operation && str_starts_with(field->name, prefix) &&
            strcmp(field->name + strlen(prefix), name) == 0)
            return true;
    }
    return !*prefix && strcmp(name, "limits") == 0 && operation & LIMITS;
}

/* What people write where the field has another name. */
static const char *other_name(const char *name)
{
    static const struct {
        const char *wrong, *right;
    } names[] = {{"command", "cmd"}, {"envs", "env"}, {"template", "language"}};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(names[i].wrong, name) == 0)
            return names[i].right;
    return name;
}

static bool unknown_field(struct sandbox_reader *reader, const char *prefix, const char *name)
{
    unsigned operation = 1U << reader->out->operation;
    autostr struct str known = {0};
    struct nearest nearest;
    if (strcmp(name, "templateID") == 0)
        return refuse(reader, ERROR_UNKNOWN_FIELD, name,
                      "unknown field 'templateID'; for clients of E2B add /e2b to E2B_API_URL");
    nearest_begin(&nearest, other_name(name));
    for (size_t i = 0; i < sandbox_field_count; i++) {
        const struct sandbox_field *field = &sandbox_fields[i];
        const char *part = field->name + strlen(prefix);
        if (!(field->operations & operation) || !str_starts_with(field->name, prefix))
            continue;
        nearest_offer(&nearest, part, strlen(part));
        str_appendf(&known, "%s%s", known.length ? ", " : "", part);
    }
    if (nearest.best[0])
        return refuse(reader, ERROR_UNKNOWN_FIELD, str_shown(name).text,
                      "unknown field '%s%s'. Did you mean '%s%s'?", prefix, str_shown(name).text,
                      prefix, nearest.best);
    return refuse(reader, ERROR_UNKNOWN_FIELD, str_shown(name).text,
                  "unknown field '%s%s'; allowed are %s", prefix, str_shown(name).text,
                  known.data ? known.data : "none");
}

static bool check_names(struct sandbox_reader *reader, json_t *object, const char *prefix)
{
    unsigned operation = 1U << reader->out->operation;
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        const char *name = json_object_iter_key(at);
        if (strchr(name, '.') || !is_known(operation, prefix, name))
            return unknown_field(reader, prefix, name);
    }
    return true;
}

static bool read_fields(struct sandbox_reader *reader, const json_t *root)
{
    unsigned operation = 1U << reader->out->operation;
    for (size_t i = 0; i < sandbox_field_count; i++) {
        const struct sandbox_field *field = &sandbox_fields[i];
        const json_t *value = field->operations & operation ? find(root, field->name) : NULL;
        if (field->operations & operation && !value && field->required)
            return refuse(reader, ERROR_MISSING_FIELD, field->name, "the field '%s' is missing",
                          field->name);
        if (value && !field->read(reader, field, value))
            return false;
    }
    if (reader->out->operation == SANDBOX_START && reader->out->arg_count == 0)
        return refuse(reader, ERROR_MISSING_FIELD, "cmd", "the field 'cmd' or 'argv' is missing");
    return true;
}

bool sandbox_request_read(const char *text, size_t length, struct sandbox_request *request,
                          struct request_fault *fault)
{
    json_error_t error;
    struct sandbox_reader reader = {.out = request, .fault = fault};
    json_auto_t *root = NULL;
    *fault = (struct request_fault){0};
    if (length == 0)
        return refuse(&reader, ERROR_INVALID_JSON, "", REQUEST_NO_BODY);
    if (request_shape(text, length, REQUEST_DEPTH_MAX, REQUEST_VALUES_MAX) != REQUEST_SHAPE_OK)
        return refuse(&reader, ERROR_INVALID_JSON, "",
                      "the JSON is nested deeper than %d levels, or has more than %d values",
                      REQUEST_DEPTH_MAX, REQUEST_VALUES_MAX);
    root = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!root)
        return refuse(&reader, ERROR_INVALID_JSON, "", "line %d, column %d: %s", error.line,
                      error.column, error.text);
    json_t *limits = json_object_get(root, "limits");
    if (!json_is_object(root) || (limits && !json_is_object(limits) && !json_is_null(limits)))
        return refuse(&reader, ERROR_INVALID_JSON, "", "the body has to be a JSON object");
    return check_names(&reader, root, "") && check_names(&reader, limits, "limits.") &&
           read_fields(&reader, root);
}
