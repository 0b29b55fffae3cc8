/* SPDX-License-Identifier: MIT */
/* Routes that the front answers by itself. */
#include "server/front/pages.h"

#include "base/json.h"
#include "server/config.h"
#include "server/front/answer.h"
#include "server/front/execute.h"
#include "server/front/front.h"
#include "server/front/openapi.h"

/* What the recorder said last. */
static void append_database(const struct front *front, struct str *out)
{
    if (front->config->database.store == STORE_NONE)
        str_append(out, "{\"type\":\"none\",\"status\":\"off\"}");
    else if (front->peers[ROLE_RECORDER] && front->store.length > 0)
        str_append_bytes(out, front->store.data, front->store.length);
    else
        str_append(out, "{\"status\":\"starting\"}");
}

/* All together; /metrics tells them apart. */
static void write_pools(const struct front *front, struct json *j)
{
    struct message_pool sum = {0};
    for (size_t i = 0; i < front->config->runtime_count; i++) {
        const struct message_pool *pool = &front->gauges.pools[i];
        sum.ready += pool->ready;
        sum.building += pool->building;
        sum.target += pool->target;
        sum.hits += pool->hits;
        sum.misses += pool->misses;
    }
    json_open_object(j, "pools");
    json_bool(j, "enabled", front->config->sandbox.pool.enabled);
    json_uint(j, "ready", sum.ready);
    json_uint(j, "building", sum.building);
    json_uint(j, "target", sum.target);
    json_uint(j, "hits", sum.hits);
    json_uint(j, "misses", sum.misses);
    json_close_object(j);
}

void pages_health(struct exchange *exchange)
{
    const struct front *front = exchange->front;
    autostr struct str text = {0};
    struct json j;
    bool works = front->peers[ROLE_WARDEN] && !front->draining;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_text(&j, "status", front->draining ? "stopping" : works ? "ok" : "starting");
    json_text(&j, "version", BRIG_VERSION);
    json_text(&j, "backend", "native");
    str_append(&text, ",\"database\":");
    append_database(front, &text);
    json_open_object(&j, "executions");
    json_uint(&j, "active", execute_count(front));
    json_uint(&j, "queued", front->queued);
    json_close_object(&j);
    write_pools(front, &j);
    json_close_object(&j);
    answer_json(exchange, works ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, &text);
}

void pages_metrics(struct exchange *exchange)
{
    struct front *front = exchange->front;
    autostr struct str text = {0};
    const struct metrics_now now = {.gauges = front->gauges,
                                    .running = execute_count(front),
                                    .queued = front->queued,
                                    .connections = front->connection_count};
    front->metrics.log_lines_dropped = front->log.dropped;
    metrics_write(&front->metrics, &now, front->config, &text);
    answer_text(exchange, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &text);
}

void pages_runtimes(struct exchange *exchange)
{
    const struct front *front = exchange->front;
    autostr struct str text = {0};
    if (front->runtimes.length == 0) {
        answer_error(exchange, ERROR_OVERLOADED, "the warden has not said yet what can be run");
        return;
    }
    str_append_bytes(&text, front->runtimes.data, front->runtimes.length);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

void pages_openapi(struct exchange *exchange)
{
    struct front *front = exchange->front;
    autostr struct str text = {0};
    if (front->openapi.length == 0)
        openapi_write(&front->openapi);
    str_append_bytes(&text, front->openapi.data, front->openapi.length);
    answer_json(exchange, MHD_HTTP_OK, &text);
}
