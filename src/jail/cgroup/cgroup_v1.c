/* SPDX-License-Identifier: MIT */
/* Limits and counters of cgroup v1, where each controller has a separate hierarchy. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/cgroup/cgroup_driver.h"

unsigned cgroup_v1_trees(const struct cgroup_limits *limits)
{
    return (limits->memory_bytes ? 1u << CGROUP_TREE_MEMORY : 0) |
           (limits->cpu_percent ? 1u << CGROUP_TREE_CPU : 0) |
           (limits->pids && !limits->pids_spare ? 1u << CGROUP_TREE_PIDS : 0);
}

/* ---- limits ---- */

static int write_limit(int dir_fd, const char *file, uint64_t value, struct brig_error *err)
{
    int result = cgroup_write_number(dir_fd, file, value);
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result,
                         "cannot write '%" PRIu64 "' to the cgroup's %s", value, file);
    return 0;
}

static int write_memory(int dir_fd, uint64_t bytes, bool tcp, struct brig_error *err)
{
    int result = write_limit(dir_fd, "memory.limit_in_bytes", bytes, err);
    if (result < 0)
        return result;
    /* v1 counts TCP buffers separately, and only with a limit. They can use the same amount again.
     * A kernel may be built without this, and other protocols are not counted. */
    if (tcp)
        (void)cgroup_write_number(dir_fd, "memory.kmem.tcp.limit_in_bytes", bytes);
    /* The limit includes swap and must not be lower than that on memory. If the kernel does not
     * count swap, swapping is at least discouraged. */
    result = cgroup_write_number(dir_fd, "memory.memsw.limit_in_bytes", bytes);
    if (result == -ENOENT || result == -EOPNOTSUPP) {
        (void)cgroup_write(dir_fd, "memory.swappiness", "0");
        result = 0;
    }
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot keep the cgroup from swapping");
    return 0;
}

/* The period is the kernel's default: 100 ms. */
int cgroup_v1_write_cpu(int dir_fd, unsigned percent, struct brig_error *err)
{
    uint64_t quota = (uint64_t)percent * (CGROUP_CPU_PERIOD_US / 100);
    int result = cgroup_write_number(dir_fd, "cpu.cfs_quota_us", quota);
    if (result == -EINVAL) /* exceeds the limit of a group above, which applies and is lower */
        return 0;
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot write the cgroup's cpu.cfs_quota_us");
    return 0;
}

int cgroup_v1_limit(struct cgroup *group, const struct cgroup_limits *limits, unsigned *missing,
                    struct brig_error *err)
{
    unsigned wanted = cgroup_wanted(limits);
    int memory = cgroup_dir(group, CGROUP_TREE_MEMORY), cpu = cgroup_dir(group, CGROUP_TREE_CPU);
    int pids = cgroup_dir(group, CGROUP_TREE_PIDS), result = 0;
    *missing |= wanted & CGROUP_IO;
    if (wanted & CGROUP_MEMORY && memory < 0)
        *missing |= CGROUP_MEMORY;
    else if (wanted & CGROUP_MEMORY)
        result = write_memory(memory, limits->memory_bytes, limits->tcp, err);
    if (wanted & CGROUP_CPU && cpu < 0)
        *missing |= CGROUP_CPU;
    else if (wanted & CGROUP_CPU && result == 0)
        result = cgroup_v1_write_cpu(cpu, limits->cpu_percent, err);
    if (wanted & CGROUP_PIDS && pids < 0)
        *missing |= CGROUP_PIDS;
    else if (wanted & CGROUP_PIDS && result == 0)
        result = write_limit(pids, "pids.max", limits->pids, err);
    return result;
}

/* A single thread that moves itself through `tasks` needs none of the locks that stall. The kernel
 * checks the credentials of the process that opened the file, not of the writer: the child may have
 * changed its ids by then. */
int cgroup_v1_open_joins(struct cgroup *group, struct brig_error *err)
{
    for (int tree = CGROUP_TREE_UNIFIED + 1; tree < CGROUP_TREES; tree++) {
        if (group->dirs[tree] < 0)
            continue;
        int fd = openat(group->dirs[tree], "tasks", O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            return brig_fail(err, BRIG_E_SETUP, errno, "cannot open the cgroup's tasks");
        group->joins[group->join_count++] = fd;
    }
    return 0;
}

/* ---- counters ---- */

static bool is_widened(const struct cgroup *group, enum cgroup_tree tree)
{
    return group->widened & 1u << group->same_as[tree];
}

static bool read_cpu(const struct cgroup *group, struct cgroup_usage *usage)
{
    if (cgroup_dir(group, CGROUP_TREE_UNIFIED) >= 0)
        return cgroup_v2_cpu(cgroup_dir(group, CGROUP_TREE_UNIFIED), usage);
    int dir = cgroup_dir(group, CGROUP_TREE_CPUACCT);
    uint64_t user_ns, sys_ns;
    if (dir < 0 || is_widened(group, CGROUP_TREE_CPUACCT))
        return false;
    if (!cgroup_read_number(dir, "cpuacct.usage_user", &user_ns) ||
        !cgroup_read_number(dir, "cpuacct.usage_sys", &sys_ns))
        return false;
    usage->cpu_user_us = user_ns / 1000;
    usage->cpu_sys_us = sys_ns / 1000;
    return true;
}

/* Events are counted in the group of the process they happen to, and in no group above. In a
 * hierarchy that only leaves are in, nothing else is known about the jail. */
void cgroup_v1_usage(const struct cgroup *group, struct cgroup_usage *ret_usage)
{
    struct cgroup_usage usage = {0};
    int memory = cgroup_dir(group, CGROUP_TREE_MEMORY), cpu = cgroup_dir(group, CGROUP_TREE_CPU);
    int pids = cgroup_dir(group, CGROUP_TREE_PIDS);
    if (read_cpu(group, &usage))
        usage.has |= CGROUP_CPU;
    if (cpu >= 0)
        usage.throttled_us =
            group->past.throttled_us +
            cgroup_sum_key(group, CGROUP_TREE_CPU, "cpu.stat", "throttled_time") / 1000;
    if (memory >= 0)
        usage.oom_kills = group->past.oom_kills + cgroup_sum_key(group, CGROUP_TREE_MEMORY,
                                                                 "memory.oom_control", "oom_kill");
    if (memory >= 0 && !is_widened(group, CGROUP_TREE_MEMORY)) {
        usage.has |= CGROUP_MEMORY;
        (void)cgroup_read_number(memory, "memory.max_usage_in_bytes", &usage.peak_memory_bytes);
    }
    if (pids >= 0)
        usage.pids_refused = group->past.pids_refused +
                             cgroup_sum_key(group, CGROUP_TREE_PIDS, "pids.events", "max");
    if (pids >= 0 && !is_widened(group, CGROUP_TREE_PIDS)) {
        usage.has |= CGROUP_PIDS;
        (void)cgroup_read_number(pids, "pids.peak", &usage.peak_pids);
    }
    *ret_usage = usage;
}
