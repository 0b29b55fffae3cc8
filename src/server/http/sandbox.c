/* SPDX-License-Identifier: MIT */
/* Requests about sandboxes: to the executor and back. */
#include "server/http/sandbox.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "server/http/http.h"

enum http_error sandbox_error(enum sandbox_fault fault)
{
    static const enum http_error errors[SANDBOX_FAULTS_] = {
        [SANDBOX_OK] = ERROR_INTERNAL,
        [SANDBOX_NOT_FOUND] = ERROR_NOT_FOUND,
        [SANDBOX_NO_COMMAND] = ERROR_NOT_FOUND,
        [SANDBOX_LOST] = ERROR_SANDBOX_LOST,
        [SANDBOX_INVALID] = ERROR_INVALID_FIELD,
        [SANDBOX_LANGUAGE] = ERROR_UNKNOWN_LANGUAGE,
        [SANDBOX_UNAVAILABLE] = ERROR_RUNTIME_UNAVAILABLE,
        [SANDBOX_FORBIDDEN] = ERROR_NETWORK_NOT_PERMITTED,
        [SANDBOX_LIMIT] = ERROR_SANDBOX_LIMIT,
        [SANDBOX_BUSY] = ERROR_OVERLOADED,
        [SANDBOX_CONFLICT] = ERROR_CONFLICT,
        [SANDBOX_UNSUPPORTED] = ERROR_NOT_SUPPORTED,
        [SANDBOX_FAILED] = ERROR_SETUP_FAILED,
        [SANDBOX_NO_FILE] = ERROR_FILE_NOT_FOUND,
        [SANDBOX_EXISTS] = ERROR_CONFLICT,
        [SANDBOX_REFUSED] = ERROR_FILE_REFUSED,
        [SANDBOX_KIND] = ERROR_WRONG_FILE_TYPE,
        [SANDBOX_LARGE] = ERROR_FILE_TOO_LARGE,
        [SANDBOX_NO_SPACE] = ERROR_NO_SPACE,
        [SANDBOX_NO_FILES] = ERROR_FILES_UNAVAILABLE,
        [SANDBOX_KEY_USED] = ERROR_IDEMPOTENCY_CONFLICT,
    };
    return errors[fault];
}

void sandbox_fail(struct exchange *exchange, const struct sandbox_answer *answer)
{
    enum http_error error = sandbox_error(answer->fault);
    const char *message = *answer->message ? answer->message : NULL;
    if (answer->fault == SANDBOX_LIMIT)
        exchange->retry_after_s = 1;
    answer_field_error(exchange, error, answer->field, message);
}

void sandbox_answer_nothing(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str nothing = {0};
    (void)answer;
    answer_text(exchange, MHD_HTTP_NO_CONTENT, NULL, &nothing);
}

void sandbox_ask(struct exchange *exchange, struct sandbox_request *request,
                 sandbox_taker *answered)
{
    struct http *http = exchange->http;
    /* The executor would take it as malformed, and disconnect this process with all its clients. */
    if (request->bytes.length > SANDBOX_FILE_MAX) {
        answer_error(exchange, ERROR_BODY_TOO_LARGE, NULL);
        return;
    }
    request->request_id = exchange->request_id;
    request->client = exchange->client.text;
    request->domain = exchange->domain;
    if (!request->id)
        request->id = exchange->path_id;
    if (!request->name)
        request->name = "";
    if (!request->bytes.data)
        request->bytes.data = "";
    request->token = exchange->sandbox_token;
    struct ticket *ticket = ticket_new(http, TICKET_SANDBOX, exchange);
    autostr struct str packed = {0};
    bool encoded = ticket && sandbox_request_encode(request, &packed, NULL) == 0;
    if (!encoded ||
        !http_send(http, ROLE_EXECUTOR, MESSAGE_SANDBOX, ticket->tag, packed.data, packed.length)) {
        if (ticket)
            ticket_free(http, ticket);
        answer_error(exchange, encoded ? ERROR_EXECUTION_LOST : ERROR_OVERLOADED, NULL);
        return;
    }
    ticket->answered = answered;
    ticket->relays = request->operation == SANDBOX_RELAY;
    str_done(&exchange->body);
    exchange_release(exchange);
    exchange->state = EXCHANGE_WAITING;
    exchange_suspend(exchange);
}

static struct ticket *find(struct http *http, uint64_t tag)
{
    struct ticket *ticket = ticket_find(http, tag);
    return ticket && ticket->kind == TICKET_SANDBOX ? ticket : NULL;
}

void sandbox_answered(struct http *http, const struct message *message)
{
    struct ticket *ticket = find(http, message->tag);
    autoanswer struct sandbox_answer answer = {0};
    if (!ticket)
        return;
    struct exchange *exchange = ticket->exchange;
    sandbox_taker *answered = ticket->answered;
    bool decoded = sandbox_answer_decode(message->bytes, message->length, &answer, NULL) == 0;
    if (!decoded || !answer.more)
        ticket_free(http, ticket);
    if (!exchange)
        return;
    sandbox_taker *failed = exchange->dialect->sandbox_failed;
    if (!decoded)
        answer_error(exchange, ERROR_INTERNAL, NULL);
    else if (answer.fault == SANDBOX_OK)
        answered(exchange, &answer);
    else if (failed)
        failed(exchange, &answer);
    else
        sandbox_fail(exchange, &answer);
}

void sandbox_piece(struct http *http, const struct message *message)
{
    const struct ticket *ticket = find(http, message->tag);
    struct exchange *exchange = ticket ? ticket->exchange : NULL;
    if (exchange && exchange->piece && message->length > 0 && (exchange->stream || ticket->relays))
        exchange->piece(exchange, (enum sandbox_piece)message->bytes[0], message->bytes + 1,
                        message->length - 1);
}

void sandbox_abandon(struct http *http, struct ticket *ticket)
{
    (void)http_send(http, ROLE_EXECUTOR, MESSAGE_SANDBOX_LEAVE, ticket->tag, NULL, 0);
    ticket_free(http, ticket);
}
