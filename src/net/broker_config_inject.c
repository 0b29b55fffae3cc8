/* SPDX-License-Identifier: MIT */
/* The lines of a broker's configuration about credentials. */
#include "net/broker_config_inject.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/http_head.h"

#define HTTP_PORT 80
#define HTTPS_PORT 443

static int read_name(struct broker_config *config, struct config_inject *inject, char **values,
                     struct brig_error *err)
{
    (void)config;
    return net_name_parse(values[0], strlen(values[0]), inject->name, err);
}

/* In the one spelling that a request's path is compared in. */
static int read_normalised(struct broker_config *config, const char *path, char **ret_path,
                           struct brig_error *err)
{
    size_t length = strlen(path);
    char *normal = arena_strdup(&config->arena, path);
    if (!normal)
        return brig_fail_nomem(err);
    if (!http_path_normalise((struct http_slice){.at = path, .length = length}, normal, &length))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "servers can read the path '%s' in more than one way; write it without "
                         "'..', ';', '\\' and encoded characters",
                         str_shown(path).text);
    normal[length] = 0;
    *ret_path = normal;
    return 0;
}

static int read_upstream(struct broker_config *config, struct config_inject *inject, char **values,
                         struct brig_error *err)
{
    const char *url = values[0];
    inject->tls = str_starts_with(url, "https://");
    if (!inject->tls && !str_starts_with(url, "http://"))
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' does not begin with http:// or https://",
                         str_shown(url).text);
    const char *host = strstr(url, "://") + 3;
    const char *path = strchr(host, '/');
    autofree char *alone = path ? strndup(host, (size_t)(path - host)) : strdup(host);
    char *prefix = NULL;
    if (!alone)
        return brig_fail_nomem(err);
    int status = read_normalised(config, path ? path : "/", &prefix, err);
    if (status < 0)
        return status;
    size_t length = strlen(prefix);
    while (length > 0 && prefix[length - 1] == '/')
        prefix[--length] = 0;
    inject->prefix = prefix;
    inject->has_upstream = true;
    return config_read_host(alone, inject->tls ? HTTPS_PORT : HTTP_PORT, &inject->upstream, err);
}

static int read_header(struct broker_config *config, struct config_inject *inject, char **values,
                       struct brig_error *err)
{
    if (inject->header_count == CONFIG_INJECT_HEADERS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "more than %d headers", CONFIG_INJECT_HEADERS_MAX);
    struct config_header *header = &inject->headers[inject->header_count];
    header->name = arena_strdup(&config->arena, values[0]);
    int status = config_read_secret(config, values[1], &header->secret, err);
    inject->header_count += status == 0;
    return status;
}

static int add(struct broker_config *config, struct config_list *list, const char *text,
               struct brig_error *err)
{
    if (list->count == CONFIG_INJECT_LIST_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "more than %d of them", CONFIG_INJECT_LIST_MAX);
    list->items[list->count++] = arena_strdup(&config->arena, text);
    return 0;
}

static int read_strip(struct broker_config *config, struct config_inject *inject, char **values,
                      struct brig_error *err)
{
    return add(config, &inject->strip, values[0], err);
}

static int read_method(struct broker_config *config, struct config_inject *inject, char **values,
                       struct brig_error *err)
{
    return add(config, &inject->methods, values[0], err);
}

static int read_path(struct broker_config *config, struct config_inject *inject, char **values,
                     struct brig_error *err)
{
    char *path = NULL;
    int status = read_normalised(config, values[0], &path, err);
    return status < 0 ? status : add(config, &inject->paths, path, err);
}

static const struct inject_row {
    const char *keyword;
    size_t values;
    int (*read)(struct broker_config *config, struct config_inject *inject, char **values,
                struct brig_error *err);
} inject_rows[] = {
    {"name", 1, read_name},   {"upstream", 1, read_upstream}, {"header", 2, read_header},
    {"strip", 1, read_strip}, {"method", 1, read_method},     {"path", 1, read_path},
};

int config_inject_read(struct broker_config *config, char **words, struct brig_error *err)
{
    uint64_t index;
    int status = parse_uint(words[1], DOOR_INJECT_MAX - 1, PARSE_ZERO_OK, &index, err);
    if (status < 0)
        return status;
    if (config->inject_count < index + 1)
        config->inject_count = (size_t)index + 1;
    size_t values = words[4] ? 2 : 1;
    for (size_t i = 0; i < ARRAY_LENGTH(inject_rows); i++) {
        const struct inject_row *row = &inject_rows[i];
        if (strcmp(row->keyword, words[2]) == 0 && row->values == values)
            return row->read(config, &config->injects[index], words + 3, err);
    }
    return brig_fail(err, BRIG_E_INVALID, 0, "not understood");
}

static int finish_one(struct broker_config *config, struct config_inject *inject,
                      struct brig_error *err)
{
    if (!inject->has_upstream) {
        inject->tls = true;
        inject->prefix = "";
        inject->upstream.port = HTTPS_PORT;
        memcpy(inject->upstream.name, inject->name, sizeof inject->name);
    }
    /* Else the jail could reach it with a credential of its own. */
    return net_rules_deny(&config->rules, inject->name, err);
}

int config_inject_finish(struct broker_config *config, struct brig_error *err)
{
    for (size_t i = 0; i < config->inject_count; i++) {
        if (!config->injects[i].name[0])
            return brig_fail(err, BRIG_E_INVALID, 0, "inject %zu has no name", i);
        int status = finish_one(config, &config->injects[i], err);
        if (status < 0)
            return status;
    }
    return 0;
}
