/* SPDX-License-Identifier: MIT */
/* A jail prepared ahead: what template.c makes and job_start.c uses. */
#pragma once

#include "jail/plan.h"
#include "jail/spawn.h"

struct brig_template {
    struct brig_policy *policy;
    bool no_group;         /* for its limits, which are defaults */
    bool ready;            /* false: nothing could be prepared, runs are built from scratch */
    struct plan compiled;  /* owns the memory and fds of the parts */
    struct plan fresh;     /* what each run does; copied for each */
    struct spawned holder; /* keeps the user and the mount namespace */
    unsigned networks;     /* ready or ordered */
    struct spawned maker;  /* keeps network namespaces ready; pid 0 where none are needed */
};

/* The plan for one run, to be completed with plan_add_command(). Returns the fd of the network
 * namespace it takes, to be closed after the start, or -1 where it makes its own. */
int template_plan(struct brig_template *template, struct plan *ret_plan);

/* After a run that took a network namespace has started: orders more if few are left. */
void template_refill(struct brig_template *template);
