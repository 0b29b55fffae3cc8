/* SPDX-License-Identifier: MIT */
/* Start many jails of one policy quickly: a template prepares once what does not depend on the run.
 * Each run still has a /tmp, a process tree and a network of its own; nothing writable is shared. */
#include <stdio.h>

#include <brig/brig.h>

#define RUNS 5

/* Each run looks for what the run before left in /tmp, and leaves something. */
static const char script[] = "if [ -e /tmp/left ]; then echo shared; else echo fresh; fi;"
                             "echo \"$1\" >/tmp/left";

static int run(struct brig_template *template_, int number, struct brig_error *error)
{
    char word[16];
    (void)snprintf(word, sizeof(word), "%d", number);
    const char *const argv[] = {"/bin/sh", "-c", script, "run", word, NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.stdio[1].kind = BRIG_STDIO_CAPTURE;
    command.stdio[2].kind = BRIG_STDIO_INHERIT;
    struct brig_job *job = NULL;
    struct brig_result *result = NULL;
    int code = brig_template_start(template_, &command, &job, error);
    if (code == 0)
        code = brig_job_wait(job, error);
    if (code == 0)
        code = brig_job_result(job, &result, error);
    if (code == 0) {
        printf("run %d: %s", number, brig_result_output(result, 1, NULL, NULL));
        if (brig_result_status(result) != 0)
            printf("run %d: %s\n", number, brig_outcome_name(brig_result_outcome(result)));
    }
    brig_result_free(result);
    brig_job_free(job);
    return code;
}

int main(void)
{
    struct brig_error error = {0};
    struct brig_template *template_ = NULL;
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    int code = policy ? brig_template_new(policy, &template_, &error) : BRIG_E_NOMEM;

    /* The template has a copy of the policy. */
    brig_policy_free(policy);
    for (int i = 1; i <= RUNS && code == 0; i++)
        code = run(template_, i, &error);
    if (code < 0)
        fprintf(stderr, "template: %s\n", error.message);
    brig_template_free(template_);
    return code < 0 ? 125 : 0;
}
