/* SPDX-License-Identifier: MIT */
/* A database that holds the history. SQLite is either the history itself or, with PostgreSQL, its spool:
 * rows are stored in the same table first, and removed once PostgreSQL has them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/history/row.h"

struct brig_error;
struct query;
struct str;

#define STORE_FORGET_MAX 1000
#define STORE_ANSWER_MS 5000 /* a question that takes longer fails */

struct store;

/* Each waits for a bounded time. One thread at a time. Errors: BRIG_E_SYSTEM, it does not answer, and may
 * later; BRIG_E_INVALID, it will never take this. */
struct store_operations {
    const char *name; /* "sqlite" */
    void (*close)(struct store *store);
    /* All of them or none. ROW_LOST is for SQLite only, ROW_WHOLE for PostgreSQL. */
    int (*apply)(struct store *store, const struct row *rows, size_t count, struct brig_error *err);
    /* How many rows were found: 0 or 1. */
    int (*get)(struct store *store, const char *id, struct row *ret_row, struct brig_error *err);
    /* At most `max` rows, newest first; how many. */
    int (*list)(struct store *store, const struct query *query, struct row *rows, size_t max,
                struct brig_error *err);
    /* Rows older than that, at most STORE_FORGET_MAX; how many were removed. */
    int (*forget)(struct store *store, int64_t before_ns, struct brig_error *err);
};

/* What every store begins with. */
struct store {
    const struct store_operations *operations;
};

/* Before the process is confined. Makes the file and its directory; another process that uses it is
 * BRIG_E_STATE. */
int store_open_sqlite(const char *path, struct store **ret_store, struct brig_error *err);
/* The server need not be there yet. The connection string is borrowed. */
int store_open_postgres(const char *dsn, struct store **ret_store, struct brig_error *err);
void store_close(struct store *store); /* accepts NULL */

/* Applies rows together, or one by one where the database refuses one for good, so that it does not hold up
 * the others; these are counted. */
int store_apply_each(struct store *store, const struct row *rows, size_t count,
                     uint64_t *ret_refused, struct brig_error *err);

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
/* The highest sequence of a row; 0 if none waits. Each batch of rows that is applied has the next one. */
uint64_t spool_sequence(const struct store *store);
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

/* ---- For the stores: statements from the table of columns ---- */

/* How a database writes its placeholders: '?' or '$', each followed by its number. The sequence is the last
 * parameter. */
void store_sql_insert(enum row_kind kind, char placeholder, bool with_sequence, struct str *out);
/* "SELECT id, … FROM executions"; `more` is put before the FROM. */
void store_sql_select(bool with_large, const char *more, struct str *out);
/* The WHERE and what follows; parameters in the order of enum store_parameter. */
enum store_parameter {
    STORE_LANGUAGE = 1,
    STORE_STATUS,
    STORE_DOMAIN,
    STORE_SINCE,
    STORE_UNTIL,
    STORE_BEFORE_NS,
    STORE_BEFORE_ID,
    STORE_LIMIT,
};
void store_sql_list(const struct query *query, char placeholder, struct str *out);
void store_sql_forget(char placeholder, struct str *out); /* the time is its parameter */
