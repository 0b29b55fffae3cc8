/* SPDX-License-Identifier: MIT */
/* What became of a run, as the library and its programs see it; to others it is opaque. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

/* Restrictions that were not enforced, or were switched off, one short sentence each. */
#define BRIG_UNENFORCED_MAX 16
struct brig_unenforced {
    size_t count;
    char text[BRIG_UNENFORCED_MAX][160];
};

/* System calls that the filter refused, each kind once. Filled with brig_policy_trace() only. */
#define BRIG_DENIALS_MAX 32
struct brig_denials {
    bool traced; /* false: nothing is known */
    size_t count;
    struct brig_denial items[BRIG_DENIALS_MAX];
    uint64_t total; /* also of kinds that found no room */
};

/* The last events of the network door, the oldest first. */
#define BRIG_NET_EVENTS_MAX 1024
struct brig_net_result {
    struct brig_net_event *events; /* NULL if there were none */
    size_t count;
    struct brig_net_totals totals;
};

struct brig_capture {
    char *data; /* NUL-terminated beyond length; NULL if nothing was captured */
    size_t length;
    bool truncated;
};

struct brig_result {
    enum brig_outcome outcome;
    int exit_code; /* BRIG_EXITED; else -1 */
    int signal;    /* the signal that ended the command, also for timeouts; else 0 */
    struct brig_usage usage;
    struct brig_capture out;
    struct brig_capture err;
    struct brig_unenforced unenforced;
    struct brig_unenforced notices; /* what became of masked and protected paths meanwhile */
    struct brig_error error;        /* BRIG_SETUP_FAILED */
    struct brig_net_result net;     /* what went through the network door */
    bool inside_jail; /* it ran inside another jail, which had no namespaces to give */
    struct brig_denials denials;
};

/* Releases what a result owns; the struct itself is the caller's. Accepts NULL. */
void result_done(struct brig_result *result);

/* Adds a line unless it is in the list already; when the list is full, its last line says so. */
void unenforced_add(struct brig_unenforced *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* One line of the list, or NULL beyond the last. */
const char *unenforced_line(const struct brig_unenforced *list, size_t index);

/* The bytes of a captured stream for the getters of results: never NULL. */
const char *capture_text(const struct brig_capture *capture, size_t *ret_length,
                         int *ret_truncated);
