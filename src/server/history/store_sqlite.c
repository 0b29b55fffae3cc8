/* SPDX-License-Identifier: MIT */
/* The history in a file of SQLite, or the spool of PostgreSQL in one: the same table. In the spool each row
 * that PostgreSQL does not have as it is has a sequence, which changes with the row; it is 0 for what is
 * sent and still runs, and in a history.
 *
 * The file is in WAL mode. A transaction that was committed survives the process; a power cut may take the
 * last ones, but leaves the file whole. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/history/query.h"
#include "server/history/store.h"

#define BUSY_TIMEOUT_MS 250  /* for another program that writes to the file */
#define PROGRESS_STEPS 10000 /* of SQLite's machine, between looks at the clock */

struct sqlite_store {
    struct store store;
    sqlite3 *db;
    int lock;
    bool is_spool, damaged;
    uint64_t sequence, deadline_ms;
    char server_id[EXECUTION_ID_LENGTH + 1];
    char *path;
    char *replaces; /* the new name of a damaged spool, or NULL */
    sqlite3_stmt *insert[ROW_LOST + 1];
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

    "ALTER TABLE executions ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX executions_sequence ON executions (sequence) WHERE sequence > 0;"
    "CREATE TABLE server (id TEXT NOT NULL);",
};

static struct sqlite_store *of(const struct store *store)
{
    return (struct sqlite_store *)(uintptr_t)store;
}

static int fail(struct sqlite_store *store, const char *what, struct brig_error *err)
{
    int code = sqlite3_errcode(store->db) & 0xff;
    bool never = code == SQLITE_TOOBIG || code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH;
    store->damaged = store->damaged || code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
    if (code == SQLITE_INTERRUPT)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "the database does not answer in time");
    return brig_fail(err, never ? BRIG_E_INVALID : BRIG_E_SYSTEM, 0, "SQLite cannot %s: %s", what,
                     sqlite3_errmsg(store->db));
}

static int run(struct sqlite_store *store, const char *sql, const char *what,
               struct brig_error *err)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(store, what, err);
}

static int prepare(struct sqlite_store *store, const char *sql, unsigned flags,
                   sqlite3_stmt **ret_statement, struct brig_error *err)
{
    if (!sql)
        return brig_fail_nomem(err);
    if (sqlite3_prepare_v3(store->db, sql, -1, flags, ret_statement, NULL) == SQLITE_OK)
        return 0;
    return fail(store, "prepare a statement", err);
}

/* The number that a statement without parameters says. */
static int ask_number(struct sqlite_store *store, const char *sql, uint64_t *ret_number,
                      struct brig_error *err)
{
    sqlite3_stmt *statement = NULL;
    int result = prepare(store, sql, 0, &statement, err);
    if (result == 0 && sqlite3_step(statement) != SQLITE_ROW)
        result = fail(store, "read", err);
    if (result == 0)
        *ret_number = (uint64_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return result;
}

/* ---- Opening ---- */

static int make_directory(char *path, struct brig_error *err)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST) {
            int result = brig_fail(err, BRIG_E_SYSTEM, errno, "make the directory '%s'",
                                   str_shown(path).text);
            *slash = '/';
            return result;
        }
    }
    return 0;
}

/* SQLite would let two brigds write in turn, each taking the other's runs for lost. */
static int take_lock(struct sqlite_store *store, struct brig_error *err)
{
    autofree char *name = NULL;
    int result = str_make(&name, err, store->path, ".lock");
    if (result == 0)
        result = make_directory(name, err);
    if (result < 0)
        return result;
    store->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (store->lock < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'%s'", str_shown(name).text);
    if (flock(store->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return brig_fail(err, BRIG_E_STATE, 0,
                     "'%s' is in use by another brigd. Give this one its own database.%s",
                     str_shown(store->path).text, store->is_spool ? "spool_dir" : "path");
}

static int migrate(struct sqlite_store *store, struct brig_error *err)
{
    uint64_t version = 0;
    int result = ask_number(store, "PRAGMA user_version", &version, err);
    if (result == 0 && version > ARRAY_LENGTH(migrations))
        result = brig_fail(err, BRIG_E_INVALID, 0,
                           "'%s' is of a newer brigd: its version is %llu, this one knows %zu",
                           str_shown(store->path).text, (unsigned long long)version,
                           ARRAY_LENGTH(migrations));
    for (; result == 0 && version < ARRAY_LENGTH(migrations); version++) {
        autostr struct str sql = {0};
        str_appendf(&sql, "BEGIN; %s PRAGMA user_version = %llu; COMMIT;", migrations[version],
                    (unsigned long long)version + 1);
        result = sql.failed ? brig_fail_nomem(err) : run(store, sql.data, "make its tables", err);
    }
    return result;
}

/* Made with the file, or kept when the file is replaced. A file of before there was this table has it in its
 * rows. */
static int read_server_id(struct sqlite_store *store, struct brig_error *err)
{
    sqlite3_stmt *statement = NULL;
    if (!store->server_id[0])
        execution_id_make(store->server_id);
    int result = prepare(store,
                         "INSERT INTO server SELECT coalesce((SELECT server FROM executions"
                         " ORDER BY created_ns DESC LIMIT 1), ?1)"
                         " WHERE NOT EXISTS (SELECT 1 FROM server)",
                         0, &statement, err);
    if (result == 0)
        (void)sqlite3_bind_text(statement, 1, store->server_id, -1, SQLITE_STATIC);
    if (result == 0 && sqlite3_step(statement) != SQLITE_DONE)
        result = fail(store, "store its id", err);
    (void)sqlite3_finalize(take_ptr(&statement));
    if (result == 0)
        result = prepare(store, "SELECT id FROM server", 0, &statement, err);
    if (result == 0 && sqlite3_step(statement) != SQLITE_ROW)
        result = fail(store, "read its id", err);
    if (result == 0)
        (void)snprintf(store->server_id, sizeof store->server_id, "%s",
                       (const char *)sqlite3_column_text(statement, 0));
    (void)sqlite3_finalize(statement);
    return result;
}

static int prepare_inserts(struct sqlite_store *store, struct brig_error *err)
{
    int result = 0;
    for (enum row_kind kind = ROW_BEGIN; kind < ROW_LOST && result == 0; kind++) {
        autostr struct str sql = {0};
        store_sql_insert(kind, '?', true, &sql);
        result = prepare(store, sql.failed ? NULL : sql.data, SQLITE_PREPARE_PERSISTENT,
                         &store->insert[kind], err);
    }
    if (result < 0)
        return result;
    return prepare(store,
                   "UPDATE executions SET status = 'lost', ended_ns = ?2, sequence = ?3"
                   " WHERE server = ?1 AND status = 'running' AND created_ns < ?2",
                   SQLITE_PREPARE_PERSISTENT, &store->insert[ROW_LOST], err);
}

static int is_too_late(void *context)
{
    const struct sqlite_store *store = context;
    return store->deadline_ms && clock_now_ms() >= store->deadline_ms;
}

static int open_file(struct sqlite_store *store, struct brig_error *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW;
    if (sqlite3_open_v2(store->path, &store->db, flags, NULL) != SQLITE_OK)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "SQLite cannot open '%s': %s",
                         str_shown(store->path).text, store->db ? sqlite3_errmsg(store->db) : "");
    (void)sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
    sqlite3_progress_handler(store->db, PROGRESS_STEPS, is_too_late, store);
    /* A spool becomes small again. This is set before there are tables. */
    int result =
        store->is_spool ? run(store, "PRAGMA auto_vacuum = FULL", "set itself up", err) : 0;
    if (result == 0)
        result = run(store,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                     "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;"
                     "PRAGMA secure_delete = ON;",
                     "set itself up", err);
    if (result == 0)
        result = migrate(store, err);
    if (result == 0)
        result = read_server_id(store, err);
    if (result == 0 && store->sequence == 0) /* else it is replaced, and goes on */
        result = ask_number(store,
                            "SELECT coalesce(max(sequence), 0) FROM executions WHERE sequence > 0",
                            &store->sequence, err);
    return result == 0 ? prepare_inserts(store, err) : result;
}

static void close_file(struct sqlite_store *store)
{
    for (size_t i = 0; i < ARRAY_LENGTH(store->insert); i++)
        (void)sqlite3_finalize(take_ptr(&store->insert[i]));
    (void)sqlite3_close(take_ptr(&store->db));
}

static void close_store(struct store *base)
{
    struct sqlite_store *store = of(base);
    close_file(store);
    own_close(&store->lock);
    free(store->replaces);
    free(store->path);
    free(store);
}

static const struct store_operations sqlite_operations;

/* Takes the path. */
static int open_store(char **path, bool is_spool, struct store **ret_store, struct brig_error *err)
{
    struct sqlite_store *store = calloc(1, sizeof *store);
    if (!store)
        return brig_fail_nomem(err);
    *store = (struct sqlite_store){
        .store = {&sqlite_operations}, .lock = -1, .is_spool = is_spool, .path = take_ptr(path)};
    int result = take_lock(store, err);
    if (result == 0)
        result = open_file(store, err);
    if (result < 0 && is_spool && store->damaged)
        result = spool_replace(&store->store, err);
    if (result < 0) {
        close_store(&store->store);
        return result;
    }
    *ret_store = &store->store;
    return 0;
}

int store_open_sqlite(const char *path, struct store **ret_store, struct brig_error *err)
{
    autofree char *copy = NULL;
    int result = str_copy(path, &copy, err);
    return result < 0 ? result : open_store(&copy, false, ret_store, err);
}

const char *store_server_id(const struct store *store)
{
    return of(store)->server_id;
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

static int bind_row(sqlite3_stmt *statement, const struct row *row, sqlite3_int64 sequence)
{
    if (row->kind == ROW_LOST)
        return sqlite3_bind_text(statement, 1, row->server, -1, SQLITE_STATIC) |
               sqlite3_bind_int64(statement, 2, row->created_ns) |
               sqlite3_bind_int64(statement, 3, sequence);
    int number = 0, failed = SQLITE_OK;
    for (size_t i = 0; i < row_column_count; i++)
        if (row_has_column(row->kind, &row_columns[i]))
            failed |= bind_column(statement, ++number, &row_columns[i], row);
    return failed | sqlite3_bind_int64(statement, ++number, sequence);
}

/* Runs a statement that is bound, and makes it ready for the next time. */
static int finish(struct sqlite_store *store, sqlite3_stmt *statement, bool bound, const char *what,
                  struct brig_error *err)
{
    int step = bound ? sqlite3_step(statement) : SQLITE_ERROR;
    int result = step == SQLITE_DONE ? 0 : fail(store, what, err);
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return result;
}

static int end_transaction(struct sqlite_store *store, int result, struct brig_error *err)
{
    if (result == 0)
        result = run(store, "COMMIT", "write", err);
    if (result < 0)
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return result;
}

static int apply(struct store *base, const struct row *rows, size_t count, struct brig_error *err)
{
    struct sqlite_store *store = of(base);
    sqlite3_int64 sequence = store->is_spool ? (sqlite3_int64)++store->sequence : 0;
    int result = run(store, "BEGIN IMMEDIATE", "begin to write", err);
    if (result < 0)
        return result;
    for (size_t i = 0; i < count && result == 0; i++) {
        sqlite3_stmt *statement = store->insert[rows[i].kind];
        int failed = bind_row(statement, &rows[i], sequence);
        result = finish(store, statement, failed == SQLITE_OK, "store a row", err);
    }
    return end_transaction(store, result, err);
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
static int take_rows(struct sqlite_store *store, sqlite3_stmt *statement, bool with_large,
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

/* Until the deadline. */
static int answer(struct sqlite_store *store, sqlite3_stmt *statement, bool with_large,
                  struct row *rows, size_t max, struct brig_error *err)
{
    store->deadline_ms = clock_now_ms() + STORE_ANSWER_MS;
    int result = take_rows(store, statement, with_large, rows, max, err);
    store->deadline_ms = 0;
    return result;
}

static int get(struct store *base, const char *id, struct row *ret_row, struct brig_error *err)
{
    autostr struct str sql = {0};
    sqlite3_stmt *statement = NULL;
    store_sql_select(true, "", &sql);
    str_append(&sql, " WHERE id = ?1");
    int result = prepare(of(base), sql.failed ? NULL : sql.data, 0, &statement, err);
    if (result < 0)
        return result;
    (void)sqlite3_bind_text(statement, 1, id, -1, SQLITE_STATIC);
    return answer(of(base), statement, true, ret_row, 1, err);
}

static int list(struct store *base, const struct query *query, struct row *rows, size_t max,
                struct brig_error *err)
{
    autostr struct str sql = {0};
    sqlite3_stmt *s = NULL;
    store_sql_list(query, '?', &sql);
    int result = prepare(of(base), sql.failed ? NULL : sql.data, 0, &s, err);
    if (result < 0)
        return result;
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
        return fail(of(base), "list", err);
    }
    return answer(of(base), s, false, rows, max, err);
}

static int forget(struct store *base, int64_t before_ns, struct brig_error *err)
{
    struct sqlite_store *store = of(base);
    sqlite3_stmt *statement = NULL;
    autostr struct str sql = {0};
    store_sql_forget('?', &sql);
    int result = prepare(store, sql.failed ? NULL : sql.data, 0, &statement, err);
    if (result < 0)
        return result;
    (void)sqlite3_bind_int64(statement, 1, before_ns);
    result = finish(store, statement, true, "forget", err);
    (void)sqlite3_finalize(statement);
    return result < 0 ? result : sqlite3_changes(store->db);
}

static const struct store_operations sqlite_operations = {
    .name = "sqlite",
    .close = close_store,
    .apply = apply,
    .get = get,
    .list = list,
    .forget = forget,
};

/* ---- The spool ---- */

int spool_open(const char *directory, struct store **ret_store, struct brig_error *err)
{
    autofree char *path = NULL;
    int result = str_make(&path, err, directory, "/spool.sqlite");
    return result < 0 ? result : open_store(&path, true, ret_store, err);
}

/* SQLite keeps files beside its own. */
static int put_aside(struct sqlite_store *store, struct brig_error *err)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    autostr struct str aside = {0};
    str_appendf(&aside, "%s.damaged-%lld", store->path, (long long)(clock_wall_ns() / 1000000000));
    for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
        autostr struct str from = {0}, to = {0};
        str_concat(&from, store->path, suffixes[i]);
        str_concat(&to, aside.data, suffixes[i]);
        if (aside.failed || from.failed || to.failed)
            return brig_fail_nomem(err);
        if (rename(from.data, to.data) < 0 && errno != ENOENT)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "rename '%s'", str_shown(from.data).text);
    }
    free(take_ptr(&store->replaces));
    return str_take(&aside, &store->replaces, err);
}

int spool_replace(struct store *base, struct brig_error *err)
{
    struct sqlite_store *store = of(base);
    struct brig_error own = {0};
    close_file(store);
    int result = put_aside(store, &own);
    store->damaged = false;
    if (result == 0)
        result = open_file(store, &own);
    if (result < 0 && err)
        *err = own;
    return result;
}

const char *spool_replaces(const struct store *store)
{
    return of(store)->replaces;
}

bool spool_is_damaged(const struct store *store)
{
    return of(store)->damaged;
}

uint64_t spool_sequence(const struct store *store)
{
    return of(store)->sequence;
}

uint64_t spool_bytes(const struct store *store)
{
    uint64_t pages = 0, size = 0;
    if (ask_number(of(store), "PRAGMA page_count", &pages, NULL) < 0 ||
        ask_number(of(store), "PRAGMA page_size", &size, NULL) < 0)
        return 0;
    return pages * size;
}

uint64_t spool_count(const struct store *store)
{
    uint64_t count = 0;
    (void)ask_number(of(store), "SELECT count(*) FROM executions WHERE sequence > 0", &count, NULL);
    return count;
}

/* Which parts a row has; the statements of the other database are chosen by it. */
static enum row_kind kind_of(const struct row *row)
{
    bool ended = row->started_ns != ROW_NO_NUMBER || row->ended_ns != ROW_NO_NUMBER;
    if (row->status && strcmp(row->status, "blocked") == 0)
        return ROW_BLOCKED;
    return !ended ? ROW_BEGIN : row->language ? ROW_WHOLE : ROW_END;
}

int spool_read(struct store *base, struct row *rows, uint64_t *ret_sequence, struct brig_error *err)
{
    struct sqlite_store *store = of(base);
    autostr struct str sql = {0};
    sqlite3_stmt *statement = NULL;
    size_t count = 0, bytes = 0;
    int step = SQLITE_ROW;
    store_sql_select(true, ", sequence", &sql);
    str_append(&sql, " WHERE sequence > 0 ORDER BY sequence");
    int result = prepare(store, sql.failed ? NULL : sql.data, 0, &statement, err);
    while (result == 0 && count < SPOOL_BATCH_MAX && bytes < SPOOL_BATCH_BYTES &&
           (step = sqlite3_step(statement)) == SQLITE_ROW) {
        struct row *row = &rows[count++];
        take_row(statement, true, row);
        row->kind = kind_of(row);
        row->sequence = sqlite3_column_int64(statement, (int)row_column_count);
        bytes += row->code.length + row->output.length + row->error_output.length;
        if (row->arena.failed)
            result = brig_fail_nomem(err);
    }
    if (result == 0 && step != SQLITE_ROW && step != SQLITE_DONE)
        result = fail(store, "read", err);
    (void)sqlite3_finalize(statement);
    for (size_t i = 0; i < count && result < 0; i++)
        row_done(&rows[i]);
    if (result < 0)
        return result;
    /* Others may have the sequence of the last one. */
    *ret_sequence = step == SQLITE_DONE ? store->sequence : (uint64_t)rows[count - 1].sequence - 1;
    return (int)count;
}

int spool_release(struct store *base, const struct row *rows, size_t count, struct brig_error *err)
{
    struct sqlite_store *store = of(base);
    sqlite3_stmt *sent[2] = {0};
    int result =
        prepare(store, "DELETE FROM executions WHERE id = ?1 AND sequence = ?2", 0, &sent[0], err);
    if (result == 0) /* with its end it is sent again, and a new executor finds it lost */
        result =
            prepare(store, "UPDATE executions SET sequence = 0 WHERE id = ?1 AND sequence = ?2", 0,
                    &sent[1], err);
    if (result == 0)
        result = run(store, "BEGIN IMMEDIATE", "begin to write", err);
    if (result == 0) {
        for (size_t i = 0; i < count && result == 0; i++) {
            sqlite3_stmt *statement = sent[strcmp(rows[i].status, "running") == 0];
            int failed = sqlite3_bind_text(statement, 1, rows[i].id, -1, SQLITE_STATIC) |
                         sqlite3_bind_int64(statement, 2, rows[i].sequence);
            result = finish(store, statement, failed == SQLITE_OK, "remove a row", err);
        }
        result = end_transaction(store, result, err);
    }
    (void)sqlite3_finalize(sent[0]);
    (void)sqlite3_finalize(sent[1]);
    return result;
}
