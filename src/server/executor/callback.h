/* SPDX-License-Identifier: MIT */
/* Callbacks: each is one run of brig-callback in a jail that reaches its destination and nothing else. */
#pragma once

struct brig_error;
struct executor;
struct message;

/* Handles MESSAGE_CALL; MESSAGE_CALLED follows. */
int executor_callback_take(struct executor *executor, const struct message *message,
                           struct brig_error *err);
/* A new history process: it sends all calls again, so those under way are not reported. */
void executor_callbacks_forget(struct executor *executor);
/* Ends all calls; at exit. */
void executor_callbacks_end(struct executor *executor);
