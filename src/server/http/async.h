/* SPDX-License-Identifier: MIT */
/* Asynchronous executions in the http process: POST /executions, waiting for one of them, and answers
 * to a repeated idempotency key. */
#pragma once

struct exchange;
struct http;
struct message;
struct ticket;

/* Handlers of the route table. */
void async_submit(struct exchange *exchange);
void async_get(struct exchange *exchange);
void async_usage(struct exchange *exchange);

/* Handle MESSAGE_QUEUED, MESSAGE_PENDING, MESSAGE_OUTCOME, MESSAGE_ENDED, MESSAGE_PEEKED and
 * MESSAGE_REPEATED. */
void async_queued(struct http *http, const struct message *message);
void async_pending(struct http *http, const struct message *message);
void async_outcome(struct http *http, const struct message *message);
void async_ended(struct http *http, const struct message *message);
void async_peeked(struct http *http, const struct message *message);
void async_repeated(struct http *http, const struct message *message);

/* A new history process: what was waited for may have ended meanwhile. */
void async_history_new(struct http *http);
/* The executor is gone: answers what is known. */
void async_peek_lost(struct exchange *exchange);
/* Ends waits that are over. */
void async_tick(struct http *http);
