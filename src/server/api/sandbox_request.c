/* SPDX-License-Identifier: MIT */
/* Parses the bodies of requests about sandboxes: a table of fields, and a function for each kind. */
#include "server/api/sandbox_request.h"

#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/environment.h"

#define FIELD_OUT struct sandbox_request
#define ON(operation) (1U << SANDBOX_##operation)
_Static_assert(SANDBOX_OPERATIONS_ <= 32, "field.operations has a bit for each");

/* ---- fields ---- */

FIELD(read_env)
{
    const struct sandbox_request *out = reader->out;
    if (!field_pairs(reader, field, value))
        return false;
    for (size_t i = 0; i < out->env_count; i++)
        if (!environment_name_is_valid(out->env[i].name))
            return fields_refuse(reader, ERROR_INVALID_FIELD, field->name,
                                 "'%s' is not a valid variable name: use letters, digits and _",
                                 str_shown(out->env[i].name).text);
    return true;
}

FIELD(read_allow)
{
    struct sandbox_request *out = reader->out;
    bool good = field_texts(reader, field, value);
    /* New rules can be none. */
    out->network = out->allow_count > 0 || out->operation != SANDBOX_NETWORK;
    return good;
}

FIELD(read_cmd)
{
    struct sandbox_request *out = reader->out;
    const char **args = arena_alloc(&out->arena, 4 * sizeof *args);
    if (!args)
        return fields_no_memory(reader);
    if (json_is_array(value))
        return fields_wrong_type(reader, field->name, "a string; an array is sent as argv");
    args[0] = "/bin/sh";
    args[1] = "-c";
    out->args = args;
    out->arg_count = 3;
    return fields_text(reader, field->name, value, EXECUTION_VALUE_MAX, &args[2]);
}

FIELD(read_argv)
{
    const struct sandbox_request *out = reader->out;
    if (out->arg_count > 0)
        return fields_refuse(reader, ERROR_INVALID_FIELD, field->name,
                             "cmd and argv exclude each other");
    return field_texts(reader, field, value);
}

FIELD(read_close)
{
    struct sandbox_request *out = reader->out;
    bool good = field_flag(reader, field, value);
    out->keep_input = !out->keep_input;
    return good;
}

FIELD(read_background)
{
    struct sandbox_request *out = reader->out;
    if (json_is_true(value))
        out->wait = SANDBOX_AT_ONCE;
    return json_is_boolean(value) || fields_wrong_type(reader, field->name, "true or false");
}

FIELD(read_signal)
{
    struct sandbox_request *out = reader->out;
    static const struct {
        const char *name;
        int number;
    } names[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT},  {"KILL", SIGKILL},
                 {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM},  {"CONT", SIGCONT},
                 {"STOP", SIGSTOP}, {"TSTP", SIGTSTP}, {"WINCH", SIGWINCH}};
    if (json_is_integer(value))
        return fields_number(reader, field->name, value, 64, &out->signal);
    const char *name = json_string_value(value);
    if (name && str_starts_with(name, "SIG"))
        name += 3;
    for (size_t i = 0; name && i < ARRAY_LENGTH(names); i++)
        if (strcmp(name, names[i].name) == 0) {
            out->signal = (uint64_t)names[i].number;
            return true;
        }
    return fields_wrong_type(reader, field->name,
                             "a name like \"SIGTERM\", or a number from 1 to 64");
}

#define LIMITS (ON(CREATE) | ON(START))

const struct field sandbox_fields[] = {
    {"language", ON(CREATE), false, FIELD_ONE(field_text, language, EXECUTION_NAME_MAX), "string",
     "a name or alias of `GET /runtimes`",
     "Whose root directory, system calls and limits it has. Default: `bash`."},
    {"runtime", ON(CREATE), false, FIELD_ONE(field_text, language, EXECUTION_NAME_MAX), "string",
     "as `language`", "Another name for `language`."},
    {"image", ON(CREATE), false, FIELD_ONE(field_text, image, EXECUTION_NAME_MAX), "string",
     "a name of `brig image list` for the store `sandbox.image_dir`",
     "A container image whose files are the root directory, instead of the runtime's."},
    {"name", ON(CREATE), false, FIELD_ONE(field_text, name, SANDBOX_NAME_MAX), "string",
     "at most 128 bytes", "For people."},
    {"timeout", ON(CREATE) | ON(START), false, FIELD_ONE(field_duration, timeout_ms, 0),
     "string or number",
     "`\"90s\"`, `\"2h\"` or seconds; of a sandbox at most `sandboxes.max_timeout`",
     "After this time the sandbox, or the command, is ended. Default for a sandbox: "
     "`sandboxes.default_timeout`; for a command: none."},
    {"timeout", ON(TIMEOUT), true, FIELD_ONE(field_duration, timeout_ms, 0), "string or number",
     "`\"90s\"`, `\"2h\"` or seconds; at most `sandboxes.max_timeout`",
     "The new deadline, counted from now."},
    {"timeout", ON(FORK), false, FIELD_ONE(field_duration, timeout_ms, 0), "string or number",
     "`\"90s\"`, `\"2h\"` or seconds; at most `sandboxes.max_timeout`",
     "After this time the fork is ended. Default: `sandboxes.default_timeout`."},
    {"name", ON(FORK), false, FIELD_ONE(field_text, name, SANDBOX_NAME_MAX), "string",
     "at most 128 bytes", "For people. Default: that of the sandbox."},
    {"metadata", ON(FORK), false,
     FIELD_MANY(field_pairs, metadata, metadata_count, SANDBOX_METADATA_BYTES,
                SANDBOX_METADATA_MAX),
     "object of strings", "at most 64, of 4 KiB each", "Instead of that of the sandbox."},
    {"env", LIMITS, false,
     FIELD_MANY(read_env, env, env_count, EXECUTION_VALUE_MAX, EXECUTION_ENV_MAX),
     "object of strings", "at most 128, of 32 KiB each",
     "Variables of the environment: of every command, or of this one. A sandbox cannot set "
     "LD_*, PATH, HOME, PYTHON*, NODE_* and their kind; a command can."},
    {"limits.memory_mb", LIMITS, false,
     FIELD_ONE(field_number, limits[EXECUTION_MEMORY_MB], UINT32_MAX), "integer",
     "8 to the runtime's maximum", "Memory of all commands together, or of this one."},
    {"limits.pids_limit", LIMITS, false,
     FIELD_ONE(field_number, limits[EXECUTION_PIDS], UINT32_MAX), "integer",
     "1 to the runtime's maximum", "Processes and threads at a time."},
    {"limits.disk_mb", ON(CREATE), false,
     FIELD_ONE(field_number, limits[EXECUTION_DISK_MB], UINT32_MAX), "integer",
     "1 to the runtime's maximum", "What can be written to /workspace, /tmp and /output."},
    {"limits.cpu_percent", LIMITS, false,
     FIELD_ONE(field_number, limits[EXECUTION_CPU_PERCENT], UINT32_MAX), "integer",
     "1 to the runtime's maximum", "Of one processor: 150 is one and a half."},
    {"network", ON(CREATE), false, FIELD_ONE(field_flag, network, 0), "boolean", "`true`, `false`",
     "The network; without `allow` all public destinations, if the operator permits that."},
    {"allow", ON(CREATE), false,
     FIELD_MANY(read_allow, allow, allow_count, EXECUTION_NAME_MAX, EXECUTION_ALLOW_MAX),
     "array of strings", "at most 64 names: `\"pypi.org\"`, `\"*.example.com:8443\"`",
     "What can be reached."},
    {"network", ON(NETWORK), false, FIELD_ONE(field_flag, network, 0), "boolean", "`true`, `false`",
     "`true`, without `allow`: all public destinations, if the operator permits that. `false`, the "
     "default: none."},
    {"allow", ON(NETWORK), false,
     FIELD_MANY(read_allow, allow, allow_count, EXECUTION_NAME_MAX, EXECUTION_ALLOW_MAX),
     "array of strings", "at most 64 names: `\"pypi.org\"`, `\"*.example.com:8443\"`; or none",
     "What can be reached from now on, instead of what could be before."},
    {"metadata", ON(CREATE), false,
     FIELD_MANY(field_pairs, metadata, metadata_count, SANDBOX_METADATA_BYTES,
                SANDBOX_METADATA_MAX),
     "object of strings", "at most 64, of 4 KiB each",
     "Anything; `GET /sandboxes` can select by it."},
    {"cmd", ON(START), false, FIELD_OWN(read_cmd), "string", "at most 32 KiB",
     "A line for `/bin/sh -c`."},
    {"argv", ON(START), false,
     FIELD_MANY(read_argv, args, arg_count, EXECUTION_VALUE_MAX, EXECUTION_ARGS_MAX),
     "array of strings", "at most 64, of 32 KiB each",
     "Instead of `cmd`: a program and its arguments."},
    {"cwd", ON(START), false, FIELD_ONE(field_text, cwd, SANDBOX_PATH_MAX), "string",
     "a directory; relative to /workspace", "The working directory. Default: /workspace."},
    {"stdin", ON(START), false, FIELD_ONE(field_bytes, bytes, EXECUTION_STDIN_MAX),
     "string or object", "at most 4 MiB; or `{\"content\": …, \"encoding\": \"base64\"}`",
     "The standard input."},
    {"keep_stdin", ON(START), false, FIELD_ONE(field_flag, keep_input, 0), "boolean",
     "`true`, `false`", "Whether standard input stays open for `POST …/stdin`. Default: `false`."},
    {"pty", ON(START), false, FIELD_ONE(field_flag, pty, 0), "boolean", "`true`, `false`",
     "Whether the command has a terminal for its three streams."},
    {"rows", ON(START) | ON(RESIZE), false, FIELD_ONE(field_number, rows, SANDBOX_SIZE_MAX),
     "integer", "1 to 10000", "Lines of the terminal."},
    {"cols", ON(START) | ON(RESIZE), false, FIELD_ONE(field_number, columns, SANDBOX_SIZE_MAX),
     "integer", "1 to 10000", "Columns of the terminal."},
    {"cpu_time", ON(START), false, FIELD_ONE(field_duration, cpu_ms, 0), "string or number",
     "as `timeout`", "Most CPU time of the command."},
    {"background", ON(START), false, FIELD_OWN(read_background), "boolean", "`true`, `false`",
     "Whether to answer at once."},
    {"data", ON(INPUT), false, FIELD_ONE(field_bytes, bytes, EXECUTION_INPUT_MAX),
     "string or object", "at most 1 MiB; or `{\"content\": …, \"encoding\": \"base64\"}`",
     "Input for the command."},
    {"close", ON(INPUT), false, FIELD_ONE(read_close, keep_input, 0), "boolean", "`true`, `false`",
     "Whether the command then reads the end of the file."},
    {"signal", ON(SIGNAL), true, FIELD_OWN(read_signal), "string or integer", "`\"SIGTERM\"`, `15`",
     "The signal. SIGKILL ends all processes of the command."},
    {"path", ON(MAKE), true, FIELD_ONE(field_text, path, SANDBOX_PATH_MAX), "string",
     "at most 4095 bytes; relative to /workspace", "The directory."},
    {"language", ON(CONTEXT_CREATE) | ON(CONTEXT_RUN), false,
     FIELD_ONE(field_text, language, EXECUTION_NAME_MAX), "string",
     "`python`, `node`, `bash` or an alias",
     "The interpreter. Default: that of the sandbox. For a run in a context: leave it out."},
    {"cwd", ON(CONTEXT_CREATE), false, FIELD_ONE(field_text, cwd, SANDBOX_PATH_MAX), "string",
     "a directory; relative to /workspace", "The working directory at first. Default: /workspace."},
    {"env", ON(CONTEXT_CREATE) | ON(CONTEXT_RUN), false,
     FIELD_MANY(read_env, env, env_count, EXECUTION_VALUE_MAX, EXECUTION_ENV_MAX),
     "object of strings", "at most 128, of 32 KiB each",
     "Variables of the environment: of the interpreter, or during this run."},
    {"code", ON(CONTEXT_RUN), true, FIELD_ONE(field_bytes, bytes, EXECUTION_CODE_MAX), "string",
     "at most 1 MiB", "What is run."},
    {"timeout", ON(CONTEXT_RUN), false, FIELD_ONE(field_duration, timeout_ms, 0),
     "string or number", "`\"90s\"`, `\"2h\"` or seconds",
     "After this time the run is interrupted, and if it does not end then, its interpreter is "
     "ended. Default: none."},
    {"from", ON(MOVE), true, FIELD_ONE(field_text, path, SANDBOX_PATH_MAX), "string",
     "at most 4095 bytes; relative to /workspace", "What is moved."},
    {"to", ON(MOVE), true, FIELD_ONE(field_text, target, SANDBOX_PATH_MAX), "string",
     "at most 4095 bytes; relative to /workspace", "Where to; a file there is replaced."},
};
const size_t sandbox_field_count = ARRAY_LENGTH(sandbox_fields);

/* ---- the whole body ---- */

bool sandbox_request_read(const char *text, size_t length, struct sandbox_request *request,
                          struct request_fault *fault)
{
    static const char *const sections[] = {"", "limits", NULL};
    struct field_reader reader = {.fields = sandbox_fields,
                                  .count = sandbox_field_count,
                                  .operations = 1U << request->operation,
                                  .sections = sections,
                                  .arena = &request->arena,
                                  .out = request,
                                  .fault = fault};
    *fault = (struct request_fault){0};
    json_auto_t *root = fields_parse(&reader, text, length);
    if (json_object_get(root, "templateID"))
        return fields_refuse(
            &reader, ERROR_UNKNOWN_FIELD, "templateID",
            "unknown field 'templateID'; for clients of E2B add /e2b to E2B_API_URL");
    if (!root || !fields_read(&reader, root))
        return false;
    return request->operation != SANDBOX_START || request->arg_count > 0 ||
           fields_refuse(&reader, ERROR_MISSING_FIELD, "cmd",
                         "the field 'cmd' or 'argv' is missing");
}
