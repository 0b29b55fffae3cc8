/* SPDX-License-Identifier: MIT */
/* Rows as JSON. What a database holds may have been written by somebody else: nothing of it is
 * pasted. */
#include "server/recorder/row_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "server/recorder/row.h"

#define TIME_TEXT_MAX 40
#define SECOND_NS INT64_C(1000000000)

static void write_time(struct json *j, const char *key, int64_t ns)
{
    char text[TIME_TEXT_MAX];
    struct tm tm;
    time_t seconds = (time_t)(ns / SECOND_NS);
    if (ns == ROW_NO_NUMBER || ns <= 0 || !gmtime_r(&seconds, &tm)) {
        json_null(j, key);
        return;
    }
    size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text + length, sizeof text - length, ".%03dZ", (int)(ns % SECOND_NS / 1000000));
    json_string(j, key, text);
}

static void write_number(struct json *j, const char *key, int64_t number)
{
    if (number == ROW_NO_NUMBER)
        json_null(j, key);
    else
        json_int(j, key, number);
}

/* 0 is what a request did not say. */
static void write_limit(struct json *j, const char *key, int64_t number)
{
    if (number > 0)
        json_int(j, key, number);
}

static void write_duration(struct json *j, const char *key, int64_t us)
{
    char text[TIME_TEXT_MAX];
    if (us == ROW_NO_NUMBER) {
        json_null(j, key);
        return;
    }
    (void)snprintf(text, sizeof text, "%" PRId64 ".%" PRId64 "ms", us / 1000, us % 1000 / 100);
    json_string(j, key, text);
}

/* ---- JSON that was stored as text ---- */

static const char *text_member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void write_events(struct json *j, const char *text)
{
    json_t *events = json_loads(text ? text : "[]", 0, NULL);
    json_open_array(j, "security_events");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        json_open_object(j, NULL);
        json_string(j, "type", text_member(event, "type"));
        json_string(j, "severity", text_member(event, "severity"));
        json_string(j, "detail", text_member(event, "detail"));
        json_close_object(j);
    }
    json_close_array(j);
    json_decref(events);
}

static void write_texts(struct json *j, const char *key, const char *text)
{
    json_t *texts = json_loads(text ? text : "[]", 0, NULL);
    if (json_array_size(texts) > 0) {
        json_open_array(j, key);
        for (size_t i = 0; i < json_array_size(texts); i++) {
            const char *item = json_string_value(json_array_get(texts, i));
            json_string(j, NULL, item ? item : "");
        }
        json_close_array(j);
    }
    json_decref(texts);
}

static void write_files(struct json *j, const char *text)
{
    json_t *files = json_loads(text ? text : "[]", 0, NULL);
    if (json_array_size(files) > 0) {
        json_open_array(j, "files");
        for (size_t i = 0; i < json_array_size(files); i++) {
            const json_t *file = json_array_get(files, i);
            json_open_object(j, NULL);
            json_string(j, "name", text_member(file, "name"));
            json_int(j, "bytes", json_integer_value(json_object_get(file, "bytes")));
            json_close_object(j);
        }
        json_close_array(j);
    }
    json_decref(files);
}

/* ---- Parts ---- */

static void write_usage(struct json *j, const struct row *row)
{
    json_open_object(j, "resource_usage");
    json_int(j, "cpu_time_ms", row->cpu_time_us / 1000);
    json_int(j, "memory_peak_mb", row->memory_peak_bytes >> 20);
    json_int(j, "pids_used", row->pids_used);
    json_close_object(j);
}

static void write_common(struct json *j, const struct row *row)
{
    json_string(j, "id", row->id);
    json_string(j, "language", row->language ? row->language : "");
    json_string(j, "status", row->status ? row->status : "");
    write_number(j, "exit_code", row->exit_code);
    write_time(j, "created_at", row->created_ns);
    write_time(j, "started_at", row->started_ns);
    write_time(j, "ended_at", row->ended_ns);
    write_duration(j, "duration", row->duration_us);
    if (row->cpu_time_us != ROW_NO_NUMBER)
        write_usage(j, row);
    write_events(j, row->events);
}

/* The bytes if they were kept, or their hash, and how many there were. */
static void write_bytes(struct json *j, const char *key, struct execution_bytes bytes,
                        const char *hash, int64_t count)
{
    char name[TIME_TEXT_MAX];
    if (bytes.data)
        json_bytes(j, key, bytes.data, bytes.length);
    (void)snprintf(name, sizeof name, "%s_sha256", key);
    if (hash)
        json_string(j, name, hash);
    (void)snprintf(name, sizeof name, "%s_bytes", key);
    if (count != ROW_NO_NUMBER)
        json_int(j, name, count);
}

static void write_request(struct json *j, const struct row *row)
{
    json_string(j, "request_id", row->request_id);
    json_string(j, "client", row->client);
    write_bytes(j, "code", row->code, row->code_sha256, row->code_bytes);
    if (row->work_dir)
        json_string(j, "work_dir", row->work_dir);
    json_bool(j, "network", row->network == 1);
    json_open_object(j, "limits");
    write_limit(j, "timeout_ms", row->timeout_ms);
    write_limit(j, "memory_mb", row->memory_mb);
    write_limit(j, "pids_limit", row->pids_limit);
    write_limit(j, "disk_mb", row->disk_mb);
    write_limit(j, "cpu_percent", row->cpu_percent);
    json_close_object(j);
}

static void write_result(struct json *j, const struct row *row)
{
    write_number(j, "signal", row->signal > 0 ? row->signal : ROW_NO_NUMBER);
    write_bytes(j, "output", row->output, row->output_sha256, row->output_bytes);
    write_bytes(j, "stderr", row->error_output, row->error_output_sha256, row->error_output_bytes);
    json_open_object(j, "truncated");
    json_bool(j, "output", row->output_truncated == 1);
    json_bool(j, "stderr", row->error_output_truncated == 1);
    json_close_object(j);
    if (row->message && row->message[0])
        json_string(j, "message", row->message);
    write_texts(j, "unenforced", row->unenforced);
    write_files(j, row->files);
}

void row_json_one(const struct row *row, struct str *out)
{
    struct json j;
    json_init(&j, out);
    json_open_object(&j, NULL);
    write_common(&j, row);
    write_request(&j, row);
    if (row->duration_us != ROW_NO_NUMBER)
        write_result(&j, row);
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
    json_string(&j, "next", next);
    json_close_object(&j);
}
