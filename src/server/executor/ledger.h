/* SPDX-License-Identifier: MIT */
/* Rows that the history process has not confirmed yet. The executor keeps them, so that no row is
 * lost if the history process or the http process dies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/message.h"

struct brig_error;

/* With more than this in memory, results are kept without their output. */
#define LEDGER_BYTES_MANY ((size_t)128 << 20)

struct ledger_entry;

struct ledger {
    struct ledger_entry *first, **last;
    struct ledger_entry *unsent; /* first entry not sent to this history process */
    uint64_t tag;                /* tag of the last entry */
    size_t bytes;
};

void executor_ledger_init(struct ledger *ledger);
void executor_ledger_done(struct ledger *ledger);
int executor_ledger_add(struct ledger *ledger, enum message_type type, const void *bytes,
                        size_t length, struct brig_error *err);
/* Sends entries while the channel's queue is short; negative if the channel is gone. */
int executor_ledger_send(struct ledger *ledger, struct channel *history, struct brig_error *err);
/* Removes entries up to this tag: they are on disk. */
void executor_ledger_stored(struct ledger *ledger, uint64_t tag);
/* Starts again with the first entry, for a new history process. */
void executor_ledger_again(struct ledger *ledger);
bool executor_ledger_is_empty(const struct ledger *ledger);
