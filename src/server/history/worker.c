/* SPDX-License-Identifier: MIT */
/* Jobs of a store, and the thread that blocks on PostgreSQL. Pointers to jobs travel through
 * pipes. */
#include "server/history/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "server/history/row.h"
#include "server/history/store.h"

/* ---- Jobs ---- */

struct job *job_new(enum job_kind kind)
{
    struct job *job = calloc(1, sizeof *job);
    if (job)
        job->kind = kind;
    return job;
}

static void free_rows(struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        row_done(&rows[i]);
    free(rows);
}

void job_free(struct job *job)
{
    if (!job)
        return;
    free_rows(job->rows, job->row_count);
    str_done(&job->text);
    row_more_done(&job->more);
    free(job);
}

/* One more row than wanted shows whether there are more. */
static int list(struct store *store, struct job *job)
{
    size_t wanted = (size_t)job->query.limit;
    struct row *rows = calloc(wanted + 1, sizeof *rows);
    if (!rows)
        return brig_fail_nomem(&job->err);
    int count = store_list(store, &job->query, rows, wanted + 1, &job->err);
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

static int get(struct store *store, struct job *job)
{
    struct row row;
    int count = store_get(store, job->id, &row, &job->err);
    if (count <= 0)
        return count;
    /* A row of the spool without its start is complete only in PostgreSQL. */
    bool whole = row.language || !store->is_spool;
    bool own = !*job->domain || (row.domain && strcmp(row.domain, job->domain) == 0);
    if (own && whole) /* otherwise the answer is "not found" */
        row_json_one(&row, &job->more, &job->text);
    job->pending = !execution_status_is_final(execution_status_from_name(row.status));
    row_done(&row);
    return 0;
}

void job_perform(struct job *job, struct store *store)
{
    switch (job->kind) {
    case JOB_FEED:
        job->result = store_apply_each(store, job->rows, job->row_count, &job->refused, &job->err);
        return;
    case JOB_LIST:
        job->result = list(store, job);
        break;
    case JOB_GET:
        job->result = get(store, job);
        break;
    case JOB_FORGET:
        job->result = store_forget(store, job->before_ns, &job->err);
        return;
    }
    if (job->result == 0 && job->text.failed)
        job->result = brig_fail_nomem(&job->err);
}

/* ---- The thread ---- */

enum { READ_END, WRITE_END };

static struct job *next_job(int fd)
{
    struct job *job = NULL;
    ssize_t got;
    do
        got = read(fd, &job, sizeof job);
    while (got < 0 && errno == EINTR);
    return got == sizeof job ? job : NULL;
}

static void pass_job(int fd, struct job *job)
{
    while (write(fd, &job, sizeof job) < 0 && errno == EINTR)
        continue;
}

static void *work(void *context)
{
    const struct worker *worker = context;
    for (struct job *job; (job = next_job(worker->given[READ_END]));) {
        job_perform(job, worker->store);
        pass_job(worker->done[WRITE_END], job);
    }
    return NULL;
}

int worker_start(struct worker *worker, struct store *store, struct brig_error *err)
{
    sigset_t all, before;
    pthread_t thread;
    worker->store = store;
    if (pipe2(worker->given, O_CLOEXEC) < 0 || pipe2(worker->done, O_CLOEXEC | O_NONBLOCK) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "a pipe");
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, work, worker);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return brig_fail(err, BRIG_E_SYSTEM, error, "start a thread");
    (void)pthread_detach(thread);
    return 0;
}

int worker_fd(const struct worker *worker)
{
    return worker->done[READ_END];
}

void worker_submit(struct worker *worker, struct job *job)
{
    pass_job(worker->given[WRITE_END], job);
}

struct job *worker_take(struct worker *worker)
{
    return next_job(worker->done[READ_END]);
}
