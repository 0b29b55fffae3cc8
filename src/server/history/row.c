/* SPDX-License-Identifier: MIT */
/* Rows of the history: their columns, and how they come from executions. */
#include "server/history/row.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include "server/pack.h"

#define FORMAT 1 /* changes with the columns */
#define TEXT_MAX ((size_t)1 << 20)
#define BYTES_MAX EXECUTION_CODE_MAX

#define COLUMN(name_, type_, part_, member)                                                        \
    .name = (name_), .type = (type_), .part = (part_), .offset = offsetof(struct row, member)

const struct row_column row_columns[] = {
    {COLUMN("id", ROW_TEXT, PART_KEY, id)},
    {COLUMN("server", ROW_TEXT, PART_KEY, server)},
    {COLUMN("created_ns", ROW_NUMBER, PART_KEY, created_ns)},
    {COLUMN("status", ROW_TEXT, PART_STATE, status)},
    {COLUMN("events", ROW_TEXT, PART_STATE, events)},
    {COLUMN("request_id", ROW_TEXT, PART_BEGIN, request_id)},
    {COLUMN("client", ROW_TEXT, PART_BEGIN, client)},
    {COLUMN("domain", ROW_TEXT, PART_BEGIN, domain)},
    {COLUMN("language", ROW_TEXT, PART_BEGIN, language)},
    {COLUMN("work_dir", ROW_TEXT, PART_BEGIN, work_dir)},
    {COLUMN("code", ROW_BYTES, PART_BEGIN, code), .large = true},
    {COLUMN("code_sha256", ROW_TEXT, PART_BEGIN, code_sha256)},
    {COLUMN("code_bytes", ROW_NUMBER, PART_BEGIN, code_bytes)},
    {COLUMN("timeout_ms", ROW_NUMBER, PART_BEGIN, timeout_ms)},
    {COLUMN("memory_mb", ROW_NUMBER, PART_BEGIN, memory_mb)},
    {COLUMN("pids_limit", ROW_NUMBER, PART_BEGIN, pids_limit)},
    {COLUMN("disk_mb", ROW_NUMBER, PART_BEGIN, disk_mb)},
    {COLUMN("cpu_percent", ROW_NUMBER, PART_BEGIN, cpu_percent)},
    {COLUMN("network", ROW_NUMBER, PART_BEGIN, network)},
    {COLUMN("exit_code", ROW_NUMBER, PART_END, exit_code)},
    {COLUMN("signal", ROW_NUMBER, PART_END, signal)},
    {COLUMN("output", ROW_BYTES, PART_END, output), .large = true},
    {COLUMN("output_sha256", ROW_TEXT, PART_END, output_sha256)},
    {COLUMN("output_bytes", ROW_NUMBER, PART_END, output_bytes)},
    {COLUMN("output_truncated", ROW_NUMBER, PART_END, output_truncated)},
    {COLUMN("stderr", ROW_BYTES, PART_END, error_output), .large = true},
    {COLUMN("stderr_sha256", ROW_TEXT, PART_END, error_output_sha256)},
    {COLUMN("stderr_bytes", ROW_NUMBER, PART_END, error_output_bytes)},
    {COLUMN("stderr_truncated", ROW_NUMBER, PART_END, error_output_truncated)},
    {COLUMN("duration_us", ROW_NUMBER, PART_END, duration_us)},
    {COLUMN("cpu_time_us", ROW_NUMBER, PART_END, cpu_time_us)},
    {COLUMN("memory_peak_bytes", ROW_NUMBER, PART_END, memory_peak_bytes)},
    {COLUMN("pids_used", ROW_NUMBER, PART_END, pids_used)},
    {COLUMN("started_ns", ROW_NUMBER, PART_END, started_ns)},
    {COLUMN("ended_ns", ROW_NUMBER, PART_END, ended_ns)},
    {COLUMN("message", ROW_TEXT, PART_END, message)},
    {COLUMN("unenforced", ROW_TEXT, PART_END, unenforced)},
    {COLUMN("files", ROW_TEXT, PART_END, files)},
};
const size_t row_column_count = ARRAY_LENGTH(row_columns);

bool row_has_column(enum row_kind kind, const struct row_column *column)
{
    switch (column->part) {
    case PART_KEY:
    case PART_STATE:
        return kind != ROW_LOST || column->part == PART_KEY;
    case PART_BEGIN:
        return kind == ROW_BEGIN || kind == ROW_BLOCKED || kind == ROW_WHOLE;
    case PART_END:
        return kind == ROW_END || kind == ROW_WHOLE;
    }
    return false;
}

static void *member(const struct row_column *column, const struct row *row)
{
    return (char *)(uintptr_t)row + column->offset;
}

const char **row_text(const struct row_column *column, const struct row *row)
{
    return member(column, row);
}

struct execution_bytes *row_bytes(const struct row_column *column, const struct row *row)
{
    return member(column, row);
}

int64_t *row_number(const struct row_column *column, const struct row *row)
{
    return member(column, row);
}

void row_init(struct row *row, enum row_kind kind)
{
    *row = (struct row){.kind = kind};
    for (size_t i = 0; i < row_column_count; i++)
        if (row_columns[i].type == ROW_NUMBER)
            *row_number(&row_columns[i], row) = ROW_NO_NUMBER;
}

void row_done(struct row *row)
{
    arena_done(&row->arena);
    *row = (struct row){0};
}

/* ---- From executions ---- */

/* How many bytes the UTF-8 character at `at` has; 0 if it is none, or a control character. */
static size_t character_length(const unsigned char *at)
{
    size_t length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : at[0] >= 0xc0 ? 2 : 1;
    if (length == 1)
        return at[0] >= ' ' && at[0] < 0x7f;
    uint32_t value = at[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (at[i] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool surrogate = value >= 0xd800 && value < 0xe000;
    return value < least[length] || value > 0x10ffff || surrogate || at[0] > 0xf4 ? 0 : length;
}

/* PostgreSQL takes nothing but UTF-8 as text: what is not becomes question marks. */
static const char *clean_text(struct row *row, const char *text)
{
    char *copy = text ? arena_strdup(&row->arena, text) : NULL;
    for (char *c = copy; c && *c;) {
        size_t length = character_length((unsigned char *)c);
        if (length == 0) {
            *c = '?';
            length = 1;
        }
        c += length;
    }
    return copy;
}

static const char *take_json(struct row *row, struct str *text)
{
    if (text->failed)
        row->arena.failed = 1;
    return arena_strdup(&row->arena, text->data ? text->data : "[]");
}

static const char *events_json(struct row *row, const struct execution_event *events, size_t count)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_array(&j, NULL);
    for (size_t i = 0; i < count; i++) {
        json_open_object(&j, NULL);
        json_text(&j, "type", events[i].type);
        json_text(&j, "severity", execution_severity_name(events[i].severity));
        json_text(&j, "detail", events[i].detail);
        json_close_object(&j);
    }
    json_close_array(&j);
    return take_json(row, &text);
}

static const char *texts_json(struct row *row, const char *const *texts, size_t count)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_array(&j, NULL);
    for (size_t i = 0; i < count; i++)
        json_text(&j, NULL, texts[i]);
    json_close_array(&j);
    return take_json(row, &text);
}

static const char *files_json(struct row *row, const struct execution_file *files, size_t count)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_array(&j, NULL);
    for (size_t i = 0; i < count; i++) {
        json_open_object(&j, NULL);
        json_text(&j, "name", files[i].name);
        json_uint(&j, "bytes", files[i].content.length);
        json_close_object(&j);
    }
    json_close_array(&j);
    return take_json(row, &text);
}

/* The bytes, their hash, or neither; how many there were in any case. */
static void keep_bytes(struct row *row, enum config_keep keep, struct execution_bytes bytes,
                       struct execution_bytes *ret_bytes, const char **ret_hash, int64_t *ret_count)
{
    char hash[SHA256_HEX_LENGTH + 1];
    *ret_count = (int64_t)bytes.length;
    if (keep == KEEP_FULL) {
        char *copy = arena_alloc_raw(&row->arena, bytes.length + 1);
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
    row.status = execution_status_name(kind == ROW_BLOCKED ? EXECUTION_BLOCKED : EXECUTION_RUNNING);
    row.events = events_json(&row, request->events, request->event_count);
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
    return finish_row(&row, ret_row, err);
}

int row_from_result(const struct execution_result *result, struct row_keep keep, const char *server,
                    int64_t created_ns, struct row *ret_row, struct brig_error *err)
{
    struct row row;
    begin_row(&row, ROW_END, result->id, server, created_ns);
    row.status = execution_status_name(result->status);
    row.events = events_json(&row, result->events, result->event_count);
    row.exit_code = result->exit_code;
    row.signal = result->signal;
    keep_bytes(&row, keep.output, result->output, &row.output, &row.output_sha256,
               &row.output_bytes);
    keep_bytes(&row, keep.output, result->error_output, &row.error_output, &row.error_output_sha256,
               &row.error_output_bytes);
    row.output_truncated = result->output_truncated;
    row.error_output_truncated = result->error_output_truncated;
    row.duration_us = (int64_t)result->duration_us;
    row.cpu_time_us = (int64_t)result->cpu_time_us;
    row.memory_peak_bytes = (int64_t)result->memory_peak_bytes;
    row.pids_used = (int64_t)result->pids_used;
    row.started_ns = result->started_ns;
    row.ended_ns = clock_wall_ns();
    row.message = clean_text(&row, result->message);
    row.unenforced = texts_json(&row, result->unenforced, result->unenforced_count);
    row.files = files_json(&row, result->files, result->file_count);
    return finish_row(&row, ret_row, err);
}

int row_lost(const char *server, int64_t created_ns, struct row *ret_row, struct brig_error *err)
{
    struct row row;
    begin_row(&row, ROW_LOST, "", server, created_ns);
    return finish_row(&row, ret_row, err);
}

/* ---- Two as one ---- */

static void borrow_column(const struct row_column *column, const struct row *from, struct row *to)
{
    switch (column->type) {
    case ROW_TEXT:
        *row_text(column, to) = *row_text(column, from);
        return;
    case ROW_BYTES:
        *row_bytes(column, to) = *row_bytes(column, from);
        return;
    case ROW_NUMBER:
        *row_number(column, to) = *row_number(column, from);
        return;
    }
}

void row_join(const struct row *begin, const struct row *end, struct row *ret_whole)
{
    *ret_whole = (struct row){.kind = ROW_WHOLE};
    for (size_t i = 0; i < row_column_count; i++) {
        enum row_part part = row_columns[i].part;
        bool from_begin = part == PART_KEY || part == PART_BEGIN;
        borrow_column(&row_columns[i], from_begin ? begin : end, ret_whole);
    }
}

const struct row *row_partner(const struct row *rows, size_t count, size_t index)
{
    const struct row *row = &rows[index];
    if (row->kind != ROW_BEGIN && row->kind != ROW_END)
        return NULL;
    /* Below the first, the index wraps to more than there are. */
    size_t step = row->kind == ROW_BEGIN ? 1 : SIZE_MAX;
    for (size_t i = index + step; i < count; i += step)
        if (rows[i].kind != ROW_LOST && strcmp(rows[i].id, row->id) == 0)
            return rows[i].kind == (row->kind == ROW_BEGIN ? ROW_END : ROW_BEGIN) ? &rows[i] : NULL;
    return NULL;
}

/* ---- As bytes ---- */

static void pack_column(const struct row_column *column, const struct row *row, struct str *out)
{
    const struct execution_bytes *bytes;
    switch (column->type) {
    case ROW_TEXT:
        pack_text(out, *row_text(column, row));
        return;
    case ROW_BYTES:
        bytes = row_bytes(column, row);
        pack_u64(out, bytes->data != NULL);
        if (bytes->data)
            pack_bytes(out, bytes->data, bytes->length);
        return;
    case ROW_NUMBER:
        pack_u64(out, (uint64_t)*row_number(column, row));
        return;
    }
}

int row_encode(const struct row *row, struct str *out, struct brig_error *err)
{
    pack_u64(out, FORMAT);
    pack_u64(out, (uint64_t)row->kind);
    for (size_t i = 0; i < row_column_count; i++)
        if (row_has_column(row->kind, &row_columns[i]))
            pack_column(&row_columns[i], row, out);
    return out->failed ? brig_fail_nomem(err) : 0;
}

static void unpack_column(const struct row_column *column, struct unpack *in, struct row *row)
{
    switch (column->type) {
    case ROW_TEXT:
        *row_text(column, row) = unpack_text(in, TEXT_MAX);
        return;
    case ROW_BYTES:
        if (unpack_u64(in, 1))
            *row_bytes(column, row) = unpack_bytes(in, BYTES_MAX);
        return;
    case ROW_NUMBER:
        *row_number(column, row) = (int64_t)unpack_u64(in, UINT64_MAX);
        return;
    }
}

int row_decode(const void *bytes, size_t length, struct row *ret_row, struct brig_error *err)
{
    struct row row;
    row_init(&row, ROW_BEGIN);
    struct unpack in = {.at = bytes, .left = length, .arena = &row.arena};
    uint64_t format = unpack_u64(&in, UINT64_MAX);
    uint64_t kind = unpack_u64(&in, ROW_LOST);
    if (in.failed || format != FORMAT || kind < ROW_BEGIN)
        return brig_fail(err, BRIG_E_INVALID, 0, "a row of the spool is of an unknown kind");
    row.kind = (enum row_kind)kind;
    for (size_t i = 0; i < row_column_count; i++)
        if (row_has_column(row.kind, &row_columns[i]))
            unpack_column(&row_columns[i], &in, &row);
    bool whole = !in.failed && in.left == 0 && row.id && row.server &&
                 (row.kind == ROW_LOST || (row.status && row.events));
    if (!whole || row.arena.failed) {
        int failed = row.arena.failed;
        row_done(&row);
        return failed ? brig_fail_nomem(err)
                      : brig_fail(err, BRIG_E_INVALID, 0, "a row of the spool is not whole");
    }
    *ret_row = row;
    return 0;
}
