/* SPDX-License-Identifier: MIT */
/* Applies libbrig's restrictions to the running process, then an additional filter. */
#include "server/confine.h"

#include <seccomp.h>

#include <brig/brig.h>
#include <brig/call.h>

#include "base/error.h"

static int complete_policy(struct brig_policy *policy, uint64_t open_files, struct brig_error *err)
{
    int result = brig_policy_seccomp(policy, BRIG_SECCOMP_DEV, err);
    if (result == 0)
        result = brig_policy_on_unsupported(policy, BRIG_UNSUPPORTED_WARN, err);
    for (int i = 0; result == 0 && i < BRIG_LIMIT_COUNT_; i++)
        result = brig_policy_limit(policy, (enum brig_limit)i,
                                   i == BRIG_LIMIT_OPEN_FILES ? open_files : 0, err);
    return result;
}

static int install(const struct confine_filter *filter, struct brig_error *err)
{
    scmp_filter_ctx context = seccomp_init(filter->otherwise);
    if (!context)
        return brig_fail_nomem(err);
    int status = filter->add_rules(context, filter->argument);
    if (status == 0)
        status = seccomp_load(context);
    seccomp_release(context);
    if (status != 0)
        return brig_fail(err, BRIG_E_SYSTEM, status < 0 ? -status : 0,
                         "its syscall filter cannot be installed");
    return 0;
}

int confine_process(const char *who, struct brig_policy *policy, uint64_t open_files,
                    const struct confine_filter *filter, struct brig_error *err)
{
    int result = complete_policy(policy, open_files, err);
    if (result == 0)
        result = brig_confine_self(policy, NULL, err);
    if (result == 0)
        result = install(filter, err);
    return result < 0 ? brig_wrap(err, result, "the %s process cannot confine itself", who) : 0;
}
