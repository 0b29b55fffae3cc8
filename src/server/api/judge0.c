/* SPDX-License-Identifier: MIT */
/* Judge0's submissions: from HTTP to executions of the queue, and from their notes and results to
 * JSON. A request for several asks for one after the other. */
#include "server/api/judge0.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "server/api/judge0_answer.h"
#include "server/api/judge0_languages.h"
#include "server/api/judge0_request.h"
#include "server/api/judge0_text.h"
#include "server/config/config.h"
#include "server/history/notes.h"
#include "server/http/async.h"
#include "server/http/http.h"
#include "server/http/request.h"

#define PAGE_USUAL 20
#define UNPROCESSABLE 422 /* libmicrohttpd has renamed its constant */
#define FORM_FIELDS_MAX 64

#define ONE_NOT_UTF8                                                                               \
    "some attributes for this submission cannot be converted to UTF-8, use base64_encoded=true "   \
    "query parameter"
#define SOME_NOT_UTF8                                                                              \
    "some attributes for one or more submissions cannot be converted to UTF-8, use "               \
    "base64_encoded=true query parameter"

#define autosubmission __attribute__((cleanup(judge0_submission_done)))
#define autonote __attribute__((cleanup(note_done)))

enum call_kind { CALL_CREATE, CALL_CREATE_BATCH, CALL_GET, CALL_GET_BATCH, CALL_LIST, CALL_DELETE };

/* One HTTP request. */
struct call {
    enum call_kind kind;
    bool base64, wait;
    judge0_members members;
    json_t *root; /* the body */
    struct note_list list;
    uint64_t page, per_page;
    size_t next, count; /* of `list`, or of the submissions in the body */
    bool listed;        /* the list has arrived */
    bool taken;         /* at least one submission of a batch is valid */
    struct str out;
    struct json j;
    char token[EXECUTION_ID_LENGTH + 1]; /* that is asked for */
};

static void call_done(void *context)
{
    struct call *call = context;
    if (!call)
        return;
    json_decref(call->root);
    note_list_done(&call->list);
    str_done(&call->out);
    free(call);
}

/* The answer is charged when it is sent. */
static void finish(struct exchange *exchange, unsigned status)
{
    struct call *call = exchange->kept;
    exchange_release(exchange);
    answer_json(exchange, status, &call->out);
}

/* ---- creating ---- */

/* An exchange->idempotency_key for each submission of a batch. */
static void number_key(struct exchange *exchange, const struct call *call)
{
    char *key = exchange->idempotency_key, *dot = strrchr(key, '#');
    if (!*key || call->kind != CALL_CREATE_BATCH)
        return;
    if (call->next > 0 && dot)
        *dot = '\0';
    size_t length = strnlen(key, EXECUTION_IDEMPOTENCY_MAX - 4);
    (void)snprintf(key + length, sizeof exchange->idempotency_key - length, "#%zu", call->next);
}

static const json_t *submission_of(const struct call *call)
{
    if (call->kind == CALL_CREATE)
        return call->root;
    return json_array_get(json_object_get(call->root, "submissions"), call->next);
}

enum sent { SENT_NOT, SENT, SENT_FAILED };

/* Adds the note and hands the request to the queue. */
static enum sent hand_over(struct exchange *exchange, const struct judge0_submission *submission,
                           struct execution_request *request, const struct runtime *runtime,
                           struct judge0_errors *errors)
{
    autostr struct str note = {0};
    char why[REQUEST_MESSAGE_MAX];
    if (judge0_note_encode(submission, &note, NULL) < 0)
        return SENT_FAILED;
    if (note.length > EXECUTION_NOTE_MAX) {
        judge0_error(errors, JUDGE0_SOURCE_CODE, "is too long");
        return SENT_NOT;
    }
    if (!execute_prepare(exchange, request, runtime, why)) {
        exchange->execution_id[0] = '\0';
        judge0_error(errors, JUDGE0_SOURCE_CODE, "%s", why);
        return SENT_NOT;
    }
    request->note = (struct execution_bytes){note.data, note.length};
    async_submit_request(exchange, request);
    return SENT;
}

static void check_callback(const struct exchange *exchange,
                           const struct judge0_submission *submission, struct judge0_errors *errors)
{
    const struct execution_bytes *url = &submission->text[JUDGE0_CALLBACK_URL];
    struct brig_error error = {0};
    if (url->length == 0 || errors->count > 0)
        return;
    if (url->length > EXECUTION_URL_MAX || strlen(url->data) != url->length)
        judge0_error(errors, JUDGE0_CALLBACK_URL, "is too long (maximum is %d characters)",
                     EXECUTION_URL_MAX);
    else if (async_check_url(exchange, url->data, &error) < 0)
        judge0_error(errors, JUDGE0_CALLBACK_URL, "%s", error.message);
}

/* Reads, checks and sends one submission. */
static enum sent submit(struct exchange *exchange, const json_t *object,
                        struct judge0_errors *errors)
{
    const struct http *http = exchange->http;
    const struct call *call = exchange->kept;
    autosubmission struct judge0_submission submission = {0};
    autorequest struct execution_request request = {0};
    struct judge0_language language;
    struct judge0_bounds bounds;
    judge0_bounds(http->config, &bounds);
    if (!judge0_read(object, call->base64, &bounds, &submission, errors))
        return SENT_FAILED;
    bool found = judge0_language_find(http->config, &http->runtimes,
                                      submission.number[JUDGE0_LANGUAGE_ID], &language);
    judge0_check(http->config, &bounds, &language, found, &submission, errors);
    check_callback(exchange, &submission, errors);
    if (errors->count > 0)
        return SENT_NOT;
    if (!judge0_translate(http->config, &language, &submission, &request, errors))
        return errors->count > 0 ? SENT_NOT : SENT_FAILED;
    return hand_over(exchange, &submission, &request, language.runtime, errors);
}

/* Sends the next submission that is valid, or answers. */
static void create_next(struct exchange *exchange)
{
    struct call *call = exchange->kept;
    for (; call->next < call->count; call->next++) {
        struct judge0_errors errors = {0};
        number_key(exchange, call);
        enum sent sent = submit(exchange, submission_of(call), &errors);
        if (sent == SENT_FAILED)
            answer_error(exchange, ERROR_OVERLOADED, NULL);
        if (sent != SENT_NOT)
            return;
        judge0_errors_write(&errors, &call->j);
    }
    if (call->kind == CALL_CREATE_BATCH)
        json_close_array(&call->j);
    finish(exchange, call->taken ? MHD_HTTP_CREATED : UNPROCESSABLE);
}

static void write_token(struct json *j, const char *token)
{
    json_open_object(j, NULL);
    json_text(j, "token", token);
    json_close_object(j);
}

static void queued(struct exchange *exchange, enum message_verdict verdict, const char *id)
{
    struct call *call = exchange->kept;
    bool full = verdict == VERDICT_FULL || verdict == VERDICT_KEY_FULL;
    if (full && !call->taken) {
        exchange->retry_after_s = 1;
        judge0_answer_error(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "queue is full");
        return;
    }
    if (verdict != VERDICT_GO && verdict != VERDICT_REPEATED && !full) {
        async_answer_queued(exchange, verdict, id);
        return;
    }
    call->taken = true;
    call->next++;
    if (call->kind == CALL_CREATE) { /* a client that waits holds no body */
        json_decref(call->root);
        call->root = NULL;
        exchange_release(exchange);
    }
    if (call->wait) {
        (void)snprintf(exchange->execution_id, sizeof exchange->execution_id, "%s", id);
        exchange->wait_until_ms =
            exchange->http->now_ms + exchange->http->config->queue.max_wait_ms;
        async_wait(exchange);
        return;
    }
    if (full)
        str_append(&call->out, call->j.comma ? ",{\"error\":[\"queue is full\"]}"
                                             : "{\"error\":[\"queue is full\"]}");
    else
        write_token(&call->j, id);
    call->j.comma = true;
    create_next(exchange);
}

/* ---- reading ---- */

static void ask_for(struct exchange *exchange, enum message_type type, const char *token)
{
    struct call *call = exchange->kept;
    (void)snprintf(call->token, sizeof call->token, "%s", token);
    async_ask_for(exchange, TICKET_NOTE, type, token);
}

static void ended(struct exchange *exchange)
{
    ask_for(exchange, MESSAGE_NOTE, exchange->execution_id);
}

static void write_meta(struct json *j, const struct call *call)
{
    uint64_t per_page = call->per_page ? call->per_page : 1;
    uint64_t pages = (call->list.total + per_page - 1) / per_page;
    json_open_object(j, "meta");
    json_uint(j, "current_page", call->page);
    if (call->page < pages)
        json_uint(j, "next_page", call->page + 1);
    else
        json_nothing(j, "next_page");
    if (call->page > 1)
        json_uint(j, "prev_page", call->page - 1);
    else
        json_nothing(j, "prev_page");
    json_uint(j, "total_pages", pages);
    json_uint(j, "total_count", call->list.total);
    json_close_object(j);
}

/* Asks for the next of several, or answers. */
static void get_next(struct exchange *exchange)
{
    struct call *call = exchange->kept;
    for (; call->next < call->count; call->next++) {
        if (execution_id_is_valid(call->list.ids[call->next])) {
            ask_for(exchange, MESSAGE_NOTE, call->list.ids[call->next]);
            return;
        }
        json_nothing(&call->j, NULL);
    }
    json_close_array(&call->j);
    if (call->kind == CALL_LIST)
        write_meta(&call->j, call);
    json_close_object(&call->j);
    finish(exchange, MHD_HTTP_OK);
}

static void take_one_of_many(struct exchange *exchange, const struct note *note)
{
    struct call *call = exchange->kept;
    size_t before = call->out.length;
    call->next++;
    if (note->state == NOTE_MISSING && call->kind == CALL_GET_BATCH)
        json_nothing(&call->j, NULL);
    if (note->state != NOTE_MISSING &&
        !judge0_write(&call->j, note, call->token, call->members, call->base64)) {
        judge0_answer_error(exchange, MHD_HTTP_BAD_REQUEST, SOME_NOT_UTF8);
        return;
    }
    if (call->out.failed || !exchange_charge(exchange, call->out.length - before)) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return;
    }
    get_next(exchange);
}

/* POST with wait=true, GET and DELETE. */
static void take_one(struct exchange *exchange, const struct note *note)
{
    struct call *call = exchange->kept;
    bool created = call->kind == CALL_CREATE, pending = note->state != NOTE_ENDED;
    if (note->state == NOTE_MISSING) {
        judge0_answer_missing(exchange);
        return;
    }
    if (call->wait && pending && !async_is_waited_out(exchange)) {
        async_wait(exchange);
        return;
    }
    if (call->kind == CALL_DELETE && pending) {
        char text[96];
        enum judge0_status status =
            note->state == NOTE_QUEUED ? JUDGE0_IN_QUEUE : JUDGE0_PROCESSING;
        (void)snprintf(text, sizeof text,
                       "submission cannot be deleted because its status is %d (%s)", (int)status,
                       judge0_status_name(status));
        judge0_answer_error(exchange, MHD_HTTP_BAD_REQUEST, text);
        return;
    }
    if (!judge0_write(&call->j, note, call->token, call->members, call->base64)) {
        json_open_object(&call->j, NULL);
        json_text(&call->j, "error", ONE_NOT_UTF8);
        if (created)
            json_text(&call->j, "token", call->token);
        json_close_object(&call->j);
        finish(exchange, created ? MHD_HTTP_CREATED : MHD_HTTP_BAD_REQUEST);
        return;
    }
    finish(exchange, created ? MHD_HTTP_CREATED : MHD_HTTP_OK);
}

static void take_list(struct exchange *exchange, const struct message *message)
{
    struct call *call = exchange->kept;
    if (note_list_decode(message->bytes, message->length, &call->list, NULL) < 0) {
        answer_error(exchange, ERROR_INTERNAL, NULL);
        return;
    }
    call->listed = true;
    call->count = call->list.count;
    json_open_object(&call->j, NULL);
    json_open_array(&call->j, "submissions");
    get_next(exchange);
}

/* Of the statistics, which keep no call. */
static void answer_total(struct exchange *exchange, const struct message *message)
{
    struct note_list list = {0};
    autostr struct str text = {0};
    struct json j;
    int decoded = note_list_decode(message->bytes, message->length, &list, NULL);
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_open_object(&j, "submissions");
    json_uint(&j, "total", list.total);
    json_close_object(&j);
    json_open_array(&j, "languages");
    json_close_array(&j);
    json_open_array(&j, "statuses");
    json_close_array(&j);
    json_close_object(&j);
    note_list_done(&list);
    if (decoded < 0)
        answer_error(exchange, ERROR_INTERNAL, NULL);
    else
        answer_json(exchange, MHD_HTTP_OK, &text);
}

static void noted(struct exchange *exchange, const struct message *message)
{
    const struct call *call = exchange->kept;
    autonote struct note note = {0};
    if (!call) {
        answer_total(exchange, message);
        return;
    }
    if (call->kind == CALL_LIST && !call->listed) {
        take_list(exchange, message);
        return;
    }
    if (note_decode(message->bytes, message->length, &note, NULL) < 0) {
        answer_error(exchange, ERROR_INTERNAL, NULL);
        return;
    }
    if (call->kind == CALL_GET_BATCH || call->kind == CALL_LIST)
        take_one_of_many(exchange, &note);
    else
        take_one(exchange, &note);
}

/* ---- requests ---- */

static void fail(struct exchange *exchange, enum http_error error, const char *field,
                 const char *message)
{
    const struct error_row *row = error_row(error);
    (void)field;
    if (error == ERROR_UNAUTHORIZED)
        judge0_answer_nothing(exchange, row->status);
    else if (error == ERROR_INVALID_ID)
        judge0_answer_missing(exchange);
    else
        judge0_answer_error(exchange, row->status, message ? message : row->text);
}

const struct dialect judge0_dialect = {
    .fail = fail, .queued = queued, .ended = ended, .noted = noted, .key_name = "X-Auth-Token"};

/* Judge0 1.13 takes base64_encoded=true; later versions take all but false. */
static bool wants_base64(const struct exchange *exchange)
{
    const char *value = exchange_parameter(exchange, "base64_encoded");
    if (exchange->http->config->judge0.implicit_base64)
        return !str_equal(value, "false");
    return str_equal(value, "true");
}

/* Makes exchange->kept and reads what all requests have. NULL: the exchange is answered. */
static struct call *begin(struct exchange *exchange, enum call_kind kind)
{
    autostr struct str unknown = {0};
    if (!pages_has_history(exchange))
        return NULL;
    struct call *call = calloc(1, sizeof *call);
    if (!call) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return NULL;
    }
    exchange->kept = call;
    exchange->free_kept = call_done;
    call->kind = kind;
    call->base64 = wants_base64(exchange);
    json_init(&call->j, &call->out);
    if (kind == CALL_CREATE_BATCH)
        return call;
    call->members = judge0_members_read(exchange_parameter(exchange, "fields"), &unknown);
    if (unknown.length == 0)
        return call;
    autostr struct str text = {0};
    str_concat(&text, "invalid fields: [", unknown.data, "]");
    judge0_answer_error(exchange, MHD_HTTP_BAD_REQUEST, text.failed ? "invalid fields" : text.data);
    return NULL;
}

/* Reads the body into call->root. */
static bool read_body(struct exchange *exchange)
{
    struct call *call = exchange->kept;
    const char *text = exchange->body.data ? exchange->body.data : "";
    size_t length = exchange->body.length;
    if (http_history_is_full(exchange->http)) {
        answer_error(exchange, ERROR_HISTORY_FULL, NULL);
        return false;
    }
    if (!execute_take_idempotency(exchange))
        return false;
    if (exchange_is_form(exchange))
        call->root = judge0_form(text, length, FORM_FIELDS_MAX);
    else if (request_shape(text, length, REQUEST_DEPTH_MAX, REQUEST_VALUES_MAX) == REQUEST_SHAPE_OK)
        call->root = json_loadb(text, length, JSON_ALLOW_NUL, NULL);
    str_done(&exchange->body);
    if (json_is_object(call->root))
        return true;
    answer_error(exchange, ERROR_INVALID_JSON, NULL);
    return false;
}

void judge0_create(struct exchange *exchange)
{
    struct call *call = begin(exchange, CALL_CREATE);
    if (!call || !read_body(exchange))
        return;
    call->wait = str_equal(exchange_parameter(exchange, "wait"), "true");
    call->count = 1;
    create_next(exchange);
}

static bool check_count(struct exchange *exchange, size_t count)
{
    if (count == 0)
        judge0_answer_error(exchange, MHD_HTTP_BAD_REQUEST,
                            "there should be at least one submission in a batch");
    if (count > JUDGE0_BATCH_MAX)
        judge0_answer_error(exchange, MHD_HTTP_BAD_REQUEST,
                            "number of submissions in a batch should be less than or equal to 20");
    return count > 0 && count <= JUDGE0_BATCH_MAX;
}

void judge0_create_batch(struct exchange *exchange)
{
    struct call *call = begin(exchange, CALL_CREATE_BATCH);
    if (!call || !read_body(exchange))
        return;
    call->count = json_array_size(json_object_get(call->root, "submissions"));
    if (!check_count(exchange, call->count))
        return;
    if (exchange->http->gauges.waiting + call->count > exchange->http->config->queue.max) {
        exchange->retry_after_s = 1;
        judge0_answer_error(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "queue is full");
        return;
    }
    json_open_array(&call->j, NULL);
    create_next(exchange);
}

void judge0_get(struct exchange *exchange)
{
    if (begin(exchange, CALL_GET))
        ask_for(exchange, MESSAGE_NOTE, exchange->path_id);
}

/* The tokens are in a header or in the query. */
void judge0_get_batch(struct exchange *exchange)
{
    struct call *call = begin(exchange, CALL_GET_BATCH);
    const char *tokens = exchange_value(exchange, "tokens");
    if (!call)
        return;
    struct note_list *list = &call->list;
    list->ids = arena_alloc(&list->arena, (JUDGE0_BATCH_MAX + 1) * sizeof *list->ids);
    for (tokens = tokens ? tokens + strspn(tokens, " ") : ""; *tokens && list->ids;) {
        size_t length = strcspn(tokens, ",");
        if (call->count <= JUDGE0_BATCH_MAX)
            list->ids[call->count++] = arena_strndup(&list->arena, tokens, length);
        tokens += length + (tokens[length] == ',');
    }
    if (list->arena.failed) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return;
    }
    if (!check_count(exchange, call->count))
        return;
    json_open_object(&call->j, NULL);
    json_open_array(&call->j, "submissions");
    get_next(exchange);
}

/* As Ruby's to_i; `usual` if the parameter is not there. */
static int64_t number_of(const struct exchange *exchange, const char *name, int64_t usual)
{
    const char *text = exchange_parameter(exchange, name);
    return text ? strtol(text, NULL, 10) : usual;
}

void judge0_list(struct exchange *exchange)
{
    autostr struct str question = {0};
    if (!judge0_check_authorized(exchange))
        return;
    struct call *call = begin(exchange, CALL_LIST);
    int64_t page = number_of(exchange, "page", 1);
    int64_t per_page = number_of(exchange, "per_page", PAGE_USUAL);
    char text[64];
    if (!call)
        return;
    if (page <= 0 || per_page < 0) {
        (void)snprintf(text, sizeof text, "invalid %s: %lld", page <= 0 ? "page" : "per_page",
                       (long long)(page <= 0 ? page : per_page));
        judge0_answer_error(exchange, MHD_HTTP_BAD_REQUEST, text);
        return;
    }
    call->page = (uint64_t)page > INT32_MAX ? INT32_MAX : (uint64_t)page;
    call->per_page = (uint64_t)per_page > NOTES_PAGE_MAX ? NOTES_PAGE_MAX : (uint64_t)per_page;
    struct note_page asked = {.offset = (call->page - 1) * call->per_page, .limit = call->per_page};
    (void)snprintf(asked.domain, sizeof asked.domain, "%s", exchange->domain);
    note_page_encode(&asked, &question);
    async_ask(exchange, TICKET_NOTE, MESSAGE_NOTE_LIST, question.data, question.length);
}

void judge0_delete(struct exchange *exchange)
{
    if (!judge0_check_authorized(exchange))
        return;
    struct call *call = begin(exchange, CALL_DELETE);
    if (!call)
        return;
    call->base64 = true; /* the client gets all bytes, as it cannot ask again */
    if (exchange->http->config->judge0.allow_delete)
        ask_for(exchange, MESSAGE_NOTE_REMOVE, exchange->path_id);
    else
        judge0_answer_error(exchange, MHD_HTTP_BAD_REQUEST, "delete not allowed");
}

void judge0_statistics(struct exchange *exchange)
{
    autostr struct str question = {0};
    struct note_page asked = {.limit = 0};
    if (!pages_has_history(exchange))
        return;
    (void)snprintf(asked.domain, sizeof asked.domain, "%s", exchange->domain);
    note_page_encode(&asked, &question);
    async_ask(exchange, TICKET_NOTE, MESSAGE_NOTE_LIST, question.data, question.length);
}
