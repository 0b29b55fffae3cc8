/* SPDX-License-Identifier: MIT */
/* Query parameters. */
#include "server/http/query.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "server/config.h"
#include "server/history/query.h"
#include "server/http/answer.h"
#include "server/http/http.h"
#include "server/http/route.h"

struct check {
    struct exchange *exchange;
    const char *seen[8];
    size_t count;
    bool refused;
};

static bool is_known(const struct route *route, const char *name)
{
    for (size_t i = 0; i < route_parameter_count; i++)
        if (strcmp(route_parameters[i].path, route->path) == 0 &&
            strcmp(route_parameters[i].method, route->method) == 0 &&
            strcmp(route_parameters[i].name, name) == 0)
            return true;
    return false;
}

static bool refuse(struct exchange *exchange, const char *name, const char *message)
{
    answer_field_error(exchange, ERROR_INVALID_QUERY, name, message);
    return false;
}

static enum MHD_Result check_one(void *context, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct check *check = context;
    char message[STR_SHOWN_MAX + 64];
    (void)kind;
    (void)value;
    bool again = false;
    for (size_t i = 0; i < check->count; i++)
        again = again || strcmp(check->seen[i], name) == 0;
    if (!again && check->count < ARRAY_LENGTH(check->seen) &&
        is_known(check->exchange->route, name)) {
        check->seen[check->count++] = name;
        return MHD_YES;
    }
    (void)snprintf(message, sizeof message,
                   again ? "the parameter '%s' is given twice"
                         : "unknown parameter '%s'; GET /openapi.json lists them",
                   str_shown(name).text);
    check->refused = !refuse(check->exchange, name, message);
    return MHD_NO;
}

bool query_check(struct exchange *exchange)
{
    struct check check = {.exchange = exchange};
    (void)MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND, check_one, &check);
    return !check.refused;
}

static const char *parameter(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND, name);
}

bool query_encoding(struct exchange *exchange, bool *ret_base64)
{
    const char *value = parameter(exchange, "encoding");
    *ret_base64 = value && strcmp(value, "base64") == 0;
    return !value || *ret_base64 || strcmp(value, "text") == 0 ||
           refuse(exchange, "encoding", "encoding has to be text or base64");
}

/* ---- GET /executions: checked here, so that what is wrong is a 400; then as history/query.h ---- */

static void add(struct str *out, const char *name, const char *value)
{
    str_appendf(out, "%s%s=%s", out->length > 0 ? "&" : "", name, value);
}

static bool add_language(struct exchange *exchange, struct str *out)
{
    const char *value = parameter(exchange, "language");
    if (!value)
        return true;
    const struct runtime *runtime = config_find_runtime(exchange->http->config, value);
    if (!runtime) {
        struct brig_error error = {0};
        (void)config_fail_language(exchange->http->config, value, &error);
        return refuse(exchange, "language", error.message);
    }
    add(out, "language", runtime->name);
    return true;
}

static bool add_status(struct exchange *exchange, struct str *out)
{
    const char *value = parameter(exchange, "status");
    if (!value)
        return true;
    if (execution_status_from_name(value) == EXECUTION_STATUSES_) {
        struct brig_error error = {0};
        (void)brig_wrap(&error,
                        nearest_fail(value,
                                     "running, ok, error, timeout, cpu_timeout, oom, killed, "
                                     "output_limit, setup_failed, lost or blocked",
                                     &error),
                        "status");
        return refuse(exchange, "status", error.message);
    }
    add(out, "status", value);
    return true;
}

/* What the history process reads, it judges. */
static bool add_judged(struct exchange *exchange, const char *name, struct str *out)
{
    const char *value = parameter(exchange, name);
    autostr struct str alone = {0};
    struct query query;
    struct brig_error error = {0};
    if (!value)
        return true;
    if (!*value || value[strcspn(value, "&=%+ ")])
        return refuse(exchange, name, "the parameter is empty or has signs that it cannot have");
    add(&alone, name, value);
    if (alone.failed || query_parse(alone.data, alone.length, INT64_MAX, &query, &error) < 0)
        return refuse(exchange, name, error.message);
    add(out, name, value);
    return true;
}

bool query_list(struct exchange *exchange, struct str *out)
{
    /* Who has a key sees what was run with it. */
    if (*exchange->domain)
        add(out, "domain", exchange->domain);
    return add_language(exchange, out) && add_status(exchange, out) &&
           add_judged(exchange, "since", out) && add_judged(exchange, "until", out) &&
           add_judged(exchange, "limit", out) && add_judged(exchange, "cursor", out);
}
