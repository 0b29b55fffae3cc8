/* SPDX-License-Identifier: MIT */
/* What the files of the history process share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "server/message.h"

struct job;
struct server_config;
struct spool;
struct store;
struct store_operations;
struct worker;

#define HISTORY_JOBS_MAX 64        /* questions at a time; more are refused */
#define HISTORY_ANSWER_MS 5000     /* a question that takes longer is answered with a failure */
#define HISTORY_FRESH_MS 500       /* how long one waits for rows that came before it */
#define HISTORY_RETRY_FIRST_MS 250 /* after the database failed, doubled each time */
#define HISTORY_RETRY_MOST_MS 5000
#define HISTORY_FORGET_MS (10 * 60000) /* how often old rows are looked for */
#define HISTORY_STATUS_MS 1000         /* numbers for /health at most so often */
#define HISTORY_HOLD_MS 500            /* how soon a full disk is tried again */
#define HISTORY_STOP_MS 5000           /* at the end, for what waits */
#define HISTORY_NAP_MS 20              /* the executor's messages are read together, so often */
#define HISTORY_GATHER_MS 100          /* and rows brought to the database together */
#define HISTORY_GATHER_MAX 128         /* or when so many wait */

struct history {
    const struct server_config *config;
    struct channel *control, *http, *executor; /* the peers may be NULL */
    const struct store_operations *operations; /* NULL: there is no history */
    struct store *store;
    struct spool *spool;
    struct worker *worker;

    int64_t last_ns;     /* no two rows have the same time */
    uint64_t stored_tag; /* to be told to the executor */
    bool has_stored;
    uint64_t nap_until_ms;  /* until then the executor is read only if something else comes; or 0 */
    struct message held;    /* a row that the spool did not take; nothing else is read meanwhile */
    uint64_t held_until_ms; /* 0: none is held */
    uint64_t thinned, dropped, refused;
    bool warned_thin, warned_drop;

    struct job *jobs[HISTORY_JOBS_MAX];
    size_t job_count;
    bool applying, forgetting;
    uint64_t appended, brought; /* records: to the spool, and from it to the thread, ever */
    bool answers;               /* the database does */
    bool asked;                 /* and has been asked whether it does */
    char problem[BRIG_MESSAGE_MAX];
    uint64_t retry_ms, retry_delay_ms, forget_ms;
    uint64_t gather_ms; /* when rows that wait are brought; 0: at once */

    char status[BRIG_MESSAGE_MAX]; /* what the http process was told */
    uint64_t status_ms;
    bool draining;
    uint64_t stop_ms;
};

/* A line for the supervisor's log. */
void history_warn(struct history *history, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* history_rows.c: what the executor and the http process have to tell. Reads until there is nothing, or a row
 * has to be held. A peer that is gone or misbehaves is closed. */
void history_read_executor(struct history *history);
void history_read_http(struct history *history);
/* Tries a held row again. */
void history_retry_held(struct history *history);

/* history_jobs.c: what the database has to do. */
void history_ask(struct history *history, const struct message *question);
void history_take_done(struct history *history);
/* Begins whatever is due; answers what has taken too long. */
void history_begin_due(struct history *history);
/* When history_begin_due() has something to do again; 0: never. */
uint64_t history_next_due(const struct history *history);
void history_forget_jobs(struct history *history); /* of a http process that is gone */
void history_tell_status(struct history *history);
