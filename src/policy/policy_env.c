/* SPDX-License-Identifier: MIT */
/* The builders of a policy's environment: what is set, passed on and left out. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "policy/policy.h"

#define POLICY_ENV_TEXT_MAX 131071 /* what execve() takes for one string, without the NUL */

void policy_env_done(struct policy_env *env)
{
    if (env->constant)
        return;
    free(env->name);
    free(env->value);
    free(env->origin);
}

static int make_room(struct brig_policy *policy, size_t more, struct brig_error *err)
{
    if (more > POLICY_ENV_MAX - policy->env_count)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "too many environment rules: at most %d are possible", POLICY_ENV_MAX);
    struct policy_env *grown =
        reallocarray(policy->env, policy->env_count + more, sizeof *policy->env);
    if (!grown)
        return brig_fail_nomem(err);
    policy->env = grown;
    return 0;
}

static int add_env(struct brig_policy *policy, enum policy_env_kind kind, const char *name,
                   const char *value, struct brig_error *err)
{
    if (!name || !*name || strchr(name, '='))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "bad environment %s '%s': it is not empty and has no '='",
                         kind == POLICY_ENV_UNSET ? "pattern" : "name", str_shown(name).text);
    size_t length = strlen(name) + (value ? strlen(value) + 1 : 0);
    if (length > POLICY_ENV_TEXT_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "environment variable '%s' is too long: %zu bytes, at most %d",
                         str_shown(name).text, length, POLICY_ENV_TEXT_MAX);
    autofree char *name_copy = NULL;
    autofree char *value_copy = NULL;
    autofree char *origin = NULL;
    int rc;
    if ((rc = str_copy(name, &name_copy, err)) < 0 ||
        (rc = str_copy(value, &value_copy, err)) < 0 ||
        (rc = str_copy(policy->origin, &origin, err)) < 0)
        return rc;
    if ((rc = make_room(policy, 1, err)) < 0)
        return rc;
    policy->env[policy->env_count++] = (struct policy_env){
        .kind = kind,
        .name = take_ptr(&name_copy),
        .value = take_ptr(&value_copy),
        .origin = take_ptr(&origin),
    };
    return 0;
}

int brig_policy_setenv(struct brig_policy *policy, const char *name, const char *value,
                       struct brig_error *err)
{
    return add_env(policy, value ? POLICY_ENV_SET : POLICY_ENV_EXPOSE, name, value, err);
}

int brig_policy_unsetenv(struct brig_policy *policy, const char *pattern, struct brig_error *err)
{
    return add_env(policy, POLICY_ENV_UNSET, pattern, NULL, err);
}

int policy_unsetenv_all(struct brig_policy *policy, const char *const *patterns, const char *origin,
                        struct brig_error *err)
{
    size_t count = 0;
    while (patterns[count])
        count++;
    int rc = make_room(policy, count, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        policy->env[policy->env_count++] = (struct policy_env){
            .kind = POLICY_ENV_UNSET,
            .constant = true,
            .name = (char *)(uintptr_t)patterns[i],
            .origin = (char *)(uintptr_t)origin,
        };
    return rc;
}
