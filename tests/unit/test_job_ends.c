/* SPDX-License-Identifier: MIT */
/* The ways a run ends, and that nothing of it is left: limits, grace, cancelling, stragglers,
 * freeing; and driving a job from an event loop. */
#include "job_support.h"

/* ---- Ends --------------------------------------------------------------------------------- */

static void test_wall_timeout(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    set_limit(policy, BRIG_LIMIT_WALL_MS, 200);
    set_limit(policy, BRIG_LIMIT_GRACE_MS, 0);
    (void)run_shell(policy, "sleep 1000", &result);
    is_outcome(&result, BRIG_TIMEOUT, "a command over its wall time");
    tap_is_int(result.signal, SIGKILL, "without a grace it is killed");
    tap_is_int(brig_result_status(&result), 124, "the status is 124");
    result_done(&result);
    set_limit(policy, BRIG_LIMIT_WALL_MS, (uint64_t)await_ms());
    (void)run_shell(policy, "exit 2", &result);
    is_exit(&result, 2, "a command within its wall time is not disturbed");
    result_done(&result);
    brig_policy_free(policy);
}

/* The caller looks after its job when that has ended in time, and the time is over as well. */
static void test_late_caller(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    struct shell shell;
    int go[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        tap_bail("pipe2: %s", strerror(errno));
    shell_init(&shell, "read -r word; exit 5");
    shell.command.stdio[0] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = go[0]};
    set_limit(policy, BRIG_LIMIT_WALL_MS, (uint64_t)await_ms());
    set_limit(policy, BRIG_LIMIT_GRACE_MS, 0);
    struct brig_job *job = start(policy, &shell.command);
    if (!job)
        tap_bail("no job, no test");
    tap_ok(write(go[1], "go\n", 3) == 3, "a job gets its word");
    tap_ok(await_readable(job->pidfd), "the jail ends, and nobody looks");
    job->wall_deadline_us = 1;
    job_arm_timer(job);
    tap_ok(await_readable(job->timer), "until its time is over");
    (void)finish(job, &result);
    is_exit(&result, 5, "it has ended with its own exit status");
    result_done(&result);
    (void)close(go[0]);
    (void)close(go[1]);
    brig_policy_free(policy);
}

/* Runs a script until it came so far as to write `wanted`: with more time, and a longer grace unless
 * that is given, each time. */
static void run_with_grace(const char *script, const char *wanted, uint64_t grace_ms,
                           struct brig_result *ret_result)
{
    for (uint64_t ms = 250;; ms *= 4) {
        struct brig_policy *policy = new_policy();
        set_limit(policy, BRIG_LIMIT_WALL_MS, ms);
        set_limit(policy, BRIG_LIMIT_GRACE_MS, grace_ms ? grace_ms : ms);
        (void)run_shell(policy, script, ret_result);
        brig_policy_free(policy);
        const char *out = ret_result->out.data;
        if (ms * 4 > (uint64_t)await_ms() || (out && strcmp(out, wanted) == 0))
            return;
        result_done(ret_result);
    }
}

static void test_grace(void)
{
    struct brig_result result;
    /* If the rest of the grace were waited for, this would take half an hour. */
    run_with_grace("trap 'echo bye; exit 3' TERM; echo here; sleep 1000 & wait", "here\nbye\n",
                   1800000, &result);
    is_outcome(&result, BRIG_TIMEOUT, "a command that tidies up in its grace");
    tap_is_str(result.out.data, "here\nbye\n", "it can still say something");
    result_done(&result);

    run_with_grace("trap 'echo no' TERM; echo here; while :; do sleep 1000 & wait; done",
                   "here\nno\n", 0, &result);
    is_outcome(&result, BRIG_TIMEOUT, "a command that does not obey TERM");
    tap_is_int(result.signal, SIGKILL, "is killed");
    tap_is_str(result.out.data, "here\nno\n", "after TERM and a grace, with what it wrote");
    result_done(&result);
}

static void test_cpu_timeout(void)
{
    static const char *const scripts[] = {
        "while :; do :; done",
        "(while :; do :; done) & (while :; do :; done) & wait",
    };
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct brig_policy *policy = new_policy();
        struct brig_result result;
        set_limit(policy, BRIG_LIMIT_CPU_MS, 300);
        set_limit(policy, BRIG_LIMIT_GRACE_MS, 0);
        set_limit(policy, BRIG_LIMIT_WALL_MS, (uint64_t)await_ms());
        (void)run_shell(policy, scripts[i], &result);
        is_outcome(&result, BRIG_CPU_TIMEOUT,
                   i ? "a tree over its CPU time" : "a command over its CPU time");
        tap_ok(result.usage.cpu_user_us + result.usage.cpu_sys_us > 0, "its CPU time is counted");
        result_done(&result);
        brig_policy_free(policy);
    }
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    set_limit(policy, BRIG_LIMIT_CPU_MS, (uint64_t)await_ms());
    (void)run_shell(policy, "exit 2", &result);
    is_exit(&result, 2, "a command within its CPU time is not disturbed");
    result_done(&result);
    brig_policy_free(policy);
}

static void test_cancel(void)
{
    struct brig_error err = {0};
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    struct shell shell;
    set_limit(policy, BRIG_LIMIT_GRACE_MS, 0);
    shell_init(&shell, "sleep 60");
    struct brig_job *job = start(policy, &shell.command);
    if (!tap_ok(job != NULL, "a job starts"))
        tap_bail("no job, no test");
    tap_ok(brig_job_pid(job) > 0 && kill(brig_job_pid(job), 0) == 0, "it has a process");
    tap_is_int(brig_job_terminal(job), -1, "it has no terminal");
    tap_is_int(brig_job_take_stop(job), 0, "it was not stopped");
    tap_is_int(job_take_result(job, &result, &err), BRIG_E_STATE,
               "there is no result before the end");
    tap_is_int(brig_job_process(job, &err), 0, "processing it says that it goes on");
    tap_is_int(brig_job_cancel(job, &err), 0, "it can be cancelled");
    (void)finish(job, &result);
    is_outcome(&result, BRIG_CANCELLED, "a cancelled job");
    result_done(&result);

    struct leash leash;
    shell_init(&shell, "trap 'exit 9' USR1; echo >&7; while :; do sleep 1; done");
    leash_init(&leash, &shell.command);
    job = start(policy, &shell.command);
    tap_ok(job && leash_ready(&leash), "a job that waits for a signal");
    tap_is_int(brig_job_signal(job, SIGUSR1, &err), 0, "it can be sent");
    (void)finish(job, &result);
    is_exit(&result, 9, "it arrives at the command");
    tap_ok(leash_ends(&leash), "nothing is left of the job");
    result_done(&result);
    brig_policy_free(policy);
}

static void test_stragglers(void)
{
    static const struct {
        const char *script;
        const char *name;
    } cases[] = {
        {"setsid sleep 1000 >/dev/null 2>&1 </dev/null & exit 4", "a daemonised grandchild"},
        {"(setsid sh -c 'trap \"\" TERM HUP; sleep 1000; sleep 1000' &) & exit 4",
         "an orphan deaf to signals"},
        {"sleep 1000 & echo early; exit 4", "a child that holds stdout"},
        {"exec >&- 2>&-; n=0; while [ $n -lt 10000 ]; do n=$((n + 1)); done; exit 4",
         "a command that closes stdout and lingers"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct brig_policy *policy = new_policy();
        struct brig_result result;
        struct shell shell;
        struct leash leash;
        shell_init(&shell, cases[i].script);
        leash_init(&leash, &shell.command);
        (void)run(policy, &shell.command, &result);
        is_exit(&result, 4, "the exit code is the command's");
        tap_ok(leash_ends(&leash), "%s is gone after the run", cases[i].name);
        result_done(&result);
        brig_policy_free(policy);
    }
}

static void test_free_running(void)
{
    struct brig_policy *policy = new_policy();
    struct shell shell;
    struct leash leash;
    shell_init(&shell, "trap '' TERM; echo >&7; setsid sleep 60 & sleep 60");
    leash_init(&leash, &shell.command);
    struct brig_job *job = start(policy, &shell.command);
    tap_ok(job && leash_ready(&leash), "a job that runs");
    brig_job_free(job);
    tap_ok(leash_ends(&leash), "freeing it kills its whole tree");
    tap_ok(no_children(), "and reaps it");
    brig_job_free(NULL);
    brig_template_free(NULL);
    brig_policy_free(NULL);
    tap_pass("freeing nothing is fine");
    brig_policy_free(policy);
}

static void test_poll(void)
{
    struct brig_error err = {0};
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    struct shell shell;
    struct leash leash;
    int go[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        tap_bail("pipe2: %s", strerror(errno));
    shell_init(&shell, "echo >&7; read -r word; echo \"$word\"; exit 8");
    shell.command.stdio[0] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = go[0]};
    leash_init(&leash, &shell.command);
    struct brig_job *job = start(policy, &shell.command);
    if (!job || !leash_ready(&leash))
        tap_bail("no job, no test");
    struct pollfd poll_fd = {.fd = brig_job_fd(job), .events = POLLIN};
    /* It waits for its word: once the start is dealt with, there is nothing to do. */
    tap_ok(await(poll(&poll_fd, 1, 0) == 0 || (brig_job_process(job, &err), false)),
           "the fd of a job with nothing to do is quiet");
    tap_ok(write(go[1], "word\n", 5) == 5, "the job gets its word");
    int over = 0, rounds = 0;
    while (over == 0 && rounds++ < 1000) {
        if (!await_readable(poll_fd.fd))
            break;
        over = brig_job_process(job, &err);
    }
    tap_is_int(over, 1, "polling and processing lead to the end");
    tap_is_int(brig_job_process(job, &err), 1, "processing after the end says so again");
    tap_is_int(brig_job_wait(job, &err), 0, "waiting after the end returns");
    tap_is_int(job_take_result(job, &result, &err), 0, "then there is a result");
    is_exit(&result, 8, "with the exit code");
    tap_is_str(result.out.data, "word\n", "and the output");
    brig_job_free(job);
    tap_ok(leash_ends(&leash), "nothing is left of it");
    (void)close(go[0]);
    (void)close(go[1]);
    result_done(&result);
    brig_policy_free(policy);
}

static const struct job_test tests[] = {
    {"wall timeout", test_wall_timeout},
    {"late caller", test_late_caller},
    {"grace", test_grace},
    {"cpu timeout", test_cpu_timeout},
    {"cancel", test_cancel},
    {"stragglers", test_stragglers},
    {"free while running", test_free_running},
    {"poll", test_poll},
};

int main(int argc, char **argv)
{
    return job_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
