/* SPDX-License-Identifier: MIT */
/* Getting into the groups that have the jail's limits. */
#include <linux/fcntl.h>
#include <linux/sched.h>
#include <linux/time_types.h>

#include "jail/child/child_say.h"
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
