/* SPDX-License-Identifier: MIT */
/* Give a command its input as bytes and take its output as bytes, with a bound on both streams.
 * What the command writes past the bound is drained, so it never blocks, and marked. */
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

static void show(const char *name, const struct brig_capture *capture, uint64_t written)
{
    printf("%s: kept %zu of %llu bytes%s\n", name, capture->length, (unsigned long long)written,
           capture->truncated ? " (truncated)" : "");
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
    const struct brig_command command = {
        .argv = argv,
        .stdio =
            {
                [0] = {.kind = BRIG_STDIO_BYTES, .bytes = input, .length = strlen(input)},
                [1] = {.kind = BRIG_STDIO_CAPTURE},
                [2] = {.kind = BRIG_STDIO_CAPTURE},
            },
    };

    struct brig_result result;
    if (brig_run(policy, &command, &result, &error) < 0) {
        fprintf(stderr, "capture-output: %s\n", error.message);
    } else {
        /* Output is bytes with a length; a NUL after it makes text easy to print. */
        fputs(result.out.data, stdout);
        show("stdout", &result.out, result.usage.out_bytes[0]);
        show("stderr", &result.err, result.usage.out_bytes[1]);
    }

    int status = brig_result_status(&result);
    brig_result_done(&result);
    brig_policy_free(policy);
    return status;
}
