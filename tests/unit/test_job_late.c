/* SPDX-License-Identifier: MIT */
/* Jails whose file and input come late: the command waits for them by itself, and its clock with it. */
#include <fcntl.h>

#include "jail/job/job.h"
#include "job_support.h"
#include "policy/policy.h"

static struct brig_policy *late_policy(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_error err = {0};
    int result = brig_policy_private(policy, BRIG_READ_ONLY, "/workspace", &err);
    if (result == 0)
        result = policy_late_file(policy, "/workspace/main.sh", 0444, &err);
    if (result == 0)
        result = brig_policy_workdir(policy, "/workspace", &err);
    policy->late_input = true;
    tap_is_int(result, 0, "a policy with something late: %s", err.message);
    return policy;
}

/* The end of the pipe that its command waits at; -1 while there is none. */
static int told = -1;

/* A shell that waits for a line before it runs its file. */
static struct brig_job *start_late(const struct brig_policy *policy)
{
    static const char *const argv[] = {
        "sh", "-c", "read word <&9; exec 9<&-; . /workspace/main.sh", "sh", "argument", NULL};
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        tap_bail("pipe: %s", strerror(errno));
    if (told >= 0)
        (void)close(told);
    told = pipes[1];
    const struct brig_pass_fd pass = {.fd = pipes[0], .number = 9};
    struct brig_command command = {.size = sizeof(struct brig_command),
                                   .argv = argv,
                                   .stdio = {{.kind = BRIG_STDIO_BYTES},
                                             {.kind = BRIG_STDIO_CAPTURE},
                                             {.kind = BRIG_STDIO_CAPTURE}},
                                   .pass_fds = &pass,
                                   .pass_fd_count = 1};
    struct brig_job *job = NULL;
    struct brig_error err = {0};
    if (!tap_ok(brig_start(policy, &command, &job, &err) == 0, "it runs, and waits by itself"))
        tap_bail("no jail can be made here: %s", err.message);
    (void)close(pipes[0]);
    return job;
}

static int release(struct brig_job *job, const char *code, const char *input, uint64_t wall_ms)
{
    struct job_late late = {.code = code,
                            .code_length = strlen(code),
                            .input = input,
                            .input_length = strlen(input),
                            .wall_ms = wall_ms};
    struct brig_error err = {0};
    int result = job_release(job, &late, &err);
    if (result < 0)
        tap_diag("%s", err.message);
    else
        tap_is_int(write(told, "now\n", 4), 4, "its command is told");
    return result;
}

static void finish_late(struct brig_job *job, struct brig_result *ret_result)
{
    tap_is_int(brig_job_wait(job, NULL), 0, "it ends");
    tap_is_int(job_take_result(job, ret_result, NULL), 0, "and has a result");
}

/* Until a limit of this time would have ended it. */
static void outlast(struct brig_job *job, uint64_t ms)
{
    uint64_t end = await_now_ms() + ms + 20;
    (void)await(brig_job_process(job, NULL) != 0 || await_now_ms() > end);
}

static void test_waits(void)
{
    struct brig_policy *policy = late_policy();
    struct brig_result result;
    struct brig_job *job = start_late(policy);
    tap_ok(job_is_waiting(job), "something is awaited");
    tap_is_int(release(job, "echo code $1; cat; pwd; ls /workspace; exit 7", "input\n", 0), 0,
               "it gets what is late");
    tap_ok(!job_is_waiting(job), "and waits no more");
    finish_late(job, &result);
    is_exit(&result, 7, "a command that waited");
    tap_is_str(result.out.data, "code argument\ninput\n/workspace\nmain.sh\n",
               "its code, its argument, its input and its directory are there");
    tap_is_int(result.err.length, 0, "and no complaint");
    tap_is_int(release(job, "", "", 0), BRIG_E_STATE, "it cannot be let go twice");
    result_done(&result);
    brig_job_free(job);
    brig_policy_free(policy);
}

static void test_clock(void)
{
    struct brig_policy *policy = late_policy();
    struct brig_result result;
    tap_is_int(brig_policy_limit(policy, BRIG_LIMIT_WALL_MS, 50, NULL), 0, "a short time");
    struct brig_job *job = start_late(policy);
    outlast(job, 50);
    tap_ok(job_is_waiting(job), "waiting does not count");
    (void)release(job, "echo in time", "", (uint64_t)await_ms());
    finish_late(job, &result);
    is_exit(&result, 0, "the time is that of the release");
    result_done(&result);
    brig_job_free(job);
    job = start_late(policy);
    (void)release(job, "sleep 100", "", 100);
    finish_late(job, &result);
    is_outcome(&result, BRIG_TIMEOUT, "and it ends what takes longer");
    result_done(&result);
    brig_job_free(job);
    brig_policy_free(policy);
}

static void test_given_up(void)
{
    struct brig_policy *policy = late_policy();
    struct brig_result result;
    struct brig_job *job = start_late(policy);
    tap_is_int(brig_job_cancel(job, NULL), 0, "what waits can be ended");
    finish_late(job, &result);
    is_outcome(&result, BRIG_CANCELLED, "a job that was given up");
    tap_is_int(result.out.length, 0, "nothing ran");
    tap_is_int(release(job, "", "", 0), BRIG_E_STATE, "it cannot be let go any more");
    result_done(&result);
    brig_job_free(job);
    brig_job_free(start_late(policy));
    tap_ok(true, "and it can be freed while it waits");
    brig_policy_free(policy);
}

static void test_refused(void)
{
    struct brig_policy *policy = late_policy();
    struct brig_error err = {0};
    tap_is_int(policy_late_file(policy, "/workspace/other", 0444, &err), BRIG_E_INVALID,
               "one late file is all");
    tap_has_str(err.message, "main.sh", "and the message names it");
    brig_policy_free(policy);
}

int main(void)
{
    test_waits();
    test_clock();
    test_given_up();
    test_refused();
    return tap_done();
}
