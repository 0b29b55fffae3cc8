/* SPDX-License-Identifier: MIT */
/* Judge0's pages about the server: languages, statuses, limits, versions. */
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "server/api/judge0.h"
#include "server/api/judge0_answer.h"
#include "server/api/judge0_languages.h"
#include "server/api/judge0_request.h"
#include "server/config/config.h"
#include "server/http/http.h"

bool judge0_takes_path(char *path)
{
    size_t length = strlen(path);
    if (!str_starts_with(path, "/judge0/"))
        return false;
    if (path[length - 1] == '/')
        path[length - 1] = '\0';
    return true;
}

/* ---- answers ---- */

void judge0_answer_missing(struct exchange *exchange)
{
    autostr struct str text = {0};
    str_append(&text, "{\"status\":404,\"error\":\"Not Found\"}");
    exchange->error = ERROR_NOT_FOUND;
    answer_json(exchange, MHD_HTTP_NOT_FOUND, &text);
}

void judge0_answer_error(struct exchange *exchange, unsigned status, const char *text)
{
    autostr struct str out = {0};
    struct json j;
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_text(&j, "error", text);
    json_close_object(&j);
    if (out.failed) /* out of memory: send the status only */
        str_done(&out);
    answer_text(exchange, status, out.data ? "application/json" : NULL, &out);
}

static void answer_plain(struct exchange *exchange, const char *line)
{
    autostr struct str text = {0};
    str_append(&text, line);
    answer_text(exchange, MHD_HTTP_OK, "text/plain; charset=utf-8", &text);
}

void judge0_answer_nothing(struct exchange *exchange, unsigned status)
{
    autostr struct str nothing = {0};
    answer_text(exchange, status, NULL, &nothing);
}

/* ---- languages and statuses ---- */

static void answer_languages(struct exchange *exchange, bool all)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    judge0_languages_write(exchange->http->config, &exchange->http->runtimes, all, &j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

void judge0_languages(struct exchange *exchange)
{
    answer_languages(exchange, false);
}

void judge0_all_languages(struct exchange *exchange)
{
    answer_languages(exchange, true);
}

void judge0_language(struct exchange *exchange)
{
    autostr struct str text = {0};
    struct judge0_language language;
    struct json j;
    uint64_t id = route_number(exchange->route, exchange->path);
    if (id > INT32_MAX || !judge0_language_find(exchange->http->config, &exchange->http->runtimes,
                                                (int64_t)id, &language)) {
        judge0_answer_missing(exchange);
        return;
    }
    json_init(&j, &text);
    judge0_language_write(&language, &j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

void judge0_statuses(struct exchange *exchange)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    judge0_statuses_write(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

/* ---- the configuration ---- */

/* The default and the maximum of a number: "memory_limit" and "max_memory_limit". */
static void write_bounds(struct json *j, const struct judge0_bounds *bounds, size_t field)
{
    char most[64];
    bool decimal = judge0_rules[field].kind == JUDGE0_DECIMAL;
    const int64_t values[] = {bounds->initial[field], bounds->most[field]};
    (void)snprintf(most, sizeof most, "max_%s", judge0_rules[field].name);
    const char *const names[] = {judge0_rules[field].name, most};
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
        if (!decimal) {
            json_int(j, names[i], values[i]);
            continue;
        }
        str_appendf(j->out, "%s\"%s\":%.15g%s", j->comma ? "," : "", names[i],
                    (double)values[i] / JUDGE0_MICROS, values[i] % JUDGE0_MICROS == 0 ? ".0" : "");
        j->comma = true;
    }
}

static void write_config(struct json *j, const struct server_config *config)
{
    const struct {
        const char *name;
        bool value;
    } switches[] = {
        {"maintenance_mode", false},
        {"enable_wait_result", true},
        {"enable_compiler_options", true},
        {"enable_command_line_arguments", true},
        {"enable_submission_delete", config->judge0.allow_delete},
        {"enable_callbacks", config->callback.enabled},
        {"enable_additional_files", true},
        {"enable_per_process_and_thread_time_limit", false},
        {"allow_enable_per_process_and_thread_time_limit", true},
        {"enable_per_process_and_thread_memory_limit", false},
        {"allow_enable_per_process_and_thread_memory_limit", true},
        {"redirect_stderr_to_stdout", false},
        {"enable_batched_submissions", true},
        {"use_docs_as_homepage", false},
        {"allow_enable_network", config->sandbox.allow_network},
        {"enable_network", false},
    };
    struct judge0_bounds bounds;
    judge0_bounds(config, &bounds);
    json_open_object(j, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(switches); i++)
        json_bool(j, switches[i].name, switches[i].value);
    json_open_array(j, "allowed_languages_for_compile_options");
    json_close_array(j);
    json_uint(j, "callbacks_max_tries", config->callback.attempts);
    json_uint(j, "callbacks_timeout", (config->callback.timeout_ms + 999) / 1000);
    json_uint(j, "max_queue_size", config->queue.max);
    json_int(j, "max_extract_size", JUDGE0_EXTRACT_KB);
    json_int(j, "max_submission_batch_size", JUDGE0_BATCH_MAX);
    json_int(j, "submission_cache_duration", 0);
    for (size_t i = 0; i < JUDGE0_REQUEST_FIELDS_; i++)
        if (judge0_rules[i].most)
            write_bounds(j, &bounds, i);
    json_close_object(j);
}

void judge0_config_info(struct exchange *exchange)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    write_config(&j, exchange->http->config);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

/* ---- versions and workers ---- */

/* The SDK looks language numbers up by this version. */
void judge0_about(struct exchange *exchange)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_text(&j, "version", JUDGE0_VERSION);
    json_text(&j, "homepage", "/");
    json_text(&j, "source_code", "brigd " BRIG_VERSION);
    json_text(&j, "maintainer", "the operator of this server");
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

void judge0_version(struct exchange *exchange)
{
    answer_plain(exchange, JUDGE0_VERSION);
}

void judge0_license(struct exchange *exchange)
{
    answer_plain(exchange, "SPDX-License-Identifier: MIT\n");
}

void judge0_isolate(struct exchange *exchange)
{
    answer_plain(exchange, "brig " BRIG_VERSION "\n");
}

void judge0_system_info(struct exchange *exchange)
{
    autostr struct str text = {0};
    str_append(&text, "{}");
    answer_json(exchange, MHD_HTTP_OK, &text);
}

void judge0_workers(struct exchange *exchange)
{
    const struct message_gauges *gauges = &exchange->http->gauges;
    autostr struct str text = {0};
    struct json j;
    uint64_t places = gauges->places < exchange->http->config->sandbox.max_concurrent
                          ? gauges->places
                          : exchange->http->config->sandbox.max_concurrent;
    json_init(&j, &text);
    json_open_array(&j, NULL);
    json_open_object(&j, NULL);
    json_text(&j, "queue", JUDGE0_VERSION);
    json_uint(&j, "size", gauges->waiting);
    json_uint(&j, "available", places);
    json_uint(&j, "idle", places > gauges->active ? places - gauges->active : 0);
    json_uint(&j, "working", gauges->active);
    json_int(&j, "paused", 0);
    json_int(&j, "failed", 0);
    json_close_object(&j);
    json_close_array(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

/* ---- who asks ---- */

bool judge0_check_authorized(struct exchange *exchange)
{
    const struct config_list *keys = &exchange->http->config->security.allowed_keys;
    const char *user = exchange_value(exchange, "X-Auth-User");
    char domain[CLIENTS_DOMAIN_LENGTH + 1] = "";
    if (user && keys->count > 0 && clients_check_key(keys, user, domain) &&
        strcmp(domain, exchange->domain) == 0)
        return true;
    judge0_answer_nothing(exchange, MHD_HTTP_FORBIDDEN);
    return false;
}

void judge0_authenticate(struct exchange *exchange)
{
    judge0_answer_nothing(exchange, MHD_HTTP_OK);
}

void judge0_authorize(struct exchange *exchange)
{
    if (judge0_check_authorized(exchange))
        judge0_answer_nothing(exchange, MHD_HTTP_OK);
}
