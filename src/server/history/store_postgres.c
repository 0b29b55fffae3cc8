/* SPDX-License-Identifier: MIT */
/* The history in PostgreSQL. Nothing here waits longer than a few seconds, however the server has
 * died: connections and statements are polled for, and given up. */
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
#define PARAMETERS_MAX 48
#define NUMBER_MAX 24
#define MIGRATION_LOCK "7236273921" /* any number that no other program uses */

struct postgres_store {
    struct store store;
    PGconn *connection;
    const char *dsn; /* the configuration's */
};

/* Each is run once, in order; brig_migrations says how many were. Never changed, only added to. */
static const char *const migrations[] = {
    "CREATE TABLE executions ("
    " id TEXT PRIMARY KEY, server TEXT NOT NULL, created_ns BIGINT NOT NULL,"
    " status TEXT NOT NULL, events TEXT NOT NULL,"
    " request_id TEXT, client TEXT, domain TEXT, language TEXT, work_dir TEXT,"
    " code BYTEA, code_sha256 TEXT, code_bytes BIGINT,"
    " timeout_ms BIGINT, memory_mb BIGINT, pids_limit BIGINT, disk_mb BIGINT,"
    " cpu_percent BIGINT, network BIGINT,"
    " exit_code BIGINT, signal BIGINT,"
    " output BYTEA, output_sha256 TEXT, output_bytes BIGINT, output_truncated BIGINT,"
    " stderr BYTEA, stderr_sha256 TEXT, stderr_bytes BIGINT, stderr_truncated BIGINT,"
    " duration_us BIGINT, cpu_time_us BIGINT, memory_peak_bytes BIGINT, pids_used BIGINT,"
    " started_ns BIGINT, ended_ns BIGINT, message TEXT, unenforced TEXT, files TEXT);"
    "CREATE INDEX executions_created ON executions (created_ns, id);"
    "CREATE INDEX executions_language ON executions (language, created_ns, id);"
    "CREATE INDEX executions_status ON executions (status, created_ns, id);",
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

static void disconnect(struct postgres_store *store)
{
    PQfinish(take_ptr(&store->connection));
}

/* What it says has lines; the first is what matters. The password is in none of them. */
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

/* 08 the connection, 53 resources, 57 an operator, 58 the system, 40 and 55 another transaction: later
 * it may work. 22 and 23 are of the row itself. */
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

/* Sends what is queued, then takes answers until there are no more: the last is what counts. */
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

struct parameters {
    const char *values[PARAMETERS_MAX];
    int lengths[PARAMETERS_MAX], formats[PARAMETERS_MAX]; /* 1: bytes as they are */
    char numbers[PARAMETERS_MAX][NUMBER_MAX];
    int count;
};

static void add_text(struct parameters *parameters, const char *text)
{
    parameters->values[parameters->count++] = text;
}

static void add_number(struct parameters *parameters, int64_t number)
{
    char *text = parameters->numbers[parameters->count];
    (void)snprintf(text, NUMBER_MAX, "%" PRId64, number);
    add_text(parameters, text);
}

static void add_bytes(struct parameters *parameters, const struct execution_bytes *bytes)
{
    parameters->lengths[parameters->count] = (int)bytes->length;
    parameters->formats[parameters->count] = 1;
    add_text(parameters, bytes->data);
}

/* Several statements in one text only without parameters. */
static int execute(struct postgres_store *store, const char *sql, const struct parameters *given,
                   const char *what, PGresult **ret_answer, struct brig_error *err)
{
    uint64_t deadline_ms = clock_now_ms() + STATEMENT_TIMEOUT_MS;
    int sent = given ? PQsendQueryParams(store->connection, sql, given->count, NULL, given->values,
                                         given->lengths, given->formats, 0)
                     : PQsendQuery(store->connection, sql);
    autoanswer PGresult *answer = sent ? collect(store->connection, deadline_ms) : NULL;
    ExecStatusType status = answer ? PQresultStatus(answer) : PGRES_FATAL_ERROR;
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        return fail(store, code_of(answer), what,
                    answer ? PQresultErrorMessage(answer) : PQerrorMessage(store->connection), err);
    if (ret_answer)
        *ret_answer = take_ptr(&answer);
    return 0;
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

/* Notices would go to standard error. */
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

static int read_version(struct postgres_store *store, size_t *ret_version, struct brig_error *err)
{
    autoanswer PGresult *answer = NULL;
    int result = execute(store, "SELECT coalesce(max(version), 0) FROM brig_migrations", NULL,
                         "say its version", &answer, err);
    if (result == 0)
        *ret_version = strtoul(PQgetvalue(answer, 0, 0), NULL, 10);
    return result;
}

/* Several brigds may come at once: the lock, which ends with the transaction, is for them. */
static int migrate_locked(struct postgres_store *store, struct brig_error *err)
{
    size_t version = 0;
    int result = execute(store,
                         "SELECT pg_advisory_xact_lock(" MIGRATION_LOCK ");"
                         "CREATE TABLE IF NOT EXISTS brig_migrations (version INTEGER PRIMARY KEY,"
                         " done TIMESTAMPTZ NOT NULL DEFAULT now())",
                         NULL, "make its tables", NULL, err);
    if (result == 0)
        result = read_version(store, &version, err);
    if (result == 0 && version > ARRAY_LENGTH(migrations))
        result = brig_fail(err, BRIG_E_SYSTEM, 0,
                           "the database is of a newer brigd: its version is %zu, this one knows "
                           "%zu",
                           version, ARRAY_LENGTH(migrations));
    for (; result == 0 && version < ARRAY_LENGTH(migrations); version++) {
        struct parameters parameters = {0};
        add_number(&parameters, (int64_t)version + 1);
        result = execute(store, migrations[version], NULL, "make its tables", NULL, err);
        if (result == 0)
            result = execute(store, "INSERT INTO brig_migrations (version) VALUES ($1)",
                             &parameters, "make its tables", NULL, err);
    }
    return result;
}

static int end_transaction(struct postgres_store *store, int result, struct brig_error *err)
{
    if (!store->connection)
        return result;
    if (result < 0) {
        (void)execute(store, "ROLLBACK", NULL, "roll back", NULL, NULL);
        return result;
    }
    return execute(store, "COMMIT", NULL, "write", NULL, err);
}

static int migrate(struct postgres_store *store, struct brig_error *err)
{
    int result = execute(store, STATEMENT_TIMEOUT, NULL, "be set up", NULL, err);
    if (result == 0)
        result = execute(store, "BEGIN", NULL, "begin", NULL, err);
    return result < 0 ? result : end_transaction(store, migrate_locked(store, err), err);
}

/* A connection that works, made where there is none. */
static int reach(struct postgres_store *store, struct brig_error *err)
{
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

static struct postgres_store *of(struct store *store)
{
    return (struct postgres_store *)store;
}

static void close_store(struct store *store)
{
    disconnect(of(store));
    free(store);
}

/* A connection string that libpq does not understand will not be understood later. Its own words could
 * have parts of it in them. */
static int check_dsn(const char *dsn, struct brig_error *err)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(dsn, &message);
    bool understood = options != NULL;
    PQconninfoFree(options);
    PQfreemem(message);
    if (understood)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "database.dsn is not a connection string. Write it as in "
                     "postgres://user@host/database or host=… dbname=…");
}

/* ---- Writing ---- */

static void add_column(struct parameters *parameters, const struct row_column *column,
                       const struct row *row)
{
    switch (column->type) {
    case ROW_TEXT:
        add_text(parameters, *row_text(column, row));
        return;
    case ROW_BYTES:
        add_bytes(parameters, row_bytes(column, row));
        return;
    case ROW_NUMBER:
        if (*row_number(column, row) == ROW_NO_NUMBER)
            add_text(parameters, NULL);
        else
            add_number(parameters, *row_number(column, row));
        return;
    }
}

static int apply_as(struct postgres_store *store, enum row_kind kind, const struct row *row,
                    struct brig_error *err)
{
    autostr struct str sql = {0};
    struct parameters parameters = {0};
    for (size_t i = 0; i < row_column_count; i++)
        if (row_has_column(kind, &row_columns[i]))
            add_column(&parameters, &row_columns[i], row);
    store_sql_insert(kind, '$', false, &sql);
    return sql.failed ? brig_fail_nomem(err)
                      : execute(store, sql.data, &parameters, "store a row", NULL, err);
}

/* What is there of it already may be either part, so a whole row is brought as both. */
static int apply_row(struct postgres_store *store, const struct row *row, struct brig_error *err)
{
    if (row->kind != ROW_WHOLE)
        return apply_as(store, row->kind, row, err);
    int result = apply_as(store, ROW_BEGIN, row, err);
    return result < 0 ? result : apply_as(store, ROW_END, row, err);
}

static int apply(struct store *base, const struct row *rows, size_t count, struct brig_error *err)
{
    struct postgres_store *store = of(base);
    int result = reach(store, err);
    if (result == 0)
        result = execute(store, "BEGIN", NULL, "begin", NULL, err);
    if (result < 0)
        return result;
    for (size_t i = 0; i < count && result == 0; i++)
        result = apply_row(store, &rows[i], err);
    return end_transaction(store, result, err);
}

/* ---- Reading ---- */

static void take_bytes(const PGresult *answer, int at, int number, const struct row_column *column,
                       struct row *row)
{
    size_t length = 0;
    unsigned char *bytes =
        PQunescapeBytea((const unsigned char *)PQgetvalue(answer, at, number), &length);
    char *copy = bytes ? arena_alloc(&row->arena, length + 1) : NULL;
    if (copy) {
        memcpy(copy, bytes, length);
        *row_bytes(column, row) = (struct execution_bytes){copy, length};
    }
    PQfreemem(bytes);
}

static void take_row(const PGresult *answer, int at, bool with_large, struct row *row)
{
    int number = -1;
    row_init(row, ROW_END);
    for (size_t i = 0; i < row_column_count; i++) {
        const struct row_column *column = &row_columns[i];
        if (column->large && !with_large)
            continue;
        number++;
        if (PQgetisnull(answer, at, number))
            continue;
        const char *text = PQgetvalue(answer, at, number);
        if (column->type == ROW_NUMBER)
            *row_number(column, row) = strtoll(text, NULL, 10);
        else if (column->type == ROW_TEXT)
            *row_text(column, row) = arena_strdup(&row->arena, text);
        else
            take_bytes(answer, at, number, column, row);
    }
}

static int take_rows(const PGresult *answer, bool with_large, struct row *rows, size_t max,
                     struct brig_error *err)
{
    size_t count = (size_t)PQntuples(answer);
    bool failed = false;
    if (count > max)
        count = max;
    for (size_t i = 0; i < count; i++) {
        take_row(answer, (int)i, with_large, &rows[i]);
        failed = failed || rows[i].arena.failed;
    }
    for (size_t i = 0; i < count && failed; i++)
        row_done(&rows[i]);
    return failed ? brig_fail_nomem(err) : (int)count;
}

static int get(struct store *store, const char *id, struct row *ret_row, struct brig_error *err)
{
    autostr struct str sql = {0};
    autoanswer PGresult *answer = NULL;
    struct parameters parameters = {0};
    add_text(&parameters, id);
    store_sql_select(true, "", &sql);
    str_append(&sql, " WHERE id = $1");
    int result = sql.failed ? brig_fail_nomem(err) : reach(of(store), err);
    if (result == 0)
        result = execute(of(store), sql.data, &parameters, "read", &answer, err);
    return result < 0 ? result : take_rows(answer, true, ret_row, 1, err);
}

static int list(struct store *store, const struct query *query, struct row *rows, size_t max,
                struct brig_error *err)
{
    autostr struct str sql = {0};
    autoanswer PGresult *answer = NULL;
    struct parameters parameters = {0};
    store_sql_list(query, '$', &sql);
    /* In the order of enum store_parameter. */
    add_text(&parameters, query->language);
    add_text(&parameters, query->status);
    add_text(&parameters, query->domain);
    add_number(&parameters, query->since_ns);
    add_number(&parameters, query->until_ns);
    add_number(&parameters, query->before_ns);
    add_text(&parameters, query->before_id);
    add_number(&parameters, (int64_t)max);
    int result = sql.failed ? brig_fail_nomem(err) : reach(of(store), err);
    if (result == 0)
        result = execute(of(store), sql.data, &parameters, "list", &answer, err);
    return result < 0 ? result : take_rows(answer, false, rows, max, err);
}

static int forget(struct store *store, int64_t before_ns, struct brig_error *err)
{
    autostr struct str sql = {0};
    autoanswer PGresult *answer = NULL;
    struct parameters parameters = {0};
    add_number(&parameters, before_ns);
    store_sql_forget('$', &sql);
    int result = sql.failed ? brig_fail_nomem(err) : reach(of(store), err);
    if (result == 0)
        result = execute(of(store), sql.data, &parameters, "forget", &answer, err);
    return result < 0 ? result : (int)strtol(PQcmdTuples(answer), NULL, 10);
}

static const struct store_operations postgres_operations = {
    .name = "postgres",
    .close = close_store,
    .apply = apply,
    .get = get,
    .list = list,
    .forget = forget,
};

int store_open_postgres(const char *dsn, struct store **ret_store, struct brig_error *err)
{
    int result = check_dsn(dsn, err);
    if (result < 0)
        return result;
    struct postgres_store *store = calloc(1, sizeof *store);
    if (!store)
        return brig_fail_nomem(err);
    store->store.operations = &postgres_operations;
    store->dsn = dsn;
    *ret_store = &store->store;
    return 0;
}
