/* SPDX-License-Identifier: MIT */
/* What the files of the history process share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "server/history/worker.h"
#include "server/message.h"

struct job;
struct server_config;
struct store;

#define HISTORY_BATCH_MAX 64 /* messages of the executor that are stored together */
#define HISTORY_BATCH_BYTES ((size_t)8 << 20)
#define HISTORY_HOLD_MS 500        /* after which rows that could not be stored are tried again */
#define HISTORY_GATHER_MS 100      /* how long rows gather in the spool before they are fed */
#define HISTORY_JOBS_MAX 64        /* questions at a time; more are refused */
#define HISTORY_ASK_MS 50          /* after so much time spent on questions rows are read again */
#define HISTORY_ANSWER_MS 5000     /* a question that takes longer is answered with a failure */
#define HISTORY_FRESH_MS 500       /* how long one waits for rows that came before it */
#define HISTORY_RETRY_FIRST_MS 250 /* after the database failed, doubled each time */
#define HISTORY_RETRY_MOST_MS 5000
#define HISTORY_FORGET_MS (10 * 60000) /* how often old rows are looked for */
#define HISTORY_STATUS_MS 1000         /* numbers for /health at most so often */
#define HISTORY_STOP_MS 5000           /* at the end, for rows that wait */

struct history {
    const struct server_config *config;
    struct channel *control, *http, *executor; /* the peers may be NULL */
    struct store *local;    /* SQLite: the history or the spool; NULL: there is no history */
    struct store *postgres; /* or NULL */
    struct worker worker;   /* its thread */

    /* Rows, to SQLite. */
    int64_t last_ns;                         /* no two rows have the same time */
    struct message batch[HISTORY_BATCH_MAX]; /* of the executor, in hand */
    size_t batch_count;
    uint64_t held_until_ms; /* 0, or when a batch that could not be stored is tried again */
    bool held_of_other;     /* of an executor that is gone */
    uint64_t thinned, dropped, refused;
    bool warned_thin, warned_drop;
    char write_problem[BRIG_MESSAGE_MAX]; /* why SQLite cannot be written, or "" */

    /* Rows, from SQLite to PostgreSQL. Sequences are those of the spool. */
    uint64_t submitted, sent; /* all up to these have been given to the thread, and are safe */
    uint64_t gather_ms;       /* when the spool is fed; 0: at once */
    bool feeding, forgetting;

    struct job *jobs[HISTORY_JOBS_MAX]; /* questions that wait for PostgreSQL */
    size_t job_count;
    bool asked, answers; /* whether the database has been asked for an answer, and gave one */
    char problem[BRIG_MESSAGE_MAX];
    uint64_t retry_ms, retry_delay_ms, forget_ms;

    const char *state;             /* what the http process was told; NULL: nothing */
    char status[BRIG_MESSAGE_MAX]; /* the whole of it */
    uint64_t status_ms;
    bool status_stale; /* numbers may have changed since */
    bool draining;
    uint64_t stop_ms;
};

/* ---- history.c ---- */

/* A line for the supervisor's log. */
void history_warn(struct history *history, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* SQLite could not be written, or can again. */
void history_note_write(struct history *history, int result, const struct brig_error *err);
/* Closes the channel to a http process that is gone or misbehaves; its questions are forgotten. */
void history_drop_http(struct history *history);

/* ---- jobs.c: what the database has to do ---- */

void history_ask(struct history *history, const struct message *question);
void history_take_done(struct history *history);
/* Begins whatever is due; answers what has taken too long. */
void history_begin_due(struct history *history);
/* When history_begin_due() has something to do again; 0: never. */
uint64_t history_next_due(const struct history *history);
void history_forget_jobs(struct history *history);
void history_tell_status(struct history *history);

/* ---- confine.c ---- */

/* From here on: the directory of SQLite, and the network only for PostgreSQL. To be called when all is
 * open, and before there are threads. */
int confine_history(const struct server_config *config, struct brig_error *err);
