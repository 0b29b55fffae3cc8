/* SPDX-License-Identifier: MIT */
/* Describes a run without starting it: its plan, or its policy as text or JSON. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/identity.h"
#include "cli/remedy.h"
#include "cli/report.h"
#include "cli/run/home.h"
#include "cli/run/setup.h"
#include "cli/settings/script.h"
#include "cli/settings/settings.h"
#include "jail/job/job.h"
#include "jail/plan/facts.h"
#include "policy/policy.h"

#define FACTS_FILE_MAX 65536

static int find_facts(const char *path, struct facts *ret_facts, struct brig_error *err)
{
    if (!path) {
        facts_ask(ret_facts);
        return 0;
    }
    bool whole = false;
    autofree char *text = proc_read(path, FACTS_FILE_MAX, &whole);
    if (!text)
        return brig_fail(err, BRIG_E_INVALID, errno, "--facts: cannot read '%s'",
                         str_shown(path).text);
    if (!whole)
        return brig_fail(err, BRIG_E_INVALID, 0, "--facts: '%s' has more than %d bytes",
                         str_shown(path).text, FACTS_FILE_MAX);
    int status = facts_parse(text, ret_facts, err);
    return status < 0 ? brig_wrap(err, status, "--facts %s", str_shown(path).text) : 0;
}

/* With --output the streams pass through pipes of brig. */
static int foresee(const struct settings *settings, const char *const *words, char **envp,
                   struct str *out, struct brig_error *err)
{
    const struct brig_policy *policy = settings->policy;
    bool relayed = policy->limits_asked & 1U << BRIG_LIMIT_OUTPUT_BYTES &&
                   policy->limits[BRIG_LIMIT_OUTPUT_BYTES] > 0;
    int ends[2] = {-1, -1};
    if (relayed && pipe2(ends, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    const struct brig_stdio through = {.kind = relayed ? BRIG_STDIO_FD : BRIG_STDIO_INHERIT,
                                       .fd = ends[1]};
    const struct brig_command command = {
        .size = sizeof(struct brig_command),
        .argv = words,
        .envp = (const char *const *)envp,
        .stdio = {{.kind = BRIG_STDIO_INHERIT}, through, through},
        .pass_fds = settings->pass_fds,
        .pass_fd_count = settings->pass_fd_count,
    };
    int status = job_foresee(policy, &command, out, err);
    for (size_t i = 0; relayed && i < ARRAY_LENGTH(ends); i++)
        (void)close(ends[i]);
    return status;
}

int plan_show(struct setup *setup, const char *const *argv, char **envp, struct brig_error *err)
{
    struct settings *settings = &setup->settings;
    struct brig_policy *policy = settings->policy;
    struct facts facts;
    autostr struct str out = {0};
    autoclose int stand_in = -1;
    autofree const char *const *words = NULL;
    int status = find_facts(settings->facts, &facts, err);
    if (status < 0 || (status = policy_validate(policy, err)) < 0 ||
        (status = script_words(settings, argv, &words, err)) < 0)
        return status;
    policy->facts = &facts;
    policy->jail_name = settings->jail;
    policy->files_before = facts.files;
    status = home_foresee(settings, &setup->identity, &setup->review, &out, &stand_in, err);
    if (status == 0)
        status = foresee(settings, words, envp, &out, err);
    policy->facts = NULL; /* owned by this function */
    if (status < 0)
        return status;
    return message_print(&out, err);
}

/* ---- The policy, and what the command line adds to it ---- */

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
        /* Of the built-in masks, those that hide something are shown, and the others are
         * counted. */
        if (!mask->built_in || mask->found)
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

/* The kind of the home directory, and where its changes are kept. */
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
        str_appendf(out, "the real one, copy-on-write; changes are stored in %s/%s.changes",
                    str_shown(settings->storage).text, settings->jail);
        break;
    }
    str_append_char(out, '\n');
}

/* ---- variables that are not passed on ---- */

/* The filter that withholds a variable of the environment, or NULL. */
static const struct policy_env *find_filter(const struct brig_policy *policy, const char *variable)
{
    const char *equals = strchr(variable, '=');
    const struct policy_env *rule =
        equals && equals > variable
            ? policy_env_rule(policy, variable, (size_t)(equals - variable), equals + 1)
            : NULL;
    return rule && rule->kind == POLICY_ENV_UNSET ? rule : NULL;
}

/* Whether its value alone is a reason. */
static bool is_for_value(const struct brig_policy *policy, const char *variable)
{
    const char *equals = strchr(variable, '=');
    for (size_t i = 0; equals && i < policy->env_count; i++) {
        const struct policy_env *rule = &policy->env[i];
        if (rule->kind == POLICY_ENV_UNSET && strstr(rule->name, "://") &&
            policy_filter_matches(rule->name, variable, (size_t)(equals - variable), equals + 1))
            return true;
    }
    return false;
}

/* The user's own variables that a filter matches: names only. */
static void text_filtered(struct str *out, const struct settings *settings)
{
    autostr struct str names = {0};
    for (char **variable = environ; *variable; variable++) {
        const struct policy_env *rule = find_filter(settings->policy, *variable);
        autofree char *name = rule ? strndup(*variable, strcspn(*variable, "=")) : NULL;
        if (name && !is_for_value(settings->policy, *variable))
            str_concat(&names, names.length > 0 ? ", " : "", str_shown(name).text);
        else if (name)
            str_appendf(out,
                        "%-*s%s: its value has an address with a password; --setenv %s "
                        "passes it on\n",
                        LABEL_WIDTH, "not passed on", str_shown(name).text, str_shown(name).text);
    }
    if (names.length > 0 && !names.failed)
        str_appendf(out, "%-*s%s; see brig why NAME\n", LABEL_WIDTH, "not passed on", names.data);
}

static void json_filtered(struct json *j, const struct settings *settings, const char *key,
                          bool only_by_value)
{
    json_open_array(j, key);
    for (char **variable = environ; *variable; variable++) {
        const struct policy_env *rule = find_filter(settings->policy, *variable);
        autofree char *name = rule ? strndup(*variable, strcspn(*variable, "=")) : NULL;
        if (name && (!only_by_value || is_for_value(settings->policy, *variable)))
            json_text(j, NULL, name);
    }
    json_close_array(j);
}

static void add_text(struct str *out, const struct settings *settings)
{
    text_filtered(out, settings);
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
    j.comma = true; /* after the members of the policy */
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
    json_filtered(&j, settings, "filtered", false);
    json_filtered(&j, settings, "withheld_by_value", true);
    json_programs(&j, "scripts", &settings->scripts);
    json_programs(&j, "initjails", &settings->initjails);
    str_append(out, JSON_END);
}

int settings_explain(const struct settings *settings, struct str *out, struct brig_error *err)
{
    autofree char *policy = NULL;
    if (settings->profile && !settings->json && !settings->verbose) {
        text_filtered(out, settings);
        settings_summarise(settings, out);
        return 0;
    }
    int status = brig_policy_explain(settings->policy, settings->json, &policy, err);
    if (status < 0)
        return status;
    str_append_bytes(out, policy, strlen(policy) - (settings->json ? strlen(JSON_END) : 0));
    remedy_translate(out);
    if (settings->json)
        add_json(out, settings);
    else
        add_text(out, settings);
    return 0;
}

/* Takes the same words as a run, and one more. */
static int run_explain(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    autofree char **words = calloc((size_t)argc + 2, sizeof *words);
    if (!words)
        return brig_fail_nomem(err);
    words[0] = argv[0];
    words[1] = (char *)(uintptr_t) "--dry-run";
    memcpy(words + 2, argv + 1, ((size_t)argc - 1) * sizeof *words);
    return cmd_run.run(app, argc + 1, words, err);
}

const struct command cmd_explain = {
    .name = "explain",
    .summary = "print what a run would be allowed, and why (--dry-run)",
    .usage = "[OPTIONS] [--] [CMD...]",
    .words = COMMAND_WORDS_RUN,
    .run = run_explain,
};
