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
    uint64_t begin = now_ms();
    (void)run_shell(policy, "sleep 60", &result);
    uint64_t spent = now_ms() - begin;
    is_outcome(&result, BRIG_TIMEOUT, "a command over its wall time");
    tap_ok(spent >= 200 && spent < PATIENCE_MS, "it ends when the time is over");
    tap_is_int(result.signal, SIGKILL, "without a grace it is killed");
    tap_is_int(brig_result_status(&result), 124, "the status is 124");
    brig_result_done(&result);
    set_limit(policy, BRIG_LIMIT_WALL_MS, PATIENCE_MS);
    (void)run_shell(policy, "exit 2", &result);
    is_exit(&result, 2, "a command within its wall time is not disturbed");
    brig_result_done(&result);
    brig_policy_free(policy);
}

static void test_grace(void)
{
    struct brig_policy *policy = new_policy();
    struct brig_result result;
    set_limit(policy, BRIG_LIMIT_WALL_MS, 1000);
    set_limit(policy, BRIG_LIMIT_GRACE_MS, PATIENCE_MS);
    uint64_t begin = now_ms();
    (void)run_shell(policy, "trap 'echo bye; exit 3' TERM; sleep 60 & wait", &result);
    is_outcome(&result, BRIG_TIMEOUT, "a command that tidies up in its grace");
    tap_is_str(result.out.data, "bye\n", "it can still say something");
    tap_ok(now_ms() - begin < PATIENCE_MS, "the rest of the grace is not waited for");
    brig_result_done(&result);

    set_limit(policy, BRIG_LIMIT_GRACE_MS, 400);
    begin = now_ms();
    (void)run_shell(policy, "trap '' TERM; echo deaf; while :; do sleep 60; done", &result);
    is_outcome(&result, BRIG_TIMEOUT, "a command that does not listen to TERM");
    tap_ok(now_ms() - begin >= 1400, "it has its grace");
    tap_is_int(result.signal, SIGKILL, "then it is killed");
    tap_is_str(result.out.data, "deaf\n", "what it wrote before is there");
    brig_result_done(&result);
    brig_policy_free(policy);
}

static void test_cpu_timeout(void)
{
    static const char *const scripts[] = {
        "while :; do :; done",
        "(while :; do :; done) & (while :; do :; done) & wait",
    };
    /* Without a group, what making the jail takes counts as well. */
    uint64_t least_us = is_emulated() ? 100000 : 250000;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct brig_policy *policy = new_policy();
        struct brig_result result;
        set_limit(policy, BRIG_LIMIT_CPU_MS, 300);
        set_limit(policy, BRIG_LIMIT_GRACE_MS, 0);
        set_limit(policy, BRIG_LIMIT_WALL_MS, PATIENCE_MS);
        (void)run_shell(policy, scripts[i], &result);
        is_outcome(&result, BRIG_CPU_TIMEOUT,
                   i ? "a tree over its CPU time" : "a command over its CPU time");
        uint64_t cpu_us = result.usage.cpu_user_us + result.usage.cpu_sys_us;
        if (!tap_ok(cpu_us >= least_us && cpu_us < 3000000, "it had about what it was given"))
            tap_diag("%llu us", (unsigned long long)cpu_us);
        brig_result_done(&result);
        brig_policy_free(policy);
    }
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
    tap_is_int(brig_job_result(job, &result, &err), BRIG_E_STATE,
               "there is no result before the end");
    tap_is_int(brig_job_process(job, &err), 0, "processing it says that it goes on");
    tap_is_int(brig_job_cancel(job, &err), 0, "it can be cancelled");
    (void)finish(job, &result);
    is_outcome(&result, BRIG_CANCELLED, "a cancelled job");
    brig_result_done(&result);

    struct leash leash;
    shell_init(&shell, "trap 'exit 9' USR1; echo >&7; while :; do sleep 1; done");
    leash_init(&leash, &shell.command);
    job = start(policy, &shell.command);
    tap_ok(job && leash_ready(&leash), "a job that waits for a signal");
    tap_is_int(brig_job_signal(job, SIGUSR1, &err), 0, "it can be sent");
    (void)finish(job, &result);
    is_exit(&result, 9, "it arrives at the command");
    tap_ok(leash_ends(&leash), "nothing is left of the job");
    brig_result_done(&result);
    brig_policy_free(policy);
}

static void test_stragglers(void)
{
    static const struct {
        const char *script;
        const char *name;
    } cases[] = {
        {"setsid sleep 60 >/dev/null 2>&1 </dev/null & exit 4", "a daemonised grandchild"},
        {"(setsid sh -c 'trap \"\" TERM HUP; sleep 60; sleep 60' &) & exit 4",
         "an orphan deaf to signals"},
        {"sleep 60 & echo early; exit 4", "a child that holds stdout"},
        {"exec >&- 2>&-; sleep 0.3; exit 4", "a command that closes stdout and lingers"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct brig_policy *policy = new_policy();
        struct brig_result result;
        struct shell shell;
        struct leash leash;
        shell_init(&shell, cases[i].script);
        leash_init(&leash, &shell.command);
        uint64_t begin = now_ms();
        (void)run(policy, &shell.command, &result);
        tap_ok(now_ms() - begin < PATIENCE_MS, "%s does not hold up the end", cases[i].name);
        is_exit(&result, 4, "the exit code is the command's");
        tap_ok(leash_ends(&leash), "%s is gone after the run", cases[i].name);
        brig_result_done(&result);
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
    int go[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        tap_bail("pipe2: %s", strerror(errno));
    shell_init(&shell, "read -r word; echo \"$word\"; exit 8");
    shell.command.stdio[0] = (struct brig_stdio){.kind = BRIG_STDIO_FD, .fd = go[0]};
    struct brig_job *job = start(policy, &shell.command);
    if (!job)
        tap_bail("no job, no test");
    struct pollfd poll_fd = {.fd = brig_job_fd(job), .events = POLLIN};
    /* Whatever the start left to do is done first; then there is nothing until the word comes. */
    for (int i = 0; i < 10 && poll(&poll_fd, 1, 0) == 1; i++)
        (void)brig_job_process(job, &err);
    tap_is_int(poll(&poll_fd, 1, 100), 0, "the fd of a job with nothing to do is quiet");
    tap_ok(write(go[1], "word\n", 5) == 5, "the job gets its word");
    int over = 0, rounds = 0;
    while (over == 0 && rounds++ < 1000) {
        if (poll(&poll_fd, 1, PATIENCE_MS) != 1)
            break;
        over = brig_job_process(job, &err);
    }
    tap_is_int(over, 1, "polling and processing lead to the end");
    tap_is_int(brig_job_process(job, &err), 1, "processing after the end says so again");
    tap_is_int(brig_job_wait(job, &err), 0, "waiting after the end returns");
    tap_is_int(brig_job_result(job, &result, &err), 0, "then there is a result");
    is_exit(&result, 8, "with the exit code");
    tap_is_str(result.out.data, "word\n", "and the output");
    brig_job_free(job);
    (void)close(go[0]);
    (void)close(go[1]);
    brig_result_done(&result);
    brig_policy_free(policy);
}

static const struct job_test tests[] = {
    {"wall timeout", test_wall_timeout},
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
