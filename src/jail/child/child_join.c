/* SPDX-License-Identifier: MIT */
/* Getting into the groups that have the jail's limits. */
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/time_types.h>

#include "jail/child/child_start.h"
#include "jail/nested_limits/nested_limits_wire.h"
#include "jail/sys.h"
#include "jail/wire.h"

/* Of sockets; the system's headers for them need libc. */
enum {
    FAMILY_UNIX = 1,
    TYPE_SEQPACKET = 5,
    LEVEL_SOCKET = 1,
    OPTION_RECEIVE_TIMEOUT = 20,
    OPTION_SEND_TIMEOUT = 21,
};

bool child_is_grouped(const struct plan *plan)
{
    return plan->cgroup_fd >= 0 || plan->join_count > 0 || plan->tool_token != 0;
}

int child_enter_group(const struct start *start)
{
    const struct plan *plan = start->plan;
    if (plan->cgroup_fd < 0 || start->by_clone3)
        return 0;
    long procs = SYS(openat, plan->cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC, 0);
    long result = procs < 0 ? procs : SYS(write, procs, "0", 1);
    if (procs >= 0)
        (void)SYS(close, procs);
    return result < 0 ? (int)result : 0;
}

/* Asks over a socket that is connected to the supervisor of the jail we are in. */
static long ask_to_join(long fd, uint64_t token)
{
    struct nested_limits_request request = {
        .magic = NESTED_LIMITS_MAGIC, .type = NESTED_LIMITS_JOIN, .token = token};
    struct nested_limits_reply reply;
    long result = SYS(write, fd, &request, sizeof request);
    if (result == (long)sizeof request)
        result = SYS(read, fd, &reply, sizeof reply);
    if (result < 0)
        return result;
    return result == (long)sizeof reply ? -(long)reply.error : -ERR_EPROTO;
}

/* It is who connects that is moved, so each process has to do it for itself. */
static long join_tool(uint64_t token)
{
    struct {
        unsigned short family;
        char path[sizeof NESTED_LIMITS_SOCKET];
    } address = {.family = FAMILY_UNIX, .path = NESTED_LIMITS_SOCKET};
    const struct __kernel_old_timeval patience = {.tv_sec = NESTED_LIMITS_PATIENCE_SECONDS};
    long fd = SYS(socket, FAMILY_UNIX, TYPE_SEQPACKET | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    (void)SYS(setsockopt, fd, LEVEL_SOCKET, OPTION_SEND_TIMEOUT, &patience, sizeof patience);
    (void)SYS(setsockopt, fd, LEVEL_SOCKET, OPTION_RECEIVE_TIMEOUT, &patience, sizeof patience);
    long result = SYS(connect, fd, &address, sizeof address);
    if (result >= 0)
        result = ask_to_join(fd, token);
    (void)SYS(close, fd);
    return result;
}

int child_join_groups(const struct plan *plan)
{
    long result = plan->tool_token != 0 ? join_tool(plan->tool_token) : 0;
    for (size_t i = 0; i < plan->join_count && result >= 0; i++)
        result = SYS(write, plan->join_fds[i], "0", 1);
    if (result >= 0 && child_is_grouped(plan) && plan->clone_flags & CLONE_NEWCGROUP)
        result = SYS(unshare, CLONE_NEWCGROUP);
    if (result == -ERR_ENOSPC && plan->tool_token != 0) /* the jail we are in allows no more */
        result = 0;
    return result < 0 ? (int)result : 0;
}

/* ---- child enter ---- */

/* Joining a jail that runs. From the first namespace on, hostile processes with our uid can see
 * us, and until the exec we have capabilities there, and a copy of our caller's memory. So
 * before it we are undumpable, which keeps them from our memory, our fds and our trace, and have
 * nothing open but what the start and the command take. */

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
