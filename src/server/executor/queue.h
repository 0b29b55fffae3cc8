/* SPDX-License-Identifier: MIT */
/* Executions that wait in the history process, by priority and age, and claims: executions that begin
 * when the history process has stored that they do. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/execution.h"
#include "server/history/queue.h"

struct executor;
struct message;
struct brig_error;

/* An execution that must not run before the history process has answered. */
struct claim {
    struct claim *next;
    uint64_t tag;
    struct queue_entry entry;         /* of the queue; or only its id and domain */
    struct execution_request request; /* of POST /execute with an idempotency key */
    bool reserves;                    /* is such a request */
    bool sent;
    bool cancelled;             /* was ended, or is too late: must not begin */
    uint64_t execute_tag, http; /* of such a request */
    uint64_t given_ms;
};

/* The answer to a request to end an execution that waited: it is given when that is stored. */
struct ended_entry {
    struct ended_entry *next;
    uint64_t http, tag; /* of the request */
    uint64_t row;       /* tag of the row in the journal */
};

struct executor_queue {
    struct queue_entry *entries; /* in the order in which they run */
    size_t count, capacity;
    struct claim *claims;
    size_t claim_count;
    struct ended_entry *ended;
    size_t running; /* runs that came from the queue */
    uint64_t next_tag;
    uint64_t retry_ms; /* nothing is claimed before */
};

void executor_queue_done(struct executor *executor);
/* A new history process will send its entries. Claims are sent to it again. */
void executor_queue_renew(struct executor *executor);
/* Claims what there is room for. */
void executor_queue_settle(struct executor *executor, uint64_t now_ms);
/* When executor_queue_settle() must be called again; UINT64_MAX: never. */
uint64_t executor_queue_due_ms(const struct executor *executor);
/* Begins the execution once its idempotency key is stored; takes the request. */
void executor_queue_reserve(struct executor *executor, struct execution_request *request,
                            uint64_t tag);
/* Rows up to this tag are stored. */
void executor_queue_stored(struct executor *executor, uint64_t row);
/* Returns the position of an execution, from 1; 0: it does not wait, or is of another domain. */
uint64_t executor_queue_position(const struct executor *executor, const char *id,
                                 const char *domain);

/* Handle MESSAGE_KILL, MESSAGE_PEEK, MESSAGE_WAITING and MESSAGE_CLAIMED. */
int executor_queue_take_kill(struct executor *executor, const struct message *message,
                             struct brig_error *err);
int executor_queue_take_waiting(struct executor *executor, const struct message *message,
                                struct brig_error *err);
int executor_queue_take_claimed(struct executor *executor, const struct message *message,
                                struct brig_error *err);
int executor_queue_take_peek(struct executor *executor, const struct message *message,
                             struct brig_error *err);
