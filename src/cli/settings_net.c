/* SPDX-License-Identifier: MIT */
/* The setters of the network: which there is, what is reached through its door, what is logged. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"
#include "cli/settings.h"
#include "cli/settings_parts.h"
#include "policy/net_presets.h"
#include "policy/policy.h"

#define NET_LEARN "learn"

/* A whole policy under the name that an executor before us had for it. */
static int set_alias(struct settings *settings, const struct net_policy_alias *alias,
                     struct brig_error *err)
{
    int status = alias->rule ? brig_policy_allow(settings->policy, alias->rule, err) : 0;
    if (status < 0)
        return status;
    return brig_policy_network(settings->policy,
                               (enum brig_network)policy_network_parse(alias->network), err);
}

int settings_set_net(struct settings *settings, const struct setter *setter, const char *value,
                     struct brig_error *err)
{
    (void)setter;
    int network = policy_network_parse(value);
    const struct net_policy_alias *alias = net_policy_alias_find(value);
    bool learn = strcmp(value, NET_LEARN) == 0;
    if (network < 0 && !alias && !learn)
        return nearest_fail(value, "none, allow, open, host or " NET_LEARN, err);
    settings->net_given = true;
    settings->net_learn = learn;
    if (alias)
        return set_alias(settings, alias, err);
    return brig_policy_network(settings->policy, learn ? BRIG_NET_OPEN : (enum brig_network)network,
                               err);
}

int settings_set_allow(struct settings *settings, const struct setter *setter, const char *value,
                       struct brig_error *err)
{
    (void)setter;
    int status = brig_policy_allow(settings->policy, value, err);
    if (status < 0 || settings->place != SETTINGS_COMMAND_LINE)
        return status;
    free(take_ptr(&settings->allow_typed));
    return str_copy(value, &settings->allow_typed, err);
}

int settings_set_deny(struct settings *settings, const struct setter *setter, const char *value,
                      struct brig_error *err)
{
    (void)setter;
    return brig_policy_deny(settings->policy, value, err);
}

int settings_set_publish(struct settings *settings, const struct setter *setter, const char *value,
                         struct brig_error *err)
{
    (void)setter;
    return brig_policy_publish(settings->policy, value, err);
}

int settings_set_inject(struct settings *settings, const struct setter *setter, const char *value,
                        struct brig_error *err)
{
    (void)setter;
    if (settings->inject_count == SETTINGS_INJECTS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is one too many; at most %d are injected",
                         str_shown(value).text, SETTINGS_INJECTS_MAX);
    autofree char *text = NULL;
    autofree char *origin = NULL;
    int status = str_copy(value, &text, err);
    if (status == 0)
        status = str_copy(settings->policy->origin, &origin, err);
    if (status < 0)
        return status;
    settings->injects[settings->inject_count++] =
        (struct settings_inject){.text = take_ptr(&text), .origin = take_ptr(&origin)};
    return 0;
}

int settings_set_proxy_env(struct settings *settings, const struct setter *setter,
                           const char *value, struct brig_error *err)
{
    (void)setter;
    (void)value;
    return brig_policy_proxy_env(settings->policy, true, err);
}

/* In a file a relative path begins at the home directory, as others do. */
int settings_set_net_log(struct settings *settings, const struct setter *setter, const char *value,
                         struct brig_error *err)
{
    (void)setter;
    if (*value == '\0')
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the value is empty; give a path or the number of a file descriptor");
    autostr struct str path = {0};
    bool number = value[strspn(value, "0123456789")] == '\0' || strncmp(value, "fd:", 3) == 0;
    if (settings->place == SETTINGS_FILE && value[0] != '/' && !number) {
        str_append(&path, settings->home);
        str_append_char(&path, '/');
    }
    str_append(&path, value);
    free(take_ptr(&settings->net_log));
    return str_take(&path, &settings->net_log, err);
}

void settings_net_done(struct settings *settings)
{
    for (size_t i = 0; i < settings->inject_count; i++) {
        free(settings->injects[i].text);
        free(settings->injects[i].origin);
    }
    settings->inject_count = 0;
    for (size_t i = 0; i < settings->secret_count; i++) {
        free(settings->secrets[i].path);
        free(settings->secrets[i].origin);
    }
    settings->secret_count = 0;
    free(take_ptr(&settings->allow_typed));
    free(take_ptr(&settings->net_log));
}
