/* SPDX-License-Identifier: MIT */
/* Bytes that SQLite keeps for each API key: requests that wait, notes and results. Triggers count them, so
 * that no statement can forget to. */
#pragma once

#include <stdbool.h>

struct brig_error;
struct store;

/* A row costs some bytes even if it is empty. */
#define KEPT_COUNT(TABLE, COLUMN)                                                                  \
    "CREATE TRIGGER " TABLE "_added AFTER INSERT ON " TABLE " BEGIN"                               \
    " INSERT INTO kept SELECT new.domain, 0"                                                       \
    "  WHERE NOT EXISTS (SELECT 1 FROM kept WHERE domain = new.domain);"                           \
    " UPDATE kept SET bytes = bytes + 256 + length(new." COLUMN                                    \
    ") WHERE domain = new.domain; END;"                                                            \
    "CREATE TRIGGER " TABLE "_removed AFTER DELETE ON " TABLE " BEGIN"                             \
    " UPDATE kept SET bytes = bytes - 256 - length(old." COLUMN                                    \
    ") WHERE domain = old.domain; END;"                                                            \
    "INSERT INTO sizes SELECT domain, 256 + length(" COLUMN ") FROM " TABLE ";"

/* A migration of SQLite. REPLACE would not fire the second trigger: it is not used for these. */
#define KEPT_TABLES                                                                                \
    "CREATE TABLE kept (domain TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;"           \
    "CREATE INDEX results_domain ON results (domain, created_ns);"                                 \
    "CREATE TEMP TABLE sizes (domain TEXT, bytes INTEGER);" KEPT_COUNT("queue", "request")         \
        KEPT_COUNT("notes", "note") KEPT_COUNT(                                                    \
            "results",                                                                             \
            "result") "INSERT INTO kept SELECT domain, sum(bytes) FROM sizes GROUP BY domain;"     \
                      "DROP TABLE sizes;"

/* Removes the oldest results of the key, with their notes, idempotency keys and callbacks, until it has no
 * more than store->kept_max bytes; within a transaction. The result `except` stays. If all of them are not
 * enough, sets *ret_fits to false and removes none; with ret_fits NULL, removes them. */
int kept_make_room(struct store *store, const char *domain, const char *except, bool *ret_fits,
                   struct brig_error *err);
