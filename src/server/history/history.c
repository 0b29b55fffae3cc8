/* SPDX-License-Identifier: MIT */
/* Theory of operation.
 *
 * The history process owns the history. It stores messages of the executor as rows in an SQLite
 * file, many in one transaction, and confirms them only after the commit. The file is the history
 * or, with PostgreSQL, its spool: a thread sends rows from the spool to PostgreSQL in batches, and
 * retries after a failure. Rows are removed from the spool when PostgreSQL has committed them. So a
 * slow, stopped or lost database does not slow down runs and loses no rows: they wait on disk, up
 * to database.spool_max. Killing this process at any time loses no confirmed row. Rows in transit
 * are sent again, which has no effect, because every row has an id.
 *
 * The process runs as the user that started brigd, without capabilities. It can reach only the
 * directory of its file, and the network only if the database is PostgreSQL. It trusts the
 * executor's order of messages. It does not trust the http process: a compromised one can read the
 * history, queue executions and have the executor add refused ones, nothing else. The executor makes the ids of
 * runs. The row of a refused execution never replaces another, and gives way to that of a run. A finished row
 * is changed only by another end of the same run. */
#include "server/history/history.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/history/old_spool.h"
#include "server/history/store.h"
#include "server/history/worker.h"
#include "server/role.h"

#define QUESTIONS_AT_ONCE 64

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

void history_note_write(struct history *r, int result, const struct brig_error *err)
{
    if (result < 0 && !r->write_problem[0])
        history_warn(r, "rows wait: %s", err->message);
    (void)snprintf(r->write_problem, sizeof r->write_problem, "%s", result < 0 ? err->message : "");
    if (result == 0 && !r->postgres) {
        r->answers = true;
        r->problem[0] = '\0';
    }
}

void history_drop_http(struct history *r)
{
    channel_free(take_ptr(&r->http));
    r->awaited = 0;
    history_forget_jobs(r);
}

void history_replace_http(struct history *r, const char *why)
{
    char line[BRIG_MESSAGE_MAX];
    (void)snprintf(line, sizeof line, "the http is started again: %s", why);
    (void)channel_send(r->control, MESSAGE_REPLACE, ROLE_HTTP, line, strlen(line), NULL);
    history_drop_http(r);
}

void history_drop_executor(struct history *r, int result, const char *why)
{
    char line[BRIG_MESSAGE_MAX];
    channel_free(take_ptr(&r->executor));
    if (result == BRIG_E_SYSTEM)
        return;
    (void)snprintf(line, sizeof line,
                   "the history is started again, for a new channel to the executor: %s", why);
    (void)channel_send(r->control, MESSAGE_REPLACE, ROLE_HISTORY, line, strlen(line), NULL);
}

/* ---- Space in the spool ---- */

enum room {
    ROOM_ENOUGH,
    ROOM_THIN, /* store rows without code and output */
    ROOM_NONE, /* drop rows of refused executions */
    ROOMS_
};

/* Only the spool has a size limit. */
static enum room room_for(const struct history *r, uint64_t used, enum message_type type)
{
    uint64_t most = r->config->database.spool_max_bytes;
    if (!r->postgres || used <= most || type == MESSAGE_NEW_EXECUTOR)
        return ROOM_ENOUGH;
    /* A compromised http process can report any number of refused requests; they must not displace
     * runs. Rows of runs are never dropped: no more are taken if the spool is full. */
    return type == MESSAGE_BLOCKED ? ROOM_NONE : ROOM_THIN;
}

bool history_is_full(const struct history *r)
{
    return r->postgres && spool_bytes(r->local) > 2 * r->config->database.spool_max_bytes;
}

static void note_rooms(struct history *r, const size_t counts[ROOMS_])
{
    r->thinned += counts[ROOM_THIN];
    r->dropped += counts[ROOM_NONE];
    if (counts[ROOM_THIN] > 0 && !r->warned_thin)
        history_warn(r, "the spool is full (database.spool_max): of new rows only hashes of "
                        "code and output are kept until the database takes rows again");
    if (history_is_full(r) && !r->warned_full)
        history_warn(r, "the spool is twice as full as it may be (database.spool_max): executions "
                        "are refused until the database takes rows");
    r->warned_thin = counts[ROOM_THIN] > 0 || (r->warned_thin && counts[ROOM_ENOUGH] == 0);
    r->warned_full = history_is_full(r);
}

/* ---- Rows ---- */

int64_t history_next_ns(struct history *r)
{
    int64_t ns = clock_wall_ns();
    r->last_ns = ns > r->last_ns ? ns : r->last_ns + 1;
    return r->last_ns;
}

static int make_request_row(struct history *r, const struct message *message, struct row_keep keep,
                            struct row *ret_row, struct brig_error *err)
{
    struct execution_request request;
    int result = execution_request_decode(message->bytes, message->length, &request, err);
    if (result < 0)
        return result;
    if (!execution_id_is_valid(request.id)) {
        execution_request_done(&request);
        return brig_fail(err, BRIG_E_INVALID, 0, "an execution without an id");
    }
    result = row_from_request(message->type == MESSAGE_BLOCKED ? ROW_BLOCKED : ROW_BEGIN, &request,
                              keep, store_server_id(r->local), history_next_ns(r), ret_row, err);
    execution_request_done(&request);
    return result;
}

static int make_result_row(struct history *r, const struct message *message, struct row_keep keep,
                           struct row *ret_row, struct brig_error *err)
{
    struct execution_result outcome;
    int result = execution_result_decode(message->bytes, message->length, &outcome, err);
    if (result < 0)
        return result;
    result = row_from_result(&outcome, keep, store_server_id(r->local), history_next_ns(r), ret_row,
                             err);
    execution_result_done(&outcome);
    if (result == 0)
        ret_row->result = (struct execution_bytes){message->bytes, message->length};
    return result;
}

static struct row_keep keep_of(const struct history *r, enum room room)
{
    struct row_keep keep = {r->config->database.code, r->config->database.output};
    if (room == ROOM_THIN && keep.code == KEEP_FULL)
        keep.code = KEEP_HASH;
    if (room == ROOM_THIN && keep.output == KEEP_FULL)
        keep.output = KEEP_HASH;
    return keep;
}

static int make_row(struct history *r, const struct message *message, enum room room,
                    struct row *ret_row, struct brig_error *err)
{
    const struct row_keep keep = keep_of(r, room);
    if (message->type == MESSAGE_NEW_EXECUTOR)
        return row_lost(store_server_id(r->local), history_next_ns(r), ret_row, err);
    if (message->type == MESSAGE_END)
        return make_result_row(r, message, keep, ret_row, err);
    return make_request_row(r, message, keep, ret_row, err);
}

/* Makes rows from messages; returns their number. Messages that make no row are counted and
 * skipped. */
static int make_rows(struct history *r, const struct message *messages, size_t count,
                     struct row *rows, size_t counts[ROOMS_], struct brig_error *err)
{
    uint64_t used = r->postgres ? spool_bytes(r->local) : 0;
    int made = 0;
    for (size_t i = 0; i < count; i++) {
        struct brig_error own = {0};
        enum room room = room_for(r, used, messages[i].type);
        used += messages[i].length;
        int result = room == ROOM_NONE ? 0 : make_row(r, &messages[i], room, &rows[made], &own);
        if (result == BRIG_E_INVALID) {
            r->dropped++;
            history_warn(r, "a row cannot be stored: %s", own.message);
            continue;
        }
        if (result < 0) {
            while (made > 0)
                row_done(&rows[--made]);
            *err = own;
            return result;
        }
        counts[room]++;
        made += room != ROOM_NONE;
    }
    return made;
}

/* Returns 0 if the rows are stored or will never be; BRIG_E_SYSTEM or BRIG_E_NOMEM if they must be
 * tried again. */
static int store_messages(struct history *r, const struct message *messages, size_t count,
                          struct brig_error *err)
{
    struct row rows[HISTORY_BATCH_MAX];
    size_t counts[ROOMS_] = {0};
    uint64_t refused = 0;
    if (!r->local)
        return 0;
    r->local->kept_max = r->config->queue.keep_per_key_bytes;
    int made = make_rows(r, messages, count, rows, counts, err);
    if (made < 0)
        return made;
    int result = store_apply_each(r->local, rows, (size_t)made, &refused, err);
    if (result == 0)
        history_tell_ended(r, rows, (size_t)made);
    while (made > 0)
        row_done(&rows[--made]);
    if (result < 0)
        return result;
    r->dropped += refused;
    if (refused > 0)
        history_warn(r, "%" PRIu64 " rows cannot be stored: %s", refused, err->message);
    if (r->postgres && !r->gather_ms)
        r->gather_ms = clock_now_ms() + HISTORY_GATHER_MS;
    note_rooms(r, counts);
    return 0;
}

/* ---- The executor ---- */

static bool is_row(enum message_type type)
{
    return type == MESSAGE_BEGIN || type == MESSAGE_END || type == MESSAGE_BLOCKED ||
           type == MESSAGE_NEW_EXECUTOR;
}

/* Returns 1 if there may be more, 0 if there is none now, negative if the executor is gone. Stops
 * after an order, which concerns the rows before it. */
static int read_batch(struct history *r, struct brig_error *err)
{
    for (size_t bytes = 0; r->batch_count < HISTORY_BATCH_MAX && bytes < HISTORY_BATCH_BYTES;) {
        automessage struct message message = {.fd = -1};
        int result = channel_receive(r->executor, &message, err);
        if (result <= 0)
            return result;
        if (history_is_order(message.type)) {
            r->order = message;
            message = (struct message){.fd = -1};
            return 1;
        }
        if (!is_row(message.type))
            return brig_fail(err, BRIG_E_INVALID, 0, "does not keep to the form");
        bytes += message.length;
        r->batch[r->batch_count++] = message;
        message = (struct message){.fd = -1};
    }
    return 1;
}

/* A batch that cannot be stored is held, and nothing more is read until it is stored. The executor
 * keeps messages that were not confirmed. */
static void store_batch(struct history *r)
{
    struct brig_error err = {0};
    if (r->batch_count == 0)
        return;
    int result = store_messages(r, r->batch, r->batch_count, &err);
    history_note_write(r, result, &err);
    r->held_until_ms = result < 0 ? clock_now_ms() + HISTORY_HOLD_MS : 0;
    if (result < 0)
        return;
    uint64_t tag = r->batch[r->batch_count - 1].tag;
    r->stored = tag;
    while (r->batch_count > 0)
        message_done(&r->batch[--r->batch_count]);
    if (!r->held_of_other)
        history_tell_executor(r, MESSAGE_STORED, tag, NULL, 0);
    r->held_of_other = false;
}

/* An order waits while earlier answers do. */
static bool may_take_order(const struct history *r)
{
    return !r->held_until_ms && !channel_is_busy(r->executor);
}

static void read_executor(struct history *r)
{
    struct brig_error err = {0};
    int result = 1;
    if (r->held_until_ms && clock_now_ms() >= r->held_until_ms)
        store_batch(r);
    while (r->executor && !r->held_until_ms && result > 0) {
        result = r->order.type ? 1 : read_batch(r, &err);
        store_batch(r);
        if (r->order.type && !may_take_order(r))
            return;
        if (r->order.type)
            history_take_order(r);
    }
    if (result < 0)
        history_drop_executor(r, result, err.message);
}

/* ---- The http process ---- */

/* Nothing arrives while a batch is held. */
static void check_awaited(struct history *r)
{
    if (r->stored >= r->awaited || !r->executor || r->held_until_ms ||
        clock_now_ms() >= r->awaited_ms)
        r->awaited = 0;
}

static void await_row(struct history *r, const struct message *message)
{
    r->awaited = message->tag;
    r->awaited_ms = clock_now_ms() + HISTORY_ROW_MS;
    check_awaited(r);
}

static int read_question(struct history *r)
{
    automessage struct message message = {.fd = -1};
    int result = channel_receive(r->http, &message, NULL);
    if (result <= 0)
        return result;
    static const struct {
        enum message_type type;
        void (*take)(struct history *history, const struct message *message);
    } permitted[] = {
        {MESSAGE_LIST, history_ask},
        {MESSAGE_GET, history_ask},
        {MESSAGE_SUBMIT, history_submit},
        {MESSAGE_RESULT, history_result},
        {MESSAGE_USAGE, history_usage},
        {MESSAGE_NOTE, history_note},
        {MESSAGE_NOTE_REMOVE, history_note},
        {MESSAGE_NOTE_LIST, history_note_list},
        {MESSAGE_ROW, await_row},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(permitted); i++) {
        if (permitted[i].type != message.type)
            continue;
        read_executor(r); /* the answer must include rows that came before the query */
        permitted[i].take(r, &message);
        return 1;
    }
    return BRIG_E_INVALID;
}

/* A question waits for the row that it is about, and while earlier answers do. */
static bool may_ask(const struct history *r)
{
    return r->http && !r->awaited && !channel_is_busy(r->http);
}

/* Limited, so that a http process which never stops asking does not delay the executor's rows. */
static void read_http(struct history *r)
{
    uint64_t end_ms = clock_now_ms() + HISTORY_ASK_MS;
    int result = 1;
    for (int i = 0; i < QUESTIONS_AT_ONCE && result > 0 && may_ask(r); i++) {
        result = read_question(r);
        if (clock_now_ms() >= end_ms)
            break;
    }
    if (result < 0 && result != BRIG_E_SYSTEM)
        history_replace_http(r, "does not keep to the form");
    else if (result < 0)
        history_drop_http(r);
}

/* ---- Start ---- */

static void warn_of_replaced(struct history *r)
{
    const char *aside = r->local ? store_replaces(r->local) : NULL;
    if (!aside)
        return;
    history_warn(r,
                 "WARNING: the %s was damaged; a new, empty one is used. The command .recover of "
                 "sqlite3(1) finds its rows in '%s'",
                 r->postgres ? "spool" : "history", str_shown(aside).text);
}

/* brigd 0.1 kept rows in files before it wrote them to a database of either kind. */
static void import_old_spool(struct history *r)
{
    struct brig_error err = {0};
    uint64_t damaged = 0;
    const char *directory = r->config->database.spool_dir;
    int count = old_spool_import(directory, r->local, &damaged, &err);
    if (count < 0)
        history_warn(r, "rows that brigd 0.1 has left in '%s' are not in the history yet: %s",
                     str_shown(directory).text, err.message);
    if (count > 0)
        history_warn(r, "took %d rows of brigd 0.1 from '%s'", count, str_shown(directory).text);
    if (damaged > 0)
        history_warn(r, "%" PRIu64 " bytes of brigd 0.1 in '%s' are damaged: see *.spool.damaged",
                     damaged, str_shown(directory).text);
}

static int open_all(struct history *r, struct brig_error *err)
{
    const typeof(r->config->database) *database = &r->config->database;
    if (database->store == STORE_NONE)
        return 0;
    (void)umask(077);
    int result = 0;
    if (database->store == STORE_POSTGRES)
        result = store_open_postgres(database->dsn, &r->postgres, err);
    if (result == 0)
        result = r->postgres ? spool_open(database->spool_dir, &r->local, err)
                             : store_open_sqlite(database->path, &r->local, err);
    if (result == 0)
        import_old_spool(r);
    if (result == 0)
        result = confine_history(r->config, err);
    if (result == 0 && r->postgres)
        result = worker_start(&r->worker, r->postgres, err);
    r->asked = r->answers = result == 0 && !r->postgres;
    return result;
}

static int say_ready(struct history *r, struct brig_error *err)
{
    char line[BRIG_MESSAGE_MAX] = "";
    uint64_t waiting = r->postgres ? spool_count(r->local) : 0;
    warn_of_replaced(r);
    if (waiting > 0)
        (void)snprintf(line, sizeof line, "%" PRIu64 " rows wait in the spool", waiting);
    return channel_send(r->control, MESSAGE_READY, 0, line, strlen(line), err);
}

/* Damage is noticed when a part of the file is read. Messages that were not stored are held. */
static int replace_damaged(struct history *r, struct brig_error *err)
{
    if (!r->local || !store_is_damaged(r->local))
        return 0;
    int result = store_replace(r->local, err);
    if (result == 0)
        warn_of_replaced(r);
    return result;
}

/* ---- The supervisor ---- */

/* Messages that an earlier executor sent before it died are still in its socket. */
static int take_peer(struct history *r, struct message *message, struct brig_error *err)
{
    struct channel **peer = message->tag == ROLE_EXECUTOR ? &r->executor
                            : message->tag == ROLE_HTTP   ? &r->http
                                                          : NULL;
    if (!peer || message->fd < 0)
        return 0;
    if (peer == &r->executor) {
        read_executor(r);
        r->held_of_other = r->batch_count > 0;
        message_done(&r->order);
        channel_free(take_ptr(peer));
    } else {
        history_drop_http(r);
    }
    r->state = NULL;
    r->status = (struct message_store){0};
    int result = channel_new(&message->fd, peer, err);
    /* All questions to PostgreSQL may be answered at one time, and the queue is sent as a whole. */
    if (result == 0)
        channel_add_room(*peer, HISTORY_JOBS_MAX * MESSAGE_BYTES_MAX);
    if (result == 0 && peer == &r->executor)
        history_send_queue(r);
    return result;
}

/* Returns 0, or negative if the supervisor is gone. */
static int read_control(struct history *r, struct brig_error *err)
{
    for (;;) {
        automessage struct message message = {.fd = -1};
        int result = channel_receive(r->control, &message, err);
        if (result <= 0)
            return result;
        if (message.type == MESSAGE_PEER)
            result = take_peer(r, &message, err);
        if (message.type == MESSAGE_PING)
            result = channel_send(r->control, MESSAGE_PONG, message.tag, NULL, 0, err);
        if (message.type == MESSAGE_CONFIG)
            result = config_reload(r->config, message.bytes, message.length, err);
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

static int timeout_of(const struct history *r)
{
    uint64_t due = history_next_due(r), now = clock_now_ms();
    uint64_t status = r->status_ms + HISTORY_STATUS_MS;
    if (r->http && r->status_stale && (!due || status < due))
        due = status;
    if (r->awaited && (!due || r->awaited_ms < due))
        due = r->awaited_ms;
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
    bool empty = !r->postgres || (r->sent >= r->local->sequence && !r->feeding);
    bool hopeless = r->asked && !r->answers && !r->feeding;
    return ((empty || hopeless) && !r->held_until_ms) || clock_now_ms() >= r->stop_ms;
}

static int serve_once(struct history *r, struct brig_error *err)
{
    struct pollfd polls[POLLS_];
    watch(&polls[POLL_CONTROL], r->control, true);
    watch(&polls[POLL_EXECUTOR], r->executor, !r->held_until_ms && !r->order.type);
    watch(&polls[POLL_HTTP], r->http, may_ask(r));
    polls[POLL_WORKER] =
        (struct pollfd){.fd = r->postgres ? worker_fd(&r->worker) : -1, .events = POLLIN};
    (void)poll(polls, POLLS_, timeout_of(r));
    flush(&r->executor);
    flush(&r->http);
    int result = channel_flush(r->control, err);
    if (result < 0)
        return result;
    read_executor(r);
    result = read_control(r, err);
    if (result < 0)
        return result;
    check_awaited(r);
    if (polls[POLL_HTTP].revents & (POLLHUP | POLLERR))
        r->awaited = 0; /* poll() would not wait any more */
    read_http(r);
    history_take_done(r);
    history_begin_due(r);
    history_orders_due(r);
    history_tell_status(r);
    return replace_damaged(r, err);
}

/* ---- The end ---- */

/* The PostgreSQL store is not closed: the thread may be using it. It ends with the process. */
static void release(struct history *r)
{
    history_forget_jobs(r);
    store_close(r->local);
    while (r->batch_count > 0)
        message_done(&r->batch[--r->batch_count]);
    message_done(&r->order);
    channel_free(r->http);
    channel_free(r->executor);
}

int history_main(struct server_config *config, struct channel *control, const struct role_fds *fds,
                 struct brig_error *err)
{
    struct history r = {.config = config, .control = control, .order = {.fd = -1}};
    (void)fds;
    int result = open_all(&r, err);
    if (result == 0)
        result = say_ready(&r, err);
    while (result == 0 && !is_over(&r))
        result = serve_once(&r, err);
    /* Without the supervisor nothing would read the error. */
    if (result < 0 && r.local && !r.draining)
        result = 0;
    release(&r);
    return result;
}
