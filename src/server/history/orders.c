/* SPDX-License-Identifier: MIT */
/* Messages about the queue, idempotency keys and callbacks: what the http process submits, and what
 * the executor claims. */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/history/history.h"
#include "server/history/notes.h"
#include "server/history/query.h"
#include "server/history/queue.h"
#include "server/history/store.h"
#include "server/history/usage.h"

#define TIDY_MS (10 * 60000)
#define CALL_RETRY_MS 1000 /* after a failure of SQLite, or while the executor reads others */
#define DAY_NS (INT64_C(86400) * 1000000000)

static int64_t forget_ns(const struct history *r)
{
    return clock_wall_ns() - (int64_t)r->config->queue.keep_ms * 1000000;
}

void history_tell_executor(struct history *r, enum message_type type, uint64_t tag,
                           const void *bytes, size_t length)
{
    struct brig_error err = {0};
    int result = r->executor ? channel_send(r->executor, type, tag, bytes, length, &err) : 0;
    if (result < 0)
        history_drop_executor(r, result, err.message);
}

static void send_entries(struct history *r, const struct queue_entry *entries, size_t count)
{
    autostr struct str bytes = {0};
    queue_entries_encode(entries, count, &bytes);
    if (!bytes.failed)
        history_tell_executor(r, MESSAGE_WAITING, 0, bytes.data, bytes.length);
}

void history_send_queue(struct history *r)
{
    autofree struct queue_entry *entries = NULL;
    struct brig_error err = {0};
    int count = r->local ? QUEUE_ENTRIES_MAX : 0;
    r->calls = 0;
    r->calls_ms = clock_now_ms();
    if (!r->local)
        return;
    entries = calloc(QUEUE_ENTRIES_MAX, sizeof *entries);
    if (!entries || queue_calls_again(r->local, clock_wall_ns(), &err) < 0)
        history_warn(r, "callbacks wait: %s", entries ? err.message : "out of memory");
    for (int64_t after_ns = 0; entries && count == QUEUE_ENTRIES_MAX;) {
        count = queue_list(r->local, after_ns, entries, &err);
        if (count < 0)
            history_warn(r, "executions of the queue wait: %s", err.message);
        if (count > 0)
            send_entries(r, entries, (size_t)count);
        after_ns = count > 0 ? entries[count - 1].created_ns : 0;
    }
}

void history_tell_ended(struct history *r, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].kind == ROW_LOST)
            history_answer(r, MESSAGE_ENDED, 0, NULL, 0);
        if (rows[i].kind == ROW_END && rows[i].kept)
            history_answer(r, MESSAGE_ENDED, 0, rows[i].id, strlen(rows[i].id));
        if (rows[i].kind == ROW_LOST || rows[i].kept)
            r->calls_ms = clock_now_ms();
    }
}

/* ---- Questions of the http process ---- */

static void answer_verdict(struct history *r, uint64_t tag, enum message_verdict verdict,
                           const char *id)
{
    char bytes[1 + EXECUTION_ID_LENGTH];
    bytes[0] = (char)verdict;
    memcpy(bytes + 1, id, EXECUTION_ID_LENGTH);
    history_answer(r, MESSAGE_QUEUED, tag, bytes, sizeof bytes);
}

static int submit(struct history *r, struct execution_request *request,
                  enum message_verdict *ret_verdict, char ret_id[EXECUTION_ID_LENGTH + 1],
                  struct brig_error *err)
{
    const struct row_keep keep = {r->config->database.code, r->config->database.output};
    const struct queue_bounds bounds = {.max = r->config->queue.max,
                                        .max_per_key = r->config->queue.max_per_key,
                                        .forget_ns = forget_ns(r)};
    struct row row;
    r->local->kept_max = r->config->queue.keep_per_key_bytes;
    int result = row_from_request(ROW_QUEUED, request, keep, store_server_id(r->local),
                                  history_next_ns(r), &row, err);
    if (result < 0)
        return result;
    result = queue_submit(r->local, &row, request, &bounds, ret_verdict, ret_id, err);
    struct queue_entry entry = {.priority = request->priority, .created_ns = row.created_ns};
    row_done(&row);
    if (result < 0 || *ret_verdict != VERDICT_GO)
        return result;
    (void)snprintf(entry.id, sizeof entry.id, "%s", request->id);
    (void)snprintf(entry.domain, sizeof entry.domain, "%s", request->domain);
    send_entries(r, &entry, 1);
    if (r->postgres && !r->gather_ms)
        r->gather_ms = clock_now_ms() + HISTORY_GATHER_MS;
    return 0;
}

/* This process chooses the id: a compromised http process could choose that of another row. */
void history_submit(struct history *r, const struct message *message)
{
    struct execution_request request;
    struct brig_error err = {0};
    enum message_verdict verdict = VERDICT_LATER;
    char own[EXECUTION_ID_LENGTH + 1], id[EXECUTION_ID_LENGTH + 1] = "";
    int result = r->local
                     ? execution_request_decode(message->bytes, message->length, &request, &err)
                     : brig_fail(&err, BRIG_E_STATE, 0, "the server keeps no history");
    if (result == 0) {
        execution_id_make(own);
        request.id = own;
        request.queued = true;
        result = submit(r, &request, &verdict, id, &err);
        execution_request_done(&request);
    }
    if (result < 0)
        history_answer(r, MESSAGE_FAILED, message->tag, err.message, strlen(err.message));
    else
        answer_verdict(r, message->tag, verdict, id);
}

/* The id, then the domain. */
static bool read_subject(const struct message *message, char ret_id[EXECUTION_ID_LENGTH + 1],
                         const char **ret_domain)
{
    (void)snprintf(ret_id, EXECUTION_ID_LENGTH + 1, "%s", message->bytes);
    if (!execution_id_is_valid(ret_id))
        return false;
    for (char *c = ret_id; *c; c++)
        *c = *c >= 'A' && *c <= 'F' ? (char)(*c | 0x20) : *c;
    *ret_domain = message->bytes + EXECUTION_ID_LENGTH;
    return true;
}

void history_result(struct history *r, const struct message *message)
{
    static const enum message_type types[] = {MESSAGE_MISSING, MESSAGE_PENDING, MESSAGE_OUTCOME};
    struct brig_error err = {0};
    autostr struct str bytes = {0};
    char id[EXECUTION_ID_LENGTH + 1];
    const char *domain = "";
    int found = 0, result = 0;
    if (r->local && read_subject(message, id, &domain))
        result = queue_result(r->local, id, domain, &found, &bytes, &err);
    if (result == 0 && bytes.failed)
        result = brig_fail_nomem(&err);
    if (result < 0)
        history_answer(r, MESSAGE_FAILED, message->tag, err.message, strlen(err.message));
    else
        history_answer(r, types[found], message->tag, bytes.data, bytes.length);
}

/* Sends the note, or why there is none. */
static void answer_note(struct history *r, const struct message *message, int result,
                        const struct str *bytes, const struct brig_error *err)
{
    const char *why = bytes->failed ? "out of memory" : err->message;
    if (result < 0 || bytes->failed)
        history_answer(r, MESSAGE_FAILED, message->tag, why, strlen(why));
    else
        history_answer(r, MESSAGE_NOTED, message->tag, bytes->data, bytes->length);
}

void history_note(struct history *r, const struct message *message)
{
    struct brig_error err = {0};
    struct note note = {.text = {.data = ""}, .result = {.data = ""}};
    autostr struct str bytes = {0};
    char id[EXECUTION_ID_LENGTH + 1];
    const char *domain = "";
    int result = 0;
    if (r->local && read_subject(message, id, &domain))
        result = message->type == MESSAGE_NOTE_REMOVE
                     ? notes_remove(r->local, id, domain, &note, &err)
                     : notes_get(r->local, id, domain, &note, &err);
    if (result == 0)
        result = note_encode(&note, &bytes, &err);
    answer_note(r, message, result, &bytes, &err);
    note_done(&note);
}

void history_note_list(struct history *r, const struct message *message)
{
    struct brig_error err = {0};
    struct note_page page;
    struct note_list list = {0};
    autostr struct str bytes = {0};
    int result = r->local ? note_page_decode(message->bytes, message->length, &page, &err)
                          : brig_fail(&err, BRIG_E_STATE, 0, "the server keeps no history");
    if (result == 0)
        result = notes_list(r->local, &page, &list, &err);
    if (result == 0)
        result = note_list_encode(&list, &bytes, &err);
    answer_note(r, message, result, &bytes, &err);
    note_list_done(&list);
}

void history_usage(struct history *r, const struct message *message)
{
    struct brig_error err = {0};
    struct query query;
    autostr struct str text = {0};
    int result = r->local
                     ? query_parse(message->bytes, message->length, clock_wall_ns(), &query, &err)
                     : brig_fail(&err, BRIG_E_STATE, 0, "the server keeps no history");
    if (result == 0)
        result = usage_write(r->local, &query, &text, &err);
    if (result == 0 && text.failed)
        result = brig_fail_nomem(&err);
    if (result < 0)
        history_answer(r, MESSAGE_FAILED, message->tag, err.message, strlen(err.message));
    else
        history_answer(r, MESSAGE_ROWS, message->tag, text.data, text.length);
}

/* ---- Orders of the executor ---- */

static void take_claim(struct history *r, const struct message *order)
{
    struct brig_error err = {0};
    enum message_verdict verdict = VERDICT_GONE;
    autostr struct str bytes = {0};
    int result = 0;
    str_append_char(&bytes, '\0');
    if (r->local && execution_id_is_valid(order->bytes))
        result = queue_claim(r->local, order->bytes, &verdict, &bytes, &err);
    if (result < 0 || bytes.failed) {
        const char later = (char)VERDICT_LATER;
        history_tell_executor(r, MESSAGE_CLAIMED, order->tag, &later, 1);
        return;
    }
    bytes.data[0] = (char)verdict;
    history_tell_executor(r, MESSAGE_CLAIMED, order->tag, bytes.data, bytes.length);
    if (r->postgres && !r->gather_ms)
        r->gather_ms = clock_now_ms() + HISTORY_GATHER_MS;
}

static int reserve(struct history *r, const struct message *order,
                   enum message_verdict *ret_verdict, char ret_id[EXECUTION_ID_LENGTH + 1],
                   struct brig_error *err)
{
    const struct row_keep keep = {r->config->database.code, r->config->database.output};
    struct execution_request request;
    struct row row;
    int result = execution_request_decode(order->bytes, order->length, &request, err);
    if (result < 0)
        return result;
    result = row_from_request(ROW_BEGIN, &request, keep, store_server_id(r->local),
                              history_next_ns(r), &row, err);
    if (result == 0) {
        result = queue_reserve(r->local, &row, &request, forget_ns(r), ret_verdict, ret_id, err);
        row_done(&row);
    }
    execution_request_done(&request);
    return result;
}

static void take_reserve(struct history *r, const struct message *order)
{
    struct brig_error err = {0};
    enum message_verdict verdict = VERDICT_LATER;
    char bytes[1 + EXECUTION_ID_LENGTH + 1] = "";
    if (r->local && reserve(r, order, &verdict, bytes + 1, &err) < 0)
        verdict = VERDICT_LATER;
    bytes[0] = (char)verdict;
    history_tell_executor(r, MESSAGE_CLAIMED, order->tag, bytes, 1 + strlen(bytes + 1));
}

static void take_called(struct history *r, const struct message *order)
{
    const struct queue_retry retry = {r->config->callback.attempts, r->config->callback.retry_ms};
    struct brig_error err = {0};
    r->calls -= r->calls > 0;
    r->calls_ms = clock_now_ms();
    if (r->local &&
        queue_called(r->local, order->bytes, order->length, &retry, clock_wall_ns(), &err) < 0)
        history_warn(r, "the end of a callback is not stored: %s", err.message);
}

static const struct {
    enum message_type type;
    void (*take)(struct history *r, const struct message *order);
} orders[] = {
    {MESSAGE_CLAIM, take_claim},
    {MESSAGE_RESERVE, take_reserve},
    {MESSAGE_CALLED, take_called},
};

bool history_is_order(enum message_type type)
{
    for (size_t i = 0; i < ARRAY_LENGTH(orders); i++)
        if (orders[i].type == type)
            return true;
    return false;
}

void history_take_order(struct history *r)
{
    automessage struct message order = r->order;
    r->order = (struct message){.fd = -1};
    for (size_t i = 0; i < ARRAY_LENGTH(orders); i++)
        if (orders[i].type == order.type)
            orders[i].take(r, &order);
}

/* ---- What is due ---- */

/* Sends one callback to the executor. Returns whether there may be more. */
static bool send_call(struct history *r)
{
    struct queue_call call;
    struct brig_error err = {0};
    autostr struct str bytes = {0};
    int64_t now_ns = clock_wall_ns(), next_ns = 0;
    int found = queue_call_take(r->local, now_ns, HISTORY_CALLS_PER_KEY, &call, &next_ns, &err);
    if (found <= 0) {
        uint64_t delay_ms = next_ns > now_ns ? (uint64_t)(next_ns - now_ns) / 1000000 + 1 : 0;
        r->calls_ms = found < 0  ? clock_now_ms() + CALL_RETRY_MS
                      : delay_ms ? clock_now_ms() + delay_ms
                                 : 0;
        return false;
    }
    int result = queue_call_encode(&call, &bytes, NULL);
    queue_call_done(&call);
    if (result == 0) {
        r->calls++;
        history_tell_executor(r, MESSAGE_CALL, 0, bytes.data, bytes.length);
    }
    return r->executor != NULL;
}

static void send_calls(struct history *r)
{
    if (!r->executor || r->draining || !r->calls_ms || clock_now_ms() < r->calls_ms)
        return;
    if (channel_is_busy(r->executor)) {
        r->calls_ms = clock_now_ms() + CALL_RETRY_MS;
        return;
    }
    while (r->calls < HISTORY_CALLS_MAX && !channel_is_busy(r->executor) && send_call(r))
        continue;
    if (r->calls >= HISTORY_CALLS_MAX)
        r->calls_ms = 0; /* the end of one looks again */
}

static void tidy(struct history *r)
{
    char day[USAGE_DAY_MAX];
    if (clock_now_ms() < r->tidy_ms)
        return;
    r->tidy_ms = clock_now_ms() + TIDY_MS;
    usage_day(clock_wall_ns() - USAGE_DAYS_KEPT * DAY_NS, day);
    (void)queue_forget(r->local, forget_ns(r), day, NULL);
}

void history_orders_due(struct history *r)
{
    if (!r->local)
        return;
    send_calls(r);
    tidy(r);
}
