/* SPDX-License-Identifier: MIT */
/* What a broker has to know of a policy, in the form of net/broker_wire.h. Pure. */
#pragma once

#include <sys/types.h>

struct brig_policy;
struct str;

/* Appends the configuration, and to `secrets` the texts it counts, each ended by a NUL. With a uid of
 * (uid_t)-1 the broker stays who it is. */
void door_write_config(const struct brig_policy *policy, uid_t uid, gid_t gid, struct str *text,
                       struct str *secrets);
