/* SPDX-License-Identifier: MIT */
/* What other processes have to answer, found again by its tag. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "server/http/answer.h"
#include "server/http/execute.h"
#include "server/http/http.h"

static struct ticket **bucket(struct http *http, uint64_t tag)
{
    return &http->tickets[tag % HTTP_TICKETS];
}

struct ticket *ticket_new(struct http *http, enum ticket_kind kind, struct exchange *exchange)
{
    struct ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return NULL;
    ticket->tag = ++http->next_tag;
    ticket->kind = kind;
    ticket->exchange = exchange;
    exchange->ticket = ticket;
    struct ticket **chain = bucket(http, ticket->tag);
    ticket->chain = *chain;
    *chain = ticket;
    return ticket;
}

struct ticket *ticket_find(struct http *http, uint64_t tag)
{
    struct ticket *ticket = *bucket(http, tag);
    while (ticket && ticket->tag != tag)
        ticket = ticket->chain;
    return ticket;
}

void ticket_free(struct http *http, struct ticket *ticket)
{
    struct ticket **link = bucket(http, ticket->tag);
    while (*link != ticket)
        link = &(*link)->chain;
    *link = ticket->chain;
    if (ticket->exchange)
        ticket->exchange->ticket = NULL;
    if (ticket->counted)
        http->key_places[ticket->key]--;
    str_done(&ticket->packed);
    free(ticket);
}

static bool is_lost(const struct ticket *ticket, enum server_role role)
{
    if (ticket->queued)
        return false; /* it was not sent yet */
    bool of_executor = ticket->kind == TICKET_RUN || ticket->kind == TICKET_KILL;
    return of_executor == (role == ROLE_EXECUTOR);
}

static void lose(struct http *http, struct ticket *ticket)
{
    struct exchange *exchange = ticket->exchange;
    if (ticket->kind == TICKET_RUN) {
        execute_lost(http, ticket);
        return;
    }
    ticket_free(http, ticket);
    if (!exchange)
        return;
    answer_error(exchange,
                 exchange->error == ERROR_NONE ? ERROR_HISTORY_UNAVAILABLE : exchange->error, NULL);
    exchange_resume(exchange);
}

void tickets_lost(struct http *http, enum server_role role)
{
    for (size_t i = 0; i < HTTP_TICKETS; i++) {
        struct ticket *next;
        for (struct ticket *ticket = http->tickets[i]; ticket; ticket = next) {
            next = ticket->chain;
            if (is_lost(ticket, role))
                lose(http, ticket);
        }
    }
}
