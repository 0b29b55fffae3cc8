/* SPDX-License-Identifier: MIT */
/* Searches code for signs of an escape attempt. The jail does not rely on it: it tells the operator
 * about attempts, and avoids running obvious attacks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/execution.h"

/* Scans the code in one pass, ignoring case and blanks. Returns at most one event for each pattern,
 * EXECUTION_EVENTS_MAX in total, the most severe first, in the arena; NULL and 0 if there are
 * none. */
void detector_scan(const char *code, size_t length, struct arena *arena,
                   struct execution_event **ret_events, size_t *ret_count);

/* The table, for tests and the documentation. */
struct detector_pattern {
    const char *text; /* lower case, without blanks */
    const char *type;
    const char *detail;
    enum execution_severity severity;
    bool word; /* must not follow a letter, digit or '_' */
};
extern const struct detector_pattern detector_patterns[];
extern const size_t detector_pattern_count;
