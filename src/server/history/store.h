/* SPDX-License-Identifier: MIT */
/* A database that holds the history. SQLite is either the history or, with PostgreSQL, its spool:
 * rows are first stored in the same table, and removed when PostgreSQL has them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "server/history/row.h"

struct brig_error;
struct query;
struct store_operations;

#define STORE_FORGET_MAX 1000
#define STORE_ANSWER_MS 5000 /* a slower query fails */

/* The beginning of every store. */
struct store {
    const struct store_operations *operations;
    bool is_spool;
    uint64_t sequence; /* spool: sequence of the last batch */
    uint64_t kept_max; /* SQLite: bytes of one key, see kept.h; 0: no limit */
};

/* Call before the process is confined. Creates the file and its directory, and replaces a damaged
 * file; fails with BRIG_E_STATE if another process uses the file. */
int store_open_sqlite(const char *path, struct store **ret_store, struct brig_error *err);
/* The server need not be running yet. The connection string is borrowed. */
int store_open_postgres(const char *dsn, struct store **ret_store, struct brig_error *err);
void store_close(struct store *store); /* accepts NULL */

/* These functions block for a bounded time, and must be called from one thread at a time. Errors:
 * BRIG_E_SYSTEM, the database does not answer now; BRIG_E_INVALID, it will never accept the row. */

/* Stores all rows or none. ROW_LOST is for SQLite only, ROW_WHOLE for PostgreSQL only. */
int store_apply(struct store *store, const struct row *rows, size_t count, struct brig_error *err);
/* Stores the rows together. If the database refuses a row permanently, stores them one by one, so
 * that it does not block the others; counts refused rows. */
int store_apply_each(struct store *store, const struct row *rows, size_t count,
                     uint64_t *ret_refused, struct brig_error *err);
/* Returns the number of rows found: 0 or 1. */
int store_get(struct store *store, const char *id, struct row *ret_row, struct brig_error *err);
/* Lists at most `max` rows, newest first, without code and output. Returns their number. */
int store_list(struct store *store, const struct query *query, struct row *rows, size_t max,
               struct brig_error *err);
/* Removes at most STORE_FORGET_MAX rows older than `before_ns`. Returns their number. */
int store_forget(struct store *store, int64_t before_ns, struct brig_error *err);

/* ---- SQLite: the id of this server, which is stored in the file ---- */

const char *store_server_id(const struct store *store);

/* ---- SQLite: a damaged file ---- */

/* Makes a new file and renames the damaged one, as most of its rows can be recovered. After a
 * failure the store can only be closed. */
int store_replace(struct store *store, struct brig_error *err);
/* The new name of the damaged file that was replaced, or NULL. */
const char *store_replaces(const struct store *store);
/* Returns whether damage was found since the file was opened. */
bool store_is_damaged(const struct store *store);

/* ---- SQLite as the spool ---- */

#define SPOOL_BATCH_MAX 256
#define SPOOL_BATCH_BYTES ((size_t)8 << 20)

/* Opens spool.sqlite in a directory. A damaged file is replaced. */
int spool_open(const char *directory, struct store **ret_store, struct brig_error *err);
/* Size of the file in bytes. */
uint64_t spool_bytes(const struct store *store);
/* Number of rows that wait for PostgreSQL. Reads all of them. */
uint64_t spool_count(const struct store *store);
/* When the oldest of them was created; 0: there is none. */
int64_t spool_oldest_ns(const struct store *store);
/* Reads the oldest rows, at most SPOOL_BATCH_MAX, and returns their number. All rows up to
 * *ret_sequence have then been read. */
int spool_read(struct store *store, struct row *rows, uint64_t *ret_sequence,
               struct brig_error *err);
/* PostgreSQL has stored these rows: removes those that have not changed since and have ended; keeps
 * running ones. */
int spool_release(struct store *store, const struct row *rows, size_t count,
                  struct brig_error *err);

/* ---- Internal to the stores ---- */

#define STORE_VALUES_MAX 48

/* A parameter, by its type; data NULL and ROW_NO_NUMBER stand for NULL. */
struct store_value {
    enum row_type type;
    const char *data;
    size_t length;
    int64_t number;
};

/* A statement and its parameters. */
struct store_statement {
    struct str sql;
    struct store_value values[STORE_VALUES_MAX];
    size_t count;
};
void store_statement_done(struct store_statement *statement);
#define autostatement __attribute__((cleanup(store_statement_done)))

/* Receives the rows of a statement. */
struct store_rows {
    struct row *rows;
    size_t max, bytes_max; /* limits; bytes_max 0: none */
    size_t count;
    bool with_bytes; /* BYTES columns are included */
    bool ended;      /* SQLite: all rows were read */
};

/* The operations of a database. */
struct store_operations {
    char placeholder; /* '?' or '$', followed by a number */
    void (*close)(struct store *store);
    /* Connects if there is no working connection; may be NULL. */
    int (*reach)(struct store *store, struct brig_error *err);
    /* Runs one statement. Returns the number of rows it changed; in PostgreSQL also of rows it
     * returned. `into` may be NULL. */
    int (*execute)(struct store *store, const struct store_statement *statement, const char *what,
                   struct store_rows *into, struct brig_error *err);
    /* Called for each row after it was stored, in its transaction; may be NULL. */
    int (*applied)(struct store *store, const struct row *row, struct brig_error *err);
};

void store_add_text(struct store_statement *statement, const char *text);
void store_add_number(struct store_statement *statement, int64_t number);
void store_add_bytes(struct store_statement *statement, struct execution_bytes bytes);
/* Runs the statement; returns the number of rows that changed. */
int store_execute(struct store *store, const struct store_statement *statement, const char *what,
                  struct brig_error *err);

struct sqlite3_stmt;
/* SQLite: gives each row of the statement to `take`, until that returns false. */
int store_query(struct store *store, const struct store_statement *statement,
                bool (*take)(void *context, struct sqlite3_stmt *row), void *context,
                struct brig_error *err);

int store_begin(struct store *store, struct brig_error *err);
/* Stores one row within a transaction that the caller has begun. */
int store_apply_within(struct store *store, const struct row *row, struct brig_error *err);
/* Commits, or rolls back if `result` is negative. */
int store_end(struct store *store, int result, struct brig_error *err);
/* Runs a statement with at most one text and one number, in this order. NULL and ROW_NO_NUMBER
 * leave them out. */
int store_run(struct store *store, const char *sql, const char *text, int64_t number,
              const char *what, struct brig_error *err);
/* Reads the rows of "SELECT columns <more> FROM executions <where>". Leaves no rows on failure. */
int store_read(struct store *store, struct store_statement *statement, const char *what,
               struct store_rows *into, struct brig_error *err);
void store_select(struct store_statement *statement, bool with_bytes, const char *more);

/* Columns that later versions added, in both databases. */
#define STORE_COLUMNS_2(NUMBER)                                                                    \
    "ALTER TABLE executions ADD COLUMN traceparent TEXT;"                                          \
    "ALTER TABLE executions ADD COLUMN priority " NUMBER ";"

/* The first table of both databases; the parameters are names of types. */
#define STORE_TABLE(NUMBER, BYTES, END)                                                            \
    "CREATE TABLE executions ("                                                                    \
    " id TEXT PRIMARY KEY, server TEXT NOT NULL, created_ns " NUMBER " NOT NULL,"                  \
    " status TEXT NOT NULL, events TEXT NOT NULL,"                                                 \
    " request_id TEXT, client TEXT, domain TEXT, language TEXT, work_dir TEXT,"                    \
    " code " BYTES ", code_sha256 TEXT, code_bytes " NUMBER ", timeout_ms " NUMBER                 \
    ", memory_mb " NUMBER ", pids_limit " NUMBER ", disk_mb " NUMBER ", cpu_percent " NUMBER       \
    ", network " NUMBER ", exit_code " NUMBER ", signal " NUMBER ", output " BYTES                 \
    ", output_sha256 TEXT, output_bytes " NUMBER ", output_truncated " NUMBER ", stderr " BYTES    \
    ", stderr_sha256 TEXT, stderr_bytes " NUMBER ", stderr_truncated " NUMBER                      \
    ", duration_us " NUMBER ", cpu_time_us " NUMBER ", memory_peak_bytes " NUMBER                  \
    ", pids_used " NUMBER ", started_ns " NUMBER ", ended_ns " NUMBER                              \
    ", message TEXT, unenforced TEXT, files TEXT) " END ";"                                        \
    "CREATE INDEX executions_created ON executions (created_ns, id);"                              \
    "CREATE INDEX executions_language ON executions (language, created_ns, id);"                   \
    "CREATE INDEX executions_status ON executions (status, created_ns, id);"
