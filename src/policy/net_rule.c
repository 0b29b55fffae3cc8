/* SPDX-License-Identifier: MIT */
/* One rule for the network, from text and to text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "policy/net_rules.h"

#define TLS_SUFFIX "/tls"
#define PORT_DIGITS_MAX 5

/* A rule's text, taken apart; all of it borrowed. */
struct parts {
    const char *text; /* the whole, for messages */
    const char *where;
    size_t where_length;
    const char *ports; /* NULL: none were given */
    size_t ports_length;
    bool brackets;
    bool tls;
};

static int refuse(struct brig_error *err, const char *text, const char *why)
{
    return brig_fail(err, BRIG_E_INVALID, 0, "bad network rule '%s': %s", str_shown(text).text,
                     why);
}

/* ---- Ports -------------------------------------------------------------------------------- */

static size_t read_port(const char *text, size_t length, uint16_t *ret_port)
{
    unsigned value = 0;
    size_t at = 0;
    while (at < length && at < PORT_DIGITS_MAX && text[at] >= '0' && text[at] <= '9')
        value = value * 10 + (unsigned)(text[at++] - '0');
    if (at == 0 || text[0] == '0' || value > UINT16_MAX)
        return 0;
    *ret_port = (uint16_t)value;
    return at;
}

/* "80" or "8000-8999". */
static bool read_ports(const char *text, size_t length, struct net_ports *ret_ports)
{
    size_t at = read_port(text, length, &ret_ports->first);
    ret_ports->last = ret_ports->first;
    if (at == 0 || at == length)
        return at > 0;
    if (text[at] != '-')
        return false;
    size_t rest = read_port(text + at + 1, length - at - 1, &ret_ports->last);
    return rest > 0 && at + 1 + rest == length && ret_ports->last >= ret_ports->first;
}

static int parse_ports(const struct parts *parts, struct net_rule *rule, struct brig_error *err)
{
    const char *at = parts->ports, *end = at + parts->ports_length;
    if (parts->ports_length == 1 && *at == '*')
        return 0;
    for (;;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t length = (size_t)((comma ? comma : end) - at);
        if (rule->port_count == NET_RULE_PORTS_MAX)
            return refuse(err, parts->text, "at most 16 ports; write ranges such as 8000-8999");
        if (!read_ports(at, length, &rule->ports[rule->port_count]))
            return refuse(err, parts->text,
                          "a port is a number from 1 to 65535; write them as 443,8000-8999 or *");
        rule->port_count++;
        if (!comma)
            return 0;
        at = comma + 1;
    }
}

static int default_ports(const struct parts *parts, struct net_rule *rule, struct brig_error *err)
{
    if (rule->deny || rule->kind == NET_RULE_ANY)
        return 0;
    if (rule->kind == NET_RULE_HOST)
        return refuse(err, parts->text, "which port of the host? Write it as host:5432");
    rule->ports[rule->port_count++] = (struct net_ports){443, 443};
    if (!rule->tls) /* there is none on 80 */
        rule->ports[rule->port_count++] = (struct net_ports){80, 80};
    return 0;
}

/* ---- Where to ----------------------------------------------------------------------------- */

static const struct {
    struct net_range range;
    const char *remedy;
} never_granted[] = {
    {{{NET_V4, {0}}, 8}, "0.0.0.0 is not a destination; for every public address write *"},
    {{{NET_V6, {0}}, 128}, ":: is not a destination; for every public address write *"},
    {{{NET_V4, {127}}, 8}, "it has loopback in it; for a service on the host write host:PORT"},
    {{{NET_V6, {[15] = 1}}, 128},
     "it has loopback in it; for a service on the host write host:PORT"},
    {{{NET_V4, {224}}, 4}, "it has multicast in it, which is not passed on; write a smaller range"},
    {{{NET_V6, {0xff}}, 8},
     "it has multicast in it, which is not passed on; write a smaller range"},
};

static int parse_range(const struct parts *parts, struct net_rule *rule, struct brig_error *err)
{
    rule->kind = NET_RULE_RANGE;
    int result = net_range_parse(parts->where, parts->where_length, &rule->range, err);
    if (result < 0)
        return brig_wrap(err, result, "bad network rule '%s'", str_shown(parts->text).text);
    for (size_t i = 0; i < ARRAY_LENGTH(never_granted) && !rule->deny; i++)
        if (net_range_overlaps(&rule->range, &never_granted[i].range))
            return refuse(err, parts->text, never_granted[i].remedy);
    if (rule->tls)
        return refuse(err, parts->text, "an address has no name to inspect; leave /tls away");
    return 0;
}

/* A range begins with an address, whatever is wrong with the rest. */
static bool looks_like_range(const struct parts *parts)
{
    struct net_address address;
    const char *slash = memchr(parts->where, '/', parts->where_length);
    size_t length = slash ? (size_t)(slash - parts->where) : parts->where_length;
    return parts->brackets || net_address_read(parts->where, length, &address);
}

static int parse_name(const struct parts *parts, struct net_rule *rule, struct brig_error *err)
{
    const char *name = parts->where;
    size_t length = parts->where_length;
    rule->kind = NET_RULE_NAME;
    if (length > 2 && name[0] == '*' && name[1] == '.') {
        rule->kind = NET_RULE_BELOW;
        name += 2;
        length -= 2;
    }
    if (memchr(name, '*', length))
        return refuse(err, parts->text,
                      "'*' is a rule by itself, or the first part of a name as in *.example.com");
    if (memchr(name, '/', length))
        return refuse(err, parts->text, "write only the name, and the port after a ':'");
    int result = net_name_parse(name, length, rule->name, err);
    if (result < 0)
        return brig_wrap(err, result, "bad network rule '%s'", str_shown(parts->text).text);
    bool local = strcmp(rule->name, "localhost") == 0 || net_name_below(rule->name, "localhost");
    if (local && !rule->deny)
        return refuse(err, parts->text,
                      "that is the jail itself; for a service on the host write host:PORT");
    return 0;
}

static int parse_where(const struct parts *parts, struct net_rule *rule, struct brig_error *err)
{
    if (looks_like_range(parts))
        return parse_range(parts, rule, err);
    if (parts->where_length == 1 && *parts->where == '*') {
        rule->kind = NET_RULE_ANY;
    } else {
        int result = parse_name(parts, rule, err);
        if (result < 0)
            return result;
    }
    if (rule->kind == NET_RULE_NAME && strcmp(rule->name, NET_HOST_NAME) == 0)
        rule->kind = NET_RULE_HOST;
    if (rule->tls && (rule->kind == NET_RULE_ANY || rule->kind == NET_RULE_HOST))
        return refuse(err, parts->text, "/tls needs a name, as in example.com:8443/tls");
    return 0;
}

/* ---- The whole ---------------------------------------------------------------------------- */

/* "[where]" or "[where]:ports". */
static int split_brackets(struct parts *parts, struct brig_error *err)
{
    const char *close = strchr(parts->text, ']');
    if (!close || (close[1] && close[1] != ':'))
        return refuse(err, parts->text, "write it as [2001:db8::1]:443 or [2001:db8::/32]:443");
    parts->brackets = true;
    parts->where = parts->text + 1;
    parts->where_length = (size_t)(close - parts->where);
    if (close[1]) {
        parts->ports = close + 2;
        parts->ports_length = strlen(parts->ports);
    }
    if (!memchr(parts->where, ':', parts->where_length))
        return refuse(err, parts->text, "brackets are for IPv6, as in [2001:db8::1]:443");
    return 0;
}

static void split_plain(struct parts *parts)
{
    size_t length = strlen(parts->text), suffix = strlen(TLS_SUFFIX);
    parts->tls = length > suffix && strcmp(parts->text + length - suffix, TLS_SUFFIX) == 0;
    if (parts->tls)
        length -= suffix;
    const char *colon = memchr(parts->text, ':', length);
    parts->where = parts->text;
    parts->where_length = colon ? (size_t)(colon - parts->text) : length;
    if (colon) {
        parts->ports = colon + 1;
        parts->ports_length = length - parts->where_length - 1;
    }
}

static int split(const char *text, struct parts *ret_parts, struct brig_error *err)
{
    *ret_parts = (struct parts){.text = text};
    if (*text == '[')
        return split_brackets(ret_parts, err);
    const char *colon = strchr(text, ':');
    if (strstr(text, "://"))
        return refuse(err, text, "write only the name, as in example.com:443");
    if (!colon || !strchr(colon + 1, ':')) {
        split_plain(ret_parts);
        return 0;
    }
    /* With two colons only an address of IPv6 makes sense, and all of it is that. */
    struct net_range range;
    ret_parts->where = text;
    ret_parts->where_length = strlen(text);
    if (net_range_parse(text, ret_parts->where_length, &range, NULL) < 0)
        return refuse(err, text, "two colons; write IPv6 as [2001:db8::1]:443");
    return 0;
}

int net_rule_parse(const char *text, bool deny, struct net_rule *ret_rule, struct brig_error *err)
{
    struct net_rule rule = {.deny = deny};
    struct parts parts;
    if (!text || !*text)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "empty network rule: write a name or an address, as in example.com:443");
    if (strlen(text) >= NET_RULE_TEXT_MAX)
        return refuse(err, text, "it has more than 511 characters; write several rules");
    int result = split(text, &parts, err);
    if (result < 0)
        return result;
    rule.tls = parts.tls;
    if (deny && rule.tls)
        return refuse(err, text, "/tls is for rules that allow; leave it out");
    result = parse_where(&parts, &rule, err);
    if (result < 0)
        return result;
    result = parts.ports ? parse_ports(&parts, &rule, err) : default_ports(&parts, &rule, err);
    if (result < 0)
        return result;
    *ret_rule = rule;
    return 0;
}

/* ---- To text ------------------------------------------------------------------------------ */

static void print_where(const struct net_rule *rule, char *text, size_t size)
{
    char range[NET_RANGE_TEXT_MAX];
    switch (rule->kind) {
    case NET_RULE_NAME:
        (void)snprintf(text, size, "%s", rule->name);
        return;
    case NET_RULE_BELOW:
        (void)snprintf(text, size, "*.%s", rule->name);
        return;
    case NET_RULE_ANY:
        (void)snprintf(text, size, "*");
        return;
    case NET_RULE_HOST:
        (void)snprintf(text, size, NET_HOST_NAME);
        return;
    case NET_RULE_RANGE:
        net_range_print(&rule->range, range);
        (void)snprintf(text, size, rule->range.base.family == NET_V6 ? "[%s]" : "%s", range);
        return;
    }
}

static void print_ports(const struct net_ports *ports, char text[16])
{
    if (ports->first == ports->last)
        (void)snprintf(text, 16, "%" PRIu16, ports->first);
    else
        (void)snprintf(text, 16, "%" PRIu16 "-%" PRIu16, ports->first, ports->last);
}

void net_rule_print(const struct net_rule *rule, char text[NET_RULE_TEXT_MAX])
{
    print_where(rule, text, NET_RULE_TEXT_MAX);
    size_t length = strlen(text);
    for (size_t i = 0; i < rule->port_count; i++) {
        char ports[16];
        print_ports(&rule->ports[i], ports);
        (void)snprintf(text + length, NET_RULE_TEXT_MAX - length, "%s%s", i == 0 ? ":" : ",",
                       ports);
        length += strlen(text + length);
    }
    (void)snprintf(text + length, NET_RULE_TEXT_MAX - length, "%s%s",
                   rule->port_count == 0 ? ":*" : "", rule->tls ? TLS_SUFFIX : "");
}
