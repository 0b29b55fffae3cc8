/* SPDX-License-Identifier: MIT */
/* Jobs of a store, and the thread that waits for PostgreSQL. Pointers to jobs go to it and come back through
 * pipes. */
#include "server/history/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
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
    free(job);
}

/* One more than is wanted tells whether there are more. */
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
    bool own = !*job->domain || (row.domain && strcmp(row.domain, job->domain) == 0);
    if (own) /* else it is as if there were none */
        row_json_one(&row, &job->text);
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

struct worker {
    struct store *store;
    pthread_t thread;
    int given[2], done[2]; /* neither is ever full: there are far fewer jobs */
    atomic_bool stopping;
};

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
    struct worker *worker = context;
    for (struct job *job; (job = next_job(worker->given[READ_END]));) {
        if (!worker->stopping)
            job_perform(job, worker->store);
        pass_job(worker->done[WRITE_END], job);
    }
    (void)close(take_fd(&worker->done[WRITE_END])); /* worker_stop() waits for this */
    return NULL;
}

static int start(struct worker *worker, struct brig_error *err)
{
    sigset_t all, before;
    if (pipe2(worker->given, O_CLOEXEC) < 0 || pipe2(worker->done, O_CLOEXEC | O_NONBLOCK) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "a pipe");
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&worker->thread, NULL, work, worker);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? brig_fail(err, BRIG_E_SYSTEM, error, "start a thread") : 0;
}

static void release(struct worker *worker)
{
    for (int i = READ_END; i <= WRITE_END; i++) {
        own_close(&worker->given[i]);
        own_close(&worker->done[i]);
    }
    free(worker);
}

int worker_new(struct store *store, struct worker **ret_worker, struct brig_error *err)
{
    struct worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return brig_fail_nomem(err);
    *worker = (struct worker){.store = store, .given = {-1, -1}, .done = {-1, -1}};
    int result = start(worker, err);
    if (result < 0)
        release(worker);
    else
        *ret_worker = worker;
    return result;
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

bool worker_stop(struct worker *worker, int timeout_ms)
{
    if (!worker)
        return true;
    uint64_t end_ms = clock_now_ms() + (uint64_t)timeout_ms;
    struct pollfd done = {.fd = worker_fd(worker), .events = POLLIN};
    worker->stopping = true;
    (void)close(take_fd(&worker->given[WRITE_END]));
    do {
        uint64_t now_ms = clock_now_ms();
        if (now_ms >= end_ms)
            return false;
        (void)poll(&done, 1, (int)(end_ms - now_ms));
        for (struct job *job; (job = worker_take(worker));)
            job_free(job);
    } while (!(done.revents & POLLHUP));
    (void)pthread_join(worker->thread, NULL);
    release(worker);
    return true;
}
