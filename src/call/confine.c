/* SPDX-License-Identifier: MIT */
/* Confining the running process. */
#include <dirent.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "call/caller.h"
#include "jail/walls/seccomp.h"
#include "jail/walls/unenforced.h"

/* Landlock and capabilities are those of a thread: others would stay outside. */
static bool is_alone(void)
{
    autodir DIR *tasks = opendir("/proc/self/task");
    size_t count = 0;
    for (struct dirent *entry; tasks && (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    return count == 1;
}

static void note_lost(const struct brig_policy *policy, struct brig_unenforced *unenforced)
{
    walls_note_alone(policy, unenforced);
    if (policy->limits[BRIG_LIMIT_WALL_MS])
        unenforced_add(
            unenforced,
            "a timeout is not enforced: a process that confines itself has no supervisor");
    if (policy->limits[BRIG_LIMIT_MEMORY_BYTES] || policy->limits[BRIG_LIMIT_CPU_PERCENT] ||
        policy->limits[BRIG_LIMIT_IO_READ_BYTES] || policy->limits[BRIG_LIMIT_IO_WRITE_BYTES])
        unenforced_add(unenforced, "no cgroup: memory is limited for each process by itself, CPU "
                                   "and disks are not");
}

static int confine(const struct brig_policy *policy, struct brig_unenforced *unenforced,
                   struct brig_error *err)
{
    struct plan plan = PLAN_INIT;
    autoclose int ruleset = -1;
    plan.rung = PLAN_LANDLOCK;
    plan.drop_caps = !(policy->disabled_layers & BRIG_LAYER_CAPS);
    if (!(policy->disabled_layers & BRIG_LAYER_SECCOMP))
        plan.seccomp =
            seccomp_program_alone(policy->seccomp, policy->network, policy->unix_sockets);
    int result = walls_ruleset(policy, &ruleset, unenforced, err);
    if (result == 0 && ruleset >= 0)
        result = walls_fill(policy, ruleset, unenforced, err);
    if (result < 0)
        return result;
    note_lost(policy, unenforced);
    plan.limits_missing = CGROUP_MEMORY | CGROUP_PIDS;
    plan_rlimits(&plan, policy);
    int error = 0, step = walls_raise(&plan, ruleset, &error);
    return step != 0 ? plan_explain_failure(&plan, step, -error, err) : 0;
}

int brig_confine_self(const struct brig_policy *policy, struct brig_unenforced *ret_unenforced,
                      struct brig_error *err)
{
    struct brig_unenforced local = {0};
    struct brig_call_options options;
    brig_call_options_init(&options);
    options.timeout_ms = options.cpu_timeout_ms = options.memory_mb = 0;
    if (!is_alone())
        return brig_fail(err, BRIG_E_STATE, 0,
                         "there are threads already, which would stay outside. Confine the process "
                         "before it starts any");
    struct brig_policy *made = NULL;
    int result = policy ? policy_validate(policy, err) : options_policy(NULL, &options, &made, err);
    if (result == 0)
        result = confine(policy ? policy : made, &local, err);
    brig_policy_free(made);
    if (result == 0 && ret_unenforced)
        *ret_unenforced = local;
    return result;
}
