/* SPDX-License-Identifier: MIT */
/* Environment variables that set default limits in every mode: names that operators of executors
 * already set. Options come after them and win. */
#include "variables.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "policy/policy.h"

static const struct variable {
    const char *name;
    enum brig_limit limit;
    uint64_t factor; /* from the variable's unit to the limit's */
    uint64_t max;
    unsigned flags; /* of parse_uint() */
} variables[] = {
    {"EXECUTOR_MEMORY_LIMIT_MB", BRIG_LIMIT_MEMORY_BYTES, 1 << 20, PARSE_SIZE_MAX >> 20, 0},
    {"EXECUTOR_CPU_LIMIT_PERCENT", BRIG_LIMIT_CPU_PERCENT, 1, POLICY_CPU_PERCENT_MAX, 0},
    {"SANDBOX_KILL_GRACE_MS", BRIG_LIMIT_GRACE_MS, 1, PARSE_DURATION_MS_MAX, PARSE_ZERO_OK},
};

int variables_apply(struct brig_policy *policy, struct brig_error *err)
{
    for (size_t i = 0; i < ARRAY_LENGTH(variables); i++) {
        const struct variable *row = &variables[i];
        const char *text = getenv(row->name);
        if (!text)
            continue;
        uint64_t value = 0;
        int status = parse_uint(text, row->max, row->flags, &value, err);
        unsigned asked = policy->limits_asked;
        if (status == 0)
            status = brig_policy_limit(policy, row->limit, value * row->factor, err);
        policy->limits_asked = asked; /* it is a default still, and no demand */
        if (status < 0)
            return brig_wrap(err, status, "environment variable %s", row->name);
    }
    return 0;
}
