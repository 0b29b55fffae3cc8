/* SPDX-License-Identifier: MIT */
/* Plans the filesystem that a jail sees, as steps: a root, private directories, and the policy's
 * grants and masks mounted over them, the most specific last. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "jail/confine/identity.h"
#include "jail/plan/plan.h"

/* Adds the steps from the first mount to the pivot, and the matching Landlock rules. */
int view_plan(struct plan *plan, const struct brig_policy *policy,
              const struct jail_identity *identity, int landlock_abi, struct brig_error *err);

/* Without mounts: expresses the same policy as Landlock rules on the host tree. */
int view_plan_landlock_only(struct plan *plan, const struct brig_policy *policy,
                            const struct jail_identity *identity, int landlock_abi,
                            struct brig_error *err);

/* In a root built by brig three directories are symlinks; returns dest with such a prefix
 * resolved. */
const char *view_without_alias(struct arena *arena, const char *dest);
