/* SPDX-License-Identifier: MIT */
/* Theory of operation.
 *
 * The history process owns the history and nothing else. What the executor tells it is appended to the spool and
 * only then called stored; a thread of its own brings it from there to the database, in batches, and
 * again after a failure; it lets rows lie for a moment, so that they are brought together, unless somebody
 * asks for them. So a database that is slow, stopped or gone slows no run and loses no row: rows
 * wait on disk, up to database.spool_max. Killing this process at any moment loses nothing that was
 * called stored; records that were on their way are brought once more, which databases bear, as every
 * row has its id.
 *
 * It runs as whoever started brigd, without capabilities, and can reach its own directories alone; the
 * network only if the database is PostgreSQL. It trusts the executor's order of messages, and of the http process
 * nothing: a hostile http process can read the history and add refused executions to it, no more. The executor
 * makes the ids of what is run; a row that the http process adds never replaces one and yields to the executor's;
 * and a row that has its end is written once more only by the end of the same run. */
#include "server/history/history.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config.h"
#include "server/history/confine.h"
#include "server/history/spool.h"
#include "server/history/store.h"
#include "server/history/worker.h"
#include "server/role.h"

void history_warn(struct history *r, const char *format, ...)
{
    autostr struct str line = {0};
    va_list args;
    va_start(args, format);
    str_vappendf(&line, format, args);
    va_end(args);
    if (!line.failed)
        (void)channel_send(r->control, MESSAGE_WARNING, 0, line.data, line.length, NULL);
}

/* ---- The beginning ---- */

static int open_all(struct history *r, struct brig_error *err)
{
    switch (r->config->database.store) {
    case STORE_SQLITE:
        r->operations = &store_sqlite;
        break;
    case STORE_POSTGRES:
        r->operations = &store_postgres;
        break;
    case STORE_NONE:
        return 0;
    }
    (void)umask(077);
    int result = r->operations->open(r->config, &r->store, err);
    if (result == 0)
        result = spool_open(r->config->database.spool_dir, &r->spool, err);
    if (result == 0)
        r->appended = spool_waiting_records(r->spool);
    if (result == 0)
        result = confine_history(r->config, err);
    if (result == 0)
        result = worker_new(r->operations, r->store, &r->worker, err);
    return result;
}

static int say_ready(struct history *r, struct brig_error *err)
{
    char line[BRIG_MESSAGE_MAX] = "";
    if (r->spool && spool_damaged_bytes(r->spool) > 0)
        history_warn(r, "%llu bytes at the end of the spool were torn, and are cut away",
                     (unsigned long long)spool_damaged_bytes(r->spool));
    if (r->spool && spool_waiting_records(r->spool) > 0)
        (void)snprintf(line, sizeof line, "%llu rows wait in the spool",
                       (unsigned long long)spool_waiting_records(r->spool));
    return channel_send(r->control, MESSAGE_READY, 0, line, strlen(line), err);
}

/* ---- The supervisor ---- */

/* What an earlier executor had sent before it died is in its socket still. */
static int take_peer(struct history *r, struct message *message, struct brig_error *err)
{
    struct channel **peer = message->tag == ROLE_EXECUTOR ? &r->executor
                            : message->tag == ROLE_HTTP   ? &r->http
                                                          : NULL;
    if (!peer || message->fd < 0)
        return 0;
    if (peer == &r->executor)
        history_read_executor(r);
    else
        history_forget_jobs(r);
    channel_free(take_ptr(peer));
    r->status[0] = '\0';
    return channel_new(&message->fd, peer, err);
}

/* 0, or negative when the supervisor is gone. */
static int read_control(struct history *r, struct brig_error *err)
{
    for (;;) {
        automessage struct message message = {.fd = -1};
        int result = channel_receive(r->control, &message, err);
        if (result <= 0)
            return result;
        if (message.type == MESSAGE_PEER)
            result = take_peer(r, &message, err);
        if (message.type == MESSAGE_DRAIN && !r->draining) {
            r->draining = true;
            r->stop_ms = clock_now_ms() + HISTORY_STOP_MS;
        }
        if (result < 0)
            return result;
    }
}

/* ---- The loop ---- */

enum { POLL_CONTROL, POLL_EXECUTOR, POLL_HTTP, POLL_WORKER, POLLS_ };

static void watch(struct pollfd *poll, const struct channel *channel, bool reads)
{
    poll->fd = channel ? channel_fd(channel) : -1;
    poll->events =
        (short)((reads ? POLLIN : 0) | (channel && channel_wants_write(channel) ? POLLOUT : 0));
    poll->revents = 0;
}

/* Whoever is woken by every message spends more on waking than on the rows. Until they are read they
 * are in the socket, which outlives the executor, and the executor keeps what it was not told of. */
static bool naps(struct history *r)
{
    if (r->nap_until_ms && clock_now_ms() >= r->nap_until_ms)
        r->nap_until_ms = 0;
    return r->nap_until_ms != 0;
}

static int timeout_of(const struct history *r)
{
    uint64_t due = history_next_due(r), now = clock_now_ms();
    if (r->nap_until_ms && (!due || r->nap_until_ms < due))
        due = r->nap_until_ms;
    /* Numbers that were held back for a while. */
    uint64_t status = r->status_ms + HISTORY_STATUS_MS;
    if (r->http && status > now && (!due || status < due))
        due = status;
    if (!due)
        return -1;
    return due <= now ? 0 : (int)(due - now);
}

static void flush(struct channel **channel)
{
    if (*channel && channel_wants_write(*channel) && channel_flush(*channel, NULL) < 0)
        channel_free(take_ptr(channel));
}

static bool is_over(const struct history *r)
{
    if (!r->draining)
        return false;
    bool empty = !r->spool || (spool_waiting_records(r->spool) == 0 && !r->applying);
    bool hopeless = r->asked && !r->answers && !r->applying;
    return ((empty || hopeless) && !r->held_until_ms) || clock_now_ms() >= r->stop_ms;
}

static int serve_once(struct history *r, struct brig_error *err)
{
    struct pollfd polls[POLLS_];
    watch(&polls[POLL_CONTROL], r->control, true);
    watch(&polls[POLL_EXECUTOR], r->executor, !r->held_until_ms && !naps(r));
    watch(&polls[POLL_HTTP], r->http, true);
    polls[POLL_WORKER] =
        (struct pollfd){.fd = r->worker ? worker_fd(r->worker) : -1, .events = POLLIN};
    (void)poll(polls, POLLS_, timeout_of(r));
    flush(&r->executor);
    flush(&r->http);
    int result = channel_flush(r->control, err);
    if (result < 0)
        return result;
    history_retry_held(r);
    /* Rows before questions, so that a question sees what came before it. */
    history_read_executor(r);
    result = read_control(r, err);
    if (result < 0)
        return result;
    history_read_executor(r);
    history_read_http(r);
    history_take_done(r);
    history_begin_due(r);
    history_tell_status(r);
    return 0;
}

/* ---- The end ---- */

static void release(struct history *r)
{
    history_forget_jobs(r);
    if (worker_stop(r->worker, HISTORY_STOP_MS) && r->operations && r->store)
        r->operations->close(r->store);
    spool_free(r->spool);
    message_done(&r->held);
    channel_free(r->http);
    channel_free(r->executor);
}

int history_main(const struct server_config *config, struct channel *control, int listener,
                 struct brig_error *err)
{
    struct history r = {.config = config, .control = control, .held = {.fd = -1}};
    (void)listener;
    int result = open_all(&r, err);
    if (result == 0)
        result = say_ready(&r, err);
    while (result == 0 && !is_over(&r))
        result = serve_once(&r, err);
    /* The supervisor is gone: there is nobody to report to, and no reason to complain. */
    if (result < 0 && r.worker && !r.draining)
        result = 0;
    release(&r);
    return result;
}
