/* SPDX-License-Identifier: MIT */
/* Callbacks in SQLite: which are due, which are under way, and what became of them. A call is made at
 * least once: one that was under way when a process died is made again. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/error.h"
#include "base/str.h"
#include "base/wire.h"
#include "server/history/queue.h"
#include "server/history/store.h"

#define VERSION 2
#define RESULT_MAX MESSAGE_BYTES_MAX
#define MESSAGE_LENGTH_MAX 512
#define STATUS_MAX 999
#define RETRY_MOST_MS UINT64_C(3600000)

/* ---- Messages ---- */

void queue_call_done(struct queue_call *call)
{
    arena_done(&call->arena);
    *call = (struct queue_call){0};
}

int queue_call_encode(const struct queue_call *call, struct str *out, struct brig_error *err)
{
    wire_put_version(out, VERSION);
    wire_put_text(out, call->id);
    wire_put_text(out, call->url);
    wire_put_text(out, call->secret);
    wire_put_u64(out, call->attempt);
    wire_put_bytes(out, call->result.data, call->result.length);
    wire_put_bytes(out, call->note.data, call->note.length);
    return out->failed ? brig_fail_nomem(err) : 0;
}

int queue_call_decode(const void *bytes, size_t length, struct queue_call *ret_call,
                      struct brig_error *err)
{
    struct queue_call call = {0};
    const void *copy = arena_copy(&call.arena, bytes, length);
    struct wire_reader in = wire_open(copy, copy ? length : 0, VERSION);
    call.id = wire_get_text(&in, EXECUTION_ID_LENGTH);
    call.url = wire_get_text(&in, EXECUTION_URL_MAX);
    call.secret = wire_get_text(&in, EXECUTION_SECRET_MAX);
    call.attempt = wire_get_u64(&in, UINT32_MAX);
    call.result.data = wire_get_bytes(&in, RESULT_MAX, &call.result.length);
    call.note.data = wire_get_bytes(&in, EXECUTION_NOTE_MAX, &call.note.length);
    if (!wire_done(&in) || !execution_id_is_valid(call.id)) {
        queue_call_done(&call);
        return brig_fail(err, BRIG_E_INVALID, 0, "a callback is malformed");
    }
    *ret_call = call;
    return 0;
}

void queue_called_encode(const char *id, uint64_t status, const char *message, struct str *out)
{
    char line[MESSAGE_LENGTH_MAX + 1];
    (void)snprintf(line, sizeof line, "%s", message);
    wire_put_version(out, VERSION);
    wire_put_text(out, id);
    wire_put_u64(out, status);
    wire_put_text(out, line);
}

/* ---- Which are due ---- */

int queue_calls_again(struct store *store, int64_t now_ns, struct brig_error *err)
{
    return store_run(store,
                     "UPDATE callbacks SET state = 'pending', next_ns = ?1"
                     " WHERE state = 'calling'",
                     NULL, now_ns, "store", err);
}

struct due {
    struct queue_call *call;
    bool found;
    int64_t next_ns;
};

static const char *copy_column(struct arena *arena, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return arena_strdup(arena, text ? text : "");
}

static bool take_due(void *context, sqlite3_stmt *row)
{
    struct due *due = context;
    struct queue_call *call = due->call;
    due->found = true;
    call->id = copy_column(&call->arena, row, 0);
    call->url = copy_column(&call->arena, row, 1);
    call->secret = copy_column(&call->arena, row, 2);
    call->attempt = (uint64_t)sqlite3_column_int64(row, 3) + 1;
    call->result.length = (size_t)sqlite3_column_bytes(row, 4);
    call->result.data = arena_copy(&call->arena, sqlite3_column_blob(row, 4), call->result.length);
    call->note.length = (size_t)sqlite3_column_bytes(row, 5);
    call->note.data = arena_copy(&call->arena, sqlite3_column_blob(row, 5), call->note.length);
    return false;
}

static bool take_next(void *context, sqlite3_stmt *row)
{
    struct due *due = context;
    due->next_ns = sqlite3_column_int64(row, 0);
    return false;
}

static int find_due(struct store *store, int64_t now_ns, uint64_t max_per_key, struct due *due,
                    struct brig_error *err)
{
    autostatement struct store_statement one = {0}, next = {0};
    str_append(&one.sql,
               "SELECT c.id, c.url, c.secret, c.attempts, coalesce(r.result, x''),"
               " coalesce(n.note, x'') FROM callbacks c LEFT JOIN results r ON r.id = c.id"
               " LEFT JOIN notes n ON n.id = c.id"
               " WHERE c.state = 'pending' AND c.next_ns <= ?1 AND (SELECT count(*) FROM callbacks"
               " o WHERE o.state = 'calling' AND o.domain = c.domain) < ?2"
               " ORDER BY c.next_ns LIMIT 1");
    store_add_number(&one, now_ns);
    store_add_number(&one, (int64_t)max_per_key);
    int result = store_query(store, &one, take_due, due, err);
    if (result < 0 || due->found)
        return result;
    str_append(&next.sql, "SELECT coalesce(min(next_ns), 0) FROM callbacks"
                          " WHERE state = 'pending' AND next_ns > ?1");
    store_add_number(&next, now_ns);
    return store_query(store, &next, take_next, due, err);
}

int queue_call_take(struct store *store, int64_t now_ns, uint64_t max_per_key,
                    struct queue_call *ret_call, int64_t *ret_next_ns, struct brig_error *err)
{
    struct queue_call call = {0};
    struct due due = {.call = &call};
    int result = find_due(store, now_ns, max_per_key, &due, err);
    if (result == 0 && call.arena.failed)
        result = brig_fail_nomem(err);
    if (result == 0 && due.found)
        result = store_run(store,
                           "UPDATE callbacks SET state = 'calling', attempts = attempts + 1"
                           " WHERE id = ?1",
                           call.id, ROW_NO_NUMBER, "store", err);
    *ret_next_ns = due.next_ns;
    if (result < 0 || !due.found) {
        queue_call_done(&call);
        return result;
    }
    *ret_call = call;
    return 1;
}

/* ---- What became of them ---- */

static bool take_attempts(void *context, sqlite3_stmt *row)
{
    *(uint64_t *)context = (uint64_t)sqlite3_column_int64(row, 0);
    return false;
}

/* Doubled with each attempt. */
static int64_t next_try(const struct queue_retry *retry, uint64_t attempts, int64_t now_ns)
{
    uint64_t delay_ms = retry->first_ms;
    for (uint64_t i = 1; i < attempts && delay_ms < RETRY_MOST_MS; i++)
        delay_ms *= 2;
    delay_ms = delay_ms < RETRY_MOST_MS ? delay_ms : RETRY_MOST_MS;
    return now_ns + (int64_t)delay_ms * 1000000;
}

int queue_called(struct store *store, const void *bytes, size_t length,
                 const struct queue_retry *retry, int64_t now_ns, struct brig_error *err)
{
    struct wire_reader in = wire_open(bytes, length, VERSION);
    const char *id = wire_get_text(&in, EXECUTION_ID_LENGTH);
    uint64_t status = wire_get_u64(&in, STATUS_MAX), attempts = 0;
    const char *message = wire_get_text(&in, MESSAGE_LENGTH_MAX);
    autostatement struct store_statement find = {0}, set = {0};
    if (!wire_done(&in) || !execution_id_is_valid(id))
        return brig_fail(err, BRIG_E_INVALID, 0, "the end of a callback is malformed");
    str_append(&find.sql, "SELECT attempts FROM callbacks WHERE id = ?1 AND state = 'calling'");
    store_add_text(&find, id);
    int result = store_query(store, &find, take_attempts, &attempts, err);
    if (result < 0)
        return result;
    bool good = status >= 200 && status < 300;
    str_append(&set.sql, "UPDATE callbacks SET state = ?2, status = ?3, message = ?4, next_ns = ?5"
                         " WHERE id = ?1 AND state = 'calling'");
    store_add_text(&set, id);
    store_add_text(&set, good ? "delivered" : attempts >= retry->attempts ? "failed" : "pending");
    store_add_number(&set, (int64_t)status);
    store_add_text(&set, message);
    store_add_number(&set, next_try(retry, attempts, now_ns));
    result = store_execute(store, &set, "store", err);
    return result < 0 ? result : 0;
}
