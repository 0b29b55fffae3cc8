/* SPDX-License-Identifier: MIT */
/* The network of a run: what follows from all rules together, and what only the system can tell. */
#pragma once

#include <brig/brig.h>

struct identity;
struct settings;

/* Settles which network it is, where the broker is, which proxy the host uses, and the credentials;
 * their secrets are read unless it is a dry run. */
int net_apply(struct settings *settings, const struct identity *identity, struct brig_error *err);
