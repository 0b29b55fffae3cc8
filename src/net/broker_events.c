/* SPDX-License-Identifier: MIT */
/* The events on their way to the job. */
#include "net/broker_events.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

struct event_node {
    struct event_node *next;
    struct door_event event;
};

void events_init(struct events *events, int socket)
{
    *events = (struct events){.socket = socket};
    events->last = &events->first;
}

void events_done(struct events *events)
{
    while (events->first) {
        struct event_node *node = events->first;
        events->first = node->next;
        free(node);
    }
    events_init(events, -1);
}

/* 1: sent; 0: not now; -1: never. */
static int try_send(int socket, const struct door_event *event)
{
    if (send(socket, event, sizeof *event, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        return 1;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM ? 0 : -1;
}

bool events_send(struct events *events, const struct door_event *event)
{
    if (!events->first) {
        int sent = try_send(events->socket, event);
        if (sent != 0)
            return sent > 0;
    }
    struct event_node *node = malloc(sizeof *node);
    if (!node)
        return false;
    node->next = NULL;
    node->event = *event;
    *events->last = node;
    events->last = &node->next;
    events->waiting++;
    return true;
}

bool events_flush(struct events *events)
{
    while (events->first) {
        struct event_node *node = events->first;
        int sent = try_send(events->socket, &node->event);
        if (sent <= 0)
            return sent == 0;
        events->first = node->next;
        if (!events->first)
            events->last = &events->first;
        events->waiting--;
        free(node);
    }
    return true;
}

void events_drain(struct events *events, int wait_ms)
{
    struct pollfd waiting = {.fd = events->socket, .events = POLLOUT};
    while (events->first && events_flush(events) && events->first)
        if (poll(&waiting, 1, wait_ms) <= 0)
            return;
}
