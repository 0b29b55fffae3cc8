/* SPDX-License-Identifier: MIT */
/* The destination of a callback, from its URL. Pure: the http process checks it, and the executor again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/net_rules.h"

struct brig_error;
struct config_list;

struct callback_target {
    bool tls;
    char host[NET_NAME_MAX + 1]; /* a name, or an address without brackets */
    uint16_t port;
    char rule[NET_RULE_TEXT_MAX]; /* the one destination that the jail of the callback may reach */
};

/* Reads http://HOST[:PORT][/PATH] or https://…, without credentials. `allow` has the destinations that
 * need not be public (callback.allow): an address or `host` in the URL that is not public must be among
 * them. What a name resolves to is checked by the broker. */
int callback_parse(const char *url, const struct config_list *allow,
                   struct callback_target *ret_target, struct brig_error *err);
