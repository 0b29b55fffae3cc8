/* SPDX-License-Identifier: MIT */
/* POST /execute and /execute/stream: from the body to the warden and back. */
#pragma once

#include <stddef.h>

struct exchange;
struct front;
struct message;
struct ticket;

void execute_begin(struct exchange *exchange); /* of the table of routes */
/* The client is gone: a run is cancelled, one that waits is forgotten. */
void execute_abandon(struct front *front, struct ticket *ticket);
/* The warden is gone, and the run with it. */
void execute_lost(struct front *front, struct ticket *ticket);
/* MESSAGE_BEGUN, MESSAGE_OUTPUT and MESSAGE_DONE. */
void execute_begun(struct front *front, const struct message *message);
void execute_output(struct front *front, const struct message *message);
void execute_done(struct front *front, const struct message *message);
/* Runs, those that an earlier front has begun among them. */
size_t execute_count(const struct front *front);
/* Starts what waits, as long as there are places. */
void execute_start_waiting(struct front *front);
/* Answers those that have waited for too long; all of them when the server drains. */
void execute_tick(struct front *front);
