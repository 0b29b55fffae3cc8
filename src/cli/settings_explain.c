/* SPDX-License-Identifier: MIT */
/* What a run would be, in words and as JSON: the policy, and what the command line adds to it. */
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/settings.h"
#include "policy/modes.h"
#include "policy/policy.h"

#define JSON_END "}\n"

/* Aligned with the text of the policy. */
#define LABEL_WIDTH 16
#define RULE_WIDTH 10

static void text_programs(struct str *out, const char *label,
                          const struct settings_programs *programs)
{
    for (size_t i = 0; i < programs->count; i++)
        str_appendf(out, "%-*s%s  [%s]\n", LABEL_WIDTH, label,
                    str_shown(programs->items[i].path).text,
                    str_shown(programs->items[i].origin).text);
}

/* Of the built-in ones those that hide something are shown, and of the others their number. */
static bool is_shown(const struct settings_mask *mask)
{
    return !mask->built_in || mask->found;
}

static void text_masks(struct str *out, const struct settings *settings)
{
    size_t built_in = 0;
    str_append(out, "masks in the home directory\n");
    for (size_t i = 0; i < settings->mask_count; i++)
        built_in += settings->masks[i].built_in;
    if (built_in > 0)
        str_appendf(out, "  %-*s  %zu paths  [%s; see brig --print-defaults]\n", RULE_WIDTH, "hide",
                    built_in, SETTINGS_BUILT_IN);
    for (size_t i = 0; i < settings->mask_count; i++) {
        const struct settings_mask *mask = &settings->masks[i];
        if (is_shown(mask))
            str_appendf(out, "  %-*s  %s  [%s]\n", RULE_WIDTH, mask->unmask ? "show" : "hide",
                        str_shown(mask->path).text, str_shown(mask->origin).text);
    }
}

static const char *home_kind(const struct settings *settings)
{
    static const char *const names[] = {
        [POLICY_HOME_SCRATCH] = "scratch",
        [POLICY_HOME_PRIVATE] = "private",
        [POLICY_HOME_OVERLAY] = "overlay",
    };
    return names[policy_mode_row(settings->mode)->home];
}

/* What the home directory is, and where what is written to it is kept. */
static void text_home(struct str *out, const struct settings *settings)
{
    enum policy_home kind = policy_mode_row(settings->mode)->home;
    str_appendf(out, "%-*s", LABEL_WIDTH, "home is");
    switch (kind) {
    case POLICY_HOME_SCRATCH:
        str_append(out, "an empty one, gone with the run");
        break;
    case POLICY_HOME_PRIVATE:
        str_appendf(out, "one of the jail's own, kept in %s/%s.home",
                    str_shown(settings->storage).text, settings->jail);
        break;
    case POLICY_HOME_OVERLAY:
        str_appendf(out, "the real one, copied on writing; changes are kept in %s/%s.changes",
                    str_shown(settings->storage).text, settings->jail);
        break;
    }
    str_append_char(out, '\n');
}

/* ---- variables that are not passed on because of their value ---- */

/* One that was passed on after all, by its name, is not told. */
static bool is_withheld(const struct brig_policy *policy, const char *variable)
{
    const char *equals = strchr(variable, '=');
    size_t length = equals ? (size_t)(equals - variable) : 0;
    bool withheld = false;
    for (size_t i = 0; i < policy->env_count && length > 0; i++) {
        const struct policy_env *rule = &policy->env[i];
        bool named = strlen(rule->name) == length && memcmp(rule->name, variable, length) == 0;
        if (rule->kind == POLICY_ENV_UNSET)
            withheld =
                withheld || (strstr(rule->name, "://") &&
                             policy_filter_matches(rule->name, variable, length, equals + 1));
        else if (named)
            withheld = false;
    }
    return withheld;
}

static void text_withheld(struct str *out, const struct settings *settings)
{
    for (char **variable = environ; *variable; variable++)
        if (is_withheld(settings->policy, *variable)) {
            size_t length = strcspn(*variable, "=");
            str_appendf(out,
                        "%-*s%.*s: its value has an address with a password; --setenv %.*s "
                        "passes it on\n",
                        LABEL_WIDTH, "not passed on", (int)length, *variable, (int)length,
                        *variable);
        }
}

static void json_withheld(struct json *j, const struct settings *settings)
{
    json_open_array(j, "withheld_by_value");
    for (char **variable = environ; *variable; variable++) {
        autofree char *name = strndup(*variable, strcspn(*variable, "="));
        if (name && is_withheld(settings->policy, *variable))
            json_text(j, NULL, name);
    }
    json_close_array(j);
}

static void add_text(struct str *out, const struct settings *settings)
{
    text_withheld(out, settings);
    if (settings->mode != BRIG_MODE_SEALED) {
        str_appendf(out, "%-*s%s\n", LABEL_WIDTH, "jail", str_shown(settings->jail).text);
        str_appendf(out, "%-*s%s\n", LABEL_WIDTH, "storage", str_shown(settings->storage).text);
        text_home(out, settings);
    }
    text_programs(out, "script", &settings->scripts);
    text_programs(out, "initjail", &settings->initjails);
    if (settings->mask_count > 0)
        text_masks(out, settings);
}

static void json_programs(struct json *j, const char *key, const struct settings_programs *programs)
{
    json_open_array(j, key);
    for (size_t i = 0; i < programs->count; i++) {
        json_open_object(j, NULL);
        json_text(j, "path", programs->items[i].path);
        json_bool(j, "optional", programs->items[i].optional);
        json_text(j, "origin", programs->items[i].origin);
        json_close_object(j);
    }
    json_close_array(j);
}

static void add_json(struct str *out, const struct settings *settings)
{
    struct json j;
    json_init(&j, out);
    j.comma = true; /* behind what the policy has */
    json_text(&j, "mode_origin", settings->mode_origin);
    json_text(&j, "jail", settings->jail);
    json_text(&j, "storage", settings->storage);
    json_text(&j, "home_kind", home_kind(settings));
    json_open_array(&j, "masks");
    for (size_t i = 0; i < settings->mask_count; i++) {
        const struct settings_mask *mask = &settings->masks[i];
        json_open_object(&j, NULL);
        json_text(&j, "rule", mask->unmask ? "show" : "hide");
        json_text(&j, "path", mask->path);
        json_text(&j, "origin", mask->origin);
        json_bool(&j, "found", mask->found);
        json_close_object(&j);
    }
    json_close_array(&j);
    json_withheld(&j, settings);
    json_programs(&j, "scripts", &settings->scripts);
    json_programs(&j, "initjails", &settings->initjails);
    str_append(out, JSON_END);
}

int settings_explain(const struct settings *settings, char **ret_text, struct brig_error *err)
{
    autofree char *policy = NULL;
    autostr struct str out = {0};
    int status = brig_policy_explain(settings->policy, settings->json, &policy, err);
    if (status < 0)
        return status;
    size_t length = strlen(policy);
    if (settings->json) {
        str_append_bytes(&out, policy, length - strlen(JSON_END));
        add_json(&out, settings);
    } else {
        str_append_bytes(&out, policy, length);
        add_text(&out, settings);
    }
    return str_take(&out, ret_text, err);
}
