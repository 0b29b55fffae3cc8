/* SPDX-License-Identifier: MIT */
/* What both databases share: statements from the table of columns. Values are parameters, never part of a
 * text. */
#include "server/history/store.h"

#include <brig/brig.h>

#include "base/str.h"
#include "server/history/query.h"

int store_apply_each(struct store *store, const struct row *rows, size_t count,
                     uint64_t *ret_refused, struct brig_error *err)
{
    uint64_t refused = 0;
    int result = store->operations->apply(store, rows, count, err);
    for (size_t i = 0; i < count && result == BRIG_E_INVALID; i++) {
        struct brig_error own = {0};
        int single = store->operations->apply(store, &rows[i], 1, &own);
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

void store_close(struct store *store)
{
    if (store)
        store->operations->close(store);
}

/* ---- Statements ---- */

static bool is_updated(enum row_kind kind, const struct row_column *column)
{
    return row_has_column(kind, column) && column->part != PART_KEY &&
           (column->part != PART_STATE || kind == ROW_END);
}

/* A beginning adds to a row that has no end yet, or was made by an end alone, and takes over one that the
 * http process has added. An end is the last word: only the same run may say it again, which has the same
 * beginning to the nanosecond, after a crash. */
static void add_condition(enum row_kind kind, struct str *out)
{
    if (kind == ROW_BEGIN)
        str_append(out, ", status = CASE executions.status WHEN 'blocked' THEN 'running'"
                        " ELSE executions.status END"
                        " WHERE executions.started_ns IS NULL OR executions.language IS NULL");
    else
        str_append(out, " WHERE executions.started_ns IS NULL"
                        " OR executions.started_ns = excluded.started_ns");
}

static void add_conflict(enum row_kind kind, bool with_sequence, struct str *out)
{
    bool any = false;
    str_append(out, " ON CONFLICT (id) DO ");
    /* A refused request is known by nothing else. */
    if (kind == ROW_BLOCKED) {
        str_append(out, "NOTHING");
        return;
    }
    str_append(out, "UPDATE SET ");
    for (size_t i = 0; i < row_column_count; i++) {
        if (!is_updated(kind, &row_columns[i]))
            continue;
        str_appendf(out, "%s%s = excluded.%s", any ? ", " : "", row_columns[i].name,
                    row_columns[i].name);
        any = true;
    }
    if (with_sequence)
        str_append(out, ", sequence = excluded.sequence");
    add_condition(kind, out);
}

void store_sql_insert(enum row_kind kind, char placeholder, bool with_sequence, struct str *out)
{
    unsigned number = 0;
    str_append(out, "INSERT INTO executions (");
    for (size_t i = 0; i < row_column_count; i++)
        if (row_has_column(kind, &row_columns[i]))
            str_appendf(out, "%s%s", number++ ? ", " : "", row_columns[i].name);
    if (with_sequence) {
        str_append(out, ", sequence");
        number++;
    }
    str_append(out, ") VALUES (");
    for (unsigned i = 1; i <= number; i++)
        str_appendf(out, "%s%c%u", i > 1 ? ", " : "", placeholder, i);
    str_append_char(out, ')');
    add_conflict(kind, with_sequence, out);
}

void store_sql_select(bool with_large, const char *more, struct str *out)
{
    bool any = false;
    str_append(out, "SELECT ");
    for (size_t i = 0; i < row_column_count; i++) {
        if (row_columns[i].large && !with_large)
            continue;
        str_appendf(out, "%s%s", any ? ", " : "", row_columns[i].name);
        any = true;
    }
    str_concat(out, more, " FROM executions");
}

/* Only the filters that are used, so that an index can be. All parameters are mentioned, as
 * PostgreSQL has to infer the type of each: an unused one is part of a condition that is always true. */
void store_sql_list(const struct query *query, char placeholder, struct str *out)
{
    static const struct {
        const char *column;
        enum store_parameter parameter;
    } filters[] = {
        {"language", STORE_LANGUAGE}, {"status", STORE_STATUS}, {"domain", STORE_DOMAIN}};
    const char *values[] = {query->language, query->status, query->domain};
    store_sql_select(false, "", out);
    str_appendf(out, " WHERE created_ns >= %c%d AND created_ns < %c%d", placeholder, STORE_SINCE,
                placeholder, STORE_UNTIL);
    for (size_t i = 0; i < 3; i++)
        str_appendf(out, values[i][0] ? " AND %s = %c%d" : " AND (%s = %c%d OR TRUE)",
                    filters[i].column, placeholder, filters[i].parameter);
    str_appendf(out,
                query->before_ns ? " AND (created_ns, id) < (%c%d, %c%d)"
                                 : " AND ((created_ns, id) < (%c%d, %c%d) OR TRUE)",
                placeholder, STORE_BEFORE_NS, placeholder, STORE_BEFORE_ID);
    str_appendf(out, " ORDER BY created_ns DESC, id DESC LIMIT %c%d", placeholder, STORE_LIMIT);
}

void store_sql_forget(char placeholder, struct str *out)
{
    str_appendf(out,
                "DELETE FROM executions WHERE id IN (SELECT id FROM executions"
                " WHERE created_ns < %c1 ORDER BY created_ns LIMIT %d)",
                placeholder, STORE_FORGET_MAX);
}
