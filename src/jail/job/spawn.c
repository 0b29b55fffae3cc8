/* SPDX-License-Identifier: MIT */
/* From a plan to a running jail. */
#include "jail/job/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/child/child.h"
#include "jail/sys.h"

int spawn_receive(int wire, struct wire_message *ret_message, int *ret_fd)
{
    *ret_fd = -1;
    struct wire_message message = {0};
    struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control};
    ssize_t length;
    do /* ECONNRESET is said once, if the other ended without having read all; its words come after */
        length = recvmsg(wire, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (length < 0 && (errno == EINTR || errno == ECONNRESET));
    if (length < 0)
        return errno == EAGAIN ? 0 : -errno;
    for (struct cmsghdr *item = CMSG_FIRSTHDR(&header); item; item = CMSG_NXTHDR(&header, item))
        if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS) {
            if (*ret_fd >= 0)
                (void)close(*ret_fd);
            memcpy(ret_fd, CMSG_DATA(item), sizeof *ret_fd);
        }
    if (length != (ssize_t)sizeof message)
        return -EPIPE;
    *ret_message = message;
    return 1;
}

/* newgidmap writes a map that still allows setgroups, which a user alone may not. */
int spawn_newgidmap(const struct plan *plan, pid_t pid, struct brig_error *err)
{
    gid_t inside = plan->map_inside_gid, outside = plan->map_host_gid;
    gid_t subordinate = plan->map_subordinate_gid;
    char name[] = "newgidmap", one[] = "1", process[16], in[16], out[16], sub[16];
    (void)snprintf(process, sizeof process, "%d", pid);
    (void)snprintf(in, sizeof in, "%u", inside);
    (void)snprintf(out, sizeof out, "%u", outside);
    (void)snprintf(sub, sizeof sub, "%u", subordinate);
    char *argv[] = {name, process, in, out, one, sub, sub, one, NULL};
    char *envp[] = {NULL};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return brig_fail_nomem(err);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, 0, 1);
    (void)posix_spawn_file_actions_adddup2(&actions, 0, 2);
    pid_t helper;
    int result = posix_spawn(&helper, "/usr/bin/newgidmap", &actions, NULL, argv, envp);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (result != 0)
        return brig_fail(err, BRIG_E_SETUP, result, "cannot run newgidmap");
    int status = 0;
    while (waitpid(helper, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return brig_fail(err, BRIG_E_SETUP, 0,
                         "newgidmap refused the jail's group map (%u %u 1 %u %u 1). Check "
                         "/etc/subgid, or take the user out of its supplementary groups",
                         inside, outside, subordinate, subordinate);
    return 0;
}

/* For the stacks of the children and what they share; `sharing` is how, with one that has a copy of
 * our memory. */
static void *map_memory(int sharing)
{
    void *memory = mmap(NULL, CHILD_MEMORY_BYTES, PROT_READ | PROT_WRITE,
                        sharing | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void block_signals(sigset_t *ret_before)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, ret_before);
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
}

/* The clone itself, with every signal blocked: a handler of the caller's must not run in the child,
 * which may share its memory. On failure there may be something to undo. */
static int clone_jail(const struct plan *plan, const int wire[2], struct spawned *spawned,
                      struct brig_error *err)
{
    /* With who enters a jail nothing is shared at all. */
    void *memory = map_memory(plan->become && !plan->enters ? MAP_SHARED : MAP_PRIVATE);
    if (!memory)
        return brig_fail(err, BRIG_E_NOMEM, errno, "cannot allocate a stack");
    sigset_t before;
    block_signals(&before);
    long pid = child_start(plan, wire, memory, &spawned->pidfd);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    int result = pid < 0 ? plan_explain_failure(plan, PLAN_STEP_CLONE, (int)-pid, err) : 0;
    if (pid >= 0 && child_has_intermediate(plan)) {
        reap((pid_t)pid);
        spawned->first = child_first(memory);
    } else if (pid >= 0) {
        spawned->pid = (pid_t)pid;
    }
    (void)munmap(memory, CHILD_MEMORY_BYTES);
    return result;
}

/* An fd that came with a message goes where the message says. */
static void keep_fd(struct spawned *spawned, const struct wire_message *message, int fd)
{
    int type = message->type;
    int *place = type == WIRE_TERMINAL  ? &spawned->terminal
                 : type == WIRE_KEPT    ? &spawned->kept
                 : type == WIRE_LATE    ? &spawned->late
                 : type == WIRE_TOOLS   ? &spawned->nested_limits
                 : type == WIRE_DENIALS ? &spawned->listener
                 : type == WIRE_PID     ? &spawned->pidfd
                                        : NULL;
    if (fd < 0)
        return;
    if (type == WIRE_DOOR)
        door_sockets_add(&spawned->door, message->a >> 8, message->a & 0xff, fd);
    else if (!place || *place >= 0)
        (void)close(fd);
    else
        *place = fd;
}

/* Takes the messages of the build. 0 once the command runs, else the failure in words. */
static int take_messages(struct plan *plan, struct spawned *spawned, struct brig_error *err)
{
    for (;;) {
        struct wire_message message = {0};
        int fd = -1, got = spawn_receive(spawned->wire, &message, &fd);
        keep_fd(spawned, &message, fd);
        if (got == 0 || (got < 0 && spawned->started && spawned->pid > 0))
            return 0;
        if (got < 0)
            return brig_fail(err, BRIG_E_SETUP, 0,
                             "the jail's first process ended before the command was started");
        switch (message.type) {
        case WIRE_FAILED:
            plan->failed_step = message.a;
            return plan_explain_failure(plan, message.a, message.b, err);
        case WIRE_SOFT:
            plan_note_soft_failure(plan, message.a, message.b);
            break;
        case WIRE_PID:
            spawned->pid = message.a;
            break;
        case WIRE_STARTED: /* may overtake the intermediate's word about the pid */
            spawned->started = true;
            break;
        case WIRE_ENDED: /* so may the end of a short command */
            spawned->end = message;
            break;
        case WIRE_STOPPED:
            spawned->stop_signal = message.a;
            break;
        default:
            break;
        }
    }
}

static void undo(struct spawned *spawned)
{
    /* The failure may have overtaken the intermediate's word about the pid. */
    struct wire_message message = {0};
    int fd = -1;
    while (spawned->pid == 0 && spawn_receive(spawned->wire, &message, &fd) == 1) {
        keep_fd(spawned, &message, fd);
        if (message.type == WIRE_PID)
            spawned->pid = message.a;
    }
    /* Or the intermediate was killed before it could say: then it is still our child to reap. */
    if (spawned->pid == 0 && spawned->first > 0) {
        spawned->pid = spawned->first;
        spawned->pidfd = (int)SYS(pidfd_open, spawned->first, 0);
    }
    if (spawned->pid > 0 && spawned->pidfd >= 0) {
        (void)SYS(pidfd_send_signal, spawned->pidfd, SIGKILL, 0, 0);
        while (SYS(waitid, SYS_WAIT_PIDFD, spawned->pidfd, 0, WEXITED | __WALL, 0) == -EINTR)
            ;
    }
    if (spawned->pidfd >= 0)
        (void)close(spawned->pidfd);
    if (spawned->terminal >= 0)
        (void)close(spawned->terminal);
    if (spawned->kept >= 0)
        (void)close(spawned->kept);
    if (spawned->late >= 0)
        (void)close(spawned->late);
    if (spawned->nested_limits >= 0)
        (void)close(spawned->nested_limits);
    if (spawned->listener >= 0)
        (void)close(spawned->listener);
    door_sockets_done(&spawned->door);
}

/* Ids that are the same inside: root alone can map them. */
static int map_range(const struct plan *plan, pid_t pid, struct brig_error *err)
{
    static const char *const names[] = {"uid_map", "gid_map"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        char path[64], text[64];
        (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, names[i]);
        int length = snprintf(text, sizeof text, "%u %u %u\n", plan->range_first, plan->range_first,
                              plan->range_count);
        autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, text, (size_t)length) != length)
            return brig_fail(err, BRIG_E_SETUP, errno, "cannot map the ids from %u on",
                             plan->range_first);
    }
    return 0;
}

/* Writes the maps for a child that waits for them, and waits in turn until it and its command have
 * executed what they are to be, or are gone: then the last write end of `done` is closed. */
static int write_maps(const struct plan *plan, const struct spawned *spawned, int done,
                      struct brig_error *err)
{
    int result = plan->range_count > 0 ? map_range(plan, spawned->pid, err)
                                       : spawn_newgidmap(plan, spawned->pid, err);
    if (result < 0)
        return result;
    struct wire_message go = {.type = WIRE_GO};
    (void)send(spawned->wire, &go, sizeof go, MSG_NOSIGNAL);
    char byte;
    while (read(done, &byte, 1) < 0 && errno == EINTR)
        ;
    return 0;
}

static int settle(struct plan *plan, struct spawned *spawned, int done, struct brig_error *err)
{
    int result = plan->parent_maps && done >= 0 ? write_maps(plan, spawned, done, err) : 0;
    if (result < 0)
        return result;
    result = take_messages(plan, spawned, err);
    if (result < 0)
        return result;
    if (spawned->pid <= 0 || spawned->pidfd < 0)
        return brig_fail(err, BRIG_E_SETUP, 0, "the jail's first process was not started");
    return 0;
}

int spawn_steps(struct plan *plan, struct brig_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    autoclose int wire = pair[0];
    autoclose int wire_child = pair[1];
    (void)wire_child;                      /* open until all is done */
    struct spawned spawned = SPAWNED_NONE; /* of the intermediate there is no pidfd */
    spawned.wire = wire;
    int result = clone_jail(plan, pair, &spawned, err);
    return result < 0 ? result : take_messages(plan, &spawned, err);
}

int spawn_jail(struct plan *plan, struct spawned *ret_spawned, struct brig_error *err)
{
    int opened = plan_open_init(plan, err);
    if (opened < 0)
        return opened;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    autoclose int wire = pair[0];
    autoclose int wire_child = pair[1];
    int done[2] = {-1, -1};
    if (plan->parent_maps && pipe2(done, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    autoclose int done_read = done[0];
    autoclose int done_write = done[1];
    struct spawned spawned = SPAWNED_NONE;
    spawned.wire = wire;
    int result = clone_jail(plan, pair, &spawned, err);
    (void)close(take_fd(&wire_child));
    if (done_write >= 0)
        (void)close(take_fd(&done_write));
    if (result == 0)
        result = settle(plan, &spawned, done_read, err);
    if (result < 0) {
        undo(&spawned);
        return result;
    }
    (void)take_fd(&wire);
    *ret_spawned = spawned;
    return 0;
}

void spawn_end(struct spawned *process)
{
    if (process->pid <= 0)
        return;
    (void)SYS(pidfd_send_signal, process->pidfd, SIGKILL, 0, 0);
    while (SYS(waitid, SYS_WAIT_PIDFD, process->pidfd, 0, WEXITED | __WALL, 0) == -EINTR)
        ;
    (void)close(process->pidfd);
    (void)close(process->wire);
    if (process->terminal >= 0)
        (void)close(process->terminal);
    *process = (struct spawned){0};
}
