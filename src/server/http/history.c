/* SPDX-License-Identifier: MIT */
/* The routes below /executions. */
#include "server/http/history.h"

#include <stdio.h>
#include <string.h>

#include "server/config.h"
#include "server/http/answer.h"
#include "server/http/http.h"
#include "server/http/query.h"

/* `error` is what the client is told should there be no answer. */
static void ask(struct exchange *exchange, enum ticket_kind kind, enum server_role role,
                enum message_type type, const char *text, enum http_error error)
{
    struct http *http = exchange->http;
    struct ticket *ticket = ticket_new(http, kind, exchange);
    if (!ticket || !http_send(http, role, type, ticket->tag, text, strlen(text))) {
        if (ticket)
            ticket_free(http, ticket);
        answer_error(exchange, error, NULL);
        return;
    }
    exchange->error = error;
    exchange->state = EXCHANGE_WAITING;
    exchange_suspend(exchange);
}

/* Who has a key sees and ends what was asked for with it, and nothing else. */
static void ask_for_id(struct exchange *exchange, enum ticket_kind kind, enum server_role role,
                       enum message_type type, enum http_error error)
{
    char text[EXECUTION_ID_LENGTH + sizeof exchange->domain];
    (void)snprintf(text, sizeof text, "%s%s", exchange->path_id, exchange->domain);
    ask(exchange, kind, role, type, text, error);
}

static bool has_history(struct exchange *exchange)
{
    if (exchange->http->config->database.store != STORE_NONE)
        return true;
    answer_error(exchange, ERROR_HISTORY_UNAVAILABLE,
                 "the server keeps no history: database.store is none");
    return false;
}

void history_list(struct exchange *exchange)
{
    autostr struct str text = {0};
    if (!has_history(exchange) || !query_check(exchange) || !query_list(exchange, &text))
        return;
    ask(exchange, TICKET_LIST, ROLE_HISTORY, MESSAGE_LIST, text.data ? text.data : "",
        ERROR_HISTORY_UNAVAILABLE);
}

void history_get(struct exchange *exchange)
{
    if (!has_history(exchange) || !query_check(exchange))
        return;
    ask_for_id(exchange, TICKET_GET, ROLE_HISTORY, MESSAGE_GET, ERROR_HISTORY_UNAVAILABLE);
}

void history_kill(struct exchange *exchange)
{
    if (query_check(exchange))
        ask_for_id(exchange, TICKET_KILL, ROLE_EXECUTOR, MESSAGE_KILL, ERROR_EXECUTION_LOST);
}

static void answer_no_id(struct exchange *exchange, const char *what)
{
    char message[96];
    (void)snprintf(message, sizeof message, "no execution with the id %s %s", exchange->path_id,
                   what);
    answer_error(exchange, ERROR_NOT_FOUND, message);
}

static void answer_killed(struct exchange *exchange, const struct message *message)
{
    autostr struct str text = {0};
    if (message->length != 1 || message->bytes[0] != 1) {
        answer_no_id(exchange, "is running");
        return;
    }
    str_appendf(&text, "{\"id\":\"%s\",\"status\":\"killed\"}", exchange->path_id);
    answer_json(exchange, MHD_HTTP_ACCEPTED, &text);
}

static void answer_rows(struct exchange *exchange, const struct message *message)
{
    autostr struct str text = {0};
    str_append_bytes(&text, message->bytes, message->length);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

void history_answer(struct http *http, const struct message *message)
{
    struct ticket *ticket = ticket_find(http, message->tag);
    if (!ticket || ticket->kind == TICKET_RUN ||
        (ticket->kind == TICKET_KILL) != (message->type == MESSAGE_KILLED))
        return;
    struct exchange *exchange = ticket->exchange;
    ticket_free(http, ticket);
    if (!exchange)
        return;
    exchange->error = ERROR_NONE;
    if (message->type == MESSAGE_KILLED)
        answer_killed(exchange, message);
    else if (message->type == MESSAGE_ROWS)
        answer_rows(exchange, message);
    else if (message->type == MESSAGE_MISSING)
        answer_no_id(exchange, "is known");
    else
        answer_error(exchange, ERROR_HISTORY_UNAVAILABLE, message->bytes);
    exchange_resume(exchange);
}
