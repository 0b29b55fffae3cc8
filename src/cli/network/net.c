/* SPDX-License-Identifier: MIT */
/* The network of a run: its kind, its rules and the host's proxy. */
#include "cli/network/net.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/credentials/inject.h"
#include "cli/network/mirrors.h"
#include "cli/report.h"
#include "cli/run/program.h"
#include "cli/settings/settings.h"

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

static bool make_secret(const char *user, size_t length, char **ret_secret)
{
    autostr struct str plain = {0};
    autostr struct str secret = {0};
    percent_decode(&plain, user, length);
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
