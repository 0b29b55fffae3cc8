/* SPDX-License-Identifier: MIT */
/* Work for the database: answer queries, take rows from the spool, delete old rows. SQLite is used
 * directly; for PostgreSQL a thread does the work, so that the history process does not block. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/history/history.h"
#include "server/history/queue.h"
#include "server/history/store.h"
#include "server/history/worker.h"

/* ---- State of the database ---- */

static void note_failure(struct history *r, const char *message)
{
    uint64_t delay = r->retry_delay_ms ? 2 * r->retry_delay_ms : HISTORY_RETRY_FIRST_MS;
    if (r->answers || !r->asked)
        history_warn(r, "%s%s", message, r->postgres ? "; rows wait in the spool" : "");
    r->answers = false;
    r->asked = true;
    (void)snprintf(r->problem, sizeof r->problem, "%s", message);
    if (!r->postgres) /* the next query tries it again */
        return;
    r->retry_delay_ms = delay < HISTORY_RETRY_MOST_MS ? delay : HISTORY_RETRY_MOST_MS;
    r->retry_ms = clock_now_ms() + r->retry_delay_ms;
}

static void note_success(struct history *r)
{
    if (r->asked && !r->answers && r->postgres)
        history_warn(r, "the database answers again; %" PRIu64 " rows were waiting",
                     spool_count(r->local));
    r->answers = r->asked = true;
    r->problem[0] = '\0';
    r->retry_delay_ms = r->retry_ms = 0;
}

/* ---- Queries of the http process ---- */

void history_answer(struct history *r, enum message_type type, uint64_t tag, const void *bytes,
                    size_t length)
{
    static const char too_long[] = "the answer has more than 32 MiB: ask for fewer executions";
    struct brig_error err = {0};
    if (length > MESSAGE_BYTES_MAX) {
        type = MESSAGE_FAILED;
        bytes = too_long;
        length = sizeof too_long - 1;
    }
    int result = r->http ? channel_send(r->http, type, tag, bytes, length, &err) : 0;
    if (result == BRIG_E_SYSTEM)
        history_drop_http(r);
    else if (result < 0)
        history_replace_http(r, err.message);
}

static void refuse(struct history *r, uint64_t tag, const char *why)
{
    history_answer(r, MESSAGE_FAILED, tag, why, strlen(why));
}

static void drop_job(struct history *r, const struct job *job)
{
    for (size_t i = 0; i < r->job_count; i++) {
        if (r->jobs[i] != job)
            continue;
        memmove(&r->jobs[i], &r->jobs[i + 1], (--r->job_count - i) * sizeof(struct job *));
        return;
    }
}

/* A job that the thread has is returned later, and counts until then. */
static void abandon_job(struct history *r, struct job *job)
{
    job->abandoned = true;
    if (job->submitted)
        return;
    drop_job(r, job);
    job_free(job);
}

void history_forget_jobs(struct history *r)
{
    for (size_t i = r->job_count; i-- > 0;)
        abandon_job(r, r->jobs[i]);
}

static int read_question(const struct message *question, struct job *job, struct brig_error *err)
{
    if (question->type == MESSAGE_LIST)
        return query_parse(question->bytes, question->length, clock_wall_ns(), &job->query, err);
    (void)snprintf(job->id, sizeof job->id, "%s", question->bytes);
    if (!execution_id_is_valid(job->id))
        return brig_fail(err, BRIG_E_INVALID, 0, "an id is a UUID");
    for (char *c = job->id; *c; c++)
        *c = *c >= 'A' && *c <= 'F' ? (char)(*c | 0x20) : *c;
    const char *domain = question->bytes + EXECUTION_ID_LENGTH;
    if (strlen(domain) >= sizeof job->domain)
        return brig_fail(err, BRIG_E_INVALID, 0, "the question came from an unknown process");
    (void)snprintf(job->domain, sizeof job->domain, "%s", domain);
    return 0;
}

static void answer_job(struct history *r, const struct job *job)
{
    if (job->result < 0)
        refuse(r, job->tag, job->err.message);
    else if (job->text.length > 0)
        history_answer(r, job->pending ? MESSAGE_PENDING : MESSAGE_ROWS, job->tag, job->text.data,
                       job->text.length);
    else
        history_answer(r, MESSAGE_MISSING, job->tag, NULL, 0);
}

static void take_answer(struct history *r, const struct job *job)
{
    drop_job(r, job);
    if (!job->abandoned)
        answer_job(r, job);
    if (job->result == BRIG_E_SYSTEM)
        note_failure(r, job->err.message);
    else if (!r->postgres)
        note_success(r);
}

/* Rows that PostgreSQL may not have yet are in the spool. Returns whether the answer is there. */
static bool ask_spool(struct history *r, struct job *job)
{
    if (job->kind != JOB_GET || queue_more(r->local, job->id, &job->more, &job->err) < 0)
        return false;
    if (r->postgres)
        job_perform(job, r->local);
    return r->postgres && job->result == 0 && job->text.length > 0;
}

/* Gives the question to PostgreSQL, which takes the job, or refuses it. */
static void ask_postgres(struct history *r, struct job *job)
{
    const char *problem = r->asked && !r->answers ? r->problem
                          : r->job_count >= HISTORY_JOBS_MAX
                              ? "too many questions to the database at once"
                              : NULL;
    if (problem) {
        refuse(r, job->tag, problem);
        job_free(job);
        return;
    }
    job->sequence = r->local->sequence;
    r->jobs[r->job_count++] = job;
}

void history_ask(struct history *r, const struct message *question)
{
    struct brig_error err = {0};
    if (!r->local) {
        refuse(r, question->tag, "the server keeps no history: database.store is none");
        return;
    }
    struct job *job = job_new(question->type == MESSAGE_LIST ? JOB_LIST : JOB_GET);
    if (!job) {
        refuse(r, question->tag, "out of memory");
        return;
    }
    if (read_question(question, job, &err) < 0) {
        job_free(job);
        refuse(r, question->tag, err.message);
        return;
    }
    job->tag = question->tag;
    job->given_ms = clock_now_ms();
    bool answered = ask_spool(r, job);
    if (answered) {
        answer_job(r, job);
    } else if (r->postgres) {
        ask_postgres(r, job);
        return;
    } else {
        job_perform(job, r->local);
        take_answer(r, job);
    }
    job_free(job);
}

/* ---- Finished jobs ---- */

static void take_fed(struct history *r, const struct job *job)
{
    struct brig_error err = {0};
    r->feeding = false;
    if (job->result < 0) {
        r->submitted = r->sent;
        note_failure(r, job->err.message);
        return;
    }
    note_success(r);
    if (job->refused > 0) {
        r->refused += job->refused;
        history_warn(r, "the database refuses %" PRIu64 " rows for good: %s", job->refused,
                     job->err.message);
    }
    /* Rows that cannot be removed from the spool, for example on a full disk, are sent again. */
    int result = spool_release(r->local, job->rows, job->row_count, &err);
    if (result < 0)
        r->gather_ms = clock_now_ms() + HISTORY_HOLD_MS;
    else
        r->sent = job->sequence;
    r->submitted = r->sent;
    if (result < 0 || !r->held_until_ms)
        history_note_write(r, result, &err);
}

static void take_forgotten(struct history *r, const struct job *job)
{
    r->forgetting = false;
    if (job->result < 0) {
        note_failure(r, job->err.message);
        return;
    }
    if (!r->postgres)
        note_success(r);
    if (job->result == STORE_FORGET_MAX)
        r->forget_ms = 0; /* there are more */
}

void history_take_done(struct history *r)
{
    for (struct job *job; r->postgres && (job = worker_take(&r->worker)); job_free(job)) {
        switch (job->kind) {
        case JOB_FEED:
            take_fed(r, job);
            break;
        case JOB_LIST:
        case JOB_GET:
            take_answer(r, job);
            break;
        case JOB_FORGET:
            take_forgotten(r, job);
            break;
        }
    }
}

/* ---- Starting jobs ---- */

static bool is_question_waiting(const struct history *r)
{
    for (size_t i = 0; i < r->job_count; i++)
        if (!r->jobs[i]->submitted && r->jobs[i]->sequence > r->submitted)
            return true;
    return false;
}

/* Returns when rows of the spool are to be sent to PostgreSQL; 0: no rows. They are already safe on
 * disk, so they wait for more rows, and for the ends of their runs, unless a query waits. */
static uint64_t feed_due(const struct history *r, uint64_t now)
{
    if (!r->postgres || r->feeding || (r->asked && !r->answers) || r->sent >= r->local->sequence)
        return 0;
    bool at_once = !r->write_problem[0] && (r->draining || is_question_waiting(r));
    return at_once || !r->gather_ms ? now : r->gather_ms;
}

/* After a failure, an empty batch tests whether the database answers again. */
static void begin_feed(struct history *r)
{
    struct brig_error err = {0};
    uint64_t now = clock_now_ms(), due = feed_due(r, now);
    bool probe = !r->asked || (r->retry_ms && now >= r->retry_ms);
    if (r->feeding || !(probe || (due && due <= now)))
        return;
    struct job *job = job_new(JOB_FEED);
    if (job)
        job->rows = calloc(SPOOL_BATCH_MAX, sizeof *job->rows);
    int count = job && job->rows ? spool_read(r->local, job->rows, &job->sequence, &err)
                                 : brig_fail_nomem(&err);
    if (count < 0) {
        job_free(job);
        note_failure(r, err.message);
        return;
    }
    job->row_count = (size_t)count;
    r->retry_ms = r->gather_ms = 0;
    r->feeding = true;
    r->submitted = job->sequence;
    worker_submit(&r->worker, job);
}

/* A query waits for rows that came before it, but only for HISTORY_FRESH_MS. */
static void begin_questions(struct history *r)
{
    uint64_t now = clock_now_ms();
    for (size_t i = 0; i < r->job_count; i++) {
        struct job *job = r->jobs[i];
        bool fresh = r->submitted >= job->sequence;
        if (job->submitted || !(fresh || now - job->given_ms >= HISTORY_FRESH_MS))
            continue;
        job->submitted = true;
        worker_submit(&r->worker, job);
    }
}

static void end_late(struct history *r)
{
    uint64_t now = clock_now_ms();
    for (size_t i = r->job_count; i-- > 0;) {
        /* refuse() may have dropped the channel and thereby all jobs. */
        struct job *job = i < r->job_count ? r->jobs[i] : NULL;
        if (!job || job->abandoned || now - job->given_ms < HISTORY_ANSWER_MS)
            continue;
        uint64_t tag = job->tag;
        abandon_job(r, job);
        refuse(r, tag, "the database does not answer in time");
    }
}

static void begin_forget(struct history *r)
{
    uint64_t now = clock_now_ms();
    if (!r->config->database.retention_ms || r->forgetting || now < r->forget_ms ||
        (r->postgres && !r->answers))
        return;
    struct job *job = job_new(JOB_FORGET);
    if (!job)
        return;
    job->before_ns = clock_wall_ns() - (int64_t)r->config->database.retention_ms * 1000000;
    r->forgetting = true;
    r->forget_ms = now + HISTORY_FORGET_MS;
    if (r->postgres) {
        worker_submit(&r->worker, job);
        return;
    }
    job_perform(job, r->local);
    take_forgotten(r, job);
    job_free(job);
}

void history_begin_due(struct history *r)
{
    if (!r->local)
        return;
    if (r->postgres) {
        begin_feed(r);
        begin_questions(r);
        end_late(r);
    }
    begin_forget(r);
}

static void sooner(uint64_t *due, uint64_t when)
{
    if (when && (!*due || when < *due))
        *due = when;
}

uint64_t history_next_due(const struct history *r)
{
    uint64_t due = 0;
    sooner(&due, r->retry_ms);
    sooner(&due, feed_due(r, clock_now_ms()));
    sooner(&due, r->held_until_ms);
    sooner(&due, r->stop_ms);
    if (r->local && r->executor)
        sooner(&due, r->calls_ms);
    if (r->local)
        sooner(&due, r->tidy_ms);
    if (r->config->database.retention_ms && r->answers && !r->forgetting)
        sooner(&due, r->forget_ms);
    for (size_t i = 0; i < r->job_count; i++)
        if (!r->jobs[i]->abandoned)
            sooner(&due, r->jobs[i]->given_ms +
                             (r->jobs[i]->submitted ? HISTORY_ANSWER_MS : HISTORY_FRESH_MS));
    return due;
}

/* ---- For /health ---- */

static const char *state_of(const struct history *r)
{
    if (!r->local)
        return "off";
    if (!r->asked)
        return "starting";
    return r->answers && (r->postgres || !r->held_until_ms) ? "ok" : "unavailable";
}

static void put(char *place, size_t size, const char *text)
{
    (void)snprintf(place, size, "%s", text);
}

static uint64_t lag_ms(int64_t oldest_ns)
{
    int64_t now_ns = clock_wall_ns();
    return oldest_ns > 0 && oldest_ns < now_ns ? (uint64_t)(now_ns - oldest_ns) / 1000000 : 0;
}

static struct message_store status_of(const struct history *r, const char *state)
{
    struct message_store status = {0};
    bool waits = !str_equal(state, "ok");
    put(status.type, sizeof status.type, !r->local ? "none" : r->postgres ? "postgres" : "sqlite");
    put(status.status, sizeof status.status, state);
    if (!r->local)
        return status;
    status.dropped = r->dropped + r->refused;
    status.thinned = r->thinned;
    status.full = history_is_full(r);
    if (waits && r->postgres) {
        status.spooled = spool_count(r->local);
        status.lag_ms = lag_ms(spool_oldest_ns(r->local)) / 1000 * 1000;
    }
    const char *spool = "the spool cannot be written";
    put(status.problem, sizeof status.problem,
        !r->write_problem[0] ? r->problem
        : r->postgres        ? spool
                             : r->write_problem);
    return status;
}

void history_tell_status(struct history *r)
{
    const char *state = state_of(r);
    uint64_t now = clock_now_ms();
    /* Counts change with every row and are rate-limited; a changed state is sent at once. */
    r->status_stale = str_equal(state, r->state) && now - r->status_ms < HISTORY_STATUS_MS;
    if (!r->http || r->status_stale)
        return;
    r->state = state;
    r->status_ms = now;
    const struct message_store status = status_of(r, state);
    if (memcmp(&status, &r->status, sizeof status) == 0)
        return;
    r->status = status;
    history_answer(r, MESSAGE_STORE, 0, &status, sizeof status);
}
