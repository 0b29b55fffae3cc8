/* SPDX-License-Identifier: MIT */
/* Bound a run: wall clock, CPU time, memory, files. A command that outlives its time is asked to
 * end (TERM), given a grace, then killed with everything it started. */
#include <stdio.h>

#include <brig/brig.h>

static const struct {
    enum brig_limit limit;
    uint64_t value;
} limits[] = {
    {BRIG_LIMIT_WALL_MS, 3000},        {BRIG_LIMIT_CPU_MS, 2000},
    {BRIG_LIMIT_GRACE_MS, 100},        {BRIG_LIMIT_ADDRESS_SPACE, 512u << 20},
    {BRIG_LIMIT_FILE_SIZE, 10u << 20}, {BRIG_LIMIT_OPEN_FILES, 64},
};

int main(void)
{
    struct brig_error error = {0};
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        return 125;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (brig_policy_limit(policy, limits[i].limit, limits[i].value, &error) < 0) {
            fprintf(stderr, "limits: %s\n", error.message);
            brig_policy_free(policy);
            return 125;
        }
    }

    /* This command will not end by itself, and does not listen to TERM either. */
    const char *const argv[] = {"/bin/sh", "-c", "trap '' TERM; while :; do sleep 60; done", NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;

    struct brig_result *result = NULL;
    if (brig_run(policy, &command, &result, &error) < 0)
        fprintf(stderr, "limits: %s\n", error.message);
    else
        printf("%s, ended by signal %d after %llu ms\n",
               brig_outcome_name(brig_result_outcome(result)), brig_result_signal(result),
               (unsigned long long)(brig_result_usage(result)->wall_us / 1000));

    /* What this system could not enforce is part of the result, never silent. */
    for (size_t i = 0; result && i < brig_result_unenforced_count(result); i++)
        printf("not enforced: %s\n", brig_result_unenforced(result, i));

    int status = result ? brig_result_status(result) : 125; /* 124, as timeout(1) has it */
    brig_result_free(result);
    brig_policy_free(policy);
    return status;
}
