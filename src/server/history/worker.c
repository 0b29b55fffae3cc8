/* SPDX-License-Identifier: MIT */
/* The thread that waits for the database. */
#include "server/history/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "server/history/row.h"
#include "server/history/row_json.h"
#include "server/history/store.h"

struct queue {
    struct job *first, **last;
};

struct worker {
    const struct store_operations *operations;
    struct store *store;
    int event;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct queue waiting, done;
    bool stopping, stopped;
};

struct job *job_new(enum job_kind kind)
{
    struct job *job = calloc(1, sizeof *job);
    if (job)
        job->kind = kind;
    return job;
}

void job_free(struct job *job)
{
    if (!job)
        return;
    spool_batch_done(&job->batch);
    str_done(&job->text);
    free(job);
}

static void put(struct queue *queue, struct job *job)
{
    job->next = NULL;
    *queue->last = job;
    queue->last = &job->next;
}

static struct job *take(struct queue *queue)
{
    struct job *job = queue->first;
    if (!job)
        return NULL;
    queue->first = job->next;
    if (!queue->first)
        queue->last = &queue->first;
    return job;
}

/* ---- Applying ---- */

static void free_rows(struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        row_done(&rows[i]);
    free(rows);
}

/* One by one, so that a row the database will never take does not hold up the others. */
static int apply_apart(struct worker *worker, struct job *job, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int result = worker->operations->apply(worker->store, &rows[i], 1, &job->err);
        if (result == BRIG_E_INVALID)
            job->refused++;
        else if (result < 0)
            return result;
    }
    return 0;
}

static int apply(struct worker *worker, struct job *job)
{
    struct row *rows = calloc(job->batch.count + 1, sizeof *rows);
    size_t count = 0;
    if (!rows)
        return brig_fail_nomem(&job->err);
    for (size_t i = 0; i < job->batch.count; i++) {
        const struct spool_record *record = &job->batch.records[i];
        int result = row_decode(record->bytes, record->length, &rows[count], &job->err);
        if (result == BRIG_E_NOMEM) {
            free_rows(rows, count);
            return result;
        }
        if (result < 0)
            job->refused++;
        else
            count++;
    }
    int result = worker->operations->apply(worker->store, rows, count, &job->err);
    if (result == BRIG_E_INVALID)
        result = apply_apart(worker, job, rows, count);
    free_rows(rows, count);
    return result;
}

/* ---- Asking ---- */

/* One more than is wanted tells whether there are more. */
static int list(struct worker *worker, struct job *job)
{
    size_t wanted = (size_t)job->query.limit;
    struct row *rows = calloc(wanted + 1, sizeof *rows);
    if (!rows)
        return brig_fail_nomem(&job->err);
    int count = worker->operations->list(worker->store, &job->query, rows, wanted + 1, &job->err);
    if (count >= 0) {
        char next[QUERY_CURSOR_MAX];
        bool more = (size_t)count > wanted;
        if (more)
            query_cursor(&rows[wanted - 1], next);
        row_json_list(rows, more ? wanted : (size_t)count, more ? next : NULL, &job->text);
    }
    free_rows(rows, count < 0 ? 0 : (size_t)count);
    return count < 0 ? count : 0;
}

static int get(struct worker *worker, struct job *job)
{
    struct row row;
    int count = worker->operations->get(worker->store, job->id, &row, &job->err);
    if (count <= 0)
        return count;
    bool own = !*job->domain || (row.domain && strcmp(row.domain, job->domain) == 0);
    if (own) /* else it is as if there were none */
        row_json_one(&row, &job->text);
    row_done(&row);
    return 0;
}

static void perform(struct worker *worker, struct job *job)
{
    switch (job->kind) {
    case JOB_APPLY:
        job->result = apply(worker, job);
        return;
    case JOB_LIST:
        job->result = list(worker, job);
        break;
    case JOB_GET:
        job->result = get(worker, job);
        break;
    case JOB_FORGET:
        job->result = worker->operations->forget(worker->store, job->before_ns, &job->err);
        return;
    }
    if (job->result == 0 && job->text.failed)
        job->result = brig_fail_nomem(&job->err);
}

/* ---- The thread ---- */

static void *work(void *context)
{
    struct worker *worker = context;
    (void)pthread_mutex_lock(&worker->lock);
    while (!worker->stopping) {
        struct job *job = take(&worker->waiting);
        if (!job) {
            (void)pthread_cond_wait(&worker->changed, &worker->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&worker->lock);
        perform(worker, job);
        (void)pthread_mutex_lock(&worker->lock);
        put(&worker->done, job);
        (void)eventfd_write(worker->event, 1);
    }
    worker->stopped = true;
    (void)pthread_cond_broadcast(&worker->changed);
    (void)pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static int start(struct worker *worker, struct brig_error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&worker->thread, NULL, work, worker);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? brig_fail(err, BRIG_E_SYSTEM, error, "start a thread") : 0;
}

int worker_new(const struct store_operations *operations, struct store *store,
               struct worker **ret_worker, struct brig_error *err)
{
    pthread_condattr_t attributes;
    struct worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return brig_fail_nomem(err);
    worker->operations = operations;
    worker->store = store;
    worker->waiting.last = &worker->waiting.first;
    worker->done.last = &worker->done.first;
    (void)pthread_mutex_init(&worker->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&worker->changed, &attributes);
    worker->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result = worker->event < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "an eventfd") : 0;
    if (result == 0)
        result = start(worker, err);
    if (result < 0) {
        own_close(&worker->event);
        free(worker);
        return result;
    }
    *ret_worker = worker;
    return 0;
}

int worker_fd(const struct worker *worker)
{
    return worker->event;
}

void worker_submit(struct worker *worker, struct job *job)
{
    (void)pthread_mutex_lock(&worker->lock);
    put(&worker->waiting, job);
    (void)pthread_cond_broadcast(&worker->changed);
    (void)pthread_mutex_unlock(&worker->lock);
}

struct job *worker_take(struct worker *worker)
{
    eventfd_t count;
    (void)pthread_mutex_lock(&worker->lock);
    (void)eventfd_read(worker->event, &count);
    struct job *job = take(&worker->done);
    if (worker->done.first)
        (void)eventfd_write(worker->event, 1);
    (void)pthread_mutex_unlock(&worker->lock);
    return job;
}

static bool wait_stopped(struct worker *worker, int timeout_ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)pthread_mutex_lock(&worker->lock);
    worker->stopping = true;
    (void)pthread_cond_broadcast(&worker->changed);
    int error = 0;
    while (!worker->stopped && error == 0)
        error = pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
    bool stopped = worker->stopped;
    (void)pthread_mutex_unlock(&worker->lock);
    return stopped;
}

bool worker_stop(struct worker *worker, int timeout_ms)
{
    if (!worker)
        return true;
    if (!wait_stopped(worker, timeout_ms))
        return false;
    (void)pthread_join(worker->thread, NULL);
    for (struct job *job; (job = take(&worker->waiting));)
        job_free(job);
    for (struct job *job; (job = take(&worker->done));)
        job_free(job);
    (void)close(worker->event);
    (void)pthread_cond_destroy(&worker->changed);
    (void)pthread_mutex_destroy(&worker->lock);
    free(worker);
    return true;
}
