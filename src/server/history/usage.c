/* SPDX-License-Identifier: MIT */
/* What the executions of each API key used, by day. */
#include "server/history/usage.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>

#include "base/json.h"
#include "base/str.h"
#include "server/history/query.h"
#include "server/history/row.h"
#include "server/history/store.h"

#define SECOND_NS 1000000000LL
#define MEBIBYTE (INT64_C(1) << 20)

void usage_day(long long ns, char ret_day[USAGE_DAY_MAX])
{
    struct tm tm = {0};
    time_t seconds = (time_t)(ns / SECOND_NS);
    if (!gmtime_r(&seconds, &tm) || strftime(ret_day, USAGE_DAY_MAX, "%Y-%m-%d", &tm) == 0)
        (void)snprintf(ret_day, USAGE_DAY_MAX, "9999-12-31");
}

static int64_t number(int64_t value)
{
    return value == ROW_NO_NUMBER || value < 0 ? 0 : value;
}

/* The time is in microseconds and the memory in MiB, so that years fit. */
int usage_add(struct store *store, const struct row *row, struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    char day[USAGE_DAY_MAX];
    int64_t duration_us = number(row->duration_us);
    usage_day(number(row->started_ns) ? row->started_ns : row->created_ns, day);
    str_append(&statement.sql,
               "INSERT INTO usage (day, domain, executions, duration_us, cpu_us, memory_mb_us,"
               " output_bytes) VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6)"
               " ON CONFLICT (day, domain) DO UPDATE SET executions = executions + 1,"
               " duration_us = duration_us + excluded.duration_us,"
               " cpu_us = cpu_us + excluded.cpu_us,"
               " memory_mb_us = memory_mb_us + excluded.memory_mb_us,"
               " output_bytes = output_bytes + excluded.output_bytes");
    store_add_text(&statement, day);
    store_add_text(&statement, row->used_by ? row->used_by : "");
    store_add_number(&statement, duration_us);
    store_add_number(&statement, number(row->cpu_time_us));
    store_add_number(&statement, number(row->memory_peak_bytes) / MEBIBYTE * duration_us);
    store_add_number(&statement, number(row->output_bytes) + number(row->error_output_bytes));
    int result = store_execute(store, &statement, "store", err);
    return result < 0 ? result : 0;
}

enum { DAY, DOMAIN, EXECUTIONS, DURATION, CPU, MEMORY, OUTPUT, COLUMNS_ };

struct writing {
    struct json *j;
    double total[COLUMNS_];
};

static void write_seconds(struct json *j, const char *key, double us)
{
    char text[48];
    (void)snprintf(text, sizeof text, "%s\"%s\":%.3f", j->comma ? "," : "", key, us / 1e6);
    str_append(j->out, text);
    j->comma = true;
}

static void write_numbers(struct json *j, const double values[COLUMNS_])
{
    json_uint(j, "executions", (uint64_t)values[EXECUTIONS]);
    write_seconds(j, "duration_seconds", values[DURATION]);
    write_seconds(j, "cpu_seconds", values[CPU]);
    write_seconds(j, "memory_mb_seconds", values[MEMORY]);
    json_uint(j, "output_bytes", (uint64_t)values[OUTPUT]);
}

static bool take_day(void *context, sqlite3_stmt *row)
{
    struct writing *writing = context;
    double values[COLUMNS_] = {0};
    for (int i = EXECUTIONS; i < COLUMNS_; i++) {
        values[i] = sqlite3_column_double(row, i);
        writing->total[i] += values[i];
    }
    json_open_object(writing->j, NULL);
    json_text(writing->j, "day", (const char *)sqlite3_column_text(row, DAY));
    json_text(writing->j, "key", (const char *)sqlite3_column_text(row, DOMAIN));
    write_numbers(writing->j, values);
    json_close_object(writing->j);
    return true;
}

int usage_write(struct store *store, const struct query *query, struct str *out,
                struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    char since[USAGE_DAY_MAX], until[USAGE_DAY_MAX];
    struct json j;
    struct writing writing = {.j = &j};
    usage_day(query->since_ns, since);
    usage_day(query->until_ns == INT64_MAX ? LLONG_MAX : query->until_ns, until);
    str_append(&statement.sql,
               "SELECT day, domain, executions, duration_us, cpu_us, memory_mb_us, output_bytes"
               " FROM usage WHERE day >= ?1 AND day <= ?2 AND (?3 = '' OR domain = ?3)"
               " ORDER BY day DESC, domain LIMIT 10000");
    store_add_text(&statement, since);
    store_add_text(&statement, until);
    store_add_text(&statement, query->domain);
    json_init(&j, out);
    json_open_object(&j, NULL);
    json_open_array(&j, "usage");
    int result = store_query(store, &statement, take_day, &writing, err);
    json_close_array(&j);
    json_open_object(&j, "total");
    write_numbers(&j, writing.total);
    json_close_object(&j);
    json_close_object(&j);
    return result;
}
