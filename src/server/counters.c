/* SPDX-License-Identifier: MIT */
/* What became of executions, as numbers. */
#include "server/counters.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

const double counters_bounds[COUNTERS_BUCKETS] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                  1,     2.5,  5,     10,   30,  60};

void counters_time(struct counters_times *times, double seconds)
{
    size_t bucket = 0;
    while (bucket < COUNTERS_BUCKETS && seconds > counters_bounds[bucket])
        bucket++;
    if (bucket < COUNTERS_BUCKETS)
        times->buckets[bucket]++;
    times->count++;
    times->seconds += seconds;
}

static void count_key(struct counters *counters, const struct execution_result *result)
{
    size_t i = 0;
    if (!result->domain || !*result->domain || strlen(result->domain) >= COUNTERS_DOMAIN_MAX)
        return;
    while (i < counters->key_count && strcmp(counters->keys[i].domain, result->domain) != 0)
        i++;
    if (i == COUNTERS_KEYS_MAX)
        return;
    struct counters_key *key = &counters->keys[i];
    if (i == counters->key_count) {
        (void)snprintf(key->domain, sizeof key->domain, "%s", result->domain);
        counters->key_count++;
    }
    key->executions++;
    key->cpu_us += result->cpu_time_us;
}

void counters_execution(struct counters *counters, size_t language,
                        const struct execution_result *result)
{
    count_key(counters, result);
    if (language >= RUNTIMES_MAX || result->status >= EXECUTION_STATUSES_)
        return;
    counters->languages[language].statuses[result->status]++;
    counters_time(&counters->languages[language].times, (double)result->duration_us / 1e6);
}

static struct counters_event *find_event(struct counters *counters, const char *type,
                                         enum execution_severity severity)
{
    for (size_t i = 0; i < counters->event_count; i++)
        if (counters->events[i].severity == severity && str_equal(counters->events[i].type, type))
            return &counters->events[i];
    if (counters->event_count == COUNTERS_EVENTS_MAX)
        return NULL;
    struct counters_event *event = &counters->events[counters->event_count++];
    (void)snprintf(event->type, sizeof event->type, "%s", type);
    event->severity = severity;
    return event;
}

/* Only words, because labels are written without escaping. */
static bool is_label(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length < COUNTERS_LABEL_MAX && text[length] == '\0';
}

void counters_events(struct counters *counters, const struct execution_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *type = is_label(events[i].type) ? events[i].type : "other";
        struct counters_event *event = find_event(counters, type, events[i].severity);
        if (event)
            event->count++;
    }
}

void counters_lost(struct counters *counters)
{
    for (size_t i = 0; i < RUNTIMES_MAX; i++) {
        counters->languages[i].statuses[EXECUTION_LOST] += counters->languages[i].running;
        counters->languages[i].running = 0;
    }
}

uint64_t counters_running(const struct counters *counters)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < RUNTIMES_MAX; i++)
        sum += counters->languages[i].running;
    return sum;
}

uint64_t counters_status(const struct counters *counters, enum execution_status status)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < RUNTIMES_MAX; i++)
        sum += counters->languages[i].statuses[status];
    return sum;
}
