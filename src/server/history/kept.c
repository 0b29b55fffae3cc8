/* SPDX-License-Identifier: MIT */
/* Bytes that SQLite keeps for each API key. */
#include "server/history/kept.h"

#include <sqlite3.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/execution.h"
#include "server/history/store.h"

static bool take_bytes(void *context, sqlite3_stmt *row)
{
    *(int64_t *)context = sqlite3_column_int64(row, 0);
    return false;
}

static bool take_id(void *context, sqlite3_stmt *row)
{
    const char *id = (const char *)sqlite3_column_text(row, 0);
    (void)snprintf(context, EXECUTION_ID_LENGTH + 1, "%s", id ? id : "");
    return false;
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
                       char ret_id[EXECUTION_ID_LENGTH + 1], struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    ret_id[0] = '\0';
    str_append(&statement.sql, "SELECT id FROM results WHERE domain = ?1 AND id != ?2"
                               " ORDER BY created_ns LIMIT 1");
    store_add_text(&statement, domain);
    store_add_text(&statement, except);
    return store_query(store, &statement, take_id, ret_id, err);
}

static int forget(struct store *store, const char *id, struct brig_error *err)
{
    static const char *const statements[] = {
        "DELETE FROM results WHERE id = ?1", "DELETE FROM notes WHERE id = ?1",
        "DELETE FROM idempotency WHERE id = ?1", "DELETE FROM callbacks WHERE id = ?1"};
    int result = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(statements) && result >= 0; i++)
        result = store_run(store, statements[i], id, ROW_NO_NUMBER, "remove", err);
    return result < 0 ? result : 0;
}

int kept_make_room(struct store *store, const char *domain, const char *except, bool *ret_fits,
                   struct brig_error *err)
{
    char id[EXECUTION_ID_LENGTH + 1];
    int64_t bytes = 0;
    *ret_fits = true;
    for (;;) {
        int result = store->kept_max ? read_bytes(store, domain, &bytes, err) : 0;
        if (result < 0 || bytes <= (int64_t)store->kept_max)
            return result;
        result = find_oldest(store, domain, except, id, err);
        *ret_fits = result == 0 && *id;
        if (!*ret_fits)
            return result;
        result = forget(store, id, err);
        if (result < 0)
            return result;
    }
}
