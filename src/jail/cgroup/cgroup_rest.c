/* SPDX-License-Identifier: MIT */
/* Groups that have served one jail and are to serve another: to make and remove three directories of v1
 * takes longer than anything else the supervisor does for a short run.
 *
 * What a run is told of itself must not be about others. So only such groups are kept as have nothing to tell:
 * nobody was killed or refused in them, nobody waited for a share, and there were no more processes than in any
 * jail. What can be set back is set back, and what memory is still charged is subtracted; where that is much, or
 * somebody is still there, the group is removed. Groups of v2 are not kept: not every kernel can forget their
 * peaks. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_driver.h"

/* More are not needed for those that begin while as many end. */
#define REST_MAX 32
/* So many others come before one that was just put here: the kernel frees memory some time after its end. */
#define REST_LEAST 4
/* Of processes that are gone, or kept by the kernel for its CPUs; and this part of the limit. */
#define CHARGE_MAX ((uint64_t)1 << 20)
#define CHARGE_PART 64
/* Init and the command. */
#define PIDS_LEAST 2

struct cgroup_rest {
    struct cgroup *groups[REST_MAX]; /* the one that rests longest first */
    size_t count;
    size_t fewest; /* there were since somebody looked after them, */
    bool wanted;   /* and whether any was taken */
};

struct cgroup_rest *cgroup_rest_new(void)
{
    return calloc(1, sizeof(struct cgroup_rest));
}

static struct cgroup *take_first(struct cgroup_rest *rest)
{
    struct cgroup *first = rest->groups[0];
    rest->count--;
    for (size_t i = 0; i < rest->count; i++)
        rest->groups[i] = rest->groups[i + 1];
    if (rest->fewest > rest->count)
        rest->fewest = rest->count;
    return first;
}

static bool is_fit(const struct cgroup *group, const struct cgroup_usage *usage)
{
    return group->kind == CGROUP_V1 && !group->parent && !group->site &&
           group->dirs[CGROUP_TREE_UNIFIED] < 0 && group->widened == 0 && group->leaf_next == 0 &&
           usage->oom_kills == 0 && usage->pids_refused == 0 && usage->throttled_us == 0 &&
           usage->peak_pids <= PIDS_LEAST;
}

void cgroup_rest_put(struct cgroup_rest *rest, struct cgroup *group,
                     const struct cgroup_usage *usage)
{
    if (rest->count == REST_MAX || !is_fit(group, usage)) {
        cgroup_free(group);
        return;
    }
    cgroup_joined(group);
    rest->groups[rest->count++] = group;
}

/* ---- as good as new ---- */

/* Who is in one hierarchy is in all. The number is had more cheaply than a list, which v1 keeps for a
 * while. */
static bool is_empty(const struct cgroup *group)
{
    char text[CGROUP_TEXT_MAX];
    uint64_t count = 0;
    int pids = cgroup_dir(group, CGROUP_TREE_PIDS);
    if (pids >= 0 && cgroup_read_number(pids, "pids.current", &count))
        return count == 0;
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        if (group->dirs[tree] >= 0 &&
            cgroup_read(group->dirs[tree], "cgroup.procs", text, sizeof text) != 0)
            return false;
    return true;
}

static bool renew_memory(struct cgroup *group)
{
    int dir = cgroup_dir(group, CGROUP_TREE_MEMORY);
    group->charged = 0;
    if (dir < 0)
        return true;
    return cgroup_write(dir, "memory.max_usage_in_bytes", "0") == 0 &&
           cgroup_read_number(dir, "memory.usage_in_bytes", &group->charged) &&
           group->charged <= CHARGE_MAX &&
           group->charged <= group->limits.memory_bytes / CHARGE_PART;
}

/* Written anew, it is also there as a whole again. */
static bool renew_cpu(const struct cgroup *group)
{
    int cpu = cgroup_dir(group, CGROUP_TREE_CPU), time = cgroup_dir(group, CGROUP_TREE_CPUACCT);
    if (cpu >= 0 && group->limits.cpu_percent > 0 &&
        cgroup_v1_write_cpu(cpu, group->limits.cpu_percent, NULL) < 0)
        return false;
    return time < 0 || cgroup_write(time, "cpuacct.usage", "0") == 0;
}

static bool renew(struct cgroup *group)
{
    return is_empty(group) && renew_memory(group) && renew_cpu(group) &&
           cgroup_v1_open_joins(group, NULL) == 0;
}

static bool same_limits(const struct cgroup_limits *one, const struct cgroup_limits *other)
{
    return one->memory_bytes == other->memory_bytes && one->cpu_percent == other->cpu_percent &&
           one->pids == other->pids && one->io_read_bytes == other->io_read_bytes &&
           one->io_write_bytes == other->io_write_bytes && one->kill == other->kill &&
           one->cpu_time == other->cpu_time && one->pids_spare == other->pids_spare &&
           one->tcp == other->tcp;
}

struct cgroup *cgroup_rest_take(struct cgroup_rest *rest, const struct cgroup_limits *limits,
                                unsigned *ret_missing)
{
    while (rest->count > REST_LEAST) {
        struct cgroup *group = take_first(rest);
        if (same_limits(&group->limits, limits) && renew(group)) {
            *ret_missing = group->missing;
            rest->wanted = true;
            return group;
        }
        cgroup_free(group);
    }
    return NULL;
}

void cgroup_rest_settle(struct cgroup_rest *rest)
{
    size_t kept = rest->wanted ? REST_LEAST : 0;
    for (size_t left = rest->fewest; left > kept; left--)
        cgroup_free(take_first(rest));
    rest->fewest = rest->count;
    rest->wanted = false;
}

void cgroup_rest_free(struct cgroup_rest *rest)
{
    while (rest && rest->count > 0)
        cgroup_free(take_first(rest));
    free(rest);
}
