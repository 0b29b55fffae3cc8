/* SPDX-License-Identifier: MIT */
/* What other processes have to answer, found again by its tag. */
#include <stdlib.h>

#include "base/own.h"
#include "server/front/answer.h"
#include "server/front/execute.h"
#include "server/front/front.h"

static struct ticket **bucket(struct front *front, uint64_t tag)
{
    return &front->tickets[tag % FRONT_TICKETS];
}

struct ticket *ticket_new(struct front *front, enum ticket_kind kind, struct exchange *exchange)
{
    struct ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return NULL;
    ticket->tag = ++front->next_tag;
    ticket->kind = kind;
    ticket->exchange = exchange;
    exchange->ticket = ticket;
    struct ticket **chain = bucket(front, ticket->tag);
    ticket->chain = *chain;
    *chain = ticket;
    return ticket;
}

struct ticket *ticket_find(struct front *front, uint64_t tag)
{
    struct ticket *ticket = *bucket(front, tag);
    while (ticket && ticket->tag != tag)
        ticket = ticket->chain;
    return ticket;
}

void ticket_free(struct front *front, struct ticket *ticket)
{
    struct ticket **link = bucket(front, ticket->tag);
    while (*link != ticket)
        link = &(*link)->chain;
    *link = ticket->chain;
    if (ticket->exchange)
        ticket->exchange->ticket = NULL;
    if (ticket->counted)
        front->key_places[ticket->key]--;
    str_done(&ticket->packed);
    free(ticket);
}

static bool is_lost(const struct ticket *ticket, enum server_role role)
{
    if (ticket->queued)
        return false; /* it was not sent yet */
    bool of_warden = ticket->kind == TICKET_RUN || ticket->kind == TICKET_KILL;
    return of_warden == (role == ROLE_WARDEN);
}

static void lose(struct front *front, struct ticket *ticket)
{
    struct exchange *exchange = ticket->exchange;
    if (ticket->kind == TICKET_RUN) {
        execute_lost(front, ticket);
        return;
    }
    ticket_free(front, ticket);
    if (!exchange)
        return;
    answer_error(exchange,
                 exchange->error == ERROR_NONE ? ERROR_HISTORY_UNAVAILABLE : exchange->error, NULL);
    exchange_resume(exchange);
}

void tickets_lost(struct front *front, enum server_role role)
{
    for (size_t i = 0; i < FRONT_TICKETS; i++) {
        struct ticket *next;
        for (struct ticket *ticket = front->tickets[i]; ticket; ticket = next) {
            next = ticket->chain;
            if (is_lost(ticket, role))
                lose(front, ticket);
        }
    }
}
