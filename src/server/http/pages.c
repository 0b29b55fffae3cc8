/* SPDX-License-Identifier: MIT */
/* Routes that the http process answers by itself. */
#include "server/http/pages.h"

#include "base/json.h"
#include "server/config.h"
#include "server/http/answer.h"
#include "server/http/execute.h"
#include "server/http/http.h"
#include "server/http/openapi.h"

/* What the history process said last. */
static void append_database(const struct http *http, struct str *out)
{
    if (http->config->database.store == STORE_NONE)
        str_append(out, "{\"type\":\"none\",\"status\":\"off\"}");
    else if (http->peers[ROLE_HISTORY] && http->store.length > 0)
        str_append_bytes(out, http->store.data, http->store.length);
    else
        str_append(out, "{\"status\":\"starting\"}");
}

/* All together; /metrics tells them apart. */
static void write_pools(const struct http *http, struct json *j)
{
    struct message_pool sum = {0};
    for (size_t i = 0; i < http->config->runtime_count; i++) {
        const struct message_pool *pool = &http->gauges.pools[i];
        sum.ready += pool->ready;
        sum.building += pool->building;
        sum.target += pool->target;
        sum.hits += pool->hits;
        sum.misses += pool->misses;
    }
    json_open_object(j, "pools");
    json_bool(j, "enabled", http->config->sandbox.pool.enabled);
    json_uint(j, "ready", sum.ready);
    json_uint(j, "building", sum.building);
    json_uint(j, "target", sum.target);
    json_uint(j, "hits", sum.hits);
    json_uint(j, "misses", sum.misses);
    json_close_object(j);
}

void pages_health(struct exchange *exchange)
{
    const struct http *http = exchange->http;
    autostr struct str text = {0};
    struct json j;
    bool works = http->peers[ROLE_EXECUTOR] && !http->draining;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_text(&j, "status", http->draining ? "stopping" : works ? "ok" : "starting");
    json_text(&j, "version", BRIG_VERSION);
    json_text(&j, "backend", "native");
    str_append(&text, ",\"database\":");
    append_database(http, &text);
    json_open_object(&j, "executions");
    json_uint(&j, "active", execute_count(http));
    json_uint(&j, "queued", http->queued);
    json_close_object(&j);
    write_pools(http, &j);
    json_close_object(&j);
    answer_json(exchange, works ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, &text);
}

void pages_metrics(struct exchange *exchange)
{
    struct http *http = exchange->http;
    autostr struct str text = {0};
    const struct metrics_now now = {.gauges = http->gauges,
                                    .running = execute_count(http),
                                    .queued = http->queued,
                                    .connections = http->connection_count};
    http->metrics.log_lines_dropped = http->log.dropped;
    metrics_write(&http->metrics, &now, http->config, &text);
    answer_text(exchange, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &text);
}

void pages_runtimes(struct exchange *exchange)
{
    const struct http *http = exchange->http;
    autostr struct str text = {0};
    if (http->runtimes.length == 0) {
        answer_error(exchange, ERROR_OVERLOADED, "the executor has not said yet what can be run");
        return;
    }
    str_append_bytes(&text, http->runtimes.data, http->runtimes.length);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

void pages_openapi(struct exchange *exchange)
{
    struct http *http = exchange->http;
    autostr struct str text = {0};
    if (http->openapi.length == 0)
        openapi_write(&http->openapi);
    str_append_bytes(&text, http->openapi.data, http->openapi.length);
    answer_json(exchange, MHD_HTTP_OK, &text);
}
