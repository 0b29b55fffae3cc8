/* SPDX-License-Identifier: MIT */
/* The routes below /executions, which the history process and the executor answer. */
#pragma once

struct exchange;
struct http;
struct message;

void history_list(struct exchange *exchange);
void history_get(struct exchange *exchange);
void history_kill(struct exchange *exchange);
/* MESSAGE_ROWS, MESSAGE_MISSING, MESSAGE_FAILED, MESSAGE_KILLED. */
void history_answer(struct http *http, const struct message *message);
