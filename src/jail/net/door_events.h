/* SPDX-License-Identifier: MIT */
/* The broker's events, kept for the caller: the last events, and totals over all. Pure. */
#pragma once

#include <brig/brig.h>

#include "jail/job/result.h"

struct door_event;
struct json;

/* Zero-initialise. A ring buffer: `first` is the oldest. */
struct door_events {
    struct brig_net_event *items;
    size_t count, room, first;
    size_t taken; /* how many of the stored events were taken */
    struct brig_net_totals sums;
};

/* Checks one message of `length` bytes and stores it; false if it is not an event. */
bool door_events_add(struct door_events *events, const void *message, size_t length);
bool door_events_take(struct door_events *events, struct brig_net_event *ret_event);
/* Moves all events and totals out, the oldest event first. */
void door_events_take_all(struct door_events *events, struct brig_net_result *ret_result);
void door_events_done(struct door_events *events);
/* Writes one event as a JSON object. */
void door_event_write(const struct brig_net_event *event, struct json *j);
