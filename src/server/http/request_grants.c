/* SPDX-License-Identifier: MIT */
/* What a request asks for: time, limits, the network, a directory. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/net_rules.h"
#include "server/config.h"
#include "server/executor/workdir.h"
#include "server/http/request_json.h"
#include "server/http/request_read.h"

/* A number of seconds, or a duration as text. */
static bool timeout_ms(struct request_decoder *d, const char *field, const json_t *value,
                       uint64_t *ret_ms)
{
    char text[64];
    struct brig_error error = {0};
    if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
        (void)snprintf(text, sizeof text, "%s", json_string_value(value));
    else if (json_is_number(value) && json_number_value(value) < (double)PARSE_DURATION_MS_MAX)
        (void)snprintf(text, sizeof text, "%.3f", json_number_value(value));
    else
        return request_wrong_type(d, field,
                                  "a duration like \"10s\" or \"500ms\", or a number of seconds");
    if (parse_duration(text, 0, ret_ms, &error) < 0)
        return request_refuse(d, ERROR_INVALID_FIELD, field, "%s: %s", field, error.message);
    return true;
}

bool request_read_timeout(struct request_decoder *d, const char *field, const json_t *value)
{
    uint64_t ms = 0;
    uint64_t most =
        d->runtime->max_timeout_ms ? d->runtime->max_timeout_ms : d->config->sandbox.max_timeout_ms;
    if (!timeout_ms(d, field, value, &ms))
        return false;
    if (most && ms > most)
        return request_refuse(d, ERROR_INVALID_FIELD, field,
                              "timeout is %.12gs, at most %.12gs are allowed for %s",
                              (double)ms / 1000, (double)most / 1000, d->runtime->name);
    d->out->timeout_ms = ms;
    return true;
}

static bool read_limit(struct request_decoder *d, const char *field, const json_t *value,
                       enum execution_limit limit)
{
    json_int_t least = limit == EXECUTION_MEMORY_MB ? EXECUTION_MEMORY_MB_MIN : 1;
    uint64_t most = d->runtime->max_limits[limit] ? d->runtime->max_limits[limit]
                                                  : d->config->sandbox.max_limits[limit];
    if (!json_is_integer(value))
        return request_wrong_type(d, field, "a whole number");
    json_int_t number = json_integer_value(value);
    if (number < least || (most && (uint64_t)number > most))
        return request_refuse(
            d, ERROR_INVALID_FIELD, field,
            "%s is %" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT " to %llu are allowed for %s",
            field, number, least, (unsigned long long)(most ? most : INT64_MAX), d->runtime->name);
    d->out->limits[limit] = (uint64_t)number;
    return true;
}

static bool read_memory(struct request_decoder *d, const char *field, const json_t *value)
{
    return read_limit(d, field, value, EXECUTION_MEMORY_MB);
}

static bool read_pids(struct request_decoder *d, const char *field, const json_t *value)
{
    return read_limit(d, field, value, EXECUTION_PIDS);
}

static bool read_disk(struct request_decoder *d, const char *field, const json_t *value)
{
    return read_limit(d, field, value, EXECUTION_DISK_MB);
}

static bool read_cpu(struct request_decoder *d, const char *field, const json_t *value)
{
    return read_limit(d, field, value, EXECUTION_CPU_PERCENT);
}

bool request_read_limits(struct request_decoder *d, const char *field, const json_t *value)
{
    static const struct request_reader readers[] = {
        {.name = "memory_mb", .read = read_memory},
        {.name = "pids_limit", .read = read_pids},
        {.name = "disk_mb", .read = read_disk},
        {.name = "cpu_percent", .read = read_cpu},
    };
    if (!json_is_object(value))
        return request_wrong_type(d, field, "an object");
    return request_read_object(d, field, value, readers, ARRAY_LENGTH(readers));
}

static bool read_enabled(struct request_decoder *d, const char *field, const json_t *value)
{
    if (!json_is_boolean(value))
        return request_wrong_type(d, field, "true or false");
    d->out->network = json_is_true(value);
    return true;
}

/* Names and what lies below them; addresses, the host's own services and everything at once are
 * for the operator to give. */
static bool check_name(struct request_decoder *d, const char *field, const char *text)
{
    struct net_rule rule;
    struct brig_error error = {0};
    if (net_rule_parse(text, false, &rule, &error) < 0)
        return request_refuse(d, ERROR_INVALID_FIELD, field, "%s: %s", field, error.message);
    bool wide =
        rule.kind == NET_RULE_ANY || (rule.kind == NET_RULE_BELOW && !strchr(rule.name, '.'));
    if (wide && !d->config->sandbox.allow_network)
        return request_refuse(
            d, ERROR_NETWORK_NOT_PERMITTED, field,
            "'%s' is too wide: name hosts, like \"pypi.org\" or \"*.example.com\"",
            str_shown(text).text);
    if (!wide && rule.kind != NET_RULE_NAME && rule.kind != NET_RULE_BELOW)
        return request_refuse(d, ERROR_NETWORK_NOT_PERMITTED, field,
                              "'%s' is not a host name: a request cannot ask for addresses or "
                              "services of the server's host",
                              str_shown(text).text);
    return true;
}

static bool read_allow(struct request_decoder *d, const char *field, const json_t *value)
{
    if (!request_read_texts(d, field, value, EXECUTION_ALLOW_MAX, EXECUTION_NAME_MAX,
                            &d->out->allow, &d->out->allow_count))
        return false;
    for (size_t i = 0; i < d->out->allow_count; i++)
        if (!check_name(d, field, d->out->allow[i]))
            return false;
    return true;
}

static bool read_network(struct request_decoder *d, const char *field, const json_t *value)
{
    static const struct request_reader readers[] = {
        {.name = "enabled", .read = read_enabled},
        {.name = "allow", .read = read_allow},
    };
    if (!json_is_object(value))
        return request_wrong_type(d, field, "an object");
    if (!request_read_object(d, field, value, readers, ARRAY_LENGTH(readers)))
        return false;
    if (!d->out->network && d->out->allow_count > 0)
        return request_refuse(d, ERROR_INVALID_FIELD, field,
                              "%s.allow names hosts, but %s.enabled is not true", field, field);
    if (d->out->allow_count > 0 && d->runtime->agent && !d->config->sandbox.allow_network)
        return request_refuse(
            d, ERROR_NETWORK_NOT_PERMITTED, field,
            "'%s' is not permitted: %s reaches only its own destinations on this server",
            str_shown(d->out->allow[0]).text, d->runtime->name);
    if (d->out->network && d->out->allow_count == 0 && !d->config->sandbox.allow_network)
        return d->runtime->agent
                   ? request_refuse(
                         d, ERROR_NETWORK_NOT_PERMITTED, field,
                         "the whole network is not permitted: %s reaches its own destinations "
                         "without asking; leave out %s",
                         d->runtime->name, field)
                   : request_refuse(d, ERROR_NETWORK_NOT_PERMITTED, field,
                                    "the whole network is not permitted: name hosts in %s.allow",
                                    field);
    return true;
}

bool request_read_permissions(struct request_decoder *d, const char *field, const json_t *value)
{
    static const struct request_reader readers[] = {{.name = "network", .read = read_network}};
    if (!json_is_object(value))
        return request_wrong_type(d, field, "an object");
    return request_read_object(d, field, value, readers, ARRAY_LENGTH(readers));
}

/* Below a root of the operator's, by its name alone: the executor looks at what it leads to. */
static bool is_below_a_root(const struct config_list *roots, const char *path)
{
    autofree char *normal = NULL;
    if (path_normalise(path, 0, &normal, NULL) < 0 || executor_workdir_is_refused(normal))
        return false;
    for (size_t i = 0; i < roots->count; i++) {
        autofree char *root = NULL;
        if (path_normalise(roots->items[i], 0, &root, NULL) == 0 && path_is_beneath(root, normal))
            return true;
    }
    return false;
}

bool request_read_work_dir(struct request_decoder *d, const char *field, const json_t *value)
{
    const char *path = "";
    if (!request_read_text(d, field, value, EXECUTION_PATH_MAX, &path))
        return false;
    if (path[0] != '/')
        return request_refuse(d, ERROR_INVALID_FIELD, field, "work_dir '%s' is not absolute",
                              str_shown(path).text);
    bool own = d->roots != &d->config->sandbox.allowed_workdir_roots;
    if (!is_below_a_root(d->roots, path))
        return request_refuse(
            d, ERROR_WORK_DIR_NOT_ALLOWED, field,
            "work_dir '%s' is not below %s, or is one that is never given to a run",
            str_shown(path).text,
            own ? "workdir_roots of this API key" : "sandbox.allowed_workdir_roots");
    d->out->work_dir = path;
    return true;
}
