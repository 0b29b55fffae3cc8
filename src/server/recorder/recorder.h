/* SPDX-License-Identifier: MIT */
/* What the files of the recorder share. */
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

#define RECORDER_JOBS_MAX 64        /* questions at a time; more are refused */
#define RECORDER_ANSWER_MS 5000     /* a question that takes longer is answered with a failure */
#define RECORDER_FRESH_MS 500       /* how long one waits for rows that came before it */
#define RECORDER_RETRY_FIRST_MS 250 /* after the database failed, doubled each time */
#define RECORDER_RETRY_MOST_MS 5000
#define RECORDER_FORGET_MS (10 * 60000) /* how often old rows are looked for */
#define RECORDER_STATUS_MS 1000         /* numbers for /health at most so often */
#define RECORDER_HOLD_MS 500            /* how soon a full disk is tried again */
#define RECORDER_STOP_MS 5000           /* at the end, for what waits */
#define RECORDER_NAP_MS 20              /* the warden's messages are read together, so often */
#define RECORDER_GATHER_MS 100          /* and rows brought to the database together */
#define RECORDER_GATHER_MAX 128         /* or when so many wait */

struct recorder {
    const struct server_config *config;
    struct channel *control, *front, *warden;  /* the peers may be NULL */
    const struct store_operations *operations; /* NULL: there is no history */
    struct store *store;
    struct spool *spool;
    struct worker *worker;

    int64_t last_ns;     /* no two rows have the same time */
    uint64_t stored_tag; /* to be told to the warden */
    bool has_stored;
    uint64_t nap_until_ms;  /* until then the warden is read only if something else comes; or 0 */
    struct message held;    /* a row that the spool did not take; nothing else is read meanwhile */
    uint64_t held_until_ms; /* 0: none is held */
    uint64_t thinned, dropped, refused;
    bool warned_thin, warned_drop;

    struct job *jobs[RECORDER_JOBS_MAX];
    size_t job_count;
    bool applying, forgetting;
    uint64_t appended, brought; /* records: to the spool, and from it to the thread, ever */
    bool answers;               /* the database does */
    bool asked;                 /* and has been asked whether it does */
    char problem[BRIG_MESSAGE_MAX];
    uint64_t retry_ms, retry_delay_ms, forget_ms;
    uint64_t gather_ms; /* when rows that wait are brought; 0: at once */

    char status[BRIG_MESSAGE_MAX]; /* what the front was told */
    uint64_t status_ms;
    bool draining;
    uint64_t stop_ms;
};

/* A line for the keeper's log. */
void recorder_warn(struct recorder *recorder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* recorder_rows.c: what the warden and the front have to tell. Reads until there is nothing, or a row
 * has to be held. A peer that is gone or misbehaves is closed. */
void recorder_read_warden(struct recorder *recorder);
void recorder_read_front(struct recorder *recorder);
/* Tries a held row again. */
void recorder_retry_held(struct recorder *recorder);

/* recorder_jobs.c: what the database has to do. */
void recorder_ask(struct recorder *recorder, const struct message *question);
void recorder_take_done(struct recorder *recorder);
/* Begins whatever is due; answers what has taken too long. */
void recorder_begin_due(struct recorder *recorder);
/* When recorder_begin_due() has something to do again; 0: never. */
uint64_t recorder_next_due(const struct recorder *recorder);
void recorder_forget_jobs(struct recorder *recorder); /* of a front that is gone */
void recorder_tell_status(struct recorder *recorder);
