/* SPDX-License-Identifier: MIT */
/* The history in PostgreSQL. No function blocks longer than a few seconds, however the server has
 * failed: connecting and statements use poll() with a deadline. */
#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/history/query.h"
#include "server/history/store.h"

#define CONNECT_TIMEOUT_MS 5000
#define STATEMENT_TIMEOUT_MS 10000
#define STATEMENT_TIMEOUT "SET statement_timeout = 8000"
#define NUMBER_MAX 24
#define MIGRATION_LOCK "7236273921" /* an arbitrary number for pg_advisory_xact_lock() */

struct postgres_store {
    struct store store;
    PGconn *connection;
    const char *dsn; /* owned by the configuration */
};

/* Each migration is run once, in order; brig_migrations records them. Only append to this list. */
static const char *const migrations[] = {
    STORE_TABLE("BIGINT", "BYTEA", ""),
    STORE_COLUMNS_2("BIGINT"),

    "ALTER TABLE executions ADD COLUMN sandbox_id TEXT;",
};

/* ---- Waiting ---- */

static bool wait_for(PGconn *connection, short events, uint64_t deadline_ms)
{
    struct pollfd waiting = {.fd = PQsocket(connection), .events = events};
    for (;;) {
        uint64_t now = clock_now_ms();
        if (now >= deadline_ms || waiting.fd < 0)
            return false;
        int ready = poll(&waiting, 1, (int)(deadline_ms - now));
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
    }
}

static struct postgres_store *of(struct store *store)
{
    return (struct postgres_store *)store;
}

static void disconnect(struct postgres_store *store)
{
    PQfinish(take_ptr(&store->connection));
}

/* Uses the first line of libpq's message. No line contains the password. */
static int fail(struct postgres_store *store, int code, const char *what, const char *message,
                struct brig_error *err)
{
    char line[STR_SHOWN_MAX];
    (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(message, "\n"), message);
    int result = brig_fail(err, code, 0, "PostgreSQL cannot %s: %s", what,
                           line[0] ? str_shown(line).text : "it does not answer in time");
    if (code == BRIG_E_SYSTEM)
        disconnect(store);
    return result;
}

/* SQLSTATE classes 08 (connection), 53 (resources), 57 (operator), 58 (system), 40 and 55 (other
 * transactions) are temporary. 22 and 23 concern the row itself. */
static int code_of(const PGresult *answer)
{
    const char *state = answer ? PQresultErrorField(answer, PG_DIAG_SQLSTATE) : NULL;
    bool of_row = state && (str_starts_with(state, "22") || str_starts_with(state, "23"));
    return of_row ? BRIG_E_INVALID : BRIG_E_SYSTEM;
}

static void clear_answer(PGresult **answer)
{
    PQclear(*answer);
}
#define autoanswer __attribute__((cleanup(clear_answer)))

/* Sends queued data, then reads results until there are no more; returns the last. */
static PGresult *collect(PGconn *connection, uint64_t deadline_ms)
{
    PGresult *last = NULL;
    for (int unsent = 1; unsent;) {
        unsent = PQflush(connection);
        if (unsent < 0 || (unsent && !wait_for(connection, POLLIN | POLLOUT, deadline_ms)))
            return NULL;
        if (unsent && !PQconsumeInput(connection))
            return NULL;
    }
    for (;;) {
        while (PQisBusy(connection))
            if (!wait_for(connection, POLLIN, deadline_ms) || !PQconsumeInput(connection)) {
                PQclear(last);
                return NULL;
            }
        PGresult *next = PQgetResult(connection);
        if (!next)
            return last;
        bool failed = last && PQresultStatus(last) == PGRES_FATAL_ERROR;
        PQclear(failed ? next : last);
        last = failed ? last : next;
    }
}

static void take_row(const PGresult *answer, int at, bool with_bytes, struct row *row)
{
    int number = 0;
    row_init(row, ROW_END);
    for (size_t i = 0; i < row_column_count; i++) {
        bool is_bytes = row_columns[i].type == ROW_BYTES;
        if (is_bytes && !with_bytes)
            continue;
        const char *text = PQgetisnull(answer, at, number) ? NULL : PQgetvalue(answer, at, number);
        size_t length = (size_t)PQgetlength(answer, at, number++);
        unsigned char *bytes =
            text && is_bytes ? PQunescapeBytea((const unsigned char *)text, &length) : NULL;
        row->arena.failed |= text && is_bytes && !bytes;
        row_set(row, &row_columns[i], is_bytes ? (char *)bytes : text, length);
        PQfreemem(bytes);
    }
}

/* A text with several statements cannot have parameters. */
static PGresult *perform(PGconn *connection, const struct store_statement *wanted)
{
    const char *values[STORE_VALUES_MAX];
    int lengths[STORE_VALUES_MAX], formats[STORE_VALUES_MAX]; /* 1: binary */
    struct {
        char text[NUMBER_MAX];
    } numbers[STORE_VALUES_MAX];
    for (size_t i = 0; i < wanted->count; i++) {
        const struct store_value *value = &wanted->values[i];
        values[i] = value->data;
        lengths[i] = (int)value->length;
        formats[i] = value->type == ROW_BYTES;
        if (value->type != ROW_NUMBER || value->number == ROW_NO_NUMBER)
            continue;
        (void)snprintf(numbers[i].text, NUMBER_MAX, "%" PRId64, value->number);
        values[i] = numbers[i].text;
    }
    int sent = wanted->count > 0
                   ? PQsendQueryParams(connection, wanted->sql.data, (int)wanted->count, NULL,
                                       values, lengths, formats, 0)
                   : PQsendQuery(connection, wanted->sql.data);
    return sent ? collect(connection, clock_now_ms() + STATEMENT_TIMEOUT_MS) : NULL;
}

static int execute(struct store *base, const struct store_statement *wanted, const char *what,
                   struct store_rows *into, struct brig_error *err)
{
    struct postgres_store *store = of(base);
    if (!store->connection)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "PostgreSQL cannot %s: no connection", what);
    autoanswer PGresult *answer = perform(store->connection, wanted);
    ExecStatusType status = answer ? PQresultStatus(answer) : PGRES_FATAL_ERROR;
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        return fail(store, code_of(answer), what,
                    answer ? PQresultErrorMessage(answer) : PQerrorMessage(store->connection), err);
    for (int i = 0; into && i < PQntuples(answer) && into->count < into->max; i++)
        take_row(answer, i, into->with_bytes, &into->rows[into->count++]);
    return (int)strtol(PQcmdTuples(answer), NULL, 10);
}

static int run(struct postgres_store *store, const char *sql, const char *what,
               struct brig_error *err)
{
    return store_run(&store->store, sql, NULL, ROW_NO_NUMBER, what, err);
}

/* ---- Connecting ---- */

static PGconn *begin_connection(const char *dsn)
{
    const char *const names[] = {
        "dbname",           "application_name", "keepalives_idle", "keepalives_interval",
        "keepalives_count", "tcp_user_timeout", "client_encoding", NULL};
    const char *const values[] = {dsn, "brigd", "10", "5", "3", "15000", "UTF8", NULL};
    return PQconnectStartParams(names, values, 1);
}

/* libpq would print notices to standard error. */
static void ignore_notice(void *context, const PGresult *notice)
{
    (void)context;
    (void)notice;
}

static int finish_connection(struct postgres_store *store, struct brig_error *err)
{
    uint64_t deadline_ms = clock_now_ms() + CONNECT_TIMEOUT_MS;
    if (!store->connection)
        return brig_fail_nomem(err);
    (void)PQsetNoticeReceiver(store->connection, ignore_notice, NULL);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (state != PGRES_POLLING_OK) {
        if (PQstatus(store->connection) == CONNECTION_BAD || state == PGRES_POLLING_FAILED)
            return fail(store, BRIG_E_SYSTEM, "be reached", PQerrorMessage(store->connection), err);
        short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (!wait_for(store->connection, events, deadline_ms))
            return fail(store, BRIG_E_SYSTEM, "be reached", "", err);
        state = PQconnectPoll(store->connection);
    }
    if (PQsetnonblocking(store->connection, 1) < 0)
        return fail(store, BRIG_E_SYSTEM, "be reached", PQerrorMessage(store->connection), err);
    return 0;
}

/* ---- Migrations ---- */

/* The lock, which is released by the end of the transaction, serialises several brigds that start
 * at once. Each migration adds a row, so the number of rows is the version. */
static int migrate_locked(struct postgres_store *store, struct brig_error *err)
{
    int result = run(store,
                     "SELECT pg_advisory_xact_lock(" MIGRATION_LOCK ");"
                     "CREATE TABLE IF NOT EXISTS brig_migrations (version INTEGER PRIMARY KEY,"
                     " done TIMESTAMPTZ NOT NULL DEFAULT now())",
                     "make its tables", err);
    if (result < 0)
        return result;
    autostatement struct store_statement all = {0};
    str_append(&all.sql, "SELECT version FROM brig_migrations");
    int version = all.sql.failed ? brig_fail_nomem(err)
                                 : execute(&store->store, &all, "say its version", NULL, err);
    if (version > (int)ARRAY_LENGTH(migrations))
        return brig_fail(err, BRIG_E_SYSTEM, 0,
                         "the database is of a newer brigd: its version is %d, this one knows %zu",
                         version, ARRAY_LENGTH(migrations));
    result = version < 0 ? version : 0;
    for (; result == 0 && version < (int)ARRAY_LENGTH(migrations); version++) {
        result = run(store, migrations[version], "make its tables", err);
        if (result == 0)
            result = store_run(&store->store, "INSERT INTO brig_migrations (version) VALUES ($1)",
                               NULL, version + 1, "make its tables", err);
    }
    return result;
}

static int migrate(struct postgres_store *store, struct brig_error *err)
{
    int result = run(store, STATEMENT_TIMEOUT, "be set up", err);
    if (result == 0)
        result = run(store, "BEGIN", "begin", err);
    return result < 0 ? result : store_end(&store->store, migrate_locked(store, err), err);
}

/* Connects if there is no working connection. */
static int reach(struct store *base, struct brig_error *err)
{
    struct postgres_store *store = of(base);
    if (store->connection && PQstatus(store->connection) == CONNECTION_OK)
        return 0;
    disconnect(store);
    store->connection = begin_connection(store->dsn);
    int result = finish_connection(store, err);
    if (result == 0)
        result = migrate(store, err);
    if (result < 0)
        disconnect(store);
    return result;
}

static void close_store(struct store *store)
{
    disconnect(of(store));
    free(store);
}

static const struct store_operations postgres_operations = {
    .placeholder = '$',
    .close = close_store,
    .reach = reach,
    .execute = execute,
};

int store_open_postgres(const char *dsn, struct store **ret_store, struct brig_error *err)
{
    struct postgres_store *store = calloc(1, sizeof *store);
    if (!store)
        return brig_fail_nomem(err);
    store->store.operations = &postgres_operations;
    store->dsn = dsn;
    *ret_store = &store->store;
    return 0;
}
