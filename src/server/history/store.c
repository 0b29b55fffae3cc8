/* SPDX-License-Identifier: MIT */
/* Shared by both databases: statements generated from the table of columns, and the operations that
 * use them. Values are always parameters, never part of the SQL text. */
#include "server/history/store.h"

#include <string.h>

#include <brig/brig.h>

#include "base/error.h"
#include "server/history/query.h"

void store_close(struct store *store)
{
    if (store)
        store->operations->close(store);
}

/* ---- Statements ---- */

void store_statement_done(struct store_statement *statement)
{
    str_done(&statement->sql);
}

void store_add_text(struct store_statement *statement, const char *text)
{
    statement->values[statement->count++] =
        (struct store_value){.type = ROW_TEXT, .data = text, .length = text ? strlen(text) : 0};
}

void store_add_number(struct store_statement *statement, int64_t number)
{
    statement->values[statement->count++] =
        (struct store_value){.type = ROW_NUMBER, .number = number};
}

void store_add_bytes(struct store_statement *statement, struct execution_bytes bytes)
{
    statement->values[statement->count++] =
        (struct store_value){ROW_BYTES, bytes.data, bytes.length, 0};
}

static void add_column(struct store_statement *statement, const struct row_column *column,
                       const struct row *row)
{
    const struct execution_bytes *bytes;
    switch (column->type) {
    case ROW_TEXT:
        store_add_text(statement, *(const char **)row_member(column, row));
        return;
    case ROW_NUMBER:
        store_add_number(statement, *(const int64_t *)row_member(column, row));
        return;
    case ROW_BYTES:
        bytes = row_member(column, row);
        store_add_bytes(statement, *bytes);
        return;
    }
}

static int execute(struct store *store, const struct store_statement *statement, const char *what,
                   struct store_rows *into, struct brig_error *err)
{
    return statement->sql.failed ? brig_fail_nomem(err)
                                 : store->operations->execute(store, statement, what, into, err);
}

int store_execute(struct store *store, const struct store_statement *statement, const char *what,
                  struct brig_error *err)
{
    return execute(store, statement, what, NULL, err);
}

static int reach(struct store *store, struct brig_error *err)
{
    return store->operations->reach ? store->operations->reach(store, err) : 0;
}

int store_run(struct store *store, const char *sql, const char *text, int64_t number,
              const char *what, struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    str_append(&statement.sql, sql);
    if (text)
        store_add_text(&statement, text);
    if (number != ROW_NO_NUMBER)
        store_add_number(&statement, number);
    int result = execute(store, &statement, what, NULL, err);
    return result < 0 ? result : 0;
}

int store_begin(struct store *store, struct brig_error *err)
{
    int result = reach(store, err);
    return result < 0 ? result : store_run(store, "BEGIN", NULL, ROW_NO_NUMBER, "begin", err);
}

int store_end(struct store *store, int result, struct brig_error *err)
{
    if (result == 0)
        result = store_run(store, "COMMIT", NULL, ROW_NO_NUMBER, "write", err);
    if (result < 0)
        (void)store_run(store, "ROLLBACK", NULL, ROW_NO_NUMBER, "roll back", NULL);
    return result < 0 ? result : 0;
}

/* ---- Writing ---- */

static bool is_updated(enum row_kind kind, const struct row_column *column)
{
    return row_has_column(kind, column) && column->part != PART_KEY &&
           (column->part != PART_STATE || kind == ROW_END);
}

/* ROW_BEGIN updates a row that has not ended or was made by ROW_END alone, and takes over a row
 * that the http process added, or one of the queue. ROW_END is final: after a crash the same run may repeat it, which is
 * recognised by an identical started_ns. ROW_BLOCKED and ROW_QUEUED never change a row. */
static void add_conflict(enum row_kind kind, bool with_sequence, struct str *out)
{
    const char *comma = "";
    str_append(out, " ON CONFLICT (id) DO ");
    if (kind == ROW_BLOCKED || kind == ROW_QUEUED) {
        str_append(out, "NOTHING");
        return;
    }
    str_append(out, "UPDATE SET ");
    for (size_t i = 0; i < row_column_count; i++) {
        if (!is_updated(kind, &row_columns[i]))
            continue;
        str_concat(out, comma, row_columns[i].name, " = excluded.", row_columns[i].name);
        comma = ", ";
    }
    if (with_sequence)
        str_append(out, ", sequence = excluded.sequence");
    if (kind == ROW_BEGIN)
        str_append(out, ", status = CASE WHEN executions.status IN ('blocked', 'queued')"
                        " THEN 'running' ELSE executions.status END"
                        " WHERE executions.started_ns IS NULL OR executions.language IS NULL");
    else
        str_append(out, " WHERE executions.started_ns IS NULL"
                        " OR executions.started_ns = excluded.started_ns");
}

static int apply_as(struct store *store, enum row_kind kind, const struct row *row,
                    struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    str_append(&statement.sql, "INSERT INTO executions (");
    for (size_t i = 0; i < row_column_count; i++) {
        if (!row_has_column(kind, &row_columns[i]))
            continue;
        str_concat(&statement.sql, statement.count ? ", " : "", row_columns[i].name);
        add_column(&statement, &row_columns[i], row);
    }
    if (store->is_spool) {
        str_append(&statement.sql, ", sequence");
        store_add_number(&statement, (int64_t)store->sequence);
    }
    str_append(&statement.sql, ") VALUES (");
    for (size_t i = 1; i <= statement.count; i++)
        str_appendf(&statement.sql, "%s%c%zu", i > 1 ? ", " : "", store->operations->placeholder,
                    i);
    str_append(&statement.sql, ")");
    add_conflict(kind, store->is_spool, &statement.sql);
    return execute(store, &statement, "store a row", NULL, err);
}

static int apply_lost(struct store *store, const struct row *row, struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    str_concat(&statement.sql,
               "UPDATE executions SET status = 'lost', ended_ns = ?2,"
               " message = 'brigd or its executor ended before this execution did'",
               store->is_spool ? ", sequence = ?3" : "",
               " WHERE server = ?1 AND status = 'running' AND created_ns < ?2");
    store_add_text(&statement, row->server);
    store_add_number(&statement, row->created_ns);
    if (store->is_spool)
        store_add_number(&statement, (int64_t)store->sequence);
    return execute(store, &statement, "store a row", NULL, err);
}

/* The existing row may have either part, so ROW_WHOLE is applied as a start and as an end. */
static int apply_row(struct store *store, const struct row *row, struct brig_error *err)
{
    if (row->kind == ROW_LOST)
        return apply_lost(store, row, err);
    if (row->kind != ROW_WHOLE)
        return apply_as(store, row->kind, row, err);
    int result = apply_as(store, ROW_BEGIN, row, err);
    return result < 0 ? result : apply_as(store, ROW_END, row, err);
}

int store_apply_within(struct store *store, const struct row *row, struct brig_error *err)
{
    return apply_row(store, row, err);
}

int store_apply(struct store *store, const struct row *rows, size_t count, struct brig_error *err)
{
    store->sequence += store->is_spool;
    int result = store_begin(store, err);
    if (result < 0)
        return result;
    result = 0;
    for (size_t i = 0; i < count && result >= 0; i++) {
        result = apply_row(store, &rows[i], err);
        if (result >= 0 && store->operations->applied)
            result = store->operations->applied(store, &rows[i], err);
    }
    return store_end(store, result < 0 ? result : 0, err);
}

int store_apply_each(struct store *store, const struct row *rows, size_t count,
                     uint64_t *ret_refused, struct brig_error *err)
{
    uint64_t refused = 0;
    int result = store_apply(store, rows, count, err);
    for (size_t i = 0; i < count && result == BRIG_E_INVALID; i++) {
        struct brig_error own = {0};
        int single = store_apply(store, &rows[i], 1, &own);
        if (single == BRIG_E_INVALID) {
            refused++;
        } else if (single < 0) {
            result = single;
            if (err)
                *err = own;
        }
    }
    if (result < 0 && result != BRIG_E_INVALID)
        return result;
    *ret_refused = refused;
    return 0;
}

/* ---- Reading ---- */

void store_select(struct store_statement *statement, bool with_bytes, const char *more)
{
    const char *word = "SELECT ";
    for (size_t i = 0; i < row_column_count; i++) {
        if (row_columns[i].type == ROW_BYTES && !with_bytes)
            continue;
        str_concat(&statement->sql, word, row_columns[i].name);
        word = ", ";
    }
    str_concat(&statement->sql, more, " FROM executions");
}

int store_read(struct store *store, struct store_statement *statement, const char *what,
               struct store_rows *into, struct brig_error *err)
{
    int result = reach(store, err);
    if (result == 0)
        result = execute(store, statement, what, into, err);
    for (size_t i = 0; i < into->count && result >= 0; i++)
        if (into->rows[i].arena.failed)
            result = brig_fail_nomem(err);
    while (result < 0 && into->count > 0)
        row_done(&into->rows[--into->count]);
    return result < 0 ? result : (int)into->count;
}

int store_get(struct store *store, const char *id, struct row *ret_row, struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    struct store_rows into = {.rows = ret_row, .max = 1, .with_bytes = true};
    store_select(&statement, true, "");
    str_appendf(&statement.sql, " WHERE id = %c1", store->operations->placeholder);
    store_add_text(&statement, id);
    return store_read(store, &statement, "read", &into, err);
}

/* Adds only the filters in use, so that the database can use an index. */
int store_list(struct store *store, const struct query *query, struct row *rows, size_t max,
               struct brig_error *err)
{
    const struct {
        const char *column, *value;
    } filters[] = {
        {"language", query->language}, {"status", query->status}, {"domain", query->domain}};
    autostatement struct store_statement statement = {0};
    struct store_rows into = {.rows = rows, .max = max};
    struct str *sql = &statement.sql;
    char mark = store->operations->placeholder;
    store_select(&statement, false, "");
    store_add_number(&statement, query->since_ns);
    store_add_number(&statement, query->until_ns);
    str_appendf(sql, " WHERE created_ns >= %c1 AND created_ns < %c2", mark, mark);
    for (size_t i = 0; i < 3; i++) {
        if (!filters[i].value[0])
            continue;
        store_add_text(&statement, filters[i].value);
        str_appendf(sql, " AND %s = %c%zu", filters[i].column, mark, statement.count);
    }
    if (query->before_ns) {
        store_add_number(&statement, query->before_ns);
        store_add_text(&statement, query->before_id);
        str_appendf(sql, " AND (created_ns, id) < (%c%zu, %c%zu)", mark, statement.count - 1, mark,
                    statement.count);
    }
    str_appendf(sql, " ORDER BY created_ns DESC, id DESC LIMIT %zu", max);
    return store_read(store, &statement, "list", &into, err);
}

int store_forget(struct store *store, int64_t before_ns, struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    str_appendf(&statement.sql,
                "DELETE FROM executions WHERE id IN (SELECT id FROM executions"
                " WHERE created_ns < %c1 ORDER BY created_ns LIMIT %d)",
                store->operations->placeholder, STORE_FORGET_MAX);
    store_add_number(&statement, before_ns);
    int result = reach(store, err);
    return result < 0 ? result : execute(store, &statement, "forget", NULL, err);
}
