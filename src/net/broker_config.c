/* SPDX-License-Identifier: MIT */
/* What a broker is to do: the text that door_wire.h describes, taken apart. Pure. */
#include "net/broker_config.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/broker_config_inject.h"

#define WORDS_MAX 5
#define DNS_PORT 53
#define ID_MAX 0xfffffffeu

static const uint64_t default_limits[CONFIG_LIMIT_COUNT] = {
    [CONFIG_LIMIT_CONNECTIONS] = DOOR_CONNECTIONS,
    [CONFIG_LIMIT_CONNECT_MS] = CONFIG_CONNECT_MS,
    [CONFIG_LIMIT_INSPECT_MS] = CONFIG_INSPECT_MS,
};

/* ---- Values ---- */

static int read_port(const char *text, uint16_t *ret_port, struct brig_error *err)
{
    uint64_t port;
    int status = parse_uint(text, UINT16_MAX, 0, &port, err);
    if (status == 0)
        *ret_port = (uint16_t)port;
    return status;
}

int config_read_host(const char *text, uint16_t default_port, struct config_host *ret_host,
                     struct brig_error *err)
{
    struct config_host host = {.port = default_port};
    const char *end = text + strlen(text);
    const char *colon = strrchr(text, ':');
    const char *inner = text, *inner_end = end;
    if (text[0] == '[') {
        inner = text + 1;
        inner_end = strchr(text, ']');
        if (!inner_end || (inner_end[1] && inner_end[1] != ':'))
            return brig_fail(err, BRIG_E_INVALID, 0, "bad host '%s'", str_shown(text).text);
        colon = inner_end[1] ? inner_end + 1 : NULL;
    } else if (colon && strchr(text, ':') == colon) {
        inner_end = colon;
    } else {
        colon = NULL; /* none, or an address of IPv6 without a port */
    }
    if (colon && read_port(colon + 1, &host.port, err) < 0)
        return brig_wrap(err, BRIG_E_INVALID, "bad host '%s'", str_shown(text).text);
    size_t length = (size_t)(inner_end - inner);
    host.is_address = net_address_read(inner, length, &host.address);
    if (!host.is_address && !net_name_read(inner, length, host.name))
        return brig_fail(err, BRIG_E_INVALID, 0, "bad host '%s'", str_shown(text).text);
    *ret_host = host;
    return 0;
}

/* ---- Lines ---- */

static int read_policy(struct broker_config *config, char **words, struct brig_error *err)
{
    config->open = strcmp(words[1], "open") == 0;
    if (!config->open && strcmp(words[1], "allow") != 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "no policy '%s'", str_shown(words[1]).text);
    return config->open ? net_rules_allow(&config->rules, "*", err) : 0;
}

static int read_user(struct broker_config *config, char **words, struct brig_error *err)
{
    uint64_t uid = 0, gid = 0;
    int status = parse_uint(words[1], ID_MAX, PARSE_ZERO_OK, &uid, err);
    if (status == 0)
        status = parse_uint(words[2], ID_MAX, PARSE_ZERO_OK, &gid, err);
    if (status < 0)
        return status;
    config->has_user = true;
    config->uid = (uid_t)uid;
    config->gid = (gid_t)gid;
    return 0;
}

static int read_resolver(struct broker_config *config, char **words, struct brig_error *err)
{
    if (config->resolver_count == CONFIG_RESOLVERS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "more than %d resolvers", CONFIG_RESOLVERS_MAX);
    struct config_host *host = &config->resolvers[config->resolver_count];
    int status = config_read_host(words[1], DNS_PORT, host, err);
    if (status == 0 && !host->is_address)
        return brig_fail(err, BRIG_E_INVALID, 0, "the resolver '%s' is not an address", words[1]);
    config->resolver_count += status == 0;
    return status;
}

static int read_proxy(struct broker_config *config, char **words, struct brig_error *err)
{
    config->has_proxy = true;
    return config_read_host(words[1], 0, &config->proxy, err);
}

int config_read_secret(struct broker_config *config, const char *text, unsigned *ret_index,
                       struct brig_error *err)
{
    uint64_t index;
    int status = parse_uint(text, DOOR_SECRETS_MAX, PARSE_ZERO_OK, &index, err);
    if (status < 0)
        return status;
    *ret_index = (unsigned)index;
    if (config->secret_count < index + 1)
        config->secret_count = (unsigned)index + 1;
    return 0;
}

static int read_proxy_secret(struct broker_config *config, char **words, struct brig_error *err)
{
    unsigned index;
    int status = config_read_secret(config, words[1], &index, err);
    if (status == 0)
        config->proxy_secret = (int)index;
    return status;
}

static int read_no_proxy(struct broker_config *config, char **words, struct brig_error *err)
{
    if (config->no_proxy_count == CONFIG_NO_PROXY_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "more than %d no-proxy", CONFIG_NO_PROXY_MAX);
    config->no_proxy[config->no_proxy_count++] = arena_strdup(&config->arena, words[1]);
    return 0;
}

static int read_ca(struct broker_config *config, char **words, struct brig_error *err)
{
    (void)err;
    config->ca = arena_strdup(&config->arena, words[1]);
    return 0;
}

static const struct limit_row {
    const char *name;
    uint64_t max;
    unsigned flags;
} limit_rows[CONFIG_LIMIT_COUNT] = {
    [CONFIG_LIMIT_CONNECTIONS] = {"connections", CONFIG_CONNECTIONS_MAX, 0},
    [CONFIG_LIMIT_NAMES] = {"names", DOOR_NAMES_MAX, 0},
    [CONFIG_LIMIT_BYTES] = {"bytes", INT64_MAX, PARSE_ZERO_OK},
    [CONFIG_LIMIT_IDLE_MS] = {"idle-ms", PARSE_DURATION_MS_MAX, PARSE_ZERO_OK},
    [CONFIG_LIMIT_CONNECT_MS] = {"connect-ms", PARSE_DURATION_MS_MAX, 0},
    [CONFIG_LIMIT_INSPECT_MS] = {"inspect-ms", PARSE_DURATION_MS_MAX, 0},
};

static int read_limit(struct broker_config *config, char **words, struct brig_error *err)
{
    for (size_t i = 0; i < CONFIG_LIMIT_COUNT; i++) {
        const struct limit_row *row = &limit_rows[i];
        if (strcmp(row->name, words[1]) == 0)
            return parse_uint(words[2], row->max, row->flags, &config->limits[i], err);
    }
    return brig_fail(err, BRIG_E_INVALID, 0, "no limit '%s'", str_shown(words[1]).text);
}

static int read_publish(struct broker_config *config, char **words, struct brig_error *err)
{
    uint64_t index;
    int status = parse_uint(words[1], DOOR_PUBLISH_MAX - 1, PARSE_ZERO_OK, &index, err);
    if (status < 0)
        return status;
    if (config->publish_count < index + 1)
        config->publish_count = (size_t)index + 1;
    return read_port(words[2], &config->publish[index], err);
}

static const struct line_row {
    const char *keyword;
    size_t min, max; /* words */
    int (*read)(struct broker_config *config, char **words, struct brig_error *err);
} line_rows[] = {
    {"policy", 2, 2, read_policy},
    {"user", 3, 3, read_user},
    {"resolver", 2, 2, read_resolver},
    {"proxy", 2, 2, read_proxy},
    {"proxy-secret", 2, 2, read_proxy_secret},
    {"no-proxy", 2, 2, read_no_proxy},
    {"ca", 2, 2, read_ca},
    {"limit", 3, 3, read_limit},
    {"inject", 4, 5, config_inject_read},
    {"publish", 3, 3, read_publish},
};

/* Words end where a space was; the last is what is left. */
static size_t split(char *line, char *words[WORDS_MAX + 1])
{
    size_t count = 0;
    while (line && count < WORDS_MAX) {
        words[count++] = line;
        line = strchr(line, ' ');
        if (line)
            *line++ = 0;
    }
    words[count] = NULL;
    return count;
}

static int read_line(struct broker_config *config, char *line, struct brig_error *err)
{
    if (str_starts_with(line, "allow ") || str_starts_with(line, "deny "))
        return net_rules_read_line(&config->rules, line, err);
    char *words[WORDS_MAX + 1];
    autofree char *copy = strdup(line);
    if (!copy)
        return brig_fail_nomem(err);
    size_t count = split(copy, words);
    for (size_t i = 0; i < ARRAY_LENGTH(line_rows); i++) {
        const struct line_row *row = &line_rows[i];
        if (strcmp(row->keyword, words[0]) == 0 && count >= row->min && count <= row->max)
            return row->read(config, words, err);
    }
    return brig_fail(err, BRIG_E_INVALID, 0, "not understood");
}

static bool has_denied_name(const struct net_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct net_rule *rule = &rules->items[i];
        if (rule->deny && (rule->kind == NET_RULE_NAME || rule->kind == NET_RULE_BELOW))
            return true;
    }
    return false;
}

static int finish(struct broker_config *config, struct brig_error *err)
{
    config->denies_names = has_denied_name(&config->rules);
    int status = config_inject_finish(config, err);
    if (status < 0)
        return status;
    if (config->has_proxy && config->proxy.port == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "the proxy '%s' has no port", config->proxy.name);
    config->watches_names = has_denied_name(&config->rules);
    uint64_t *names = &config->limits[CONFIG_LIMIT_NAMES];
    if (*names == 0)
        *names = config->open ? DOOR_NAMES_MAX : DOOR_NAMES_ALLOW;
    return config->arena.failed ? brig_fail_nomem(err) : 0;
}

int broker_config_read(struct broker_config *config, const char *text, size_t length,
                       struct brig_error *err)
{
    *config = (struct broker_config){.proxy_secret = -1};
    memcpy(config->limits, default_limits, sizeof config->limits);
    net_rules_init(&config->rules);
    autofree char *copy = strndup(text, length);
    if (!copy)
        return brig_fail_nomem(err);
    if (strlen(copy) != length)
        return brig_fail(err, BRIG_E_INVALID, 0, "the door's configuration has a NUL in it");
    unsigned number = 0;
    for (char *line = copy, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        int status = 0;
        if (number++ > 0)
            status = read_line(config, line, err);
        else if (strcmp(line, DOOR_CONFIG_HEAD) != 0)
            status = brig_fail(err, BRIG_E_INVALID, 0, "not '" DOOR_CONFIG_HEAD "'");
        if (status < 0)
            return brig_wrap(err, status, "line %u of the door's configuration, '%s'", number,
                             str_shown(line).text);
    }
    if (number == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "the door's configuration is empty");
    return finish(config, err);
}

void broker_config_done(struct broker_config *config)
{
    net_rules_done(&config->rules);
    arena_done(&config->arena);
}

bool broker_config_is_direct(const struct broker_config *config, const char *name)
{
    if (!config->has_proxy)
        return true;
    for (size_t i = 0; i < config->no_proxy_count; i++) {
        const char *suffix = config->no_proxy[i];
        if (strcmp(name, suffix) == 0 || net_name_below(name, suffix))
            return true;
    }
    return false;
}

const struct config_inject *broker_config_injected(const struct broker_config *config,
                                                   const char *name)
{
    for (size_t i = 0; i < config->inject_count; i++)
        if (strcmp(config->injects[i].name, name) == 0)
            return &config->injects[i];
    return NULL;
}
