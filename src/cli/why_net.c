/* SPDX-License-Identifier: MIT */
/* Whether a host can be reached from a jail, and by which rule. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/setup.h"
#include "cli/why.h"
#include "policy/policy.h"

#define PORT_HTTPS 443
#define PORT_HTTP 80

/* What was asked about. */
struct target {
    const char *host;
    size_t length;
    uint16_t port;
    bool is_address;
    struct net_address address;
    char name[NET_NAME_MAX + 1];
};

/* "[SCHEME://]HOST[:PORT][/…]"; false if there is no host in it. */
static bool read_target(const char *word, struct target *ret)
{
    struct target target = {.port = str_starts_with(word, "http://") ? PORT_HTTP : PORT_HTTPS};
    const char *scheme = strstr(word, "://");
    const char *host = scheme ? scheme + 3 : word;
    size_t length = strcspn(host, "/?#");
    const char *port = memrchr(host, ':', length);
    const char *bracket = memchr(host, ']', length);
    bool alone = net_address_read(host, length, &target.address); /* of IPv6, without brackets */
    if (port && !alone && (!bracket || port > bracket)) {
        char digits[8] = "";
        uint64_t number = 0;
        size_t count = (size_t)(host + length - port - 1);
        if (count >= sizeof digits)
            return false;
        memcpy(digits, port + 1, count);
        if (parse_uint(digits, UINT16_MAX, 0, &number, NULL) < 0)
            return false;
        target.port = (uint16_t)number;
        length = (size_t)(port - host);
    }
    if (host[0] == '[' && length > 2 && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    target.is_address = net_address_read(host, length, &target.address);
    if (!target.is_address && !net_name_read(host, length, target.name))
        return false;
    *ret = target;
    return true;
}

/* Who wrote the rule, and how. */
static const struct policy_net_rule *find_written(const struct policy_net *net,
                                                  const struct net_rule *rule)
{
    char wanted[NET_RULE_TEXT_MAX], text[NET_RULE_TEXT_MAX];
    net_rule_print(rule, wanted);
    for (size_t i = 0; i < net->written_count; i++) {
        const struct policy_net_rule *written = &net->written[i];
        struct net_rules rules;
        bool found = false;
        net_rules_init(&rules);
        (void)(written->deny ? net_rules_deny(&rules, written->text, NULL)
                             : net_rules_allow(&rules, written->text, NULL));
        for (size_t k = 0; k < rules.count && !found; k++) {
            net_rule_print(&rules.items[k], text);
            found = rules.items[k].deny == rule->deny && strcmp(text, wanted) == 0;
        }
        net_rules_done(&rules);
        if (found)
            return written;
    }
    return NULL;
}

static void say_rule(const struct why *why, const struct net_verdict *verdict,
                     struct why_answer *answer)
{
    const struct policy_net *net = &why->setup->settings.policy->net;
    const struct policy_net_rule *written = verdict->rule ? find_written(net, verdict->rule) : NULL;
    if (written) {
        (void)snprintf(answer->rule, sizeof answer->rule, "%s %s", written->deny ? "deny" : "allow",
                       written->text);
        answer->origin = written->origin;
    }
    if (verdict->reason == NET_OK || (written && verdict->reason == NET_DENIED))
        return;
    size_t used = strlen(answer->rule);
    (void)snprintf(answer->rule + used, sizeof answer->rule - used, ": %s",
                   net_reason_text(verdict->reason));
}

/* A name that stands for a credential is reached in another way. */
static bool say_injected(const struct policy_net *net, const struct target *target,
                         struct why_answer *answer)
{
    for (size_t i = 0; i < net->inject_count; i++) {
        char url[POLICY_INJECT_URL_MAX];
        if (target->is_address || strcmp(net->inject[i].name, target->name) != 0)
            continue;
        policy_inject_url(&net->inject[i], url);
        answer->state = WHY_REACHABLE;
        answer->origin = net->inject[i].origin;
        (void)snprintf(answer->rule, sizeof answer->rule, "inject %s, at %s alone",
                       net->inject[i].name, url);
        return true;
    }
    return false;
}

/* As the broker asks; what a name resolves to only it finds out. */
static struct net_verdict judge(const struct brig_policy *policy, const struct target *target)
{
    struct net_verdict none = {.reason = NET_NO_RULE};
    struct net_rules rules;
    net_rules_init(&rules);
    int status = policy->network == BRIG_NET_OPEN ? net_rules_allow(&rules, "*", NULL) : 0;
    for (size_t i = 0; status == 0 && i < policy->net.rules.count; i++)
        status = net_rules_add(&rules, &policy->net.rules.items[i], NULL);
    struct net_verdict verdict = status < 0 ? none
                                 : target->is_address
                                     ? net_rules_address(&rules, &target->address, target->port)
                                     : net_rules_name(&rules, target->name, target->port);
    /* The rule is in memory that goes away: the policy has its equal, but for `*` of open. */
    const struct net_rule *kept = NULL;
    size_t extra = policy->network == BRIG_NET_OPEN;
    if (verdict.rule && (size_t)(verdict.rule - rules.items) >= extra)
        kept = &policy->net.rules.items[(size_t)(verdict.rule - rules.items) - extra];
    verdict.rule = kept;
    net_rules_done(&rules);
    return verdict;
}

/* Where nobody said which network, a rule of allow did. */
static const char *network_origin(const struct why *why)
{
    const struct settings *settings = &why->setup->settings;
    const struct policy_net *net = &settings->policy->net;
    bool implied = !settings->net_given && settings->policy->network == BRIG_NET_ALLOW;
    for (size_t i = 0; implied && i < net->written_count; i++)
        if (!net->written[i].deny)
            return net->written[i].origin;
    return why->network_origin;
}

void why_host(const struct why *why, const char *name, struct why_answer *ret_answer)
{
    const struct brig_policy *policy = why->setup->settings.policy;
    struct target target;
    *ret_answer = (struct why_answer){
        .state = policy->network == BRIG_NET_HOST ? WHY_REACHABLE : WHY_UNREACHABLE,
        .origin = network_origin(why),
    };
    (void)snprintf(ret_answer->rule, sizeof ret_answer->rule, "net %s",
                   policy_word(POLICY_NETWORK, policy->network));
    if (!policy_has_door(policy))
        return;
    if (!read_target(name, &target)) {
        (void)snprintf(ret_answer->rule, sizeof ret_answer->rule, "no name of a host");
        return;
    }
    if (say_injected(&policy->net, &target, ret_answer))
        return;
    struct net_verdict verdict = judge(policy, &target);
    ret_answer->state = verdict.reason == NET_OK ? WHY_REACHABLE : WHY_UNREACHABLE;
    say_rule(why, &verdict, ret_answer);
}
