/* SPDX-License-Identifier: MIT */
/* Rules for the network: what is taken for one, and what they allow and deny. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "policy/net_rules.h"
#include "tap.h"

/* ---- Text ---- */

static void test_text(void)
{
    static const struct {
        const char *text, *printed;
    } rows[] = {
        {"example.com", "example.com:443,80"},
        {"EXAMPLE.com.", "example.com:443,80"},
        {"example.com:22", "example.com:22"},
        {"example.com:443,8000-8999", "example.com:443,8000-8999"},
        {"example.com:*", "example.com:*"},
        {"example.com:8443/tls", "example.com:8443/tls"},
        {"example.com/tls", "example.com:443/tls"},
        {"*.example.com", "*.example.com:443,80"},
        {"*.Example.com:1-65535/tls", "*.example.com:1-65535/tls"},
        {"*", "*:*"},
        {"*:443", "*:443"},
        {"10.1.2.3", "10.1.2.3:443,80"},
        {"10.1.2.3:5432", "10.1.2.3:5432"},
        {"10.0.0.0/8:5432,6379", "10.0.0.0/8:5432,6379"},
        {"10.0.0.0/8", "10.0.0.0/8:443,80"},
        {"169.254.169.254:80", "169.254.169.254:80"},
        {"2001:db8::1", "[2001:db8::1]:443,80"},
        {"2001:db8::/32", "[2001:db8::/32]:443,80"},
        {"[2001:db8::1]", "[2001:db8::1]:443,80"},
        {"[2001:db8::1]:22", "[2001:db8::1]:22"},
        {"[2001:db8::/32]:*", "[2001:db8::/32]:*"},
        {"[::ffff:10.1.2.3]:22", "10.1.2.3:22"},
        {"host:5432", "host:5432"},
        {"HOST.:5432,6379", "host:5432,6379"},
        {"xn--bcher-kva.example", "xn--bcher-kva.example:443,80"},
        {"hostel", "hostel:443,80"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct net_rule rule;
        struct brig_error err = {0};
        char text[NET_RULE_TEXT_MAX] = "";
        tap_is_int(net_rule_parse(rows[i].text, false, &rule, &err), 0, "'%s' is a rule",
                   rows[i].text);
        net_rule_print(&rule, text);
        tap_is_str(text, rows[i].printed, "and means what it should");
    }
}

static void test_denied_text(void)
{
    static const struct {
        const char *text, *printed;
    } rows[] = {
        {"example.com", "example.com:*"},
        {"example.com:80", "example.com:80"},
        {"0.0.0.0/0", "0.0.0.0/0:*"},
        {"127.0.0.1", "127.0.0.1:*"},
        {"localhost", "localhost:*"},
        {"host", "host:*"},
        {"*:25", "*:25"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct net_rule rule;
        char text[NET_RULE_TEXT_MAX] = "";
        tap_is_int(net_rule_parse(rows[i].text, true, &rule, NULL), 0, "'%s' can be denied",
                   rows[i].text);
        net_rule_print(&rule, text);
        tap_is_str(text, rows[i].printed, "and means what it should");
    }
}

static void test_refused_text(void)
{
    static const struct {
        const char *text, *remedy;
        bool deny;
    } rows[] = {
        {"", "write a name or an address", false},
        {"b\xc3\xbc.example", "xn--", false},
        {"https://example.com/x", "only the name", false},
        {"example.com/x", "only the name", false},
        {"example.com:443/x", "number from 1 to 65535", false},
        {"example.com:", "number from 1 to 65535", false},
        {"example.com:0", "number from 1 to 65535", false},
        {"example.com:65536", "number from 1 to 65535", false},
        {"example.com:443,", "number from 1 to 65535", false},
        {"example.com:,443", "number from 1 to 65535", false},
        {"example.com:80-70", "number from 1 to 65535", false},
        {"example.com:80-", "number from 1 to 65535", false},
        {"example.com:http", "number from 1 to 65535", false},
        {"example.com:080", "number from 1 to 65535", false},
        {"example.com:*,80", "number from 1 to 65535", false},
        {"example.com:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "at most 16", false},
        {"example.com: 80", "number from 1 to 65535", false},
        {" example.com", "letters, digits", false},
        {"example.com evil.example", "letters, digits", false},
        {"example.com\nallow x", "letters, digits", false},
        {"a.*.example.com", "is a rule by itself", false},
        {"*example.com", "is a rule by itself", false},
        {"**", "is a rule by itself", false},
        {"*.", "is a rule by itself", false},
        {"*.*", "is a rule by itself", false},
        {"127.0.0.1:80", "host:PORT", false},
        {"127.0.0.0/8", "host:PORT", false},
        {"64.0.0.0/2", "host:PORT", false},
        {"0.0.0.0/0", "write *", false},
        {"[::1]:80", "host:PORT", false},
        {"::/0", "write *", false},
        {"[::ffff:127.0.0.1]:80", "host:PORT", false},
        {"localhost:80", "host:PORT", false},
        {"*.localhost", "host:PORT", false},
        {"0.0.0.0", "write *", false},
        {"[::]:443", "write *", false},
        {"224.0.0.1", "multicast", false},
        {"ff00::/8", "multicast", false},
        {"10.1.2.3/8", "write 10.0.0.0/8", false},
        {"10.1.2.3/tls", "leave /tls away", false},
        {"*:443/tls", "needs a name", false},
        {"host:443/tls", "needs a name", false},
        {"host", "host:5432", false},
        {"10.0.0", "ends in a number", false},
        {"2130706433:80", "ends in a number", false},
        {"2001:db8::1:99999", "[2001:db8::1]:443", false},
        {"[2001:db8::1", "[2001:db8::1]:443", false},
        {"[2001:db8::1]443", "[2001:db8::1]:443", false},
        {"[2001:db8::1]/64", "[2001:db8::/32]:443", false},
        {"[10.1.2.3]:80", "brackets are for IPv6", false},
        {"[]:80", "brackets are for IPv6", false},
        {"[fe80::1%eth0]:80", "write it as", false},
        {"@npm", "letters, digits", false},
        {"example.com:8443/tls", "leave it out", true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct net_rule rule;
        struct brig_error err = {0};
        tap_is_int(net_rule_parse(rows[i].text, rows[i].deny, &rule, &err), BRIG_E_INVALID,
                   "'%s' is refused", rows[i].text);
        tap_has_str(err.message, rows[i].remedy, "with the remedy");
        tap_ok(!strchr(err.message, '\n'), "in one line");
    }
}

static void test_limits(void)
{
    struct net_rules rules = {0};
    struct net_rule rule;
    char text[NET_RULE_TEXT_MAX + 1];
    memset(text, 'a', sizeof text);
    text[NET_RULE_TEXT_MAX] = '\0';
    tap_is_int(net_rule_parse(text, false, &rule, NULL), BRIG_E_INVALID, "a rule can be too long");
    /* The longest that is printed: 16 ranges behind the longest name. */
    size_t at = 0;
    for (; at < NET_NAME_MAX; at++)
        text[at] = at % 64 == 63 ? '.' : 'a';
    for (int i = 0; i < NET_RULE_PORTS_MAX; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s10000-65535", i == 0 ? ":" : ",");
    (void)snprintf(text + at, sizeof text - at, "/tls");
    char printed[NET_RULE_TEXT_MAX];
    tap_is_int(net_rule_parse(text, false, &rule, NULL), 0, "the longest rule is one");
    net_rule_print(&rule, printed);
    tap_is_str(printed, text, "and is printed whole");
    for (int i = 0; i < NET_RULES_MAX - 1; i++)
        if (net_rules_allow(&rules, "example.com", NULL) < 0)
            tap_bail("rule %d was refused", i);
    tap_is_int(net_rules_allow(&rules, "@pypi", NULL), BRIG_E_INVALID,
               "a preset that does not fit is refused");
    tap_is_int(rules.count, NET_RULES_MAX - 1, "and none of it is there");
    tap_is_int(net_rules_allow(&rules, "@npm", NULL), 0, "one that fits is taken");
    struct brig_error err = {0};
    tap_is_int(net_rules_deny(&rules, "example.com", &err), BRIG_E_INVALID,
               "there are no more than 1024 rules");
    tap_has_str(err.message, "1024", "and it says so");
    net_rules_done(&rules);
}

/* ---- Presets ---- */

static void test_presets(void)
{
    static const char *const registries[] = {
        "registry.npmjs.org", "pypi.org",        "files.pythonhosted.org", "crates.io",
        "static.crates.io",   "index.crates.io", "proxy.golang.org",       "sum.golang.org",
    };
    struct net_rules rules = {0};
    tap_is_int(net_rules_allow(&rules, "@registries", NULL), 0, "@registries is a preset");
    tap_is_int(rules.count, ARRAY_LENGTH(registries), "of eight names");
    for (size_t i = 0; i < ARRAY_LENGTH(registries); i++) {
        struct net_verdict verdict = net_rules_name(&rules, registries[i], 443);
        tap_ok(verdict.reason == NET_OK && strcmp(verdict.rule->preset, "@registries") == 0,
               "with %s in it", registries[i]);
    }
    tap_is_int(net_rules_name(&rules, "npmjs.org", 443).reason, NET_NO_RULE, "and no other");
    tap_is_int(rules.mirrors, 0, "it asks for no mirrors");
    net_rules_done(&rules);
    size_t count;
    const struct net_preset *presets = net_presets(&count);
    for (size_t i = 0; i < count; i++) {
        struct brig_error err = {0};
        tap_is_int(net_rules_allow(&rules, presets[i].name, &err), 0, "all of %s are rules: %s",
                   presets[i].name, err.message);
        tap_ok(strlen(presets[i].name) < NET_PRESET_NAME_MAX, "and its name has room");
    }
    tap_is_int(net_rules_name(&rules, "github.com", 22).reason, NET_OK, "git by ssh is in @github");
    tap_is_int(net_rules_name(&rules, "raw.githubusercontent.com", 443).reason, NET_OK,
               "and so is what it serves");
    net_rules_done(&rules);
}

static void test_preset_mirrors(void)
{
    struct net_rules rules = {0};
    struct brig_error err = {0};
    tap_is_int(net_rules_allow(&rules, "@npm+mirrors", NULL), 0, "@npm+mirrors is a preset");
    tap_is_int(rules.mirrors, NET_TOOL_NPM, "that asks for npm's mirrors");
    tap_is_int(rules.count, 1, "and has the registry in it");
    tap_is_int(net_rules_allow(&rules, "@registries+mirrors", NULL), 0, "@registries+mirrors");
    tap_is_int(rules.mirrors, NET_TOOL_NPM | NET_TOOL_PYPI | NET_TOOL_CRATES | NET_TOOL_GO,
               "asks for all of them");
    size_t count = rules.count;
    static const struct {
        const char *text, *remedy;
        bool deny;
    } rows[] = {
        {"@github+mirrors", "write @github", false},
        {"@npm+mirrors", "write @npm", true},
        {"@npm+mirror", "there are", false},
        {"@npm+mirrors+mirrors", "there are", false},
        {"@nmp", "there are @registries", false},
        {"@", "there are", false},
        {"@npm:443", "there are", false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        err = (struct brig_error){0};
        int result = rows[i].deny ? net_rules_deny(&rules, rows[i].text, &err)
                                  : net_rules_allow(&rules, rows[i].text, &err);
        tap_is_int(result, BRIG_E_INVALID, "%s is refused", rows[i].text);
        tap_has_str(err.message, rows[i].remedy, "with the remedy");
    }
    tap_is_int(rules.count, count, "what is refused leaves no rule");
    net_rules_done(&rules);
    tap_is_int(net_rules_allow(&rules, "*", NULL), 0, "all is allowed");
    tap_is_int(net_rules_deny(&rules, "@github", NULL), 0, "but a preset");
    tap_is_int(net_rules_name(&rules, "github.com", 9418).reason, NET_DENIED,
               "which is denied on every port");
    tap_is_int(net_rules_name(&rules, "example.com", 9418).reason, NET_OK, "and no other name is");
    net_rules_done(&rules);
}

static void test_aliases(void)
{
    const struct net_policy_alias *alias = net_policy_alias_find("deny_all");
    tap_ok(alias && !alias->rule, "deny_all allows nothing");
    tap_is_str(alias ? alias->network : NULL, "none", "and is no network");
    alias = net_policy_alias_find("registry_allowlist");
    tap_is_str(alias ? alias->rule : NULL, "@registries", "registry_allowlist is @registries");
    tap_is_str(alias ? alias->network : NULL, "allow", "and nothing else");
    tap_ok(!net_policy_alias_find("allow_all"), "allow_all is none of them");
}

/* ---- Questions ---- */

/* Rules from words: "allow" and "deny" lines. */
static void fill(struct net_rules *rules, const char *const *lines)
{
    net_rules_init(rules);
    for (; *lines; lines++) {
        struct brig_error err = {0};
        if (net_rules_read_line(rules, *lines, &err) < 0)
            tap_bail("%s", err.message);
    }
}

struct name_row {
    const char *name;
    uint16_t port;
    enum net_reason reason;
    const char *rule; /* as it is printed, or NULL */
};

static void check_names(const struct net_rules *rules, const struct name_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct net_verdict verdict = net_rules_name(rules, rows[i].name, rows[i].port);
        char text[NET_RULE_TEXT_MAX] = "";
        if (verdict.rule)
            net_rule_print(verdict.rule, text);
        tap_is_str(net_reason_text(verdict.reason), net_reason_text(rows[i].reason), "%s:%u: %s",
                   rows[i].name, rows[i].port, net_reason_text(rows[i].reason));
        tap_is_str(text, rows[i].rule ? rows[i].rule : "", "by the right rule");
    }
}

static void test_allowed_names(void)
{
    static const char *const lines[] = {
        "allow example.com",        "allow *.example.org:8443/tls", "allow a.example.org:22",
        "allow host:5432",          "deny evil.example.org",        "deny example.com:80",
        "allow b.example.org:8443", "allow 10.0.0.0/8:443",         NULL,
    };
    static const struct name_row rows[] = {
        {"example.com", 443, NET_OK, "example.com:443,80"},
        {"example.com", 80, NET_DENIED, "example.com:80"},
        {"example.com", 22, NET_WRONG_PORT, NULL},
        {"example.com", 0, NET_WRONG_PORT, NULL},
        {"www.example.com", 443, NET_NO_RULE, NULL},
        {"example.comx", 443, NET_NO_RULE, NULL},
        {"xexample.com", 443, NET_NO_RULE, NULL},
        {"example.org", 8443, NET_NO_RULE, NULL},
        {"c.example.org", 8443, NET_OK, "*.example.org:8443/tls"},
        {"c.d.example.org", 8443, NET_OK, "*.example.org:8443/tls"},
        {"badexample.org", 8443, NET_NO_RULE, NULL},
        {"a.example.org", 22, NET_OK, "a.example.org:22"},
        {"a.example.org", 23, NET_WRONG_PORT, NULL},
        {"evil.example.org", 8443, NET_DENIED, "evil.example.org:*"},
        {"x.evil.example.org", 8443, NET_OK, "*.example.org:8443/tls"},
        {"host", 5432, NET_OK, "host:5432"},
        {"host", 5433, NET_WRONG_PORT, NULL},
        {"10.0.0.1", 443, NET_NO_RULE, NULL},
        {"EXAMPLE.com", 443, NET_NO_RULE, NULL},
        {"", 443, NET_NO_RULE, NULL},
    };
    struct net_rules rules;
    fill(&rules, lines);
    check_names(&rules, rows, ARRAY_LENGTH(rows));
    tap_ok(!net_rules_name(&rules, "example.com", 443).tls, "inspection is as the rule says: not");
    tap_ok(net_rules_name(&rules, "c.example.org", 8443).tls, "or yes");
    tap_ok(net_rules_name(&rules, "b.example.org", 8443).tls, "yes if any of them says so");
    tap_ok(!net_rules_name(&rules, "a.example.org", 22).tls, "of those for the port");
    tap_is_int(net_rules_resolve(&rules, "example.com").reason, NET_OK,
               "a name with a port allowed is looked up");
    tap_is_int(net_rules_resolve(&rules, "evil.example.org").reason, NET_DENIED,
               "one that is denied is not");
    tap_is_int(net_rules_resolve(&rules, "evil.example").reason, NET_NO_RULE, "nor any other");
    tap_is_int(net_rules_resolve(&rules, "host").reason, NET_OK, "the host is, if allowed");
    tap_ok(!net_rules_is_open(&rules), "this is not open");
    net_rules_done(&rules);
}

static void test_open_names(void)
{
    static const char *const lines[] = {"allow *", "deny *.evil.example", "deny *:25", NULL};
    static const struct name_row rows[] = {
        {"example.com", 443, NET_OK, "*:*"},
        {"example.com", 25, NET_DENIED, "*:25"},
        {"a.evil.example", 443, NET_DENIED, "*.evil.example:*"},
        {"evil.example", 443, NET_OK, "*:*"},
        {"host", 443, NET_NO_RULE, NULL},
        {"", 443, NET_NO_RULE, NULL},
        {"Example.com", 443, NET_NO_RULE, NULL},
        {"a.evil.example.", 443, NET_NO_RULE, NULL},
        {"127.0.0.1", 443, NET_NO_RULE, NULL},
    };
    struct net_rules rules;
    fill(&rules, lines);
    check_names(&rules, rows, ARRAY_LENGTH(rows));
    tap_ok(net_rules_is_open(&rules), "this is open");
    tap_is_int(net_rules_resolve(&rules, "host").reason, NET_NO_RULE, "but not to the host");
    net_rules_done(&rules);
    fill(&rules, (const char *const[]){"allow *:443", NULL});
    tap_ok(!net_rules_is_open(&rules), "with a port it is not");
    net_rules_done(&rules);
    fill(&rules, (const char *const[]){"allow host:80", "deny *", NULL});
    tap_is_int(net_rules_name(&rules, "host", 80).reason, NET_DENIED,
               "what denies all denies the host, too");
    net_rules_done(&rules);
}

struct address_row {
    const char *address;
    uint16_t port;
    enum net_reason given, resolved; /* as a destination; as what an allowed name leads to */
};

static void check_addresses(const struct net_rules *rules, const struct address_row *rows,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct net_address address;
        if (!net_address_read(rows[i].address, strlen(rows[i].address), &address))
            tap_bail("'%s' is no address", rows[i].address);
        struct net_verdict given = net_rules_address(rules, &address, rows[i].port);
        struct net_verdict resolved = net_rules_resolved(rules, &address, rows[i].port);
        tap_is_str(net_reason_text(given.reason), net_reason_text(rows[i].given),
                   "[%s]:%u given: %s", rows[i].address, rows[i].port,
                   net_reason_text(rows[i].given));
        tap_is_str(net_reason_text(resolved.reason), net_reason_text(rows[i].resolved),
                   "[%s]:%u resolved: %s", rows[i].address, rows[i].port,
                   net_reason_text(rows[i].resolved));
        tap_ok((given.reason == NET_OK || given.reason == NET_DENIED) == (given.rule != NULL),
               "a rule is named where one decided");
    }
}

static void test_addresses(void)
{
    static const char *const lines[] = {
        "allow example.com",
        "allow 10.0.0.0/8:5432",
        "allow 1.2.3.0/24",
        "allow 169.254.0.0/16:80",
        "allow 100.100.100.200:80",
        "deny 10.9.9.9",
        "deny 8.8.8.8",
        "allow [2000::/3]:443",
        "allow [64:ff9b::/96]:5432",
        "deny 9.9.9.9:53",
        NULL,
    };
    static const struct address_row rows[] = {
        {"1.2.3.4", 443, NET_OK, NET_OK},
        {"1.2.3.4", 22, NET_WRONG_PORT, NET_OK},
        {"1.2.4.4", 443, NET_NO_RULE, NET_OK},
        {"8.8.8.8", 443, NET_DENIED, NET_DENIED},
        {"::ffff:8.8.8.8", 443, NET_DENIED, NET_DENIED},
        {"64:ff9b::8.8.8.8", 443, NET_DENIED, NET_DENIED},
        {"2002:808:808::1", 443, NET_DENIED, NET_DENIED},
        {"9.9.9.9", 443, NET_NO_RULE, NET_OK},
        {"9.9.9.9", 53, NET_DENIED, NET_DENIED},
        {"10.1.2.3", 5432, NET_OK, NET_OK},
        {"::ffff:10.1.2.3", 5432, NET_OK, NET_OK},
        {"10.1.2.3", 443, NET_WRONG_PORT, NET_WRONG_PORT},
        {"10.9.9.9", 5432, NET_DENIED, NET_DENIED},
        {"192.168.1.1", 443, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"127.0.0.1", 443, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"::1", 443, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"0.0.0.0", 443, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"224.0.0.1", 443, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"198.18.0.5", 443, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"169.254.1.1", 80, NET_OK, NET_OK},
        {"169.254.169.254", 80, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"100.100.100.200", 80, NET_OK, NET_OK},
        {"2606:4700::1", 443, NET_OK, NET_OK},
        {"2606:4700::1", 80, NET_WRONG_PORT, NET_OK},
        {"2002:7f00:1::1", 443, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"2002:a9fe:a9fe::1", 443, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"2002:c0a8:101::1", 443, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"64:ff9b::10.1.2.3", 5432, NET_OK, NET_OK},
        {"64:ff9b::192.168.1.1", 5432, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"64:ff9b::127.0.0.1", 5432, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"fd00:ec2::254", 80, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"1.2.3.4", 0, NET_WRONG_PORT, NET_WRONG_PORT},
    };
    struct net_rules rules;
    fill(&rules, lines);
    check_addresses(&rules, rows, ARRAY_LENGTH(rows));
    struct net_address mapped = {NET_V6, {[10] = 0xff, 0xff, 127, 0, 0, 1}};
    tap_is_int(net_rules_resolved(&rules, &mapped, 443).reason, NET_NOT_PUBLIC,
               "loopback in a dress of IPv6 is known for what it is");
    tap_is_int(net_rules_resolved(&rules, &mapped, 443).class, NET_LOOPBACK, "and named so");
    net_rules_done(&rules);
}

static void test_open_addresses(void)
{
    static const char *const lines[] = {"allow *", "deny 8.8.8.0/24", "deny *:25",
                                        "allow 192.168.1.5:80", NULL};
    static const struct address_row rows[] = {
        {"1.2.3.4", 443, NET_OK, NET_OK},
        {"1.2.3.4", 65535, NET_OK, NET_OK},
        {"1.2.3.4", 25, NET_DENIED, NET_DENIED},
        {"8.8.8.8", 443, NET_DENIED, NET_DENIED},
        {"2606:4700::1", 443, NET_OK, NET_OK},
        {"192.168.1.5", 80, NET_OK, NET_OK},
        {"192.168.1.5", 443, NET_WRONG_PORT, NET_WRONG_PORT},
        {"192.168.1.6", 80, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"127.0.0.1", 80, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"169.254.169.254", 80, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"168.63.129.16", 80, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
        {"fd00::1", 443, NET_NOT_PUBLIC, NET_NOT_PUBLIC},
    };
    struct net_rules rules;
    fill(&rules, lines);
    check_addresses(&rules, rows, ARRAY_LENGTH(rows));
    net_rules_done(&rules);
}

/* ---- Lines ---- */

static void test_lines(void)
{
    struct net_rules rules = {0}, copy = {0};
    struct brig_error err = {0};
    static const char *const allowed[] = {"@registries+mirrors",
                                          "*.example.com:8443/tls",
                                          "host:1",
                                          "[2001:db8::/32]:*",
                                          "10.0.0.0/8",
                                          "*"};
    for (size_t i = 0; i < ARRAY_LENGTH(allowed); i++)
        tap_is_int(net_rules_allow(&rules, allowed[i], NULL), 0, "%s is allowed", allowed[i]);
    tap_is_int(net_rules_deny(&rules, "@npm", NULL), 0, "@npm is denied");
    autostr struct str text = {0}, again = {0};
    net_rules_write(&rules, &text);
    tap_has_str(text.data, "allow pypi.org:443,80 @registries\n", "a line has the preset");
    tap_has_str(text.data, "allow *.example.com:8443/tls\n", "or none");
    tap_has_str(text.data, "deny registry.npmjs.org:* @npm\n", "denied is denied");
    for (char *line = text.data, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (net_rules_read_line(&copy, line, &err) < 0)
            tap_fail("%s", err.message);
        *end = '\n';
    }
    net_rules_write(&copy, &again);
    tap_is_str(again.data, text.data, "what is read again is the same");
    tap_is_int(copy.count, rules.count, "rule for rule");
    static const char *const bad[] = {
        "",
        "allow",
        "allow ",
        "permit example.com",
        "allow  example.com",
        "allow example.com @nmp",
        "allow example.com @npm x",
        "allow example.com ",
        "allow @npm",
        "Allow example.com",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        tap_is_int(net_rules_read_line(&copy, bad[i], NULL), BRIG_E_INVALID, "'%s' is no line",
                   bad[i]);
    tap_is_int(copy.count, rules.count, "and adds nothing");
    net_rules_done(&rules);
    net_rules_done(&copy);
}

int main(void)
{
    test_text();
    test_denied_text();
    test_refused_text();
    test_limits();
    test_presets();
    test_preset_mirrors();
    test_aliases();
    test_allowed_names();
    test_open_names();
    test_addresses();
    test_open_addresses();
    test_lines();
    return tap_done();
}
