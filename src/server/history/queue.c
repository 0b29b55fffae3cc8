/* SPDX-License-Identifier: MIT */
/* The queue of asynchronous executions, idempotency keys and whole results, in SQLite. */
#include "server/history/queue.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "base/wire.h"
#include "server/history/kept.h"
#include "server/history/notes.h"
#include "server/history/store.h"
#include "server/history/usage.h"

#define ENTRIES_VERSION 1

/* ---- Statements with a few parameters ---- */

/* Runs a statement with at most two texts, then at most two numbers. NULL and ROW_NO_NUMBER leave
 * them out. Returns the number of rows that changed. */
static int change(struct store *store, const char *sql, const char *one, const char *two,
                  int64_t first, int64_t second, struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    str_append(&statement.sql, sql);
    if (one)
        store_add_text(&statement, one);
    if (two)
        store_add_text(&statement, two);
    if (first != ROW_NO_NUMBER)
        store_add_number(&statement, first);
    if (second != ROW_NO_NUMBER)
        store_add_number(&statement, second);
    return store_execute(store, &statement, "store", err);
}

static int change_one(struct store *store, const char *sql, const char *id, struct brig_error *err)
{
    return change(store, sql, id, NULL, ROW_NO_NUMBER, ROW_NO_NUMBER, err);
}

/* Reads with one or two texts as parameters. */
static int read_by(struct store *store, const char *sql, const char *one, const char *two,
                   bool (*take)(void *context, sqlite3_stmt *row), void *context,
                   struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    str_append(&statement.sql, sql);
    store_add_text(&statement, one);
    if (two)
        store_add_text(&statement, two);
    return store_query(store, &statement, take, context, err);
}

static const char *column_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

/* ---- Rows of the history ---- */

/* A result of an execution that is in the queue, has an idempotency key or a callback. */
static int keep_result(struct store *store, const struct row *row, struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    const char *domain = row->used_by ? row->used_by : "";
    str_append(&statement.sql, "INSERT INTO results (id, domain, created_ns, result)"
                               " VALUES (?1, ?2, ?3, ?4)");
    store_add_text(&statement, row->id);
    store_add_text(&statement, domain);
    store_add_number(&statement, row->created_ns);
    store_add_bytes(&statement, row->result);
    int result = change_one(store, "DELETE FROM results WHERE id = ?1", row->id, err);
    if (result >= 0)
        result = store_execute(store, &statement, "store", err);
    if (result >= 0)
        result = change_one(store, "DELETE FROM queue WHERE id = ?1", row->id, err);
    if (result >= 0)
        result = change(store,
                        "UPDATE callbacks SET state = 'pending', next_ns = ?2"
                        " WHERE id = ?1 AND state = 'waiting'",
                        row->id, NULL, row->created_ns, ROW_NO_NUMBER, err);
    /* Nothing of the code ran, so the client may try again. */
    bool failed = row->status && strcmp(row->status, "setup_failed") == 0;
    if (result >= 0 && failed)
        result = change_one(store, "DELETE FROM idempotency WHERE id = ?1", row->id, err);
    return result < 0 ? result : kept_make_room(store, domain, row->id, NULL, err);
}

/* A new executor: what an earlier one had claimed or begun was just marked as lost. An empty result
 * stands for that. */
static int lose(struct store *store, const struct row *row, struct brig_error *err)
{
    int result = change(store,
                        "INSERT OR IGNORE INTO results (id, domain, created_ns, result)"
                        " SELECT id, coalesce(domain, ''), ?1, x'' FROM executions"
                        " WHERE status = 'lost' AND ended_ns = ?1",
                        NULL, NULL, row->created_ns, ROW_NO_NUMBER, err);
    if (result >= 0)
        result = change(store, "DELETE FROM queue WHERE claimed = 1", NULL, NULL, ROW_NO_NUMBER,
                        ROW_NO_NUMBER, err);
    if (result >= 0)
        result = change(store,
                        "UPDATE callbacks SET state = 'pending', next_ns = ?1"
                        " WHERE state = 'waiting' AND id IN (SELECT id FROM results)",
                        NULL, NULL, row->created_ns, ROW_NO_NUMBER, err);
    return result;
}

int queue_applied(struct store *store, const struct row *row, struct brig_error *err)
{
    if (row->kind == ROW_BEGIN && row->queued)
        return change_one(store, "DELETE FROM queue WHERE id = ?1", row->id, err);
    if (row->kind == ROW_LOST)
        return lose(store, row, err);
    if (row->kind != ROW_END)
        return 0;
    int result = row->kept ? keep_result(store, row, err) : 0;
    return result < 0 ? result : usage_add(store, row, err);
}

/* ---- Idempotency keys ---- */

struct known {
    bool found;
    char id[EXECUTION_ID_LENGTH + 1];
    char body[65];
};

static bool take_known(void *context, sqlite3_stmt *row)
{
    struct known *known = context;
    known->found = true;
    (void)snprintf(known->id, sizeof known->id, "%s", column_text(row, 0));
    (void)snprintf(known->body, sizeof known->body, "%s", column_text(row, 1));
    return false;
}

/* Finds or stores the key of the request. */
static int remember(struct store *store, const struct execution_request *request, int64_t now_ns,
                    int64_t forget_ns, enum message_verdict *ret_verdict,
                    char ret_id[EXECUTION_ID_LENGTH + 1], struct brig_error *err)
{
    struct known known = {0};
    int result = change(store,
                        "DELETE FROM idempotency WHERE domain = ?1 AND key = ?2"
                        " AND created_ns < ?3",
                        request->domain, request->idempotency_key, forget_ns, ROW_NO_NUMBER, err);
    if (result >= 0)
        result =
            read_by(store, "SELECT id, body_sha256 FROM idempotency WHERE domain = ?1 AND key = ?2",
                    request->domain, request->idempotency_key, take_known, &known, err);
    if (result < 0)
        return result;
    if (known.found) {
        bool same = strcmp(known.body, request->body_sha256) == 0;
        (void)snprintf(ret_id, EXECUTION_ID_LENGTH + 1, "%s", known.id);
        *ret_verdict = !same                                ? VERDICT_CONFLICT
                       : strcmp(known.id, request->id) == 0 ? VERDICT_GO
                                                            : VERDICT_REPEATED;
        return 0;
    }
    autostatement struct store_statement statement = {0};
    str_append(&statement.sql, "INSERT INTO idempotency (domain, key, body_sha256, id, created_ns)"
                               " VALUES (?1, ?2, ?3, ?4, ?5)");
    store_add_text(&statement, request->domain);
    store_add_text(&statement, request->idempotency_key);
    store_add_text(&statement, request->body_sha256);
    store_add_text(&statement, request->id);
    store_add_number(&statement, now_ns);
    *ret_verdict = VERDICT_GO;
    return store_execute(store, &statement, "store", err);
}

int queue_reserve(struct store *store, const struct row *row,
                  const struct execution_request *request, int64_t forget_ns,
                  enum message_verdict *ret_verdict, char ret_id[EXECUTION_ID_LENGTH + 1],
                  struct brig_error *err)
{
    store->sequence += store->is_spool;
    int result = store_begin(store, err);
    if (result < 0)
        return result;
    (void)snprintf(ret_id, EXECUTION_ID_LENGTH + 1, "%s", request->id);
    result = remember(store, request, row->created_ns, forget_ns, ret_verdict, ret_id, err);
    if (result >= 0 && *ret_verdict == VERDICT_GO)
        result = store_apply_within(store, row, err);
    return store_end(store, result < 0 ? result : 0, err);
}

/* ---- The queue ---- */

struct counts {
    uint64_t all, of_key;
};

static bool take_counts(void *context, sqlite3_stmt *row)
{
    struct counts *counts = context;
    counts->all = (uint64_t)sqlite3_column_int64(row, 0);
    counts->of_key = (uint64_t)sqlite3_column_int64(row, 1);
    return false;
}

static int check_room(struct store *store, const char *domain, const struct queue_bounds *bounds,
                      enum message_verdict *ret_verdict, struct brig_error *err)
{
    struct counts counts = {0};
    int result = read_by(store,
                         "SELECT count(*), coalesce(sum(domain = ?1), 0) FROM queue"
                         " WHERE claimed = 0",
                         domain, NULL, take_counts, &counts, err);
    if (counts.all >= bounds->max)
        *ret_verdict = VERDICT_FULL;
    else if (*domain && counts.of_key >= bounds->max_per_key)
        *ret_verdict = VERDICT_KEY_FULL;
    return result;
}

static int add_entry(struct store *store, const struct row *row,
                     const struct execution_request *request, struct brig_error *err)
{
    autostr struct str bytes = {0};
    autostatement struct store_statement statement = {0};
    struct execution_request stored = *request;
    stored.callback_url = stored.callback_secret = "";
    stored.note = (struct execution_bytes){.data = ""};
    int result = execution_request_encode(&stored, &bytes, err);
    if (result < 0)
        return result;
    if (bytes.length >= MESSAGE_BYTES_MAX) /* the executor gets it with its verdict */
        return brig_fail(err, BRIG_E_INVALID, 0, "the request is too long for the queue");
    str_append(&statement.sql, "INSERT INTO queue (id, domain, priority, created_ns, request)"
                               " VALUES (?1, ?2, ?3, ?4, ?5)");
    store_add_text(&statement, request->id);
    store_add_text(&statement, request->domain);
    store_add_number(&statement, request->priority);
    store_add_number(&statement, row->created_ns);
    store_add_bytes(&statement, (struct execution_bytes){bytes.data, bytes.length});
    return store_execute(store, &statement, "store", err);
}

static int add_callback(struct store *store, const struct row *row,
                        const struct execution_request *request, struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    if (!*request->callback_url)
        return 0;
    str_append(&statement.sql, "INSERT INTO callbacks (id, domain, url, secret, state, created_ns)"
                               " VALUES (?1, ?2, ?3, ?4, 'waiting', ?5)");
    store_add_text(&statement, request->id);
    store_add_text(&statement, request->domain);
    store_add_text(&statement, request->callback_url);
    store_add_text(&statement, request->callback_secret);
    store_add_number(&statement, row->created_ns);
    return store_execute(store, &statement, "store", err);
}

static int submit(struct store *store, const struct row *row,
                  const struct execution_request *request, const struct queue_bounds *bounds,
                  enum message_verdict *ret_verdict, char ret_id[EXECUTION_ID_LENGTH + 1],
                  struct brig_error *err)
{
    int result = 0;
    *ret_verdict = VERDICT_GO;
    if (*request->idempotency_key)
        result =
            remember(store, request, row->created_ns, bounds->forget_ns, ret_verdict, ret_id, err);
    if (result >= 0 && *ret_verdict == VERDICT_GO)
        result = check_room(store, request->domain, bounds, ret_verdict, err);
    if (result < 0 || *ret_verdict != VERDICT_GO)
        return result;
    result = store_apply_within(store, row, err);
    if (result >= 0)
        result = add_entry(store, row, request, err);
    if (result >= 0)
        result = notes_add(store, request, row->created_ns, err);
    if (result >= 0)
        result = add_callback(store, row, request, err);
    bool fits = true;
    if (result >= 0)
        result = kept_make_room(store, request->domain, "", &fits, err);
    if (!fits)
        *ret_verdict = VERDICT_KEY_FULL; /* queue_submit() undoes all of it */
    return result;
}

int queue_submit(struct store *store, const struct row *row,
                 const struct execution_request *request, const struct queue_bounds *bounds,
                 enum message_verdict *ret_verdict, char ret_id[EXECUTION_ID_LENGTH + 1],
                 struct brig_error *err)
{
    store->sequence += store->is_spool;
    int result = store_begin(store, err);
    if (result < 0)
        return result;
    (void)snprintf(ret_id, EXECUTION_ID_LENGTH + 1, "%s", request->id);
    result = submit(store, row, request, bounds, ret_verdict, ret_id, err);
    if (result >= 0 && (*ret_verdict == VERDICT_FULL || *ret_verdict == VERDICT_KEY_FULL)) {
        (void)store_end(store, BRIG_E_STATE, NULL); /* forgets the idempotency key */
        return 0;
    }
    return store_end(store, result < 0 ? result : 0, err);
}

static bool take_bytes(void *context, sqlite3_stmt *row)
{
    struct str *out = context;
    str_append_bytes(out, sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0));
    return false;
}

static int claim(struct store *store, const char *id, enum message_verdict *ret_verdict,
                 struct str *out, struct brig_error *err)
{
    int result = change_one(store, "UPDATE queue SET claimed = 1 WHERE id = ?1", id, err);
    *ret_verdict = result > 0 ? VERDICT_GO : VERDICT_GONE;
    if (result <= 0)
        return result;
    result = change(store,
                    store->is_spool ? "UPDATE executions SET status = 'running', sequence = ?2"
                                      " WHERE id = ?1 AND status = 'queued'"
                                    : "UPDATE executions SET status = 'running'"
                                      " WHERE id = ?1 AND status = 'queued'",
                    id, NULL, store->is_spool ? (int64_t)store->sequence : ROW_NO_NUMBER,
                    ROW_NO_NUMBER, err);
    return result < 0 ? result
                      : read_by(store, "SELECT request FROM queue WHERE id = ?1", id, NULL,
                                take_bytes, out, err);
}

int queue_claim(struct store *store, const char *id, enum message_verdict *ret_verdict,
                struct str *out, struct brig_error *err)
{
    store->sequence += store->is_spool;
    int result = store_begin(store, err);
    if (result < 0)
        return result;
    result = claim(store, id, ret_verdict, out, err);
    if (result >= 0 && out->failed)
        result = brig_fail_nomem(err);
    return store_end(store, result < 0 ? result : 0, err);
}

struct listing {
    struct queue_entry *entries;
    size_t count;
};

static bool take_entry(void *context, sqlite3_stmt *row)
{
    struct listing *listing = context;
    struct queue_entry *entry = &listing->entries[listing->count++];
    (void)snprintf(entry->id, sizeof entry->id, "%s", column_text(row, 0));
    (void)snprintf(entry->domain, sizeof entry->domain, "%s", column_text(row, 1));
    entry->priority = sqlite3_column_int(row, 2);
    entry->created_ns = sqlite3_column_int64(row, 3);
    return listing->count < QUEUE_ENTRIES_MAX;
}

int queue_list(struct store *store, int64_t after_ns, struct queue_entry *entries,
               struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    struct listing listing = {.entries = entries};
    str_append(&statement.sql, "SELECT id, domain, priority, created_ns FROM queue"
                               " WHERE claimed = 0 AND created_ns > ?1 ORDER BY created_ns");
    store_add_number(&statement, after_ns);
    int result = store_query(store, &statement, take_entry, &listing, err);
    return result < 0 ? result : (int)listing.count;
}

void queue_entries_encode(const struct queue_entry *entries, size_t count, struct str *out)
{
    wire_put_version(out, ENTRIES_VERSION);
    wire_put_u64(out, count);
    for (size_t i = 0; i < count; i++) {
        wire_put_text(out, entries[i].id);
        wire_put_text(out, entries[i].domain);
        wire_put_i64(out, entries[i].priority);
        wire_put_i64(out, entries[i].created_ns);
    }
}

int queue_entries_decode(const void *bytes, size_t length, struct arena *arena,
                         struct queue_entry **ret_entries, size_t *ret_count,
                         struct brig_error *err)
{
    struct wire_reader in = wire_open(bytes, length, ENTRIES_VERSION);
    size_t count = 0;
    struct queue_entry *entries =
        wire_get_array(&in, arena, QUEUE_ENTRIES_MAX, sizeof *entries, &count);
    for (size_t i = 0; i < count; i++) {
        const char *id = wire_get_text(&in, EXECUTION_ID_LENGTH);
        const char *domain = wire_get_text(&in, QUEUE_DOMAIN_MAX);
        if (!execution_id_is_valid(id))
            in.failed = true;
        (void)snprintf(entries[i].id, sizeof entries[i].id, "%s", id);
        (void)snprintf(entries[i].domain, sizeof entries[i].domain, "%s", domain);
        entries[i].priority =
            (int)wire_get_i64(&in, -EXECUTION_PRIORITY_MAX, EXECUTION_PRIORITY_MAX);
        entries[i].created_ns = wire_get_i64(&in, 0, INT64_MAX);
    }
    if (!wire_done(&in))
        return brig_fail(err, BRIG_E_INVALID, 0, "entries of the queue are malformed");
    *ret_entries = entries;
    *ret_count = count;
    return 0;
}

/* ---- Results ---- */

struct kept {
    bool found;
    const char *domain; /* that asks */
    bool own;
    struct str *out;
};

static bool take_kept(void *context, sqlite3_stmt *row)
{
    struct kept *kept = context;
    kept->found = true;
    kept->own = !*kept->domain || strcmp(kept->domain, column_text(row, 0)) == 0;
    if (kept->own)
        str_append_bytes(kept->out, sqlite3_column_blob(row, 1),
                         (size_t)sqlite3_column_bytes(row, 1));
    return false;
}

/* The result of an execution that was lost. */
static int encode_lost(const char *id, const char *domain, struct str *out, struct brig_error *err)
{
    const struct execution_result lost = {
        .id = id,
        .domain = domain,
        .kept = true,
        .status = EXECUTION_LOST,
        .exit_code = -1,
        .output = {.data = ""},
        .error_output = {.data = ""},
        .message = "brigd or its executor ended before this execution did"};
    return execution_result_encode(&lost, out, err);
}

int queue_result(struct store *store, const char *id, const char *domain, int *ret_found,
                 struct str *out, struct brig_error *err)
{
    struct kept kept = {.domain = domain, .out = out};
    autostr struct str nothing = {0};
    int result = read_by(store, "SELECT domain, result FROM results WHERE id = ?1", id, NULL,
                         take_kept, &kept, err);
    *ret_found = kept.found && kept.own ? 2 : 0;
    if (result == 0 && *ret_found == 2 && out->length == 0)
        return encode_lost(id, domain, out, err);
    if (result < 0 || kept.found)
        return result;
    kept.out = &nothing;
    result = read_by(store,
                     "SELECT coalesce(domain, ''), '' FROM executions"
                     " WHERE id = ?1 AND status IN ('queued', 'running')",
                     id, NULL, take_kept, &kept, err);
    *ret_found = kept.found && kept.own;
    return result;
}

static bool take_callback(void *context, sqlite3_stmt *row)
{
    struct row_more *more = context;
    more->callback_state = arena_strdup(&more->arena, column_text(row, 0));
    more->callback_url = arena_strdup(&more->arena, column_text(row, 1));
    more->callback_attempts = sqlite3_column_int64(row, 2);
    more->callback_status = sqlite3_column_int64(row, 3);
    more->callback_message = arena_strdup(&more->arena, column_text(row, 4));
    return false;
}

int queue_more(struct store *store, const char *id, struct row_more *ret_more,
               struct brig_error *err)
{
    autostr struct str bytes = {0};
    struct kept kept = {.domain = "", .out = &bytes};
    *ret_more = (struct row_more){0};
    int result = read_by(store, "SELECT domain, result FROM results WHERE id = ?1", id, NULL,
                         take_kept, &kept, err);
    if (result == 0 && bytes.length > 0)
        ret_more->has_result =
            execution_result_decode(bytes.data, bytes.length, &ret_more->result, NULL) == 0;
    if (result == 0)
        result = read_by(store,
                         "SELECT state, url, attempts, status, message FROM callbacks"
                         " WHERE id = ?1",
                         id, NULL, take_callback, ret_more, err);
    if (result < 0)
        row_more_done(ret_more);
    return result;
}

int queue_forget(struct store *store, int64_t before_ns, const char *day, struct brig_error *err)
{
    static const char *const statements[] = {
        "DELETE FROM results WHERE created_ns < ?1"
        " AND id NOT IN (SELECT id FROM callbacks WHERE state IN ('pending', 'calling'))",
        "DELETE FROM notes WHERE created_ns < ?1 AND id NOT IN (SELECT id FROM results)"
        " AND id NOT IN (SELECT id FROM executions WHERE status IN ('queued', 'running'))",
        "DELETE FROM idempotency WHERE created_ns < ?1",
        "DELETE FROM callbacks WHERE created_ns < ?1 AND state IN ('delivered', 'failed')",
    };
    int result = change_one(store, "DELETE FROM usage WHERE day < ?1", day, err);
    for (size_t i = 0; i < ARRAY_LENGTH(statements) && result >= 0; i++)
        result = change(store, statements[i], NULL, NULL, before_ns, ROW_NO_NUMBER, err);
    return result < 0 ? result : 0;
}
