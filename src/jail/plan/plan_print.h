/* SPDX-License-Identifier: MIT */
/* A plan as text: its effects, not its steps. */
#pragma once

#include "jail/confine/identity.h"
#include "jail/plan/plan.h"

struct str;

/* Appends sections of lines, each headed by its name and a colon. The text does not depend on the
 * order of steps, on fd or slot numbers, or on the architecture: two plans for the same jail print
 * the same. `grouped` are the resources (enum cgroup_resource) that a cgroup limits. `envp` is the
 * caller's environment: a variable that is passed on unchanged is printed without its value. */
int plan_print(const struct plan *plan, const struct brig_policy *policy,
               const struct jail_identity *identity, unsigned grouped, const char *const *envp,
               struct str *out, struct brig_error *err);

/* Sections in plan_print_confine.c. */
void plan_print_landlock(struct str *out, const struct plan *plan, int abi);
void plan_print_filter(struct str *out, const struct plan *plan, const struct brig_policy *policy);
void plan_print_limits(struct str *out, const struct plan *plan, const struct brig_policy *policy,
                       unsigned grouped);
void plan_print_network(struct str *out, const struct plan *plan, const struct brig_policy *policy);
