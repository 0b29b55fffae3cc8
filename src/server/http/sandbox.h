/* SPDX-License-Identifier: MIT */
/* Requests about sandboxes between the http process and the executor, for every dialect of the
 * API. */
#pragma once

#include <stddef.h>

#include "server/http/route.h"
#include "server/sandbox.h"

struct exchange;
struct http;
struct message;
struct ticket;

/* What a dialect does with answers. The exchange is there; if it has no stream yet, `answered` sets
 * its answer, begins a stream or asks again, and for a stream adds to it. */
struct sandbox_dialect {
    /* Called for the last answer, and before it for one that says `more`. */
    void (*answered)(struct exchange *exchange, const struct sandbox_answer *answer);
    /* Called for each piece of output or change; NULL: there is none. */
    void (*piece)(struct exchange *exchange, enum sandbox_piece kind, const char *bytes,
                  size_t length);
    /* Called for a fault; NULL: sandbox_fail(). */
    void (*failed)(struct exchange *exchange, const struct sandbox_answer *answer);
    /* `piece` begins the stream, or sets the answer. */
    bool begins_with_piece;
};

/* Sends the request, with the client and its key filled in, and suspends the exchange; or answers
 * it with an error. */
void sandbox_ask(struct exchange *exchange, struct sandbox_request *request,
                 const struct sandbox_dialect *dialect);
/* Answers, or ends the stream, with the error of a fault. */
void sandbox_fail(struct exchange *exchange, const struct sandbox_answer *answer);
/* Answers 204, without a body. */
void sandbox_answer_nothing(struct exchange *exchange, const struct sandbox_answer *answer);
/* The error of a fault. */
enum http_error sandbox_error(enum sandbox_fault fault);

/* Handle MESSAGE_SANDBOX_ANSWER and MESSAGE_SANDBOX_PIECE. */
void sandbox_answered(struct http *http, const struct message *message);
void sandbox_piece(struct http *http, const struct message *message);
/* The client has disconnected; commands go on. */
void sandbox_abandon(struct http *http, struct ticket *ticket);
