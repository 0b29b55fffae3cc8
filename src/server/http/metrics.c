/* SPDX-License-Identifier: MIT */
/* Writes the metrics in Prometheus' text format (version 0.0.4). */
#include "server/http/metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "server/config/config.h"

#define LABELS_MAX 128

void metrics_request(struct metrics *metrics, const struct route *route, unsigned status,
                     double seconds)
{
    if (status < METRICS_STATUSES)
        metrics->requests[status]++;
    if (route && route - routes < METRICS_ROUTES_MAX)
        counters_time(&metrics->routes[route - routes], seconds);
}

/* ---- Kinds of rows ---- */

typedef void writer(const struct metrics_row *row, const struct metrics *metrics,
                    const struct server_config *config, struct str *out);

static uint64_t load(const void *base, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)base + offset, sizeof value);
    return value;
}

static void write_value(const char *name, uint64_t value, struct str *out)
{
    str_appendf(out, "%s %" PRIu64 "\n", name, value);
}

static void write_number(const struct metrics_row *row, const struct metrics *metrics,
                         const struct server_config *config, struct str *out)
{
    (void)config;
    write_value(row->name, load(metrics, row->offset), out);
}

/* `labels` are NAME="VALUE" and so on, or "". */
static void write_times(const char *name, const char *labels, const struct counters_times *times,
                        struct str *out)
{
    const char *comma = *labels ? "," : "";
    uint64_t below = 0;
    for (size_t i = 0; i < COUNTERS_BUCKETS; i++) {
        below += times->buckets[i];
        str_appendf(out, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, labels, comma,
                    counters_bounds[i], below);
    }
    str_appendf(out, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, comma, times->count);
    str_appendf(out, "%s_sum%s%s%s %.6f\n", name, *labels ? "{" : "", labels, *labels ? "}" : "",
                times->seconds);
    str_appendf(out, "%s_count%s%s%s %" PRIu64 "\n", name, *labels ? "{" : "", labels,
                *labels ? "}" : "", times->count);
}

/* ---- Executions ---- */

static writer write_executions, write_durations, write_running, write_oom, write_timeouts,
    write_queue_wait, write_events, write_pools;

static void write_executions(const struct metrics_row *row, const struct metrics *metrics,
                             const struct server_config *config, struct str *out)
{
    for (size_t i = 0; i < config->runtime_count; i++) {
        const uint64_t *statuses = metrics->journal.counters.languages[i].statuses;
        for (unsigned status = EXECUTION_OK; status < EXECUTION_STATUSES_; status++)
            if (statuses[status] || status == EXECUTION_OK)
                str_appendf(out, "%s{language=\"%s\",status=\"%s\"} %" PRIu64 "\n", row->name,
                            config->runtimes[i].name,
                            execution_status_name((enum execution_status)status), statuses[status]);
    }
}

static void write_durations(const struct metrics_row *row, const struct metrics *metrics,
                            const struct server_config *config, struct str *out)
{
    for (size_t i = 0; i < config->runtime_count; i++) {
        const struct counters_times *times = &metrics->journal.counters.languages[i].times;
        char labels[LABELS_MAX];
        (void)snprintf(labels, sizeof labels, "language=\"%s\"", config->runtimes[i].name);
        if (times->count > 0)
            write_times(row->name, labels, times, out);
    }
}

static void write_running(const struct metrics_row *row, const struct metrics *metrics,
                          const struct server_config *config, struct str *out)
{
    (void)config;
    write_value(row->name, counters_running(&metrics->journal.counters), out);
}

static void write_oom(const struct metrics_row *row, const struct metrics *metrics,
                      const struct server_config *config, struct str *out)
{
    (void)config;
    write_value(row->name, counters_status(&metrics->journal.counters, EXECUTION_OOM), out);
}

static void write_timeouts(const struct metrics_row *row, const struct metrics *metrics,
                           const struct server_config *config, struct str *out)
{
    const struct counters *counters = &metrics->journal.counters;
    (void)config;
    write_value(row->name,
                counters_status(counters, EXECUTION_TIMEOUT) +
                    counters_status(counters, EXECUTION_CPU_TIMEOUT),
                out);
}

static void write_queue_wait(const struct metrics_row *row, const struct metrics *metrics,
                             const struct server_config *config, struct str *out)
{
    (void)config;
    write_times(row->name, "", &metrics->queue_wait, out);
}

static void write_events(const struct metrics_row *row, const struct metrics *metrics,
                         const struct server_config *config, struct str *out)
{
    const struct counters *counters = &metrics->journal.counters;
    (void)config;
    for (size_t i = 0; i < counters->event_count && i < COUNTERS_EVENTS_MAX; i++)
        str_appendf(out, "%s{type=\"%s\",severity=\"%s\"} %" PRIu64 "\n", row->name,
                    counters->events[i].type, execution_severity_name(counters->events[i].severity),
                    counters->events[i].count);
}

_Static_assert(MESSAGE_POOLS_MAX == RUNTIMES_MAX, "each runtime has a pool");

static void write_pools(const struct metrics_row *row, const struct metrics *metrics,
                        const struct server_config *config, struct str *out)
{
    for (size_t i = 0; i < config->runtime_count; i++)
        str_appendf(out, "%s{language=\"%s\"} %" PRIu64 "\n", row->name, config->runtimes[i].name,
                    load(&metrics->gauges.pools[i], row->offset));
}

static writer write_saturation, write_keys;

static void write_saturation(const struct metrics_row *row, const struct metrics *metrics,
                             const struct server_config *config, struct str *out)
{
    const struct metrics_saturation *full = &metrics->saturation;
    (void)config;
    str_appendf(out, "%s{resource=\"places\"} %.3f\n", row->name, full->places);
    str_appendf(out, "%s{resource=\"requests\"} %.3f\n", row->name, full->requests);
    str_appendf(out, "%s{resource=\"queue\"} %.3f\n", row->name, full->queue);
    str_appendf(out, "%s{resource=\"memory\"} %.3f\n", row->name, full->memory);
}

/* The name of a key, or its hash; it is a word, so it needs no escapes. */
static const char *key_label(const struct server_config *config, const char *domain)
{
    size_t key = config_find_key(config, domain);
    const char *name = key < CONFIG_LIST_MAX ? config->security.keys[key].name : NULL;
    return name ? name : domain;
}

static void write_keys(const struct metrics_row *row, const struct metrics *metrics,
                       const struct server_config *config, struct str *out)
{
    const struct counters *counters = &metrics->journal.counters;
    for (size_t i = 0; i < counters->key_count && i < COUNTERS_KEYS_MAX; i++) {
        const struct counters_key *key = &counters->keys[i];
        const char *label = key_label(config, key->domain);
        if (row->offset == 0)
            str_appendf(out, "%s{key=\"%s\"} %" PRIu64 "\n", row->name, label, key->executions);
        else
            str_appendf(out, "%s{key=\"%s\"} %.3f\n", row->name, label, (double)key->cpu_us / 1e6);
    }
}

/* ---- Requests ---- */

static writer write_requests, write_routes, write_errors, write_rate_limited;

static void write_requests(const struct metrics_row *row, const struct metrics *metrics,
                           const struct server_config *config, struct str *out)
{
    (void)config;
    for (unsigned status = 0; status < METRICS_STATUSES; status++)
        if (metrics->requests[status] > 0)
            str_appendf(out, "%s{code=\"%u\"} %" PRIu64 "\n", row->name, status,
                        metrics->requests[status]);
}

static void write_routes(const struct metrics_row *row, const struct metrics *metrics,
                         const struct server_config *config, struct str *out)
{
    (void)config;
    for (size_t i = 0; i < route_count && i < METRICS_ROUTES_MAX; i++) {
        char labels[LABELS_MAX];
        (void)snprintf(labels, sizeof labels, "method=\"%s\",route=\"%s\"", routes[i].method,
                       routes[i].path);
        if (metrics->routes[i].count > 0)
            write_times(row->name, labels, &metrics->routes[i], out);
    }
}

static void write_errors(const struct metrics_row *row, const struct metrics *metrics,
                         const struct server_config *config, struct str *out)
{
    (void)config;
    for (unsigned i = 0; i < ERRORS_; i++)
        if (metrics->errors[i] > 0)
            str_appendf(out, "%s{code=\"%s\"} %" PRIu64 "\n", row->name,
                        error_row((enum http_error)i)->code, metrics->errors[i]);
}

static void write_rate_limited(const struct metrics_row *row, const struct metrics *metrics,
                               const struct server_config *config, struct str *out)
{
    (void)config;
    write_value(row->name, metrics->errors[ERROR_RATE_LIMITED], out);
}

/* ---- The history, and the processes of brigd ---- */

static writer write_pending, write_lag, write_up, write_restarts, write_cpu, write_process,
    write_files, write_build;

static void write_pending(const struct metrics_row *row, const struct metrics *metrics,
                          const struct server_config *config, struct str *out)
{
    (void)config;
    write_value(row->name, metrics->journal.rows + metrics->store.spooled, out);
}

static void write_lag(const struct metrics_row *row, const struct metrics *metrics,
                      const struct server_config *config, struct str *out)
{
    int64_t oldest_ns = metrics->journal.oldest_ns, now_ns = clock_wall_ns();
    double own = oldest_ns && oldest_ns < now_ns ? (double)(now_ns - oldest_ns) / 1e9 : 0;
    double spool = (double)metrics->store.lag_ms / 1e3;
    (void)config;
    str_appendf(out, "%s %.3f\n", row->name, own > spool ? own : spool);
}

static void write_up(const struct metrics_row *row, const struct metrics *metrics,
                     const struct server_config *config, struct str *out)
{
    (void)config;
    write_value(row->name, str_equal(metrics->store.status, "ok"), out);
}

static const char *process_name(unsigned number)
{
    return number < ROLES_ ? server_role_name((enum server_role)number) : "supervisor";
}

static void write_restarts(const struct metrics_row *row, const struct metrics *metrics,
                           const struct server_config *config, struct str *out)
{
    (void)config;
    for (unsigned i = 0; i < ROLES_; i++) {
        const struct journal_process *process = &metrics->processes[i];
        str_appendf(out, "%s{process=\"%s\",reason=\"died\"} %" PRIu64 "\n", row->name,
                    process_name(i), process->deaths - process->hangs);
        str_appendf(out, "%s{process=\"%s\",reason=\"hung\"} %" PRIu64 "\n", row->name,
                    process_name(i), process->hangs);
    }
}

static void write_process(const struct metrics_row *row, const struct metrics *metrics,
                          const struct server_config *config, struct str *out)
{
    (void)config;
    for (unsigned i = 0; i <= ROLES_; i++)
        if (metrics->processes[i].started_s > 0)
            str_appendf(out, "%s{process=\"%s\"} %" PRIu64 "\n", row->name, process_name(i),
                        load(&metrics->processes[i], row->offset));
}

static void write_cpu(const struct metrics_row *row, const struct metrics *metrics,
                      const struct server_config *config, struct str *out)
{
    (void)config;
    for (unsigned i = 0; i <= ROLES_; i++)
        if (metrics->processes[i].started_s > 0)
            str_appendf(out, "%s{process=\"%s\"} %.2f\n", row->name, process_name(i),
                        (double)metrics->processes[i].cpu_us / 1e6);
}

static void write_files(const struct metrics_row *row, const struct metrics *metrics,
                        const struct server_config *config, struct str *out)
{
    (void)config;
    for (unsigned i = 0; i <= ROLES_; i++)
        if (metrics->processes[i].open_files > 0)
            str_appendf(out, "%s{process=\"%s\"} %" PRIu64 "\n", row->name, process_name(i),
                        metrics->processes[i].open_files);
}

static void write_build(const struct metrics_row *row, const struct metrics *metrics,
                        const struct server_config *config, struct str *out)
{
    (void)metrics;
    (void)config;
    str_appendf(out, "%s{version=\"%s\"} 1\n", row->name, BRIG_VERSION);
}

/* ---- The table ---- */

const struct metrics_row metrics_rows[] = {
    {"sandbox_executions_total", "counter",
     "Executions by language and by how they ended, since the start of brigd: as in the history.",
     write_executions, 0},
    {"sandbox_execution_duration_seconds", "histogram", "Wall clock of executions by language.",
     write_durations, 0},
    {"sandbox_active_executions", "gauge", "Executions that run now.", write_running, 0},
    {"sandbox_places", "gauge",
     "Most executions at once that open files and memory of the machine allow now.", write_number,
     offsetof(struct metrics, gauges.places)},
    {"sandbox_queue_depth", "gauge", "Executions that wait for a place.", write_number,
     offsetof(struct metrics, queued)},
    {"sandbox_async_queue_depth", "gauge", "Executions of POST /executions that wait.",
     write_number, offsetof(struct metrics, gauges.waiting)},
    {"sandbox_saturation", "gauge",
     "How full the server is, from 0 to 1: places, requests that wait, the queue, memory.",
     write_saturation, 0},
    {"sandbox_key_executions_total", "counter",
     "Executions of each API key, by its name or hash, since the start of brigd.", write_keys, 0},
    {"sandbox_key_cpu_seconds_total", "counter", "CPU time of the executions of each API key.",
     write_keys, 1},
    {"sandbox_queue_wait_seconds", "histogram", "How long executions waited for a place.",
     write_queue_wait, 0},
    {"sandboxes", "gauge", "Sandboxes, also paused ones.", write_number,
     offsetof(struct metrics, gauges.sandboxes)},
    {"sandboxes_paused", "gauge", "Sandboxes that are paused.", write_number,
     offsetof(struct metrics, gauges.sandboxes_paused)},
    {"sandboxes_waiting", "gauge", "Sandboxes that wait for a request, not counted in sandboxes.",
     write_number, offsetof(struct metrics, gauges.sandboxes_waiting)},
    {"sandbox_commands", "gauge", "Commands that run in sandboxes.", write_number,
     offsetof(struct metrics, gauges.sandbox_commands)},
    {"sandbox_security_events_total", "counter",
     "What the detector saw, and denials that were observed.", write_events, 0},
    {"oom_kills_total", "counter", "Executions that ran out of memory.", write_oom, 0},
    {"sandbox_timeouts_total", "counter", "Executions that ran out of time.", write_timeouts, 0},
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
    {"brigd_http_request_duration_seconds", "histogram",
     "Time from the head of a request to the end of its answer, by route.", write_routes, 0},
    {"brigd_http_rate_limited_total", "counter", "HTTP requests that came too often.",
     write_rate_limited, 0},
    {"brigd_rejections_total", "counter", "Answers with an error, by its code.", write_errors, 0},
    {"brigd_http_connections", "gauge", "Connections that are open.", write_number,
     offsetof(struct metrics, connections)},
    {"brigd_access_log_dropped_total", "counter",
     "Lines of the access log that could not be written in time.", write_number,
     offsetof(struct metrics, log_lines_dropped)},
    {"brigd_history_up", "gauge", "1 while the database takes rows.", write_up, 0},
    {"brigd_history_pending_rows", "gauge", "Rows that are not in the database yet.", write_pending,
     0},
    {"brigd_history_lag_seconds", "gauge", "Age of the oldest of them.", write_lag, 0},
    {"brigd_history_dropped_rows_total", "counter", "Rows that the history lost.", write_number,
     offsetof(struct metrics, store.dropped)},
    {"brigd_process_restarts_total", "counter",
     "Processes of brigd that were started again after they died or hung.", write_restarts, 0},
    {"brigd_build_info", "gauge", "1, with the version as a label.", write_build, 0},
    {"process_cpu_seconds_total", "counter", "CPU time by process of brigd, without jails.",
     write_cpu, 0},
    {"process_resident_memory_bytes", "gauge", "Memory in use.", write_process,
     offsetof(struct journal_process, memory_bytes)},
    {"process_virtual_memory_bytes", "gauge", "Address space in use.", write_process,
     offsetof(struct journal_process, virtual_bytes)},
    {"process_open_fds", "gauge", "Open files, of processes that show them.", write_files, 0},
    {"process_start_time_seconds", "gauge", "When the process was started, since 1970.",
     write_process, offsetof(struct journal_process, started_s)},
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
