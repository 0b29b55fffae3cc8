/* SPDX-License-Identifier: MIT */
/* The filesystem a jail sees, planned as steps: a root, private directories, and the policy's grants
 * and masks laid over them, the most specific last. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "jail/confine/identity.h"
#include "jail/plan/plan.h"

/* Adds the steps from the first mount to the pivot, and the Landlock rules that go with them. */
int view_plan(struct plan *plan, const struct brig_policy *policy,
              const struct jail_identity *identity, int landlock_abi, struct brig_error *err);

/* Without mounts: the same policy as Landlock rules on the host's own tree. */
int view_plan_landlock_only(struct plan *plan, const struct brig_policy *policy,
                            const struct jail_identity *identity, int landlock_abi,
                            struct brig_error *err);

/* In a root of ours three directories are symlinks: what is below them is where they point. */
const char *view_without_alias(struct arena *arena, const char *dest);
