/* SPDX-License-Identifier: MIT */
/* Joining a jail that runs. From the first namespace on, hostile processes with our uid can see us,
 * and until the exec we have capabilities there, and a copy of our caller's memory. So before it we
 * are undumpable, which keeps them from our memory, our fds and our trace, and have nothing open but
 * what the start and the command take. */
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>

#include "jail/child/child_start.h"
#include "jail/sys.h"

/* The fds of the plan, of its namespaces, and the wire. */
#define KEPT_MAX (PLAN_FD_MAX + CGROUP_JOIN_MAX + PLAN_JOIN_MAX + 5)

struct kept {
    int fds[KEPT_MAX];
    size_t count;
};

static void keep(struct kept *kept, int fd)
{
    if (fd >= 0 && kept->count < KEPT_MAX)
        kept->fds[kept->count++] = fd;
}

static void close_others(const struct start *start)
{
    const struct plan *plan = start->plan;
    struct kept kept;
    kept.count = 0;
    keep(&kept, start->wire);
    keep(&kept, plan->init_fd);
    keep(&kept, plan->join_userns);
    keep(&kept, plan->join_mntns);
    keep(&kept, plan->join_netns);
    for (size_t i = 0; i < plan->join_more_count; i++)
        keep(&kept, plan->join_more[i]);
    for (size_t i = 0; i < plan->join_count; i++)
        keep(&kept, plan->join_fds[i]);
    for (size_t i = 0; i < plan->fd_count; i++)
        keep(&kept, plan->fds[i].fd);
    child_close_all_but(0, kept.fds, kept.count);
    /* What is opened from here on must not have the numbers of the command's streams. */
    for (long fd = 0; fd >= 0 && fd <= 2;)
        fd = SYS(openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
}

/* A namespace that is joined need not be open any more. */
static long join(int fd, int type)
{
    if (fd < 0)
        return 0;
    long result = SYS(setns, fd, type);
    (void)SYS(close, fd);
    return result;
}

int child_enter(const struct start *start)
{
    const struct plan *plan = start->plan;
    close_others(start);
    long result = SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (result >= 0)
        result = join(plan->join_userns, CLONE_NEWUSER);
    for (size_t i = 0; i < plan->join_more_count && result >= 0; i++)
        result = join(plan->join_more[i], 0);
    if (result >= 0)
        result = join(plan->join_netns, CLONE_NEWNET);
    if (result >= 0)
        result = join(plan->join_mntns, CLONE_NEWNS); /* and with it our root and directory */
    return (int)result;
}
