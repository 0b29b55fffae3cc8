/* SPDX-License-Identifier: MIT */
/* The history in a file of SQLite: WAL, so that reading never waits for writing. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config.h"
#include "server/history/directory.h"
#include "server/history/query.h"
#include "server/history/row.h"
#include "server/history/store.h"

#define BUSY_TIMEOUT_MS 5000

struct store {
    sqlite3 *db;
    int lock;
    sqlite3_stmt *insert[ROW_WHOLE + 1];
};

/* Each is run once, in order; user_version says how many were. Never changed, only added to. */
static const char *const migrations[] = {
    "CREATE TABLE executions ("
    " id TEXT PRIMARY KEY, server TEXT NOT NULL, created_ns INTEGER NOT NULL,"
    " status TEXT NOT NULL, events TEXT NOT NULL,"
    " request_id TEXT, client TEXT, domain TEXT, language TEXT, work_dir TEXT,"
    " code BLOB, code_sha256 TEXT, code_bytes INTEGER,"
    " timeout_ms INTEGER, memory_mb INTEGER, pids_limit INTEGER, disk_mb INTEGER,"
    " cpu_percent INTEGER, network INTEGER,"
    " exit_code INTEGER, signal INTEGER,"
    " output BLOB, output_sha256 TEXT, output_bytes INTEGER, output_truncated INTEGER,"
    " stderr BLOB, stderr_sha256 TEXT, stderr_bytes INTEGER, stderr_truncated INTEGER,"
    " duration_us INTEGER, cpu_time_us INTEGER, memory_peak_bytes INTEGER, pids_used INTEGER,"
    " started_ns INTEGER, ended_ns INTEGER, message TEXT, unenforced TEXT, files TEXT"
    ") WITHOUT ROWID;"
    "CREATE INDEX executions_created ON executions (created_ns, id);"
    "CREATE INDEX executions_language ON executions (language, created_ns, id);"
    "CREATE INDEX executions_status ON executions (status, created_ns, id);",
};

static int fail(const struct store *store, const char *what, struct brig_error *err)
{
    int code = sqlite3_errcode(store->db) & 0xff;
    bool never = code == SQLITE_TOOBIG || code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH;
    return brig_fail(err, never ? BRIG_E_INVALID : BRIG_E_SYSTEM, 0, "SQLite cannot %s: %s", what,
                     sqlite3_errmsg(store->db));
}

static int run(struct store *store, const char *sql, const char *what, struct brig_error *err)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(store, what, err);
}

/* ---- Opening ---- */

/* SQLite would let two brigds write in turn, each taking the other's runs for lost. */
static int take_lock(struct store *store, const char *path, struct brig_error *err)
{
    autofree char *name = NULL;
    const char *const parts[] = {path, ".lock"};
    int result = str_join(parts, 2, "", &name, err);
    if (result < 0)
        return result;
    store->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (store->lock < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'%s'", str_shown(name).text);
    if (flock(store->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return brig_fail(err, BRIG_E_STATE, 0,
                     "'%s' is in use by another brigd. Give this one its own database.path, or "
                     "PostgreSQL to both",
                     str_shown(path).text);
}

static int read_version(struct store *store, size_t *ret_version, struct brig_error *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, "PRAGMA user_version", -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        int result = fail(store, "read its version", err);
        (void)sqlite3_finalize(statement);
        return result;
    }
    *ret_version = (size_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return 0;
}

static int migrate(struct store *store, const char *path, struct brig_error *err)
{
    size_t version = 0;
    int result = read_version(store, &version, err);
    if (result == 0 && version > ARRAY_LENGTH(migrations))
        result = brig_fail(err, BRIG_E_INVALID, 0,
                           "'%s' is of a newer brigd: its version is %zu, this one knows %zu",
                           str_shown(path).text, version, ARRAY_LENGTH(migrations));
    for (; result == 0 && version < ARRAY_LENGTH(migrations); version++) {
        autostr struct str sql = {0};
        str_appendf(&sql, "BEGIN; %s PRAGMA user_version = %zu; COMMIT;", migrations[version],
                    version + 1);
        result = sql.failed ? brig_fail_nomem(err) : run(store, sql.data, "make its tables", err);
    }
    return result;
}

static int prepare_inserts(struct store *store, struct brig_error *err)
{
    for (int kind = ROW_BEGIN; kind <= ROW_WHOLE; kind++) {
        autostr struct str sql = {0};
        if (kind == ROW_LOST)
            continue;
        store_sql_insert(kind, '?', &sql);
        if (sql.failed)
            return brig_fail_nomem(err);
        if (sqlite3_prepare_v3(store->db, sql.data, -1, SQLITE_PREPARE_PERSISTENT,
                               &store->insert[kind], NULL) != SQLITE_OK)
            return fail(store, "prepare a statement", err);
    }
    const char *lost = "UPDATE executions SET status = 'lost', ended_ns = ?2"
                       " WHERE server = ?1 AND status = 'running' AND created_ns < ?2";
    if (sqlite3_prepare_v3(store->db, lost, -1, SQLITE_PREPARE_PERSISTENT, &store->insert[ROW_LOST],
                           NULL) != SQLITE_OK)
        return fail(store, "prepare a statement", err);
    return 0;
}

static int open_file(struct store *store, const char *path, struct brig_error *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW;
    if (sqlite3_open_v2(path, &store->db, flags, NULL) != SQLITE_OK) {
        int result = brig_fail(err, BRIG_E_SYSTEM, 0, "SQLite cannot open '%s': %s",
                               str_shown(path).text, store->db ? sqlite3_errmsg(store->db) : "");
        return result;
    }
    (void)sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
    /* The spool holds what a crash could take; NORMAL keeps the file whole in any case. */
    int result = run(store,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                     "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;"
                     "PRAGMA secure_delete = ON;",
                     "set itself up", err);
    if (result == 0)
        result = migrate(store, path, err);
    return result == 0 ? prepare_inserts(store, err) : result;
}

static void close_store(struct store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < ARRAY_LENGTH(store->insert); i++)
        (void)sqlite3_finalize(store->insert[i]);
    (void)sqlite3_close(store->db);
    own_close(&store->lock);
    free(store);
}

static int open_store(const struct server_config *config, struct store **ret_store,
                      struct brig_error *err)
{
    const char *path = config->database.path;
    autoclose int directory = -1;
    int result = directory_open_of(path, &directory, err);
    if (result < 0)
        return result;
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return brig_fail_nomem(err);
    store->lock = -1;
    result = take_lock(store, path, err);
    if (result == 0)
        result = open_file(store, path, err);
    if (result < 0) {
        close_store(store);
        return result;
    }
    *ret_store = store;
    return 0;
}

/* ---- Writing ---- */

static int bind_column(sqlite3_stmt *statement, int number, const struct row_column *column,
                       const struct row *row)
{
    const struct execution_bytes *bytes;
    const char *text;
    switch (column->type) {
    case ROW_TEXT:
        text = *row_text(column, row);
        return text ? sqlite3_bind_text(statement, number, text, -1, SQLITE_STATIC)
                    : sqlite3_bind_null(statement, number);
    case ROW_BYTES:
        bytes = row_bytes(column, row);
        return bytes->data ? sqlite3_bind_blob64(statement, number, bytes->data, bytes->length,
                                                 SQLITE_STATIC)
                           : sqlite3_bind_null(statement, number);
    case ROW_NUMBER:
        if (*row_number(column, row) == ROW_NO_NUMBER)
            return sqlite3_bind_null(statement, number);
        return sqlite3_bind_int64(statement, number, *row_number(column, row));
    }
    return SQLITE_MISUSE;
}

static int bind_row(sqlite3_stmt *statement, const struct row *row)
{
    if (row->kind == ROW_LOST)
        return sqlite3_bind_text(statement, 1, row->server, -1, SQLITE_STATIC) |
               sqlite3_bind_int64(statement, 2, row->created_ns);
    int number = 0, failed = SQLITE_OK;
    for (size_t i = 0; i < row_column_count; i++)
        if (row_has_column(row->kind, &row_columns[i]))
            failed |= bind_column(statement, ++number, &row_columns[i], row);
    return failed;
}

static int apply_row(struct store *store, const struct row *row, struct brig_error *err)
{
    sqlite3_stmt *statement = store->insert[row->kind];
    int failed = bind_row(statement, row);
    int step = failed ? SQLITE_ERROR : sqlite3_step(statement);
    int result = step == SQLITE_DONE ? 0 : fail(store, "store a row", err);
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return result;
}

/* In one piece if nothing is known of it yet, which takes half as long as a row that is made and then
 * changed. */
static int apply_whole(struct store *store, const struct row *begin, const struct row *end,
                       struct brig_error *err)
{
    struct row whole;
    row_join(begin, end, &whole);
    int result = apply_row(store, &whole, err);
    if (result < 0 || sqlite3_changes(store->db) > 0)
        return result;
    result = apply_row(store, begin, err);
    return result < 0 ? result : apply_row(store, end, err);
}

static int apply_one(struct store *store, const struct row *rows, size_t count, size_t index,
                     struct brig_error *err)
{
    const struct row *row = &rows[index], *partner = row_partner(rows, count, index);
    if (!partner)
        return apply_row(store, row, err);
    /* An end whose beginning is here has come with it. */
    return row->kind == ROW_BEGIN ? apply_whole(store, row, partner, err) : 0;
}

static int apply(struct store *store, const struct row *rows, size_t count, struct brig_error *err)
{
    int result = run(store, "BEGIN IMMEDIATE", "begin to write", err);
    if (result < 0)
        return result;
    for (size_t i = 0; i < count && result == 0; i++)
        result = apply_one(store, rows, count, i, err);
    if (result == 0)
        result = run(store, "COMMIT", "write", err);
    if (result < 0)
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return result;
}

/* ---- Reading ---- */

static void take_column(sqlite3_stmt *statement, int number, const struct row_column *column,
                        struct row *row)
{
    if (sqlite3_column_type(statement, number) == SQLITE_NULL)
        return;
    if (column->type == ROW_NUMBER) {
        *row_number(column, row) = sqlite3_column_int64(statement, number);
        return;
    }
    const void *data = sqlite3_column_blob(statement, number);
    size_t length = (size_t)sqlite3_column_bytes(statement, number);
    char *copy = arena_alloc(&row->arena, length + 1);
    if (!copy)
        return;
    if (length > 0)
        memcpy(copy, data, length);
    if (column->type == ROW_TEXT)
        *row_text(column, row) = copy;
    else
        *row_bytes(column, row) = (struct execution_bytes){copy, length};
}

static void take_row(sqlite3_stmt *statement, bool with_large, struct row *row)
{
    int number = 0;
    row_init(row, ROW_END);
    for (size_t i = 0; i < row_column_count; i++)
        if (with_large || !row_columns[i].large)
            take_column(statement, number++, &row_columns[i], row);
}

/* Steps through a statement that is bound, and ends it. How many rows there were, at most max. */
static int take_rows(struct store *store, sqlite3_stmt *statement, bool with_large,
                     struct row *rows, size_t max, struct brig_error *err)
{
    size_t count = 0;
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW && count < max) {
        take_row(statement, with_large, &rows[count++]);
        if (rows[count - 1].arena.failed)
            break;
    }
    int result = step == SQLITE_DONE || (step == SQLITE_ROW && count == max)
                     ? (int)count
                     : fail(store, "read", err);
    (void)sqlite3_finalize(statement);
    for (size_t i = 0; i < count && result < 0; i++)
        row_done(&rows[i]);
    return result;
}

static int get(struct store *store, const char *id, struct row *ret_row, struct brig_error *err)
{
    autostr struct str sql = {0};
    sqlite3_stmt *statement = NULL;
    store_sql_select(true, &sql);
    str_append(&sql, " WHERE id = ?1");
    if (sql.failed)
        return brig_fail_nomem(err);
    if (sqlite3_prepare_v2(store->db, sql.data, -1, &statement, NULL) != SQLITE_OK)
        return fail(store, "read", err);
    (void)sqlite3_bind_text(statement, 1, id, -1, SQLITE_STATIC);
    return take_rows(store, statement, true, ret_row, 1, err);
}

static int list(struct store *store, const struct query *query, struct row *rows, size_t max,
                struct brig_error *err)
{
    autostr struct str sql = {0};
    sqlite3_stmt *s = NULL;
    store_sql_list(query, '?', &sql);
    if (sql.failed)
        return brig_fail_nomem(err);
    if (sqlite3_prepare_v2(store->db, sql.data, -1, &s, NULL) != SQLITE_OK)
        return fail(store, "list", err);
    int failed = sqlite3_bind_text(s, STORE_LANGUAGE, query->language, -1, SQLITE_STATIC) |
                 sqlite3_bind_text(s, STORE_STATUS, query->status, -1, SQLITE_STATIC) |
                 sqlite3_bind_text(s, STORE_DOMAIN, query->domain, -1, SQLITE_STATIC) |
                 sqlite3_bind_int64(s, STORE_SINCE, query->since_ns) |
                 sqlite3_bind_int64(s, STORE_UNTIL, query->until_ns) |
                 sqlite3_bind_int64(s, STORE_BEFORE_NS, query->before_ns) |
                 sqlite3_bind_text(s, STORE_BEFORE_ID, query->before_id, -1, SQLITE_STATIC) |
                 sqlite3_bind_int64(s, STORE_LIMIT, (sqlite3_int64)max);
    if (failed) {
        (void)sqlite3_finalize(s);
        return fail(store, "list", err);
    }
    return take_rows(store, s, false, rows, max, err);
}

static int forget(struct store *store, int64_t before_ns, struct brig_error *err)
{
    sqlite3_stmt *statement = NULL;
    autostr struct str sql = {0};
    str_appendf(&sql,
                "DELETE FROM executions WHERE id IN (SELECT id FROM executions"
                " WHERE created_ns < ?1 ORDER BY created_ns LIMIT %d)",
                STORE_FORGET_MAX);
    if (sql.failed)
        return brig_fail_nomem(err);
    if (sqlite3_prepare_v2(store->db, sql.data, -1, &statement, NULL) != SQLITE_OK)
        return fail(store, "forget", err);
    (void)sqlite3_bind_int64(statement, 1, before_ns);
    int step = sqlite3_step(statement);
    int result = step == SQLITE_DONE ? sqlite3_changes(store->db) : fail(store, "forget", err);
    (void)sqlite3_finalize(statement);
    return result;
}

const struct store_operations store_sqlite = {
    .name = "sqlite",
    .open = open_store,
    .close = close_store,
    .apply = apply,
    .get = get,
    .list = list,
    .forget = forget,
};
