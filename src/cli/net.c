/* SPDX-License-Identifier: MIT */
/* The network of a run. */
#include "cli/net.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/inject.h"
#include "cli/mirrors.h"
#include "cli/net_proxy.h"
#include "cli/settings.h"
#include "policy/policy.h"

/* Where a broker may be, from the directory of this program: in a build tree, and where it is
 * installed under another prefix than was planned. */
static const char *const broker_places[] = {"brig-broker", "../net/brig-broker", "../brig-broker",
                                            "../libexec/brig/brig-broker"};

bool net_find_broker(char *path, size_t size)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        slash[1] = '\0';
    for (size_t i = 0; slash && i < ARRAY_LENGTH(broker_places); i++) {
        (void)str_fill(path, size, program, broker_places[i]);
        if (access(path, X_OK) == 0)
            return true;
    }
    (void)str_fill(path, size, BRIG_BROKER_PATH);
    return access(path, X_OK) == 0;
}

/* If there is none, the engine says so, and which. */
static int choose_broker(struct brig_policy *policy, struct brig_error *err)
{
    char path[PATH_MAX + 64];
    (void)net_find_broker(path, sizeof path);
    return brig_policy_broker(policy, path, err);
}

/* Whether a rule of allow names what `open` has anyway: then it is meant as all there is to be. What
 * open never has, a private address or a service of the host's, is meant as an addition. */
static bool is_public(const struct net_rule *rule)
{
    if (rule->kind == NET_RULE_HOST)
        return false;
    return rule->kind != NET_RULE_RANGE || net_address_class(&rule->range.base) == NET_PUBLIC;
}

/* Whoever names destinations wants a network, and no other than these: a mode's default that is wider
 * would make the list mean nothing. */
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
                         str_shown(settings->allow_typed).text,
                         policy_network_name(policy->network));
    return 0;
}

/* Inside a jail with a door, names have addresses of that door, which are no public ones. What they
 * lead to is decided there. Ours has the same ranges for its own names, and looks those up first. */
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

int net_apply(struct settings *settings, const struct identity *identity, struct brig_error *err)
{
    int status = mirrors_apply(settings, identity, err);
    if (status == 0)
        status = settle_network(settings, err);
    if (status == 0)
        status = inject_apply(settings, identity, err);
    if (status < 0 || !policy_has_door(settings->policy))
        return status;
    status = accept_outer_door(settings->policy, err);
    if (status == 0)
        status = choose_broker(settings->policy, err);
    return status == 0 ? net_proxy_apply(settings->policy, err) : status;
}
