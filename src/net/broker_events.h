/* SPDX-License-Identifier: MIT */
/* The events on their way to the job. None is lost: while the job does not read them, nothing new
 * may begin, and what has begun can only end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "net/broker_wire.h"

#define EVENTS_FEW 64 /* waiting; with more, nothing new begins */

struct event_node;

/* Zero-initialise; `socket` is borrowed, non-blocking. */
struct events {
    int socket;
    struct event_node *first, **last;
    size_t waiting;
};

void events_init(struct events *events, int socket);
void events_done(struct events *events);

/* Sends it, or keeps a copy until it can be sent. False if the job is gone or memory is short: the
 * broker ends then, rather than to go on unseen. */
bool events_send(struct events *events, const struct door_event *event);
/* Sends what waits, and waits for the job as long as that. */
void events_drain(struct events *events, int wait_ms);
/* Goes on sending what waits; false as above. */
bool events_flush(struct events *events);
