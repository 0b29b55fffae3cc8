/* SPDX-License-Identifier: MIT */
/* Jails that wait for what they are for: nothing runs before the release, what comes with it is there,
 * and a held command is like one that was not. */
#include <dirent.h>
#include <poll.h>
#include <sys/stat.h>

#include "jail/job/job.h"
#include "jail/prepare/held.h"
#include "job_support.h"
#include "policy/policy.h"

/* Where the command waits: before its exec, or where it opens its file. */
static bool at_file;

static struct brig_policy *held_policy(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_error err = {0};
    int result = brig_policy_private(policy, BRIG_READ_ONLY, "/workspace", &err);
    if (result == 0)
        result = policy_late_file(policy, "/workspace/main.sh", 0444, &err);
    if (result == 0)
        result = brig_policy_workdir(policy, "/workspace", &err);
    policy->late_input = true;
    policy->late_open = at_file;
    tap_is_int(result, 0, "a policy with something late: %s", err.message);
    return policy;
}

static struct brig_job *start_held(const struct brig_policy *policy, const char *const *argv)
{
    struct brig_job *job = NULL;
    struct brig_error err = {0};
    struct brig_command command = {.argv = argv,
                                   .stdio = {{.kind = BRIG_STDIO_BYTES},
                                             {.kind = BRIG_STDIO_CAPTURE},
                                             {.kind = BRIG_STDIO_CAPTURE}}};
    if (!tap_ok(job_start_held(policy, &command, &job, &err) == 0, "a job is held"))
        tap_bail("no jail can be made here: %s", err.message);
    return job;
}

static const char *const shell[] = {"sh", "/workspace/main.sh", "argument", NULL};

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
    return result;
}

static void finish_held(struct brig_job *job, struct brig_result *ret_result)
{
    tap_is_int(brig_job_wait(job, NULL), 0, "it ends");
    tap_is_int(brig_job_result(job, ret_result, NULL), 0, "and has a result");
}

static bool comes_to_wait(struct brig_job *job)
{
    return await(brig_job_process(job, NULL) == 0 && job_is_waiting(job));
}

/* Until a limit of this time would have ended it. */
static void outlast(struct brig_job *job, uint64_t ms)
{
    uint64_t end = await_now_ms() + ms + 20;
    (void)await(brig_job_process(job, NULL) != 0 || await_now_ms() > end);
}

/* Whether the command's process is a shell already. */
static bool is_shell(const struct brig_job *job)
{
    char path[64], text[64] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", job->pid, job->pid);
    FILE *children = fopen(path, "re");
    int pid = children && fgets(text, sizeof text, children) ? atoi(text) : 0;
    (void)snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *comm = fopen(path, "re");
    bool shell_runs = comm && fgets(text, sizeof text, comm) && strcmp(text, "sh\n") == 0;
    if (children)
        (void)fclose(children);
    if (comm)
        (void)fclose(comm);
    return shell_runs;
}

static void test_waits(void)
{
    struct brig_policy *policy = held_policy();
    struct brig_result result;
    struct brig_job *job = start_held(policy, shell);
    tap_ok(job_is_at_file(job) == at_file, "it waits %s", at_file ? "at its file" : "to begin");
    tap_ok(comes_to_wait(job), "it waits");
    if (at_file)
        tap_ok(await(is_shell(job)), "and is a shell");
    else
        tap_ok(!is_shell(job), "and is none yet");
    tap_is_int(release(job, "echo code $1; cat; pwd; ls /workspace; exit 7", "input\n", 0), 0,
               "it is let go");
    tap_ok(!job_is_waiting(job), "and waits no more");
    finish_held(job, &result);
    is_exit(&result, 7, "a command that was held");
    tap_is_str(result.out.data, "code argument\ninput\n/workspace\nmain.sh\n",
               "its code, its argument, its input and its directory are there");
    tap_is_int(result.err.length, 0, "and no complaint");
    tap_is_int(release(job, "", "", 0), BRIG_E_STATE, "it cannot be let go twice");
    brig_result_done(&result);
    brig_job_free(job);
    brig_policy_free(policy);
}

static void test_clock(void)
{
    struct brig_policy *policy = held_policy();
    struct brig_result result;
    tap_is_int(brig_policy_limit(policy, BRIG_LIMIT_WALL_MS, 50, NULL), 0, "a short time");
    struct brig_job *job = start_held(policy, shell);
    outlast(job, 50);
    tap_ok(job_is_waiting(job), "waiting does not count");
    (void)release(job, "echo in time", "", (uint64_t)await_ms());
    finish_held(job, &result);
    is_exit(&result, 0, "the time is that of the release");
    brig_result_done(&result);
    brig_job_free(job);
    job = start_held(policy, shell);
    (void)release(job, "sleep 100", "", 100);
    finish_held(job, &result);
    is_outcome(&result, BRIG_TIMEOUT, "and it ends what takes longer");
    brig_result_done(&result);
    brig_job_free(job);
    brig_policy_free(policy);
}

/* What a command can see of itself, held and not. */
#define LOOK                                                                                       \
    "cat /proc/self/limits /proc/self/cgroup; "                                                    \
    "grep -v -E '^(Pid|Tgid|Ngid|PPid|NStgid|NSpid|NSpgid|NSsid|Vm|Rss|.*ctxt|Threads|Cpus|Mems|"  \
    "Speculation)' /proc/self/status; ls -l /proc/self/fd | sed 's/.* \\([0-9]*\\) -> /\\1 "       \
    "/;s/:.*//'; "                                                                                 \
    "cut -d' ' -f4- /proc/self/mountinfo; env | sort; umask; pwd; id; hostname; echo $0 $*; "      \
    "ls -la / /tmp /workspace /dev | grep -v ' proc$' | sed 's/[A-Z][a-z][a-z] .*[0-9]:[0-9]*//'"

static void test_same(void)
{
    struct brig_policy *policy = held_policy();
    struct brig_result held, plain;
    struct brig_job *job = start_held(policy, shell);
    (void)release(job, LOOK, "", (uint64_t)await_ms());
    finish_held(job, &held);
    struct brig_policy *other = new_policy();
    (void)brig_policy_private(other, BRIG_READ_ONLY, "/workspace", NULL);
    (void)brig_policy_file(other, "/workspace/main.sh", LOOK, strlen(LOOK), 0444, NULL);
    (void)brig_policy_workdir(other, "/workspace", NULL);
    struct brig_command command = {.argv = shell,
                                   .stdio = {{.kind = BRIG_STDIO_BYTES, .bytes = "", .length = 0},
                                             {.kind = BRIG_STDIO_CAPTURE},
                                             {.kind = BRIG_STDIO_CAPTURE}}};
    tap_is_int(brig_run(other, &command, &plain, NULL), 0, "the same, not held");
    tap_ok(held.out.length > 1000, "there is something to compare");
    is_same_text(held.out.data, plain.out.data, "a command sees no difference");
    brig_result_done(&held);
    brig_result_done(&plain);
    brig_job_free(job);
    brig_policy_free(other);
    brig_policy_free(policy);
}

static void test_programs(void)
{
    static const char *const missing[] = {"no-such-program", NULL};
    static const char *const text[] = {"/workspace/main.sh", "x", NULL};
    struct brig_policy *policy = held_policy();
    struct brig_result result;
    struct brig_job *job = start_held(policy, missing);
    (void)release(job, "", "", 0);
    finish_held(job, &result);
    is_exit(&result, 127, "a program that is not there");
    tap_has_str(result.err.data, "no-such-program", "it is named");
    brig_result_done(&result);
    brig_job_free(job);
    job = start_held(policy, text);
    (void)release(job, "echo hello", "", 0);
    finish_held(job, &result);
    is_exit(&result, 126, "a file that is no program");
    brig_result_done(&result);
    brig_job_free(job);
    brig_policy_free(policy);
}

static void test_given_up(void)
{
    struct brig_policy *policy = held_policy();
    struct brig_result result;
    struct brig_job *job = start_held(policy, shell);
    tap_is_int(brig_job_cancel(job, NULL), 0, "what waits can be ended");
    finish_held(job, &result);
    is_outcome(&result, BRIG_CANCELLED, "a job that was given up");
    tap_is_int(result.out.length, 0, "nothing ran");
    tap_is_int(release(job, "", "", 0), BRIG_E_STATE, "it cannot be let go any more");
    brig_result_done(&result);
    brig_job_free(job);
    brig_job_free(start_held(policy, shell));
    tap_ok(true, "and it can be freed while it waits");
    brig_policy_free(policy);
}

/* Somebody whose command knows itself how to wait. */
static void test_late_only(void)
{
    struct brig_policy *policy = held_policy();
    struct brig_result result;
    int pipes[2];
    tap_is_int(pipe2(pipes, O_CLOEXEC), 0, "a pipe");
    const char *const argv[] = {"sh", "-c", "read word <&9; cat /workspace/main.sh; echo $word",
                                NULL};
    const struct brig_pass_fd pass = {.fd = pipes[0], .number = 9};
    struct brig_command command = {.argv = argv,
                                   .stdio = {{.kind = BRIG_STDIO_BYTES},
                                             {.kind = BRIG_STDIO_CAPTURE},
                                             {.kind = BRIG_STDIO_CAPTURE}},
                                   .pass_fds = &pass,
                                   .pass_fd_count = 1};
    struct brig_job *job = NULL;
    (void)brig_policy_limit(policy, BRIG_LIMIT_WALL_MS, 50, NULL);
    tap_is_int(brig_start(policy, &command, &job, NULL), 0, "it runs, and waits by itself");
    outlast(job, 50);
    tap_ok(!job_is_waiting(job), "it is not held");
    tap_is_int(release(job, "late\n", "", (uint64_t)await_ms()), 0, "it gets what is late");
    tap_is_int(write(pipes[1], "now\n", 4), 4, "and is told");
    finish_held(job, &result);
    is_exit(&result, 0, "its clock began with the release");
    tap_is_str(result.out.data, "late\nnow\n", "what is late was there");
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    brig_result_done(&result);
    brig_job_free(job);
    brig_policy_free(policy);
}

/* The kernel gives up holding it after a while; it is not let go then as if it had its code. */
static void test_too_long(void)
{
    struct brig_policy *policy = held_policy();
    struct brig_job *job = start_held(policy, shell);
    job->started_us -= (JOB_AT_FILE_MS + 10000) * 1000;
    tap_is_int(release(job, "echo late", "", 0), BRIG_E_STATE,
               "who has waited too long is not let go");
    brig_job_free(job);
    job = start_held(policy, shell);
    job->started_us -= JOB_AT_FILE_MS / 2 * 1000;
    struct brig_result result;
    tap_is_int(release(job, "echo late", "", (uint64_t)await_ms()), 0,
               "who has waited for long is");
    finish_held(job, &result);
    tap_is_str(result.out.data, "late\n", "with its code");
    brig_result_done(&result);
    brig_job_free(job);
    brig_policy_free(policy);
}

static void test_refused(void)
{
    struct brig_policy *policy = held_policy();
    struct brig_error err = {0};
    tap_is_int(policy_late_file(policy, "/workspace/other", 0444, &err), BRIG_E_INVALID,
               "one late file is all");
    tap_has_str(err.message, "main.sh", "and the message names it");
    brig_policy_free(policy);
}

int main(void)
{
    for (int i = 0; i < 2; i++) {
        at_file = i == 1;
        test_waits();
        test_clock();
        test_same();
        test_programs();
        test_given_up();
    }
    test_too_long();
    at_file = false;
    test_late_only();
    test_refused();
    return tap_done();
}
