/* SPDX-License-Identifier: MIT */
/* Reads the configuration that the job sends to a broker. */
#include "net/broker_config.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"

#define WORDS_MAX 5
#define DNS_PORT 53
#define HTTP_PORT 80
#define HTTPS_PORT 443
#define ID_MAX 0xfffffffeu

/* HOST[:PORT]. An IPv6 address needs brackets only before a port. */
static int read_host(const char *text, uint16_t default_port, struct http_authority *ret_host,
                     struct brig_error *err)
{
    struct http_authority host = {0};
    const struct http_slice slice = {.at = text, .length = strlen(text)};
    host.is_address = net_address_read(slice.at, slice.length, &host.address);
    if (!host.is_address && !http_authority_read(slice, &host))
        return brig_fail(err, BRIG_E_INVALID, 0, "bad host '%s'", str_shown(text).text);
    if (host.port == 0)
        host.port = default_port;
    *ret_host = host;
    return 0;
}

/* ---- Lines ---- */

struct line {
    struct broker_config *config;
    struct config_inject *inject; /* of "inject N KEYWORD …", else NULL */
    char **words;                 /* after the keyword */
    struct brig_error *err;
};

static int read_number(const struct line *line, size_t word, uint64_t max, unsigned *ret_value)
{
    uint64_t value;
    int status = parse_uint(line->words[word], max, PARSE_ZERO_OK, &value, line->err);
    if (status == 0)
        *ret_value = (unsigned)value;
    return status;
}

static int read_secret(const struct line *line, size_t word, unsigned *ret_index)
{
    int status = read_number(line, word, DOOR_SECRETS_MAX, ret_index);
    if (status == 0 && line->config->secret_count < *ret_index + 1)
        line->config->secret_count = *ret_index + 1;
    return status;
}

static int add(const struct line *line, struct config_list *list, const char *text)
{
    if (list->count == CONFIG_LIST_MAX)
        return brig_fail(line->err, BRIG_E_INVALID, 0, "more than %d of them", CONFIG_LIST_MAX);
    list->items[list->count++] = arena_strdup(&line->config->arena, text);
    return 0;
}

/* Normalises a path for comparisons with the paths of requests. */
static int read_normalised(const struct line *line, const char *path, char **ret_path)
{
    size_t length = strlen(path);
    char *normal = arena_strdup(&line->config->arena, path);
    if (!normal)
        return brig_fail_nomem(line->err);
    if (!http_path_normalise((struct http_slice){.at = path, .length = length}, normal, &length))
        return brig_fail(line->err, BRIG_E_INVALID, 0,
                         "servers can read the path '%s' in more than one way; write it without "
                         "'..', ';', '\\' and encoded characters",
                         str_shown(path).text);
    normal[length] = 0;
    *ret_path = normal;
    return 0;
}

static int read_policy(const struct line *line)
{
    struct broker_config *config = line->config;
    config->open = strcmp(line->words[0], "open") == 0;
    config->ask = strcmp(line->words[0], "ask") == 0;
    if (!config->open && !config->ask && strcmp(line->words[0], "allow") != 0)
        return brig_fail(line->err, BRIG_E_INVALID, 0, "no policy '%s'",
                         str_shown(line->words[0]).text);
    return config->open ? net_rules_allow(&config->rules, "*", line->err) : 0;
}

static int read_user(const struct line *line)
{
    int status = read_number(line, 0, ID_MAX, &line->config->uid);
    line->config->has_user = status == 0;
    return status < 0 ? status : read_number(line, 1, ID_MAX, &line->config->gid);
}

static int read_resolver(const struct line *line)
{
    struct broker_config *config = line->config;
    if (config->resolver_count == CONFIG_RESOLVERS_MAX)
        return brig_fail(line->err, BRIG_E_INVALID, 0, "more than %d resolvers",
                         CONFIG_RESOLVERS_MAX);
    struct http_authority *host = &config->resolvers[config->resolver_count];
    int status = read_host(line->words[0], DNS_PORT, host, line->err);
    if (status == 0 && !host->is_address)
        return brig_fail(line->err, BRIG_E_INVALID, 0, "the resolver '%s' is not an address",
                         line->words[0]);
    config->resolver_count += status == 0;
    return status;
}

static int read_proxy(const struct line *line)
{
    struct http_authority *proxy = &line->config->proxy;
    line->config->has_proxy = true;
    int status = read_host(line->words[0], 0, proxy, line->err);
    if (status == 0 && proxy->port == 0)
        return brig_fail(line->err, BRIG_E_INVALID, 0, "the proxy '%s' has no port",
                         line->words[0]);
    return status;
}

static int read_proxy_secret(const struct line *line)
{
    unsigned index = 0;
    int status = read_secret(line, 0, &index);
    line->config->proxy_secret = (int)index;
    return status;
}

static int read_no_proxy(const struct line *line)
{
    return add(line, &line->config->no_proxy, line->words[0]);
}

static int read_ca(const struct line *line)
{
    line->config->ca = arena_strdup(&line->config->arena, line->words[0]);
    return 0;
}

static const struct limit_row {
    const char *name;
    uint64_t max, usual;
    unsigned flags;
} limit_rows[CONFIG_LIMIT_COUNT] = {
    [CONFIG_LIMIT_CONNECTIONS] = {"connections", CONFIG_CONNECTIONS_MAX, DOOR_CONNECTIONS, 0},
    [CONFIG_LIMIT_NAMES] = {"names", DOOR_NAMES_MAX, 0, 0},
    [CONFIG_LIMIT_BYTES] = {"bytes", INT64_MAX, 0, PARSE_ZERO_OK},
    [CONFIG_LIMIT_IDLE_MS] = {"idle-ms", PARSE_DURATION_MS_MAX, 0, PARSE_ZERO_OK},
    [CONFIG_LIMIT_CONNECT_MS] = {"connect-ms", PARSE_DURATION_MS_MAX, CONFIG_CONNECT_MS, 0},
    [CONFIG_LIMIT_INSPECT_MS] = {"inspect-ms", PARSE_DURATION_MS_MAX, CONFIG_INSPECT_MS, 0},
    [CONFIG_LIMIT_ASK_MS] = {"ask-ms", PARSE_DURATION_MS_MAX, CONFIG_ASK_MS, 0},
};

static int read_limit(const struct line *line)
{
    for (size_t i = 0; i < CONFIG_LIMIT_COUNT; i++) {
        const struct limit_row *row = &limit_rows[i];
        if (strcmp(row->name, line->words[0]) == 0)
            return parse_uint(line->words[1], row->max, row->flags, &line->config->limits[i],
                              line->err);
    }
    return brig_fail(line->err, BRIG_E_INVALID, 0, "no limit '%s'", str_shown(line->words[0]).text);
}

static int read_publish(const struct line *line)
{
    struct broker_config *config = line->config;
    unsigned index = 0;
    uint64_t port = 0;
    int status = read_number(line, 0, DOOR_PUBLISH_MAX - 1, &index);
    if (status == 0)
        status = parse_uint(line->words[1], UINT16_MAX, 0, &port, line->err);
    if (status < 0)
        return status;
    config->publish[index] = (uint16_t)port;
    if (config->publish_count < index + 1)
        config->publish_count = index + 1;
    return 0;
}

static int read_name(const struct line *line)
{
    return net_name_parse(line->words[0], strlen(line->words[0]), line->inject->name, line->err);
}

static int read_upstream(const struct line *line)
{
    struct config_inject *inject = line->inject;
    char *url = line->words[0], *prefix = NULL;
    inject->tls = str_starts_with(url, "https://");
    if (!inject->tls && !str_starts_with(url, "http://"))
        return brig_fail(line->err, BRIG_E_INVALID, 0,
                         "'%s' does not begin with http:// or https://", str_shown(url).text);
    char *host = strstr(url, "://") + 3, *path = strchr(host, '/');
    int status = read_normalised(line, path ? path : "/", &prefix);
    if (status < 0)
        return status;
    size_t length = strlen(prefix);
    while (length > 0 && prefix[length - 1] == '/')
        prefix[--length] = 0;
    inject->prefix = prefix;
    if (path)
        *path = 0;
    return read_host(host, inject->tls ? HTTPS_PORT : HTTP_PORT, &inject->upstream, line->err);
}

static int read_header(const struct line *line)
{
    struct config_inject *inject = line->inject;
    size_t at = inject->header_count;
    if (at == CONFIG_INJECT_HEADERS_MAX)
        return brig_fail(line->err, BRIG_E_INVALID, 0, "more than %d headers",
                         CONFIG_INJECT_HEADERS_MAX);
    inject->headers[at].name = arena_strdup(&line->config->arena, line->words[0]);
    int status = read_secret(line, 1, &inject->headers[at].secret);
    inject->header_count += status == 0;
    return status;
}

static int read_live(const struct line *line)
{
    int status = read_number(line, 0, DOOR_INJECT_MAX - 1, &line->inject->live);
    line->inject->is_live = status == 0;
    return status;
}

static int read_strip(const struct line *line)
{
    return add(line, &line->inject->strip, line->words[0]);
}

static int read_method(const struct line *line)
{
    return add(line, &line->inject->methods, line->words[0]);
}

static int read_path(const struct line *line)
{
    char *path = NULL;
    int status = read_normalised(line, line->words[0], &path);
    return status < 0 ? status : add(line, &line->inject->paths, path);
}

/* ---- The text ---- */

static const struct row {
    bool inject; /* of the form "inject N KEYWORD …" */
    const char *keyword;
    size_t words; /* after the keyword */
    int (*read)(const struct line *line);
} rows[] = {
    {false, "policy", 1, read_policy},
    {false, "user", 2, read_user},
    {false, "resolver", 1, read_resolver},
    {false, "proxy", 1, read_proxy},
    {false, "proxy-secret", 1, read_proxy_secret},
    {false, "no-proxy", 1, read_no_proxy},
    {false, "ca", 1, read_ca},
    {false, "limit", 2, read_limit},
    {false, "publish", 2, read_publish},
    {true, "name", 1, read_name},
    {true, "upstream", 1, read_upstream},
    {true, "header", 2, read_header},
    {true, "live", 1, read_live},
    {true, "strip", 1, read_strip},
    {true, "method", 1, read_method},
    {true, "path", 1, read_path},
};

/* Words end at a space; the last one extends to the end of the line. */
static size_t split_words(char *text, char *words[WORDS_MAX])
{
    size_t count = 0;
    while (text && count < WORDS_MAX) {
        words[count++] = text;
        text = strchr(text, ' ');
        if (text)
            *text++ = 0;
    }
    return count;
}

static int read_words(struct line *line, size_t count)
{
    unsigned index = 0;
    if (count > 2 && strcmp(line->words[0], "inject") == 0) {
        int status = read_number(line, 1, DOOR_INJECT_MAX - 1, &index);
        if (status < 0)
            return status;
        if (line->config->inject_count < index + 1)
            line->config->inject_count = index + 1;
        line->inject = &line->config->injects[index];
        line->words += 2;
        count -= 2;
    }
    const char *keyword = *line->words++;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (rows[i].inject == (line->inject != NULL) && strcmp(rows[i].keyword, keyword) == 0 &&
            rows[i].words == count - 1)
            return rows[i].read(line);
    return brig_fail(line->err, BRIG_E_INVALID, 0, "not understood");
}

static int read_line(struct broker_config *config, char *text, struct brig_error *err)
{
    if (str_starts_with(text, "allow ") || str_starts_with(text, "deny "))
        return net_rules_read_line(&config->rules, text, err);
    char *words[WORDS_MAX];
    struct line line = {.config = config, .words = words, .err = err};
    autofree char *copy = strdup(text); /* the message needs the whole line */
    if (!copy)
        return brig_fail_nomem(err);
    return read_words(&line, split_words(copy, words));
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

/* Denies the names of injects: the jail could otherwise reach them with a credential of its own. */
static int deny_injected(struct broker_config *config, struct brig_error *err)
{
    int status = 0;
    config->denies_names = has_denied_name(&config->rules);
    for (size_t i = 0; i < config->inject_count && status == 0; i++)
        status = net_rules_deny(&config->rules, config->injects[i].name, err);
    config->watches_names = has_denied_name(&config->rules);
    return status;
}

static int finish(struct broker_config *config, struct brig_error *err)
{
    for (size_t i = 0; i < config->inject_count; i++) {
        struct config_inject *inject = &config->injects[i];
        if (!inject->name[0])
            return brig_fail(err, BRIG_E_INVALID, 0, "inject %zu has no name", i);
        if (inject->upstream.port == 0) {
            inject->tls = true;
            inject->prefix = "";
            inject->upstream.port = HTTPS_PORT;
            memcpy(inject->upstream.name, inject->name, sizeof inject->name);
        }
    }
    int status = deny_injected(config, err);
    if (status < 0)
        return status;
    uint64_t *names = &config->limits[CONFIG_LIMIT_NAMES];
    if (*names == 0)
        *names = config->open ? DOOR_NAMES_MAX : DOOR_NAMES_ALLOW;
    return config->arena.failed ? brig_fail_nomem(err) : 0;
}

int broker_config_replace(struct broker_config *config, char *text, struct net_rules *ret_old,
                          struct brig_error *err)
{
    const bool denies = config->denies_names, watches = config->watches_names;
    struct net_rules old = config->rules;
    int status = 0;
    net_rules_init(&config->rules);
    for (char *line; status == 0 && (line = strsep(&text, "\n"));)
        if (*line)
            status = net_rules_read_line(&config->rules, line, err);
    if (status == 0)
        status = deny_injected(config, err);
    if (status < 0) {
        net_rules_done(&config->rules);
        config->rules = old;
        config->denies_names = denies;
        config->watches_names = watches;
        return status;
    }
    config->open = net_rules_is_open(&config->rules);
    *ret_old = old;
    return 0;
}

int broker_config_read(struct broker_config *config, const char *text, size_t length,
                       struct brig_error *err)
{
    *config = (struct broker_config){.proxy_secret = -1};
    for (size_t i = 0; i < CONFIG_LIMIT_COUNT; i++)
        config->limits[i] = limit_rows[i].usual;
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

bool broker_config_is_proxied(const struct broker_config *config, const char *name)
{
    for (size_t i = 0; i < config->no_proxy.count; i++) {
        const char *suffix = config->no_proxy.items[i];
        if (strcmp(name, suffix) == 0 || net_name_below(name, suffix))
            return false;
    }
    return config->has_proxy;
}

static const struct config_inject *find_injected(const struct broker_config *config,
                                                 const char *name)
{
    for (size_t i = 0; i < config->inject_count; i++)
        if (strcmp(config->injects[i].name, name) == 0)
            return &config->injects[i];
    return NULL;
}

enum door_because broker_config_because(const struct broker_config *config, const char *name,
                                        enum net_reason reason, const char **ret_detail)
{
    *ret_detail = net_reason_text(reason);
    switch (reason) {
    case NET_WRONG_PORT:
        return DOOR_BECAUSE_PORT;
    case NET_NOT_PUBLIC:
        return DOOR_BECAUSE_ADDRESS;
    case NET_DENIED:
        if (!find_injected(config, name))
            return DOOR_BECAUSE_RULE;
        *ret_detail = "reached through its own endpoint only";
        return DOOR_BECAUSE_INJECTED;
    case NET_OK:
    case NET_NO_RULE:
        break;
    }
    return DOOR_BECAUSE_NO_RULE;
}

/* ---- Credentials ---- */

int secrets_map(struct secrets *secrets, size_t size, struct brig_error *err)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return brig_fail_nomem(err);
    secrets->memory = memory;
    secrets->size = size;
    (void)madvise(memory, size, MADV_DONTDUMP);
    if (mlock(memory, size) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot lock %zu bytes of memory for credentials; raise RLIMIT_MEMLOCK",
                         size);
    return 0;
}

static int fill(struct secrets *secrets, int fd, struct brig_error *err)
{
    for (size_t at = 0; at < secrets->size;) {
        ssize_t got = pread(fd, secrets->memory + at, secrets->size - at, (off_t)at);
        if (got <= 0)
            return brig_fail(err, BRIG_E_SYSTEM, got < 0 ? errno : EIO, "cannot read credentials");
        at += (size_t)got;
    }
    return 0;
}

bool secrets_is_value(const char *text)
{
    if (!*text)
        return false;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

static int split(struct secrets *secrets, struct brig_error *err)
{
    const char *end = secrets->memory + secrets->size;
    for (const char *at = secrets->memory; at < end; at += strlen(at) + 1) {
        if (!memchr(at, 0, (size_t)(end - at)) || secrets->count == SECRETS_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0, "the credentials are not as they should be");
        if (!secrets_is_value(at))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "credential %zu is empty or has control characters in it",
                             secrets->count);
        secrets->texts[secrets->count++] = at;
    }
    return 0;
}

int secrets_read(struct secrets *secrets, int fd, struct brig_error *err)
{
    struct stat found;
    if (fstat(fd, &found) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read credentials");
    if (found.st_size == 0)
        return 0;
    if (found.st_size > DOOR_SECRETS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "more than %u bytes of credentials",
                         DOOR_SECRETS_MAX);
    int status = secrets_map(secrets, (size_t)found.st_size, err);
    if (status == 0)
        status = fill(secrets, fd, err);
    return status < 0 ? status : split(secrets, err);
}

void secrets_done(struct secrets *secrets)
{
    if (!secrets->memory)
        return;
    explicit_bzero(secrets->memory, secrets->size);
    (void)munmap(secrets->memory, secrets->size);
    *secrets = (struct secrets){0};
}
