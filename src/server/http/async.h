/* SPDX-License-Identifier: MIT */
/* Asynchronous executions in the http process: POST /executions, waiting for one of them, and answers
 * to a repeated idempotency key. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/http/http.h"
#include "server/message.h"

struct brig_error;
struct execution_request;

/* Queues an execution. */
void async_submit_request(struct exchange *exchange, const struct execution_request *request);
/* Answers with the id, or says why the execution was not taken. */
void async_answer_queued(struct exchange *exchange, enum message_verdict verdict, const char *id);
/* Waits for the end of exchange->execution_id, until exchange->wait_until_ms. */
void async_wait(struct exchange *exchange);
bool async_is_waited_out(const struct exchange *exchange);
/* Asks the history process or, of TICKET_PEEK and TICKET_KILL, the executor; answers the exchange if
 * that is not there. */
void async_ask(struct exchange *exchange, enum ticket_kind kind, enum message_type type,
               const void *bytes, size_t length);
/* The same about an execution. A key can see and end only those that were started with it. */
void async_ask_for(struct exchange *exchange, enum ticket_kind kind, enum message_type type,
                   const char *id);

/* Checks a callback's URL; on failure `err` says why. */
int async_check_url(const struct exchange *exchange, const char *url, struct brig_error *err);

/* Handlers of the route table. */
void async_submit(struct exchange *exchange);
void async_get(struct exchange *exchange);
void async_usage(struct exchange *exchange);

/* Handle MESSAGE_QUEUED, MESSAGE_NOTED, MESSAGE_PENDING, MESSAGE_OUTCOME, MESSAGE_ENDED,
 * MESSAGE_PEEKED and MESSAGE_REPEATED. */
void async_noted(struct http *http, const struct message *message);
void async_queued(struct http *http, const struct message *message);
void async_pending(struct http *http, const struct message *message);
void async_outcome(struct http *http, const struct message *message);
void async_ended(struct http *http, const struct message *message);
void async_peeked(struct http *http, const struct message *message);
void async_repeated(struct http *http, const struct message *message);

/* A new history process: what was waited for may have ended meanwhile. */
void async_history_new(struct http *http);
/* The process that was asked is gone: answers what is known, or with an error. */
void async_lost(struct exchange *exchange, enum ticket_kind kind);
/* Ends waits that are over. */
void async_tick(struct http *http);
