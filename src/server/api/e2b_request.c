/* SPDX-License-Identifier: MIT */
/* Reads the requests of E2B's clients. Members that are not known are ignored, as Connect asks for. */
#include "server/api/e2b_request.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/str.h"
#include "server/api/e2b.h"
#include "server/config/config.h"
#include "server/config/runtime.h"
#include "server/environment.h"

#define TIMEOUT_SECONDS_MAX INT64_C(31536000)
#define TIMEOUT_DEFAULT_MS 300000 /* E2B's */
#define ALL_ADDRESSES "0.0.0.0/0"

/* Returns false with the message. */
__attribute__((format(printf, 2, 3))) static bool refuse(char message[E2B_MESSAGE_MAX],
                                                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, E2B_MESSAGE_MAX, format, args);
    va_end(args);
    return false;
}

/* Left out, or null. */
static const json_t *member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

static const char *copy(struct arena *arena, const json_t *text, size_t most)
{
    return json_is_string(text) && json_string_length(text) <= most
               ? arena_strdup(arena, json_string_value(text))
               : NULL;
}

static bool read_pairs(struct arena *arena, const json_t *value, size_t count_max, size_t most,
                       size_t room, struct execution_pair **ret_pairs, size_t *ret_count)
{
    json_t *object = (json_t *)(uintptr_t)value; /* jansson's iterators do not accept const */
    size_t count = json_object_size(value);
    struct execution_pair *pairs = arena_alloc(arena, (count + room + 1) * sizeof *pairs);
    *ret_pairs = pairs;
    if (!pairs || (value && !json_is_object(value)) || count > count_max)
        return false;
    for (void *at = value ? json_object_iter(object) : NULL; at;
         at = json_object_iter_next(object, at)) {
        const char *name = json_object_iter_key(at);
        struct execution_pair *pair = &pairs[(*ret_count)++];
        pair->name = strlen(name) <= EXECUTION_NAME_MAX ? arena_strdup(arena, name) : NULL;
        pair->value = copy(arena, json_object_iter_value(at), most);
        if (!pair->name || !pair->value)
            return false;
    }
    return true;
}

static bool read_env(struct sandbox_request *ret, const json_t *value, const char *field,
                     char message[E2B_MESSAGE_MAX])
{
    if (!read_pairs(&ret->arena, value, EXECUTION_ENV_MAX, EXECUTION_VALUE_MAX, 0, &ret->env,
                    &ret->env_count))
        return refuse(message, "%s has to be an object of at most %d strings", field,
                      EXECUTION_ENV_MAX);
    for (size_t i = 0; i < ret->env_count; i++)
        if (!environment_name_is_valid(ret->env[i].name))
            return refuse(message, "'%s' is not a valid variable name",
                          str_shown(ret->env[i].name).text);
    return true;
}

/* ---- creation ---- */

bool e2b_read_timeout(const json_t *body, uint64_t *ret_ms, char message[E2B_MESSAGE_MAX])
{
    const json_t *value = member(body, "timeout");
    if (!value)
        return true;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > TIMEOUT_SECONDS_MAX)
        return refuse(message, "timeout has to be a number of seconds");
    *ret_ms = (uint64_t)json_integer_value(value) * 1000;
    return true;
}

/* E2B's own templates are the default runtime; others are the names of runtimes. */
static const char *language_of(const struct server_config *config, const char *template)
{
    static const struct {
        const char *template, *language;
    } rows[] = {{"base", "bash"}, {"code-interpreter-v1", "python"}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (strcmp(rows[i].template, template) == 0)
            return rows[i].language;
    const struct runtime *runtime = config_find_runtime(config, template);
    return runtime ? runtime->name : NULL;
}

/* `allowOut` wins over `denyOut`. Without a list the whole network is only given if the operator
 * permits that: clients ask for it unless told otherwise. */
static bool read_network(const json_t *body, const struct server_config *config,
                         struct sandbox_request *ret, char message[E2B_MESSAGE_MAX])
{
    const json_t *network = member(body, "network");
    const json_t *allow = member(network, "allowOut"), *deny = member(network, "denyOut");
    size_t count = json_array_size(allow);
    bool internet = !json_is_false(json_object_get(body, "allow_internet_access"));
    if (json_array_size(deny) > 0 && count == 0) {
        if (!str_equal(json_string_value(json_array_get(deny, 0)), ALL_ADDRESSES))
            return refuse(message, "network.denyOut is supported only for " ALL_ADDRESSES
                                   "; list what is allowed in network.allowOut");
        internet = false;
    }
    if (count > EXECUTION_ALLOW_MAX)
        return refuse(message, "network.allowOut has more than %d names", EXECUTION_ALLOW_MAX);
    ret->network = internet && (count > 0 || config->sandbox.allow_network);
    ret->allow = arena_alloc(&ret->arena, (count + 1) * sizeof *ret->allow);
    for (size_t i = 0; ret->network && ret->allow && i < count; i++) {
        const char *name = copy(&ret->arena, json_array_get(allow, i), EXECUTION_NAME_MAX);
        if (!name)
            return refuse(message, "network.allowOut has to be an array of names");
        ret->allow[ret->allow_count++] = name;
    }
    return ret->allow || refuse(message, "out of memory");
}

static bool read_metadata(const json_t *body, const char *template, struct sandbox_request *ret,
                          char message[E2B_MESSAGE_MAX])
{
    if (!read_pairs(&ret->arena, member(body, "metadata"), SANDBOX_METADATA_MAX - 1,
                    SANDBOX_METADATA_BYTES, 1, &ret->metadata, &ret->metadata_count))
        return refuse(message, "metadata has to be an object of at most %d strings",
                      SANDBOX_METADATA_MAX - 1);
    for (size_t i = 0; i < ret->metadata_count; i++)
        if (str_starts_with(ret->metadata[i].name, E2B_OWN_METADATA))
            return refuse(message, "names of metadata cannot begin with " E2B_OWN_METADATA);
    ret->metadata[ret->metadata_count++] = (struct execution_pair){
        .name = E2B_TEMPLATE_METADATA, .value = arena_strdup(&ret->arena, template)};
    return true;
}

unsigned e2b_read_create(const json_t *body, const struct server_config *config,
                         struct sandbox_request *ret, char message[E2B_MESSAGE_MAX])
{
    const json_t *template = json_object_get(body, "templateID");
    const char *name = template ? json_string_value(template) : "base";
    if (!name || strlen(name) > EXECUTION_NAME_MAX) {
        (void)refuse(message, "templateID has to be a short string");
        return 400;
    }
    const char *language = language_of(config, name);
    if (!language) {
        (void)refuse(message,
                     "there is no template '%s'; templates are base, code-interpreter-v1 and the "
                     "runtimes of GET /runtimes",
                     str_shown(name).text);
        return 404;
    }
    if (json_array_size(member(body, "volumeMounts")) > 0 || member(body, "mcp")) {
        (void)refuse(message, "this server has no volumes and no MCP gateway of E2B");
        return 501;
    }
    ret->language = arena_strdup(&ret->arena, language);
    ret->home = E2B_HOME;
    ret->pauses = json_is_true(json_object_get(body, "autoPause"));
    ret->timeout_ms = TIMEOUT_DEFAULT_MS;
    if (!read_metadata(body, name, ret, message) ||
        !read_env(ret, member(body, "envVars"), "envVars", message) ||
        !e2b_read_timeout(body, &ret->timeout_ms, message) ||
        !read_network(body, config, ret, message))
        return 400;
    if (ret->timeout_ms == 0) {
        (void)refuse(message, "timeout has to be at least one second");
        return 400;
    }
    return ret->arena.failed ? 503 : 0;
}

const char *e2b_template_of(const struct sandbox_info *info)
{
    for (size_t i = 0; i < info->metadata_count; i++)
        if (strcmp(info->metadata[i].name, E2B_TEMPLATE_METADATA) == 0)
            return info->metadata[i].value;
    return info->language;
}

/* ---- lists ---- */

static const char *decode_twice(struct arena *arena, const char *text, size_t length)
{
    autostr struct str once = {0}, twice = {0};
    percent_decode(&once, text, length);
    percent_decode(&twice, once.data ? once.data : "", once.length);
    return once.failed || twice.failed ? NULL : arena_strdup(arena, twice.data ? twice.data : "");
}

bool e2b_read_filter(const char *text, struct sandbox_request *ret)
{
    ret->metadata = arena_alloc(&ret->arena, SANDBOX_METADATA_MAX * sizeof *ret->metadata);
    while (ret->metadata && text && *text) {
        size_t length = strcspn(text, "&"), name = strcspn(text, "=&");
        if (name >= length || ret->metadata_count == SANDBOX_METADATA_MAX)
            return false;
        struct execution_pair *pair = &ret->metadata[ret->metadata_count++];
        pair->name = decode_twice(&ret->arena, text, name);
        pair->value = decode_twice(&ret->arena, text + name + 1, length - name - 1);
        if (!pair->name || !pair->value || strlen(pair->name) > EXECUTION_NAME_MAX ||
            strlen(pair->value) > SANDBOX_METADATA_BYTES)
            return false;
        text += length + (text[length] == '&');
    }
    return ret->metadata;
}

/* ---- commands ---- */

bool e2b_read_size(const json_t *body, struct sandbox_request *ret, char message[E2B_MESSAGE_MAX])
{
    const json_t *pty = member(body, "pty"), *size = member(pty, "size");
    json_int_t rows = json_integer_value(member(size, "rows"));
    json_int_t columns = json_integer_value(member(size, "cols"));
    if (!pty)
        return true;
    if (rows < 0 || rows > SANDBOX_SIZE_MAX || columns < 0 || columns > SANDBOX_SIZE_MAX)
        return refuse(message, "the size of a terminal has to be at most %d", SANDBOX_SIZE_MAX);
    ret->pty = true;
    ret->rows = (uint64_t)rows;
    ret->columns = (uint64_t)columns;
    return true;
}

bool e2b_read_start(const json_t *body, struct sandbox_request *ret, char message[E2B_MESSAGE_MAX])
{
    const json_t *process = member(body, "process"), *args = member(process, "args");
    const json_t *cwd = member(process, "cwd"), *input = member(body, "stdin");
    size_t count = json_array_size(args);
    if (!json_is_string(member(process, "cmd")) || (args && !json_is_array(args)) ||
        count >= EXECUTION_ARGS_MAX)
        return refuse(message,
                      "process.cmd has to be a string, process.args an array of at most %d",
                      EXECUTION_ARGS_MAX - 1);
    ret->args = arena_alloc(&ret->arena, (count + 2) * sizeof *ret->args);
    if (!ret->args)
        return refuse(message, "out of memory");
    for (size_t i = 0; i <= count; i++) {
        const json_t *word = i == 0 ? member(process, "cmd") : json_array_get(args, i - 1);
        ret->args[i] = copy(&ret->arena, word, EXECUTION_VALUE_MAX);
        if (!ret->args[i])
            return refuse(message, "an argument is not a string, or longer than %d bytes",
                          EXECUTION_VALUE_MAX);
        ret->arg_count++;
    }
    if (cwd && (!json_is_string(cwd) || json_string_length(cwd) > SANDBOX_PATH_MAX))
        return refuse(message, "process.cwd has to be a string of at most %d bytes",
                      SANDBOX_PATH_MAX);
    if (cwd && json_string_length(cwd) > 0)
        ret->cwd = copy(&ret->arena, cwd, SANDBOX_PATH_MAX);
    ret->keep_input = !json_is_false(input); /* older clients do not send it */
    return read_env(ret, member(process, "envs"), "process.envs", message) &&
           e2b_read_size(body, ret, message);
}

bool e2b_read_selector(const json_t *body, struct sandbox_request *ret,
                       char message[E2B_MESSAGE_MAX])
{
    const json_t *pid = member(member(body, "process"), "pid");
    if (!json_is_integer(pid) || json_integer_value(pid) <= 0)
        return refuse(message, "process.pid has to be the number of a command");
    ret->command = (uint64_t)json_integer_value(pid);
    return true;
}

bool e2b_read_input(const json_t *body, struct sandbox_request *ret, char message[E2B_MESSAGE_MAX])
{
    const json_t *input = member(body, "input"), *text = member(input, "stdin");
    if (!text)
        text = member(input, "pty");
    size_t length = json_string_length(text);
    char *bytes = arena_strndup(&ret->arena, length ? json_string_value(text) : "", length);
    if (!bytes || (text && !json_is_string(text)) || !base64_decode(bytes, length, bytes, &length))
        return refuse(message, "input.stdin or input.pty has to be base64");
    if (length > EXECUTION_INPUT_MAX)
        return refuse(message, "the input has more than %zu bytes", EXECUTION_INPUT_MAX);
    ret->bytes = (struct execution_bytes){bytes, length};
    ret->keep_input = true;
    return true;
}

bool e2b_read_signal(const json_t *body, struct sandbox_request *ret, char message[E2B_MESSAGE_MAX])
{
    const json_t *value = member(body, "signal");
    const char *name = json_string_value(value);
    json_int_t number = json_integer_value(value);
    if (str_equal(name, "SIGNAL_SIGKILL") || number == SIGKILL)
        ret->signal = SIGKILL;
    else if (str_equal(name, "SIGNAL_SIGTERM") || number == SIGTERM)
        ret->signal = SIGTERM;
    else
        return refuse(message, "signal has to be SIGNAL_SIGKILL or SIGNAL_SIGTERM");
    return true;
}

/* ---- the code interpreter ---- */

/* A text, or null or nothing. */
static bool read_optional(const json_t *body, const char *name, size_t most,
                          struct sandbox_request *ret, const char **ret_text,
                          char message[E2B_MESSAGE_MAX])
{
    const json_t *value = member(body, name);
    *ret_text = value ? copy(&ret->arena, value, most) : NULL;
    return !value || *ret_text ||
           refuse(message, "%s has to be a string of at most %zu bytes", name, most);
}

bool e2b_read_context(const json_t *body, struct sandbox_request *ret,
                      char message[E2B_MESSAGE_MAX])
{
    if (!read_optional(body, "language", EXECUTION_NAME_MAX, ret, &ret->language, message) ||
        !read_optional(body, "cwd", SANDBOX_PATH_MAX, ret, &ret->cwd, message))
        return false;
    if (!ret->language)
        ret->language = "python";
    return true;
}

bool e2b_read_code(const json_t *body, struct sandbox_request *ret, const char **ret_context,
                   char message[E2B_MESSAGE_MAX])
{
    const char *code;
    if (!read_optional(body, "code", EXECUTION_CODE_MAX, ret, &code, message) ||
        !read_optional(body, "language", EXECUTION_NAME_MAX, ret, &ret->language, message) ||
        !read_optional(body, "context_id", EXECUTION_NAME_MAX, ret, ret_context, message) ||
        !read_env(ret, member(body, "env_vars"), "env_vars", message))
        return false;
    if (!code)
        return refuse(message, "code is missing");
    if (ret->language && *ret_context)
        return refuse(message, "only one of context_id or language can be provided");
    if (!ret->language && !*ret_context)
        ret->language = "python";
    ret->bytes = (struct execution_bytes){code, strlen(code)};
    return true;
}
