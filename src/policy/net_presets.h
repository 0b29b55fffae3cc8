/* SPDX-License-Identifier: MIT */
/* Presets of the network: sets of destinations under a name, one row each. Pure. */
#pragma once

#include <stddef.h>

/* Tools whose users may have configured a mirror, as bits. */
enum net_tool {
    NET_TOOL_NPM = 1 << 0,
    NET_TOOL_PYPI = 1 << 1,
    NET_TOOL_CRATES = 1 << 2,
    NET_TOOL_GO = 1 << 3,
};

#define NET_PRESET_NAME_MAX 16 /* with the '@' and the NUL */

struct net_preset {
    const char *name;         /* with its '@' */
    const char *summary;      /* for a list of them */
    const char *const *rules; /* as net_rules_add() reads them; NULL at the end */
    unsigned mirrors;         /* the tools whose mirrors +mirrors asks for: enum net_tool; or 0 */
};

/* All of them, for lists. */
const struct net_preset *net_presets(size_t *ret_count);

/* By its name of `length` bytes, with the '@' and without "+mirrors"; NULL if there is none. */
const struct net_preset *net_preset_find(const char *name, size_t length);

/* Other names of whole policies, as the executors before us have them. */
struct net_policy_alias {
    const char *name;    /* "deny_all", "registry_allowlist" */
    const char *network; /* the policy it stands for: "none" or "allow" */
    const char *rule;    /* what that allows, or NULL */
};

/* NULL if it is no such name. */
const struct net_policy_alias *net_policy_alias_find(const char *name);
