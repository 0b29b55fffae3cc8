/* SPDX-License-Identifier: MIT */
/* POST /execute and /execute/stream: from the body to the executor and back. */
#pragma once

#include <stddef.h>

struct exchange;
struct http;
struct message;
struct ticket;

void execute_begin(struct exchange *exchange); /* of the table of routes */
/* The client is gone: a run is cancelled, one that waits is forgotten. */
void execute_abandon(struct http *http, struct ticket *ticket);
/* The executor is gone, and the run with it. */
void execute_lost(struct http *http, struct ticket *ticket);
/* MESSAGE_BEGUN, MESSAGE_OUTPUT and MESSAGE_DONE. */
void execute_begun(struct http *http, const struct message *message);
void execute_output(struct http *http, const struct message *message);
void execute_done(struct http *http, const struct message *message);
/* Runs, those that an earlier http process has begun among them. */
size_t execute_count(const struct http *http);
/* Starts what waits, as long as there are places. */
void execute_start_waiting(struct http *http);
/* Answers those that have waited for too long; all of them when the server drains. */
void execute_tick(struct http *http);
