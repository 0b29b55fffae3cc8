/* SPDX-License-Identifier: MIT */
/* What GET /metrics tells Prometheus, in its text format (version 0.0.4). */
#include "server/http/metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/config.h"

static const double bounds[METRICS_BUCKETS] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                               1,     2.5,  5,     10,   30,  60};

enum metric {
    EXECUTIONS,
    DURATION,
    ACTIVE,
    QUEUED,
    EVENTS,
    OOM_KILLS,
    TIMEOUTS,
    POOL_READY,
    POOL_BUILDING,
    POOL_TARGET,
    POOL_HITS,
    POOL_MISSES,
    POOL_REFILLS,
    POOL_DISCARDED,
    REQUESTS,
    RATE_LIMITED,
    CONNECTIONS,
    LOG_DROPPED,
};

const struct metrics_row metrics_rows[] = {
    [EXECUTIONS] = {"sandbox_executions_total", "counter",
                    "Executions by language and by how they ended."},
    [DURATION] = {"sandbox_execution_duration_seconds", "histogram",
                  "Wall clock of executions by language."},
    [ACTIVE] = {"sandbox_active_executions", "gauge", "Executions that run now."},
    [QUEUED] = {"sandbox_queue_depth", "gauge", "Executions that wait for a place."},
    [EVENTS] = {"sandbox_security_events_total", "counter",
                "What the detector saw, and denials that were observed."},
    [OOM_KILLS] = {"oom_kills_total", "counter", "Executions that ran out of memory."},
    [TIMEOUTS] = {"sandbox_timeouts_total", "counter", "Executions that ran out of time."},
    [POOL_READY] = {"sandbox_pool_ready", "gauge", "Jails that wait for code, by language."},
    [POOL_BUILDING] = {"sandbox_pool_building", "gauge", "Jails that are being made to wait."},
    [POOL_TARGET] = {"sandbox_pool_target", "gauge", "How many should wait."},
    [POOL_HITS] = {"sandbox_pool_hits_total", "counter", "Executions that a waiting jail took."},
    [POOL_MISSES] = {"sandbox_pool_misses_total", "counter", "Executions that began cold."},
    [POOL_REFILLS] = {"sandbox_pool_refills_total", "counter", "Jails that were made to wait."},
    [POOL_DISCARDED] = {"sandbox_pool_discarded_total", "counter",
                        "Jails that waited in vain: too old, too many, or ended."},
    [REQUESTS] = {"brigd_http_requests_total", "counter", "HTTP requests by status."},
    [RATE_LIMITED] = {"brigd_http_rate_limited_total", "counter",
                      "HTTP requests that came too often."},
    [CONNECTIONS] = {"brigd_http_connections", "gauge", "Connections that are open."},
    [LOG_DROPPED] = {"brigd_access_log_dropped_total", "counter",
                     "Lines of the access log that could not be written in time."},
};
const size_t metrics_row_count = ARRAY_LENGTH(metrics_rows);

/* ---- Counting ---- */

static void count_time(struct metrics_language *language, double seconds)
{
    size_t bucket = 0;
    while (bucket < METRICS_BUCKETS && seconds > bounds[bucket])
        bucket++;
    if (bucket < METRICS_BUCKETS)
        language->buckets[bucket]++;
    language->count++;
    language->seconds += seconds;
}

void metrics_execution(struct metrics *metrics, size_t language,
                       const struct execution_result *result)
{
    if (language >= RUNTIMES_MAX || result->status >= EXECUTION_STATUSES_)
        return;
    metrics->languages[language].statuses[result->status]++;
    count_time(&metrics->languages[language], (double)result->duration_us / 1e6);
    metrics->timeouts +=
        result->status == EXECUTION_TIMEOUT || result->status == EXECUTION_CPU_TIMEOUT;
}

void metrics_blocked(struct metrics *metrics, size_t language)
{
    if (language < RUNTIMES_MAX)
        metrics->languages[language].statuses[EXECUTION_BLOCKED]++;
}

static struct metrics_event *find_event(struct metrics *metrics, const char *type,
                                        enum execution_severity severity)
{
    for (size_t i = 0; i < metrics->event_count; i++)
        if (metrics->events[i].severity == severity && str_equal(metrics->events[i].type, type))
            return &metrics->events[i];
    if (metrics->event_count == METRICS_EVENTS_MAX)
        return NULL;
    struct metrics_event *event = &metrics->events[metrics->event_count++];
    (void)snprintf(event->type, sizeof event->type, "%s", type);
    event->severity = severity;
    return event;
}

/* Only words: a label is written as it is. */
static bool is_label(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length < METRICS_LABEL_MAX && text[length] == '\0';
}

void metrics_events(struct metrics *metrics, const struct execution_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *type = is_label(events[i].type) ? events[i].type : "other";
        struct metrics_event *event = find_event(metrics, type, events[i].severity);
        if (event)
            event->count++;
    }
}

void metrics_request(struct metrics *metrics, unsigned status)
{
    if (status < METRICS_STATUSES)
        metrics->requests[status]++;
}

/* ---- Writing ---- */

static const char *begin(struct str *out, enum metric metric)
{
    const struct metrics_row *row = &metrics_rows[metric];
    str_appendf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->doc, row->name, row->type);
    return row->name;
}

static void write_number(struct str *out, enum metric metric, uint64_t value)
{
    const char *name = begin(out, metric);
    str_appendf(out, "%s %" PRIu64 "\n", name, value);
}

static void write_executions(const struct metrics *metrics, const struct server_config *config,
                             struct str *out)
{
    const char *name = begin(out, EXECUTIONS);
    for (size_t i = 0; i < config->runtime_count; i++)
        for (unsigned status = EXECUTION_OK; status < EXECUTION_STATUSES_; status++)
            if (metrics->languages[i].statuses[status] || status == EXECUTION_OK)
                str_appendf(out, "%s{language=\"%s\",status=\"%s\"} %" PRIu64 "\n", name,
                            config->runtimes[i].name,
                            execution_status_name((enum execution_status)status),
                            metrics->languages[i].statuses[status]);
}

static void write_histogram(const struct metrics_language *language, const char *name,
                            const char *label, struct str *out)
{
    uint64_t below = 0;
    for (size_t i = 0; i < METRICS_BUCKETS; i++) {
        below += language->buckets[i];
        str_appendf(out, "%s_bucket{language=\"%s\",le=\"%g\"} %" PRIu64 "\n", name, label,
                    bounds[i], below);
    }
    str_appendf(out, "%s_bucket{language=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name, label,
                language->count);
    str_appendf(out, "%s_sum{language=\"%s\"} %.6f\n", name, label, language->seconds);
    str_appendf(out, "%s_count{language=\"%s\"} %" PRIu64 "\n", name, label, language->count);
}

static void write_durations(const struct metrics *metrics, const struct server_config *config,
                            struct str *out)
{
    const char *name = begin(out, DURATION);
    for (size_t i = 0; i < config->runtime_count; i++)
        if (metrics->languages[i].count > 0)
            write_histogram(&metrics->languages[i], name, config->runtimes[i].name, out);
}

static void write_events(const struct metrics *metrics, struct str *out)
{
    const char *name = begin(out, EVENTS);
    for (size_t i = 0; i < metrics->event_count; i++)
        str_appendf(out, "%s{type=\"%s\",severity=\"%s\"} %" PRIu64 "\n", name,
                    metrics->events[i].type, execution_severity_name(metrics->events[i].severity),
                    metrics->events[i].count);
}

static void write_requests(const struct metrics *metrics, struct str *out)
{
    const char *name = begin(out, REQUESTS);
    for (unsigned status = 0; status < METRICS_STATUSES; status++)
        if (metrics->requests[status] > 0)
            str_appendf(out, "%s{code=\"%u\"} %" PRIu64 "\n", name, status,
                        metrics->requests[status]);
}

_Static_assert(MESSAGE_POOLS_MAX == RUNTIMES_MAX, "each runtime has a pool");

static void write_pools(const struct message_gauges *gauges, const struct server_config *config,
                        struct str *out)
{
    static const struct {
        enum metric metric;
        size_t offset;
    } rows[] = {
        {POOL_READY, offsetof(struct message_pool, ready)},
        {POOL_BUILDING, offsetof(struct message_pool, building)},
        {POOL_TARGET, offsetof(struct message_pool, target)},
        {POOL_HITS, offsetof(struct message_pool, hits)},
        {POOL_MISSES, offsetof(struct message_pool, misses)},
        {POOL_REFILLS, offsetof(struct message_pool, refills)},
        {POOL_DISCARDED, offsetof(struct message_pool, discarded)},
    };
    for (size_t row = 0; row < ARRAY_LENGTH(rows); row++) {
        const char *name = begin(out, rows[row].metric);
        for (size_t i = 0; i < config->runtime_count; i++) {
            uint64_t value;
            memcpy(&value, (const char *)&gauges->pools[i] + rows[row].offset, sizeof value);
            str_appendf(out, "%s{language=\"%s\"} %" PRIu64 "\n", name, config->runtimes[i].name,
                        value);
        }
    }
}

void metrics_write(const struct metrics *metrics, const struct metrics_now *now,
                   const struct server_config *config, struct str *out)
{
    write_executions(metrics, config, out);
    write_durations(metrics, config, out);
    write_number(out, ACTIVE, now->running);
    write_number(out, QUEUED, now->queued);
    write_events(metrics, out);
    write_number(out, OOM_KILLS, now->gauges.oom_kills);
    write_number(out, TIMEOUTS, metrics->timeouts);
    write_pools(&now->gauges, config, out);
    write_requests(metrics, out);
    write_number(out, RATE_LIMITED, metrics->rate_limited);
    write_number(out, CONNECTIONS, now->connections);
    write_number(out, LOG_DROPPED, metrics->log_lines_dropped);
}
