/* SPDX-License-Identifier: MIT */
/* Requests and results of POST /mcp, translated from and to those of brigd's own API. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "rpc/excerpt.h"
#include "rpc/tool.h"
#include "server/api/mcp.h"
#include "server/api/run_line.h"
#include "server/config/config.h"
#include "server/mcp_tools_json.h" /* generated from mcp_tools.json */
#include "server/sandbox.h"

#define NAME_MAX_BYTES 512             /* of the header Mcp-Name */
#define COMMAND_TIMEOUT_S 60           /* of a command in a sandbox */
#define FILES_TEXT_BYTES 32768         /* contents of all returned files in a result */
#define FILE_PART_BYTES 32768          /* of a file that is read */
#define IMAGES_BYTES ((size_t)1 << 20) /* images in a result */
#define ENTRIES_MAX 1000

/* ---- Headers ---- */

/* Whether the header has this value, as it is or as =?base64?…?=. */
static bool has_value(const char *header, const char *value)
{
    static const char prefix[] = "=?base64?", suffix[] = "?=";
    size_t length = strlen(header), around = sizeof prefix + sizeof suffix - 2;
    char decoded[NAME_MAX_BYTES];
    if (strcmp(header, value) == 0)
        return true;
    if (!str_starts_with(header, prefix) || length < around || length > sizeof decoded ||
        strcmp(header + length - 2, suffix) != 0)
        return false;
    return base64_decode(header + sizeof prefix - 1, length - around, decoded, &length) &&
           length == strlen(value) && memcmp(decoded, value, length) == 0;
}

/* Intermediaries may act on the headers, so they have to say the same as the body. */
static bool check_modern(const struct rpc_request *request, const struct mcp_headers *headers,
                         struct rpc_fault *fault)
{
    const json_t *meta = json_object_get(request->params, "_meta");
    const char *version = json_string_value(json_object_get(meta, RPC_META_VERSION));
    const char *name = json_string_value(json_object_get(request->params, "name"));
    if (!headers->version || strcmp(headers->version, version) != 0)
        return rpc_refuse(fault, RPC_HEADERS,
                          "the header MCP-Protocol-Version is not that of _meta");
    if (!headers->method || strcmp(headers->method, request->method) != 0)
        return rpc_refuse(fault, RPC_HEADERS, "the header Mcp-Method is not the method");
    if (strcmp(request->method, "tools/call") == 0 && name &&
        (!headers->name || !has_value(headers->name, name)))
        return rpc_refuse(fault, RPC_HEADERS, "the header Mcp-Name is not the name of the tool");
    return true;
}

static bool check_legacy(const struct rpc_request *request, const struct mcp_headers *headers,
                         struct rpc_fault *fault, unsigned *ret_status)
{
    if (strcmp(request->method, "initialize") == 0)
        return true;
    if (headers->version && strcmp(headers->version, RPC_MODERN) == 0 && request->id)
        return rpc_refuse(fault, RPC_PARAMS, "_meta has no " RPC_META_VERSION);
    if (headers->version && !rpc_is_legacy(headers->version) &&
        strcmp(headers->version, RPC_MODERN) != 0)
        return rpc_refuse(fault, RPC_REQUEST,
                          "the header MCP-Protocol-Version is not a known version");
    if (headers->session && !execution_id_is_valid(headers->session)) {
        *ret_status = 404;
        return rpc_refuse(fault, RPC_REQUEST, "unknown session: initialize again");
    }
    return true;
}

bool mcp_check(struct rpc_request *request, const struct mcp_headers *headers,
               struct rpc_fault *fault, unsigned *ret_status)
{
    *ret_status = 400;
    if (request->id && !rpc_read_meta(request, fault))
        return false;
    return request->modern ? check_modern(request, headers, fault)
                           : check_legacy(request, headers, fault, ret_status);
}

/* ---- The table of tools ---- */

/* Whether the program of a runtime is missing, according to `runtimes` of GET /runtimes. */
static bool is_missing(const json_t *runtimes, const char *name)
{
    const json_t *entry;
    size_t i;
    json_array_foreach(runtimes, i, entry)
    {
        const char *other = json_string_value(json_object_get(entry, "name"));
        if (other && strcmp(other, name) == 0)
            return json_is_false(json_object_get(entry, "available"));
    }
    return false;
}

/* Agents cannot be asked for by tools: they need a directory and credentials. */
static void list_languages(const struct server_config *config, const json_t *runtimes,
                           struct str *out)
{
    for (size_t i = 0; i < config->runtime_count; i++) {
        const struct runtime *runtime = &config->runtimes[i];
        if (!runtime->agent && !runtime->disabled && !is_missing(runtimes, runtime->name))
            str_concat(out, out->length > 0 ? ", " : "", runtime->name);
    }
}

json_t *mcp_tool_list(const struct server_config *config, const struct str *runtimes)
{
    json_t *tools = tool_list_load(mcp_tools_json, sizeof mcp_tools_json, false), *tool;
    autostr struct str languages = {0};
    size_t index;
    json_auto_t *known =
        runtimes && runtimes->data ? json_loadb(runtimes->data, runtimes->length, 0, NULL) : NULL;
    list_languages(config, json_object_get(known, "runtimes"), &languages);
    json_array_foreach(tools, index, tool)
    {
        json_t *schema = json_object_get(tool, "inputSchema");
        json_t *language = json_object_get(json_object_get(schema, "properties"), "language");
        const char *text = json_string_value(json_object_get(language, "description"));
        if (text)
            (void)json_object_set_new(
                language, "description",
                json_sprintf("%s%s.", text, languages.data ? languages.data : ""));
    }
    return tools;
}

/* ---- Bodies ---- */

static void copy(json_t *to, const json_t *from, const char *name)
{
    json_t *value = json_object_get(from, name);
    if (value)
        (void)json_object_set(to, name, value);
}

json_t *mcp_execution_body(const json_t *arguments)
{
    static const char *const same[] = {"language", "code",  "stdin",
                                       "args",     "files", "return_files"};
    json_t *body = json_object(), *allow = json_object_get(arguments, "network_allow");
    for (size_t i = 0; i < ARRAY_LENGTH(same); i++)
        copy(body, arguments, same[i]);
    if (json_object_get(arguments, "command")) {
        (void)json_object_set_new(body, "language", json_string("bash"));
        (void)json_object_set(body, "code", json_object_get(arguments, "command"));
    }
    if (json_object_get(arguments, "timeout_s"))
        (void)json_object_set(body, "timeout", json_object_get(arguments, "timeout_s"));
    if (json_array_size(allow) > 0)
        (void)json_object_set_new(
            body, "permissions",
            json_pack("{s:{s:b, s:O}}", "network", "enabled", 1, "allow", allow));
    return body;
}

json_t *mcp_sandbox_body(const json_t *arguments)
{
    json_t *body = json_object(), *allow = json_object_get(arguments, "network_allow");
    copy(body, arguments, "language");
    copy(body, arguments, "image");
    if (json_object_get(arguments, "ttl_s"))
        (void)json_object_set(body, "timeout", json_object_get(arguments, "ttl_s"));
    if (json_array_size(allow) > 0) {
        (void)json_object_set_new(body, "network", json_true());
        (void)json_object_set(body, "allow", allow);
    }
    return body;
}

/* The words that run a program text in a sandbox. */
static json_t *code_words(const struct server_config *config, const json_t *arguments,
                          const char **ret_message)
{
    const char *name = json_string_value(json_object_get(arguments, "language"));
    const struct runtime *runtime = config_find_runtime(config, name);
    const struct tool_language *language = tool_language_find(runtime ? runtime->name : name);
    json_t *words, *more = json_object_get(arguments, "args");
    if (!language) {
        *ret_message = "In a sandbox, run_code runs python, node, bash, sh, ruby, perl and php. "
                       "For another language write the program with file_write and run it with "
                       "run_command.";
        return NULL;
    }
    words = json_pack("[s, s, O]", language->program, language->option,
                      json_object_get(arguments, "code"));
    if (language->before)
        (void)json_array_append_new(words, json_string(language->before));
    if (more)
        (void)json_array_extend(words, more);
    return words;
}

static const char *refused_in_sandbox(const json_t *arguments)
{
    static const struct {
        const char *name, *message;
    } refused[] = {
        {"files", "files is not for a sandbox: use file_write."},
        {"return_files", "return_files is not for a sandbox: use file_read."},
        {"network_allow", "network_allow is not for a sandbox: it is set by sandbox_create."},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(refused); i++)
        if (json_object_get(arguments, refused[i].name))
            return refused[i].message;
    return NULL;
}

static json_t *body_with_timeout(const json_t *arguments)
{
    json_t *limit = json_object_get(arguments, "timeout_s");
    return json_pack("{s:o}", "timeout",
                     limit ? json_incref(limit) : json_integer(COMMAND_TIMEOUT_S));
}

bool mcp_is_for_context(const struct server_config *config, const json_t *arguments)
{
    static const char *const interpreters[] = {"python", "node", "bash"};
    const char *name = json_string_value(json_object_get(arguments, "language"));
    const struct runtime *runtime = name ? config_find_runtime(config, name) : NULL;
    if (!runtime || refused_in_sandbox(arguments) || json_object_get(arguments, "stdin") ||
        json_array_size(json_object_get(arguments, "args")) > 0)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(interpreters); i++)
        if (strcmp(runtime->name, interpreters[i]) == 0)
            return true;
    return false;
}

json_t *mcp_context_body(const json_t *arguments)
{
    json_t *body = body_with_timeout(arguments);
    copy(body, arguments, "language");
    copy(body, arguments, "code");
    return body;
}

json_t *mcp_command_body(const struct server_config *config, const json_t *arguments,
                         const char **ret_message)
{
    json_t *words = NULL;
    *ret_message = refused_in_sandbox(arguments);
    if (*ret_message || (!json_object_get(arguments, "command") &&
                         !(words = code_words(config, arguments, ret_message))))
        return NULL;
    json_t *body = body_with_timeout(arguments);
    copy(body, arguments, "stdin");
    if (words)
        (void)json_object_set_new(body, "argv", words);
    else
        (void)json_object_set(body, "cmd", json_object_get(arguments, "command"));
    return body;
}

/* ---- Results ---- */

static const char *status_of(const struct execution_result *result)
{
    switch (result->status) {
    case EXECUTION_OK:
    case EXECUTION_ERROR:
        return result->signal ? "signalled" : "exited";
    case EXECUTION_TIMEOUT:
        return "timeout";
    case EXECUTION_CPU_TIMEOUT:
        return "cpu-timeout";
    case EXECUTION_OOM:
        return "oom";
    case EXECUTION_OUTPUT_LIMIT:
        return "output-limit";
    case EXECUTION_RUNNING:
    case EXECUTION_KILLED:
    case EXECUTION_SETUP_FAILED:
    case EXECUTION_LOST:
    case EXECUTION_BLOCKED:
    case EXECUTION_QUEUED:
    case EXECUTION_STATUSES_:
        break;
    }
    return "cancelled";
}

static json_t *clean_text(const char *text)
{
    autostr struct str clean = {0};
    excerpt_append_clean(&clean, text, strlen(text));
    return json_string(clean.data ? clean.data : "");
}

static json_t *list_denied(const struct execution_result *result)
{
    json_t *list = json_array();
    for (size_t i = 0; i < result->event_count && i < TOOL_DENIED_MAX; i++) {
        const struct execution_event *event = &result->events[i];
        bool network = strcmp(event->type, "network_denied") == 0;
        autostr struct str line = {0};
        str_concat(&line, event->type, ": ", event->detail,
                   network ? "; name the host in network_allow" : "");
        if (line.data)
            (void)json_array_append_new(list, clean_text(line.data));
    }
    return list;
}

/* The type of an image that models can look at, or NULL. */
static const char *image_type(const char *bytes, size_t length)
{
    static const struct {
        const char *type, *magic;
        size_t length;
    } types[] = {
        {"image/png", "\x89PNG\r\n\x1a\n", 8},
        {"image/jpeg", "\xff\xd8\xff", 3},
        {"image/gif", "GIF8", 4},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++)
        if (length > types[i].length && memcmp(bytes, types[i].magic, types[i].length) == 0)
            return types[i].type;
    return length > 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0
               ? "image/webp"
               : NULL;
}

static bool add_image(json_t *content, const char *bytes, size_t length)
{
    autostr struct str encoded = {0};
    base64_append(&encoded, bytes, length);
    json_t *image = encoded.failed ? NULL
                                   : json_pack("{s:s, s:s, s:s}", "type", "image", "data",
                                               encoded.data, "mimeType", image_type(bytes, length));
    return json_array_append_new(content, image) == 0;
}

/* Adds the content of a file if there is room; images go to `content`. */
static json_t *describe_file(const struct execution_file *file, json_t *content, size_t *text_room,
                             size_t *image_room)
{
    const struct execution_bytes *bytes = &file->content;
    json_t *one = json_pack("{s:o, s:I, s:b}", "name", clean_text(file->name), "size",
                            (json_int_t)bytes->length, "truncated", (int)file->truncated);
    bool text =
        utf8_is_valid(bytes->data, bytes->length) && !memchr(bytes->data, '\0', bytes->length);
    autostr struct str encoded = {0};
    if (image_type(bytes->data, bytes->length) && bytes->length <= *image_room &&
        !file->truncated && add_image(content, bytes->data, bytes->length)) {
        *image_room -= bytes->length;
        return one;
    }
    if (text)
        str_append_bytes(&encoded, bytes->data, bytes->length);
    else
        base64_append(&encoded, bytes->data, bytes->length);
    if (encoded.failed || encoded.length > *text_room) {
        (void)json_object_set_new(one, "truncated", json_true());
        return one;
    }
    *text_room -= encoded.length;
    (void)json_object_set_new(one, "content", json_string(encoded.data ? encoded.data : ""));
    (void)json_object_set_new(one, "encoding", json_string(text ? "utf-8" : "base64"));
    return one;
}

static bool cut(const struct execution_bytes *bytes, struct str *out)
{
    struct excerpt excerpt = {.max = TOOL_OUTPUT_BYTES};
    excerpt_add(&excerpt, bytes->data, bytes->length);
    excerpt_print(&excerpt, out);
    bool was_cut = excerpt_was_cut(&excerpt);
    excerpt_done(&excerpt);
    return was_cut;
}

static const char *signal_text(int number, char text[static 32])
{
    const char *name = number > 0 ? sigabbrev_np(number) : NULL;
    if (number <= 0)
        return NULL;
    (void)snprintf(text, 32, name ? "SIG%s" : "signal %s",
                   name ? name : str_number((uint64_t)number).text);
    return text;
}

json_t *mcp_run_result(const struct execution_result *result)
{
    autostr struct str output = {0}, errors = {0};
    char name[32];
    bool was_cut = cut(&result->output, &output);
    was_cut = cut(&result->error_output, &errors) || was_cut;
    size_t text_room = FILES_TEXT_BYTES, image_room = IMAGES_BYTES;
    json_t *files = json_array(), *images = json_array(), *messages = json_array();
    if (result->message && *result->message)
        (void)json_array_append_new(messages, clean_text(result->message));
    for (size_t i = 0; i < result->file_count; i++)
        (void)json_array_append_new(
            files, describe_file(&result->files[i], images, &text_room, &image_room));
    const struct tool_run run = {
        .status = status_of(result),
        .exit_code = result->exit_code,
        .signal = signal_text(result->signal, name),
        .output = &output,
        .errors = &errors,
        .truncated = was_cut || result->output_truncated || result->error_output_truncated,
        .duration_ms = (int64_t)(result->duration_us / 1000),
        .denied = list_denied(result),
        .messages = messages,
        .files = files,
    };
    json_t *whole = tool_run_result(&run);
    (void)json_array_extend(json_object_get(whole, "content"), images);
    json_decref(images);
    return whole;
}

static void end_line(struct str *text)
{
    if (text->length > 0 && text->data[text->length - 1] != '\n')
        str_append_char(text, '\n');
}

/* A value that the code has shown, as text and, if there is room, as an image. */
static void add_shown(const struct run_line *line, struct str *output, json_t *images,
                      size_t *image_room)
{
    static const char *const types[] = {"image/png", "image/jpeg"};
    const char *text = json_string_value(json_object_get(line->data, "text/plain"));
    if (text) {
        end_line(output);
        str_concat(output, text, "\n");
    }
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++) {
        const json_t *image = json_object_get(line->data, types[i]);
        size_t bytes = json_string_length(image) / 4 * 3;
        if (bytes == 0 || bytes > *image_room)
            continue;
        *image_room -= bytes;
        (void)json_array_append_new(images,
                                    json_pack("{s:s, s:s, s:s}", "type", "image", "data",
                                              json_string_value(image), "mimeType", types[i]));
    }
}

json_t *mcp_context_result(const struct execution_result *result,
                           const struct execution_bytes *lines)
{
    autostr struct str output = {0}, errors = {0};
    json_auto_t *images = json_array();
    size_t image_room = IMAGES_BYTES;
    struct execution_result shown = *result;
    struct execution_bytes left = *lines;
    str_append_bytes(&output, result->output.data, result->output.length);
    str_append_bytes(&errors, result->error_output.data, result->error_output.length);
    for (struct run_line line; run_line_next(&left, &line); run_line_done(&line)) {
        if (!line.is_error) {
            add_shown(&line, &output, images, &image_room);
            continue;
        }
        end_line(&errors);
        str_append(&errors, *line.traceback ? line.traceback : line.value);
    }
    if (output.failed || errors.failed)
        return NULL;
    shown.output = (struct execution_bytes){output.data ? output.data : "", output.length};
    shown.error_output = (struct execution_bytes){errors.data ? errors.data : "", errors.length};
    json_t *whole = mcp_run_result(&shown);
    (void)json_array_extend(json_object_get(whole, "content"), images);
    return whole;
}

json_t *mcp_read_result(const json_t *arguments, const struct sandbox_answer *answer)
{
    uint64_t offset = (uint64_t)json_integer_value(json_object_get(arguments, "offset"));
    const struct execution_bytes *bytes = &answer->bytes;
    bool whole = offset == 0 && bytes->length == answer->file_size;
    if (whole && image_type(bytes->data, bytes->length)) {
        json_t *result = tool_result("An image.",
                                     json_pack("{s:s, s:s, s:I}", "content", "", "encoding",
                                               "base64", "size", (json_int_t)answer->file_size),
                                     false);
        (void)add_image(json_object_get(result, "content"), bytes->data, bytes->length);
        return result;
    }
    size_t length = bytes->length < FILE_PART_BYTES ? bytes->length : FILE_PART_BYTES;
    return tool_file_result(bytes->data, length, offset, answer->file_size);
}

json_t *mcp_list_result(const struct sandbox_answer *answer)
{
    static const char *const kinds[] = {"file", "directory", "link", "other"};
    static const char *const marks[] = {"\n", "/\n", "@\n", "\n"};
    autostr struct str text = {0};
    json_t *list = json_array();
    for (size_t i = 0; i < answer->entry_count && i < ENTRIES_MAX; i++) {
        const struct sandbox_entry *entry = &answer->entries[i];
        json_t *path = clean_text(entry->path);
        str_concat(&text, json_string_value(path), marks[entry->kind]);
        (void)json_array_append_new(list,
                                    json_pack("{s:o, s:s, s:I}", "path", path, "type",
                                              kinds[entry->kind], "size", (json_int_t)entry->size));
    }
    bool more = answer->incomplete || answer->entry_count > ENTRIES_MAX;
    if (more)
        str_append(&text, "[there are more entries; list a directory further down]\n");
    return tool_result(text.length > 0 ? text.data : "The directory is empty.",
                       json_pack("{s:o, s:b}", "entries", list, "truncated", (int)more), false);
}
