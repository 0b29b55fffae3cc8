/* SPDX-License-Identifier: MIT */
/* What an agent or a tool can do, on one screen: `brig explain` for a command with a profile. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/jails.h"
#include "cli/run/setup.h"
#include "cli/settings/profile.h"
#include "cli/settings/settings.h"
#include "policy/policy.h"

#define LABEL_WIDTH 14
#define NAMES_MAX 6 /* of a list; the others are counted */

static void say(struct str *out, const char *label, const char *text)
{
    str_appendf(out, "%-*s", LABEL_WIDTH, label);
    str_append_shown(out, text, strlen(text), "");
    str_append_char(out, '\n');
}

/* A list in one line: "a, b, c and 4 more". */
struct list {
    struct str text;
    size_t count;
};

static void add(struct list *list, const char *name)
{
    if (list->count++ < NAMES_MAX)
        str_concat(&list->text, list->text.length > 0 ? ", " : "", name);
}

static void say_list(struct str *out, const char *label, struct list *list)
{
    if (list->count > NAMES_MAX)
        str_appendf(&list->text, " and %zu more", list->count - NAMES_MAX);
    if (list->count > 0 && !list->text.failed)
        say(out, label, list->text.data);
    str_done(&list->text);
}

static void say_grants(struct str *out, const struct settings *settings, enum brig_access access,
                       const char *label)
{
    struct list list = {0};
    for (size_t i = 0; i < settings->policy->grant_count; i++) {
        const struct policy_grant *grant = &settings->policy->grants[i];
        autofree char *copied = NULL;
        bool git = strcmp(grant->origin, "private git directory") == 0;
        if (grant->access != access || git)
            continue;
        if (grant->review && str_make(&copied, NULL, grant->dest, " (a copy)") == 0)
            add(&list, copied);
        else
            add(&list, grant->dest);
    }
    say_list(out, label, &list);
}

static void say_home(struct str *out, const struct settings *settings)
{
    static const char *const kinds[] = {
        [POLICY_HOME_SCRATCH] = "empty, deleted after the run",
        [POLICY_HOME_PRIVATE] = "empty at first, kept in the jail",
        [POLICY_HOME_OVERLAY] = "yours, copy-on-write: changes stay in the jail",
    };
    enum policy_home home = policy_mode_row(settings->mode)->home;
    struct list list = {0};
    autostr struct str text = {0};
    str_append(&text, kinds[home]);
    if (home == POLICY_HOME_OVERLAY)
        str_concat(&text, " (brig status", jails_option(settings->jail).text, ")");
    say(out, "home", text.failed ? kinds[home] : text.data);
    for (size_t i = 0; i < settings->mask_count; i++)
        if (settings->masks[i].found && !settings->masks[i].unmask)
            add(&list, settings->masks[i].path);
    say_list(out, "hidden there", &list);
}

static void say_network(struct str *out, const struct settings *settings)
{
    const struct policy_net *net = &settings->policy->net;
    struct list allowed = {0}, denied = {0}, credentials = {0};
    say(out, "network", policy_network_word(settings->policy));
    for (size_t i = 0; i < net->written_count; i++)
        add(net->written[i].deny ? &denied : &allowed, net->written[i].text);
    for (size_t i = 0; i < net->inject_count; i++)
        add(&credentials, net->inject[i].name);
    say_list(out, "  allowed", &allowed);
    say_list(out, "  denied", &denied);
    say_list(out, "  credentials", &credentials);
}

static void say_environment(struct str *out, const struct settings *settings)
{
    struct list list = {0};
    for (size_t i = 0; i < settings->policy->env_count; i++) {
        const struct policy_env *rule = &settings->policy->env[i];
        bool plain = strcmp(rule->origin, "the jail") == 0 || strcmp(rule->origin, "caller") == 0;
        autofree char *text = NULL;
        if (rule->kind == POLICY_ENV_SET && !plain &&
            str_make(&text, NULL, rule->name, "=", rule->value) == 0)
            add(&list, text);
        else if (rule->kind == POLICY_ENV_EXPOSE)
            add(&list, rule->name);
    }
    say_list(out, "variables", &list);
}

static void say_limits(struct str *out, const struct settings *settings)
{
    struct list list = {0};
    for (int i = 0; i < BRIG_LIMIT_COUNT_; i++) {
        uint64_t value = settings->policy->limits[i];
        autofree char *text = NULL;
        if (value > 0 && i != BRIG_LIMIT_GRACE_MS &&
            str_make(&text, NULL, policy_word(POLICY_LIMIT, i), "=", str_number(value).text) == 0)
            add(&list, text);
    }
    say_list(out, "limits", &list);
}

/* The facts that no rule contains. */
static void say_facts(struct str *out, const struct profile *profile)
{
    static const struct {
        enum profile_word word;
        const char *label;
    } rows[] = {
        {PROFILE_STATE, "its state"},
        {PROFILE_HOST_API, "its hosts"},
        {PROFILE_HOST_LOGIN, "  log-in"},
        {PROFILE_HOST_UPDATE, "  updates"},
        {PROFILE_HOST_TELEMETRY, "  reports to"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct list list = {0};
        char word[256];
        size_t at = 0, offset = 0;
        while (profile_next_word(profile, rows[i].word, &at, &offset, word, sizeof word))
            add(&list, word);
        say_list(out, rows[i].label, &list);
    }
    const char *sandbox = profile_get(profile, PROFILE_SANDBOX), *note;
    size_t at = 0;
    if (sandbox)
        say(out, "its sandbox", sandbox);
    while ((note = profile_next(profile, PROFILE_NOTE, &at)))
        say(out, "note", note);
}

void settings_summarise(const struct settings *settings, struct str *out)
{
    const struct profile *profile = settings->profile;
    const char *about = profile_get(profile, PROFILE_ABOUT);
    say(out, profile->name, about ? about : "");
    str_appendf(out, "%-*s%s, jail %s\n", LABEL_WIDTH, "mode",
                policy_word(POLICY_MODE, settings->mode), settings->jail);
    say_grants(out, settings, BRIG_READ_WRITE, "can write");
    say_grants(out, settings, BRIG_READ_ONLY, "can read");
    say(out, "and read",
        settings->policy->view == BRIG_VIEW_HOST ? "all other files of this machine"
                                                 : "programs, libraries and parts of /etc");
    say_home(out, settings);
    if (settings->checkpoint && !settings->review)
        str_appendf(out, "%-*sa checkpoint before each run (brig undo%s)\n", LABEL_WIDTH, "undo",
                    jails_option(settings->jail).text);
    say_network(out, settings);
    say_environment(out, settings);
    say_limits(out, settings);
    say_facts(out, profile);
    str_append(out, "brig explain -v prints every rule with its origin.\n");
}
