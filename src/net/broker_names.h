/* SPDX-License-Identifier: MIT */
/* The names the jail has asked for, and the address each has in the jail: the next of the range, the
 * same for as long as the jail lives, and never another name's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net_address.h"

/* Zero-initialise, with `limit` set. */
struct names {
    size_t limit; /* at most DOOR_NAMES_MAX */
    size_t count;
    char **texts;
    void *tree; /* of tsearch(): pointers to `texts`, in the order of the names */
};

void names_done(struct names *names);

/* The name's index, a new one if it had none; -1 if there are too many names or memory is short. */
int names_need(struct names *names, const char *name);

/* The addresses of a name. */
struct net_address names_ipv4(size_t index);
struct net_address names_ipv6(size_t index);

/* Is the address one of the door's ranges? */
bool names_is_ours(const struct net_address *address);
/* The name an address stands for, or NULL. Lives as long as the table. */
const char *names_find(const struct names *names, const struct net_address *address);
