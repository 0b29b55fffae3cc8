/* SPDX-License-Identifier: MIT */
/* Joining the group of a jail that another brig supervises. That one has the group's directories
 * open, and they are opened anew through its /proc/PID/fd: paths would have to be looked for in
 * whatever is mounted here. Moving is what it is in a run: who enters is cloned into the group, or
 * writes itself into its `tasks`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/cgroup/cgroup_driver.h"

void cgroup_publish(const struct cgroup *group, struct cgroup_numbers *ret_numbers)
{
    _Static_assert(CGROUP_TREES <= CGROUP_JOIN_MAX, "each hierarchy has one at most");
    *ret_numbers = (struct cgroup_numbers){0};
    for (int tree = 0; tree < CGROUP_JOIN_MAX; tree++)
        ret_numbers->dirs[tree] = group && tree < CGROUP_TREES ? group->dirs[tree] : -1;
    ret_numbers->has_main = group && group->kind == CGROUP_V2;
}

/* A file, or with "." the directory itself, in a directory that the process has open. */
static int open_there(int process, int number, const char *name, int flags, struct brig_error *err)
{
    char path[32];
    (void)snprintf(path, sizeof path, "fd/%d", number);
    autoclose int dir = openat(process, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = dir < 0 ? -1 : openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SETUP, errno,
                         "cannot open the group that has the run's limits");
    return fd;
}

int cgroup_open_published(int process, const struct cgroup_numbers *numbers,
                          struct cgroup_joining *ret_joining, struct brig_error *err)
{
    *ret_joining = (struct cgroup_joining){.clone_fd = -1};
    for (int tree = 0; tree < CGROUP_TREES; tree++) {
        if (numbers->dirs[tree] < 0)
            continue;
        bool unified = tree == CGROUP_TREE_UNIFIED;
        const char *name = !unified ? "tasks" : numbers->has_main ? CGROUP_MAIN : ".";
        int fd = open_there(process, numbers->dirs[tree], name,
                            unified ? O_RDONLY | O_DIRECTORY : O_WRONLY, err);
        if (fd < 0)
            return fd;
        if (unified)
            ret_joining->clone_fd = fd;
        else
            ret_joining->join_fds[ret_joining->join_count++] = fd;
    }
    return 0;
}
