/* SPDX-License-Identifier: MIT */
/* Parses the body of POST /execute: a table of fields, and a function for each kind. */
#include "server/http/request.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/net_rules.h"
#include "server/config/config.h"
#include "server/environment.h"
#include "server/executor/jail_check.h"

#define PERMISSIONS "permissions.network"
#define FIELD_OUT struct execution_request

struct decoder {
    struct field_reader fields; /* first: readers of fields are given this */
    const struct server_config *config;
    const struct config_list *roots; /* for work_dir */
    const struct runtime *runtime;   /* from `language`, which is read first */
    struct execution_request *out;
};

static struct decoder *decoder_of(struct field_reader *reader)
{
    return (struct decoder *)reader;
}

/* ---- Fields ---- */

FIELD(read_language)
{
    struct decoder *d = decoder_of(reader);
    const char *name = NULL;
    if (!fields_text(reader, field->name, value, EXECUTION_NAME_MAX, &name))
        return false;
    d->runtime = config_find_runtime(d->config, name);
    if (!d->runtime) {
        struct brig_error error = {0};
        (void)config_fail_language(d->config, name, &error);
        return fields_refuse(reader, ERROR_UNKNOWN_LANGUAGE, field->name, "%s", error.message);
    }
    d->out->language = d->runtime->name; /* owned by the configuration */
    return true;
}

FIELD(read_code)
{
    const struct execution_bytes *code = &decoder_of(reader)->out->code;
    if (!json_is_string(value))
        return fields_wrong_type(reader, field->name, "a string");
    if (!field_bytes(reader, field, value))
        return false;
    return code->length > 0 ||
           fields_refuse(reader, ERROR_INVALID_FIELD, field->name, "code is empty");
}

/* `run` sets the limits of the run stage, some of which have an older name, too. */
static bool is_first(struct field_reader *reader, const struct field *field)
{
    uint64_t before;
    memcpy(&before, (const char *)reader->out + field->at, sizeof before);
    return !before ||
           fields_refuse(reader, ERROR_INVALID_FIELD, field->name, "%s is given twice: also as %s",
                         field->name,
                         str_ends_with(field->name, "timeout") ? "timeout" : "limits.memory_mb");
}

FIELD(read_timeout)
{
    return is_first(reader, field) && field_duration(reader, field, value);
}

FIELD(read_limit)
{
    return is_first(reader, field) && field_number(reader, field, value);
}

/* A request may ask for names and their subdomains. Addresses, services of the host and "*" are up
 * to the operator. */
static bool check_destination(struct field_reader *reader, const char *field, const char *text)
{
    struct net_rule rule;
    struct brig_error error = {0};
    if (net_rule_parse(text, false, &rule, &error) < 0)
        return fields_refuse(reader, ERROR_INVALID_FIELD, field, "%s: %s", field, error.message);
    bool wide =
        rule.kind == NET_RULE_ANY || (rule.kind == NET_RULE_BELOW && !strchr(rule.name, '.'));
    if (wide && !decoder_of(reader)->config->sandbox.allow_network)
        return fields_refuse(reader, ERROR_NETWORK_NOT_PERMITTED, field,
                             "'%s' is too wide: name hosts, like \"pypi.org\" or \"*.example.com\"",
                             str_shown(text).text);
    if (!wide && rule.kind != NET_RULE_NAME && rule.kind != NET_RULE_BELOW)
        return fields_refuse(
            reader, ERROR_NETWORK_NOT_PERMITTED, field,
            "'%s' is not a host name: a request cannot ask for addresses or services of "
            "the server's host",
            str_shown(text).text);
    return true;
}

FIELD(read_allow)
{
    const struct execution_request *out = decoder_of(reader)->out;
    if (!field_texts(reader, field, value))
        return false;
    for (size_t i = 0; i < out->allow_count; i++)
        if (!check_destination(reader, field->name, out->allow[i]))
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

FIELD(read_work_dir)
{
    struct decoder *d = decoder_of(reader);
    const char *path = "";
    if (!fields_text(reader, field->name, value, EXECUTION_PATH_MAX, &path))
        return false;
    if (path[0] != '/')
        return fields_refuse(reader, ERROR_INVALID_FIELD, field->name,
                             "work_dir '%s' is not absolute", str_shown(path).text);
    bool own = d->roots != &d->config->sandbox.allowed_workdir_roots;
    if (!is_below_a_root(d->roots, path))
        return fields_refuse(
            reader, ERROR_WORK_DIR_NOT_ALLOWED, field->name,
            "work_dir '%s' is not below %s, or is one that is never given to a run",
            str_shown(path).text,
            own ? "workdir_roots of this API key" : "sandbox.allowed_workdir_roots");
    d->out->work_dir = path;
    return true;
}

FIELD(read_env)
{
    const struct execution_request *out = decoder_of(reader)->out;
    if (!field_pairs(reader, field, value))
        return false;
    for (size_t i = 0; i < out->env_count; i++) {
        const char *name = out->env[i].name;
        char path[REQUEST_FIELD_MAX];
        if (!environment_name_is_valid(name))
            return fields_refuse(reader, ERROR_INVALID_FIELD, fields_below(path, field->name, name),
                                 "'%s' is not a valid variable name: use letters, digits and _",
                                 str_shown(name).text);
        if (environment_name_is_refused(name))
            return fields_refuse(reader, ERROR_INVALID_FIELD, fields_below(path, field->name, name),
                                 "the variable '%s' changes what an interpreter loads or where it "
                                 "looks, and is refused",
                                 str_shown(name).text);
    }
    return true;
}

static bool read_file(struct field_reader *reader, const char *path, const char *name,
                      const json_t *value, void *ret_item)
{
    const struct decoder *d = decoder_of(reader);
    struct execution_file *ret_file = ret_item;
    if (strlen(name) > EXECUTION_NAME_MAX || !execution_file_name_is_valid(name))
        return fields_refuse(reader, ERROR_INVALID_FIELD, path,
                             "'%s' is not a valid file name: use a relative path without . and .., "
                             "at most %d bytes in %d parts",
                             str_shown(name).text, EXECUTION_NAME_MAX, EXECUTION_PARTS_MAX);
    if (d->runtime->input == RUNTIME_FILE &&
        strcmp(name, runtime_file_name(d->runtime, d->out)) == 0)
        return fields_refuse(reader, ERROR_INVALID_FIELD, path,
                             "'%s' is the file that the code is in", name);
    ret_file->name = arena_strdup(reader->arena, name);
    return (ret_file->name || fields_no_memory(reader)) &&
           fields_bytes(reader, path, value, EXECUTION_FILE_BYTES_MAX, &ret_file->content);
}

FIELD(read_files)
{
    return fields_members(reader, field, value, sizeof(struct execution_file), read_file);
}

FIELD(read_returns)
{
    const struct execution_request *out = decoder_of(reader)->out;
    if (!field_texts(reader, field, value))
        return false;
    for (size_t i = 0; i < out->return_count; i++)
        if (!execution_file_name_is_valid(out->returns[i]))
            return fields_refuse(reader, ERROR_INVALID_FIELD, field->name,
                                 "'%s' is not a valid file pattern: it is relative to the output "
                                 "directory, without . and ..",
                                 str_shown(out->returns[i]).text);
    return true;
}

FIELD(read_priority)
{
    json_int_t priority = json_integer_value(value);
    if (!json_is_integer(value) || priority < -EXECUTION_PRIORITY_MAX ||
        priority > EXECUTION_PRIORITY_MAX)
        return fields_wrong_type(reader, field->name, "a whole number from -10 to 10");
    decoder_of(reader)->out->priority = (int)priority;
    return true;
}

/* language is first, because the limits of other fields depend on it. */
const struct field request_fields[] = {
    {"language", 1, true, FIELD_OWN(read_language), "string", "a name or alias of `GET /runtimes`",
     "What runs the code."},
    {"code", 1, true, FIELD_ONE(read_code, code, EXECUTION_CODE_MAX), "string", "1 byte to 1 MiB",
     "The program; for an agent the prompt."},
    {"timeout", 1, false, FIELD_ONE(read_timeout, timeout_ms, 0), "string or number",
     "`\"500ms\"`, `\"10s\"`, `\"2m\"` or seconds; at most that of the runtime",
     "Wall clock. Default: the runtime's, 10 s."},
    {"limits.memory_mb", 1, false, FIELD_ONE(read_limit, limits[EXECUTION_MEMORY_MB], UINT32_MAX),
     "integer", "8 to the runtime's maximum", "Memory. Default 256."},
    {"limits.pids_limit", 1, false, FIELD_ONE(read_limit, limits[EXECUTION_PIDS], UINT32_MAX),
     "integer", "1 to the runtime's maximum", "Processes and threads at a time. Default 50."},
    {"limits.disk_mb", 1, false, FIELD_ONE(read_limit, limits[EXECUTION_DISK_MB], UINT32_MAX),
     "integer", "1 to the runtime's maximum",
     "What can be written to /workspace, /tmp and the output directory. Default 100."},
    {"limits.cpu_percent", 1, false,
     FIELD_ONE(read_limit, limits[EXECUTION_CPU_PERCENT], UINT32_MAX), "integer",
     "1 to the runtime's maximum", "Of one processor: 150 is one and a half. Default 100."},
    {"permissions.network.enabled", 1, false, FIELD_ONE(field_flag, network, 0), "boolean",
     "`true`, `false`",
     "The network; without `allow` all public destinations, if the operator permits that. "
     "An agent always reaches its own destinations, whatever this says."},
    {"permissions.network.allow", 1, false,
     FIELD_MANY(read_allow, allow, allow_count, EXECUTION_NAME_MAX, EXECUTION_ALLOW_MAX),
     "array of strings",
     "at most 64 names: `\"pypi.org\"`, `\"*.example.com:8443\"`; one port, or 443 and 80",
     "What can be reached."},
    {"work_dir", 1, false, FIELD_OWN(read_work_dir), "string",
     "absolute, below `sandbox.allowed_workdir_roots`, or `workdir_roots` of the key",
     "A directory of the server's machine, read-write at /workspace; for agents."},
    {"stdin", 1, false, FIELD_ONE(field_bytes, stdin_bytes, EXECUTION_STDIN_MAX),
     "string or object", "at most 4 MiB; or `{\"content\": …, \"encoding\": \"base64\"}`",
     "The standard input."},
    {"args", 1, false,
     FIELD_MANY(field_texts, args, arg_count, EXECUTION_VALUE_MAX, EXECUTION_ARGS_MAX),
     "array of strings", "at most 64, of 32 KiB each; with `env` 1.5 MiB in all",
     "Behind the file of the code."},
    {"env", 1, false, FIELD_MANY(read_env, env, env_count, EXECUTION_VALUE_MAX, EXECUTION_ENV_MAX),
     "object of strings",
     "at most 128, of 32 KiB each; LD_*, PATH, HOME, PYTHON*, NODE_* and their kind are refused",
     "Variables of the environment."},
    {"main", 1, false, FIELD_ONE(field_text, main, EXECUTION_NAME_MAX), "string",
     "like a name in `files`",
     "The name of the code's file in /workspace. Default: the runtime's, like `main.py`."},
    {"files", 1, false, FIELD_MANY(read_files, files, file_count, 0, EXECUTION_FILES_MAX), "object",
     "at most 256; name, of at most 16 parts, to text, or to `{\"content\": …, \"encoding\": "
     "\"base64\"}`",
     "Files beside the code in /workspace."},
    {"return_files", 1, false,
     FIELD_MANY(read_returns, returns, return_count, EXECUTION_NAME_MAX, EXECUTION_RETURNS_MAX),
     "array of strings", "at most 32 patterns (`*`, `?`, `[…]`)",
     "Which files of the output directory come back in `files`."},
    {"priority", 1, false, FIELD_OWN(read_priority), "integer",
     "-10 to 10, or less: `queue.max_priority`",
     "`POST /executions` only: those with a higher one run first. Default 0."},
    {"callback.url", 1, false, FIELD_ONE(field_text, callback_url, EXECUTION_URL_MAX), "string",
     "`http://…` or `https://…`, at most 2048 bytes, a public address",
     "`POST /executions` only: is sent the result; see *Callbacks*."},
    {"callback.secret", 1, false, FIELD_ONE(field_text, callback_secret, EXECUTION_SECRET_MAX),
     "string", "1 to 256 bytes", "Signs the callback. Default: `callback.secret` of the server."},
    {"run.timeout", 1, false, FIELD_ONE(read_timeout, timeout_ms, 0), "string or number",
     "as `timeout`", "Another name of `timeout`."},
    {"run.cpu_time", 1, false, FIELD_ONE(read_timeout, cpu_ms, 0), "string or number",
     "as `timeout`",
     "CPU time of all processes of the run stage. Default: no limit but `timeout`."},
    {"run.memory_mb", 1, false, FIELD_ONE(read_limit, limits[EXECUTION_MEMORY_MB], UINT32_MAX),
     "integer", "as `limits.memory_mb`", "Another name of `limits.memory_mb`."},
    {"run.output_bytes", 1, false, FIELD_ONE(read_limit, output_bytes, EXECUTION_OUTPUT_MAX),
     "integer", "1 to 1048576",
     "A stage that writes more to one of its streams is ended. Default: what is too much is left "
     "out."},
    {"compile.timeout", 1, false, FIELD_ONE(read_timeout, compile.timeout_ms, 0),
     "string or number", "as `timeout`",
     "Wall clock of the compile stage. Default: the runtime's."},
    {"compile.cpu_time", 1, false, FIELD_ONE(read_timeout, compile.cpu_ms, 0), "string or number",
     "as `timeout`", "As `run.cpu_time`, of the compile stage."},
    {"compile.memory_mb", 1, false, FIELD_ONE(read_limit, compile.memory_mb, UINT32_MAX), "integer",
     "as `limits.memory_mb`", "Memory of the compile stage. Default: the runtime's."},
    {"compile.output_bytes", 1, false,
     FIELD_ONE(read_limit, compile.output_bytes, EXECUTION_OUTPUT_MAX), "integer", "1 to 1048576",
     "As `run.output_bytes`, of the compile stage."},
    {"compile.args", 1, false,
     FIELD_MANY(field_texts, compile_args, compile_arg_count, EXECUTION_VALUE_MAX,
                EXECUTION_ARGS_MAX),
     "array of strings", "as `args`", "More arguments of the compiler."},
    {"combined", 1, false, FIELD_ONE(field_flag, ordered, 0), "boolean", "`true`, `false`",
     "Whether the result has `combined`. Default `false`."},
};
const size_t request_field_count = ARRAY_LENGTH(request_fields);

/* ---- The whole body ---- */

/* Checks combinations of fields, and all that the executor will check again. */
static bool check_whole(struct decoder *d)
{
    struct field_reader *reader = &d->fields;
    struct brig_error error = {0};
    const char *field = "";
    if (!d->out->network && d->out->allow_count > 0)
        return fields_refuse(reader, ERROR_INVALID_FIELD, PERMISSIONS,
                             "%s.allow names hosts, but %s.enabled is not true", PERMISSIONS,
                             PERMISSIONS);
    if (jail_check_request(d->config, d->runtime, d->out, &field, &error) == 0)
        return true;
    return fields_refuse(
        reader, str_equal(field, PERMISSIONS) ? ERROR_NETWORK_NOT_PERMITTED : ERROR_INVALID_FIELD,
        field, "%s", error.message);
}

bool request_read(const char *text, size_t length, const struct server_config *config,
                  const struct config_list *roots, struct execution_request *ret,
                  const struct runtime **ret_runtime, struct request_fault *fault)
{
    static const char *const sections[] = {"",         "limits", "permissions", PERMISSIONS,
                                           "callback", "run",    "compile",     NULL};
    *ret = (struct execution_request){.callback_url = "", .callback_secret = ""};
    *fault = (struct request_fault){0};
    struct decoder d = {.fields = {.fields = request_fields,
                                   .count = request_field_count,
                                   .operations = 1,
                                   .sections = sections,
                                   .arena = &ret->arena,
                                   .out = ret,
                                   .fault = fault,
                                   .items = true},
                        .config = config,
                        .roots = roots,
                        .out = ret};
    json_auto_t *root = fields_parse(&d.fields, text, length);
    if (!root || !fields_read(&d.fields, root) || !check_whole(&d)) {
        execution_request_done(ret);
        return false;
    }
    *ret_runtime = d.runtime;
    return true;
}
