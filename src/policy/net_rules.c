/* SPDX-License-Identifier: MIT */
/* Network rules: parsing and printing them, presets, and the list. */
#include "policy/net_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"

#define MIRRORS_SUFFIX "+mirrors"
#define ALLOW_WORD "allow "
#define DENY_WORD "deny "
#define TLS_SUFFIX "/tls"
#define PORT_DIGITS_MAX 5

/* ---- Presets, one row each ------------------------------------------------------------ */

#define NPM_HOSTS "registry.npmjs.org"
#define PYPI_HOSTS "pypi.org", "files.pythonhosted.org"
#define CRATES_HOSTS "crates.io", "static.crates.io", "index.crates.io"
#define GO_HOSTS "proxy.golang.org", "sum.golang.org"

static const char *const npm_rules[] = {NPM_HOSTS, NULL};
static const char *const pypi_rules[] = {PYPI_HOSTS, NULL};
static const char *const crates_rules[] = {CRATES_HOSTS, NULL};
static const char *const go_rules[] = {GO_HOSTS, NULL};
static const char *const registries_rules[] = {NPM_HOSTS, PYPI_HOSTS, CRATES_HOSTS, GO_HOSTS, NULL};

/* Git over https and ssh, the API, and downloads of archives, releases and large files. */
static const char *const github_rules[] = {
    "github.com:443,80,22",        "api.github.com:443",
    "codeload.github.com:443",     "gist.github.com:443,22",
    "ssh.github.com:443",          "uploads.github.com:443",
    "lfs.github.com:443",          "github-cloud.s3.amazonaws.com:443",
    "*.githubusercontent.com:443", NULL,
};

/* The API, and the hosts that its command line needs to log in. */
static const char *const anthropic_rules[] = {
    "api.anthropic.com:443", "console.anthropic.com:443", "statsig.anthropic.com:443",
    "claude.ai:443",         "platform.claude.com:443",   NULL,
};

static const char *const openai_rules[] = {
    "api.openai.com:443",
    "auth.openai.com:443",
    "chatgpt.com:443",
    NULL,
};

#define ALL_TOOLS (NET_TOOL_NPM | NET_TOOL_PYPI | NET_TOOL_CRATES | NET_TOOL_GO)

static const struct net_preset presets[] = {
    {"@registries", "the package registries of npm, PyPI, crates.io and Go", registries_rules,
     ALL_TOOLS},
    {"@npm", "the registry of npm", npm_rules, NET_TOOL_NPM},
    {"@pypi", "the Python package index", pypi_rules, NET_TOOL_PYPI},
    {"@crates", "the registry of Rust", crates_rules, NET_TOOL_CRATES},
    {"@go", "the module proxy of Go and its checksums", go_rules, NET_TOOL_GO},
    {"@github", "GitHub: git by https and ssh, its API, releases", github_rules, 0},
    {"@anthropic", "Anthropic's API and logging in to it", anthropic_rules, 0},
    {"@openai", "OpenAI's API and logging in to it", openai_rules, 0},
};

static const struct net_policy_alias aliases[] = {
    {"deny_all", "none", NULL},
    {"registry_allowlist", "allow", "@registries"},
};

const struct net_preset *net_presets(size_t *ret_count)
{
    *ret_count = ARRAY_LENGTH(presets);
    return presets;
}

static const struct net_preset *net_preset_find(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_LENGTH(presets); i++)
        if (strlen(presets[i].name) == length && memcmp(presets[i].name, name, length) == 0)
            return &presets[i];
    return NULL;
}

const struct net_policy_alias *net_policy_alias_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(aliases); i++)
        if (strcmp(aliases[i].name, name) == 0)
            return &aliases[i];
    return NULL;
}

/* ---- Parsing ---------------------------------------------------------------------- */

/* The parts of a rule's text, borrowed. */
struct parts {
    const char *text; /* the complete rule, for messages */
    const char *where;
    size_t where_length;
    const char *ports; /* NULL: not given */
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

/* Parses the digits of a port at the beginning of the text; 0 if there is none. */
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

bool net_port_read(const char *text, size_t length, uint16_t *ret_port)
{
    return length > 0 && read_port(text, length, ret_port) == length;
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
    if (!rule->tls) /* port 80 has no TLS */
        rule->ports[rule->port_count++] = (struct net_ports){80, 80};
    return 0;
}

/* ---- Destinations ------------------------------------------------------------------------- */

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

/* A range begins with an address, even if the rest is malformed. */
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
    if (net_name_is_localhost(rule->name) && !rule->deny)
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

/* ---- Complete rules ----------------------------------------------------------------------- */

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
    /* With two colons it can only be an IPv6 address without ports. */
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

/* ---- Printing ----------------------------------------------------------------------------- */

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

/* ---- The list ------------------------------------------------------------------------- */

void net_rules_init(struct net_rules *rules)
{
    *rules = (struct net_rules){0};
}

void net_rules_done(struct net_rules *rules)
{
    free(rules->items);
    net_rules_init(rules);
}

int net_rules_add(struct net_rules *rules, const struct net_rule *rule, struct brig_error *err)
{
    if (rules->count == NET_RULES_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "more than %d network rules: write *.NAME for many names", NET_RULES_MAX);
    if (!array_grow(&rules->items, rules->count))
        return brig_fail_nomem(err);
    rules->items[rules->count++] = *rule;
    return 0;
}

static int refuse_preset(const char *text, struct brig_error *err)
{
    autostr struct str names = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(presets); i++)
        str_appendf(&names, "%s%s", i == 0 ? "" : ", ", presets[i].name);
    if (names.failed)
        return brig_fail_nomem(err);
    struct nearest nearest;
    nearest_begin(&nearest, text);
    nearest_offer_words(&nearest, names.data);
    (void)brig_fail(err, BRIG_E_INVALID, 0, "unknown preset '%s': there are %s",
                    str_shown(text).text, names.data);
    return nearest_advise(&nearest, "", BRIG_E_INVALID, err);
}

static int add_all(struct net_rules *rules, const struct net_preset *preset, bool deny,
                   struct brig_error *err)
{
    for (const char *const *text = preset->rules; *text; text++) {
        struct net_rule rule;
        int result = net_rule_parse(*text, deny, &rule, err);
        if (result < 0)
            return result;
        if (deny)
            rule.port_count = 0;
        (void)snprintf(rule.preset, sizeof rule.preset, "%s", preset->name);
        result = net_rules_add(rules, &rule, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static int add_preset(struct net_rules *rules, const char *text, bool deny, struct brig_error *err)
{
    size_t length = strcspn(text, "+");
    bool mirrors = strcmp(text + length, MIRRORS_SUFFIX) == 0;
    const struct net_preset *preset = net_preset_find(text, length);
    if (!preset || (text[length] && !mirrors))
        return refuse_preset(text, err);
    if (mirrors && (deny || preset->mirrors == 0))
        return brig_fail(err, BRIG_E_INVALID, 0, "bad network rule '%s': %s; write %s", text,
                         deny ? "mirrors cannot be denied" : "it has no mirrors", preset->name);
    size_t before = rules->count;
    int result = add_all(rules, preset, deny, err);
    if (result < 0) {
        rules->count = before;
        return result;
    }
    if (mirrors)
        rules->mirrors |= preset->mirrors;
    return 0;
}

static int add_text(struct net_rules *rules, const char *text, bool deny, struct brig_error *err)
{
    struct net_rule rule;
    if (text && *text == '@')
        return add_preset(rules, text, deny, err);
    int result = net_rule_parse(text, deny, &rule, err);
    if (result < 0)
        return result;
    return net_rules_add(rules, &rule, err);
}

int net_rules_allow(struct net_rules *rules, const char *text, struct brig_error *err)
{
    return add_text(rules, text, false, err);
}

int net_rules_deny(struct net_rules *rules, const char *text, struct brig_error *err)
{
    return add_text(rules, text, true, err);
}

/* ---- Lines -------------------------------------------------------------------------------- */

void net_rule_write(const struct net_rule *rule, char line[NET_RULE_LINE_MAX])
{
    char text[NET_RULE_TEXT_MAX];
    net_rule_print(rule, text);
    (void)snprintf(line, NET_RULE_LINE_MAX, "%s%s%s%s", rule->deny ? DENY_WORD : ALLOW_WORD, text,
                   rule->preset[0] ? " " : "", rule->preset);
}

void net_rules_write(const struct net_rules *rules, struct str *text)
{
    for (size_t i = 0; i < rules->count; i++) {
        char line[NET_RULE_LINE_MAX];
        net_rule_write(&rules->items[i], line);
        str_appendf(text, "%s\n", line);
    }
}

static int refuse_line(const char *line, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "bad line '%s': write 'allow RULE' or 'deny RULE', then the preset",
                     str_shown(line).text);
}

int net_rules_read_line(struct net_rules *rules, const char *line, struct brig_error *err)
{
    bool deny = str_starts_with(line, DENY_WORD);
    if (!deny && !str_starts_with(line, ALLOW_WORD))
        return refuse_line(line, err);
    const char *text = line + strlen(deny ? DENY_WORD : ALLOW_WORD);
    size_t length = strcspn(text, " ");
    const char *preset = text[length] ? text + length + 1 : NULL;
    if (length >= NET_RULE_TEXT_MAX || (preset && !net_preset_find(preset, strlen(preset))))
        return refuse_line(line, err);
    char copy[NET_RULE_TEXT_MAX];
    memcpy(copy, text, length);
    copy[length] = '\0';
    struct net_rule rule;
    int result = net_rule_parse(copy, deny, &rule, err);
    if (result < 0)
        return result;
    (void)snprintf(rule.preset, sizeof rule.preset, "%s", preset ? preset : "");
    return net_rules_add(rules, &rule, err);
}
