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

/* Called for the last answer, and before it for one that says `more`; the exchange is there. Sets its
 * answer, begins a stream, asks again or, if it has a stream, adds to it. */
typedef void sandbox_taker(struct exchange *exchange, const struct sandbox_answer *answer);
/* Called for each piece of output or change, once there is a stream. */
typedef void sandbox_piece_taker(struct exchange *exchange, enum sandbox_piece kind,
                                 const char *bytes, size_t length);

/* Sends the request, with the client and its key filled in, and suspends the exchange; or answers
 * it with an error. exchange->piece takes the pieces. */
void sandbox_ask(struct exchange *exchange, struct sandbox_request *request,
                 sandbox_taker *answered);
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
