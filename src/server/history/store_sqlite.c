/* SPDX-License-Identifier: MIT */
/* The history in an SQLite file, or the spool for PostgreSQL: the same table. In the spool, a row
 * that differs from PostgreSQL's has a sequence, which changes with the row. The sequence is 0 for
 * a running row that was sent, and always in a history.
 *
 * The file is in WAL mode. A committed transaction survives a crash of the process. A power failure
 * may lose the last transactions, but does not damage the file. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "server/history/kept.h"
#include "server/history/notes.h"
#include "server/history/query.h"
#include "server/history/queue.h"
#include "server/history/store.h"

#define BUSY_TIMEOUT_MS 250 /* for other programs that write to the file */
#define ASK_MAX (EXECUTION_ID_LENGTH + 1)
#define PROGRESS_STEPS 10000 /* SQLite VM steps between checks of the deadline */

struct sqlite_store {
    struct store store;
    sqlite3 *db;
    int lock;
    bool damaged;
    uint64_t deadline_ms;
    char server_id[EXECUTION_ID_LENGTH + 1];
    char *path;
    char *replaces; /* new name of a damaged file, or NULL */
};

/* Each migration is run once, in order; user_version counts them. Only append to this list. */
static const char *const migrations[] = {
    STORE_TABLE("INTEGER", "BLOB", "WITHOUT ROWID"),

    "ALTER TABLE executions ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX executions_sequence ON executions (sequence) WHERE sequence > 0;"
    "CREATE TABLE server (id TEXT NOT NULL);",

    STORE_COLUMNS_2("INTEGER") QUEUE_TABLES,
    "ALTER TABLE executions ADD COLUMN sandbox_id TEXT;",
    NOTE_TABLES,
    KEPT_TABLES,
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

static int prepare(struct sqlite_store *store, const char *sql, sqlite3_stmt **ret_statement,
                   struct brig_error *err)
{
    if (sqlite3_prepare_v2(store->db, sql, -1, ret_statement, NULL) == SQLITE_OK)
        return 0;
    return fail(store, "prepare a statement", err);
}

/* Returns the text or number that a statement without parameters yields. */
static int ask(struct sqlite_store *store, const char *sql, char ret_text[ASK_MAX],
               struct brig_error *err)
{
    sqlite3_stmt *statement = NULL;
    int result = prepare(store, sql, &statement, err);
    if (result == 0 && sqlite3_step(statement) != SQLITE_ROW)
        result = fail(store, "read", err);
    if (result == 0)
        (void)snprintf(ret_text, ASK_MAX, "%s", (const char *)sqlite3_column_text(statement, 0));
    (void)sqlite3_finalize(statement);
    return result;
}

static int ask_number(struct sqlite_store *store, const char *sql, uint64_t *ret_number,
                      struct brig_error *err)
{
    char text[ASK_MAX] = "";
    int result = ask(store, sql, text, err);
    if (result == 0)
        *ret_number = strtoull(text, NULL, 10);
    return result;
}

/* ---- Opening ---- */

/* SQLite would let two brigds write alternately, and each would mark the other's runs as lost. */
static int take_lock(struct sqlite_store *store, struct brig_error *err)
{
    autofree char *name = NULL;
    int result = str_make(&name, err, store->path, ".lock");
    if (result == 0)
        result = path_make_directories(name, (size_t)(strrchr(name, '/') - name), 0700, err);
    if (result < 0)
        return result;
    store->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (store->lock < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'%s'", str_shown(name).text);
    if (flock(store->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return brig_fail(err, BRIG_E_STATE, 0,
                     "'%s' is in use by another brigd. Give this one its own database.%s",
                     str_shown(store->path).text, store->store.is_spool ? "spool_dir" : "path");
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

/* The id is made with the file, and kept when the file is replaced. Older files have it only in
 * their rows. */
static int read_server_id(struct sqlite_store *store, struct brig_error *err)
{
    if (!store->server_id[0])
        execution_id_make(store->server_id);
    int result = store_run(&store->store,
                           "INSERT INTO server SELECT coalesce((SELECT server FROM executions"
                           " ORDER BY created_ns DESC LIMIT 1), ?1)"
                           " WHERE NOT EXISTS (SELECT 1 FROM server)",
                           store->server_id, ROW_NO_NUMBER, "store its id", err);
    return result < 0 ? result : ask(store, "SELECT id FROM server", store->server_id, err);
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
    /* Lets the spool shrink. Must be set before tables are made. */
    int result =
        store->store.is_spool ? run(store, "PRAGMA auto_vacuum = FULL", "set itself up", err) : 0;
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
    if (result < 0 || store->store.sequence > 0) /* a replaced file keeps its sequence */
        return result;
    return ask_number(store, "SELECT coalesce(max(sequence), 0) FROM executions WHERE sequence > 0",
                      &store->store.sequence, err);
}

static void close_store(struct store *base)
{
    struct sqlite_store *store = of(base);
    (void)sqlite3_close(take_ptr(&store->db));
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
    *store =
        (struct sqlite_store){.store = {.operations = &sqlite_operations, .is_spool = is_spool},
                              .lock = -1,
                              .path = take_ptr(path)};
    int result = take_lock(store, err);
    if (result == 0)
        result = open_file(store, err);
    if (result < 0 && store->damaged)
        result = store_replace(&store->store, err);
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

/* ---- Statements ---- */

static int bind(sqlite3_stmt *statement, int number, const struct store_value *value)
{
    switch (value->type) {
    case ROW_TEXT:
        return sqlite3_bind_text64(statement, number, value->data, value->length, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case ROW_BYTES:
        return sqlite3_bind_blob64(statement, number, value->data, value->length, SQLITE_STATIC);
    case ROW_NUMBER:
        if (value->number == ROW_NO_NUMBER)
            return sqlite3_bind_null(statement, number);
        return sqlite3_bind_int64(statement, number, value->number);
    }
    return SQLITE_MISUSE;
}

/* The sequence, if selected, is the last column. */
static void take_row(sqlite3_stmt *statement, bool with_bytes, struct row *row)
{
    int number = 0;
    row_init(row, ROW_END);
    for (size_t i = 0; i < row_column_count; i++) {
        if (row_columns[i].type == ROW_BYTES && !with_bytes)
            continue;
        /* SQLite returns NULL for an empty blob. */
        bool empty = sqlite3_column_type(statement, number) != SQLITE_NULL;
        const void *data = sqlite3_column_blob(statement, number);
        row_set(row, &row_columns[i], data || !empty ? data : "",
                (size_t)sqlite3_column_bytes(statement, number));
        number++;
    }
    if (number < sqlite3_column_count(statement))
        row->sequence = sqlite3_column_int64(statement, number);
}

/* The caller blocks, so stop at the deadline. */
static int step(struct sqlite_store *store, sqlite3_stmt *statement, struct store_rows *into)
{
    size_t bytes = 0;
    if (!into)
        return sqlite3_step(statement);
    store->deadline_ms = clock_now_ms() + STORE_ANSWER_MS;
    int result = SQLITE_DONE;
    while (into->count < into->max && (!into->bytes_max || bytes < into->bytes_max) &&
           (result = sqlite3_step(statement)) == SQLITE_ROW) {
        struct row *row = &into->rows[into->count++];
        take_row(statement, into->with_bytes, row);
        bytes += row->code.length + row->output.length + row->error_output.length;
    }
    store->deadline_ms = 0;
    into->ended = result == SQLITE_DONE;
    return result == SQLITE_ROW ? SQLITE_DONE : result;
}

static int execute(struct store *base, const struct store_statement *wanted, const char *what,
                   struct store_rows *into, struct brig_error *err)
{
    struct sqlite_store *store = of(base);
    sqlite3_stmt *statement = NULL;
    int failed = SQLITE_OK, result = prepare(store, wanted->sql.data, &statement, err);
    if (result < 0)
        return result;
    for (size_t i = 0; i < wanted->count; i++)
        failed |= bind(statement, (int)i + 1, &wanted->values[i]);
    if (failed || step(store, statement, into) != SQLITE_DONE)
        result = fail(store, what, err);
    (void)sqlite3_finalize(statement);
    return result < 0 ? result : sqlite3_changes(store->db);
}

int store_query(struct store *base, const struct store_statement *wanted,
                bool (*take)(void *context, struct sqlite3_stmt *row), void *context,
                struct brig_error *err)
{
    struct sqlite_store *store = of(base);
    sqlite3_stmt *statement = NULL;
    if (wanted->sql.failed)
        return brig_fail_nomem(err);
    int status = SQLITE_OK, result = prepare(store, wanted->sql.data, &statement, err);
    if (result < 0)
        return result;
    for (size_t i = 0; i < wanted->count; i++)
        status |= bind(statement, (int)i + 1, &wanted->values[i]);
    store->deadline_ms = clock_now_ms() + STORE_ANSWER_MS;
    if (status == SQLITE_OK)
        while ((status = sqlite3_step(statement)) == SQLITE_ROW && take(context, statement))
            continue;
    store->deadline_ms = 0;
    if (status != SQLITE_DONE && status != SQLITE_ROW)
        result = fail(store, "read", err);
    (void)sqlite3_finalize(statement);
    return result;
}

static const struct store_operations sqlite_operations = {
    .placeholder = '?',
    .close = close_store,
    .execute = execute,
    .applied = queue_applied,
};

/* ---- The spool ---- */

int spool_open(const char *directory, struct store **ret_store, struct brig_error *err)
{
    autofree char *path = NULL;
    int result = str_make(&path, err, directory, "/spool.sqlite");
    return result < 0 ? result : open_store(&path, true, ret_store, err);
}

/* SQLite has additional files besides the database. */
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

int store_replace(struct store *base, struct brig_error *err)
{
    struct sqlite_store *store = of(base);
    struct brig_error own = {0};
    (void)sqlite3_close(take_ptr(&store->db));
    int result = put_aside(store, &own);
    store->damaged = false;
    if (result == 0)
        result = open_file(store, &own);
    if (result < 0 && err)
        *err = own;
    return result;
}

const char *store_replaces(const struct store *store)
{
    return of(store)->replaces;
}

bool store_is_damaged(const struct store *store)
{
    return of(store)->damaged;
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

int64_t spool_oldest_ns(const struct store *store)
{
    uint64_t oldest = 0;
    (void)ask_number(of(store),
                     "SELECT coalesce(min(created_ns), 0) FROM executions WHERE sequence > 0",
                     &oldest, NULL);
    return (int64_t)oldest;
}

/* Which parts a row has; this selects the statements for PostgreSQL. */
static enum row_kind kind_of(const struct row *row)
{
    bool ended = row->started_ns != ROW_NO_NUMBER || row->ended_ns != ROW_NO_NUMBER;
    if (row->status && strcmp(row->status, "blocked") == 0)
        return ROW_BLOCKED;
    if (row->status && strcmp(row->status, "queued") == 0)
        return ROW_QUEUED;
    return !ended ? ROW_BEGIN : row->language ? ROW_WHOLE : ROW_END;
}

int spool_read(struct store *store, struct row *rows, uint64_t *ret_sequence,
               struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    struct store_rows into = {
        .rows = rows, .max = SPOOL_BATCH_MAX, .bytes_max = SPOOL_BATCH_BYTES, .with_bytes = true};
    store_select(&statement, true, ", sequence");
    str_append(&statement.sql, " WHERE sequence > 0 ORDER BY sequence");
    int count = store_read(store, &statement, "read", &into, err);
    for (int i = 0; i < count; i++)
        rows[i].kind = kind_of(&rows[i]);
    /* More rows may have the same sequence as the last one. */
    if (count >= 0)
        *ret_sequence = into.ended ? store->sequence : (uint64_t)rows[into.count - 1].sequence - 1;
    return count;
}

int spool_release(struct store *store, const struct row *rows, size_t count, struct brig_error *err)
{
    int result = store_begin(store, err);
    if (result < 0)
        return result;
    for (size_t i = 0; i < count && result == 0; i++) {
        /* A row that has not ended stays in the spool: it is sent again when it ends, and a new
         * executor marks it as lost. */
        bool running = !execution_status_is_final(execution_status_from_name(rows[i].status));
        result = store_run(store,
                           running ? "UPDATE executions SET sequence = 0"
                                     " WHERE id = ?1 AND sequence = ?2"
                                   : "DELETE FROM executions WHERE id = ?1 AND sequence = ?2",
                           rows[i].id, rows[i].sequence, "remove a row", err);
    }
    return store_end(store, result, err);
}
