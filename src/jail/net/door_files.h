/* SPDX-License-Identifier: MIT */
/* What a broker is given to read: sealed files in memory. */
#pragma once

#include <sys/types.h>

struct brig_error;
struct brig_policy;

/* The configuration and, if there are any, the secrets, else -1. The caller closes both. With a uid
 * of (uid_t)-1 the broker stays who it is. */
int door_make_files(const struct brig_policy *policy, uid_t uid, gid_t gid, int *ret_config,
                    int *ret_secrets, struct brig_error *err);
