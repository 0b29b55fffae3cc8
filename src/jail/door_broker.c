/* SPDX-License-Identifier: MIT */
/* Starting the processes of a network door. */
#include "jail/door_broker.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "egress/door_wire.h"
#include "jail/sys.h"

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

/* A session of its own: what is typed at our terminal is not for it. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int result = posix_spawnattr_init(attributes);
    if (result == 0)
        result = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                          POSIX_SPAWN_SETSIGDEF);
    if (result == 0)
        result = posix_spawnattr_setsigmask(attributes, &none);
    if (result == 0)
        result = posix_spawnattr_setsigdefault(attributes, &all);
    return result;
}

static int set_files(posix_spawn_file_actions_t *actions, int far)
{
    int result = posix_spawn_file_actions_init(actions);
    if (result == 0)
        result = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDWR, 0);
    if (result == 0)
        result = posix_spawn_file_actions_adddup2(actions, 0, 1);
    if (result == 0)
        result = posix_spawn_file_actions_adddup2(actions, 0, 2);
    if (result == 0)
        result = posix_spawn_file_actions_adddup2(actions, far, DOOR_CONTROL_FD);
    return result;
}

int door_spawn_broker(int program, int far, pid_t *ret_pid, struct brig_error *err)
{
    char name[] = "brig-broker", role[] = DOOR_ROLE_BROKER, path[32];
    char *argv[] = {name, role, NULL}, *envp[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    program_path(program, path);
    int result = set_files(&actions, far);
    if (result == 0)
        result = set_attributes(&attributes);
    if (result != 0) /* they only fail for want of memory, and then own none */
        return brig_fail_nomem(err);
    result = posix_spawn(ret_pid, path, &actions, &attributes, argv, envp);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return result == 0 ? 0 : brig_fail(err, BRIG_E_SETUP, result, "cannot start the broker");
}

/* ---- the connector ---- */

struct entry {
    int program, far, user, net;
    uid_t uid;
    gid_t gid;
    char path[32];
    char *const *argv, *const *envp;
};

/* After fork(), in a copy of memory that threads of the caller may have left in any state: system
 * calls only. Nothing in the jail can name this process, but it holds what the caller held until
 * its exec: so nobody is to look into it. */
static void enter_and_execute(const struct entry *entry)
{
    (void)SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (SYS(geteuid) == 0 &&
        (SYS(setgroups, 0, 0) < 0 || SYS(setresgid, entry->gid, entry->gid, entry->gid) < 0 ||
         SYS(setresuid, entry->uid, entry->uid, entry->uid) < 0))
        return;
    if (SYS(setns, entry->user, CLONE_NEWUSER) < 0 || SYS(setns, entry->net, CLONE_NEWNET) < 0)
        return;
    long low = SYS(openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    long null = low < 0 ? low : SYS(fcntl, low, F_DUPFD_CLOEXEC, DOOR_FD_FLOOR);
    if (null < 0 || SYS(setsid) < 0 || SYS(dup3, entry->far, DOOR_CONTROL_FD, 0) < 0)
        return;
    for (int fd = 0; fd < DOOR_CONTROL_FD; fd++)
        if (SYS(dup3, null, fd, 0) < 0)
            return;
    (void)SYS(close_range, DOOR_CONTROL_FD + 1, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
    (void)SYS(execve, entry->path, entry->argv, entry->envp);
}

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

int door_spawn_connector(int program, int inside, uid_t uid, gid_t gid, pid_t *ret_pid,
                         int *ret_near, struct brig_error *err)
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
    struct entry entry = {.program = program,
                          .far = far,
                          .user = user,
                          .net = net,
                          .uid = uid,
                          .gid = gid,
                          .argv = argv,
                          .envp = envp};
    program_path(program, entry.path);
    pid_t pid = fork();
    if (pid == 0) {
        enter_and_execute(&entry);
        _exit(127); /* its socket ends, which the broker notices */
    }
    if (pid < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot start the connector");
    *ret_pid = pid;
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
