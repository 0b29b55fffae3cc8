/* SPDX-License-Identifier: MIT */
/* Bytes that SQLite keeps for each API key. */
#include "server/history/kept.h"

#include <sqlite3.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/history/store.h"

static bool take_bytes(void *context, sqlite3_stmt *row)
{
    *(int64_t *)context = sqlite3_column_int64(row, 0);
    return false;
}

/* The oldest results, until their bytes are enough. */
struct oldest {
    int64_t excess; /* that is left; 0 or less: they are enough */
    int64_t last_ns;
};

static bool add_up(void *context, sqlite3_stmt *row)
{
    struct oldest *oldest = context;
    oldest->last_ns = sqlite3_column_int64(row, 0);
    oldest->excess -= sqlite3_column_int64(row, 1);
    return oldest->excess > 0;
}

static int read_bytes(struct store *store, const char *domain, int64_t *ret_bytes,
                      struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    *ret_bytes = 0;
    str_append(&statement.sql, "SELECT bytes FROM kept WHERE domain = ?1");
    store_add_text(&statement, domain);
    return store_query(store, &statement, take_bytes, ret_bytes, err);
}

static int find_oldest(struct store *store, const char *domain, const char *except,
                       struct oldest *oldest, struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    str_append(&statement.sql,
               "SELECT created_ns, 256 + length(result) + coalesce((SELECT 256 + length(note)"
               " FROM notes WHERE notes.id = results.id), 0)"
               " FROM results WHERE domain = ?1 AND id != ?2 ORDER BY created_ns");
    store_add_text(&statement, domain);
    store_add_text(&statement, except);
    return store_query(store, &statement, add_up, oldest, err);
}

/* One statement for each table: there can be many small results in the place of a large one. */
static int forget(struct store *store, const char *domain, const char *except, int64_t last_ns,
                  struct brig_error *err)
{
    static const char *const tables[] = {"notes", "idempotency", "callbacks", "results"};
    int result = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(tables) && result >= 0; i++) {
        autostatement struct store_statement statement = {0};
        str_concat(&statement.sql, "DELETE FROM ", tables[i],
                   " WHERE id IN (SELECT id FROM results WHERE domain = ?1 AND id != ?2"
                   " AND created_ns <= ?3)");
        store_add_text(&statement, domain);
        store_add_text(&statement, except);
        store_add_number(&statement, last_ns);
        result = store_execute(store, &statement, "remove", err);
    }
    return result < 0 ? result : 0;
}

int kept_make_room(struct store *store, const char *domain, const char *except, bool *ret_fits,
                   struct brig_error *err)
{
    int64_t bytes = 0;
    if (ret_fits)
        *ret_fits = true;
    int result = store->kept_max ? read_bytes(store, domain, &bytes, err) : 0;
    struct oldest oldest = {.excess = bytes - (int64_t)store->kept_max};
    if (result < 0 || oldest.excess <= 0)
        return result;
    result = find_oldest(store, domain, except, &oldest, err);
    if (result == 0 && oldest.excess > 0 && ret_fits) {
        *ret_fits = false;
        return 0;
    }
    return result < 0 ? result : forget(store, domain, except, oldest.last_ns, err);
}
