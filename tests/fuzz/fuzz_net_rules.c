/* SPDX-License-Identifier: MIT */
/* Rules for the network from any text, a line each; what was taken is printed, read again and asked
 * about. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "policy/net_rules.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check_printed(const struct net_rule *rule)
{
    char text[NET_RULE_TEXT_MAX], again[NET_RULE_TEXT_MAX];
    struct net_rule read;
    net_rule_print(rule, text);
    expect(strlen(text) < NET_RULE_TEXT_MAX - 1 && !strpbrk(text, " \n"));
    expect(net_rule_parse(text, rule->deny, &read, NULL) == 0);
    net_rule_print(&read, again);
    expect(strcmp(text, again) == 0 && read.kind == rule->kind && read.tls == rule->tls &&
           read.port_count == rule->port_count);
}

/* What no rule may do, whatever was written. */
static void check_never(const struct net_rules *rules)
{
    static const char *const never[] = {
        "127.0.0.1",          "::1",     "0.0.0.0",         "::",
        "224.0.0.1",          "ff02::1", "64:ff9b::7f00:1", "2002:7f00:1::",
        "2001:0:1::80ff:fffe"};
    for (size_t i = 0; i < ARRAY_LENGTH(never); i++) {
        struct net_address address;
        expect(net_address_read(never[i], strlen(never[i]), &address));
        expect(net_rules_address(rules, &address, 443).reason != NET_OK);
        expect(net_rules_resolved(rules, &address, 443).reason != NET_OK);
    }
}

static void check_name(const struct net_rules *rules, const char *name)
{
    struct net_verdict verdict = net_rules_name(rules, name, 443);
    expect((verdict.reason == NET_OK || verdict.reason == NET_DENIED) == (verdict.rule != NULL));
    if (verdict.reason == NET_OK) {
        expect(!verdict.rule->deny && net_rules_resolve(rules, name).reason == NET_OK);
        for (size_t i = 0; i < rules->count; i++) {
            const struct net_rule *rule = &rules->items[i];
            bool denies = rule->deny && rule->kind == NET_RULE_NAME && rule->port_count == 0;
            expect(!denies || strcmp(rule->name, name) != 0);
        }
    }
}

static void check_rules(const struct net_rules *rules)
{
    autostr struct str text = {0};
    net_rules_write(rules, &text);
    expect(!text.failed);
    struct net_rules copy = {0};
    for (char *line = text.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        expect(net_rules_read_line(&copy, line, NULL) == 0);
    }
    expect(copy.count == rules->count);
    for (size_t i = 0; i < rules->count; i++) {
        check_printed(&rules->items[i]);
        check_name(rules, rules->items[i].name);
        check_name(&copy, rules->items[i].name);
    }
    check_never(rules);
    net_rules_done(&copy);
}

static void check_address(const char *text, size_t length)
{
    struct net_address address, again;
    char printed[NET_ADDRESS_TEXT_MAX], name[NET_NAME_MAX + 1];
    bool is_address = net_address_read(text, length, &address);
    expect(!is_address || !net_name_read(text, length, name));
    if (is_address) {
        net_address_print(&address, printed);
        expect(net_address_read(printed, strlen(printed), &again) &&
               net_address_equal(&address, &again));
        expect(strcmp(net_class_name(net_address_class(&address)), "?") != 0);
    }
    if (net_name_read(text, length, name)) {
        char same[NET_NAME_MAX + 1];
        expect(net_name_read(name, strlen(name), same) && strcmp(name, same) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct net_rules rules = {0};
    for (size_t at = 0; at < size;) {
        const uint8_t *newline = memchr(data + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - data) - at : size - at;
        autofree char *line = malloc(length + 1);
        expect(line != NULL);
        memcpy(line, data + at, length);
        check_address(line, length);
        line[length] = '\0';
        if (line[0] == '!')
            (void)net_rules_deny(&rules, line + 1, NULL);
        else if (net_rules_read_line(&rules, line, NULL) < 0)
            (void)net_rules_allow(&rules, line, NULL);
        at += length + 1;
    }
    check_rules(&rules);
    net_rules_done(&rules);
    return 0;
}
