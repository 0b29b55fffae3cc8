/* SPDX-License-Identifier: MIT */
/* Rows as JSON. What a database holds may have been written by somebody else: nothing of it is
 * pasted. */
#include "server/history/row_json.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "server/history/row.h"
#include "server/history/stored_json.h"

#define TIME_TEXT_MAX 40
#define SECOND_NS INT64_C(1000000000)

static void write_time(struct json *j, const char *key, int64_t ns)
{
    char text[TIME_TEXT_MAX];
    struct tm tm;
    time_t seconds = (time_t)(ns / SECOND_NS);
    if (ns == ROW_NO_NUMBER || ns <= 0 || !gmtime_r(&seconds, &tm)) {
        json_nothing(j, key);
        return;
    }
    size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text + length, sizeof text - length, ".%03dZ", (int)(ns % SECOND_NS / 1000000));
    json_text(j, key, text);
}

static void write_number(struct json *j, const char *key, int64_t number)
{
    if (number == ROW_NO_NUMBER)
        json_nothing(j, key);
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
        json_nothing(j, key);
        return;
    }
    /* As in the answer of /execute. */
    if (us >= 1000000)
        (void)snprintf(text, sizeof text, "%.3fs", (double)us / 1e6);
    else
        (void)snprintf(text, sizeof text, "%.1fms", (double)us / 1e3);
    json_text(j, key, text);
}

static void write_items(struct json *j, const char *key, const char *items, bool if_empty)
{
    autostr struct str text = {0};
    bool any = stored_json_items(items, &text);
    if (!any && !if_empty)
        return;
    json_open_array(j, key);
    if (any)
        str_append_bytes(j->out, text.data, text.length);
    json_close_array(j);
}

/* ---- Parts ---- */

static int64_t divide_up(int64_t number, int64_t by)
{
    return number / by + (number % by > 0);
}

static void write_usage(struct json *j, const struct row *row)
{
    json_open_object(j, "resource_usage");
    /* Rounded up, as in the answer to the client. */
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
    /* The history process may hear of a run some milliseconds after it has begun. */
    bool late = row->started_ns != ROW_NO_NUMBER && row->started_ns > 0;
    late = late && row->started_ns < row->created_ns;
    write_time(j, "created_at", late ? row->started_ns : row->created_ns);
    write_time(j, "started_at", row->started_ns);
    write_time(j, "ended_at", row->ended_ns);
    write_duration(j, "duration", row->duration_us);
    if (row->cpu_time_us != ROW_NO_NUMBER)
        write_usage(j, row);
    write_items(j, "security_events", row->events, true);
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
        json_text(j, name, hash);
    (void)snprintf(name, sizeof name, "%s_bytes", key);
    if (count != ROW_NO_NUMBER)
        json_int(j, name, count);
}

static void write_request(struct json *j, const struct row *row)
{
    json_text(j, "request_id", row->request_id);
    json_text(j, "client", row->client);
    write_bytes(j, "code", row->code, row->code_sha256, row->code_bytes);
    if (row->work_dir)
        json_text(j, "work_dir", row->work_dir);
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
        json_text(j, "message", row->message);
    write_items(j, "unenforced", row->unenforced, false);
    write_items(j, "files", row->files, false);
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
    json_text(&j, "next", next);
    json_close_object(&j);
}
