/* SPDX-License-Identifier: MIT */
/* The metrics of GET /metrics, for Prometheus. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "server/execution.h"
#include "server/message.h"
#include "server/runtime.h"

struct server_config;
struct str;

#define METRICS_BUCKETS 13
#define METRICS_EVENTS_MAX 128 /* number of different pairs of type and severity */
#define METRICS_LABEL_MAX 48
#define METRICS_STATUSES 600

struct metrics_language {
    uint64_t statuses[EXECUTION_STATUSES_];
    uint64_t buckets[METRICS_BUCKETS]; /* not cumulative */
    uint64_t count;
    double seconds;
};

struct metrics {
    struct metrics_language languages[RUNTIMES_MAX];
    struct metrics_event {
        char type[METRICS_LABEL_MAX];
        enum execution_severity severity;
        uint64_t count;
    } events[METRICS_EVENTS_MAX];
    size_t event_count;
    uint64_t timeouts;
    uint64_t rate_limited;
    uint64_t log_lines_dropped;
    uint64_t requests[METRICS_STATUSES]; /* by HTTP status */
    /* Set before metrics_write(). */
    struct message_gauges gauges;
    uint64_t running, queued, connections;
};

/* `language` is an index into the configuration's runtimes. */
void metrics_execution(struct metrics *metrics, size_t language,
                       const struct execution_result *result);
void metrics_blocked(struct metrics *metrics, size_t language);
void metrics_events(struct metrics *metrics, const struct execution_event *events, size_t count);
void metrics_request(struct metrics *metrics, unsigned status);
void metrics_write(const struct metrics *metrics, const struct server_config *config,
                   struct str *out);

/* One row for each metric: how it is written, and its documentation. */
struct metrics_row {
    const char *name, *type, *doc;
    void (*write)(const struct metrics_row *row, const struct metrics *metrics,
                  const struct server_config *config, struct str *out);
    size_t offset; /* offset of a number, or of a number in each pool */
};
extern const struct metrics_row metrics_rows[];
extern const size_t metrics_row_count;
