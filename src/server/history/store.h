/* SPDX-License-Identifier: MIT */
/* A database that holds the history, whichever it is. Its functions wait, each for a bounded time;
 * they are called by one thread at a time (worker.h), so that nobody waits for a database who does not
 * have to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brig_error;
struct query;
struct row;
struct server_config;
struct str;

struct store;

/* Errors: BRIG_E_SYSTEM, it does not answer, and may later; BRIG_E_INVALID, it will never take this. */
struct store_operations {
    const char *name; /* "sqlite" */
    /* Before the process is confined. A server need not be there yet. */
    int (*open)(const struct server_config *config, struct store **ret_store,
                struct brig_error *err);
    void (*close)(struct store *store);
    /* All of them or none. */
    int (*apply)(struct store *store, const struct row *rows, size_t count, struct brig_error *err);
    /* How many rows were found: 0 or 1. */
    int (*get)(struct store *store, const char *id, struct row *ret_row, struct brig_error *err);
    /* At most `max` rows, newest first; how many. */
    int (*list)(struct store *store, const struct query *query, struct row *rows, size_t max,
                struct brig_error *err);
    /* Rows older than that, at most a thousand; how many went. */
    int (*forget)(struct store *store, int64_t before_ns, struct brig_error *err);
};

#define STORE_FORGET_MAX 1000

extern const struct store_operations store_sqlite;
extern const struct store_operations store_postgres;

/* ---- For the stores: statements from the table of columns ---- */

/* How a database writes its placeholders: '?' or '$', each followed by its number. */
void store_sql_insert(int kind, char placeholder, struct str *out);
void store_sql_select(bool with_large, struct str *out); /* "SELECT id, … FROM executions " */
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
