/* SPDX-License-Identifier: MIT */
/* A jail begun with: what becomes of it when its caller is killed before it goes on. */
#include "jail/job/spawn.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "policy/policy.h"
#include "tap.h"

#define NOBODY 65534
#define MANY 900

/* Begins with a jail as an ordinary user, says the pid of its first process (0: none was begun
 * with), and waits to be killed. */
static void caller_main(int out)
{
    if (geteuid() == 0 &&
        (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0))
        _exit(1);
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_SEALED);
    struct plan plan;
    struct identity identity;
    struct spawn_early early = {0};
    if (policy && plan_begin(policy, PLAN_FULL, 0, &plan, &identity, NULL) == 0)
        spawn_begin(&plan, false, &early);
    pid_t pid = early.begun ? early.pid : 0;
    if (write(out, &pid, sizeof pid) != (ssize_t)sizeof pid)
        _exit(1);
    for (;;)
        (void)pause();
}

/* A plan whose sources are opened first, see view_own.c: 0 if there is room for all of them, 2 if it has
 * none of the kind. */
static int plan_many(void)
{
    if (geteuid() == 0 &&
        (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return 1;
    struct brig_policy *policy = brig_policy_new(BRIG_MODE_CASUAL);
    struct plan plan;
    struct identity identity;
    if (!policy)
        return 1;
    policy->jail_name = "many";
    for (int i = 0; i < MANY; i++) {
        char dest[32];
        (void)snprintf(dest, sizeof dest, "/mnt/%d", i);
        if (brig_policy_grant(policy, BRIG_READ_ONLY, "/usr", dest, 0, NULL) < 0)
            return 1;
    }
    if (plan_begin(policy, PLAN_FULL, 0, &plan, &identity, NULL) < 0 ||
        plan_begin_view(&plan, policy, &identity, NULL) < 0)
        return 1;
    return plan.slot_count < MANY ? 2 : plan.slot_count > plan.slot_room;
}

static void test_many(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(plan_many());
    (void)waitpid(child, &status, 0);
    tap_ok(status == 0, "there is room for all that is opened before the rest is known");
}

static bool is_there(pid_t pid)
{
    return kill(pid, 0) == 0;
}

int main(void)
{
    int channel[2];
    if (pipe(channel) < 0) /* lint: cloexec nothing is executed */
        return 1;
    pid_t caller = fork();
    if (caller == 0)
        caller_main(channel[1]);
    (void)close(channel[1]);
    pid_t first = 0;
    bool told = read(channel[0], &first, sizeof first) == (ssize_t)sizeof first;
    if (!told || first == 0) {
        tap_ok(told, "a jail can be asked for");
        tap_skip("one CPU, groups to map or no user namespaces", "a jail begun with ends");
    } else {
        tap_ok(is_there(first), "the first process waits to go on");
        (void)kill(caller, SIGKILL);
        tap_ok(await_gone(first), "and is gone when its caller was killed");
    }
    (void)kill(caller, SIGKILL);
    (void)waitpid(caller, NULL, 0);
    test_many();
    return tap_done();
}
