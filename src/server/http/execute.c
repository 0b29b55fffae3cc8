/* SPDX-License-Identifier: MIT */
/* Tickets; and POST /execute and /execute/stream, from the body to the executor and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "server/config/config.h"
#include "server/http/async.h"
#include "server/http/detector.h"
#include "server/http/http.h"
#include "server/http/request.h"
#include "server/http/result_json.h"
#include "server/http/stream.h"

/* If more is queued for the executor, start no more runs until it has read. */
#define UNSENT_MAX (CHANNEL_QUEUE_MAX / 2)

static bool is_stream(const struct exchange *exchange)
{
    return exchange->route->flags & ROUTE_STREAM;
}

/* ---- Tickets: questions to other processes, found by their tag ---- */

struct ticket *ticket_new(struct http *http, enum ticket_kind kind, struct exchange *exchange)
{
    struct ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return NULL;
    ticket->tag = ++http->next_tag;
    ticket->kind = kind;
    ticket->exchange = exchange;
    ticket->key = CONFIG_LIST_MAX;
    exchange->ticket = ticket;
    TAILQ_INSERT_TAIL(&http->tickets, ticket, link);
    return ticket;
}

struct ticket *ticket_find(struct http *http, uint64_t tag)
{
    struct ticket *ticket;
    TAILQ_FOREACH(ticket, &http->tickets, link)
    if (ticket->tag == tag)
        return ticket;
    return NULL;
}

void ticket_free(struct http *http, struct ticket *ticket)
{
    TAILQ_REMOVE(&http->tickets, ticket, link);
    if (ticket->exchange)
        ticket->exchange->ticket = NULL;
    if (ticket->key < CONFIG_LIST_MAX)
        http->key_places[ticket->key]--;
    http->queued -= ticket->queued;
    str_done(&ticket->packed);
    free(ticket);
}

/* ---- The queue: executions that wait for capacity ---- */

static struct ticket *first_queued(struct http *http)
{
    struct ticket *ticket = http->queued > 0 ? TAILQ_FIRST(&http->tickets) : NULL;
    while (ticket && !ticket->queued)
        ticket = TAILQ_NEXT(ticket, link);
    return ticket;
}

size_t execute_count(const struct http *http)
{
    return http->running + (size_t)http->gauges.inherited;
}

static bool has_place(const struct http *http)
{
    const struct channel *executor = http->peers[ROLE_EXECUTOR];
    return executor && http->knows_executor &&
           execute_count(http) < http->config->sandbox.max_concurrent &&
           execute_count(http) < http->gauges.places && channel_queued(executor) < UNSENT_MAX;
}

/* Sends the request to the executor. Returns false if it has to wait. */
static bool start(struct http *http, struct ticket *ticket)
{
    struct exchange *exchange = ticket->exchange;
    exchange->trace.at_us[STEP_SENT] = clock_now_us();
    if (!has_place(http) || !http_send(http, ROLE_EXECUTOR, MESSAGE_EXECUTE, ticket->tag,
                                       ticket->packed.data, ticket->packed.length))
        return false;
    str_done(&ticket->packed);
    exchange_release(exchange);
    counters_time(&http->metrics.queue_wait,
                  (double)(exchange->trace.at_us[STEP_SENT] - exchange->trace.at_us[STEP_DECODED]) /
                      1e6);
    http->running++;
    return true;
}

void execute_start_waiting(struct http *http)
{
    for (struct ticket *ticket; (ticket = first_queued(http)) && start(http, ticket);) {
        ticket->queued = false;
        http->queued--;
    }
}

static void give_up(struct http *http, struct ticket *ticket, enum http_error error)
{
    struct exchange *exchange = ticket->exchange;
    ticket_free(http, ticket);
    answer_error(exchange, error, NULL);
}

void execute_tick(struct http *http)
{
    /* All have the same timeout, so the first in the queue expires first. */
    for (struct ticket *ticket; (ticket = first_queued(http)) &&
                                (http_refuses(http) || ticket->queued_until_ms <= http->now_ms);)
        give_up(http, ticket, http_refuses(http) ? ERROR_SHUTTING_DOWN : ERROR_QUEUE_TIMEOUT);
}

/* ---- From the body to the executor ---- */

/* The detector found something critical: adds a row to the history. */
static void block(struct exchange *exchange, struct execution_request *request,
                  char ret_why[REQUEST_MESSAGE_MAX])
{
    struct http *http = exchange->http;
    autostr struct str packed = {0};
    execution_id_make(exchange->execution_id);
    request->id = exchange->execution_id;
    if (execution_request_encode(request, &packed, NULL) == 0)
        (void)http_send(http, ROLE_EXECUTOR, MESSAGE_BLOCKED, 0, packed.data, packed.length);
    (void)snprintf(ret_why, REQUEST_MESSAGE_MAX, "the code was not run: it %s (%s)",
                   request->events[0].detail, request->events[0].type);
}

/* For an agent the code is a prompt, which may mention /etc/shadow: the event is only recorded. */
static bool is_blocked(const struct execution_request *request, const struct runtime *runtime)
{
    return request->event_count > 0 && request->events[0].severity == SEVERITY_CRITICAL &&
           !runtime->agent;
}

static void detect(struct http *http, struct execution_request *request)
{
    if (!http->config->security.detector)
        return;
    detector_scan(request->code.data, request->code.length, &request->arena, &request->events,
                  &request->event_count);
}

/* Returns whether the key has the maximum number of executions. */
static bool key_is_full(const struct exchange *exchange)
{
    const struct http *http = exchange->http;
    uint64_t most = http->config->security.max_executions_per_key;
    size_t key = config_find_key(http->config, exchange->domain);
    return most > 0 && key < CONFIG_LIST_MAX && http->key_places[key] >= most;
}

static void count_for_key(struct http *http, struct ticket *ticket)
{
    ticket->key = config_find_key(http->config, ticket->domain);
    if (ticket->key < CONFIG_LIST_MAX)
        http->key_places[ticket->key]++;
}

void execute_keys_changed(struct http *http)
{
    struct ticket *ticket;
    memset(http->key_places, 0, sizeof http->key_places);
    TAILQ_FOREACH(ticket, &http->tickets, link)
    count_for_key(http, ticket);
}

/* Idempotency-Key: the request, repeated, gets the same execution. */
bool execute_take_idempotency(struct exchange *exchange)
{
    return execute_take_key(exchange) &&
           (!*exchange->idempotency_key || pages_has_history(exchange));
}

bool execute_take_key(struct exchange *exchange)
{
    const char *key = exchange_header(exchange, "Idempotency-Key");
    struct sha256 hash;
    if (!key)
        return true;
    if (!execution_idempotency_key_is_valid(key)) {
        char text[96];
        (void)snprintf(text, sizeof text,
                       "Idempotency-Key has to be 1 to %d visible ASCII characters",
                       EXECUTION_IDEMPOTENCY_MAX);
        answer_field_error(exchange, ERROR_INVALID_FIELD, "Idempotency-Key", text);
        return false;
    }
    (void)snprintf(exchange->idempotency_key, sizeof exchange->idempotency_key, "%s", key);
    sha256_begin(&hash);
    sha256_add(&hash, exchange->route->path, strlen(exchange->route->path) + 1);
    sha256_add(&hash, exchange->body.data, exchange->body.length);
    sha256_end(&hash, exchange->body_sha256);
    return true;
}

static void submit(struct exchange *exchange, const struct execution_request *request, bool base64)
{
    struct http *http = exchange->http;
    struct brig_error error = {0};
    struct ticket *ticket = ticket_new(http, TICKET_RUN, exchange);
    if (!ticket || execution_request_encode(request, &ticket->packed, &error) < 0) {
        if (ticket)
            ticket_free(http, ticket);
        answer_error(exchange, ERROR_OVERLOADED, error.code == BRIG_E_NOMEM ? NULL : error.message);
        return;
    }
    ticket->base64 = base64;
    ticket->lasting = *request->idempotency_key;
    bool started = http->queued == 0 && start(http, ticket);
    if (!started && http->queued >= http->config->sandbox.max_queued) {
        ticket_free(http, ticket);
        answer_error(exchange, ERROR_QUEUE_FULL, NULL);
        return;
    }
    if (!started) {
        ticket->queued = true;
        ticket->queued_until_ms = http->now_ms + http->config->sandbox.queue_timeout_ms;
        http->queued++;
    }
    (void)snprintf(ticket->domain, sizeof ticket->domain, "%s", exchange->domain);
    count_for_key(http, ticket);
    exchange->state = EXCHANGE_WAITING;
    exchange_suspend(exchange);
}

bool execute_prepare(struct exchange *exchange, struct execution_request *request,
                     const struct runtime *runtime, char ret_why[REQUEST_MESSAGE_MAX])
{
    exchange->language = runtime->name;
    request->id = "";
    request->request_id = exchange->request_id;
    request->domain = exchange->domain;
    request->client = exchange->client.text;
    request->stream = is_stream(exchange);
    request->traceparent = exchange->traceparent;
    request->idempotency_key = exchange->idempotency_key;
    request->body_sha256 = exchange->body_sha256;
    detect(exchange->http, request);
    exchange->trace.at_us[STEP_DECODED] = clock_now_us();
    if (!is_blocked(request, runtime))
        return true;
    block(exchange, request, ret_why);
    return false;
}

bool execute_read(struct exchange *exchange, struct execution_request *ret)
{
    struct http *http = exchange->http;
    struct request_fault fault;
    const struct runtime *runtime = NULL;
    char why[REQUEST_MESSAGE_MAX];
    if (!execute_take_idempotency(exchange))
        return false;
    if (!request_read(exchange->body.data ? exchange->body.data : "", exchange->body.length,
                      http->config, config_workdir_roots(http->config, exchange->domain), ret,
                      &runtime, &fault)) {
        answer_field_error(exchange, fault.error, fault.field, fault.message);
        return false;
    }
    str_done(&exchange->body);
    if (!execute_prepare(exchange, ret, runtime, why)) {
        answer_error(exchange, ERROR_ESCAPE_ATTEMPT, why);
        return false;
    }
    if (http_history_is_full(http)) {
        answer_error(exchange, ERROR_HISTORY_FULL, NULL);
        return false;
    }
    return true;
}

void execute_begin(struct exchange *exchange)
{
    autorequest struct execution_request request = {0};
    bool base64 = false;
    if (!query_check(exchange) || !query_encoding(exchange, &base64) ||
        !execute_read(exchange, &request))
        return;
    if (request.priority || *request.callback_url || *request.callback_secret) {
        answer_field_error(exchange, ERROR_UNKNOWN_FIELD,
                           request.priority ? "priority" : "callback",
                           "priority and callback are for POST /executions");
        return;
    }
    execute_start(exchange, &request, base64);
}

void execute_start(struct exchange *exchange, const struct execution_request *request, bool base64)
{
    if (key_is_full(exchange)) {
        exchange->retry_after_s = 1;
        answer_error(exchange, ERROR_KEY_BUSY, NULL);
        return;
    }
    submit(exchange, request, base64);
}

/* ---- From the executor to the client ---- */

/* Returns NULL also if the client has disconnected. */
static struct exchange *find_run(struct http *http, uint64_t tag)
{
    const struct ticket *ticket = ticket_find(http, tag);
    return ticket && ticket->kind == TICKET_RUN && !ticket->queued ? ticket->exchange : NULL;
}

void execute_begun(struct http *http, const struct message *message)
{
    struct exchange *exchange = find_run(http, message->tag);
    if (!exchange || *exchange->execution_id || !execution_id_is_valid(message->bytes))
        return;
    (void)snprintf(exchange->execution_id, sizeof exchange->execution_id, "%s", message->bytes);
    if (exchange->dialect->begun)
        exchange->dialect->begun(exchange);
}

void execute_abandon(struct http *http, struct ticket *ticket)
{
    if (ticket->queued)
        ticket_free(http, ticket);
    else if (!ticket->lasting)
        (void)http_send(http, ROLE_EXECUTOR, MESSAGE_CANCEL, ticket->tag, NULL, 0);
}

void execute_output(struct http *http, const struct message *message)
{
    struct exchange *exchange = find_run(http, message->tag);
    if (exchange && exchange->dialect->output && message->length > 0)
        exchange->dialect->output(exchange, message->bytes[0] == 2, message->bytes + 1,
                                  message->length - 1);
}

void execute_stage(struct http *http, const struct message *message)
{
    struct exchange *exchange = find_run(http, message->tag);
    struct message_stage stage;
    if (!exchange || !exchange->dialect->stage || message->length != sizeof stage)
        return;
    memcpy(&stage, message->bytes, sizeof stage);
    exchange->dialect->stage(exchange, &stage);
}

/* The error for an execution that did not run. */
static enum http_error fault_of(const struct execution_result *result)
{
    switch (result->fault) {
    case FAULT_REQUEST:
        return str_equal(result->field, "language") ? ERROR_RUNTIME_UNAVAILABLE
                                                    : ERROR_INVALID_FIELD;
    case FAULT_BUSY:
        return ERROR_QUEUE_FULL;
    case FAULT_SERVER:
    case FAULTS_:
        break;
    }
    return ERROR_SETUP_FAILED;
}

static void answer_result(struct exchange *exchange, const struct execution_result *result)
{
    if (result->status == EXECUTION_SETUP_FAILED) {
        answer_field_error(exchange, fault_of(result), result->field, result->message);
        return;
    }
    if (result->status == EXECUTION_LOST) {
        answer_error(exchange, ERROR_EXECUTION_LOST, result->message);
        return;
    }
    exchange->outcome = execution_status_name(result->status);
    exchange->dialect->done(exchange, result);
}

void execute_replay(struct exchange *exchange, const struct execution_result *result)
{
    bool streams = is_stream(exchange) && result->status != EXECUTION_SETUP_FAILED &&
                   result->status != EXECUTION_LOST;
    if (streams && !stream_begin(exchange, NULL, exchange->base64))
        return;
    if (streams) {
        stream_output(exchange->stream, false, result->output.data, result->output.length);
        stream_output(exchange->stream, true, result->error_output.data,
                      result->error_output.length);
    }
    answer_result(exchange, result);
}

static void take_trace(struct exchange *exchange, const struct execution_trace *trace)
{
    exchange->trace.warm = trace->warm;
    for (int i = STEP_RECEIVED; i <= STEP_ENDED; i++)
        exchange->trace.at_us[i] = trace->at_us[i];
    exchange->trace.at_us[STEP_ANSWERED] = clock_now_us();
}

void execute_done(struct http *http, const struct message *message)
{
    struct ticket *ticket = ticket_find(http, message->tag);
    autoresult struct execution_result result = {0};
    if (!ticket || ticket->kind != TICKET_RUN || ticket->queued)
        return;
    struct exchange *exchange = ticket->exchange;
    int decoded = execution_result_decode(message->bytes, message->length, &result, NULL);
    http->running--;
    ticket_free(http, ticket);
    if (!exchange)
        return;
    if (decoded < 0) {
        answer_error(exchange, ERROR_INTERNAL, NULL);
        return;
    }
    take_trace(exchange, &result.trace);
    answer_result(exchange, &result);
}

/* ---- brigd's own dialect ---- */

/* The headers of a stream contain the id, so it begins now. */
static void begin_stream(struct exchange *exchange)
{
    if (is_stream(exchange))
        (void)stream_begin(exchange, NULL, exchange->ticket->base64);
}

static void add_output(struct exchange *exchange, bool is_stderr, const char *bytes, size_t length)
{
    if (exchange->stream)
        stream_output(exchange->stream, is_stderr, bytes, length);
}

static void add_stage(struct exchange *exchange, const struct message_stage *stage)
{
    if (exchange->stream && !stage->ended)
        stream_event(exchange->stream, "stage",
                     stage->stage == STAGE_COMPILE ? "{\"stage\":\"compile\"}"
                                                   : "{\"stage\":\"run\"}");
}

static void write_result(struct exchange *exchange, const struct execution_result *result)
{
    autostr struct str text = {0};
    struct json j;
    struct stream *stream = exchange->stream;
    json_init(&j, &text);
    result_json_write(&j, result, stream != NULL, stream && stream_has_dropped(stream));
    if (stream)
        stream_end(stream, "done", text.failed ? NULL : text.data);
    else
        answer_json(exchange, MHD_HTTP_OK, &text);
}

const struct dialect execute_own = {.fail = answer_own_error,
                                    .begun = begin_stream,
                                    .output = add_output,
                                    .stage = add_stage,
                                    .done = write_result,
                                    .queued = async_answer_queued};

/* ---- A process that is gone ---- */

enum server_role ticket_role(enum ticket_kind kind)
{
    switch (kind) {
    case TICKET_RUN:
    case TICKET_KILL:
    case TICKET_PEEK:
    case TICKET_SANDBOX:
        return ROLE_EXECUTOR;
    case TICKET_HISTORY:
    case TICKET_SUBMIT:
    case TICKET_RESULT:
    case TICKET_NOTE:
        return ROLE_HISTORY;
    case TICKET_WAIT:
        break;
    }
    return ROLES_;
}

void tickets_lost(struct http *http, enum server_role role)
{
    for (struct ticket *ticket = TAILQ_FIRST(&http->tickets), *next; ticket; ticket = next) {
        struct exchange *exchange = ticket->exchange;
        enum ticket_kind kind = ticket->kind;
        next = TAILQ_NEXT(ticket, link);
        /* Queued requests were not sent yet. */
        if (ticket->queued || ticket_role(kind) != role)
            continue;
        http->running -= kind == TICKET_RUN;
        ticket_free(http, ticket);
        if (exchange)
            async_lost(exchange, kind);
    }
}
