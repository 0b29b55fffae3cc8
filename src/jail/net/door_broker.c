/* SPDX-License-Identifier: MIT */
/* Starting the processes of a network door. */
#include "jail/net/door_broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/cgroup/cgroup.h"
#include "jail/sys.h"
#include "net/broker_wire.h"

#ifndef SIOCGSKNS
#define SIOCGSKNS 0x894C
#endif
#define DOOR_FDS_MAX 2

/* Moves it to DOOR_FD_FLOOR or above. */
static int move_up(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, DOOR_FD_FLOOR);
    (void)close(fd);
    return moved;
}

int door_make_control(int *ret_near, int *ret_far, struct brig_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    autoclose int near = pair[0];
    int far = move_up(pair[1]);
    if (far < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    *ret_near = take_fd(&near);
    *ret_far = far;
    return 0;
}

int door_send(int control, unsigned type, int kind, int index, const int *fds, size_t count,
              struct brig_error *err)
{
    struct door_message message = {.version = DOOR_WIRE_VERSION,
                                   .type = type,
                                   .kind = (uint32_t)kind,
                                   .index = (uint32_t)index};
    struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(DOOR_FDS_MAX * sizeof(int))];
    } control_data = {.header = {.cmsg_len = CMSG_LEN(count * sizeof(int)),
                                 .cmsg_level = SOL_SOCKET,
                                 .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control_data.header), fds, count * sizeof(int));
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control_data,
                            .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    if (sendmsg(control, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot speak with the broker");
    return 0;
}

static void program_path(int program, char path[static 32])
{
    (void)snprintf(path, 32, "/proc/self/fd/%d", program);
}

/* ---- processes ---- */

/* What the new process is to be: `user` and `net` are namespaces, or -1. */
struct attach {
    int program, far, user, net;
    uid_t uid;
    gid_t gid;
    int group;                     /* v2: it is cloned into it; or -1 */
    int join_fds[CGROUP_JOIN_MAX]; /* v1: it writes itself into them */
    size_t join_count;
    bool late; /* it could not be cloned into its group, and has to move */
    char path[32];
    char *const *argv, *const *envp;
};

static long move_late(int group)
{
    long procs = SYS(openat, group, "cgroup.procs", O_WRONLY | O_CLOEXEC, 0);
    return procs < 0 ? procs : SYS(write, procs, "0", 1);
}

static bool enter_groups(const struct attach *entry)
{
    if (entry->late && entry->group >= 0 && move_late(entry->group) < 0)
        return false;
    for (size_t i = 0; i < entry->join_count; i++)
        if (SYS(write, entry->join_fds[i], "0", 1) < 0)
            return false;
    return true;
}

static bool enter_namespaces(const struct attach *entry)
{
    if (entry->net < 0)
        return true;
    if (SYS(geteuid) == 0 &&
        (SYS(setgroups, 0, 0) < 0 || SYS(setresgid, entry->gid, entry->gid, entry->gid) < 0 ||
         SYS(setresuid, entry->uid, entry->uid, entry->uid) < 0))
        return false;
    return SYS(setns, entry->user, CLONE_NEWUSER) >= 0 && SYS(setns, entry->net, CLONE_NEWNET) >= 0;
}

/* In a copy of memory that threads of the caller may have left in any state: system calls only.
 * Nothing in the jail can name this process, but it holds what the caller held until its exec: so
 * nobody is to look into it. */
static void enter_and_execute(const struct attach *entry)
{
    const uint64_t no_signals = 0;
    (void)SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (!enter_groups(entry) || !enter_namespaces(entry))
        return;
    long low = SYS(openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    long null = low < 0 ? low : SYS(fcntl, low, F_DUPFD_CLOEXEC, DOOR_FD_FLOOR);
    /* A session of its own: what is typed at our terminal is not for it. */
    if (null < 0 || SYS(setsid) < 0 || SYS(dup3, entry->far, DOOR_CONTROL_FD, 0) < 0)
        return;
    for (int fd = 0; fd < DOOR_CONTROL_FD; fd++)
        if (SYS(dup3, null, fd, 0) < 0)
            return;
    (void)SYS(close_range, DOOR_CONTROL_FD + 1, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
    (void)SYS(rt_sigprocmask, SIG_SETMASK, &no_signals, 0, sizeof no_signals);
    (void)SYS(execve, entry->path, entry->argv, entry->envp);
}

/* As fork(), but into the group and without handlers; -errno if it fails. */
static long clone_entry(struct attach *entry)
{
    struct clone_args args = {
        .flags = CLONE_CLEAR_SIGHAND | (entry->group >= 0 ? CLONE_INTO_CGROUP : 0),
        .exit_signal = SIGCHLD,
        .cgroup = entry->group >= 0 ? (uint64_t)entry->group : 0,
    };
    long pid = SYS(clone3, &args, sizeof args);
    if (pid != -ENOSYS && pid != -EPERM)
        return pid;
    entry->late = true;
    return SYS(clone, SIGCHLD, 0, 0, 0, 0);
}

/* Signals are blocked meanwhile: a handler of the caller's must not run in the child. */
static int spawn(struct attach *entry, const struct cgroup *group, pid_t *ret_pid)
{
    sigset_t all, before;
    program_path(entry->program, entry->path);
    entry->group = group ? cgroup_clone_fd(group) : -1;
    entry->join_count = group ? cgroup_join_fds(group, entry->join_fds) : 0;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    long pid = clone_entry(entry);
    if (pid == 0) {
        enter_and_execute(entry);
        (void)SYS(exit_group, 127); /* its socket ends, which is noticed */
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid > 0)
        *ret_pid = (pid_t)pid;
    return pid < 0 ? (int)pid : 0;
}

int door_spawn_broker(int program, int far, const struct cgroup *group, pid_t *ret_pid,
                      struct brig_error *err)
{
    char name[] = "brig-broker", role[] = DOOR_ROLE_BROKER;
    char *argv[] = {name, role, NULL}, *envp[] = {NULL};
    struct attach entry = {
        .program = program, .far = far, .user = -1, .net = -1, .argv = argv, .envp = envp};
    int result = spawn(&entry, group, ret_pid);
    return result == 0 ? 0 : brig_fail(err, BRIG_E_SETUP, -result, "cannot start the broker");
}

/* ---- the connector ---- */

/* A socket knows its namespaces, also when every process in them has changed its mind about being
 * looked at. */
static int open_namespaces(int inside, int *ret_user, int *ret_net, struct brig_error *err)
{
    autoclose int net = ioctl(inside, SIOCGSKNS);
    if (net < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot find the jail's network");
    int user = ioctl(net, NS_GET_USERNS);
    if (user < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot find the jail's user namespace");
    *ret_user = move_up(user);
    *ret_net = move_up(take_fd(&net));
    return 0;
}

int door_spawn_connector(int program, int inside, uid_t uid, gid_t gid, const struct cgroup *group,
                         pid_t *ret_pid, int *ret_near, struct brig_error *err)
{
    char name[] = "brig-broker", role[] = DOOR_ROLE_CONNECTOR;
    char *argv[] = {name, role, NULL}, *envp[] = {NULL};
    autoclose int near = -1;
    autoclose int far = -1;
    autoclose int user = -1;
    autoclose int net = -1;
    int result = open_namespaces(inside, &user, &net, err);
    if (result == 0)
        result = door_make_control(&near, &far, err);
    if (result < 0)
        return result;
    struct attach entry = {.program = program,
                           .far = far,
                           .user = user,
                           .net = net,
                           .uid = uid,
                           .gid = gid,
                           .argv = argv,
                           .envp = envp};
    result = spawn(&entry, group, ret_pid);
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot start the connector");
    *ret_near = take_fd(&near);
    return 0;
}

void door_end_process(pid_t pid)
{
    if (pid <= 0)
        return;
    /* Somebody else may have reaped it, and the number may be another's by now. */
    if (waitpid(pid, NULL, WNOHANG) != 0)
        return;
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
