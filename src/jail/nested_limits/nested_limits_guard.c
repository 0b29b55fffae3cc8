/* SPDX-License-Identifier: MIT */
/* Theory of operation: whoever can send to a UNIX socket can send descriptors along, asked or not.
 * The receiver's kernel drops what is not taken, and to drop the last reference to a file is to close
 * it, in the context of who dropped it. Closing a TCP socket with SO_LINGER and unsent data waits for
 * as long as its owner said, and no signal ends it: so a jail could hang its supervisor.
 *
 * Since 6.16 a socket can refuse descriptors (SO_PASSRIGHTS); the sender gets EPERM. Before that,
 * each message is looked at first, which takes no reference away, and one with descriptors stays in
 * the queue. The queue goes with the socket in the end, so the last to have that must be a process
 * that is about to be gone anyway: for one that exits, the kernel does not linger. */
#include "jail/nested_limits/nested_limits_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/cgroup/cgroup_driver.h"
#include "jail/sys.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* since 6.5 */
#endif

/* The process that closes for us is waited for so long, mostly much less: then it is on its own. */
#define CLOSE_WAIT_NS 1000000
#define CLOSE_WAITS 500

/* ---- messages ---- */

bool guard_refuses_rights(int listener)
{
    int taken = 1;
    socklen_t size = sizeof taken;
    return getsockopt(listener, SOL_SOCKET, GUARD_SO_PASSRIGHTS, &taken, &size) == 0 && taken == 0;
}

/* With it every message says who sent it, and only the end says nothing: a message can be empty. */
void guard_prepare(int fd)
{
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
}

/* Looks at what is first in the queue. There is room for who sent it and nothing else: descriptors
 * do not fit, and the kernel says so. */
static enum guard_what look(int fd)
{
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char space[CMSG_LEN(sizeof(struct ucred))];
    } control;
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = CMSG_LEN(sizeof(struct ucred))};
    ssize_t length = recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0) /* ECONNRESET is said once, and what is in the queue is still there */
        return GUARD_NOTHING;
    if (header.msg_flags & MSG_CTRUNC)
        return GUARD_RIGHTS;
    return length == 0 && header.msg_controllen == 0 ? GUARD_END : GUARD_MESSAGE;
}

enum guard_what guard_receive(int fd, void *buffer, size_t size, size_t *ret_length)
{
    enum guard_what what = look(fd);
    if (what != GUARD_MESSAGE)
        return what;
    ssize_t length = recv(fd, buffer, size, MSG_DONTWAIT | MSG_TRUNC);
    if (length < 0)
        return GUARD_NOTHING;
    *ret_length = (size_t)length;
    return GUARD_MESSAGE;
}

/* ---- who ---- */

int guard_peer(int fd, pid_t *ret_pid, int *ret_pidfd)
{
    struct ucred cred;
    socklen_t size = sizeof cred;
    int pidfd = -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
        return -errno;
    if (cred.pid <= 0)
        return -ESRCH;
    size = sizeof pidfd;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0) {
        if (errno != ENOPROTOOPT)
            return -errno;
        /* Should it be gone, and its pid another's: that one is asked where it is, like any. */
        pidfd = (int)SYS(pidfd_open, cred.pid, 0);
    }
    if (pidfd < 0)
        return pidfd;
    *ret_pid = cred.pid;
    *ret_pidfd = pidfd;
    return 0;
}

bool guard_is_alive(int pidfd)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    return poll(&ended, 1, 0) == 0;
}

bool guard_are_together(pid_t one, pid_t other)
{
    char path[32], first[CGROUP_TEXT_MAX], second[CGROUP_TEXT_MAX];
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)one);
    int first_length = cgroup_read(AT_FDCWD, path, first, sizeof first);
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)other);
    int second_length = cgroup_read(AT_FDCWD, path, second, sizeof second);
    return first_length > 0 && first_length < CGROUP_TEXT_MAX - 1 &&
           first_length == second_length && memcmp(first, second, (size_t)first_length) == 0;
}

/* ---- letting go ---- */

static bool may_hold_rights(int fd)
{
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    int listens = 0;
    socklen_t size = sizeof listens;
    if (poll(&waiting, 1, 0) == 0) /* nobody is waiting there, and nothing */
        return false;
    (void)getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
    return listens || look(fd) != GUARD_END;
}

static void sort(int *fds, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && fds[j - 1] > fds[j]; j--) {
            int swapped = fds[j];
            fds[j] = fds[j - 1];
            fds[j - 1] = swapped;
        }
}

/* A copy of this process, in which nothing but system calls is made: other threads may have held any
 * lock. It keeps the sockets, and `gate` to wait at. */
static __attribute__((noreturn)) void hold(int *fds, size_t count, int gate)
{
    char byte;
    int next = 0;
    fds[count++] = gate;
    sort(fds, count);
    for (size_t i = 0; i < count; i++) {
        if (fds[i] > next)
            (void)SYS(close_range, next, fds[i] - 1, 0);
        next = fds[i] + 1;
    }
    (void)SYS(close_range, next, ~0U, 0);
    while (SYS(read, gate, &byte, 1) == -EINTR)
        ;
    for (;;)
        (void)SYS(exit_group, 0);
}

static void reap_soon(pid_t pid)
{
    const struct timespec moment = {.tv_nsec = CLOSE_WAIT_NS};
    for (int i = 0; i < CLOSE_WAITS && waitpid(pid, NULL, WNOHANG | __WALL) == 0; i++)
        (void)nanosleep(&moment, NULL);
}

/* Ours are closed while somebody else has them, too, so that his is the last to go. */
static void close_aside(int *fds, size_t count)
{
    int gate[2];
    sigset_t all, before;
    if (pipe2(gate, O_CLOEXEC) < 0)
        return; /* they stay open: anything but closing them here */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    long pid = SYS(clone, 0, 0, 0, 0, 0);
    if (pid == 0)
        hold(fds, count, gate[0]);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < count && pid > 0; i++)
        (void)close(fds[i]);
    (void)close(gate[0]);
    (void)close(gate[1]);
    if (pid > 0)
        reap_soon((pid_t)pid);
}

void guard_close(const int *fds, size_t count)
{
    int held[GUARD_CLOSE_MAX + 1]; /* one more for hold() */
    size_t held_count = 0;
    for (size_t i = 0; i < count; i++)
        if (held_count < GUARD_CLOSE_MAX && may_hold_rights(fds[i]))
            held[held_count++] = fds[i];
        else
            (void)close(fds[i]);
    if (held_count > 0)
        close_aside(held, held_count);
}
