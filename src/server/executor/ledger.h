/* SPDX-License-Identifier: MIT */
/* What the history process has to know and has not yet said is safe: kept here, so that neither its death nor
 * the http process's loses a row. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/message.h"

struct brig_error;

/* With more than this kept, results had better come without their output. */
#define LEDGER_BYTES_MANY ((size_t)128 << 20)

struct ledger_entry;

struct ledger {
    struct ledger_entry *first, **last;
    struct ledger_entry *unsent; /* the first that this history has not been told */
    uint64_t tag;                /* of the last one */
    size_t bytes;
};

void executor_ledger_init(struct ledger *ledger);
void executor_ledger_done(struct ledger *ledger);
int executor_ledger_add(struct ledger *ledger, enum message_type type, const void *bytes,
                        size_t length, struct brig_error *err);
/* Sends what the channel takes without a long queue; negative if it is gone. */
int executor_ledger_send(struct ledger *ledger, struct channel *history, struct brig_error *err);
/* All up to this tag is safe. */
void executor_ledger_stored(struct ledger *ledger, uint64_t tag);
/* There is a new history process, which has been told nothing. */
void executor_ledger_again(struct ledger *ledger);
bool executor_ledger_is_empty(const struct ledger *ledger);
