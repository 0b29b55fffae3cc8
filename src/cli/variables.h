/* SPDX-License-Identifier: MIT */
/* Environment variables that change defaults. */
#pragma once

#include <brig/brig.h>

/* Applies EXECUTOR_MEMORY_LIMIT_MB, EXECUTOR_CPU_LIMIT_PERCENT and SANDBOX_KILL_GRACE_MS as defaults to
 * the policy; a bad value is an error that names the variable. */
int variables_apply(struct brig_policy *policy, struct brig_error *err);
