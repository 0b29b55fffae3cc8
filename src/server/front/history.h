/* SPDX-License-Identifier: MIT */
/* The routes below /executions, which the recorder and the warden answer. */
#pragma once

struct exchange;
struct front;
struct message;

void history_list(struct exchange *exchange);
void history_get(struct exchange *exchange);
void history_kill(struct exchange *exchange);
/* MESSAGE_ROWS, MESSAGE_MISSING, MESSAGE_FAILED, MESSAGE_KILLED. */
void history_answer(struct front *front, const struct message *message);
