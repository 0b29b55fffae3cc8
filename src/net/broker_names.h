/* SPDX-License-Identifier: MIT */
/* The names the jail has asked for, and the address of each in the jail: the next one of the range.
 * A name keeps its address as long as the jail lives, and no address is used for two names. */
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
    void *tree; /* a tree of tsearch(): pointers into `texts`, sorted by name */
};

void names_done(struct names *names);

/* The index of the name, a new one if it had none; -1 if there are too many names or memory is
 * short. */
int names_need(struct names *names, const char *name);

/* The index of the name, or -1 if it has none. */
int names_index(const struct names *names, const char *name);

/* The addresses of a name. */
struct net_address names_ipv4(size_t index);
struct net_address names_ipv6(size_t index);

/* Whether the address is in one of the door's ranges. */
bool names_is_ours(const struct net_address *address);
/* The name that an address stands for, or NULL. Lives as long as the table. */
const char *names_find(const struct names *names, const struct net_address *address);
