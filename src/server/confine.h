/* SPDX-License-Identifier: MIT */
/* How brigd's http and history processes confine themselves. */
#pragma once

#include <stdint.h>

struct brig_error;
struct brig_policy;

/* A seccomp filter on top of libbrig's profile. */
struct confine_filter {
    uint32_t otherwise; /* SCMP_ACT_…, for calls without a rule */
    int (*add_rules)(void *context,
                     const void *argument); /* to an scmp_filter_ctx; 0 if all went well */
    const void *argument;
};

/* Restricts the calling process for good: by the policy, which has its view and network and gets the profile
 * `dev` and no limit but the number of open files; then by the filter, which is narrower. `who` is for messages. */
int confine_process(const char *who, struct brig_policy *policy, uint64_t open_files,
                    const struct confine_filter *filter, struct brig_error *err);
