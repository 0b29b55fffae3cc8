/* SPDX-License-Identifier: MIT */
/* E2B's control interface: sandboxes are created, listed, paused and ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "server/api/e2b.h"
#include "server/api/e2b_request.h"
#include "server/config/config.h"
#include "server/http/http.h"
#include "server/http/sandbox.h"

#define MEBIBYTE (UINT64_C(1) << 20)
#define MILLISECOND_NS 1000000
/* Clients do with a sandbox what this version of E2B's daemon can: standard input can be closed,
 * files are also uploaded as a plain body, and they have no metadata. */
#define ENVD_VERSION "0.5.7"
#define LIST_DEFAULT 100
#define LIST_MAX 1000

/* ---- answers ---- */

/* The clients make `PORT-ID.DOMAIN` of it. */
static void write_domain(struct json *j, const struct exchange *exchange)
{
    const char *host = exchange_header(exchange, "Host");
    if (host)
        json_text(j, "domain", host);
}

/* What a client needs for its requests into the sandbox. */
static void answer_session(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    const struct e2b_kept *kept = e2b_kept(exchange);
    const struct sandbox_info *info = &answer->sandboxes[0];
    bool created = kept->resumed || !*e2b_path_id(exchange);
    if (answer->sandbox_count != 1) {
        answer_error(exchange, ERROR_INTERNAL, NULL);
        return;
    }
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_text(&j, "templateID", e2b_template_of(info));
    json_text(&j, "sandboxID", info->id);
    json_text(&j, "clientID", "brigd");
    json_text(&j, "envdVersion", ENVD_VERSION);
    json_text(&j, "envdAccessToken", info->token);
    json_text(&j, "trafficAccessToken", info->token);
    write_domain(&j, exchange);
    json_close_object(&j);
    answer_json(exchange, created ? MHD_HTTP_CREATED : MHD_HTTP_OK, &text);
}

static uint64_t cpu_count(const struct sandbox_info *info)
{
    uint64_t count = (info->limits[EXECUTION_CPU_PERCENT] + 99) / 100;
    return count > 0 ? count : 1;
}

static bool is_shown(const char *name)
{
    return !str_starts_with(name, E2B_OWN_METADATA);
}

static void open_info(struct json *j, const struct sandbox_info *info)
{
    int64_t end_ns = info->deadline_ns ? info->deadline_ns
                                       : clock_wall_ns() + (int64_t)info->left_ms * MILLISECOND_NS;
    json_open_object(j, NULL);
    json_text(j, "templateID", e2b_template_of(info));
    json_text(j, "sandboxID", info->id);
    json_text(j, "clientID", "brigd");
    json_text(j, "envdVersion", ENVD_VERSION);
    e2b_write_time(j, "startedAt", info->created_ns);
    e2b_write_time(j, "endAt", end_ns);
    json_uint(j, "cpuCount", cpu_count(info));
    json_uint(j, "memoryMB", info->limits[EXECUTION_MEMORY_MB]);
    json_uint(j, "diskSizeMB", info->limits[EXECUTION_DISK_MB]);
    json_text(j, "state", info->state == SANDBOX_PAUSED ? "paused" : "running");
    json_open_object(j, "metadata");
    for (size_t i = 0; i < info->metadata_count; i++)
        if (is_shown(info->metadata[i].name))
            json_text(j, info->metadata[i].name, info->metadata[i].value);
    json_close_object(j);
}

static void answer_info(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    if (answer->sandbox_count != 1) {
        answer_error(exchange, ERROR_INTERNAL, NULL);
        return;
    }
    json_init(&j, &text);
    open_info(&j, &answer->sandboxes[0]);
    json_bool(&j, "allowInternetAccess", answer->sandboxes[0].network);
    json_open_object(&j, "lifecycle");
    json_text(&j, "onTimeout", answer->sandboxes[0].pauses ? "pause" : "kill");
    json_bool(&j, "autoResume", false);
    json_close_object(&j);
    json_text(&j, "envdAccessToken", answer->sandboxes[0].token);
    write_domain(&j, exchange);
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

/* One sample, of now; the CPU time since the sandbox was created. */
static void answer_metrics(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    if (answer->sandbox_count != 1) {
        answer_error(exchange, ERROR_INTERNAL, NULL);
        return;
    }
    const struct sandbox_info *info = &answer->sandboxes[0];
    int64_t now_ns = clock_wall_ns();
    int64_t age_us = (now_ns - info->created_ns) / 1000;
    double percent = age_us > 0 ? 100.0 * (double)info->cpu_us / (double)age_us : 0;
    json_init(&j, &text);
    json_open_array(&j, NULL);
    json_open_object(&j, NULL);
    e2b_write_time(&j, "timestamp", now_ns);
    json_int(&j, "timestampUnix", now_ns / 1000 / MILLISECOND_NS);
    json_uint(&j, "cpuCount", cpu_count(info));
    str_appendf(&text, ",\"cpuUsedPct\":%.2f", percent);
    json_uint(&j, "memUsed", info->memory_bytes);
    json_uint(&j, "memTotal", info->limits[EXECUTION_MEMORY_MB] * MEBIBYTE);
    json_uint(&j, "memCache", 0);
    json_uint(&j, "diskUsed", 0);
    json_uint(&j, "diskTotal", info->limits[EXECUTION_DISK_MB] * MEBIBYTE);
    json_close_object(&j);
    json_close_array(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

/* ---- simple questions ---- */

void e2b_get(struct exchange *exchange)
{
    sandbox_ask(exchange, &(struct sandbox_request){.operation = SANDBOX_GET}, answer_info);
}

void e2b_metrics(struct exchange *exchange)
{
    sandbox_ask(exchange, &(struct sandbox_request){.operation = SANDBOX_GET}, answer_metrics);
}

void e2b_end(struct exchange *exchange)
{
    sandbox_ask(exchange, &(struct sandbox_request){.operation = SANDBOX_END},
                sandbox_answer_nothing);
}

void e2b_pause(struct exchange *exchange)
{
    sandbox_ask(exchange, &(struct sandbox_request){.operation = SANDBOX_PAUSE},
                sandbox_answer_nothing);
}

/* ---- creation, and a new connection ---- */

void e2b_create(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_CREATE};
    json_auto_t *body = NULL;
    char message[E2B_MESSAGE_MAX];
    if (!e2b_body(exchange, &body))
        return;
    unsigned status = e2b_read_create(body, exchange->http->config, &request, message);
    if (status) {
        e2b_refuse(exchange, status, message);
        return;
    }
    if (http_history_is_full(exchange->http)) {
        answer_error(exchange, ERROR_HISTORY_FULL, NULL);
        return;
    }
    sandbox_ask(exchange, &request, answer_session);
}

static bool read_timeout(struct exchange *exchange, uint64_t *ret_ms)
{
    json_auto_t *body = NULL;
    char message[E2B_MESSAGE_MAX];
    if (!e2b_body(exchange, &body))
        return false;
    if (e2b_read_timeout(body, ret_ms, message))
        return true;
    e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, message);
    return false;
}

void e2b_timeout(struct exchange *exchange)
{
    struct sandbox_request request = {.operation = SANDBOX_TIMEOUT, .timeout_ms = UINT64_MAX};
    if (!read_timeout(exchange, &request.timeout_ms))
        return;
    if (request.timeout_ms == UINT64_MAX)
        e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, "timeout is missing");
    else
        sandbox_ask(exchange, &request, sandbox_answer_nothing);
}

/* A connection never shortens the time that a sandbox has. */
static void lengthen(struct exchange *exchange, const struct sandbox_answer *answer)
{
    const struct e2b_kept *kept = e2b_kept(exchange);
    if (answer->sandbox_count == 1 && kept->timeout_ms > answer->sandboxes[0].left_ms)
        sandbox_ask(
            exchange,
            &(struct sandbox_request){.operation = SANDBOX_TIMEOUT, .timeout_ms = kept->timeout_ms},
            answer_session);
    else
        answer_session(exchange, answer);
}

static void connect_found(struct exchange *exchange, const struct sandbox_answer *answer)
{
    if (answer->sandbox_count != 1 || answer->sandboxes[0].state != SANDBOX_PAUSED) {
        lengthen(exchange, answer);
        return;
    }
    e2b_kept(exchange)->resumed = true;
    sandbox_ask(exchange, &(struct sandbox_request){.operation = SANDBOX_RESUME}, lengthen);
}

void e2b_connect(struct exchange *exchange)
{
    if (read_timeout(exchange, &e2b_kept(exchange)->timeout_ms))
        sandbox_ask(exchange, &(struct sandbox_request){.operation = SANDBOX_GET}, connect_found);
}

/* The same for older clients; 409 if it is not paused. */
void e2b_resume(struct exchange *exchange)
{
    e2b_kept(exchange)->resumed = true;
    if (read_timeout(exchange, &e2b_kept(exchange)->timeout_ms))
        sandbox_ask(exchange, &(struct sandbox_request){.operation = SANDBOX_RESUME}, lengthen);
}

/* ---- lists ---- */

/* Sandboxes come newest first, so a page begins after the time and id of the one before. */
static void write_next(struct exchange *exchange, const struct sandbox_info *last)
{
    char token[64];
    (void)snprintf(token, sizeof token, "%lld-%s", (long long)last->created_ns, last->id);
    str_list_add(&exchange->headers, "x-next-token");
    str_list_add(&exchange->headers, token);
}

static int compare(const struct sandbox_info *info, int64_t ns, const char *id)
{
    if (info->created_ns != ns)
        return info->created_ns < ns ? -1 : 1;
    return strcmp(info->id, id);
}

static int compare_two(const void *a, const void *b)
{
    const struct sandbox_info *one = a, *two = b;
    return compare(two, one->created_ns, one->id);
}

static bool belongs(const struct e2b_kept *kept, const struct sandbox_info *info)
{
    char *id = NULL;
    int64_t ns = kept->next ? strtoll(kept->next, &id, 10) : 0;
    if (kept->template_id && strcmp(kept->template_id, e2b_template_of(info)) != 0)
        return false;
    if (info->created_ns < kept->started_after_ns)
        return false;
    if (!kept->next)
        return true;
    int order = compare(info, ns, *id == '-' ? id + 1 : id);
    return kept->ascending ? order > 0 : order < 0;
}

static void answer_list(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    const struct e2b_kept *kept = e2b_kept(exchange);
    size_t count = answer->sandbox_count, written = 0;
    const struct sandbox_info *last = NULL;
    if (count > 0)
        qsort(answer->sandboxes, count, sizeof *answer->sandboxes, compare_two);
    json_init(&j, &text);
    json_open_array(&j, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct sandbox_info *info = &answer->sandboxes[kept->ascending ? count - 1 - i : i];
        if (!belongs(kept, info))
            continue;
        if (written++ == kept->limit) {
            write_next(exchange, last);
            break;
        }
        last = info;
        open_info(&j, info);
        json_close_object(&j);
    }
    json_close_array(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

/* "running", "paused", or both, with a comma or the parameter twice. */
static enum MHD_Result note_state(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct sandbox_request *request = context;
    (void)kind;
    if (strcmp(name, "state") != 0 || !value)
        return MHD_YES;
    if (strstr(value, "running"))
        request->states |= 1U << SANDBOX_RUNNING;
    if (strstr(value, "paused"))
        request->states |= 1U << SANDBOX_PAUSED;
    return MHD_YES;
}

static bool read_page(struct exchange *exchange)
{
    struct e2b_kept *kept = e2b_kept(exchange);
    const char *limit = exchange_parameter(exchange, "limit"),
               *after = exchange_parameter(exchange, "startedAfter");
    const char *order = exchange_parameter(exchange, "order"),
               *next = exchange_parameter(exchange, "nextToken");
    struct tm tm = {0};
    kept->limit = LIST_DEFAULT;
    if (limit && (parse_uint(limit, LIST_MAX, 0, &kept->limit, NULL) < 0 || kept->limit == 0)) {
        e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, "limit has to be 1 to 1000");
        return false;
    }
    if (after) {
        if (!strptime(after, "%Y-%m-%dT%H:%M:%S", &tm)) {
            e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, "startedAfter has to be a time (RFC 3339)");
            return false;
        }
        kept->started_after_ns = (int64_t)timegm(&tm) * 1000 * MILLISECOND_NS;
    }
    kept->ascending = str_equal(order, "asc");
    kept->next = next && *next ? next : NULL;
    kept->template_id = exchange_parameter(exchange, "template");
    return true;
}

void e2b_list(struct exchange *exchange)
{
    autosandbox struct sandbox_request request = {.operation = SANDBOX_LIST};
    (void)MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND, note_state,
                                    &request);
    if (!read_page(exchange))
        return;
    if (!e2b_read_filter(exchange_parameter(exchange, "metadata"), &request)) {
        e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, "metadata has to be name=value, joined by &");
        return;
    }
    sandbox_ask(exchange, &request, answer_list);
}
