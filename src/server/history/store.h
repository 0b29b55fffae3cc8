/* SPDX-License-Identifier: MIT */
/* A database that holds the history. SQLite is either the history itself or, with PostgreSQL, its spool:
 * rows are stored in the same table first, and removed once PostgreSQL has them. */
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
#define STORE_ANSWER_MS 5000 /* a question that takes longer fails */

/* What every store begins with. */
struct store {
    const struct store_operations *operations;
    bool is_spool;
    uint64_t sequence; /* of a spool: of the batch that was applied last */
};

/* Before the process is confined. Makes the file and its directory; another process that uses it is
 * BRIG_E_STATE. */
int store_open_sqlite(const char *path, struct store **ret_store, struct brig_error *err);
/* The server need not be there yet. The connection string is borrowed. */
int store_open_postgres(const char *dsn, struct store **ret_store, struct brig_error *err);
void store_close(struct store *store); /* accepts NULL */

/* Each waits for a bounded time. One thread at a time. Errors: BRIG_E_SYSTEM, it does not answer, and may
 * later; BRIG_E_INVALID, it will never take this. */

/* Stores all rows or none. ROW_LOST is for SQLite only, ROW_WHOLE for PostgreSQL. */
int store_apply(struct store *store, const struct row *rows, size_t count, struct brig_error *err);
/* Applies rows together, or one by one where the database refuses one for good, so that it does not hold up
 * the others; these are counted. */
int store_apply_each(struct store *store, const struct row *rows, size_t count,
                     uint64_t *ret_refused, struct brig_error *err);
/* How many rows were found: 0 or 1. */
int store_get(struct store *store, const char *id, struct row *ret_row, struct brig_error *err);
/* At most `max` rows, newest first, without code and output; how many. */
int store_list(struct store *store, const struct query *query, struct row *rows, size_t max,
               struct brig_error *err);
/* Removes rows older than that, at most STORE_FORGET_MAX; how many. */
int store_forget(struct store *store, int64_t before_ns, struct brig_error *err);

/* ---- SQLite: the id of this server, which is in the file ---- */

const char *store_server_id(const struct store *store);

/* ---- SQLite as the spool ---- */

#define SPOOL_BATCH_MAX 256
#define SPOOL_BATCH_BYTES ((size_t)8 << 20)

/* The file spool.sqlite in a directory. A damaged one is replaced. */
int spool_open(const char *directory, struct store **ret_store, struct brig_error *err);
/* Makes a new file. The damaged one is renamed, as it may hold rows that PostgreSQL does not have. On failure
 * the store can only be closed. */
int spool_replace(struct store *store, struct brig_error *err);
/* The new name of a damaged spool that this one replaces, or NULL. */
const char *spool_replaces(const struct store *store);
/* Whether damage was found since it was opened. */
bool spool_is_damaged(const struct store *store);
/* Bytes in the file. */
uint64_t spool_bytes(const struct store *store);
/* How many rows wait for PostgreSQL. Looks at each. */
uint64_t spool_count(const struct store *store);
/* The rows that have waited longest, at most SPOOL_BATCH_MAX: how many. After them, all up to
 * `ret_sequence` have been read. */
int spool_read(struct store *store, struct row *rows, uint64_t *ret_sequence,
               struct brig_error *err);
/* PostgreSQL has them: those that have not changed since are removed, or kept until they end. */
int spool_release(struct store *store, const struct row *rows, size_t count,
                  struct brig_error *err);

/* ---- For the stores ---- */

#define STORE_VALUES_MAX 48

/* A parameter, by its type; data NULL and ROW_NO_NUMBER are NULL. */
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

/* Where rows go that a statement gives. */
struct store_rows {
    struct row *rows;
    size_t max,
        bytes_max; /* it ends after so many rows, or when they have so many bytes (0: any) */
    size_t count;
    bool with_bytes; /* the columns with bytes are there */
    bool ended;      /* SQLite: there are no more */
};

/* What a database has to be able to do. */
struct store_operations {
    char placeholder; /* '?' or '$', each followed by its number */
    void (*close)(struct store *store);
    /* Connects if there is no connection that works; may be NULL. */
    int (*reach)(struct store *store, struct brig_error *err);
    /* Runs one statement; how many rows it changed, in PostgreSQL also how many it gave. `into` may be NULL. */
    int (*execute)(struct store *store, const struct store_statement *statement, const char *what,
                   struct store_rows *into, struct brig_error *err);
};

int store_begin(struct store *store, struct brig_error *err);
/* Commits, or with a negative result rolls back. */
int store_end(struct store *store, int result, struct brig_error *err);
/* A statement with at most one text and one number, in this order, each left out if it is NULL or
 * ROW_NO_NUMBER. */
int store_run(struct store *store, const char *sql, const char *text, int64_t number,
              const char *what, struct brig_error *err);
/* The rows of "SELECT columns <more> FROM executions <where>"; a failure leaves none. */
int store_read(struct store *store, struct store_statement *statement, const char *what,
               struct store_rows *into, struct brig_error *err);
void store_select(struct store_statement *statement, bool with_bytes, const char *more);

/* The table that both begin with; the words are what a database calls its types. */
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
