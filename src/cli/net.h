/* SPDX-License-Identifier: MIT */
/* The network of a run: what follows from all rules together, and what only the system can tell. */
#pragma once

#include <brig/brig.h>

#include <stddef.h>

struct identity;
struct settings;

/* Where the broker is that a run would use. False if there is none at any place we know. */
bool net_find_broker(char *path, size_t size);

/* Settles which network it is, where the broker is, which proxy the host uses, and the credentials;
 * their secrets are read unless it is a dry run. */
int net_apply(struct settings *settings, const struct identity *identity, struct brig_error *err);
