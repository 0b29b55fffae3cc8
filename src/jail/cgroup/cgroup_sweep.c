/* SPDX-License-Identifier: MIT */
/* Groups of brigs that are gone: found, emptied and removed. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_driver.h"

/* Of one directory, as many are looked at; what is left over is there the next time. */
#define SWEEP_MAX 512
/* One launch in 16 looks for stale groups, if there are others at all. */
#define SWEEP_BITS 4
#define SCATTER 2654435761u /* an odd number, for clocks that tick in round ones */
/* Links of a directory with one below it. */
#define LINKS_WITH_ONE 3

/* A group is stale if its process is gone (another may have its pid by now) or has given it up. That
 * is what /proc says, and may be wrong where the process is in a pid namespace we cannot see; the
 * lock, which cgroup_open_dirs() asks for, is not. */
static bool is_stale(int dir_fd, const char *name)
{
    char left[CGROUP_NAME_MAX + sizeof "/" CGROUP_LEFT];
    pid_t pid;
    uint64_t start;
    if (!cgroup_text_name(name, &pid, &start))
        return false;
    (void)snprintf(left, sizeof left, "%s/" CGROUP_LEFT, name);
    return cgroup_start_time(pid) != start || faccessat(dir_fd, left, F_OK, 0) == 0;
}

static bool remove_stale(const struct cgroup_bases *bases, const char *name, bool patiently)
{
    struct cgroup group;
    cgroup_init(&group, bases->kind, bases->same_as);
    (void)snprintf(group.name, sizeof group.name, "%s", name);
    group.leaf_count = 1; /* whatever there is, is listed */
    bool removed = false;
    if (cgroup_open_dirs(&group, bases)) {
        if (patiently)
            (void)cgroup_kill(&group);
        else /* what takes longer is removed the next time */
            (void)cgroup_kill_briefly(&group, 0);
        removed = cgroup_remove_dirs(&group) == 0;
        if (!removed)
            cgroup_give_up(&group); /* the mark may have been removed before the group was busy */
    }
    cgroup_close_fds(&group);
    return removed;
}

static int sweep(bool patiently)
{
    autobases struct cgroup_bases bases;
    cgroup_find(CGROUP_ALL_TREES, &bases);
    autofree struct cgroup_part *parts = calloc(SWEEP_MAX, sizeof *parts);
    int removed = 0;
    for (int tree = 0; tree < CGROUP_TREES && parts; tree++) {
        int dir = bases.dirs[tree];
        size_t count = dir >= 0 ? cgroup_list(dir, CGROUP_PREFIX, parts, SWEEP_MAX) : 0;
        for (size_t i = 0; i < count; i++)
            if (is_stale(dir, parts[i].name) && remove_stale(&bases, parts[i].name, patiently))
                removed++;
    }
    return removed;
}

int cgroup_sweep(void)
{
    return sweep(true);
}

void cgroup_sweep_rarely(const struct cgroup_bases *bases, unsigned luck)
{
    if (luck * SCATTER >> (32 - SWEEP_BITS) != 0)
        return;
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        struct stat status;
        if (bases->dirs[tree] < 0 || fstat(bases->dirs[tree], &status) < 0 ||
            status.st_nlink <= LINKS_WITH_ONE)
            continue;
        (void)sweep(false);
        return;
    }
}
