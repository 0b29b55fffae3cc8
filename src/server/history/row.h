/* SPDX-License-Identifier: MIT */
/* A row of the history, or a part of one: the start or the end of an execution. The statements for
 * both databases are generated from one table of columns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "server/config/config.h"
#include "server/execution.h"

struct brig_error;
struct str;

enum row_kind {
    ROW_BEGIN = 1, /* an execution started */
    ROW_END,       /* an execution ended; may come twice, or before ROW_BEGIN */
    ROW_BLOCKED,   /* an execution was refused */
    ROW_LOST,      /* a new executor: what this server ran before created_ns is lost */
    ROW_WHOLE,     /* start and end, from the spool */
    ROW_QUEUED,    /* an execution waits in the queue */
};

#define ROW_NO_NUMBER INT64_MIN /* NULL */

/* The columns: type, kinds of rows that write it, name, member. Lists do not contain BYTES columns.
 * `created_ns` is when the history process first received the execution; it is unique. `events` is
 * a JSON array of {type, severity, detail}, `unenforced` one of strings, `files` one of {name,
 * bytes}. */
#define ROW_COLUMNS(X)                                                                             \
    X(TEXT, KEY, "id", id)                                                                         \
    X(TEXT, KEY, "server", server)                                                                 \
    X(NUMBER, KEY, "created_ns", created_ns)                                                       \
    X(TEXT, STATE, "status", status)                                                               \
    X(TEXT, STATE, "events", events)                                                               \
    X(TEXT, BEGIN, "request_id", request_id)                                                       \
    X(TEXT, BEGIN, "client", client)                                                               \
    X(TEXT, BEGIN, "domain", domain)                                                               \
    X(TEXT, BEGIN, "language", language)                                                           \
    X(TEXT, BEGIN, "work_dir", work_dir)                                                           \
    X(BYTES, BEGIN, "code", code)                                                                  \
    X(TEXT, BEGIN, "code_sha256", code_sha256)                                                     \
    X(NUMBER, BEGIN, "code_bytes", code_bytes)                                                     \
    X(NUMBER, BEGIN, "timeout_ms", timeout_ms)                                                     \
    X(NUMBER, BEGIN, "memory_mb", memory_mb)                                                       \
    X(NUMBER, BEGIN, "pids_limit", pids_limit)                                                     \
    X(NUMBER, BEGIN, "disk_mb", disk_mb)                                                           \
    X(NUMBER, BEGIN, "cpu_percent", cpu_percent)                                                   \
    X(NUMBER, BEGIN, "network", network)                                                           \
    X(NUMBER, END, "exit_code", exit_code)                                                         \
    X(NUMBER, END, "signal", signal)                                                               \
    X(BYTES, END, "output", output)                                                                \
    X(TEXT, END, "output_sha256", output_sha256)                                                   \
    X(NUMBER, END, "output_bytes", output_bytes)                                                   \
    X(NUMBER, END, "output_truncated", output_truncated)                                           \
    X(BYTES, END, "stderr", error_output)                                                          \
    X(TEXT, END, "stderr_sha256", error_output_sha256)                                             \
    X(NUMBER, END, "stderr_bytes", error_output_bytes)                                             \
    X(NUMBER, END, "stderr_truncated", error_output_truncated)                                     \
    X(NUMBER, END, "duration_us", duration_us)                                                     \
    X(NUMBER, END, "cpu_time_us", cpu_time_us)                                                     \
    X(NUMBER, END, "memory_peak_bytes", memory_peak_bytes)                                         \
    X(NUMBER, END, "pids_used", pids_used)                                                         \
    X(NUMBER, END, "started_ns", started_ns)                                                       \
    X(NUMBER, END, "ended_ns", ended_ns)                                                           \
    X(TEXT, END, "message", message)                                                               \
    X(TEXT, END, "unenforced", unenforced)                                                         \
    X(TEXT, END, "files", files)                                                                   \
    X(TEXT, BEGIN, "traceparent", traceparent)                                                     \
    X(NUMBER, BEGIN, "priority", priority)                                                         \
    X(TEXT, BEGIN, "sandbox_id", sandbox_id)

enum row_type { ROW_TEXT, ROW_BYTES, ROW_NUMBER };
#define ROW_TYPE_TEXT const char *
#define ROW_TYPE_BYTES struct execution_bytes
#define ROW_TYPE_NUMBER int64_t
#define ROW_MEMBER(type, part, name, member) ROW_TYPE_##type member;

/* Pointers are into the arena, or NULL. */
struct row {
    struct arena arena;
    enum row_kind kind;
    ROW_COLUMNS(ROW_MEMBER)
    int64_t sequence; /* spool only: changes whenever the row changes */
    /* What the tables of queue.h need besides; not columns. */
    bool queued;                   /* ROW_BEGIN: was in the queue */
    bool kept;                     /* ROW_END: the whole result is kept */
    struct execution_bytes result; /* ROW_END: it, encoded; borrowed */
    const char *used_by;           /* ROW_END: the domain; in the arena */
};

/* Which kinds of rows write a column. */
enum row_part {
    PART_KEY,   /* set when the row is made, never changed */
    PART_STATE, /* set when the row is made, and by ROW_END */
    PART_BEGIN,
    PART_END,
};

struct row_column {
    const char *name;
    enum row_type type;
    enum row_part part;
    size_t offset;
};
extern const struct row_column row_columns[];
extern const size_t row_column_count;
/* Returns whether a row of this kind has this column. */
bool row_has_column(enum row_kind kind, const struct row_column *column);

/* How much of code and output to keep. */
struct row_keep {
    enum config_keep code, output;
};

/* Make a row from a request or a result. Release it with row_done(). */
int row_from_request(enum row_kind kind, const struct execution_request *request,
                     struct row_keep keep, const char *server, int64_t created_ns,
                     struct row *ret_row, struct brig_error *err);
int row_from_result(const struct execution_result *result, struct row_keep keep, const char *server,
                    int64_t created_ns, struct row *ret_row, struct brig_error *err);
int row_lost(const char *server, int64_t created_ns, struct row *ret_row, struct brig_error *err);
void row_init(struct row *row, enum row_kind kind); /* sets every number to ROW_NO_NUMBER */
void row_done(struct row *row);

/* Returns a pointer to the member of a column: const char *, struct execution_bytes or int64_t, by
 * its type. */
void *row_member(const struct row_column *column, const struct row *row);
/* Sets a column from a database value, which is copied; numbers are text. NULL: leave unset. */
void row_set(struct row *row, const struct row_column *column, const void *data, size_t length);

/* What SQLite knows of one execution besides its row; all may be absent. */
struct row_more {
    struct arena arena;
    struct execution_result result; /* the whole result, if it is kept */
    bool has_result;
    const char *callback_state, *callback_url, *callback_message; /* or NULL */
    int64_t callback_attempts, callback_status;
};
void row_more_done(struct row_more *more);

/* The answer of GET /executions/{id}; `more` may be NULL. */
void row_json_one(const struct row *row, const struct row_more *more, struct str *out);
/* The answer of GET /executions: {"executions": […], "next": cursor or null}, without code and
 * output. */
void row_json_list(const struct row *rows, size_t count, const char *next, struct str *out);
