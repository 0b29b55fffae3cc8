/* SPDX-License-Identifier: MIT */
/* The rules that the guard adds to a policy: private git directories and read-only files. */
#pragma once

#include "guard/run.h"

/* Adds the rules for everything that the policy grants. */
int rules_add(struct guard *guard, struct brig_policy *policy, const struct guard_options *options,
              struct str *notes, struct brig_error *err);
