/* SPDX-License-Identifier: MIT */
/* The plan that a run would have, in words. */
#pragma once

#include <brig/brig.h>

struct str;

/* Appends what brig_start() would make of a policy that has facts and a command, see plan_print(). It
 * thinks as that does, up to where the jail would be made, and makes nothing on the host. */
int job_foresee(const struct brig_policy *policy, const struct brig_command *command,
                struct str *out, struct brig_error *err);
