/* SPDX-License-Identifier: MIT */
/* POST /executions, GET /executions/{id} with and without waiting, and repeated idempotency keys. A
 * client that waits has a ticket that is sent to no process: MESSAGE_ENDED of the history process says
 * when to ask again. */
#include "server/http/async.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/parse.h"
#include "server/callback.h"
#include "server/config/config.h"
#include "server/http/http.h"
#include "server/http/request.h"

#define AGAIN_AT_ONCE 64 /* questions of waiting clients per tick after a restart */

/* ---- Questions ---- */

void async_ask(struct exchange *exchange, enum ticket_kind kind, enum message_type type,
               const void *bytes, size_t length)
{
    struct http *http = exchange->http;
    struct ticket *ticket = ticket_new(http, kind, exchange);
    if (ticket && http_send(http, ticket_role(kind), type, ticket->tag, bytes, length)) {
        exchange->state = EXCHANGE_WAITING;
        exchange_suspend(exchange);
        return;
    }
    if (ticket)
        ticket_free(http, ticket);
    async_lost(exchange, kind);
}

void async_ask_for(struct exchange *exchange, enum ticket_kind kind, enum message_type type,
                   const char *id)
{
    char text[EXECUTION_ID_LENGTH + sizeof exchange->domain];
    (void)snprintf(text, sizeof text, "%s%s", id, exchange->domain);
    async_ask(exchange, kind, type, text, strlen(text));
}

/* The exchange of an answer; its ticket is freed. */
static struct exchange *take_exchange(struct http *http, uint64_t tag, enum ticket_kind kind)
{
    struct ticket *ticket = ticket_find(http, tag);
    if (!ticket || ticket->kind != kind)
        return NULL;
    struct exchange *exchange = ticket->exchange;
    ticket_free(http, ticket);
    return exchange;
}

/* ---- POST /executions ---- */

static bool refuse_field(struct exchange *exchange, const char *field, const char *message)
{
    answer_field_error(exchange, ERROR_INVALID_FIELD, field, message);
    return false;
}

static bool check_priority(struct exchange *exchange, const struct execution_request *request)
{
    const struct server_config *config = exchange->http->config;
    size_t key = config_find_key(config, exchange->domain);
    uint64_t most = config->queue.max_priority;
    char message[96];
    if (key < CONFIG_LIST_MAX && config->security.keys[key].max_priority)
        most = config->security.keys[key].max_priority;
    if (request->priority <= (int)most)
        return true;
    (void)snprintf(message, sizeof message, "priority is %d, at most %d is allowed",
                   request->priority, (int)most);
    return refuse_field(exchange, "priority", message);
}

static bool check_callback(struct exchange *exchange, const struct execution_request *request)
{
    const struct server_config *config = exchange->http->config;
    struct brig_error error = {0};
    const char *secret = config->callback.secret;
    if (!*request->callback_url)
        return !*request->callback_secret ||
               refuse_field(exchange, "callback.url", "callback.secret needs callback.url");
    if (!config->callback.enabled)
        return refuse_field(exchange, "callback.url", "this server makes no callbacks");
    if (!*request->callback_secret && !(secret && *secret))
        return refuse_field(exchange, "callback.secret",
                            "callback.secret is missing, and the server has none of its own");
    return async_check_url(exchange, request->callback_url, &error) == 0 ||
           refuse_field(exchange, "callback.url", error.message);
}

int async_check_url(const struct exchange *exchange, const char *url, struct brig_error *err)
{
    struct callback_target target;
    return callback_parse(url, &exchange->http->config->callback.allow, &target, err);
}

void async_submit_request(struct exchange *exchange, const struct execution_request *request)
{
    autostr struct str bytes = {0};
    if (execution_request_encode(request, &bytes, NULL) < 0 || bytes.length > MESSAGE_BYTES_MAX)
        answer_error(exchange, ERROR_OVERLOADED, NULL);
    else
        async_ask(exchange, TICKET_SUBMIT, MESSAGE_SUBMIT, bytes.data, bytes.length);
}

void async_submit(struct exchange *exchange)
{
    autorequest struct execution_request request = {0};
    if (!pages_has_history(exchange) || !query_check(exchange) ||
        !execute_read(exchange, &request) || !check_priority(exchange, &request) ||
        !check_callback(exchange, &request))
        return;
    request.queued = true;
    exchange_release(exchange);
    async_submit_request(exchange, &request);
}

/* It is in the queue. */
static void answer_id(struct exchange *exchange, const char *id)
{
    autostr struct str text = {0};
    struct json j;
    char self[sizeof "/executions/" + EXECUTION_ID_LENGTH];
    (void)snprintf(self, sizeof self, "/executions/%s", id);
    (void)snprintf(exchange->execution_id, sizeof exchange->execution_id, "%s", id);
    str_list_add(&exchange->headers, "Location");
    str_list_add(&exchange->headers, self);
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_text(&j, "id", id);
    json_text(&j, "status", "queued");
    json_open_object(&j, "links");
    json_text(&j, "self", self);
    json_close_object(&j);
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_ACCEPTED, &text);
}

void async_answer_queued(struct exchange *exchange, enum message_verdict verdict, const char *id)
{
    switch (verdict) {
    case VERDICT_GO:
    case VERDICT_REPEATED:
        answer_id(exchange, id);
        return;
    case VERDICT_CONFLICT:
        answer_error(exchange, ERROR_IDEMPOTENCY_CONFLICT, NULL);
        return;
    case VERDICT_FULL:
        answer_error(exchange, ERROR_QUEUE_FULL, "too many executions wait (queue.max)");
        return;
    case VERDICT_KEY_FULL:
        exchange->retry_after_s = 1;
        answer_error(exchange, ERROR_KEY_BUSY,
                     "this API key has as many executions waiting, or as many bytes of them, as it "
                     "may have (queue.max_per_key, queue.keep_per_key)");
        return;
    case VERDICT_GONE:
    case VERDICT_LATER:
        break;
    }
    answer_error(exchange, ERROR_HISTORY_UNAVAILABLE, NULL);
}

/* The verdict and the id after it, which is valid if the execution was taken. */
static enum message_verdict read_verdict(const struct message *message, const char **ret_id)
{
    enum message_verdict verdict =
        message->length > 0 ? (enum message_verdict)message->bytes[0] : VERDICT_LATER;
    bool taken = verdict == VERDICT_GO || verdict == VERDICT_REPEATED;
    *ret_id = message->length > 0 ? message->bytes + 1 : "";
    return taken && !execution_id_is_valid(*ret_id) ? VERDICT_LATER : verdict;
}

void async_queued(struct http *http, const struct message *message)
{
    struct exchange *exchange = take_exchange(http, message->tag, TICKET_SUBMIT);
    const char *id;
    enum message_verdict verdict = read_verdict(message, &id);
    if (!exchange)
        return;
    exchange->replayed = verdict == VERDICT_REPEATED;
    exchange->dialect->queued(exchange, verdict, id);
}

/* ---- Notes ---- */

void async_noted(struct http *http, const struct message *message)
{
    struct exchange *exchange = take_exchange(http, message->tag, TICKET_NOTE);
    if (exchange)
        exchange->dialect->noted(exchange, message);
}

/* ---- Waiting ---- */

/* The client asked for an execution, or repeats a request and gets its result. */
static void ask_again(struct exchange *exchange)
{
    if (exchange->dialect->ended)
        exchange->dialect->ended(exchange);
    else if (exchange->replayed)
        async_ask_for(exchange, TICKET_RESULT, MESSAGE_RESULT, exchange->execution_id);
    else
        async_ask_for(exchange, TICKET_HISTORY, MESSAGE_GET, exchange->path_id);
}

bool async_is_waited_out(const struct exchange *exchange)
{
    return exchange->http->draining || exchange->wait_until_ms <= exchange->http->now_ms;
}

/* The time is up, or there was none. */
static void answer_unfinished(struct exchange *exchange)
{
    if (exchange->dialect->ended) {
        exchange->dialect->ended(exchange);
    } else if (!exchange->replayed) {
        async_ask_for(exchange, TICKET_PEEK, MESSAGE_PEEK, exchange->path_id);
    } else {
        exchange->retry_after_s = 1;
        answer_error(exchange, ERROR_IN_PROGRESS, NULL);
    }
}

void async_wait(struct exchange *exchange)
{
    if (async_is_waited_out(exchange)) {
        answer_unfinished(exchange);
        return;
    }
    if (!ticket_new(exchange->http, TICKET_WAIT, exchange))
        answer_error(exchange, ERROR_OVERLOADED, NULL);
    else
        exchange_suspend(exchange); /* watches the client with the new ticket */
}

static const char *waited_id(const struct exchange *exchange)
{
    return *exchange->execution_id ? exchange->execution_id : exchange->path_id;
}

void async_ended(struct http *http, const struct message *message)
{
    for (struct ticket *ticket = TAILQ_FIRST(&http->tickets), *next; ticket; ticket = next) {
        next = TAILQ_NEXT(ticket, link);
        struct exchange *exchange = ticket->exchange;
        if (ticket->kind != TICKET_WAIT || !exchange)
            continue;
        ticket->stale = ticket->stale || message->length == 0;
        if (strcasecmp(waited_id(exchange), message->bytes) != 0)
            continue;
        ticket_free(http, ticket);
        ask_again(exchange);
    }
}

void async_history_new(struct http *http)
{
    struct ticket *ticket;
    TAILQ_FOREACH(ticket, &http->tickets, link)
    ticket->stale = ticket->kind == TICKET_WAIT;
}

void async_tick(struct http *http)
{
    unsigned again = 0;
    for (struct ticket *ticket = TAILQ_FIRST(&http->tickets), *next; ticket; ticket = next) {
        next = TAILQ_NEXT(ticket, link);
        struct exchange *exchange = ticket->exchange;
        bool stale = ticket->stale && again < AGAIN_AT_ONCE && http->peers[ROLE_HISTORY];
        if (ticket->kind != TICKET_WAIT || !exchange || !(stale || async_is_waited_out(exchange)))
            continue;
        again++;
        ticket_free(http, ticket);
        if (stale)
            ask_again(exchange);
        else
            answer_unfinished(exchange);
    }
}

/* ---- GET /executions/{id} ---- */

void async_get(struct exchange *exchange)
{
    uint64_t wait_ms = 0;
    if (!pages_has_history(exchange) || !query_check(exchange) || !query_wait(exchange, &wait_ms))
        return;
    exchange->wait_until_ms = exchange->http->now_ms + wait_ms;
    ask_again(exchange);
}

/* It is queued or runs. */
void async_pending(struct http *http, const struct message *message)
{
    struct ticket *ticket = ticket_find(http, message->tag);
    if (!ticket || (ticket->kind != TICKET_HISTORY && ticket->kind != TICKET_RESULT))
        return;
    struct exchange *exchange = take_exchange(http, message->tag, ticket->kind);
    if (!exchange)
        return;
    str_done(&exchange->pending);
    str_append_bytes(&exchange->pending, message->bytes, message->length);
    async_wait(exchange);
}

static void write_so_far(struct json *j, const struct execution_result *result)
{
    json_bytes(j, "output", result->output.data, result->output.length);
    json_bytes(j, "stderr", result->error_output.data, result->error_output.length);
    json_open_object(j, "truncated");
    json_bool(j, "output", result->output_truncated);
    json_bool(j, "stderr", result->error_output_truncated);
    json_close_object(j);
}

/* The object of the history process with more members. */
static void answer_pending(struct exchange *exchange, uint64_t position,
                           const struct execution_result *so_far)
{
    struct str *text = &exchange->pending;
    if (text->length < 2 || text->failed) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return;
    }
    struct json j = {.out = text, .comma = true};
    text->data[--text->length] = '\0';
    if (position > 0)
        json_uint(&j, "position", position);
    if (so_far)
        write_so_far(&j, so_far);
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_OK, text);
}

void async_lost(struct exchange *exchange, enum ticket_kind kind)
{
    if (kind == TICKET_PEEK)
        answer_pending(exchange, 0, NULL);
    else
        answer_error(exchange,
                     ticket_role(kind) == ROLE_HISTORY ? ERROR_HISTORY_UNAVAILABLE
                                                       : ERROR_EXECUTION_LOST,
                     NULL);
}

void async_peeked(struct http *http, const struct message *message)
{
    struct exchange *exchange = take_exchange(http, message->tag, TICKET_PEEK);
    autoresult struct execution_result so_far = {0};
    uint64_t position = 0;
    if (!exchange)
        return;
    if (message->length == 0 && !exchange->peeked) { /* it may have ended meanwhile */
        exchange->peeked = true;
        ask_again(exchange);
        return;
    }
    if (message->length == sizeof position)
        memcpy(&position, message->bytes, sizeof position);
    bool runs = message->length > sizeof position &&
                execution_result_decode(message->bytes, message->length, &so_far, NULL) == 0;
    answer_pending(exchange, position, runs ? &so_far : NULL);
}

/* ---- Repeated idempotency keys ---- */

void async_repeated(struct http *http, const struct message *message)
{
    struct ticket *ticket = ticket_find(http, message->tag);
    const char *id;
    enum message_verdict verdict = read_verdict(message, &id);
    if (!ticket || ticket->kind != TICKET_RUN || ticket->queued || message->length < 1)
        return;
    struct exchange *exchange = ticket->exchange;
    bool base64 = ticket->base64;
    http->running--;
    ticket_free(http, ticket);
    if (!exchange)
        return;
    if (verdict != VERDICT_REPEATED) {
        async_answer_queued(exchange, verdict == VERDICT_GO ? VERDICT_LATER : verdict, id);
        return;
    }
    exchange->replayed = true;
    exchange->base64 = base64;
    exchange->wait_until_ms = http->now_ms + http->config->queue.max_wait_ms;
    (void)snprintf(exchange->execution_id, sizeof exchange->execution_id, "%s", id);
    ask_again(exchange);
}

void async_outcome(struct http *http, const struct message *message)
{
    struct exchange *exchange = take_exchange(http, message->tag, TICKET_RESULT);
    autoresult struct execution_result result = {0};
    if (!exchange)
        return;
    if (execution_result_decode(message->bytes, message->length, &result, NULL) < 0)
        answer_error(exchange, ERROR_NOT_FOUND,
                     "the result of the first request was stored by another version of brigd");
    else
        execute_replay(exchange, &result);
}

/* ---- GET /usage ---- */

void async_usage(struct exchange *exchange)
{
    autostr struct str text = {0};
    if (pages_has_history(exchange) && query_check(exchange) && query_list(exchange, &text))
        async_ask(exchange, TICKET_HISTORY, MESSAGE_USAGE, text.data ? text.data : "", text.length);
}
