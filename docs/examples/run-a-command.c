/* SPDX-License-Identifier: MIT */
/* The shortest use of libbrig: run one command in a sealed jail and say what became of it.
 *
 *     run-a-command /bin/echo hello */
#include <stdio.h>

#include <brig/brig.h>

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: run-a-command COMMAND [ARGUMENT...]\n");
        return 2;
    }

    /* A mode is a preset: sealed has the system directories, a private /tmp, and no network. */
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy) {
        fprintf(stderr, "run-a-command: out of memory\n");
        return 125;
    }

    /* What is left as it is has a safe meaning: stdin is /dev/null, the environment is empty. */
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = (const char *const *)(argv + 1);
    command.stdio[1].kind = command.stdio[2].kind = BRIG_STDIO_INHERIT;

    /* There is a result also when the jail could not be built, unless memory is short. */
    struct brig_error error = {0};
    struct brig_result *result = NULL;
    if (brig_run(policy, &command, &result, &error) < 0)
        fprintf(stderr, "run-a-command: %s\n", error.message);
    else
        printf("%s, status %d, %.1f ms\n", brig_outcome_name(brig_result_outcome(result)),
               brig_result_status(result), (double)brig_result_usage(result)->wall_us / 1000.0);

    int status = result ? brig_result_status(result) : 125;
    brig_result_free(result);
    brig_policy_free(policy);
    return status;
}
