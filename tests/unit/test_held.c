/* SPDX-License-Identifier: MIT */
/* A held jail: commands that this process starts in a jail of its own, each with limits, usage and
 * a cgroup of its own; freezing; and what is left when there are no cgroups. */
#include "jail/attach/attach.h"
#include "jail/job/job.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "job_support.h"

#define MIB ((uint64_t)1 << 20)

struct held {
    struct brig_policy *policy;
    struct brig_job *job;
    struct attach entry;
};

static void hold(struct held *held, uint64_t memory_bytes)
{
    struct shell shell;
    struct brig_error err = {0};
    held->policy = brig_policy_new(BRIG_MODE_SEALED);
    held->policy->jail_name = "sandbox";
    held->policy->held = true;
    (void)brig_policy_on_unsupported(held->policy, BRIG_UNSUPPORTED_WARN, NULL);
    (void)brig_policy_limit(held->policy, BRIG_LIMIT_MEMORY_BYTES, memory_bytes, NULL);
    (void)brig_policy_limit(held->policy, BRIG_LIMIT_PROCESSES, 60, NULL);
    shell_init(&shell, "exec sleep 1000");
    held->job = start(held->policy, &shell.command);
    if (!held->job || attach_own(held->job->entry_fd, &held->entry, &err) < 0)
        tap_bail("no held jail: %s", err.message);
}

static void let_go(struct held *held)
{
    attach_done(&held->entry);
    brig_job_free(held->job);
    brig_policy_free(held->policy);
}

static struct brig_job *begin(const struct held *held, const struct brig_policy *policy,
                              const char *script)
{
    struct shell shell;
    struct brig_job *job = NULL;
    struct brig_error err = {0};
    shell_init(&shell, script);
    const struct job_source source = {.policy = policy, .attach = &held->entry, .jail = held->job};
    if (job_start(&source, &shell.command, &job, &err) < 0)
        tap_diag("job_start: %s", err.message);
    return job;
}

static int run_in(const struct held *held, const struct brig_policy *policy, const char *script,
                  struct brig_result *ret_result)
{
    struct brig_job *job = begin(held, policy, script);
    int code = job ? brig_job_wait(job, NULL) : -1;
    if (code == 0)
        code = job_take_result(job, ret_result, NULL);
    brig_job_free(job);
    return code;
}

static bool has_group(const struct held *held)
{
    return held->job->limits.group && cgroup_kind(held->job->limits.group) != CGROUP_NONE;
}

static void test_commands(void)
{
    struct held held;
    struct brig_result result = {0};
    hold(&held, 256 * MIB);
    (void)run_in(&held, NULL, "echo one >/tmp/file; exit 4", &result);
    is_exit(&result, 4, "a command in a held jail");
    result_done(&result);
    (void)run_in(&held, NULL, "cat /tmp/file; head -c 40M /dev/zero | tail -c 40M | wc -c",
                 &result);
    tap_is_str(result.out.data, "one\n41943040\n", "the next one sees its files");
    if (has_group(&held))
        tap_ok(result.usage.peak_memory_bytes > 40 * MIB, "its memory is counted");
    result_done(&result);
    (void)run_in(&held, NULL, "true", &result);
    if (has_group(&held))
        tap_ok(result.usage.peak_memory_bytes < 30 * MIB, "that of another is not");
    result_done(&result);
    let_go(&held);
}

static void test_variant(void)
{
    struct held held;
    struct brig_result result = {0};
    hold(&held, 256 * MIB);
    struct brig_policy variant = *held.entry.record.policy;
    char dir[] = "/usr";
    variant.workdir = dir;
    variant.limits[BRIG_LIMIT_MEMORY_BYTES] = 20 * MIB;
    variant.limits[BRIG_LIMIT_WALL_MS] = 60000;
    (void)run_in(&held, &variant, "pwd", &result);
    tap_is_str(result.out.data, "/usr\n", "a command can have another directory");
    result_done(&result);
    (void)run_in(&held, &variant, "head -c 60M /dev/zero | tail -c 60M | wc -c", &result);
    tap_ok(!str_equal(result.out.data, "62914560\n"), "and less memory than the jail");
    result_done(&result);
    (void)run_in(&held, NULL, "head -c 60M /dev/zero | tail -c 60M | wc -c", &result);
    tap_is_str(result.out.data, "62914560\n", "which others do not notice");
    result_done(&result);
    variant.limits[BRIG_LIMIT_WALL_MS] = 50;
    (void)run_in(&held, &variant, "sleep 1000", &result);
    tap_is_int(result.outcome, BRIG_TIMEOUT, "a time limit ends a command");
    result_done(&result);
    tap_is_int(brig_job_process(held.job, NULL), 0, "and not the jail");
    let_go(&held);
}

/* The kernel kills the command that uses the memory of the jail, and not its first process. */
static void test_full(void)
{
    struct held held;
    struct brig_result result = {0};
    hold(&held, 30 * MIB);
    if (!has_group(&held)) {
        tap_skip("no cgroup limits memory here", "a command cannot use more than the jail");
        let_go(&held);
        return;
    }
    (void)run_in(&held, NULL, "head -c 100M /dev/zero | tail -c 100M | wc -c", &result);
    tap_ok(!str_equal(result.out.data, "104857600\n"), "a command cannot use more than the jail");
    result_done(&result);
    (void)run_in(&held, NULL, "echo still", &result);
    tap_is_str(result.out.data, "still\n", "the jail is left");
    result_done(&result);
    let_go(&held);
}

static void test_frozen(void)
{
    struct held held;
    hold(&held, 64 * MIB);
    if (!has_group(&held) || cgroup_freeze(held.job->limits.group, false) < 0) {
        tap_skip("no cgroup freezes here", "a jail can be frozen");
        let_go(&held);
        return;
    }
    struct brig_policy variant = *held.entry.record.policy;
    struct brig_result result = {0};
    variant.limits[BRIG_LIMIT_WALL_MS] = 30;
    struct brig_job *job = begin(&held, &variant, "sleep 1000");
    tap_is_int(cgroup_freeze(held.job->limits.group, true), 0, "a jail can be frozen");
    job_pause_clock(job, true);
    tap_is_int(brig_job_wait_ms(job, 60, NULL), 0, "the clock of a command stands still");
    tap_is_int(cgroup_freeze(held.job->limits.group, false), 0, "a frozen jail can go on");
    job_pause_clock(job, false);
    if (brig_job_wait(job, NULL) == 0)
        (void)job_take_result(job, &result, NULL);
    tap_is_int(result.outcome, BRIG_TIMEOUT, "the clock, too");
    result_done(&result);
    brig_job_free(job);
    (void)run_in(&held, NULL, "exit 3", &result);
    is_exit(&result, 3, "a command after that");
    result_done(&result);
    let_go(&held);
}

static void test_many(void)
{
    enum { MANY = 20 };
    struct held held;
    struct brig_job *jobs[MANY];
    int good = 0;
    hold(&held, 256 * MIB);
    for (int i = 0; i < MANY; i++)
        jobs[i] = begin(&held, NULL, "read line </dev/null; exit 0");
    for (int i = 0; i < MANY; i++) {
        good += jobs[i] && brig_job_wait(jobs[i], NULL) == 0;
        brig_job_free(jobs[i]);
    }
    tap_is_int(good, MANY, "many commands at once");
    let_go(&held);
}

int main(void)
{
    test_commands();
    test_variant();
    test_full();
    test_frozen();
    test_many();
    return tap_done();
}
