/* SPDX-License-Identifier: MIT */
/* Reads a plan written by plan_flat.c, in a process that uses nothing else of this library. */
#include <linux/filter.h>
#include <stdint.h>

#include "jail/plan/plan_flat.h"

static const char *at(char *bytes, const void *offset)
{
    return offset ? bytes + (uintptr_t)offset : NULL;
}

bool plan_unflatten(void *bytes, size_t length, struct plan *ret_plan)
{
    struct plan_flat *flat = bytes;
    char *base = bytes;
    if (length < sizeof *flat || flat->magic != PLAN_FLAT_MAGIC ||
        flat->build != plan_flat_build() || flat->length != length)
        return false;
    struct plan plan = flat->plan;
    plan.steps = (struct plan_step *)(void *)(base + flat->steps);
    for (size_t i = 0; i < plan.step_count; i++) {
        plan.steps[i].path = at(base, plan.steps[i].path);
        plan.steps[i].data = at(base, plan.steps[i].data);
    }
    plan.rules = (struct plan_rule *)(void *)(base + flat->rules);
    for (size_t i = 0; i < plan.rule_count; i++)
        plan.rules[i].path = at(base, plan.rules[i].path);
    flat->filters[0] = (struct sock_fprog){
        .len = flat->seccomp_count, .filter = (struct sock_filter *)(void *)(base + flat->seccomp)};
    flat->filters[1] =
        (struct sock_fprog){.len = flat->seccomp_told_count,
                            .filter = (struct sock_filter *)(void *)(base + flat->seccomp_told)};
    plan.seccomp = flat->seccomp ? &flat->filters[0] : NULL;
    plan.seccomp_told = flat->seccomp_told ? &flat->filters[1] : NULL;
    plan.workdir = at(base, (const void *)(uintptr_t)flat->workdir);
    plan.arena = (struct arena){0};
    plan.door = NULL;
    plan.programs = plan.argv = plan.script_argv = plan.envp = NULL;
    plan.environment = NULL;
    plan.masks = NULL;
    plan.places = NULL;
    plan.owned_fds = NULL;
    plan.mask_count = plan.place_count = plan.owned_count = plan.fd_count = plan.join_count = 0;
    plan.cgroup_fd = plan.init_fd = plan.join_userns = plan.join_mntns = plan.join_netns = -1;
    plan.init_mode = "n";
    *ret_plan = plan;
    return true;
}
