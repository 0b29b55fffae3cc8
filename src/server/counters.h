/* SPDX-License-Identifier: MIT */
/* What became of executions, as numbers for /metrics. The executor counts; the http process reads. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "server/config/runtime.h"
#include "server/execution.h"

#define COUNTERS_BUCKETS 13
#define COUNTERS_EVENTS_MAX 128 /* number of different pairs of type and severity */
#define COUNTERS_LABEL_MAX 48
#define COUNTERS_KEYS_MAX 128 /* API keys; more are not counted */
#define COUNTERS_DOMAIN_MAX 17

/* Durations. The last bucket's bound is infinite, and is `count`. */
struct counters_times {
    uint64_t buckets[COUNTERS_BUCKETS]; /* not cumulative */
    uint64_t count;
    double seconds;
};
extern const double counters_bounds[COUNTERS_BUCKETS];
void counters_time(struct counters_times *times, double seconds);

struct counters_language {
    uint64_t running;
    uint64_t statuses[EXECUTION_STATUSES_];
    struct counters_times times;
};

struct counters {
    struct counters_language languages[RUNTIMES_MAX]; /* indexed like the configuration's */
    struct counters_event {
        char type[COUNTERS_LABEL_MAX];
        enum execution_severity severity;
        uint64_t count;
    } events[COUNTERS_EVENTS_MAX];
    uint64_t event_count;
    struct counters_key {
        char domain[COUNTERS_DOMAIN_MAX];
        uint64_t executions, cpu_us;
    } keys[COUNTERS_KEYS_MAX];
    uint64_t key_count;
};

void counters_execution(struct counters *counters, size_t language,
                        const struct execution_result *result);
void counters_events(struct counters *counters, const struct execution_event *events, size_t count);
/* The executor has died: what ran is lost. */
void counters_lost(struct counters *counters);
/* Sums over all languages. */
uint64_t counters_running(const struct counters *counters);
uint64_t counters_status(const struct counters *counters, enum execution_status status);
