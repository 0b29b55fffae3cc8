/* SPDX-License-Identifier: MIT */
/* The history in both databases: the same rows, the same answers. */
#include "server/history/store.h"

#include <jansson.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/str.h"
#include "postgres_support.h"
#include "server/history/query.h"
#include "server/history/row.h"
#include "tap.h"

static struct store *store;
static bool is_sqlite;
static char path[96];
static char directory[64];
static const struct row_keep keep_all = {KEEP_FULL, KEEP_FULL};

#define SERVER "00000000-0000-4000-8000-000000000000"
#define FIRST_NS INT64_C(1700000000000000000)

static const char *id_of(unsigned number)
{
    static char ids[8][EXECUTION_ID_LENGTH + 1];
    static unsigned next;
    char *id = ids[next++ % 8];
    (void)snprintf(id, EXECUTION_ID_LENGTH + 1, "%08x-0000-4000-8000-000000000000", number);
    return id;
}

static int open_store(struct brig_error *err)
{
    return is_sqlite ? store_open_sqlite(path, &store, err)
                     : store_open_postgres(postgres.dsn, &store, err);
}

static struct row begin_row(unsigned number, const char *language)
{
    struct row row;
    struct execution_event event = {"escape_attempt", "reads \"/etc/shadow\"", SEVERITY_HIGH};
    struct execution_request request = {.id = id_of(number),
                                        .request_id = "r-1",
                                        .client = "127.0.0.1",
                                        .domain = number % 2 ? "odd" : "",
                                        .language = language,
                                        .code = {"print(1)\0\xff", 10},
                                        .timeout_ms = 10000,
                                        .events = &event,
                                        .event_count = 1};
    if (row_from_request(ROW_BEGIN, &request, keep_all, SERVER, FIRST_NS + number, &row, NULL) < 0)
        tap_bail("row");
    return row;
}

static struct row end_row(unsigned number, enum execution_status status)
{
    struct row row;
    struct execution_event events[] = {{"escape_attempt", "reads /etc/shadow", SEVERITY_HIGH},
                                       {"network_denied", "example.org", SEVERITY_LOW}};
    const char *unenforced[] = {"no cgroup"};
    struct execution_file file = {.name = "out.txt", .content = {"abc", 3}};
    struct execution_result result = {.id = id_of(number),
                                      .status = status,
                                      .exit_code = 3,
                                      .output = {"out\xfe\0put", 8},
                                      .error_output = {"", 0},
                                      .output_truncated = true,
                                      .duration_us = 45250,
                                      .cpu_time_us = 12000,
                                      .memory_peak_bytes = 24 << 20,
                                      .pids_used = 2,
                                      .events = events,
                                      .event_count = 2,
                                      .message = "",
                                      .files = &file,
                                      .file_count = 1,
                                      .unenforced = unenforced,
                                      .unenforced_count = 1,
                                      .started_ns = FIRST_NS};
    if (row_from_result(&result, keep_all, SERVER, FIRST_NS + number, &row, NULL) < 0)
        tap_bail("row");
    return row;
}

static void apply(struct row row, const char *what)
{
    struct brig_error err = {0};
    tap_is_int(store_apply(store, &row, 1, &err), 0, "%s %s", what, err.message);
    row_done(&row);
}

static char *status_of(unsigned number)
{
    static char status[32];
    struct row row;
    struct brig_error err = {0};
    int count = store_get(store, id_of(number), &row, &err);
    (void)snprintf(status, sizeof status, "%s",
                   count < 0    ? err.message
                   : count == 0 ? "missing"
                                : row.status);
    if (count > 0)
        row_done(&row);
    return status;
}

/* The numbers of the rows that a query finds, as text. */
static char *found(const char *text)
{
    static char numbers[512];
    struct row rows[QUERY_LIMIT_MAX];
    struct query query;
    struct brig_error err = {0};
    size_t length = 0;
    numbers[0] = '\0';
    if (query_parse(text, strlen(text), FIRST_NS, &query, &err) < 0)
        return NULL;
    int count = store_list(store, &query, rows, (size_t)query.limit, &err);
    if (count < 0)
        tap_diag("%s", err.message);
    for (int i = 0; i < count; i++) {
        length += (size_t)snprintf(numbers + length, sizeof numbers - length, "%lu ",
                                   strtoul(rows[i].id, NULL, 16));
        row_done(&rows[i]);
    }
    return numbers;
}

static void test_rows(void)
{
    apply(begin_row(1, "python"), "what begins is stored");
    tap_is_str(status_of(1), "running", "and runs");
    apply(end_row(1, EXECUTION_OK), "what ends is stored");
    tap_is_str(status_of(1), "ok", "and has ended");
    apply(end_row(1, EXECUTION_OK), "an end that comes twice");
    apply(begin_row(1, "python"), "a beginning that comes again");
    tap_is_str(status_of(1), "ok", "change nothing");
    apply(end_row(2, EXECUTION_TIMEOUT), "an end that comes first");
    tap_is_str(status_of(2), "timeout", "makes the row");
    apply(begin_row(2, "node"), "the beginning");
    tap_is_str(status_of(2), "timeout", "does not make it run");
    tap_is_str(status_of(99), "missing", "what was never stored is missing");

    struct row row;
    tap_is_int(store_get(store, id_of(2), &row, NULL), 1, "the whole row is found");
    tap_is_str(row.language, "node", "with what began");
    tap_ok(row.code.length == 10 && memcmp(row.code.data, "print(1)\0\xff", 10) == 0,
           "with its code, byte for byte");
    tap_ok(row.output.length == 8 && memcmp(row.output.data, "out\xfe\0put", 8) == 0,
           "and its output");
    tap_ok(row.error_output.data && row.error_output.length == 0, "and what it did not write");
    tap_ok(row.exit_code == 3 && row.output_truncated == 1 && row.duration_us == 45250 &&
               row.work_dir == NULL && row.created_ns == FIRST_NS + 2,
           "and its numbers");
    autostr struct str json = {0};
    row_json_one(&row, NULL, &json);
    row_done(&row);
    static const char *const parts[] = {"\"status\":\"timeout\"",
                                        "\"exit_code\":3",
                                        "\"duration\":\"45.2ms\"",
                                        "\"created_at\":\"2023-11-14T22:13:20.000Z\"",
                                        "\"cpu_time_ms\":12",
                                        "\"memory_peak_mb\":24",
                                        "\"truncated\":{\"output\":true,\"stderr\":false}",
                                        "\"code\":\"print(1)\\u0000\xef\xbf\xbd\"",
                                        "\"unenforced\":[\"no cgroup\"]",
                                        "\"files\":[{\"name\":\"out.txt\",\"bytes\":3}]",
                                        "\"type\":\"network_denied\""};
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        tap_has_str(json.data, parts[i], "its JSON has %s", parts[i]);
}

/* A new executor: what began before is lost. SQLite finds out which, PostgreSQL is brought the rows. */
static void lose(unsigned number, int64_t before_ns)
{
    struct row lost;
    if (is_sqlite) {
        (void)row_lost(SERVER, before_ns, &lost, NULL);
        apply(lost, "a new executor comes");
        return;
    }
    lost = begin_row(number, "python");
    lost.kind = ROW_WHOLE;
    lost.status = "lost";
    lost.ended_ns = before_ns;
    apply(lost, "a row that a new executor finds lost");
}

static void test_lost(void)
{
    apply(begin_row(10, "python"), "one begins");
    apply(begin_row(12, "python"), "another later");
    struct row other = begin_row(11, "bash");
    other.server = "another server";
    apply(other, "and one of another server");
    lose(10, FIRST_NS + 12);
    tap_is_str(status_of(10), "lost", "the first is lost");
    tap_is_str(status_of(12), "running", "the other runs");
    tap_is_str(status_of(11), "running", "as does that of the other server");
    apply(end_row(10, EXECUTION_OK), "an end that comes all the same");
    tap_is_str(status_of(10), "ok", "is what holds");
    struct row blocked = begin_row(12, "bash");
    blocked.kind = ROW_BLOCKED;
    blocked.status = "blocked";
    apply(blocked, "a refusal with an id that is there");
    tap_is_str(status_of(12), "running", "changes nothing");
    blocked = begin_row(13, "bash");
    blocked.kind = ROW_BLOCKED;
    blocked.status = "blocked";
    apply(blocked, "another refusal");
    tap_is_str(status_of(13), "blocked", "is a row");
}

/* Of somebody who knows an id. */
static void test_foreign(void)
{
    struct row row;
    apply(begin_row(30, "python"), "a run begins");
    apply(end_row(30, EXECUTION_OK), "and ends");
    apply(begin_row(30, "bash"), "another begins with its id");
    struct row end = end_row(30, EXECUTION_ERROR);
    end.started_ns++;
    apply(end, "and ends");
    tap_is_int(store_get(store, id_of(30), &row, NULL), 1, "the row");
    tap_ok(strcmp(row.status, "ok") == 0 && strcmp(row.language, "python") == 0 &&
               row.started_ns == FIRST_NS,
           "is that of the first");
    row_done(&row);
    struct row blocked = begin_row(31, "bash");
    blocked.kind = ROW_BLOCKED;
    blocked.status = "blocked";
    apply(blocked, "a refusal with the id of a run that has just begun");
    apply(begin_row(31, "python"), "yields");
    tap_is_str(status_of(31), "running", "to the run");
    tap_is_int(store_get(store, id_of(31), &row, NULL), 1, "the row");
    tap_is_str(row.language, "python", "says what runs");
    row_done(&row);
    apply(end_row(31, EXECUTION_TIMEOUT), "which ends");
    tap_is_str(status_of(31), "timeout", "as runs do");
}

static void apply_all(struct row *rows, size_t count, const char *what)
{
    struct brig_error err = {0};
    tap_is_int(store_apply(store, rows, count, &err), 0, "%s %s", what, err.message);
    for (size_t i = 0; i < count; i++)
        row_done(&rows[i]);
}

/* In one batch as one after the other. */
static void test_together(void)
{
    struct row row, lost;
    struct row pair[] = {begin_row(400, "python"), end_row(400, EXECUTION_ERROR)};
    pair[1].created_ns++;
    apply_all(pair, 2, "a beginning and its end");
    tap_is_int(store_get(store, id_of(400), &row, NULL), 1, "are one row");
    tap_ok(strcmp(row.status, "error") == 0 && strcmp(row.language, "python") == 0 &&
               row.created_ns == FIRST_NS + 400 && row.started_ns == FIRST_NS &&
               row.code.length == 10 && row.output.length == 8 &&
               strstr(row.events, "network_denied"),
           "with the parts of both");
    row_done(&row);

    apply(begin_row(410, "python"), "what has begun already");
    apply_all((struct row[]){begin_row(410, "bash"), end_row(410, EXECUTION_OK)}, 2, "comes whole");
    tap_is_str(status_of(410), "ok", "and has ended");
    if (is_sqlite) {
        (void)row_lost(SERVER, FIRST_NS + 500, &lost, NULL);
        apply_all((struct row[]){begin_row(420, "python"), lost, end_row(420, EXECUTION_OK)}, 3,
                  "a new executor between the two");
        tap_is_str(status_of(420), "ok", "changes nothing");
    }
    struct row blocked = begin_row(430, "bash");
    blocked.kind = ROW_BLOCKED;
    blocked.status = "blocked";
    apply_all((struct row[]){blocked, begin_row(430, "python"), end_row(430, EXECUTION_OK)}, 3,
              "a refusal before them");
    tap_is_int(store_get(store, id_of(430), &row, NULL), 1, "leaves a row");
    tap_ok(strcmp(row.status, "ok") == 0 && strcmp(row.language, "python") == 0, "of the run");
    row_done(&row);
    struct row other = end_row(440, EXECUTION_ERROR);
    other.started_ns++;
    apply_all((struct row[]){begin_row(440, "python"), end_row(440, EXECUTION_OK),
                             begin_row(440, "bash"), other},
              4, "two runs with one id");
    tap_is_int(store_get(store, id_of(440), &row, NULL), 1, "leave a row");
    tap_ok(strcmp(row.status, "ok") == 0 && strcmp(row.language, "python") == 0, "of the first");
    row_done(&row);
    apply_all((struct row[]){end_row(450, EXECUTION_TIMEOUT), begin_row(450, "node")}, 2,
              "an end before its beginning");
    tap_is_str(status_of(450), "timeout", "is an end");
}

static void test_list(void)
{
    tap_is_str(found(""), "13 12 11 10 2 1 ", "a list has the newest first");
    tap_is_str(found("limit=2"), "13 12 ", "as many as are wanted");
    char cursor[128];
    (void)snprintf(cursor, sizeof cursor, "limit=2&cursor=%lld.%s", (long long)FIRST_NS + 12,
                   id_of(12));
    tap_is_str(found(cursor), "11 10 ", "and goes on behind a cursor");
    tap_is_str(found("language=python"), "12 10 1 ", "by language");
    tap_is_str(found("status=running"), "12 11 ", "by status");
    tap_is_str(found("status=running&language=bash"), "11 ", "by both");
    tap_is_str(found("domain=odd"), "13 11 1 ", "by who asked");
    tap_is_str(found("language=x'%20OR%201=1%20--"), "", "a quote is just a character");
    tap_is_str(found("since=1700000001"), "", "since a time");
    tap_is_str(found("until=1700000001"), "13 12 11 10 2 1 ", "until a time");
    apply(begin_row(2000000, "late"), "one a little later");
    tap_is_str(found("since=1700000000&language=late"), "2000000 ", "is found");
}

static void test_refused(void)
{
    struct row rows[2] = {begin_row(20, "python"), begin_row(21, "python")};
    rows[1].status = NULL; /* which no table takes */
    struct brig_error err = {0};
    tap_is_int(store_apply(store, rows, 2, &err), BRIG_E_INVALID, "what can never be stored: %s",
               err.message);
    tap_is_str(status_of(20), "missing", "and nothing of the batch is");
    tap_is_int(store_apply(store, rows, 1, NULL), 0, "the others can be");
    tap_is_str(status_of(20), "running", "by themselves");
    tap_is_int(store_apply(store, rows, 0, NULL), 0, "none at all is a question for life");
    row_done(&rows[0]);
    row_done(&rows[1]);
    struct row strange = begin_row(22, "python");
    struct execution_request request = {.id = id_of(22), .client = "\xff\xc3\xa4\x01 ok"};
    row_done(&strange);
    (void)row_from_request(ROW_BEGIN, &request, keep_all, SERVER, FIRST_NS + 22, &strange, NULL);
    tap_is_str(strange.client, "?\xc3\xa4? ok", "a text that is none is made one");
    apply(strange, "and stored");
}

static void test_forget(void)
{
    struct row rows[(STORE_FORGET_MAX + 10) / 10];
    for (unsigned batch = 0; batch < 10; batch++) {
        for (unsigned i = 0; i < ARRAY_LENGTH(rows); i++) {
            unsigned number = batch * (unsigned)ARRAY_LENGTH(rows) + i;
            rows[i] = begin_row(100000 + number, "old");
            rows[i].created_ns = 1000 + number;
        }
        if (store_apply(store, rows, ARRAY_LENGTH(rows), NULL) < 0)
            tap_fail("apply");
        for (unsigned i = 0; i < ARRAY_LENGTH(rows); i++)
            row_done(&rows[i]);
    }
    tap_is_int(store_forget(store, FIRST_NS, NULL), STORE_FORGET_MAX, "a thousand are forgotten");
    tap_is_int(store_forget(store, FIRST_NS, NULL), 10, "then the rest");
    tap_is_int(store_forget(store, FIRST_NS, NULL), 0, "then none");
    tap_is_str(status_of(1), "ok", "what is newer stays");
}

/* Whatever a request, a program or a http process in a stranger's hands may bring. */
#define HOSTILE                                                                                    \
    "'); DROP TABLE executions; -- \\' \"\\u0000\" $1 ?1 %s \xff\xfe\xc3( \xed\xa0\x80 "           \
    "\xf5\x80\x80\x80 "                                                                            \
    "\xe2\x80\xae \x01\x1b[31m \xc3"

static bool is_text(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < ' ')
            return false;
    return utf8_is_valid(text, strlen(text));
}

static void hostile_round(const struct execution_bytes *bytes, unsigned number, const char *what)
{
    autofree char *line = calloc(1, 4096);
    struct execution_event event = {HOSTILE, HOSTILE, SEVERITY_LOW};
    const char *unenforced[] = {HOSTILE};
    struct row rows[2], found;
    struct brig_error err = {0};
    memset(line, 0xc3, 4095);
    const struct execution_request request = {.id = id_of(number),
                                              .request_id = HOSTILE,
                                              .client = HOSTILE,
                                              .domain = HOSTILE,
                                              .language = HOSTILE,
                                              .work_dir = line,
                                              .code = *bytes,
                                              .events = &event,
                                              .event_count = 1};
    struct execution_file file = {.name = HOSTILE, .content = *bytes};
    const struct execution_result result = {.id = id_of(number),
                                            .status = EXECUTION_OK,
                                            .output = *bytes,
                                            .error_output = *bytes,
                                            .duration_us = UINT64_MAX,
                                            .cpu_time_us = UINT64_MAX,
                                            .memory_peak_bytes = UINT64_MAX,
                                            .pids_used = UINT64_MAX,
                                            .events = &event,
                                            .event_count = 1,
                                            .message = line,
                                            .files = &file,
                                            .file_count = 1,
                                            .unenforced = unenforced,
                                            .unenforced_count = 1,
                                            .started_ns = INT64_MAX};
    tap_is_int(row_from_request(ROW_BEGIN, &request, keep_all, SERVER, FIRST_NS, &rows[0], NULL) |
                   row_from_result(&result, keep_all, SERVER, FIRST_NS, &rows[1], NULL),
               0, "%s: there are rows", what);
    tap_is_int(store_apply(store, rows, 2, &err), 0, "which are stored %s", err.message);
    tap_is_int(store_get(store, id_of(number), &found, &err), 1, "and found %s", err.message);
    tap_ok(found.code.length == bytes->length && found.output.length == bytes->length &&
               memcmp(found.code.data, bytes->data, bytes->length) == 0 &&
               memcmp(found.output.data, bytes->data, bytes->length) == 0,
           "with every byte");
    tap_ok(is_text(found.language) && is_text(found.message) && is_text(found.work_dir) &&
               strlen(found.message) == 4095,
           "and with texts that are such");
    autostr struct str json = {0};
    row_json_one(&found, NULL, &json);
    json_error_t wrong;
    json_t *parsed = json_loadb(json.data, json.length, 0, &wrong);
    tap_ok(parsed || (bytes->length > 0 && memchr(bytes->data, 0, bytes->length)),
           "their JSON can be read: %s", parsed ? "" : wrong.text);
    json_decref(parsed);
    parsed = json_loadb(json.data, json.length, JSON_ALLOW_NUL, &wrong);
    tap_ok(parsed, "with NULs too");
    json_decref(parsed);
    row_done(&found);
    row_done(&rows[0]);
    row_done(&rows[1]);
}

static void test_hostile(void)
{
    autofree char *large = calloc(1, EXECUTION_CODE_MAX + 1);
    struct execution_bytes bytes = {large, EXECUTION_CODE_MAX};
    hostile_round(&(struct execution_bytes){HOSTILE, sizeof HOSTILE - 1}, 40, "odd bytes");
    hostile_round(&bytes, 41, "a megabyte of NULs");
    memset(large, 0xff, EXECUTION_CODE_MAX);
    hostile_round(&bytes, 42, "a megabyte of no UTF-8");
    for (size_t i = 0; i < EXECUTION_CODE_MAX; i++)
        large[i] = (char)(i * 2654435761U >> 13);
    hostile_round(&bytes, 43, "a megabyte of anything");
    tap_is_str(status_of(1), "ok", "others are as they were");
    for (unsigned i = 40; i < 44; i++) {
        struct query query;
        if (query_parse("limit=500", 9, FIRST_NS, &query, NULL) < 0)
            tap_fail("a query");
        (void)snprintf(query.language, sizeof query.language, "%s", "'; DROP TABLE executions; --");
        struct row rows[4];
        tap_is_int(store_list(store, &query, rows, 4, NULL), 0, "a question is no statement");
    }
}

static void test_all(const char *name)
{
    struct brig_error err = {0};
    tap_diag("%s", name);
    if (open_store(&err) < 0)
        tap_bail("%s", err.message);
    test_rows();
    test_lost();
    test_list();
    test_refused();
    test_foreign();
    test_together();
    test_hostile();
    test_forget();
    store_close(store);
    tap_is_int(open_store(&err), 0, "it is opened again");
    tap_is_str(status_of(1), "ok", "and has what it had");
    store_close(store);
}

static void damage_file(const char *name)
{
    FILE *file = fopen(name, "we");
    (void)fputs("this is no database, and it is long enough to be read as one, surely\n", file);
    (void)fclose(file);
}

static void test_sqlite_file(void)
{
    struct store *second = NULL;
    struct brig_error err = {0};
    struct stat info;
    char id[EXECUTION_ID_LENGTH + 1];
    if (open_store(NULL) < 0)
        tap_bail("open");
    tap_is_int(store_open_sqlite(path, &second, &err), BRIG_E_STATE, "two on one file are refused");
    tap_has_str(err.message, "in use by another brigd", "and told why");
    store_close(store);
    tap_ok(stat(path, &info) == 0 && (info.st_mode & 077) == 0, "the file is its owner's alone");
    sqlite3 *db = NULL;
    (void)sqlite3_open(path, &db);
    (void)sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL);
    (void)sqlite3_close(db);
    err = (struct brig_error){0};
    tap_is_int(open_store(&err), BRIG_E_INVALID, "one of a newer brigd too");
    tap_has_str(err.message, "its version is 99", "and told why");
    damage_file(path);
    tap_is_int(open_store(NULL), 0, "what is no database is replaced by a new file");
    tap_ok(store_replaces(store) && access(store_replaces(store), R_OK) == 0, "and kept aside");
    (void)unlink(store_replaces(store));
    (void)snprintf(id, sizeof id, "%s", store_server_id(store));
    tap_ok(execution_id_is_valid(id) && strcmp(id, SERVER) != 0, "has a new id");
    store_close(store);
    tap_is_int(open_store(NULL), 0, "opened again");
    tap_is_str(store_server_id(store), id, "it has the same");
    store_close(store);
}

/* A table of before there was a spool in SQLite. */
static void test_sqlite_old(void)
{
    sqlite3 *db = NULL;
    (void)unlink(path);
    tap_is_int(open_store(NULL), 0, "a new file");
    apply(begin_row(1, "python"), "with a row");
    store_close(store);
    (void)sqlite3_open(path, &db);
    int failed = sqlite3_exec(db,
                              "DROP TABLE queue; DROP TABLE idempotency; DROP TABLE results;"
                              "DROP TABLE callbacks; DROP TABLE usage; DROP TABLE notes;"
                              "DROP TABLE kept;"
                              "ALTER TABLE executions DROP COLUMN traceparent;"
                              "ALTER TABLE executions DROP COLUMN priority;"
                              "DROP TABLE server; DROP INDEX executions_sequence;"
                              "ALTER TABLE executions DROP COLUMN sequence;"
                              "ALTER TABLE executions DROP COLUMN sandbox_id;"
                              "PRAGMA user_version = 1",
                              NULL, NULL, NULL);
    (void)sqlite3_close(db);
    tap_is_int(failed, SQLITE_OK, "as an earlier brigd left it");
    tap_is_int(open_store(NULL), 0, "is opened");
    tap_is_str(store_server_id(store), SERVER, "its server goes on");
    tap_is_str(status_of(1), "running", "its row is there");
    apply(end_row(1, EXECUTION_OK), "and ends");
    tap_is_str(status_of(1), "ok", "as others do");
    store_close(store);
}

static void test_postgres_dead(void)
{
    struct brig_error err = {0};
    struct row row = begin_row(30, "python");
    if (open_store(NULL) < 0)
        tap_bail("open");
    tap_is_int(store_apply(store, &row, 1, &err), 0, "a row is stored");
    tap_ok(postgres_stop("immediate"), "the server is stopped");
    tap_is_int(store_apply(store, &row, 1, &err), BRIG_E_SYSTEM, "then it is not: %s", err.message);
    err = (struct brig_error){0};
    tap_is_int(store_apply(store, &row, 1, &err), BRIG_E_SYSTEM, "nor again: %s", err.message);
    tap_ok(postgres_start(), "the server is started");
    tap_is_int(store_apply(store, &row, 1, &err), 0, "then it is");
    row_done(&row);
    store_close(store);
    err = (struct brig_error){0};
    tap_is_int(
        store_open_postgres("host=/nonexistent user=u password=secret dbname=x", &store, &err), 0,
        "a server that is not there is no error");
    tap_is_int(store_apply(store, NULL, 0, &err), BRIG_E_SYSTEM, "until it is asked");
    tap_ok(!strstr(err.message, "secret"), "nor is it told then: %s", err.message);
    store_close(store);
}

int main(void)
{
    (void)umask(077);
    (void)snprintf(directory, sizeof directory, "/tmp/test-store-XXXXXX");
    if (!mkdtemp(directory))
        tap_bail("no directory");
    (void)snprintf(path, sizeof path, "%s/deep/er/history.sqlite", directory);
    is_sqlite = true;
    test_all("SQLite");
    test_sqlite_file();
    test_sqlite_old();
    is_sqlite = false;
    if (postgres_make()) {
        tap_ok(postgres_start(), "PostgreSQL is started");
        test_all("PostgreSQL");
        test_postgres_dead();
        tap_ok(postgres_stop("fast"), "PostgreSQL is stopped");
        postgres_remove();
    }
    (void)snprintf(postgres.directory, sizeof postgres.directory, "%s", directory);
    postgres_remove();
    return tap_done();
}
