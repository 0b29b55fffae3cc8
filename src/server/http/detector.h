/* SPDX-License-Identifier: MIT */
/* Looks for signs of an attempt to escape in code. The jail does not rely on it: it tells an operator
 * who tries, and saves the run of what is plainly an attack. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/execution.h"

/* One pass over the code; case and blanks are ignored. At most one event for each pattern,
 * EXECUTION_EVENTS_MAX in all, the gravest first, in the arena; NULL and 0 for none. */
void detector_scan(const char *code, size_t length, struct arena *arena,
                   struct execution_event **ret_events, size_t *ret_count);

/* Whether the event is one of the table's, not one that was observed in a jail. */
bool detector_has(const struct execution_event *event);

/* The table, for tests and the documentation. */
struct detector_pattern {
    const char *text; /* lower case, without blanks */
    const char *type;
    const char *detail;
    enum execution_severity severity;
    bool word; /* no letter, digit or '_' stands before it */
};
extern const struct detector_pattern detector_patterns[];
extern const size_t detector_pattern_count;
