/* SPDX-License-Identifier: MIT */
/* Piston's WebSocket: an execution whose output, input and signals are messages. The client has a
 * second for its first message. A client that goes away ends the execution. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/str.h"
#include "server/api/piston.h"
#include "server/api/piston_request.h"
#include "server/config/config.h"
#include "server/http/http.h"
#include "server/http/upgrade.h"

#define INIT_MS 1000
/* The longest message with input. */
#define MESSAGE_MAX (2 * EXECUTION_INPUT_MAX)

/* Close codes of Piston. */
enum {
    ALREADY_INITIALIZED = 4000,
    INITIALIZATION_TIMEOUT = 4001,
    NOTIFIED_ERROR = 4002,
    NOT_YET_INITIALIZED = 4003,
    CAN_ONLY_WRITE_TO_STDIN = 4004,
    INVALID_SIGNAL = 4005,
    JOB_COMPLETED = 4999,
};

struct session {
    bool initialized, begun;
    uint64_t until_ms; /* for the first message */
    struct piston_call call;
    struct str early;       /* input before the executor has begun */
    uint64_t untaken;       /* bytes of output that were sent since the executor was told */
    struct str begun_of[2]; /* the first bytes of an incomplete character of each stream */
};

static void free_session(void *context)
{
    struct session *session = context;
    piston_call_done(&session->call);
    str_done(&session->early);
    for (int i = 0; i < 2; i++)
        str_done(&session->begun_of[i]);
    free(session);
}

/* NULL: the execution is one of POST /execute. */
static struct session *session_of(const struct exchange *exchange)
{
    return exchange->upgrade ? exchange->kept : NULL;
}

/* ---- to the client ---- */

static void send_json(struct exchange *exchange, struct json *j, struct str *text)
{
    json_close_object(j);
    if (!text->failed)
        upgrade_text(exchange, text->data, text->length);
}

static void begin_json(struct json *j, struct str *text, const char *type)
{
    json_init(j, text);
    json_open_object(j, NULL);
    json_text(j, "type", type);
}

void piston_connect_fail(struct exchange *exchange, const char *message)
{
    autostr struct str text = {0};
    struct json j;
    begin_json(&j, &text, "error");
    json_text(&j, "message", message);
    send_json(exchange, &j, &text);
    upgrade_close(exchange, NOTIFIED_ERROR, "Notified Error");
}

static void tell_runtime(struct exchange *exchange, const struct session *session)
{
    autostr struct str text = {0};
    struct json j;
    begin_json(&j, &text, "runtime");
    json_text(&j, "language", session->call.language);
    json_text(&j, "version", session->call.version);
    send_json(exchange, &j, &text);
}

static void tell_data(struct exchange *exchange, bool is_stderr, const struct str *bytes)
{
    autostr struct str text = {0};
    struct json j;
    if (bytes->length == 0)
        return;
    begin_json(&j, &text, "data");
    json_text(&j, "stream", is_stderr ? "stderr" : "stdout");
    json_bytes(&j, "data", bytes->data, bytes->length);
    send_json(exchange, &j, &text);
}

/* The bytes at the end that begin a character. */
static size_t incomplete(const struct str *text)
{
    for (size_t length = 1; length <= 3 && length <= text->length; length++) {
        const unsigned char *end = (const unsigned char *)text->data + text->length - length;
        if (utf8_length(end, length) > 0)
            return 0;
        if (utf8_is_beginning(end, length))
            return length;
    }
    return 0;
}

void piston_connect_output(struct exchange *exchange, bool is_stderr, const char *bytes,
                           size_t length)
{
    struct session *session = session_of(exchange);
    if (!session)
        return;
    struct str *begun = &session->begun_of[is_stderr];
    autostr struct str whole = *begun;
    *begun = (struct str){0};
    str_append_bytes(&whole, bytes, length);
    session->untaken += length;
    if (whole.failed)
        return;
    size_t left = incomplete(&whole);
    whole.length -= left;
    str_append_bytes(begun, whole.data + whole.length, left);
    tell_data(exchange, is_stderr, &whole);
}

void piston_connect_stage(struct exchange *exchange, const struct message_stage *stage)
{
    struct session *session = session_of(exchange);
    autostr struct str text = {0};
    struct json j;
    char name[PISTON_SIGNAL_NAME_MAX];
    bool has_code = stage->exit_code >= 0 && stage->signal == 0;
    if (!session)
        return;
    for (int i = 0; i < 2; i++) { /* a character that did not become whole */
        tell_data(exchange, i == 1, &session->begun_of[i]);
        str_done(&session->begun_of[i]);
    }
    begin_json(&j, &text, stage->ended ? "exit" : "stage");
    json_text(&j, "stage", stage->stage == STAGE_COMPILE ? "compile" : "run");
    if (stage->ended && has_code)
        json_int(&j, "code", stage->exit_code);
    else if (stage->ended)
        json_nothing(&j, "code");
    if (stage->ended)
        json_text(&j, "signal",
                  has_code
                      ? NULL
                      : piston_signal_name(stage->signal ? (int)stage->signal : SIGKILL, name));
    send_json(exchange, &j, &text);
}

void piston_connect_done(struct exchange *exchange, const struct execution_result *result)
{
    if (result->status == EXECUTION_KILLED && result->message && *result->message)
        piston_connect_fail(exchange, result->message);
    else
        upgrade_close(exchange, JOB_COMPLETED, "Job Completed");
}

/* ---- from the client ---- */

static void send_input(struct exchange *exchange, const char *bytes, size_t length)
{
    (void)http_send(exchange->http, ROLE_EXECUTOR, MESSAGE_INPUT, exchange->ticket->tag, bytes,
                    length);
}

/* The executor knows the execution from now on. */
void piston_connect_begun(struct exchange *exchange)
{
    struct session *session = session_of(exchange);
    if (!session)
        return;
    session->begun = true;
    if (session->early.length > 0)
        send_input(exchange, session->early.data, session->early.length);
    str_done(&session->early);
    upgrade_hold(exchange, 0);
}

static void take_init(struct exchange *exchange, const json_t *message)
{
    struct session *session = exchange->kept;
    struct piston_fault fault;
    json_auto_t *runtimes = piston_runtimes(exchange);
    if (session->initialized) {
        upgrade_close(exchange, ALREADY_INITIALIZED, "Already Initialized");
        return;
    }
    if (!piston_read(message, runtimes, exchange->http->config, true, &session->call, &fault)) {
        piston_connect_fail(exchange, *fault.message ? fault.message : "invalid file name");
        return;
    }
    session->initialized = true;
    upgrade_limit(exchange, MESSAGE_MAX);
    tell_runtime(exchange, session);
    piston_start(exchange, &session->call);
}

static void take_data(struct exchange *exchange, const json_t *message)
{
    struct session *session = exchange->kept;
    const char *stream = json_string_value(json_object_get(message, "stream"));
    const json_t *data = json_object_get(message, "data");
    if (!session->initialized)
        upgrade_close(exchange, NOT_YET_INITIALIZED, "Not yet Initialized");
    else if (!str_equal(stream, "stdin"))
        upgrade_close(exchange, CAN_ONLY_WRITE_TO_STDIN, "Can only write to stdin");
    else if (!json_is_string(data))
        piston_connect_fail(exchange, "data is required as a string");
    else if (session->begun && exchange->ticket)
        send_input(exchange, json_string_value(data), json_string_length(data));
    else if (json_string_length(data) > EXECUTION_INPUT_MAX - session->early.length)
        piston_connect_fail(exchange, "too much input before the code runs");
    else {
        str_append_bytes(&session->early, json_string_value(data), json_string_length(data));
        upgrade_hold(exchange, session->early.length);
    }
}

/* A program that is stopped would wait for its time limit: such signals are not passed on. */
static bool stops(int number)
{
    return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

static void take_signal(struct exchange *exchange, const json_t *message)
{
    const struct session *session = exchange->kept;
    const char *name = json_string_value(json_object_get(message, "signal"));
    char number = (char)(name ? piston_signal_number(name) : 0);
    if (!session->initialized)
        upgrade_close(exchange, NOT_YET_INITIALIZED, "Not yet Initialized");
    else if (number == 0)
        upgrade_close(exchange, INVALID_SIGNAL, "Invalid signal");
    else if (session->begun && exchange->ticket && !stops(number))
        (void)http_send(exchange->http, ROLE_EXECUTOR, MESSAGE_SIGNAL, exchange->ticket->tag,
                        &number, 1);
}

static void take_text(struct exchange *exchange, const char *bytes, size_t length)
{
    static const struct {
        const char *type;
        void (*take)(struct exchange *exchange, const json_t *message);
    } types[] = {{"init", take_init}, {"data", take_data}, {"signal", take_signal}};
    char problem[PISTON_PROBLEM_MAX];
    json_auto_t *message = piston_parse(bytes, length, problem);
    const char *type = json_string_value(json_object_get(message, "type"));
    if (!message) {
        piston_connect_fail(exchange, problem);
        return;
    }
    for (size_t i = 0; type && i < ARRAY_LENGTH(types); i++)
        if (strcmp(types[i].type, type) == 0)
            types[i].take(exchange, message);
}

/* ---- the connection ---- */

static void opened(struct exchange *exchange)
{
    struct session *session = exchange->kept;
    session->until_ms = exchange->http->now_ms + INIT_MS;
    upgrade_limit(exchange, exchange->http->config->server.max_body_bytes);
}

static void taken(struct exchange *exchange)
{
    struct session *session = exchange->kept;
    uint64_t bytes = session->untaken;
    session->untaken = 0;
    if (bytes > 0 && exchange->ticket)
        (void)http_send(exchange->http, ROLE_EXECUTOR, MESSAGE_TAKEN, exchange->ticket->tag, &bytes,
                        sizeof bytes);
}

static void tick(struct exchange *exchange)
{
    const struct session *session = exchange->kept;
    if (!session->initialized && exchange->http->now_ms >= session->until_ms)
        upgrade_close(exchange, INITIALIZATION_TIMEOUT, "Initialization Timeout");
}

static const struct upgrade_protocol protocol = {
    .opened = opened, .text = take_text, .taken = taken, .tick = tick};

void piston_connect(struct exchange *exchange)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return;
    }
    exchange->kept = session;
    exchange->free_kept = free_session;
    upgrade_begin(exchange, &protocol);
}
