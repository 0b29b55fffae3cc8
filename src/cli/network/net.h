/* SPDX-License-Identifier: MIT */
/* The network of a run: combines all rules, and reads the settings that come from the system. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

#include "policy/policy.h"

struct identity;
struct settings;

/* Finds the broker program that a run would use. False if it is not at any known place. */
bool net_find_broker(char *path, size_t size);

/* Determines the kind of network, the broker, the host's proxy and the credentials. Secrets are
 * read unless this is a dry run. */
int net_apply(struct settings *settings, const struct identity *identity, struct brig_error *err);

/* Parses "http://[USER[:PASSWORD]@]HOST[:PORT][/]"; false if the URL has another form. Pure. The
 * caller frees both; *ret_secret is the value of Proxy-Authorization, or NULL. */
bool net_proxy_parse(const char *url, char **ret_proxy, char **ret_secret);

/* Splits the text of NO_PROXY into host names, terminated by NULL, and returns their count.
 * Addresses are dropped, because a connection to an address is never sent to the proxy. Pure. */
size_t net_proxy_split_names(char *text, const char *names[POLICY_NO_PROXY_MAX + 1]);
