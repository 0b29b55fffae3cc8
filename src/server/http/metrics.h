/* SPDX-License-Identifier: MIT */
/* The metrics of GET /metrics, for Prometheus. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "server/counters.h"
#include "server/http/route.h"
#include "server/journal.h"
#include "server/message.h"

struct server_config;
struct str;

#define METRICS_STATUSES 600
#define METRICS_ROUTES_MAX 96

/* How full the server is, from 0 to 1. */
struct metrics_saturation {
    double places;   /* for executions */
    double requests; /* of POST /execute that wait */
    double queue;    /* of POST /executions */
    double memory;   /* of the machine or the cgroup */
};

struct metrics {
    uint64_t requests[METRICS_STATUSES]; /* by HTTP status */
    uint64_t errors[ERRORS_];            /* answers by their code */
    struct counters_times routes[METRICS_ROUTES_MAX];
    struct counters_times queue_wait;
    /* Set before metrics_write(). */
    struct journal_state journal; /* what the executor counted */
    struct journal_process processes[ROLES_ + 1];
    struct message_gauges gauges;
    struct message_store store;
    struct metrics_saturation saturation;
    uint64_t queued, connections, log_lines_dropped;
};

/* `route` is NULL for an unknown path. */
void metrics_request(struct metrics *metrics, const struct route *route, unsigned status,
                     double seconds);
void metrics_write(const struct metrics *metrics, const struct server_config *config,
                   struct str *out);

/* One row for each metric: how it is written, and its documentation. */
struct metrics_row {
    const char *name, *type, *doc;
    void (*write)(const struct metrics_row *row, const struct metrics *metrics,
                  const struct server_config *config, struct str *out);
    size_t offset; /* offset of a number, or of a number in each pool or process */
};
extern const struct metrics_row metrics_rows[];
extern const size_t metrics_row_count;
