/* SPDX-License-Identifier: MIT */
/* Drive two jails from one poll() loop. A job has one fd, readable when there is something to do;
 * the library has no thread, no signal handler and no timer of its own that you would notice. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

enum { SLOW, QUICK, JOBS };

static int start(const struct brig_policy *policy, const char *script, struct brig_job **ret_job)
{
    struct brig_error error = {0};
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct brig_command command = BRIG_COMMAND_INIT;
    command.argv = argv;
    command.stdio[0].kind = BRIG_STDIO_PIPE;
    command.stdio[1].kind = command.stdio[2].kind = BRIG_STDIO_CAPTURE;
    int code = brig_start(policy, &command, ret_job, &error);
    if (code < 0)
        fprintf(stderr, "event-loop: %s\n", error.message);
    return code;
}

/* The job is over: its result is moved out, printed and released. */
static int finish(struct brig_job *job, const char *name)
{
    struct brig_error error = {0};
    struct brig_result *result = NULL;
    if (brig_job_result(job, &result, &error) < 0) {
        fprintf(stderr, "event-loop: %s\n", error.message);
        return 1;
    }
    int status = brig_result_status(result);
    printf("%s: %s, status %d, output: %s", name, brig_outcome_name(brig_result_outcome(result)),
           status, brig_result_output(result, 1, NULL, NULL));
    brig_result_free(result);
    return status;
}

/* Runs until all jobs are over. Other fds of the program would stand in the same array. */
static int loop(struct brig_job **jobs, const char *const *names)
{
    int status = 0;
    size_t open = JOBS;
    while (open > 0) {
        struct pollfd fds[JOBS];
        for (size_t i = 0; i < JOBS; i++) /* poll() passes over negative fds */
            fds[i] = (struct pollfd){.fd = jobs[i] ? brig_job_fd(jobs[i]) : -1, .events = POLLIN};
        if (poll(fds, JOBS, -1) < 0) {
            if (errno == EINTR)
                continue;
            fprintf(stderr, "event-loop: poll: %s\n", strerror(errno));
            return 1;
        }
        for (size_t i = 0; i < JOBS; i++) {
            struct brig_error error = {0};
            if (!jobs[i] || !fds[i].revents)
                continue;
            int over = brig_job_process(jobs[i], &error);
            if (over == 0)
                continue;
            if (over < 0)
                fprintf(stderr, "event-loop: %s\n", error.message);
            status |= over < 0 ? 1 : finish(jobs[i], names[i]);
            brig_job_free(jobs[i]);
            jobs[i] = NULL;
            open--;
            if (jobs[SLOW]) /* its input ends with the quick job */
                (void)brig_job_close_stream(jobs[SLOW], 0, NULL);
        }
    }
    return status;
}

int main(void)
{
    static const char *const names[JOBS] = {"slow", "quick"};
    static const char *const scripts[JOBS] = {"cat; echo late", "echo early"};
    struct brig_job *jobs[JOBS] = {NULL};
    int status = 1;
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);

    /* One policy serves any number of runs. */
    if (policy && start(policy, scripts[SLOW], &jobs[SLOW]) == 0 &&
        start(policy, scripts[QUICK], &jobs[QUICK]) == 0)
        status = loop(jobs, names);

    /* Freeing a job that still runs kills its whole tree; NULL is fine. */
    for (size_t i = 0; i < JOBS; i++)
        brig_job_free(jobs[i]);
    brig_policy_free(policy);
    return status;
}
