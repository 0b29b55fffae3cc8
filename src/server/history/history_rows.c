/* SPDX-License-Identifier: MIT */
/* From messages to records in the spool. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config.h"
#include "server/history/history.h"
#include "server/history/row.h"
#include "server/history/spool.h"

#define QUESTIONS_AT_ONCE 64

/* ---- How much room there is ---- */

enum room {
    ROOM_ENOUGH,
    ROOM_THIN, /* code and output are left out */
    ROOM_NONE, /* rows are dropped */
};

static enum room room_for(const struct history *r, enum message_type type)
{
    uint64_t waiting = spool_waiting_bytes(r->spool), most = r->config->database.spool_max_bytes;
    if (waiting <= most)
        return ROOM_ENOUGH;
    /* What the http process reports of its own accord must not crowd out what was run. */
    if (waiting > 2 * most || type == MESSAGE_BLOCKED)
        return ROOM_NONE;
    return ROOM_THIN;
}

static void note_room(struct history *r, enum room room)
{
    if (room == ROOM_THIN) {
        r->thinned++;
        if (!r->warned_thin)
            history_warn(r, "the spool is full (database.spool_max): of new rows only hashes of "
                            "code and output are kept until the database takes rows again");
        r->warned_thin = true;
    } else if (room == ROOM_NONE) {
        r->dropped++;
        if (!r->warned_drop)
            history_warn(r, "the spool is twice as full as it may be (database.spool_max): rows "
                            "are dropped until the database takes some");
        r->warned_drop = true;
    } else {
        r->warned_thin = r->warned_drop = false;
    }
}

/* ---- Rows ---- */

static int64_t next_ns(struct history *r)
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
                              keep, spool_server_id(r->spool), next_ns(r), ret_row, err);
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
    result = row_from_result(&outcome, keep, spool_server_id(r->spool), next_ns(r), ret_row, err);
    execution_result_done(&outcome);
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
        return row_lost(spool_server_id(r->spool), next_ns(r), ret_row, err);
    if (message->type == MESSAGE_END)
        return make_result_row(r, message, keep, ret_row, err);
    return make_request_row(r, message, keep, ret_row, err);
}

/* 0 when it is safe, or will never be; BRIG_E_SYSTEM or BRIG_E_NOMEM when it is to be tried again. */
static int store_message(struct history *r, const struct message *message, struct brig_error *err)
{
    struct row row;
    autostr struct str bytes = {0};
    if (!r->operations)
        return 0;
    enum room room =
        message->type == MESSAGE_NEW_EXECUTOR ? ROOM_ENOUGH : room_for(r, message->type);
    if (room == ROOM_NONE) {
        note_room(r, room);
        return 0;
    }
    int result = make_row(r, message, room, &row, err);
    if (result == 0) {
        result = row_encode(&row, &bytes, err);
        row_done(&row);
    }
    if (result == 0)
        result = spool_append(r->spool, bytes.data, bytes.length, err);
    if (result == BRIG_E_INVALID) {
        r->dropped++;
        history_warn(r, "a row cannot be stored: %s", err->message);
        return 0;
    }
    if (result == 0) {
        r->appended++;
        if (!r->gather_ms)
            r->gather_ms = clock_now_ms() + HISTORY_GATHER_MS;
        note_room(r, room);
    }
    return result;
}

/* ---- The executor ---- */

static bool is_row(enum message_type type)
{
    return type == MESSAGE_BEGIN || type == MESSAGE_END || type == MESSAGE_NEW_EXECUTOR;
}

static void note_stored(struct history *r, uint64_t tag)
{
    r->stored_tag = tag;
    r->has_stored = true;
}

static void tell_stored(struct history *r)
{
    if (!r->has_stored || !r->executor)
        return;
    r->has_stored = false;
    if (channel_send(r->executor, MESSAGE_STORED, r->stored_tag, NULL, 0, NULL) < 0)
        channel_free(take_ptr(&r->executor));
}

/* Nothing more is read until the disk takes it; the executor keeps what it has not been told of. */
static void hold(struct history *r, struct message *message, const struct brig_error *err)
{
    if (!r->held_until_ms)
        history_warn(r, "rows wait: %s", err->message);
    r->held = *message;
    *message = (struct message){.fd = -1};
    r->held_until_ms = clock_now_ms() + HISTORY_HOLD_MS;
}

void history_retry_held(struct history *r)
{
    struct brig_error err = {0};
    if (!r->held_until_ms || clock_now_ms() < r->held_until_ms)
        return;
    if (store_message(r, &r->held, &err) < 0) {
        r->held_until_ms = clock_now_ms() + HISTORY_HOLD_MS;
        return;
    }
    note_stored(r, r->held.tag);
    message_done(&r->held);
    r->held_until_ms = 0;
    tell_stored(r);
}

/* 1 to go on, 0 when there is nothing more for now, negative when the executor is gone. */
static int read_one(struct history *r)
{
    automessage struct message message = {.fd = -1};
    struct brig_error err = {0};
    int result = channel_receive(r->executor, &message, &err);
    if (result <= 0)
        return result;
    if (!is_row(message.type)) {
        history_warn(r, "the executor does not keep to the form");
        return BRIG_E_INVALID;
    }
    uint64_t tag = message.tag;
    if (store_message(r, &message, &err) < 0) {
        hold(r, &message, &err);
        return 0;
    }
    note_stored(r, tag);
    return 1;
}

void history_read_executor(struct history *r)
{
    int result = 1;
    while (r->executor && !r->held_until_ms && result > 0)
        result = read_one(r);
    if (r->has_stored)
        r->nap_until_ms = clock_now_ms() + HISTORY_NAP_MS;
    tell_stored(r);
    if (result < 0)
        channel_free(take_ptr(&r->executor));
}

/* ---- The http process ---- */

static int read_question(struct history *r)
{
    automessage struct message message = {.fd = -1};
    struct brig_error err = {0};
    int result = channel_receive(r->http, &message, &err);
    if (result <= 0)
        return result;
    if (message.type == MESSAGE_BLOCKED) {
        if (store_message(r, &message, &err) < 0)
            r->dropped++; /* nobody waits for it to be safe */
        return 1;
    }
    if (message.type != MESSAGE_LIST && message.type != MESSAGE_GET) {
        history_warn(r, "the http process does not keep to the form");
        return BRIG_E_INVALID;
    }
    history_ask(r, &message);
    return 1;
}

/* So many at a time: one that never stops asking must not keep the executor's rows waiting. */
void history_read_http(struct history *r)
{
    int result = 1;
    for (int i = 0; i < QUESTIONS_AT_ONCE && r->http && result > 0; i++)
        result = read_question(r);
    if (result >= 0)
        return;
    channel_free(take_ptr(&r->http));
    history_forget_jobs(r);
}
