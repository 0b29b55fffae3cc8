/* SPDX-License-Identifier: MIT */
/* The host's own HTTP proxy, as its environment names it. */
#pragma once

#include <brig/brig.h>

#include "policy/policy.h"

/* Tells the policy of HTTPS_PROXY, ALL_PROXY or HTTP_PROXY, and NO_PROXY, in either case. One that is no plain
 * HTTP proxy is warned about and not used. */
int net_proxy_apply(struct brig_policy *policy, struct brig_error *err);

/* Takes "http://[USER[:PASSWORD]@]HOST[:PORT][/]" apart; false if it is none. Pure. The caller frees
 * both; *ret_secret is what goes into Proxy-Authorization, or NULL. */
bool net_proxy_parse(const char *url, char **ret_proxy, char **ret_secret);

/* Cuts the text of NO_PROXY into its host names, ended by NULL, and returns their count. Addresses are
 * left out: a connection to an address is never sent to the proxy. Pure. */
size_t net_proxy_split_names(char *text, const char *names[POLICY_NO_PROXY_MAX + 1]);
