/* SPDX-License-Identifier: MIT */
/* The destination of a callback, from its URL. */
#include "server/callback.h"

#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/error.h"
#include "base/str.h"
#include "server/config/config.h"

#define PORT_HTTP 80
#define PORT_HTTPS 443

static int refuse(struct brig_error *err, const char *url, const char *why)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "'%s' cannot be called: %s", str_shown(url).text, why);
}

static bool is_clean(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text >= 0x7f || strchr("\\\"<>^`{|}", *text))
            return false;
    return true;
}

/* Splits "HOST:PORT" or "[V6]:PORT"; *ret_port is "" if there is none. */
static bool split(const char *authority, size_t length, const char **ret_host, size_t *ret_length,
                  const char **ret_port, size_t *ret_port_length)
{
    const char *end = authority + length;
    const char *close = authority[0] == '[' ? memchr(authority, ']', length) : NULL;
    if (authority[0] == '[' && !close)
        return false;
    const char *colon = close ? close + 1 : memchr(authority, ':', length);
    *ret_host = authority + (close != NULL);
    *ret_length = (size_t)((close ? close : colon ? colon : end) - *ret_host);
    if (!colon || colon == end) {
        *ret_port_length = 0;
        return true;
    }
    *ret_port = colon + 1;
    *ret_port_length = (size_t)(end - colon - 1);
    return *colon == ':';
}

static int allow_rules(const struct config_list *allow, struct net_rules *rules,
                       struct brig_error *err)
{
    int result = 0;
    for (size_t i = 0; i < allow->count && result == 0; i++)
        result = net_rules_allow(rules, allow->items[i], err);
    return result;
}

/* Returns why the destination is refused, or NULL. */
static const char *check_host(const struct net_rules *rules, const char *host, size_t length,
                              struct callback_target *target)
{
    struct net_address address;
    if (net_address_read(host, length, &address)) {
        net_address_print(&address, target->host);
        if (net_address_class(&address) == NET_LOOPBACK)
            return "a service on the loopback of the server is called with the name host, if "
                   "callback.allow has it";
        if (net_address_class(&address) != NET_PUBLIC &&
            net_rules_address(rules, &address, target->port).reason != NET_OK)
            return "its address is not public, and not in callback.allow";
        (void)snprintf(target->rule, sizeof target->rule,
                       address.family == NET_V6 ? "[%s]:%u" : "%s:%u", target->host, target->port);
        return NULL;
    }
    if (!net_name_read(host, length, target->host))
        return "it has no valid host";
    if (net_name_is_localhost(target->host))
        return "a service on the loopback of the server is called with the name host, if "
               "callback.allow has it";
    if (strcmp(target->host, NET_HOST_NAME) == 0 &&
        net_rules_name(rules, target->host, target->port).reason != NET_OK)
        return "callback.allow does not have host with this port";
    (void)snprintf(target->rule, sizeof target->rule, "%s:%u", target->host, target->port);
    return NULL;
}

int callback_parse(const char *url, const struct config_list *allow,
                   struct callback_target *ret_target, struct brig_error *err)
{
    struct callback_target target = {.tls = str_starts_with(url, "https://")};
    const char *authority = target.tls                        ? url + strlen("https://")
                            : str_starts_with(url, "http://") ? url + strlen("http://")
                                                              : NULL;
    const char *host = NULL, *port = "", *why;
    size_t host_length = 0, port_length = 0;
    struct net_rules rules = {0};
    if (!authority || !is_clean(url) || strchr(url, '#'))
        return refuse(err, url, "it is not http://HOST[:PORT][/PATH] or https://…");
    size_t length = strcspn(authority, "/?");
    if (memchr(authority, '@', length))
        return refuse(err, url, "it has credentials");
    target.port = target.tls ? PORT_HTTPS : PORT_HTTP;
    if (!split(authority, length, &host, &host_length, &port, &port_length) ||
        (port_length > 0 && !net_port_read(port, port_length, &target.port)))
        return refuse(err, url, "its port is not a number from 1 to 65535");
    int result = allow_rules(allow, &rules, err);
    why = result == 0 ? check_host(&rules, host, host_length, &target) : NULL;
    net_rules_done(&rules);
    if (result < 0 || why)
        return result < 0 ? result : refuse(err, url, why);
    *ret_target = target;
    return 0;
}
