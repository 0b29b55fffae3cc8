/* SPDX-License-Identifier: MIT */
/* Rows that the history process has not confirmed yet. */
#include "server/executor/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Bytes queued in the channel are a second copy, so limit them. */
#define QUEUED_MAX ((size_t)8 << 20)

struct ledger_entry {
    struct ledger_entry *next;
    uint64_t tag;
    enum message_type type;
    size_t length;
    char bytes[];
};

void executor_ledger_init(struct ledger *ledger)
{
    *ledger = (struct ledger){.last = &ledger->first};
}

static void drop_first(struct ledger *ledger)
{
    struct ledger_entry *first = ledger->first;
    ledger->first = first->next;
    if (!ledger->first)
        ledger->last = &ledger->first;
    if (ledger->unsent == first)
        ledger->unsent = first->next;
    ledger->bytes -= first->length;
    free(first);
}

void executor_ledger_done(struct ledger *ledger)
{
    while (ledger->first)
        drop_first(ledger);
}

int executor_ledger_add(struct ledger *ledger, enum message_type type, const void *bytes,
                        size_t length, struct brig_error *err)
{
    struct ledger_entry *entry = malloc(sizeof *entry + length);
    if (!entry)
        return brig_fail_nomem(err);
    *entry = (struct ledger_entry){.tag = ++ledger->tag, .type = type, .length = length};
    if (length > 0)
        memcpy(entry->bytes, bytes, length);
    *ledger->last = entry;
    ledger->last = &entry->next;
    ledger->bytes += length;
    if (!ledger->unsent)
        ledger->unsent = entry;
    return 0;
}

int executor_ledger_send(struct ledger *ledger, struct channel *history, struct brig_error *err)
{
    while (ledger->unsent && channel_queued(history) < QUEUED_MAX) {
        const struct ledger_entry *entry = ledger->unsent;
        int result =
            channel_send(history, entry->type, entry->tag, entry->bytes, entry->length, err);
        if (result < 0)
            return result;
        ledger->unsent = entry->next;
    }
    return 0;
}

/* Stops at the first entry that was not sent: a larger tag is invalid. */
void executor_ledger_stored(struct ledger *ledger, uint64_t tag)
{
    while (ledger->first && ledger->first != ledger->unsent && ledger->first->tag <= tag)
        drop_first(ledger);
}

void executor_ledger_again(struct ledger *ledger)
{
    ledger->unsent = ledger->first;
}

bool executor_ledger_is_empty(const struct ledger *ledger)
{
    return !ledger->first;
}
