/* SPDX-License-Identifier: MIT */
/* Translation of Piston's requests and results. */
#include "server/api/piston_request.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/executor/jail_check.h"

#define MEBIBYTE (UINT64_C(1) << 20)

struct reader {
    const struct server_config *config;
    const struct runtime *runtime;
    struct execution_request *out;
    struct piston_fault *fault;
};

__attribute__((format(printf, 3, 4))) static bool refuse(struct reader *reader, unsigned status,
                                                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    reader->fault->status = status;
    (void)vsnprintf(reader->fault->message, sizeof reader->fault->message, format, args);
    va_end(args);
    return false;
}

static bool no_memory(struct reader *reader)
{
    return refuse(reader, 503, "out of memory");
}

/* ---- languages ---- */

/* What Piston calls some of the runtimes; `package` is what provides several languages there. */
static const struct {
    const char *name, *language, *package;
} names[] = {
    {"node", "javascript", "node"}, {"c", NULL, "gcc"},     {"c++", NULL, "gcc"},
    {"sqlite", "sqlite3", NULL},    {"r", "rscript", NULL},
};

static const char *language_of(const struct runtime *runtime, const char **ret_package)
{
    *ret_package = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(names[i].name, runtime->name) == 0) {
            *ret_package = names[i].package;
            return names[i].language ? names[i].language : runtime->name;
        }
    return runtime->name;
}

/* The runtime of an entry of GET /runtimes, if Piston's clients can use it; else NULL. */
static const struct runtime *usable(const json_t *entry, const struct server_config *config,
                                    char ret_version[PISTON_VERSION_MAX])
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *version = json_string_value(json_object_get(entry, "version"));
    const struct runtime *runtime = name ? config_find_runtime(config, name) : NULL;
    if (!runtime || runtime->agent || runtime->input != RUNTIME_FILE ||
        strcmp(runtime->name, name) != 0 || !json_is_true(json_object_get(entry, "available")))
        return NULL;
    piston_version(version ? version : "", ret_version);
    return runtime;
}

static bool find_runtime(struct reader *reader, const json_t *runtimes, const char *language,
                         const char *range, struct piston_call *call)
{
    const struct runtime *wanted = config_find_runtime(reader->config, language);
    size_t i;
    const json_t *entry;
    json_array_foreach(runtimes, i, entry)
    {
        const char *package;
        const struct runtime *runtime = usable(entry, reader->config, call->version);
        int has = runtime && runtime == wanted ? piston_range_has(range, call->version) : -1;
        if (has < 0 || (has == 0 && reader->config->piston.version_match == PISTON_STRICT))
            continue;
        reader->runtime = call->runtime = runtime;
        reader->out->language = runtime->name;
        call->language = language_of(runtime, &package);
        return true;
    }
    return refuse(reader, 400, "%s-%s runtime is unknown", language, range);
}

static void write_aliases(struct json *j, const struct runtime *runtime, const char *language)
{
    json_open_array(j, "aliases");
    if (strcmp(runtime->name, language) != 0)
        json_text(j, NULL, runtime->name);
    for (size_t i = 0; i < RUNTIME_ALIASES_MAX && runtime->aliases[i]; i++)
        if (strcmp(runtime->aliases[i], language) != 0)
            json_text(j, NULL, runtime->aliases[i]);
    json_close_array(j);
}

static void write_runtime(struct json *j, const struct runtime *runtime, const char *version)
{
    const char *package;
    const char *language = language_of(runtime, &package);
    json_text(j, "language", language);
    json_text(j, "version", version);
    write_aliases(j, runtime, language);
    if (package)
        json_text(j, "runtime", package);
}

static void write_package(struct json *j, const struct runtime *runtime, const char *version)
{
    const char *package;
    json_text(j, "language", language_of(runtime, &package));
    json_text(j, "language_version", version);
    json_bool(j, "installed", true);
}

/* An array with an object for each runtime that can be used. */
static void write_each(struct json *j, const json_t *runtimes, const struct server_config *config,
                       void (*write)(struct json *, const struct runtime *, const char *))
{
    size_t i;
    const json_t *entry;
    json_open_array(j, NULL);
    json_array_foreach(runtimes, i, entry)
    {
        char version[PISTON_VERSION_MAX];
        const struct runtime *runtime = usable(entry, config, version);
        if (!runtime)
            continue;
        json_open_object(j, NULL);
        write(j, runtime, version);
        json_close_object(j);
    }
    json_close_array(j);
}

void piston_write_runtimes(struct json *j, const json_t *runtimes,
                           const struct server_config *config)
{
    write_each(j, runtimes, config, write_runtime);
}

void piston_write_packages(struct json *j, const json_t *runtimes,
                           const struct server_config *config)
{
    write_each(j, runtimes, config, write_package);
}

/* ---- files ---- */

/* Resolves "." and ".." and double slashes, in place; a leading slash is the directory of the files.
 * Returns false if the path leaves it. */
static bool resolve(char *path)
{
    char *out = path;
    for (const char *at = path; *at;) {
        size_t length = strcspn(at, "/");
        const char *next = at + length + (at[length] == '/');
        if (length == 2 && at[0] == '.' && at[1] == '.') {
            if (out == path)
                return false;
            while (out > path && *--out != '/')
                ;
        } else if (length > 0 && !(length == 1 && at[0] == '.')) {
            if (out > path)
                *out++ = '/';
            memmove(out, at, length);
            out += length;
        }
        at = next;
    }
    *out = '\0';
    return true;
}

static bool read_name(struct reader *reader, const json_t *file, size_t index, const char **ret)
{
    const char *given = json_string_value(json_object_get(file, "name"));
    char *name = given && *given ? arena_strdup(&reader->out->arena, given)
                                 : arena_printf(&reader->out->arena, "file%zu.code", index);
    if (!name)
        return no_memory(reader);
    if (given && strlen(given) != json_string_length(json_object_get(file, "name")))
        return refuse(reader, 400, "files[%zu].name has a NUL in it", index);
    if (!resolve(name))
        return refuse(reader, 500, "%s", "");
    if (!execution_file_name_is_valid(name))
        return refuse(reader, 400, "files[%zu].name is too long, or has too many parts", index);
    *ret = name;
    return true;
}

static bool hex_decode(const char *text, size_t length, char *bytes, size_t *ret_length)
{
    for (size_t i = 0; i + 1 < length; i += 2) {
        int high = hex_value(text[i]), low = hex_value(text[i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i / 2] = (char)(high << 4 | low);
    }
    *ret_length = length / 2;
    return length % 2 == 0;
}

static const char *encoding_of(const json_t *file)
{
    const char *encoding = json_string_value(json_object_get(file, "encoding"));
    return encoding && (strcmp(encoding, "base64") == 0 || strcmp(encoding, "hex") == 0) ? encoding
                                                                                         : "utf8";
}

static bool read_content(struct reader *reader, const json_t *file, size_t index,
                         struct execution_bytes *ret)
{
    const json_t *content = json_object_get(file, "content");
    const char *text = json_string_value(content), *encoding = encoding_of(file);
    size_t length = json_string_length(content);
    char *bytes = arena_alloc(&reader->out->arena, length + 1);
    bool valid = true;
    if (!bytes)
        return no_memory(reader);
    if (strcmp(encoding, "base64") == 0)
        valid = base64_decode(text, length, bytes, &length);
    else if (strcmp(encoding, "hex") == 0)
        valid = hex_decode(text, length, bytes, &length);
    else
        memcpy(bytes, text, length);
    if (!valid)
        return refuse(reader, 400, "files[%zu].content is not %s", index, encoding);
    bytes[length] = '\0';
    if (length > EXECUTION_FILE_BYTES_MAX)
        return refuse(reader, 400, "files[%zu].content has %zu bytes, at most %zu are allowed",
                      index, length, EXECUTION_FILE_BYTES_MAX);
    *ret = (struct execution_bytes){.data = bytes, .length = length};
    return true;
}

/* A compiler recognises its language by the suffix, which clients of Piston may leave out. */
static bool name_main(struct reader *reader, const char *name)
{
    const struct runtime *runtime = reader->runtime;
    const char *suffix = runtime->file_name ? strrchr(runtime->file_name, '.') : NULL;
    bool needed = suffix && (runtime->compile[0] || strcmp(suffix, ".java") == 0);
    reader->out->main = name;
    if (needed && !str_ends_with(name, suffix))
        reader->out->main = arena_concat(&reader->out->arena, name, suffix);
    if (!reader->out->main)
        return no_memory(reader);
    return strlen(reader->out->main) <= EXECUTION_NAME_MAX ||
           refuse(reader, 400, "the name of the main file is too long");
}

static bool is_twice(const struct execution_request *request, const char *name)
{
    bool found = request->main && strcmp(request->main, name) == 0;
    for (size_t i = 0; i < request->file_count && !found; i++)
        found = strcmp(request->files[i].name, name) == 0;
    return found;
}

static bool read_file(struct reader *reader, const json_t *file, size_t index, bool *has_main)
{
    struct execution_request *out = reader->out;
    struct execution_file read = {0};
    const json_t *given = json_object_get(file, "name");
    if (!read_name(reader, file, index, &read.name) ||
        !read_content(reader, file, index, &read.content))
        return false;
    if (is_twice(out, read.name))
        return refuse(reader, 400, "files[%zu].name '%s' is there twice", index,
                      str_shown(read.name).text);
    if (*has_main || strcmp(encoding_of(file), "utf8") != 0) {
        out->files[out->file_count++] = read;
        return true;
    }
    *has_main = true;
    out->code = read.content;
    if (read.content.length > EXECUTION_CODE_MAX)
        return refuse(reader, 400, "files[%zu].content has %zu bytes, at most %zu are allowed",
                      index, read.content.length, EXECUTION_CODE_MAX);
    /* Without a name of its own it has the runtime's, as the waiting jails have it. */
    return !json_string_length(given) || name_main(reader, read.name);
}

static bool read_files(struct reader *reader, const json_t *files)
{
    size_t count = json_array_size(files), i;
    const json_t *file;
    bool has_main = false;
    json_array_foreach(files, i, file) has_main =
        has_main || strcmp(encoding_of(file), "utf8") == 0;
    if (!has_main)
        return refuse(reader, 400, "files must include at least one utf8 encoded file");
    if (count > EXECUTION_FILES_MAX)
        return refuse(reader, 400, "files has %zu entries, at most %d are allowed", count,
                      EXECUTION_FILES_MAX);
    reader->out->files =
        arena_alloc(&reader->out->arena, count * sizeof *reader->out->files); /* zeroed */
    if (!reader->out->files)
        return no_memory(reader);
    has_main = false;
    json_array_foreach(files, i, file) if (!read_file(reader, file, i, &has_main)) return false;
    return true;
}

/* ---- limits ---- */

/* One value: `most` is in the unit of the request, `ret` in ours. */
static bool read_limit(struct reader *reader, const json_t *body, const char *name, uint64_t most,
                       uint64_t unit, uint64_t *ret)
{
    const json_t *value = json_object_get(body, name);
    double number = json_number_value(value);
    bool memory = str_ends_with(name, "memory_limit");
    if (!value || json_is_null(value) || json_is_false(value) ||
        (json_is_string(value) && json_string_length(value) == 0))
        return true;
    if (!json_is_number(value))
        return refuse(reader, 400, "If specified, %s must be a number", name);
    if (number == 0 || (memory && number == -1)) /* most clients send -1 for "no limit" */
        return true;
    if (number > (double)most)
        return refuse(reader, 400, "%s cannot exceed the configured limit of %llu", name,
                      (unsigned long long)most);
    if (number < 0)
        return refuse(reader, 400, "%s must be non-negative", name);
    uint64_t whole = (uint64_t)(number / (double)unit);
    *ret = whole + ((double)whole * (double)unit < number); /* rounded up */
    if (memory && *ret < EXECUTION_MEMORY_MB_MIN)
        *ret = EXECUTION_MEMORY_MB_MIN;
    return true;
}

static bool read_limits(struct reader *reader, const json_t *body)
{
    struct execution_request *out = reader->out;
    uint64_t memory = reader->runtime->max_limits[EXECUTION_MEMORY_MB] * MEBIBYTE;
    uint64_t time_ms = reader->runtime->max_timeout_ms;
    const struct {
        const char *name;
        uint64_t most, unit, *ret;
    } rows[] = {
        {"compile_memory_limit", memory, MEBIBYTE, &out->compile.memory_mb},
        {"run_memory_limit", memory, MEBIBYTE, &out->limits[EXECUTION_MEMORY_MB]},
        {"compile_timeout", time_ms, 1, &out->compile.timeout_ms},
        {"run_timeout", time_ms, 1, &out->timeout_ms},
        {"compile_cpu_time", time_ms, 1, &out->compile.cpu_ms},
        {"run_cpu_time", time_ms, 1, &out->cpu_ms},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (!read_limit(reader, body, rows[i].name, rows[i].most, rows[i].unit, rows[i].ret))
            return false;
    return true;
}

/* ---- input ---- */

/* Piston ends the input with a newline; so empty input is one, too. */
static bool read_stdin(struct reader *reader, const json_t *value)
{
    size_t length = json_string_length(value);
    const char *text = length ? json_string_value(value) : "";
    bool ended = length > 0 && text[length - 1] == '\n';
    char *bytes = arena_alloc(&reader->out->arena, length + 2); /* zeroed */
    if (value && !json_is_null(value) && !json_is_string(value))
        return refuse(reader, 400, "stdin must be a string");
    if (length >= EXECUTION_STDIN_MAX)
        return refuse(reader, 400, "stdin has %zu bytes, fewer than %zu are allowed", length,
                      EXECUTION_STDIN_MAX);
    if (!bytes)
        return no_memory(reader);
    memcpy(bytes, text, length);
    if (!ended)
        bytes[length++] = '\n';
    reader->out->stdin_bytes = (struct execution_bytes){.data = bytes, .length = length};
    return true;
}

static const char *argument(struct reader *reader, const json_t *value)
{
    struct arena *arena = &reader->out->arena;
    if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value) &&
        json_string_length(value) <= EXECUTION_VALUE_MAX)
        return arena_strdup(arena, json_string_value(value));
    return json_is_number(value) ? arena_printf(arena, "%.17g", json_number_value(value)) : NULL;
}

static bool read_args(struct reader *reader, const json_t *value)
{
    size_t count = json_array_size(value);
    struct execution_request *out = reader->out;
    if (!value || json_is_null(value))
        return true;
    if (!json_is_array(value) || count > EXECUTION_ARGS_MAX)
        return refuse(reader, 400, "args must be an array of at most %d strings",
                      EXECUTION_ARGS_MAX);
    out->args = arena_alloc(&out->arena, (count + 1) * sizeof *out->args);
    if (!out->args)
        return no_memory(reader);
    for (; out->arg_count < count; out->arg_count++) {
        const char *text = argument(reader, json_array_get(value, out->arg_count));
        if (!text)
            return refuse(reader, 400, "args[%zu] must be a string of at most %d bytes",
                          out->arg_count, EXECUTION_VALUE_MAX);
        out->args[out->arg_count] = text;
    }
    return true;
}

/* ---- the whole request ---- */

static const char *word_of(const json_t *body, const char *name)
{
    const json_t *value = json_object_get(body, name);
    const char *text = json_string_value(value);
    return text && *text && strlen(text) == json_string_length(value) && strlen(text) < 128 ? text
                                                                                            : NULL;
}

static bool check_files(struct reader *reader, const json_t *files)
{
    size_t i;
    const json_t *file;
    if (!json_is_array(files))
        return refuse(reader, 400, "files is required as an array");
    json_array_foreach(files, i, file) if (
        !json_is_string(json_object_get(
            file, "content"))) return refuse(reader, 400,
                                             "files[%zu].content is required as a string", i);
    return true;
}

static bool check_whole(struct reader *reader)
{
    struct brig_error error = {0};
    const char *field = "";
    return jail_check_request(reader->config, reader->runtime, reader->out, &field, &error) == 0 ||
           refuse(reader, 400, "%s", error.message);
}

static bool read_request(struct reader *reader, const json_t *body, const json_t *runtimes,
                         struct piston_call *call)
{
    const char *language = word_of(body, "language"), *version = word_of(body, "version");
    const json_t *files = json_object_get(body, "files");
    if (!language)
        return refuse(reader, 400, "language is required as a string");
    if (!version)
        return refuse(reader, 400, "version is required as a string");
    return check_files(reader, files) && find_runtime(reader, runtimes, language, version, call) &&
           read_files(reader, files) && read_limits(reader, body) &&
           read_stdin(reader, json_object_get(body, "stdin")) &&
           read_args(reader, json_object_get(body, "args")) && check_whole(reader);
}

bool piston_read(const json_t *body, const json_t *runtimes, const struct server_config *config,
                 bool interactive, struct piston_call *ret, struct piston_fault *fault)
{
    struct reader reader = {.config = config, .out = &ret->request, .fault = fault};
    *fault = (struct piston_fault){0};
    *ret = (struct piston_call){.request = {.callback_url = "", .callback_secret = ""}};
    if (!read_request(&reader, body, runtimes, ret)) {
        piston_call_done(ret);
        return false;
    }
    ret->request.interactive = interactive;
    if (!interactive) {
        ret->request.ordered = true;
        ret->request.output_bytes = config->piston.output_max_bytes;
        ret->request.compile.output_bytes = config->piston.output_max_bytes;
    }
    return true;
}

void piston_call_done(struct piston_call *call)
{
    execution_request_done(&call->request);
}

/* ---- results ---- */

/* What Piston calls the end of a stage. */
struct end {
    const char *status; /* or NULL */
    int signal;         /* 0: none */
    bool has_code;
    char message[64]; /* or "" */
};

static struct end end_of(const struct execution_result *result)
{
    struct end end = {.signal = result->signal};
    switch (result->status) {
    case EXECUTION_OK:
        end.has_code = true;
        return end;
    case EXECUTION_TIMEOUT:
    case EXECUTION_CPU_TIMEOUT:
        (void)snprintf(end.message, sizeof end.message, "Time limit exceeded%s",
                       result->status == EXECUTION_TIMEOUT ? " (wall clock)" : "");
        end.status = "TO";
        end.signal = SIGKILL;
        return end;
    case EXECUTION_OUTPUT_LIMIT:
        end.status = result->error_output_truncated && !result->output_truncated ? "EL" : "OL";
        (void)snprintf(end.message, sizeof end.message, "%s length exceeded",
                       *end.status == 'E' ? "stderr" : "stdout");
        end.signal = SIGKILL;
        return end;
    case EXECUTION_OOM:
        (void)snprintf(end.message, sizeof end.message, "Memory limit exceeded");
        end.status = "SG";
        end.signal = SIGKILL;
        return end;
    case EXECUTION_ERROR:
    case EXECUTION_KILLED:
        end.has_code = result->signal == 0 && result->exit_code >= 0;
        end.status = end.has_code ? "RE" : "SG";
        end.signal = end.has_code ? 0 : result->signal ? result->signal : SIGKILL;
        if (end.has_code)
            (void)snprintf(end.message, sizeof end.message, "Exited with error status %d",
                           result->exit_code);
        else
            (void)snprintf(end.message, sizeof end.message, "Caught fatal signal %d", end.signal);
        return end;
    case EXECUTION_RUNNING:
    case EXECUTION_QUEUED:
    case EXECUTION_SETUP_FAILED:
    case EXECUTION_LOST:
    case EXECUTION_BLOCKED:
    case EXECUTION_STATUSES_:
        break;
    }
    end.status = "XX";
    return end;
}

static void write_stage(struct json *j, const char *key, const struct execution_result *result)
{
    autostr struct str both = {0};
    char name[PISTON_SIGNAL_NAME_MAX];
    struct end end = end_of(result);
    execution_interleave(result, &both);
    j->out->failed |= both.failed;
    json_open_object(j, key);
    json_bytes(j, "stdout", result->output.data, result->output.length);
    json_bytes(j, "stderr", result->error_output.data, result->error_output.length);
    json_bytes(j, "output", both.data ? both.data : "", both.length);
    if (end.has_code)
        json_int(j, "code", result->exit_code);
    else
        json_nothing(j, "code");
    json_text(j, "signal", end.signal ? piston_signal_name(end.signal, name) : NULL);
    json_text(j, "message", *end.message ? end.message : NULL);
    json_text(j, "status", end.status);
    json_uint(j, "cpu_time", result->cpu_time_us / 1000);
    json_uint(j, "wall_time", result->duration_us / 1000);
    json_uint(j, "memory", result->memory_peak_bytes);
    json_close_object(j);
}

void piston_write_result(struct json *j, const struct piston_call *call,
                         const struct execution_result *result)
{
    json_open_object(j, NULL);
    if (result->stage == STAGE_COMPILE)
        write_stage(j, "compile", result);
    else if (result->compile)
        write_stage(j, "compile", result->compile);
    write_stage(j, "run", result);
    json_text(j, "language", call->language);
    json_text(j, "version", call->version);
    json_close_object(j);
}
