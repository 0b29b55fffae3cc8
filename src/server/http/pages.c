/* SPDX-License-Identifier: MIT */
/* The routes besides POST /execute: those the http process answers itself, and those below
 * /executions, which the history process and the executor answer. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/config/config.h"
#include "server/http/async.h"
#include "server/http/http.h"
#include "server/openapi_json.h" /* generated from docs/openapi.json */

/* What the history process reported last. */
static void write_database(const struct http *http, struct json *j)
{
    const struct message_store *store = &http->store;
    bool none = http->config->database.store == STORE_NONE;
    bool known = !none && http->peers[ROLE_HISTORY] && *store->status;
    json_open_object(j, "database");
    if (none || known)
        json_text(j, "type", none ? "none" : store->type);
    json_text(j, "status", none ? "off" : known ? store->status : "starting");
    if (known) {
        json_uint(j, "spooled", store->spooled);
        json_uint(j, "dropped", store->dropped);
        json_uint(j, "thinned", store->thinned);
    }
    if (known && *store->problem)
        json_text(j, "problem", store->problem);
    json_close_object(j);
}

/* The sum over all runtimes; /metrics has the numbers of each. */
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
    write_database(http, &j);
    json_open_object(&j, "executions");
    json_uint(&j, "active", execute_count(http));
    json_uint(&j, "queued", http->queued);
    json_close_object(&j);
    write_pools(http, &j);
    json_close_object(&j);
    answer_json(exchange, works ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, &text);
}

static void answer_probe(struct exchange *exchange, const char *reason)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_text(&j, "status", reason ? "unavailable" : "ok");
    if (reason)
        json_text(&j, "reason", reason);
    json_close_object(&j);
    answer_json(exchange, reason ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK, &text);
}

void pages_livez(struct exchange *exchange)
{
    answer_probe(exchange, NULL);
}

void pages_readyz(struct exchange *exchange)
{
    const struct http *http = exchange->http;
    bool starting = !http->peers[ROLE_EXECUTOR] || !http->knows_executor;
    answer_probe(exchange, http->draining ? "the server is shutting down"
                           : starting     ? "the executor is starting"
                           : http_history_is_full(http)
                               ? "too many executions wait to be stored in the history"
                               : NULL);
}

void pages_metrics(struct exchange *exchange)
{
    struct http *http = exchange->http;
    autostr struct str text = {0};
    http->metrics.gauges = http->gauges;
    http->metrics.store = http->store;
    if (http->journal) {
        journal_read(http->journal, &http->metrics.journal);
        memcpy(http->metrics.processes, http->journal->processes, sizeof http->metrics.processes);
    }
    http->metrics.queued = http->queued;
    http->metrics.saturation = node_saturation(http);
    http->metrics.connections = http->connection_count;
    http->metrics.log_lines_dropped = http->log.dropped;
    metrics_write(&http->metrics, http->config, &text);
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
    autostr struct str text = {0};
    str_append_bytes(&text, openapi_json, sizeof openapi_json);
    answer_text(exchange, MHD_HTTP_OK, "application/json", &text);
}

/* Holders of a key need not be operators. */
void pages_config(struct exchange *exchange)
{
    const struct server_config *config = exchange->http->config;
    autostr struct str text = {0};
    if (config->security.allowed_keys.count > 0 && !config->server.show_config) {
        answer_error(exchange, ERROR_NOT_FOUND,
                     "the configuration is not shown: server.show_config is false");
        return;
    }
    config_print(config, &text);
    answer_text(exchange, MHD_HTTP_OK, "text/plain; charset=utf-8", &text);
}

/* ---- /executions ---- */

bool pages_has_history(struct exchange *exchange)
{
    if (exchange->http->config->database.store != STORE_NONE)
        return true;
    answer_error(exchange, ERROR_HISTORY_UNAVAILABLE,
                 "the server keeps no history: database.store is none");
    return false;
}

void pages_list(struct exchange *exchange)
{
    autostr struct str text = {0};
    if (pages_has_history(exchange) && query_check(exchange) && query_list(exchange, &text))
        async_ask(exchange, TICKET_HISTORY, MESSAGE_LIST, text.data ? text.data : "", text.length);
}

void pages_kill(struct exchange *exchange)
{
    if (query_check(exchange))
        async_ask_for(exchange, TICKET_KILL, MESSAGE_KILL, exchange->path_id);
}

static void answer_no_id(struct exchange *exchange, const char *what)
{
    char message[96];
    (void)snprintf(message, sizeof message, "no execution with the id %s %s", exchange->path_id,
                   what);
    answer_error(exchange, ERROR_NOT_FOUND, message);
}

static void answer_killed(struct exchange *exchange, const struct message *message)
{
    autostr struct str text = {0};
    if (message->length != 1 || message->bytes[0] != 1) {
        answer_no_id(exchange, "is running");
        return;
    }
    str_appendf(&text, "{\"id\":\"%s\",\"status\":\"killed\"}", exchange->path_id);
    answer_json(exchange, MHD_HTTP_ACCEPTED, &text);
}

void pages_answer(struct http *http, const struct message *message)
{
    struct ticket *ticket = ticket_find(http, message->tag);
    enum ticket_kind kind = message->type == MESSAGE_KILLED ? TICKET_KILL : TICKET_HISTORY;
    bool submitted = ticket && (ticket->kind == TICKET_SUBMIT || ticket->kind == TICKET_RESULT ||
                                ticket->kind == TICKET_NOTE);
    if (!ticket || (ticket->kind != kind && !(submitted && kind == TICKET_HISTORY)))
        return;
    struct exchange *exchange = ticket->exchange;
    autostr struct str text = {0};
    ticket_free(http, ticket);
    if (!exchange)
        return;
    if (message->type == MESSAGE_KILLED) {
        answer_killed(exchange, message);
    } else if (message->type == MESSAGE_ROWS) {
        str_append_bytes(&text, message->bytes, message->length);
        answer_json(exchange, MHD_HTTP_OK, &text);
    } else if (message->type == MESSAGE_MISSING) {
        answer_no_id(exchange, submitted ? "is kept" : "is known");
    } else {
        answer_error(exchange, ERROR_HISTORY_UNAVAILABLE, message->bytes);
    }
}
