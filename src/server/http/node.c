/* SPDX-License-Identifier: MIT */
/* GET /node: what this server is, and how full it is. */
#include <stdio.h>
#include <time.h>

#include "base/json.h"
#include "server/config/config.h"
#include "server/http/http.h"

static double share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : part >= whole ? 1 : (double)part / (double)whole;
}

struct metrics_saturation node_saturation(const struct http *http)
{
    const struct server_config *config = http->config;
    uint64_t places = config->sandbox.max_concurrent;
    if (http->knows_executor && http->gauges.places < places)
        places = http->gauges.places;
    return (struct metrics_saturation){
        .places = share(execute_count(http), places),
        .requests = share(http->queued, config->sandbox.max_queued),
        .queue = share(http->gauges.waiting, config->queue.max),
        .memory = (double)http->gauges.memory_percent / 100,
    };
}

static void write_share(struct json *j, const char *key, double value)
{
    str_appendf(j->out, "%s\"%s\":%.3f", j->comma ? "," : "", key, value);
    j->comma = true;
}

static void write_load(const struct http *http, struct json *j)
{
    const struct metrics_saturation saturation = node_saturation(http);
    json_open_object(j, "capacity");
    json_uint(j, "max_concurrent", http->config->sandbox.max_concurrent);
    json_uint(j, "places", http->gauges.places);
    json_uint(j, "max_queued", http->config->sandbox.max_queued);
    json_uint(j, "queue_max", http->config->queue.max);
    json_close_object(j);
    json_open_object(j, "load");
    json_uint(j, "active", execute_count(http));
    json_uint(j, "requests_waiting", http->queued);
    json_uint(j, "queued", http->gauges.waiting);
    json_close_object(j);
    json_open_object(j, "saturation");
    write_share(j, "places", saturation.places);
    write_share(j, "requests", saturation.requests);
    write_share(j, "queue", saturation.queue);
    write_share(j, "memory", saturation.memory);
    json_close_object(j);
}

static uint64_t uptime_s(const struct http *http)
{
    uint64_t started = http->journal ? http->journal->processes[ROLES_].started_s : 0;
    uint64_t now = (uint64_t)time(NULL);
    return started > 0 && now > started ? now - started : 0;
}

void pages_node(struct exchange *exchange)
{
    const struct http *http = exchange->http;
    autostr struct str text = {0};
    struct json j;
    bool works = http->peers[ROLE_EXECUTOR] && http->knows_executor;
    if (!query_check(exchange))
        return;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_text(&j, "version", BRIG_VERSION);
    json_text(&j, "status", http->draining ? "stopping" : works ? "ok" : "starting");
    json_uint(&j, "uptime_seconds", uptime_s(http));
    write_load(http, &j);
    if (http->runtimes.length > 2) { /* an object: `runtimes` and `unenforced` */
        str_append_char(&text, ',');
        str_append_bytes(&text, http->runtimes.data + 1, http->runtimes.length - 2);
    }
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}
