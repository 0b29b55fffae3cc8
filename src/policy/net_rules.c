/* SPDX-License-Identifier: MIT */
/* Which destinations a jail may reach: the list of rules, and lines of it. */
#include "policy/net_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"

#define MIRRORS_SUFFIX "+mirrors"
#define ALLOW_WORD "allow "
#define DENY_WORD "deny "

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
    if (rules->count == rules->capacity) {
        size_t capacity = rules->capacity ? rules->capacity * 2 : 16;
        struct net_rule *items = reallocarray(rules->items, capacity, sizeof *items);
        if (!items)
            return brig_fail_nomem(err);
        rules->items = items;
        rules->capacity = capacity;
    }
    rules->items[rules->count++] = *rule;
    return 0;
}

/* ---- Presets ------------------------------------------------------------------------------ */

static int refuse_preset(const char *text, struct brig_error *err)
{
    autostr struct str names = {0};
    size_t count;
    const struct net_preset *presets = net_presets(&count);
    for (size_t i = 0; i < count; i++)
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
