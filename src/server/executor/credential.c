/* SPDX-License-Identifier: MIT */
/* The credential of agents. */
#include "server/executor/credential.h"

#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "policy/policy.h"
#include "server/config/config.h"

#define SECRET_FILE "/run/secrets/auth_token"
#define API_NAME "api.anthropic.com"

static const struct {
    enum credential_kind kind;
    const char *variable;
} sources[] = {
    {CREDENTIAL_API_KEY, "ANTHROPIC_API_KEY"},
    {CREDENTIAL_OAUTH, "CLAUDE_CODE_OAUTH_TOKEN"},
};

int executor_credential_take(struct credential *ret_credential, struct brig_error *err)
{
    struct credential credential = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(sources); i++) {
        char *value = getenv(sources[i].variable);
        if (!value || !*value)
            continue;
        if (credential.kind == CREDENTIAL_NONE) {
            int result = str_copy(value, &credential.value, err);
            if (result < 0)
                return result;
            credential.kind = sources[i].kind;
        }
        explicit_bzero(value, strlen(value));
        (void)unsetenv(sources[i].variable);
    }
    *ret_credential = credential;
    return 0;
}

void executor_credential_done(struct credential *credential)
{
    if (credential->value)
        explicit_bzero(credential->value, strlen(credential->value));
    free(credential->value);
    *credential = (struct credential){0};
}

/* The jail gets only the proxy's URL. Clients that require a key get a dummy, which the broker
 * removes. */
static int inject(const struct credential *credential, const struct server_config *config,
                  struct brig_policy *policy, struct arena *arena, struct brig_error *err)
{
    static const char *const strip[] = {"x-api-key", "authorization", NULL};
    bool oauth = credential->kind == CREDENTIAL_OAUTH;
    struct brig_inject inject = {
        .size = sizeof(struct brig_inject),
        .name = API_NAME,
        .header = oauth ? "authorization" : "x-api-key",
        .value = oauth ? arena_concat(arena, "Bearer ", credential->value) : credential->value,
        .upstream = config->auth_proxy.upstream,
        .strip = strip,
    };
    if (!inject.value)
        return brig_fail_nomem(err);
    char url[POLICY_INJECT_URL_MAX];
    int result = brig_policy_inject(policy, &inject, err);
    if (result < 0)
        return result;
    struct policy_inject *added = &policy->net.inject[policy->net.inject_count - 1];
    added->port = config->auth_proxy.port;
    policy_inject_url(added, url);
    if ((result = brig_policy_setenv(policy, "ANTHROPIC_BASE_URL", url, err)) < 0)
        return result;
    return brig_policy_setenv(policy, oauth ? "ANTHROPIC_AUTH_TOKEN" : "ANTHROPIC_API_KEY",
                              "added-by-brig", err);
}

/* The credential is neither in an argument nor in the initial environment of the jail. */
static const char *const wrappers[] = {
    [CREDENTIAL_API_KEY] = "ANTHROPIC_API_KEY=$(cat " SECRET_FILE ") && rm -f " SECRET_FILE
                           " && export ANTHROPIC_API_KEY && exec \"$@\"",
    [CREDENTIAL_OAUTH] = "CLAUDE_CODE_OAUTH_TOKEN=$(cat " SECRET_FILE ") && rm -f " SECRET_FILE
                         " && export CLAUDE_CODE_OAUTH_TOKEN && exec \"$@\"",
};

static int hand_over(const struct credential *credential, struct brig_policy *policy,
                     const char ***argv, struct arena *arena, struct brig_error *err)
{
    int result = brig_policy_file(policy, SECRET_FILE, credential->value, strlen(credential->value),
                                  0400, err);
    if (result < 0)
        return result;
    size_t count = 0, used = 0;
    while ((*argv)[count])
        count++;
    const char **wrapped = arena_alloc(arena, (count + 5) * sizeof *wrapped);
    if (!wrapped)
        return brig_fail_nomem(err);
    wrapped[used++] = "/bin/sh";
    wrapped[used++] = "-c";
    wrapped[used++] = wrappers[credential->kind];
    wrapped[used++] = "agent";
    for (size_t i = 0; i < count; i++)
        wrapped[used++] = (*argv)[i];
    *argv = wrapped;
    return 0;
}

int executor_credential_lend(const struct credential *credential,
                             const struct server_config *config, struct brig_policy *policy,
                             const char ***argv, struct arena *arena, struct brig_error *err)
{
    if (credential->kind == CREDENTIAL_NONE)
        return 0;
    if (config->auth_proxy.port)
        return inject(credential, config, policy, arena, err);
    return hand_over(credential, policy, argv, arena, err);
}
