/* SPDX-License-Identifier: MIT */
/* Writes the metrics in Prometheus' text format (version 0.0.4). */
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

/* Only words, because labels are written without escaping. */
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

static void write_number(const struct metrics_row *row, const struct metrics *metrics,
                         const struct server_config *config, struct str *out)
{
    uint64_t value;
    (void)config;
    memcpy(&value, (const char *)metrics + row->offset, sizeof value);
    str_appendf(out, "%s %" PRIu64 "\n", row->name, value);
}

static void write_executions(const struct metrics_row *row, const struct metrics *metrics,
                             const struct server_config *config, struct str *out)
{
    for (size_t i = 0; i < config->runtime_count; i++)
        for (unsigned status = EXECUTION_OK; status < EXECUTION_STATUSES_; status++)
            if (metrics->languages[i].statuses[status] || status == EXECUTION_OK)
                str_appendf(out, "%s{language=\"%s\",status=\"%s\"} %" PRIu64 "\n", row->name,
                            config->runtimes[i].name,
                            execution_status_name((enum execution_status)status),
                            metrics->languages[i].statuses[status]);
}

static void write_durations(const struct metrics_row *row, const struct metrics *metrics,
                            const struct server_config *config, struct str *out)
{
    for (size_t i = 0; i < config->runtime_count; i++) {
        const struct metrics_language *language = &metrics->languages[i];
        const char *label = config->runtimes[i].name;
        uint64_t below = 0;
        if (language->count == 0)
            continue;
        for (size_t k = 0; k < METRICS_BUCKETS; k++) {
            below += language->buckets[k];
            str_appendf(out, "%s_bucket{language=\"%s\",le=\"%g\"} %" PRIu64 "\n", row->name, label,
                        bounds[k], below);
        }
        str_appendf(out, "%s_bucket{language=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", row->name, label,
                    language->count);
        str_appendf(out, "%s_sum{language=\"%s\"} %.6f\n", row->name, label, language->seconds);
        str_appendf(out, "%s_count{language=\"%s\"} %" PRIu64 "\n", row->name, label,
                    language->count);
    }
}

static void write_events(const struct metrics_row *row, const struct metrics *metrics,
                         const struct server_config *config, struct str *out)
{
    (void)config;
    for (size_t i = 0; i < metrics->event_count; i++)
        str_appendf(out, "%s{type=\"%s\",severity=\"%s\"} %" PRIu64 "\n", row->name,
                    metrics->events[i].type, execution_severity_name(metrics->events[i].severity),
                    metrics->events[i].count);
}

static void write_requests(const struct metrics_row *row, const struct metrics *metrics,
                           const struct server_config *config, struct str *out)
{
    (void)config;
    for (unsigned status = 0; status < METRICS_STATUSES; status++)
        if (metrics->requests[status] > 0)
            str_appendf(out, "%s{code=\"%u\"} %" PRIu64 "\n", row->name, status,
                        metrics->requests[status]);
}

_Static_assert(MESSAGE_POOLS_MAX == RUNTIMES_MAX, "each runtime has a pool");

static void write_pools(const struct metrics_row *row, const struct metrics *metrics,
                        const struct server_config *config, struct str *out)
{
    for (size_t i = 0; i < config->runtime_count; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&metrics->gauges.pools[i] + row->offset, sizeof value);
        str_appendf(out, "%s{language=\"%s\"} %" PRIu64 "\n", row->name, config->runtimes[i].name,
                    value);
    }
}

const struct metrics_row metrics_rows[] = {
    {"sandbox_executions_total", "counter", "Executions by language and by how they ended.",
     write_executions, 0},
    {"sandbox_execution_duration_seconds", "histogram", "Wall clock of executions by language.",
     write_durations, 0},
    {"sandbox_active_executions", "gauge", "Executions that run now.", write_number,
     offsetof(struct metrics, running)},
    {"sandbox_queue_depth", "gauge", "Executions that wait for a place.", write_number,
     offsetof(struct metrics, queued)},
    {"sandbox_security_events_total", "counter",
     "What the detector saw, and denials that were observed.", write_events, 0},
    {"oom_kills_total", "counter", "Executions that ran out of memory.", write_number,
     offsetof(struct metrics, gauges.oom_kills)},
    {"sandbox_timeouts_total", "counter", "Executions that ran out of time.", write_number,
     offsetof(struct metrics, timeouts)},
    {"sandbox_pool_ready", "gauge", "Jails that wait for code, by language.", write_pools,
     offsetof(struct message_pool, ready)},
    {"sandbox_pool_building", "gauge", "Jails that are being made to wait.", write_pools,
     offsetof(struct message_pool, building)},
    {"sandbox_pool_target", "gauge", "How many should wait.", write_pools,
     offsetof(struct message_pool, target)},
    {"sandbox_pool_hits_total", "counter", "Executions that a waiting jail took.", write_pools,
     offsetof(struct message_pool, hits)},
    {"sandbox_pool_misses_total", "counter", "Executions that began cold.", write_pools,
     offsetof(struct message_pool, misses)},
    {"sandbox_pool_refills_total", "counter", "Jails that were made to wait.", write_pools,
     offsetof(struct message_pool, refills)},
    {"sandbox_pool_discarded_total", "counter",
     "Jails that waited in vain: too old, too many, or ended.", write_pools,
     offsetof(struct message_pool, discarded)},
    {"brigd_http_requests_total", "counter", "HTTP requests by status.", write_requests, 0},
    {"brigd_http_rate_limited_total", "counter", "HTTP requests that came too often.", write_number,
     offsetof(struct metrics, rate_limited)},
    {"brigd_http_connections", "gauge", "Connections that are open.", write_number,
     offsetof(struct metrics, connections)},
    {"brigd_access_log_dropped_total", "counter",
     "Lines of the access log that could not be written in time.", write_number,
     offsetof(struct metrics, log_lines_dropped)},
};
const size_t metrics_row_count = ARRAY_LENGTH(metrics_rows);

void metrics_write(const struct metrics *metrics, const struct server_config *config,
                   struct str *out)
{
    for (size_t i = 0; i < metrics_row_count; i++) {
        const struct metrics_row *row = &metrics_rows[i];
        str_appendf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->doc, row->name, row->type);
        row->write(row, metrics, config, out);
    }
}
