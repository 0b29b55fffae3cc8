/* SPDX-License-Identifier: MIT */
/* `brig why` for environment variables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/credentials/inject.h"
#include "cli/run/setup.h"
#include "cli/settings/settings.h"
#include "cli/verbs/why.h"
#include "policy/policy.h"

static bool is_name(const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *word && strchr(letters, *word) && !word[strspn(word, others)];
}

bool why_is_variable(const struct why *why, const char *word)
{
    return is_name(word) && (getenv(word) || policy_env_rule(why->setup->settings.policy, word,
                                                             strlen(word), "") != NULL);
}

bool why_is_only_variable(const char *word)
{
    return strpbrk(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
}

/* Whether the command would have the variable; *ret_same: with the value it has outside. */
static bool is_passed(const struct brig_policy *policy, const char *name, const char *value,
                      bool *ret_same)
{
    autostr struct str variable = {0};
    char **env = NULL;
    size_t length = strlen(name);
    bool passed = false;
    str_concat(&variable, name, "=", value);
    const char *const outside[] = {variable.data, NULL};
    if (variable.failed || policy_environment(policy, outside, &env, NULL) < 0)
        return false;
    for (size_t i = 0; env[i] && !passed; i++) {
        passed = strncmp(env[i], name, length) == 0 && env[i][length] == '=';
        *ret_same = passed && strcmp(env[i] + length + 1, value) == 0;
    }
    free(env);
    return passed;
}

static void say_rule(const struct brig_policy *policy, const struct policy_env *rule,
                     struct why_answer *answer)
{
    static const char *const kinds[] = {[POLICY_ENV_SET] = "setenv",
                                        [POLICY_ENV_EXPOSE] = "setenv",
                                        [POLICY_ENV_UNSET] = "unsetenv"};
    bool passed = answer->state == WHY_PASSED;
    bool decides = rule && (rule->kind == POLICY_ENV_UNSET) != passed;
    answer->origin = decides ? rule->origin : SETTINGS_BUILT_IN;
    if (decides)
        (void)snprintf(answer->rule, sizeof answer->rule, "%s %s", kinds[rule->kind], rule->name);
    else if (passed)
        (void)snprintf(answer->rule, sizeof answer->rule, "no filter matches it");
    else if (policy_mode_row(policy->mode)->env_keep)
        (void)snprintf(answer->rule, sizeof answer->rule, "mode %s passes on only a few variables",
                       policy_word(POLICY_MODE, policy->mode));
    else
        (void)snprintf(answer->rule, sizeof answer->rule, "net %s has another proxy",
                       policy_word(POLICY_NETWORK, policy->network));
}

void why_variable(const struct why *why, const char *name, struct why_answer *ret_answer)
{
    const struct brig_policy *policy = why->setup->settings.policy;
    const char *value = getenv(name);
    bool same = false;
    *ret_answer = (struct why_answer){.kind = WHY_VARIABLE, .exists = value != NULL};
    bool passed = is_passed(policy, name, value ? value : "x", &same);
    ret_answer->state = passed ? WHY_PASSED : WHY_WITHHELD;
    say_rule(policy, policy_env_rule(policy, name, strlen(name), value ? value : ""), ret_answer);
    const char *preset = inject_preset_for(name);
    if (!passed && preset)
        (void)snprintf(ret_answer->remedy, sizeof ret_answer->remedy,
                       "--inject %s (it stays outside), or --setenv %s", preset, name);
    else if (!passed)
        (void)snprintf(ret_answer->remedy, sizeof ret_answer->remedy, "--setenv %s", name);
    else if (!same)
        ret_answer->written = "with another value";
}
