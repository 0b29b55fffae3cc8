/* SPDX-License-Identifier: MIT */
/* Give a command its input as bytes and take its output as bytes, with a bound on both streams.
 * What the command writes past the bound is drained, so it never blocks, and marked. */
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

static void show(const char *name, const struct brig_result *result, int stream)
{
    size_t length = 0;
    int truncated = 0;
    uint64_t written = brig_result_usage(result)->out_bytes[stream - 1];
    (void)brig_result_output(result, stream, &length, &truncated);
    printf("%s: kept %zu of %llu bytes%s\n", name, length, (unsigned long long)written,
           truncated ? " (truncated)" : "");
}

int main(void)
{
    struct brig_error error = {0};
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    if (!policy)
        return 125;
    if (brig_policy_limit(policy, BRIG_LIMIT_OUTPUT_BYTES, 1000, &error) < 0) {
        fprintf(stderr, "capture-output: %s\n", error.message);
        brig_policy_free(policy);
        return 125;
    }

    /* The bytes stay ours and must live until the job is done; brig_run() returns after that. */
    static const char input[] = "one two three\n";
    static const char script[] = "read -r line; echo \"heard: $line\";"
                                 "i=0; while [ $i -lt 500 ]; do echo noise >&2; i=$((i + 1)); done";
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.stdio[0].kind = BRIG_STDIO_BYTES;
    command.stdio[0].bytes = input;
    command.stdio[0].length = strlen(input);
    command.stdio[1].kind = BRIG_STDIO_CAPTURE;
    command.stdio[2].kind = BRIG_STDIO_CAPTURE;

    struct brig_result *result = NULL;
    if (brig_run(policy, &command, &result, &error) < 0) {
        fprintf(stderr, "capture-output: %s\n", error.message);
    } else {
        /* Output is bytes with a length; a NUL after it makes text easy to print. */
        fputs(brig_result_output(result, 1, NULL, NULL), stdout);
        show("stdout", result, 1);
        show("stderr", result, 2);
    }

    int status = result ? brig_result_status(result) : 125;
    brig_result_free(result);
    brig_policy_free(policy);
    return status;
}
