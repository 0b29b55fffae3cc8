/* SPDX-License-Identifier: MIT */
/* The network of a run: its kind, the host's proxy, and the events of the door. */
#include "cli/net.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/inject.h"
#include "cli/out_path.h"
#include "cli/program.h"
#include "cli/report.h"
#include "cli/settings.h"
#include "policy/policy.h"

/* ---- Package registry mirrors: from the user's files and environment, never from a file of the
 * project ---- */

#define FILES_MAX 4
#define NAMES_MAX 4
#define FILE_LENGTH_MAX 65536

/* Where each tool configures its mirror. Files are relative to the home directory; the jail does
 * not see them, because they may contain passwords. So a key that has a variable as well is set in
 * the jail by that variable, without a password. */
static const struct mirror_tool {
    unsigned tool;
    const char *name;
    const char *files[FILES_MAX];
    const char *keys[NAMES_MAX];
    const char *variables[NAMES_MAX]; /* those of the keys first */
} tools[] = {
    {NET_TOOL_NPM, "npm", {".npmrc"}, {"registry"}, {"npm_config_registry", "NPM_CONFIG_REGISTRY"}},
    {NET_TOOL_PYPI,
     "PyPI",
     {".config/pip/pip.conf", ".pip/pip.conf", "/etc/pip.conf"},
     {"index-url", "extra-index-url"},
     {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL"}},
    {NET_TOOL_CRATES,
     "crates.io",
     {".cargo/config.toml", ".cargo/config"},
     {"registry", "index"},
     {NULL, NULL, "CARGO_REGISTRY_INDEX"}},
    {NET_TOOL_GO, "Go", {".config/go/env"}, {"GOPROXY"}, {"GOPROXY"}},
};

/* Parses one URL around "://"; false if it is not http or https. */
static bool read_url(const char *scheme_end, size_t before, const char *end, size_t *ret_size,
                     char rule[MIRRORS_RULE_MAX])
{
    const char *host = scheme_end + 3;
    size_t size = 0;
    while (host + size < end && !strchr("/?# \t\r\n\"',|", host[size]))
        size++;
    *ret_size = size;
    bool tls = before >= 5 && memcmp(scheme_end - 5, "https", 5) == 0;
    bool plain = before >= 4 && memcmp(scheme_end - 4, "http", 4) == 0;
    const char *user = memrchr(host, '@', size);
    size -= user ? (size_t)(user + 1 - host) : 0;
    host = user ? user + 1 : host;
    if ((!tls && !plain) || size == 0 || size + 8 > MIRRORS_RULE_MAX)
        return false;
    bool has_port = memchr(host, ':', size) && host[size - 1] != ']';
    (void)snprintf(rule, MIRRORS_RULE_MAX, "%.*s%s", (int)size, host,
                   has_port ? "" : (tls ? ":443" : ":80"));
    return true;
}

bool mirrors_next_url(const char *text, size_t length, size_t *at, char rule[MIRRORS_RULE_MAX])
{
    const char *found;
    while ((found = memmem(text + *at, length - *at, "://", 3))) {
        size_t size = 0;
        bool ours = read_url(found, (size_t)(found - text) - *at, text + length, &size, rule);
        *at = (size_t)(found + 3 + size - text);
        if (ours)
            return true;
    }
    return false;
}

bool mirrors_is_key(const char *line, size_t length, const char *const *keys, size_t *ret_value)
{
    const char *equals = memchr(line, '=', length);
    if (!equals)
        return false;
    const char *begin = line, *end = equals;
    while (begin < end && strchr(" \t\"", *begin))
        begin++;
    while (end > begin && strchr(" \t\"", end[-1]))
        end--;
    const char *scope = memrchr(begin, ':', (size_t)(end - begin));
    begin = scope ? scope + 1 : begin;
    size_t size = (size_t)(end - begin);
    for (; *keys; keys++)
        if (strlen(*keys) == size && strncasecmp(*keys, begin, size) == 0) {
            *ret_value = (size_t)(equals + 1 - line);
            return true;
        }
    return false;
}

static int allow_all(struct settings *settings, const struct mirror_tool *tool, const char *text,
                     size_t length, const char *origin, struct brig_error *err)
{
    char rule[MIRRORS_RULE_MAX];
    size_t at = 0;
    int status = brig_policy_origin(settings->policy, origin, err);
    while (status == 0 && mirrors_next_url(text, length, &at, rule)) {
        if (brig_policy_allow(settings->policy, rule, NULL) < 0)
            message_warning("'%s' in %s cannot be allowed as a mirror", rule, origin);
        else
            message_note("a mirror of %s is allowed: %s (%s)", tool->name, rule, origin);
    }
    return status;
}

void mirrors_clean(const char *text, size_t length, struct str *out)
{
    static const char blanks[] = " \t\r\n\"'";
    while (length > 0 && strchr(blanks, text[length - 1]))
        length--;
    while (length > 0 && strchr(blanks, *text)) {
        text++;
        length--;
    }
    if (out->length > 0 && length > 0)
        str_append_char(out, ' ');
    for (size_t i = 0; i < length; i++) {
        bool after = i >= 3 && memcmp(text + i - 3, "://", 3) == 0;
        size_t host = 0;
        while (after && i + host < length && !strchr("/?# \t\r\n\"',|", text[i + host]))
            host++;
        const char *user = after ? memrchr(text + i, '@', host) : NULL;
        if (user)
            i = (size_t)(user + 1 - text);
        str_append_char(out, text[i]);
    }
}

/* The values that the jail gets as variables, by the index of the key or variable. */
struct mirror_values {
    struct str items[NAMES_MAX];
};

static void take_value(struct mirror_values *values, const struct mirror_tool *tool, size_t index,
                       const char *text, size_t length)
{
    if (tool->variables[index])
        mirrors_clean(text, length, &values->items[index]);
}

static bool is_set(const struct brig_policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->env_count; i++)
        if (policy->env[i].kind == POLICY_ENV_SET && strcmp(policy->env[i].name, name) == 0)
            return true;
    return false;
}

/* Sets the variables, unless the user sets them. */
static int set_values(struct settings *settings, const struct mirror_tool *tool,
                      struct mirror_values *values, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < NAMES_MAX; i++) {
        struct str *value = &values->items[i];
        if (status == 0 && value->failed)
            status = brig_fail_nomem(err);
        if (status == 0 && value->length > 0 && !is_set(settings->policy, tool->variables[i]))
            status = brig_policy_setenv(settings->policy, tool->variables[i], value->data, err);
        str_done(value);
    }
    return status;
}

/* A value may continue in indented lines. */
static int allow_in_text(struct settings *settings, const struct mirror_tool *tool,
                         const char *text, const char *origin, struct mirror_values *values,
                         struct brig_error *err)
{
    bool ours = false;
    int status = 0;
    size_t key = 0;
    for (const char *line = text; *line && status == 0;) {
        size_t length = strcspn(line, "\n"), value = 0;
        bool indented = line[0] == ' ' || line[0] == '\t';
        if (!indented || memchr(line, '=', length)) {
            ours = mirrors_is_key(line, length, tool->keys, &value);
            for (key = 0; ours && key < NAMES_MAX - 1; key++)
                if (mirrors_is_key(line, length, (const char *const[]){tool->keys[key], NULL},
                                   &value))
                    break;
        }
        if (ours)
            status = allow_all(settings, tool, line + value, length - value, origin, err);
        if (ours && line[0] != '@') /* the registry of a scope has no variable */
            take_value(values, tool, key, line + value, length - value);
        line += length + (line[length] == '\n');
    }
    return status;
}

/* Returns the text of the file, or NULL. Uses the ids of the user. */
static char *read_file(const char *path, const struct identity *identity)
{
    identity_enter(identity);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char *text = fd >= 0 ? calloc(1, FILE_LENGTH_MAX + 1) : NULL;
    if (text && read(fd, text, FILE_LENGTH_MAX) < 0)
        text[0] = '\0';
    identity_leave(identity);
    return text;
}

static int look(struct settings *settings, const struct mirror_tool *tool,
                const struct identity *identity, struct brig_error *err)
{
    int status = 0;
    struct mirror_values values = {0}, given = {0};
    for (size_t i = 0; i < NAMES_MAX && status == 0; i++) {
        const char *value = tool->variables[i] ? getenv(tool->variables[i]) : NULL;
        if (!value)
            continue;
        status = allow_all(settings, tool, value, strlen(value), tool->variables[i], err);
        take_value(&given, tool, i, value, strlen(value));
    }
    if (status == 0)
        status = set_values(settings, tool, &given, err);
    for (size_t i = 0; i < FILES_MAX && tool->files[i] && status == 0; i++) {
        char path[PATH_LENGTH_MAX + 64];
        bool absolute = tool->files[i][0] == '/';
        (void)snprintf(path, sizeof path, "%s%s%s", absolute ? "" : settings->home,
                       absolute ? "" : "/", tool->files[i]);
        autofree char *text = read_file(path, identity);
        if (text)
            status = allow_in_text(settings, tool, text, path, &values, err);
        if (status == 0)
            status = set_values(settings, tool, &values, err);
    }
    return status;
}

int mirrors_apply(struct settings *settings, const struct identity *identity,
                  struct brig_error *err)
{
    unsigned wanted = settings->policy->net.rules.mirrors;
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(tools) && status == 0; i++)
        if (wanted & tools[i].tool)
            status = look(settings, &tools[i], identity, err);
    return status;
}

/* ---- The broker and the rules ---- */

/* Where a broker may be, relative to the directory of this program: in a build tree, and in an
 * installation with another prefix than configured. */
static const char *const broker_places[] = {"brig-broker", "../net/brig-broker", "../brig-broker",
                                            "../libexec/brig/brig-broker", NULL};

bool net_find_broker(char *path, size_t size)
{
    return path_find_program(broker_places, BRIG_BROKER_PATH, path, size);
}

/* Whether an allow rule names something that `open` includes: then the rules are meant as the
 * complete list. A private address or a service of the host, which open never includes, is meant as
 * an addition. */
static bool is_public(const struct net_rule *rule)
{
    if (rule->kind == NET_RULE_HOST)
        return false;
    return rule->kind != NET_RULE_RANGE || net_address_class(&rule->range.base) == NET_PUBLIC;
}

/* A list of destinations means these and nothing else: with a wider default of the mode, the list
 * would have no effect. */
static int settle_network(struct settings *settings, struct brig_error *err)
{
    struct brig_policy *policy = settings->policy;
    const struct net_rules *rules = &policy->net.rules;
    bool allows = false;
    for (size_t i = 0; i < rules->count; i++)
        allows = allows || (!rules->items[i].deny &&
                            (policy->network != BRIG_NET_OPEN || is_public(&rules->items[i])));
    if (allows && !settings->net_given)
        return brig_policy_network(policy, BRIG_NET_ALLOW, err);
    if (settings->allow_typed && !policy_has_door(policy))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--allow %s does nothing with the network '%s'. Use --net allow, or --net "
                         "open for it and everything public",
                         str_shown(settings->allow_typed).text, policy_network_word(policy));
    return 0;
}

/* In a jail with a door, names have addresses of that door, which are not public. The outer door
 * decides about them. Our door uses the same ranges for its names, and looks these up first. */
static int accept_outer_door(struct brig_policy *policy, struct brig_error *err)
{
    static const char *const ranges[] = {"198.18.0.0/15:*", "[fd62:7269:6700::/48]:*"};
    char text[256] = "";
    autoclose int fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (length <= 0 || !strstr(text, "nameserver 198.18.0.2\n"))
        return 0;
    int status = brig_policy_origin(policy, "the jail around this one", err);
    for (size_t i = 0; i < ARRAY_LENGTH(ranges) && status == 0; i++)
        status = brig_policy_allow(policy, ranges[i], err);
    return status;
}

/* ---- The host's HTTP proxy ---- */

#define SCHEME "http://"

static void append_decoded(struct str *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        int high = text[i] == '%' && i + 2 < length ? hex_value(text[i + 1]) : -1;
        int low = high >= 0 ? hex_value(text[i + 2]) : -1;
        if (low >= 0)
            i += 2;
        str_append_char(out, low >= 0 ? (char)(high << 4 | low) : text[i]);
    }
}

static bool make_secret(const char *user, size_t length, char **ret_secret)
{
    autostr struct str plain = {0};
    autostr struct str secret = {0};
    append_decoded(&plain, user, length);
    if (!memchr(user, ':', length))
        str_append_char(&plain, ':');
    str_append(&secret, "Basic ");
    base64_append(&secret, plain.data, plain.length);
    bool good = !plain.failed && str_take(&secret, ret_secret, NULL) == 0;
    if (plain.data)
        explicit_bzero(plain.data, plain.length);
    return good;
}

bool net_proxy_parse(const char *url, char **ret_proxy, char **ret_secret)
{
    if (strncasecmp(url, SCHEME, strlen(SCHEME)) == 0)
        url += strlen(SCHEME);
    else if (strstr(url, "://"))
        return false;
    size_t length = strcspn(url, "/?#");
    const char *at = memrchr(url, '@', length);
    const char *host = at ? at + 1 : url;
    length -= (size_t)(host - url);
    if (length == 0)
        return false;
    autostr struct str proxy = {0};
    str_append_bytes(&proxy, host, length);
    bool bracketed = host[0] == '[' && host[length - 1] == ']';
    if (bracketed || !memchr(host, ':', length))
        str_append(&proxy, ":80");
    *ret_secret = NULL;
    if (at && !make_secret(url, (size_t)(at - url), ret_secret))
        return false;
    if (str_take(&proxy, ret_proxy, NULL) < 0) {
        policy_free_secret(take_ptr(ret_secret));
        return false;
    }
    return true;
}

static const char *first_of(const char *const *names, const char **ret_name)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        *ret_name = *names;
        if (value && *value)
            return value;
    }
    return NULL;
}

size_t net_proxy_split_names(char *text, const char *names[POLICY_NO_PROXY_MAX + 1])
{
    size_t count = 0;
    char *rest = text;
    for (char *word; (word = strsep(&rest, ", ")) && count < POLICY_NO_PROXY_MAX;) {
        char name[NET_NAME_MAX + 1];
        word += strspn(word, "*.");
        if (net_name_read(word, strlen(word), name))
            names[count++] = word;
    }
    names[count] = NULL;
    return count;
}

/* Adds HTTPS_PROXY, ALL_PROXY or HTTP_PROXY, and NO_PROXY, in either case, to the policy. A proxy
 * other than plain HTTP causes a warning and is not used. */
static int apply_proxy(struct brig_policy *policy, struct brig_error *err)
{
    static const char *const proxy_names[] = {
        "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY", NULL};
    static const char *const no_proxy_names[] = {"no_proxy", "NO_PROXY", NULL};
    const char *name = NULL, *ignored = NULL;
    const char *url = first_of(proxy_names, &name);
    const char *without = first_of(no_proxy_names, &ignored);
    if (!url || (without && strcmp(without, "*") == 0))
        return 0;
    autofree char *proxy = NULL;
    char *secret = NULL;
    if (!net_proxy_parse(url, &proxy, &secret)) {
        message_warning("%s does not name an HTTP proxy; connections go out without it", name);
        return 0;
    }
    autofree char *copy = strdup(without ? without : "");
    const char *names[POLICY_NO_PROXY_MAX + 1] = {NULL};
    if (copy)
        (void)net_proxy_split_names(copy, names);
    int status =
        copy ? brig_policy_net_proxy(policy, proxy, secret, names, err) : brig_fail_nomem(err);
    policy_free_secret(secret);
    return status < 0 ? brig_wrap(err, status, "%s", name) : 0;
}

int net_apply(struct settings *settings, const struct identity *identity, struct brig_error *err)
{
    int status = mirrors_apply(settings, identity, err);
    if (status == 0)
        status = settle_network(settings, err);
    if (status == 0)
        status = program_allow_hosts(settings, err);
    if (status == 0 && settings->inject_count > 0)
        status = inject_apply(settings, identity, err);
    if (status < 0 || !policy_has_door(settings->policy))
        return status;
    status = accept_outer_door(settings->policy, err);
    char broker[PATH_MAX + 64]; /* if there is none, the engine reports it with its path */
    (void)net_find_broker(broker, sizeof broker);
    if (status == 0)
        status = brig_policy_broker(settings->policy, broker, err);
    return status == 0 ? apply_proxy(settings->policy, err) : status;
}

/* The jail determines the size of the log, and must not fill the disk. */
#define LOG_BYTES_MAX (UINT64_C(256) << 20)

/* ---- the log ---- */

static int open_log(const struct settings *settings, const struct identity *identity,
                    struct net_watch *watch, struct brig_error *err)
{
    const char *where = settings->net_log;
    int status = out_file_number(where, "--net-log", &watch->log, err);
    if (status != 0)
        return status < 0 ? status : 0;
    identity_enter(identity);
    int fd = out_file_append(where, "--net-log", settings->policy, identity, err);
    identity_leave(identity);
    if (fd < 0)
        return fd;
    watch->log = fd;
    watch->log_owned = true;
    return 0;
}

static void write_log(struct net_watch *watch, const struct brig_net_event *event)
{
    autofree char *text = NULL;
    if (watch->log < 0 || watch->log_failed || brig_net_event_json(event, &text, NULL) < 0)
        return;
    watch->log_bytes += strlen(text);
    int failed =
        watch->log_bytes > LOG_BYTES_MAX ? -EFBIG : write_all(watch->log, text, strlen(text));
    if (failed == 0)
        return;
    watch->log_failed = true;
    message_warning("--net-log: nothing more is written: %s", strerror(-failed));
}

int net_watch_init(struct net_watch *watch, const struct settings *settings,
                   const struct identity *identity, struct brig_error *err)
{
    *watch = NET_WATCH_INIT;
    watch->learn = settings->net_learn;
    watch->shown = settings->verbose || settings->net_learn || isatty(STDERR_FILENO);
    watch->rules = &settings->policy->net.rules;
    watch->implied = !settings->net_given && settings->policy->network == BRIG_NET_OPEN;
    if (settings->net_log && !policy_has_door(settings->policy))
        message_warning("--net-log: nothing is logged with the network '%s'",
                        policy_word(POLICY_NETWORK, settings->policy->network));
    int status = settings->net_log ? open_log(settings, identity, watch, err) : 0;
    if (status < 0 || !settings->net_rules)
        return status;
    status = out_file_number(settings->net_rules, "--net-rules", &watch->rules_fd, err);
    return status == 0  ? brig_fail(err, BRIG_E_INVALID, 0, "--net-rules: '%s' is not a descriptor",
                                    str_shown(settings->net_rules).text)
           : status < 0 ? status
                        : 0;
}

void net_watch_done(struct net_watch *watch)
{
    if (watch->log >= 0 && watch->log_owned)
        (void)close(watch->log);
    for (size_t i = 0; i < watch->blocked_count; i++)
        free(watch->blocked[i]);
    for (size_t i = 0; i < watch->learnt_count; i++)
        free(watch->learnt[i].name);
    free(watch->learnt);
    *watch = NET_WATCH_INIT;
}

/* ---- denied connections ---- */

/* "name:443", with an IPv6 address in brackets; without a port only the name. */
static void print_destination(const char *name, unsigned port, char *text, size_t size)
{
    bool v6 = strchr(name, ':') != NULL;
    if (port == 0)
        (void)snprintf(text, size, "%s", name);
    else
        (void)snprintf(text, size, "%s%s%s:%u", v6 ? "[" : "", name, v6 ? "]" : "", port);
}

static const char *name_of(const struct brig_net_event *event)
{
    return event->name[0] ? event->name : event->address;
}

static bool is_public_address(const char *text)
{
    struct net_address address;
    return net_address_read(text, strlen(text), &address) &&
           net_address_class(&address) == NET_PUBLIC;
}

/* The option that would allow it; "" if there is no short one, or it should not be suggested. With
 * `implied` the network is open because no option says otherwise: a public destination in --allow
 * would make it the only one. */
static void remedy(const struct brig_net_event *event, bool implied, char *text, size_t size)
{
    bool usual = strcmp(event->name, NET_HOST_NAME) != 0 &&
                 (event->port == 0 || event->port == 443 || event->port == 80);
    bool no_rule = strcmp(event->because, "no-rule") == 0;
    bool address = strcmp(event->because, "address") == 0 && event->address[0];
    char what[400];
    *text = '\0';
    if (!no_rule && strcmp(event->because, "port") != 0 && !address)
        return;
    print_destination(address ? event->address : name_of(event),
                      no_rule && event->name[0] && usual ? 0 : event->port, what, sizeof what);
    (void)snprintf(text, size, "allow it with %s--allow %s",
                   implied && address && is_public_address(event->address) ? "--net open " : "",
                   what);
}

/* A connection that was allowed and failed for a reason outside the jail. A name that does not
 * exist is not reported: the command is told so. */
static bool is_failure(const struct brig_net_event *event)
{
    static const char *const causes[] = {"no-connection", "no-name", "timeout", "tls"};
    for (size_t i = 0; i < ARRAY_LENGTH(causes); i++)
        if (event->verdict == BRIG_NET_FAILED && event->port != 0 && *name_of(event) &&
            strcmp(event->because, causes[i]) == 0)
            return true;
    return false;
}

void net_watch_line(const struct brig_net_event *event, bool implied, char line[NET_LINE_MAX])
{
    char what[400], how[480];
    *line = '\0';
    print_destination(name_of(event), event->port, what, sizeof what);
    if (event->verdict == BRIG_NET_WAITING)
        (void)snprintf(line, NET_LINE_MAX, "%s is waiting; in another terminal: brig allow %s",
                       what, what);
    if (is_failure(event))
        (void)snprintf(line, NET_LINE_MAX, "failed: %s (%s)", what,
                       event->detail[0] ? event->detail : event->because);
    if (event->verdict != BRIG_NET_DENIED)
        return;
    remedy(event, implied, how, sizeof how);
    if (*how && strcmp(event->because, "address") != 0)
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s; %s", what, how);
    else if (*how)
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s (%s); %s", what,
                       event->detail[0] ? event->detail : event->address, how);
    else if (event->rule[0] && strcmp(event->because, "rule") == 0)
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s (deny %s)", what, event->rule);
    else
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s (%s)", what,
                       event->detail[0] ? event->detail : event->because);
}

static void note_blocked(struct net_watch *watch, const struct brig_net_event *event)
{
    char line[NET_LINE_MAX];
    net_watch_line(event, watch->implied, line);
    if (!*line || (!watch->shown && event->verdict != BRIG_NET_WAITING))
        return;
    for (size_t i = 0; i < watch->blocked_count; i++)
        if (strcmp(watch->blocked[i], line) == 0)
            return;
    char *copy = watch->blocked_count < NET_WATCH_BLOCKED_MAX ? strdup(line) : NULL;
    if (copy)
        watch->blocked[watch->blocked_count++] = copy;
    else
        watch->blocked_more++;
}

void net_watch_show(struct net_watch *watch)
{
    for (; watch->blocked_shown < watch->blocked_count; watch->blocked_shown++)
        message_note("%s", watch->blocked[watch->blocked_shown]);
}

/* ---- learnt destinations ---- */

static void learn(struct net_watch *watch, const char *name, unsigned port)
{
    for (size_t i = 0; i < watch->learnt_count; i++)
        if (watch->learnt[i].port == port && strcmp(watch->learnt[i].name, name) == 0)
            return;
    if (watch->learnt_count == NET_WATCH_LEARNT_MAX)
        return;
    char *copy = array_grow(&watch->learnt, watch->learnt_count) ? strdup(name) : NULL;
    if (copy)
        watch->learnt[watch->learnt_count++] = (struct net_learnt){.name = copy, .port = port};
}

/* Whether a rule allows the address of a name as an address: then the name alone is not enough. */
static bool is_granted(const struct net_watch *watch, const struct brig_net_event *event)
{
    struct net_address address;
    if (!watch->rules || !event->name[0] ||
        !net_address_read(event->address, strlen(event->address), &address))
        return false;
    const struct net_rule *rule =
        net_rules_resolved(watch->rules, &address, (uint16_t)event->port).rule;
    return rule && !rule->deny;
}

static void note_learnt(struct net_watch *watch, const struct brig_net_event *event)
{
    const char *name = name_of(event);
    if (!watch->learn || event->verdict != BRIG_NET_ALLOWED || event->port == 0 || !*name ||
        strcmp(event->via, "inject") == 0 || strcmp(event->via, "publish") == 0)
        return;
    learn(watch, name, event->port);
    if (is_granted(watch, event))
        learn(watch, event->address, event->port);
}

static int compare_learnt(const void *left, const void *right)
{
    const struct net_learnt *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (int)a->port - (int)b->port;
}

void net_watch_rules(const struct net_watch *watch, struct str *out)
{
    size_t count = watch->learnt_count;
    if (count > 1)
        qsort(watch->learnt, count, sizeof *watch->learnt, compare_learnt);
    for (size_t i = 0; i < count; i++) {
        const struct net_learnt *at = &watch->learnt[i];
        char what[400];
        print_destination(at->name, at->port, what, sizeof what);
        if (i > 0 && strcmp(at->name, watch->learnt[i - 1].name) == 0)
            str_appendf(out, ",%u", at->port);
        else
            str_concat(out, i > 0 ? "\nallow " : "allow ", what);
    }
    if (count > 0)
        str_append_char(out, '\n');
}

/* ---- the watch ---- */

void net_watch_event(struct net_watch *watch, const struct brig_net_event *event, bool now)
{
    write_log(watch, event);
    note_blocked(watch, event);
    note_learnt(watch, event);
    if (now)
        net_watch_show(watch);
}

void net_watch_conclude(struct net_watch *watch)
{
    autostr struct str rules = {0};
    net_watch_show(watch);
    if (watch->blocked_more > 0)
        message_note("blocked or failed: %zu more; --net-log FILE has them all",
                     watch->blocked_more);
    if (!watch->learn)
        return;
    str_append(&rules, "net allow\n");
    net_watch_rules(watch, &rules);
    message_note(
        watch->learnt_count > 0
            ? "the command connected to these destinations; this configuration allows only them:"
            : "the command made no connection; this configuration allows none:");
    if (!rules.failed)
        (void)write_all(STDERR_FILENO, rules.data, rules.length);
    if (!rules.failed && watch->rules_fd >= 0)
        (void)write_all(watch->rules_fd, rules.data, rules.length);
}
