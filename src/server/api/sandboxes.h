/* SPDX-License-Identifier: MIT */
/* brigd's own dialect of the API for sandboxes: the handlers of the routes below /sandboxes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/http/sandbox.h"

struct execution_result;
struct json;

void sandboxes_create(struct exchange *exchange);
void sandboxes_list(struct exchange *exchange);
void sandboxes_get(struct exchange *exchange);
void sandboxes_end(struct exchange *exchange);
void sandboxes_timeout(struct exchange *exchange);
void sandboxes_pause(struct exchange *exchange);
void sandboxes_resume(struct exchange *exchange);
void sandboxes_fork(struct exchange *exchange);
void sandboxes_network(struct exchange *exchange);
void sandboxes_metrics(struct exchange *exchange);
void sandboxes_start(struct exchange *exchange);
void sandboxes_commands(struct exchange *exchange);
void sandboxes_command(struct exchange *exchange);
void sandboxes_kill(struct exchange *exchange);
void sandboxes_input(struct exchange *exchange);
void sandboxes_signal(struct exchange *exchange);
void sandboxes_resize(struct exchange *exchange);
void sandboxes_read(struct exchange *exchange); /* or list */
void sandboxes_write(struct exchange *exchange);
void sandboxes_remove(struct exchange *exchange);
void sandboxes_stat(struct exchange *exchange);
void sandboxes_move(struct exchange *exchange);
void sandboxes_make(struct exchange *exchange);
void sandboxes_watch(struct exchange *exchange);

/* For contexts.c and mcp_tools.c: */

/* Asks about the command or context that the path numbers: with the fields of the body, or
 * nothing else. */
void sandboxes_ask(struct exchange *exchange, struct sandbox_request *request,
                   sandbox_taker *answered);
void sandboxes_ask_with_body(struct exchange *exchange, struct sandbox_request *request,
                             sandbox_taker *answered);
void sandboxes_ask_plainly(struct exchange *exchange, enum sandbox_operation operation,
                           sandbox_taker *answered);
/* Reads the fields of the body; false: the exchange is answered. */
bool sandboxes_read_body(struct exchange *exchange, struct sandbox_request *request);
/* The member "result", in the form of POST /execute. It is not the first member of its object. */
void sandboxes_write_result(struct json *j, const struct exchange *exchange,
                            const struct execution_result *result);
/* Begins a stream of events, or answers with an error. */
void sandboxes_begin_stream(struct exchange *exchange);
/* ?stream= and ?encoding=; false: the exchange is answered. */
bool sandboxes_read_wait(struct exchange *exchange, struct sandbox_request *request);
