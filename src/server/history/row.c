/* SPDX-License-Identifier: MIT */
/* Rows of the history: their columns, how they are made from executions, and their JSON. */
#include "server/history/row.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include "server/http/result_json.h"

#define TEXT_BYTES 40

#define COLUMN(type_, part_, name_, member)                                                        \
    {.name = (name_),                                                                              \
     .type = ROW_##type_,                                                                          \
     .part = PART_##part_,                                                                         \
     .offset = offsetof(struct row, member)},
const struct row_column row_columns[] = {ROW_COLUMNS(COLUMN)};
const size_t row_column_count = ARRAY_LENGTH(row_columns);

bool row_has_column(enum row_kind kind, const struct row_column *column)
{
    switch (column->part) {
    case PART_KEY:
    case PART_STATE:
        return true;
    case PART_BEGIN:
        return kind == ROW_BEGIN || kind == ROW_BLOCKED || kind == ROW_QUEUED;
    case PART_END:
        return kind == ROW_END;
    }
    return false;
}

void *row_member(const struct row_column *column, const struct row *row)
{
    return (char *)(uintptr_t)row + column->offset;
}

void row_set(struct row *row, const struct row_column *column, const void *data, size_t length)
{
    char *copy = data ? arena_alloc(&row->arena, length + 1) : NULL;
    if (!copy)
        return;
    memcpy(copy, data, length);
    void *member = row_member(column, row);
    switch (column->type) {
    case ROW_TEXT:
        *(const char **)member = copy;
        return;
    case ROW_BYTES:
        *(struct execution_bytes *)member = (struct execution_bytes){copy, length};
        return;
    case ROW_NUMBER:
        *(int64_t *)member = strtoll(copy, NULL, 10);
        return;
    }
}

void row_init(struct row *row, enum row_kind kind)
{
    *row = (struct row){.kind = kind};
    for (size_t i = 0; i < row_column_count; i++)
        if (row_columns[i].type == ROW_NUMBER)
            *(int64_t *)row_member(&row_columns[i], row) = ROW_NO_NUMBER;
}

void row_done(struct row *row)
{
    arena_done(&row->arena);
    *row = (struct row){0};
}

/* ---- From executions ---- */

/* PostgreSQL accepts only UTF-8 as text: other bytes and control characters become question
 * marks. */
static const char *clean_text(struct row *row, const char *text)
{
    char *copy = text ? arena_strdup(&row->arena, text) : NULL;
    for (size_t at = 0, left = copy ? strlen(copy) : 0, length; left > 0;
         at += length, left -= length) {
        length = utf8_length((unsigned char *)copy + at, left);
        if (length > 1 || (length == 1 && copy[at] >= ' ' && copy[at] != 0x7f))
            continue;
        copy[at] = '?';
        length = 1;
    }
    return copy;
}

static void write_event(struct json *j, const void *events, size_t i)
{
    const struct execution_event *event = (const struct execution_event *)events + i;
    json_open_object(j, NULL);
    json_text(j, "type", event->type);
    json_text(j, "severity", execution_severity_name(event->severity));
    json_text(j, "detail", event->detail);
    json_close_object(j);
}

static void write_text(struct json *j, const void *texts, size_t i)
{
    json_text(j, NULL, ((const char *const *)texts)[i]);
}

static void write_file(struct json *j, const void *files, size_t i)
{
    const struct execution_file *file = (const struct execution_file *)files + i;
    json_open_object(j, NULL);
    json_text(j, "name", file->name);
    json_uint(j, "bytes", file->content.length);
    json_close_object(j);
}

static const char *array_json(struct row *row, const void *items, size_t count,
                              void (*write)(struct json *j, const void *items, size_t i))
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_array(&j, NULL);
    for (size_t i = 0; i < count; i++)
        write(&j, items, i);
    json_close_array(&j);
    row->arena.failed |= text.failed;
    return arena_strdup(&row->arena, text.data ? text.data : "[]");
}

/* Keeps the bytes, their hash, or neither; and always their number. */
static void keep_bytes(struct row *row, enum config_keep keep, struct execution_bytes bytes,
                       struct execution_bytes *ret_bytes, const char **ret_hash, int64_t *ret_count)
{
    char hash[SHA256_HEX_LENGTH + 1];
    *ret_count = (int64_t)bytes.length;
    if (keep == KEEP_FULL) {
        char *copy = arena_alloc(&row->arena, bytes.length + 1);
        if (!copy)
            return;
        if (bytes.length > 0)
            memcpy(copy, bytes.data, bytes.length);
        copy[bytes.length] = '\0';
        *ret_bytes = (struct execution_bytes){copy, bytes.length};
    }
    if (keep == KEEP_HASH) {
        sha256_hex(bytes.data, bytes.length, hash);
        *ret_hash = arena_strdup(&row->arena, hash);
    }
}

static void begin_row(struct row *row, enum row_kind kind, const char *id, const char *server,
                      int64_t created_ns)
{
    row_init(row, kind);
    row->id = clean_text(row, id ? id : "");
    row->server = clean_text(row, server);
    row->created_ns = created_ns;
}

static int finish_row(struct row *row, struct row *ret_row, struct brig_error *err)
{
    if (row->arena.failed) {
        row_done(row);
        return brig_fail_nomem(err);
    }
    *ret_row = *row;
    return 0;
}

int row_from_request(enum row_kind kind, const struct execution_request *request,
                     struct row_keep keep, const char *server, int64_t created_ns,
                     struct row *ret_row, struct brig_error *err)
{
    struct row row;
    begin_row(&row, kind, request->id, server, created_ns);
    row.status = execution_status_name(kind == ROW_BLOCKED  ? EXECUTION_BLOCKED
                                       : kind == ROW_QUEUED ? EXECUTION_QUEUED
                                                            : EXECUTION_RUNNING);
    row.events = array_json(&row, request->events, request->event_count, write_event);
    row.request_id = clean_text(&row, request->request_id);
    row.client = clean_text(&row, request->client);
    row.domain = clean_text(&row, request->domain);
    row.language = clean_text(&row, request->language);
    row.work_dir = clean_text(&row, request->work_dir);
    keep_bytes(&row, keep.code, request->code, &row.code, &row.code_sha256, &row.code_bytes);
    row.timeout_ms = (int64_t)request->timeout_ms;
    row.memory_mb = (int64_t)request->limits[EXECUTION_MEMORY_MB];
    row.pids_limit = (int64_t)request->limits[EXECUTION_PIDS];
    row.disk_mb = (int64_t)request->limits[EXECUTION_DISK_MB];
    row.cpu_percent = (int64_t)request->limits[EXECUTION_CPU_PERCENT];
    row.network = request->network;
    if (request->traceparent && *request->traceparent)
        row.traceparent = clean_text(&row, request->traceparent);
    if (request->queued)
        row.priority = request->priority;
    row.queued = request->queued;
    row.sandbox_id = clean_text(&row, request->sandbox);
    return finish_row(&row, ret_row, err);
}

int row_from_result(const struct execution_result *result, struct row_keep keep, const char *server,
                    int64_t created_ns, struct row *ret_row, struct brig_error *err)
{
    struct row row;
    begin_row(&row, ROW_END, result->id, server, created_ns);
    row.status = execution_status_name(result->status);
    row.events = array_json(&row, result->events, result->event_count, write_event);
    row.exit_code = result->exit_code;
    row.signal = result->signal;
    keep_bytes(&row, keep.output, result->output, &row.output, &row.output_sha256,
               &row.output_bytes);
    keep_bytes(&row, keep.output, result->error_output, &row.error_output, &row.error_output_sha256,
               &row.error_output_bytes);
    row.output_truncated = result->output_truncated;
    row.error_output_truncated = result->error_output_truncated;
    const struct execution_result *compile = result->compile; /* of both stages */
    row.duration_us = (int64_t)(result->duration_us + (compile ? compile->duration_us : 0));
    row.cpu_time_us = (int64_t)(result->cpu_time_us + (compile ? compile->cpu_time_us : 0));
    row.memory_peak_bytes =
        (int64_t)(compile && compile->memory_peak_bytes > result->memory_peak_bytes
                      ? compile->memory_peak_bytes
                      : result->memory_peak_bytes);
    row.pids_used = (int64_t)result->pids_used;
    row.started_ns = result->started_ns;
    row.ended_ns = clock_wall_ns();
    row.message = clean_text(&row, result->message);
    row.unenforced = array_json(&row, result->unenforced, result->unenforced_count, write_text);
    row.files = array_json(&row, result->files, result->file_count, write_file);
    row.kept = result->kept;
    row.used_by = clean_text(&row, result->domain);
    return finish_row(&row, ret_row, err);
}

int row_lost(const char *server, int64_t created_ns, struct row *ret_row, struct brig_error *err)
{
    struct row row;
    begin_row(&row, ROW_LOST, "", server, created_ns);
    return finish_row(&row, ret_row, err);
}

/* ---- As JSON ---- */

static void write_number(struct json *j, const char *key, int64_t number)
{
    if (number == ROW_NO_NUMBER)
        json_nothing(j, key);
    else
        json_int(j, key, number);
}

/* 0: not set by the request. */
static void write_limit(struct json *j, const char *key, int64_t number)
{
    if (number > 0)
        json_int(j, key, number);
}

static void write_duration(struct json *j, const char *key, int64_t us)
{
    char text[TEXT_BYTES];
    if (us == ROW_NO_NUMBER) {
        json_nothing(j, key);
        return;
    }
    /* Same format as in the answer of /execute. */
    if (us >= 1000000)
        (void)snprintf(text, sizeof text, "%.3fs", (double)us / 1e6);
    else
        (void)snprintf(text, sizeof text, "%.1fms", (double)us / 1e3);
    json_text(j, key, text);
}

/* Parses and writes a stored array again, so that the output is valid JSON whatever the database
 * contains. */
static void write_items(struct json *j, const char *key, const char *text, bool if_empty)
{
    json_t *array = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    autofree char *items = json_array_size(array) > 0 ? json_dumps(array, JSON_COMPACT) : NULL;
    json_decref(array);
    if (!items && !if_empty)
        return;
    json_open_array(j, key);
    if (items) /* without the brackets */
        str_append_bytes(j->out, items + 1, strlen(items) - 2);
    json_close_array(j);
}

static int64_t divide_up(int64_t number, int64_t by)
{
    return number / by + (number % by > 0);
}

static void write_usage(struct json *j, const struct row *row)
{
    json_open_object(j, "resource_usage");
    /* Rounded up, as in the answer of /execute. */
    json_int(j, "cpu_time_ms", divide_up(row->cpu_time_us, 1000));
    json_int(j, "memory_peak_mb", divide_up(row->memory_peak_bytes, 1 << 20));
    json_int(j, "pids_used", row->pids_used);
    json_close_object(j);
}

static void write_common(struct json *j, const struct row *row)
{
    json_text(j, "id", row->id);
    json_text(j, "language", row->language ? row->language : "");
    json_text(j, "status", row->status ? row->status : "");
    write_number(j, "exit_code", row->exit_code);
    /* The history process may receive a run some milliseconds after it started. */
    bool late = row->started_ns != ROW_NO_NUMBER && row->started_ns > 0;
    late = late && row->started_ns < row->created_ns;
    json_time(j, "created_at", late ? row->started_ns : row->created_ns);
    json_time(j, "started_at", row->started_ns);
    json_time(j, "ended_at", row->ended_ns);
    write_duration(j, "duration", row->duration_us);
    if (row->cpu_time_us != ROW_NO_NUMBER)
        write_usage(j, row);
    write_items(j, "security_events", row->events, true);
}

/* Writes the bytes if they were kept, else their hash, and their number. */
static void write_bytes(struct json *j, const char *key, struct execution_bytes bytes,
                        const char *hash, int64_t count)
{
    char name[TEXT_BYTES];
    if (bytes.data)
        json_bytes(j, key, bytes.data, bytes.length);
    (void)snprintf(name, sizeof name, "%s_sha256", key);
    if (hash)
        json_text(j, name, hash);
    (void)snprintf(name, sizeof name, "%s_bytes", key);
    if (count != ROW_NO_NUMBER)
        json_int(j, name, count);
}

static void write_request(struct json *j, const struct row *row)
{
    json_text(j, "request_id", row->request_id);
    json_text(j, "client", row->client);
    if (row->traceparent)
        json_text(j, "traceparent", row->traceparent);
    if (row->priority != ROW_NO_NUMBER)
        json_int(j, "priority", row->priority);
    write_bytes(j, "code", row->code, row->code_sha256, row->code_bytes);
    if (row->work_dir)
        json_text(j, "work_dir", row->work_dir);
    if (row->sandbox_id)
        json_text(j, "sandbox_id", row->sandbox_id);
    json_bool(j, "network", row->network == 1);
    json_open_object(j, "limits");
    write_limit(j, "timeout_ms", row->timeout_ms);
    write_limit(j, "memory_mb", row->memory_mb);
    write_limit(j, "pids_limit", row->pids_limit);
    write_limit(j, "disk_mb", row->disk_mb);
    write_limit(j, "cpu_percent", row->cpu_percent);
    json_close_object(j);
}

/* What is kept of a result for a while may be more than its row keeps for ever. */
static void write_result(struct json *j, const struct row *row, const struct execution_result *kept)
{
    write_number(j, "signal", row->signal > 0 ? row->signal : ROW_NO_NUMBER);
    write_bytes(j, "output", kept ? kept->output : row->output, row->output_sha256,
                row->output_bytes);
    write_bytes(j, "stderr", kept ? kept->error_output : row->error_output,
                row->error_output_sha256, row->error_output_bytes);
    json_open_object(j, "truncated");
    json_bool(j, "output", row->output_truncated == 1);
    json_bool(j, "stderr", row->error_output_truncated == 1);
    json_close_object(j);
    write_items(j, "unenforced", row->unenforced, false);
    write_items(j, "files", row->files, false);
    if (!kept)
        return;
    result_json_stages(j, kept, false);
    result_json_files(j, "returned_files", kept);
}

static void write_callback(struct json *j, const struct row_more *more)
{
    json_open_object(j, "callback");
    json_text(j, "state", more->callback_state);
    json_text(j, "url", more->callback_url);
    json_int(j, "attempts", more->callback_attempts);
    if (more->callback_status > 0)
        json_int(j, "status", more->callback_status);
    if (more->callback_message && *more->callback_message)
        json_text(j, "message", more->callback_message);
    json_close_object(j);
}

void row_more_done(struct row_more *more)
{
    execution_result_done(&more->result);
    arena_done(&more->arena);
    *more = (struct row_more){0};
}

void row_json_one(const struct row *row, const struct row_more *more, struct str *out)
{
    struct json j;
    json_init(&j, out);
    json_open_object(&j, NULL);
    write_common(&j, row);
    write_request(&j, row);
    if (row->duration_us != ROW_NO_NUMBER)
        write_result(&j, row, more && more->has_result ? &more->result : NULL);
    if (more && more->callback_state)
        write_callback(&j, more);
    if (row->message && row->message[0])
        json_text(&j, "message", row->message);
    json_close_object(&j);
}

void row_json_list(const struct row *rows, size_t count, const char *next, struct str *out)
{
    struct json j;
    json_init(&j, out);
    json_open_object(&j, NULL);
    json_open_array(&j, "executions");
    for (size_t i = 0; i < count; i++) {
        json_open_object(&j, NULL);
        write_common(&j, &rows[i]);
        json_close_object(&j);
    }
    json_close_array(&j);
    json_text(&j, "next", next);
    json_close_object(&j);
}
