/* SPDX-License-Identifier: MIT */
/* What a broker tells, kept for the caller: the last events, and sums over all. Pure. */
#pragma once

#include <brig/brig.h>

struct door_event;
struct json;

/* Zero-initialise. A ring: `first` is the oldest. */
struct door_events {
    struct brig_net_event *items;
    size_t count, room, first;
    size_t taken; /* of those that are here */
    struct brig_net_result sums;
};

/* Checks one message of `length` bytes and keeps it; false if it is no event. */
bool door_events_add(struct door_events *events, const void *message, size_t length);
bool door_events_take(struct door_events *events, struct brig_net_event *ret_event);
/* Moves all of it out, the oldest first. */
void door_events_take_all(struct door_events *events, struct brig_net_result *ret_result);
void door_events_done(struct door_events *events);
/* One event as a JSON object. */
void door_event_write(const struct brig_net_event *event, struct json *j);
