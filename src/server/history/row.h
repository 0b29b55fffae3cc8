/* SPDX-License-Identifier: MIT */
/* A row of the history, or a part of one: what began, what ended. One table of columns gives the
 * statements of both databases. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "server/config.h"
#include "server/execution.h"

struct brig_error;
struct str;

enum row_kind {
    ROW_BEGIN = 1, /* an execution began */
    ROW_END,       /* and ended; may come twice, or first */
    ROW_BLOCKED,   /* it was refused */
    ROW_LOST,      /* a new executor: what ran before created_ns, of this server, runs no more */
    ROW_WHOLE,     /* beginning and end, from the spool */
};

#define ROW_NO_NUMBER INT64_MIN /* NULL */

/* All pointers are into the arena, or NULL. */
struct row {
    struct arena arena;
    enum row_kind kind;
    const char *id;
    const char *server;
    int64_t created_ns; /* since 1970; when the history process heard of it, no two the same */
    const char *status;
    const char *events; /* a JSON array of {type, severity, detail} */

    const char *request_id, *client, *domain, *language, *work_dir;
    struct execution_bytes code;
    const char *code_sha256;
    int64_t code_bytes;
    int64_t timeout_ms, memory_mb, pids_limit, disk_mb, cpu_percent, network;

    int64_t exit_code, signal;
    struct execution_bytes output, error_output;
    const char *output_sha256, *error_output_sha256;
    int64_t output_bytes, error_output_bytes;
    int64_t output_truncated, error_output_truncated;
    int64_t duration_us, cpu_time_us, memory_peak_bytes, pids_used;
    int64_t started_ns, ended_ns;
    const char *message;
    const char *unenforced; /* a JSON array of texts */
    const char *files;      /* a JSON array of {name, bytes} */

    int64_t sequence; /* of rows in the spool: changes with the row; not a column of the history */
};

enum row_type { ROW_TEXT, ROW_BYTES, ROW_NUMBER };

/* Which kinds write a column. */
enum row_part {
    PART_KEY,   /* set when the row is made, and then never again */
    PART_STATE, /* set when the row is made, and by an end */
    PART_BEGIN,
    PART_END,
};

struct row_column {
    const char *name;
    enum row_type type;
    enum row_part part;
    size_t offset;
    bool large; /* left out of lists */
};
extern const struct row_column row_columns[];
extern const size_t row_column_count;
/* Whether a row of this kind brings this column. */
bool row_has_column(enum row_kind kind, const struct row_column *column);

/* What of code and output is kept. */
struct row_keep {
    enum config_keep code, output;
};

/* From what the executor and the http process say. Release with row_done(). */
int row_from_request(enum row_kind kind, const struct execution_request *request,
                     struct row_keep keep, const char *server, int64_t created_ns,
                     struct row *ret_row, struct brig_error *err);
int row_from_result(const struct execution_result *result, struct row_keep keep, const char *server,
                    int64_t created_ns, struct row *ret_row, struct brig_error *err);
int row_lost(const char *server, int64_t created_ns, struct row *ret_row, struct brig_error *err);
void row_init(struct row *row, enum row_kind kind); /* every number is ROW_NO_NUMBER */
void row_done(struct row *row);

/* Access by column. */
const char **row_text(const struct row_column *column, const struct row *row);
struct execution_bytes *row_bytes(const struct row_column *column, const struct row *row);
int64_t *row_number(const struct row_column *column, const struct row *row);

/* GET /executions/{id}: everything. */
void row_json_one(const struct row *row, struct str *out);
/* GET /executions: {"executions": […], "next": cursor or null}, without code and output. */
void row_json_list(const struct row *rows, size_t count, const char *next, struct str *out);
