/* SPDX-License-Identifier: MIT */
/* The verdict of the rules about a name or an address. */
#include <string.h>

#include "base/cleanup.h"
#include "policy/net_rules.h"

/* The subject of a query: a name, or an address if that is not NULL. */
struct question {
    const char *name;
    const struct net_address *address;
    unsigned port; /* PORT_ANY: any port */
};

#define PORT_ANY 0U

static bool has_port(const struct net_rule *rule, unsigned port)
{
    for (size_t i = 0; i < rule->port_count; i++)
        if (port >= rule->ports[i].first && port <= rule->ports[i].last)
            return true;
    return rule->port_count == 0;
}

/* In a deny rule `*` matches everything; in an allow rule it matches public addresses, and every
 * name except "host". */
static bool any_has(const struct net_rule *rule, const struct question *question)
{
    if (rule->deny)
        return true;
    if (question->address)
        return net_address_class(question->address) == NET_PUBLIC;
    return strcmp(question->name, NET_HOST_NAME) != 0;
}

static bool has_place(const struct net_rule *rule, const struct question *question)
{
    switch (rule->kind) {
    case NET_RULE_NAME:
        return question->name && strcmp(question->name, rule->name) == 0;
    case NET_RULE_BELOW:
        return question->name && net_name_below(question->name, rule->name);
    case NET_RULE_HOST:
        return question->name && strcmp(question->name, NET_HOST_NAME) == 0;
    case NET_RULE_ANY:
        return any_has(rule, question);
    case NET_RULE_RANGE:
        return question->address && net_range_contains(&rule->range, question->address);
    }
    return false;
}

/* The first rule that denies it. A rule for some ports does not deny a query for PORT_ANY. */
static const struct net_rule *find_denying(const struct net_rules *rules,
                                           const struct question *question)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct net_rule *rule = &rules->items[i];
        if (rule->deny && has_place(rule, question) && has_port(rule, question->port))
            return rule;
    }
    return NULL;
}

static struct net_verdict find_allowing(const struct net_rules *rules,
                                        const struct question *question)
{
    struct net_verdict verdict = {.reason = NET_NO_RULE};
    for (size_t i = 0; i < rules->count; i++) {
        const struct net_rule *rule = &rules->items[i];
        if (rule->deny || !has_place(rule, question))
            continue;
        if (question->port != PORT_ANY && !has_port(rule, question->port)) {
            if (verdict.reason == NET_NO_RULE)
                verdict.reason = NET_WRONG_PORT;
            continue;
        }
        if (verdict.reason != NET_OK)
            verdict.rule = rule;
        verdict.reason = NET_OK;
        /* One rule that requests inspection is enough. */
        verdict.tls |= rule->tls;
    }
    return verdict;
}

/* Whether a name is in canonical form. In any other form it could be a name that a rule denies. */
static bool is_read(const char *name)
{
    char same[NET_NAME_MAX + 1];
    return net_name_read(name, strlen(name), same) && strcmp(name, same) == 0;
}

static struct net_verdict decide(const struct net_rules *rules, const struct question *question)
{
    if (!is_read(question->name))
        return (struct net_verdict){.reason = NET_NO_RULE};
    const struct net_rule *denying = find_denying(rules, question);
    if (denying)
        return (struct net_verdict){.reason = NET_DENIED, .rule = denying};
    return find_allowing(rules, question);
}

struct net_verdict net_rules_resolve(const struct net_rules *rules, const char *name)
{
    return decide(rules, &(struct question){.name = name, .port = PORT_ANY});
}

struct net_verdict net_rules_name(const struct net_rules *rules, const char *name, uint16_t port)
{
    if (port == PORT_ANY)
        return (struct net_verdict){.reason = NET_WRONG_PORT};
    return decide(rules, &(struct question){.name = name, .port = port});
}

/* ---- Addresses ---------------------------------------------------------------------------- */

/* Whether a rule for a range grants an address of this class: a metadata address must be granted by
 * itself, and loopback and similar addresses, which can only be embedded in another one, are never
 * granted. */
static bool range_suffices(const struct net_rule *rule, enum net_class class)
{
    switch (class) {
    case NET_PUBLIC:
    case NET_PRIVATE:
    case NET_LINK_LOCAL:
    case NET_DOCUMENTATION:
    case NET_RESERVED:
        return true;
    case NET_METADATA:
        return net_range_is_single(&rule->range);
    case NET_UNSPECIFIED:
    case NET_LOOPBACK:
    case NET_MULTICAST:
        return false;
    }
    return false;
}

/* The rule that grants this address. */
static const struct net_rule *find_granting(const struct net_rules *rules,
                                            const struct question *question)
{
    enum net_class class = net_address_class(question->address);
    for (size_t i = 0; i < rules->count; i++) {
        const struct net_rule *rule = &rules->items[i];
        if (!rule->deny && rule->kind == NET_RULE_RANGE && has_place(rule, question) &&
            has_port(rule, question->port) && range_suffices(rule, class))
            return rule;
    }
    return NULL;
}

/* An embedded address counts as well: if it is denied, the outer one is; if it is not public, it
 * must be granted too. */
static bool inner_is_refused(const struct net_rules *rules, const struct question *outer,
                             struct net_verdict *ret_verdict)
{
    struct net_address inner;
    if (!net_address_inner(outer->address, &inner))
        return false;
    const struct question question = {.address = &inner, .port = outer->port};
    const struct net_rule *denying = find_denying(rules, &question);
    enum net_class class = net_address_class(&inner);
    if (!denying && (class == NET_PUBLIC || find_granting(rules, &question)))
        return false;
    *ret_verdict = (struct net_verdict){
        .reason = denying ? NET_DENIED : NET_NOT_PUBLIC,
        .rule = denying,
        .class = class,
    };
    return true;
}

/* The rules that deny and that grant an address. */
static struct net_verdict judge_address(const struct net_rules *rules,
                                        const struct question *question)
{
    struct net_verdict verdict = {.class = net_address_class(question->address)};
    verdict.rule = find_denying(rules, question);
    if (verdict.rule) {
        verdict.reason = NET_DENIED;
        return verdict;
    }
    struct net_verdict inner;
    if (inner_is_refused(rules, question, &inner))
        return inner;
    verdict.rule = find_granting(rules, question);
    if (verdict.rule || verdict.class == NET_PUBLIC)
        return verdict;
    bool other_ports = find_allowing(rules, question).reason == NET_WRONG_PORT;
    verdict.reason = other_ports ? NET_WRONG_PORT : NET_NOT_PUBLIC;
    return verdict;
}

/* No caller passes one, but ::ffff:a.b.c.d must not be treated as an IPv6 address. */
static struct net_address plain(const struct net_address *address)
{
    return address->family == NET_V6 ? net_address_v6(address->bytes) : *address;
}

struct net_verdict net_rules_resolved(const struct net_rules *rules,
                                      const struct net_address *address, uint16_t port)
{
    if (port == PORT_ANY)
        return (struct net_verdict){.reason = NET_WRONG_PORT};
    const struct net_address unmapped = plain(address);
    return judge_address(rules, &(struct question){.address = &unmapped, .port = port});
}

struct net_verdict net_rules_address(const struct net_rules *rules,
                                     const struct net_address *address, uint16_t port)
{
    struct net_verdict verdict = net_rules_resolved(rules, address, port);
    if (verdict.reason != NET_OK || verdict.rule)
        return verdict;
    const struct net_address unmapped = plain(address);
    const struct question question = {.address = &unmapped, .port = port};
    struct net_verdict allowing = find_allowing(rules, &question);
    allowing.class = verdict.class;
    return allowing;
}

/* ---- Words -------------------------------------------------------------------------------- */

bool net_rules_is_open(const struct net_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct net_rule *rule = &rules->items[i];
        if (!rule->deny && rule->kind == NET_RULE_ANY && rule->port_count == 0)
            return true;
    }
    return false;
}

const char *net_reason_text(enum net_reason reason)
{
    static const char *const texts[] = {
        [NET_OK] = "allowed",
        [NET_NO_RULE] = "no rule allows it",
        [NET_WRONG_PORT] = "only other ports are allowed",
        [NET_DENIED] = "a rule denies it",
        [NET_NOT_PUBLIC] = "the address is not public, and no rule allows this address",
    };
    return (size_t)reason < ARRAY_LENGTH(texts) ? texts[reason] : "?";
}
