/* SPDX-License-Identifier: MIT */
/* The state shared by the files of the history process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "server/history/worker.h"
#include "server/message.h"

struct job;
struct row;
struct server_config;
struct store;

#define HISTORY_BATCH_MAX 64 /* messages of the executor that are stored in one transaction */
#define HISTORY_BATCH_BYTES ((size_t)8 << 20)
#define HISTORY_HOLD_MS 500        /* delay before a failed batch is tried again */
#define HISTORY_GATHER_MS 100      /* how long rows gather in the spool before they are sent */
#define HISTORY_JOBS_MAX 64        /* concurrent queries; more are refused */
#define HISTORY_ASK_MS 50          /* time spent on queries before rows are read again */
#define HISTORY_ANSWER_MS 5000     /* a slower query is answered with a failure */
#define HISTORY_FRESH_MS 500       /* how long a query waits for earlier rows */
#define HISTORY_ROW_MS 5000        /* how long it waits for a row that is on its way in pieces */
#define HISTORY_RETRY_FIRST_MS 250 /* after a failure of the database; doubled each time */
#define HISTORY_RETRY_MOST_MS 5000
#define HISTORY_FORGET_MS (10 * 60000) /* interval between searches for old rows */
#define HISTORY_STATUS_MS 1000         /* minimum interval between updates for /health */
#define HISTORY_STOP_MS 5000           /* at exit, to store waiting rows */
#define HISTORY_CALLS_MAX 16           /* callbacks under way */
#define HISTORY_CALLS_PER_KEY 4

struct history {
    struct server_config *config;
    struct channel *control, *http, *executor; /* peers may be NULL */
    struct store *local;    /* SQLite: the history or the spool; NULL: no history */
    struct store *postgres; /* or NULL */
    struct worker worker;   /* the thread for PostgreSQL */

    /* Rows from the executor to SQLite. */
    int64_t last_ns; /* time of the last row; each row has a different time */
    struct message batch[HISTORY_BATCH_MAX]; /* received and not stored yet */
    size_t batch_count;
    uint64_t held_until_ms; /* when a failed batch is tried again; 0: none */
    bool held_of_other;     /* the batch came from an executor that is gone */
    uint64_t stored;        /* tag of the last row that was stored */
    uint64_t awaited;       /* tag of a row before which no question is answered; 0: none */
    uint64_t awaited_ms;    /* when it is given up */
    uint64_t thinned, dropped, refused;
    bool warned_thin, warned_full;
    char write_problem[BRIG_MESSAGE_MAX]; /* why SQLite cannot be written, or "" */

    /* Rows from SQLite to PostgreSQL. Sequences are those of the spool. */
    uint64_t submitted, sent; /* last sequences submitted to the thread, and stored */
    uint64_t gather_ms;       /* when to send rows from the spool; 0: at once */
    bool feeding, forgetting;

    /* Asynchronous executions (orders.c). */
    struct message order; /* of the executor, taken after the rows before it; type 0: none */
    size_t calls;         /* callbacks under way */
    uint64_t calls_ms;    /* when to look for callbacks that are due; 0: never */
    uint64_t tidy_ms;     /* when to look for old results */

    struct job *jobs[HISTORY_JOBS_MAX]; /* queries that wait for PostgreSQL */
    size_t job_count;
    bool asked, answers; /* whether PostgreSQL was tried, and answered */
    char problem[BRIG_MESSAGE_MAX];
    uint64_t retry_ms, retry_delay_ms, forget_ms;

    const char *state;           /* the state last sent to the http process; NULL: none */
    struct message_store status; /* the complete message */
    uint64_t status_ms;
    bool status_stale; /* counts may have changed since */
    bool draining;
    uint64_t stop_ms;
};

/* ---- history.c ---- */

/* A line for the supervisor's log. */
void history_warn(struct history *history, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Notes that SQLite could not be written, or can be again. */
void history_note_write(struct history *history, int result, const struct brig_error *err);
/* Returns whether the spool has no room for more executions. */
bool history_is_full(const struct history *history);
/* Closes the channel to a http process that is gone or misbehaves, and forgets its queries. */
void history_drop_http(struct history *history);
/* The same, and the supervisor replaces the process: it may have been taken over. */
void history_replace_http(struct history *history, const char *why);
/* Closes the channel to the executor. Unless that is gone (result: BRIG_E_SYSTEM), the supervisor starts
 * this process anew: otherwise the two would not be connected again. */
void history_drop_executor(struct history *history, int result, const char *why);

/* ---- jobs.c: work for the database ---- */

void history_ask(struct history *history, const struct message *question);
void history_take_done(struct history *history);
/* Starts jobs that are due; fails queries that take too long. */
void history_begin_due(struct history *history);
/* When history_begin_due() must be called again; 0: never. */
uint64_t history_next_due(const struct history *history);
void history_forget_jobs(struct history *history);
void history_tell_status(struct history *history);

/* ---- orders.c: the queue, idempotency keys and callbacks ---- */

/* Sends a message; does nothing without an executor. */
void history_tell_executor(struct history *history, enum message_type type, uint64_t tag,
                           const void *bytes, size_t length);
/* Returns whether the executor may send such a message, which is then kept in `order`. */
bool history_is_order(enum message_type type);
/* Carries out and forgets the order. */
void history_take_order(struct history *history);
/* Handles MESSAGE_SUBMIT, MESSAGE_RESULT and MESSAGE_USAGE. */
void history_submit(struct history *history, const struct message *message);
void history_result(struct history *history, const struct message *message);
/* Handle MESSAGE_NOTE and MESSAGE_NOTE_REMOVE; and MESSAGE_NOTE_LIST. */
void history_note(struct history *history, const struct message *message);
void history_note_list(struct history *history, const struct message *message);
void history_usage(struct history *history, const struct message *message);
/* A new executor: sends it the queue. */
void history_send_queue(struct history *history);
/* These rows were stored: tells the http process which executions have ended. */
void history_tell_ended(struct history *history, const struct row *rows, size_t count);
/* Sends callbacks that are due to the executor, and removes old results. */
void history_orders_due(struct history *history);
/* A time that differs from all others. */
int64_t history_next_ns(struct history *history);
/* Answers a question of the http process. */
void history_answer(struct history *history, enum message_type type, uint64_t tag,
                    const void *bytes, size_t length);

/* ---- confine.c ---- */

/* Confines the process to the directory of SQLite, and with PostgreSQL the network. Call it after
 * all files are open and before threads are started. */
int confine_history(const struct server_config *config, struct brig_error *err);
