/* SPDX-License-Identifier: MIT */
/* brigd's own dialect of the API for sandboxes: from HTTP to requests of server/sandbox.h, and from
 * their answers to JSON. */
#include "server/api/sandboxes.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "server/api/sandbox_request.h"
#include "server/config/runtime.h"
#include "server/guest/guest_wire.h"
#include "server/http/http.h"
#include "server/http/result_json.h"
#include "server/http/sandbox.h"
#include "server/http/stream.h"

/* ---- JSON ---- */

static void write_texts(struct json *j, const char *key, const char *const *texts, size_t count)
{
    json_open_array(j, key);
    for (size_t i = 0; i < count; i++)
        json_text(j, NULL, texts[i]);
    json_close_array(j);
}

static void write_info(struct json *j, const struct sandbox_info *info)
{
    static const char *const states[SANDBOX_STATES_] = {"running", "paused", "ending"};
    json_open_object(j, NULL);
    json_text(j, "id", info->id);
    json_text(j, "name", info->name);
    json_text(j, "language", info->language);
    if (info->image)
        json_text(j, "image", info->image);
    json_text(j, "state", states[info->state]);
    json_time(j, "created_at", info->created_ns);
    json_time(j, "ends_at", info->deadline_ns);
    json_uint(j, "seconds_left", info->left_ms / 1000);
    json_open_object(j, "metadata");
    for (size_t i = 0; i < info->metadata_count; i++)
        json_text(j, info->metadata[i].name, info->metadata[i].value);
    json_close_object(j);
    json_open_object(j, "limits");
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++)
        json_uint(j, runtime_limit_names[i], info->limits[i]);
    json_close_object(j);
    json_bool(j, "network", info->network);
    write_texts(j, "allow", info->allow, info->allow_count);
    json_uint(j, "commands", info->commands);
    if (info->unenforced_count > 0)
        write_texts(j, "unenforced", info->unenforced, info->unenforced_count);
    json_close_object(j);
}

static void write_metrics(struct json *j, const struct sandbox_info *info)
{
    json_open_object(j, NULL);
    json_uint(j, "memory_bytes", info->memory_bytes);
    json_uint(j, "memory_peak_bytes", info->memory_peak_bytes);
    json_uint(j, "memory_limit_bytes", info->limits[EXECUTION_MEMORY_MB] << 20);
    json_uint(j, "pids", info->pids);
    json_uint(j, "pids_limit", info->limits[EXECUTION_PIDS]);
    json_uint(j, "cpu_time_us", info->cpu_us);
    json_uint(j, "cpu_percent_limit", info->limits[EXECUTION_CPU_PERCENT]);
    json_uint(j, "oom_kills", info->oom_kills);
    json_uint(j, "commands", info->commands);
    json_close_object(j);
}

/* What a command is; the caller closes the object. */
static void open_command(struct json *j, const struct sandbox_command *command)
{
    json_open_object(j, NULL);
    json_uint(j, "pid", command->number);
    json_text(j, "id", command->id);
    write_texts(j, "argv", command->args, command->arg_count);
    if (command->cwd)
        json_text(j, "cwd", command->cwd);
    json_bool(j, "pty", command->pty);
    json_time(j, "started_at", command->started_ns);
}

static void write_entry(struct json *j, const struct sandbox_entry *entry)
{
    static const char *const kinds[] = {"file", "directory", "symlink", "other"};
    char mode[8];
    const char *slash = strrchr(entry->path, '/');
    (void)snprintf(mode, sizeof mode, "%04o", (unsigned)entry->mode);
    json_open_object(j, NULL);
    json_text(j, "name", slash && slash[1] ? slash + 1 : entry->path);
    json_text(j, "path", entry->path);
    json_text(j, "type", kinds[entry->kind]);
    json_uint(j, "size", entry->size);
    json_text(j, "mode", mode);
    json_uint(j, "uid", entry->uid);
    json_uint(j, "gid", entry->gid);
    json_time(j, "modified_at", entry->modified_ns);
    if (entry->target)
        json_text(j, "target", entry->target);
    json_close_object(j);
}

/* ---- answers ---- */

static void answer_info(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    bool created = exchange->route->flags & ROUTE_CREATES;
    json_init(&j, &text);
    if (answer->sandbox_count == 1)
        write_info(&j, &answer->sandboxes[0]);
    answer_json(exchange, created ? MHD_HTTP_CREATED : MHD_HTTP_OK, &text);
}

static void answer_usage(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    if (answer->sandbox_count == 1)
        write_metrics(&j, &answer->sandboxes[0]);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

static void answer_list(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_open_array(&j, "sandboxes");
    for (size_t i = 0; i < answer->sandbox_count; i++)
        write_info(&j, &answer->sandboxes[i]);
    json_close_array(&j);
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

static void answer_commands(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_open_array(&j, "commands");
    for (size_t i = 0; i < answer->command_count; i++) {
        open_command(&j, &answer->commands[i]);
        json_bool(&j, "running", answer->commands[i].result.length == 0);
        json_close_object(&j);
    }
    json_close_array(&j);
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

void sandboxes_write_result(struct json *j, const struct exchange *exchange,
                            const struct execution_result *result)
{
    autostr struct str inner = {0};
    const struct stream *stream = exchange->stream;
    struct json k;
    json_init(&k, &inner);
    result_json_write(&k, result, stream != NULL, stream && stream_has_dropped(stream));
    j->out->failed |= inner.failed;
    str_append(j->out, ",\"result\":");
    str_append_bytes(j->out, inner.data, inner.length);
}

static void write_command(struct json *j, const struct exchange *exchange,
                          const struct sandbox_command *command)
{
    autoresult struct execution_result result = {0};
    bool known =
        command->result.length > 0 &&
        execution_result_decode(command->result.data, command->result.length, &result, NULL) == 0;
    open_command(j, command);
    json_bool(j, "running", !known || result.status == EXECUTION_RUNNING);
    if (known)
        sandboxes_write_result(j, exchange, &result);
    json_close_object(j);
}

void sandboxes_begin_stream(struct exchange *exchange)
{
    bool base64 = false;
    (void)query_encoding(exchange, &base64); /* was checked before */
    (void)stream_begin(exchange, NULL, base64);
}

static void answer_command(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    if (answer->command_count != 1) {
        answer_error(exchange, ERROR_INTERNAL, NULL);
        return;
    }
    const struct sandbox_command *command = &answer->commands[0];
    (void)snprintf(exchange->execution_id, sizeof exchange->execution_id, "%s", command->id);
    exchange->replayed = answer->replayed;
    if (answer->more)
        sandboxes_begin_stream(exchange);
    json_init(&j, &text);
    write_command(&j, exchange, command);
    const char *json = text.failed ? NULL : text.data;
    if (answer->more && exchange->stream)
        stream_event(exchange->stream, "start", json);
    else if (exchange->stream)
        stream_end(exchange->stream, "end", json);
    else if (!answer->more)
        answer_json(exchange, MHD_HTTP_OK, &text);
}

static void add_piece(struct exchange *exchange, enum sandbox_piece kind, const char *bytes,
                      size_t length)
{
    static const char *const events[] = {
        [SANDBOX_STDOUT] = "stdout", [SANDBOX_STDERR] = "stderr", [SANDBOX_TERMINAL] = "pty"};
    if (kind == SANDBOX_GAP)
        stream_event(exchange->stream, "gap", "{}");
    else if (kind >= SANDBOX_STDOUT && kind <= SANDBOX_TERMINAL)
        stream_live(exchange->stream, events[kind], kind == SANDBOX_STDERR, bytes, length);
}

static void answer_entries(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_open_array(&j, "entries");
    for (size_t i = 0; i < answer->entry_count; i++)
        write_entry(&j, &answer->entries[i]);
    json_close_array(&j);
    json_bool(&j, "truncated", answer->incomplete);
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

static void answer_entry(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    if (answer->entry_count == 1)
        write_entry(&j, &answer->entries[0]);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

/* A file that is larger than one answer has to be read in parts. */
static void answer_bytes(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str bytes = {0};
    if (!exchange_parameter(exchange, "length") && !exchange_parameter(exchange, "offset") &&
        answer->file_size > answer->bytes.length) {
        answer_error(exchange, ERROR_FILE_TOO_LARGE, NULL);
        return;
    }
    str_append_bytes(&bytes, answer->bytes.data, answer->bytes.length);
    answer_text(exchange, MHD_HTTP_OK, "application/octet-stream", &bytes);
}

static void answer_made(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    str_appendf(&text, "{\"created\":%s}", answer->incomplete ? "false" : "true");
    answer_json(exchange, MHD_HTTP_OK, &text);
}

static void answer_watch(struct exchange *exchange, const struct sandbox_answer *answer)
{
    if (answer->more)
        sandboxes_begin_stream(exchange);
    if (answer->more && exchange->stream)
        stream_event(exchange->stream, "start", "{}");
    else if (exchange->stream)
        stream_end(exchange->stream, "end", "{}");
}

static void add_change(struct exchange *exchange, enum sandbox_piece kind, const char *bytes,
                       size_t length)
{
    static const char *const names[] = {"",       "create", "write",   "remove",
                                        "rename", "chmod",  "overflow"};
    autostr struct str text = {0};
    struct json j;
    if (kind != SANDBOX_CHANGE || length < 1 || bytes[0] < GUEST_CREATED || bytes[0] > GUEST_LOST)
        return;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_text(&j, "type", names[(unsigned char)bytes[0]]);
    json_bytes(&j, "name", bytes + 1, length - 1);
    json_close_object(&j);
    stream_event(exchange->stream, "change", text.failed ? NULL : text.data);
}

/* ---- requests ---- */

void sandboxes_ask(struct exchange *exchange, struct sandbox_request *request,
                   sandbox_taker *answered)
{
    bool context = request->operation >= SANDBOX_CONTEXT_CREATE;
    request->command = route_number(exchange->route, exchange->path);
    if (context && strstr(exchange->route->path, "{pid}") && request->command == 0)
        answer_error(exchange, ERROR_NOT_FOUND, NULL); /* 0 stands for a default one */
    else
        sandbox_ask(exchange, request, answered);
}

/* Whether it adds to the history, now or later. */
static bool needs_history(enum sandbox_operation operation)
{
    return operation <= SANDBOX_START || operation == SANDBOX_CONTEXT_CREATE ||
           operation == SANDBOX_CONTEXT_RUN;
}

bool sandboxes_read_body(struct exchange *exchange, struct sandbox_request *request)
{
    struct request_fault fault;
    const char *body = exchange->body.data ? exchange->body.data : "";
    bool good = sandbox_request_read(body, exchange->body.length, request, &fault);
    bool full = http_history_is_full(exchange->http) && needs_history(request->operation);
    if (!good)
        answer_field_error(exchange, fault.error, fault.field, fault.message);
    else if (full)
        answer_error(exchange, ERROR_HISTORY_FULL, NULL);
    return good && !full;
}

void sandboxes_ask_with_body(struct exchange *exchange, struct sandbox_request *request,
                             sandbox_taker *answered)
{
    if (query_check(exchange) && sandboxes_read_body(exchange, request))
        sandboxes_ask(exchange, request, answered);
}

void sandboxes_ask_plainly(struct exchange *exchange, enum sandbox_operation operation,
                           sandbox_taker *answered)
{
    struct sandbox_request request = {.operation = operation};
    if (query_check(exchange))
        sandboxes_ask(exchange, &request, answered);
}

void sandboxes_create(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_CREATE};
    sandboxes_ask_with_body(exchange, &request, answer_info);
}

static bool refuse_query(struct exchange *exchange, const char *name, const char *message)
{
    answer_field_error(exchange, ERROR_INVALID_QUERY, name, message);
    return false;
}

/* "name=value", in the form of a query of its own, percent-encoded by the client once more; or
 * several, joined by "&". */
static bool read_metadata(struct exchange *exchange, struct sandbox_request *request)
{
    const char *given = exchange_parameter(exchange, "metadata");
    if (!given)
        return true;
    char *text = arena_strdup(&request->arena, given);
    request->metadata =
        arena_alloc(&request->arena, SANDBOX_METADATA_MAX * sizeof *request->metadata);
    while (text && request->metadata && *text) {
        size_t length = strcspn(text, "&");
        char *next = text[length] ? text + length + 1 : text + length;
        text[length] = '\0';
        char *equals = strchr(text, '=');
        if (!equals || request->metadata_count == SANDBOX_METADATA_MAX)
            return refuse_query(exchange, "metadata", "metadata has to be name=value");
        *equals = '\0';
        (void)MHD_http_unescape(text);
        (void)MHD_http_unescape(equals + 1);
        if (strlen(text) > EXECUTION_NAME_MAX || strlen(equals + 1) > SANDBOX_METADATA_BYTES)
            return refuse_query(exchange, "metadata", "a name or value of metadata is too long");
        request->metadata[request->metadata_count++] =
            (struct execution_pair){.name = text, .value = equals + 1};
        text = next;
    }
    return true;
}

void sandboxes_list(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_LIST};
    const char *state = exchange_parameter(exchange, "state");
    if (!query_check(exchange) || !read_metadata(exchange, &request))
        return;
    if (state && strcmp(state, "running") != 0 && strcmp(state, "paused") != 0) {
        (void)refuse_query(exchange, "state", "state has to be running or paused");
        return;
    }
    if (state)
        request.states = 1U << (*state == 'p' ? SANDBOX_PAUSED : SANDBOX_RUNNING);
    sandboxes_ask(exchange, &request, answer_list);
}

void sandboxes_get(struct exchange *exchange)
{
    sandboxes_ask_plainly(exchange, SANDBOX_GET, answer_info);
}

void sandboxes_metrics(struct exchange *exchange)
{
    sandboxes_ask_plainly(exchange, SANDBOX_GET, answer_usage);
}

void sandboxes_end(struct exchange *exchange)
{
    sandboxes_ask_plainly(exchange, SANDBOX_END, sandbox_answer_nothing);
}

void sandboxes_pause(struct exchange *exchange)
{
    sandboxes_ask_plainly(exchange, SANDBOX_PAUSE, answer_info);
}

void sandboxes_resume(struct exchange *exchange)
{
    sandboxes_ask_plainly(exchange, SANDBOX_RESUME, answer_info);
}

void sandboxes_timeout(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_TIMEOUT};
    sandboxes_ask_with_body(exchange, &request, answer_info);
}

void sandboxes_fork(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_FORK};
    sandboxes_ask_with_body(exchange, &request, answer_info);
}

void sandboxes_network(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_NETWORK};
    sandboxes_ask_with_body(exchange, &request, answer_info);
}

/* ---- commands ---- */

static bool read_flag(struct exchange *exchange, const char *name, bool *ret_set)
{
    const char *value = exchange_parameter(exchange, name);
    char message[64];
    *ret_set = str_equal(value, "1");
    if (!value || *ret_set || strcmp(value, "0") == 0)
        return true;
    (void)snprintf(message, sizeof message, "%s has to be 0 or 1", name);
    return refuse_query(exchange, name, message);
}

bool sandboxes_read_wait(struct exchange *exchange, struct sandbox_request *request)
{
    bool base64, stream;
    if (!query_encoding(exchange, &base64) || !read_flag(exchange, "stream", &stream))
        return false;
    if (stream)
        request->wait = SANDBOX_FOLLOW;
    return true;
}

void sandboxes_start(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_START,
                                                  .wait = SANDBOX_UNTIL_END};
    exchange->piece = add_piece;
    if (!sandboxes_read_wait(exchange, &request) || !execute_take_key(exchange))
        return;
    if (*exchange->idempotency_key) {
        request.idempotency_key = exchange->idempotency_key;
        request.body_sha256 = exchange->body_sha256;
    }
    sandboxes_ask_with_body(exchange, &request, answer_command);
}

void sandboxes_commands(struct exchange *exchange)
{
    sandboxes_ask_plainly(exchange, SANDBOX_COMMANDS, answer_commands);
}

void sandboxes_command(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_COMMAND};
    bool wait;
    exchange->piece = add_piece;
    if (!read_flag(exchange, "wait", &wait))
        return;
    if (wait)
        request.wait = SANDBOX_UNTIL_END;
    if (query_check(exchange) && sandboxes_read_wait(exchange, &request))
        sandboxes_ask(exchange, &request, answer_command);
}

void sandboxes_kill(struct exchange *exchange)
{
    struct sandbox_request request = {.operation = SANDBOX_SIGNAL, .signal = SIGKILL};
    if (query_check(exchange))
        sandboxes_ask(exchange, &request, sandbox_answer_nothing);
}

void sandboxes_input(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_INPUT, .keep_input = true};
    sandboxes_ask_with_body(exchange, &request, sandbox_answer_nothing);
}

void sandboxes_signal(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_SIGNAL};
    sandboxes_ask_with_body(exchange, &request, sandbox_answer_nothing);
}

void sandboxes_resize(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_RESIZE};
    sandboxes_ask_with_body(exchange, &request, sandbox_answer_nothing);
}

/* ---- files ---- */

static bool read_count(struct exchange *exchange, const char *name, uint64_t most,
                       uint64_t *ret_value)
{
    const char *text = exchange_parameter(exchange, name);
    if (!text)
        return true;
    if (parse_uint(text, most, PARSE_ZERO_OK, ret_value, NULL) == 0)
        return true;
    char message[STR_SHOWN_MAX + 96];
    (void)snprintf(message, sizeof message, "%s: '%s' is not a whole number from 0 to %" PRIu64,
                   name, str_shown(text).text, most);
    return refuse_query(exchange, name, message);
}

/* ?path= of every request for a file. */
static bool read_path(struct exchange *exchange, struct sandbox_request *request)
{
    request->path = exchange_parameter(exchange, "path");
    if (!query_check(exchange))
        return false;
    if (!request->path || !*request->path || strlen(request->path) > SANDBOX_PATH_MAX)
        return refuse_query(exchange, "path",
                            "path is missing, or longer than 4095 bytes; path=. is /workspace");
    return true;
}

void sandboxes_read(struct exchange *exchange)
{
    bool list = false;
    autosandbox struct sandbox_request request = {.length = SANDBOX_FILE_MAX, .depth = 1};
    bool good = read_path(exchange, &request) && read_flag(exchange, "list", &list);
    request.operation = list ? SANDBOX_ENTRIES : SANDBOX_READ;
    if (good && read_count(exchange, "offset", INT64_MAX, &request.offset) &&
        read_count(exchange, "length", SANDBOX_FILE_MAX, &request.length) &&
        read_count(exchange, "depth", SANDBOX_DEPTH_MAX, &request.depth))
        sandboxes_ask(exchange, &request, list ? answer_entries : answer_bytes);
}

void sandboxes_write(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {
        .operation = SANDBOX_WRITE,
        .bytes = {exchange->body.data ? exchange->body.data : "", exchange->body.length}};
    const char *mode = exchange_parameter(exchange, "mode");
    if (!read_path(exchange, &request) || !read_flag(exchange, "append", &request.append) ||
        !read_count(exchange, "offset", INT64_MAX, &request.offset))
        return;
    if (mode && (strspn(mode, "01234567") != strlen(mode) || strlen(mode) < 3 || strlen(mode) > 4 ||
                 (strlen(mode) == 4 && *mode != '0'))) {
        (void)refuse_query(exchange, "mode", "mode has to be three octal digits, as 644");
        return;
    }
    for (; mode && *mode; mode++)
        request.mode = request.mode * 8 + (uint64_t)(*mode - '0');
    sandboxes_ask(exchange, &request, sandbox_answer_nothing);
}

void sandboxes_remove(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_REMOVE};
    if (read_path(exchange, &request))
        sandboxes_ask(exchange, &request, sandbox_answer_nothing);
}

void sandboxes_stat(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_STAT};
    if (read_path(exchange, &request))
        sandboxes_ask(exchange, &request, answer_entry);
}

void sandboxes_move(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_MOVE};
    sandboxes_ask_with_body(exchange, &request, sandbox_answer_nothing);
}

void sandboxes_make(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_MAKE};
    sandboxes_ask_with_body(exchange, &request, answer_made);
}

void sandboxes_watch(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_WATCH};
    exchange->piece = add_change;
    if (read_path(exchange, &request) && read_flag(exchange, "recursive", &request.recursive))
        sandboxes_ask(exchange, &request, answer_watch);
}
