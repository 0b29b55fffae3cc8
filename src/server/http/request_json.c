/* SPDX-License-Identifier: MIT */
/* The body of POST /execute: the table of its fields, and reading it by that. */
#include "server/http/request_json.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config.h"
#include "server/executor/jail_check.h"
#include "server/http/json_shape.h"
#include "server/http/request_read.h"

static void own_json(json_t **value)
{
    json_decref(*value);
}
#define autojson __attribute__((cleanup(own_json)))

/* First of all: what the others may say depends on it. */
static bool read_language(struct request_decoder *d, const json_t *object)
{
    const json_t *value = json_object_get(object, "language");
    const char *name = NULL;
    if (!value || json_is_null(value))
        return request_refuse(d, ERROR_MISSING_FIELD, "language", "language is missing");
    if (!request_read_text(d, "language", value, EXECUTION_NAME_MAX, &name))
        return false;
    d->runtime = config_find_runtime(d->config, name);
    if (!d->runtime) {
        struct brig_error error = {0};
        (void)config_fail_language(d->config, name, &error);
        return request_refuse(d, ERROR_UNKNOWN_LANGUAGE, "language", "%s", error.message);
    }
    d->out->language = arena_strdup(&d->out->arena, d->runtime->name);
    return d->out->language || request_no_memory(d);
}

/* ---- The whole ---- */

static const struct request_reader fields[] = {
    {.name = "language", .required = true},
    {.name = "code", .read = request_read_code, .required = true},
    {.name = "timeout", .read = request_read_timeout},
    {.name = "limits", .read = request_read_limits},
    {.name = "permissions", .read = request_read_permissions},
    {.name = "work_dir", .read = request_read_work_dir},
    {.name = "stdin", .read = request_read_stdin},
    {.name = "args", .read = request_read_args},
    {.name = "env", .read = request_read_env},
    {.name = "files", .read = request_read_files},
    {.name = "return_files", .read = request_read_returns},
};

static bool check_shape(struct request_decoder *d, const char *text, size_t length)
{
    switch (json_shape(text, length, REQUEST_DEPTH_MAX, REQUEST_VALUES_MAX)) {
    case JSON_SHAPE_OK:
        return true;
    case JSON_SHAPE_TOO_DEEP:
        return request_refuse(d, ERROR_INVALID_JSON, "", "the JSON is nested deeper than %d levels",
                              REQUEST_DEPTH_MAX);
    case JSON_SHAPE_TOO_MANY:
        return request_refuse(d, ERROR_INVALID_JSON, "", "the JSON has more than %d values",
                              REQUEST_VALUES_MAX);
    }
    return false;
}

/* What the executor would refuse: how fields go together, and what the readers know nothing of. */
static bool check_whole(struct request_decoder *d)
{
    struct brig_error error = {0};
    const char *field = "";
    if (jail_check_request(d->config, d->runtime, d->out, &field, &error) == 0)
        return true;
    return request_refuse(d, ERROR_INVALID_FIELD, field, "%s", error.message);
}

static bool decode(struct request_decoder *d, const char *text, size_t length)
{
    json_error_t error;
    if (!check_shape(d, text, length))
        return false;
    autojson json_t *object =
        json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!object)
        return request_refuse(d, ERROR_INVALID_JSON, "", "line %d, column %d: %s", error.line,
                              error.column, error.text);
    if (!json_is_object(object))
        return request_refuse(d, ERROR_INVALID_JSON, "", "the body has to be a JSON object");
    return read_language(d, object) &&
           request_read_object(d, "", object, fields, ARRAY_LENGTH(fields)) && check_whole(d);
}

bool request_json_decode(const char *text, size_t length, const struct server_config *config,
                         const struct config_list *roots, struct execution_request *ret,
                         const struct runtime **ret_runtime, struct request_fault *fault)
{
    *ret = (struct execution_request){0};
    *fault = (struct request_fault){0};
    struct request_decoder d = {.config = config, .roots = roots, .out = ret, .fault = fault};
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
    {"limits.memory_mb", "integer", false, "8 to the runtime's maximum", "Memory. Default 256."},
    {"limits.pids_limit", "integer", false, "1 to the runtime's maximum",
     "Processes and threads at a time. Default 50."},
    {"limits.disk_mb", "integer", false, "1 to the runtime's maximum",
     "What can be written to /tmp and the output directory. Default 100."},
    {"limits.cpu_percent", "integer", false, "1 to the runtime's maximum",
     "Of one processor: 150 is one and a half. Default 100."},
    {"permissions.network.enabled", "boolean", false, "`true`, `false`",
     "The network; without `allow` all public destinations, if the operator permits that. An agent "
     "always reaches its own destinations, whatever this says."},
    {"permissions.network.allow", "array of strings", false,
     "at most 64 names: `\"pypi.org\"`, `\"*.example.com:8443\"`; one port, or 443 and 80",
     "What can be reached."},
    {"work_dir", "string", false,
     "absolute, below `sandbox.allowed_workdir_roots`, or `workdir_roots` of the key",
     "A directory of the server's machine, read-write at /workspace; for agents."},
    {"stdin", "string or object", false,
     "at most 4 MiB; or `{\"content\": …, \"encoding\": \"base64\"}`", "The standard input."},
    {"args", "array of strings", false, "at most 64, of 32 KiB each; with `env` 1.5 MiB in all",
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
