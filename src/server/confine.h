/* SPDX-License-Identifier: MIT */
/* How brigd's http and history processes confine themselves. */
#pragma once

#include <stdint.h>

struct brig_error;
struct brig_policy;

/* A seccomp filter on top of libbrig's profile. */
struct confine_filter {
    uint32_t otherwise; /* SCMP_ACT_… for calls without a rule */
    int (*add_rules)(void *context,
                     const void *argument); /* adds to an scmp_filter_ctx; 0 on success */
    const void *argument;
};

/* Restricts the calling process permanently. First applies the policy, in which the caller has set
 * view and network; this function adds the profile `dev` and a limit on open files only. Then
 * installs the filter, which allows less than the profile. `who` is for messages. */
int confine_process(const char *who, struct brig_policy *policy, uint64_t open_files,
                    const struct confine_filter *filter, struct brig_error *err);
