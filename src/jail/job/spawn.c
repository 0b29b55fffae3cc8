/* SPDX-License-Identifier: MIT */
/* Starts the jail of a plan. */
#include "jail/job/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "jail/child/child.h"
#include "jail/job/result.h"
#include "jail/plan/plan.h"
#include "jail/probe/probe.h"
#include "jail/sys.h"

int spawn_receive(int wire, struct wire_message *ret_message, int *ret_fd)
{
    *ret_fd = -1;
    struct wire_message message = {0};
    const struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
    size_t count;
    ssize_t length;
    do { /* ECONNRESET comes once, if the peer exited with unread messages; its own messages
          * follow */
        count = 1;
        length = fdpass_receive(wire, &part, 1, ret_fd, &count, MSG_DONTWAIT);
    } while (length == -ECONNRESET);
    if (length < 0)
        return length == -EAGAIN ? 0 : (int)length;
    if (length != (ssize_t)sizeof message)
        return -EPIPE;
    *ret_message = message;
    return 1;
}

/* newgidmap writes a gid map that leaves setgroups allowed; an unprivileged user cannot. */
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

/* Memory for the children's stacks and shared state; `sharing` is MAP_SHARED if a child with a copy
 * of the memory has to share it. */
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

/* The clone, with every signal blocked: a handler of the caller must not run in the child, which
 * may share its memory. On failure the caller calls release(). */
static int clone_jail(const struct plan *plan, const int wire[2], struct spawned *spawned,
                      struct brig_error *err)
{
    /* A process that enters a jail shares no memory. */
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

/* Stores the fd of a message according to the message's type. */
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

/* Handles the messages of the build. Returns 0 once the command runs, or describes the failure. */
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
        case WIRE_STARTED: /* may arrive before the intermediate's WIRE_PID */
            spawned->started = true;
            break;
        case WIRE_ENDED: /* as may the end of a short command */
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

/* Kills the process and closes all fds received from it. */
static void close_all(struct spawned *spawned)
{
    int *const fds[] = {&spawned->pidfd,   &spawned->wire, &spawned->terminal,
                        &spawned->kept,    &spawned->late, &spawned->nested_limits,
                        &spawned->listener};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        close_fd(fds[i]);
    door_sockets_done(&spawned->door);
    *spawned = (struct spawned){0};
}

static void release(struct spawned *spawned)
{
    if (spawned->pid > 0 && spawned->pidfd >= 0) {
        (void)SYS(pidfd_send_signal, spawned->pidfd, SIGKILL, 0, 0);
        while (SYS(waitid, SYS_WAIT_PIDFD, spawned->pidfd, 0, WEXITED | __WALL, 0) == -EINTR)
            ;
    }
    close_all(spawned);
}

static void undo(struct spawned *spawned)
{
    /* WIRE_FAILED may have arrived before the intermediate's WIRE_PID. */
    struct wire_message message = {0};
    int fd = -1;
    while (spawned->pid == 0 && spawn_receive(spawned->wire, &message, &fd) == 1) {
        keep_fd(spawned, &message, fd);
        if (message.type == WIRE_PID)
            spawned->pid = message.a;
    }
    /* Or the intermediate was killed before it sent WIRE_PID: the first process still has to be
     * reaped. */
    if (spawned->pid == 0 && spawned->first > 0) {
        spawned->pid = spawned->first;
        spawned->pidfd = (int)SYS(pidfd_open, spawned->first, 0);
    }
    spawned->wire = -1; /* the caller closes it */
    release(spawned);
}

/* Maps ids to themselves, which only root can do. */
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

/* Writes the maps for a waiting child, then waits until the child and its command have called exec
 * or exited, which closes the last write end of `done`. */
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
    (void)wire_child;                      /* stays open until the steps are done */
    struct spawned spawned = SPAWNED_NONE; /* the intermediate has no pidfd */
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
    close_fd(&wire_child);
    close_fd(&done_write);
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
    if (process->pid > 0)
        release(process);
}

void spawn_forget(struct spawned *process)
{
    if (process->pid > 0)
        close_all(process);
}

/* ---- failures ---- */

/* Describes a failed step: the operation, why it failed, and the remedy. */

static const struct {
    int step;
    const char *what;
} command_steps[] = {
    {PLAN_STEP_IDS, "take the jail's user and group id"},
    {PLAN_STEP_JOIN, "join the namespaces that are there already"},
    {PLAN_STEP_CGROUP, "join the group that has the jail's limits"},
    {PLAN_STEP_CLONE, "make the jail's namespaces"},
    {PLAN_STEP_LOOPBACK, "bring the loopback interface up"},
    {PLAN_STEP_DOOR, "make the sockets of the network door"},
    {PLAN_STEP_COMMAND, "start the command's process"},
    {PLAN_STEP_INIT, "execute the jail's init"},
    {PLAN_STEP_SESSION, "start a session for the command"},
    {PLAN_STEP_FDS, "hand over the command's file descriptors"},
    {PLAN_STEP_RLIMIT, "set a resource limit"},
    {PLAN_STEP_CAPS, "drop capabilities"},
    {PLAN_STEP_NO_NEW_PRIVS, "set no_new_privs"},
    {PLAN_STEP_LANDLOCK, "apply Landlock"},
    {PLAN_STEP_SECCOMP, "install the syscall filter"},
    {PLAN_STEP_TRACE, "hand over the listener of the syscall filter"},
};

static int explain_exec(const struct plan *plan, int sys_errno, struct brig_error *err)
{
    const char *name = plan->argv[0];
    if (sys_errno == ENOENT || sys_errno == ENOTDIR) {
        (void)brig_fail(err, BRIG_E_NOT_FOUND, 0, "'%s' was not found in the jail", name);
        if (strchr(name, '/'))
            return brig_advise(
                err, BRIG_E_NOT_FOUND,
                "If it exists outside, grant it or its directory (and, for a script, "
                "its interpreter)");
        return brig_advise(err, BRIG_E_NOT_FOUND, "The jail's PATH was searched");
    }
    return brig_fail(err, BRIG_E_NOT_EXEC, sys_errno, "cannot execute '%s' in the jail", name);
}

/* Returns whether a failure means that this system cannot make such jails, rather than just this
 * one. */
static bool is_unsupported(const struct plan *plan, int step, int sys_errno)
{
    bool refused = sys_errno == EPERM || sys_errno == EACCES || sys_errno == ENOSYS;
    if (step == PLAN_STEP_CLONE)
        return refused || sys_errno == ENOSPC || sys_errno == EUSERS || sys_errno == EINVAL;
    if (step == PLAN_STEP_LOOPBACK)
        return refused || sys_errno == ENODEV;
    if (step == PLAN_STEP_SECCOMP || step == PLAN_STEP_LANDLOCK)
        return refused || sys_errno == EINVAL || sys_errno == EOPNOTSUPP;
    if (step < 0 || (size_t)step >= plan->step_count)
        return false;
    switch (plan->steps[step].op) {
    case PLAN_WRITE:
    case PLAN_SETGROUPS:
    case PLAN_HOSTNAME:
    case PLAN_PRIVATE:
    case PLAN_TMPFS:
    case PLAN_PROC:
    case PLAN_DEVPTS:
    case PLAN_MQUEUE:
    case PLAN_OVERLAY:
    case PLAN_ROOT:
    case PLAN_PIVOT:
    case PLAN_DETACH:
        return refused || sys_errno == ENODEV || sys_errno == EROFS;
    case PLAN_TREE:
    case PLAN_PREPARED:
    case PLAN_SUBTREE:
    case PLAN_ATTR:
    case PLAN_DEVICE:
    case PLAN_ATTACH:
        return sys_errno == ENOSYS;
    case PLAN_OPEN_ROOT:
    case PLAN_OPEN:
    case PLAN_MKDIR:
    case PLAN_MKFILE:
    case PLAN_MKPATH:
    case PLAN_SYMLINK:
    case PLAN_KEEP:
    case PLAN_LATE:
    case PLAN_LISTEN:
    case PLAN_PTY:
        return false;
    }
    return false;
}

static const char *step_text(const struct plan *plan, int step)
{
    for (size_t i = 0; i < sizeof command_steps / sizeof command_steps[0]; i++)
        if (command_steps[i].step == step)
            return command_steps[i].what;
    if (step >= 0 && (size_t)step < plan->step_count)
        return plan->steps[step].what;
    return "build the jail";
}

/* A process that enters a jail creates no namespaces; it has to start in the jail's cgroup and pid
 * namespace. */
static int explain_entering(int sys_errno, struct brig_error *err)
{
    if (sys_errno == ENOMEM) /* clone's error if the pid namespace's first process has exited */
        return brig_fail(err, BRIG_E_STATE, 0, "the run has just ended");
    (void)brig_fail(err, BRIG_E_SETUP, sys_errno,
                    "cannot start a process in the group that has the run's limits");
    return brig_advise(err, BRIG_E_SETUP,
                       "Enter it from the session it was started in, or as root");
}

int plan_explain_failure(const struct plan *plan, int step, int sys_errno, struct brig_error *err)
{
    if (step == PLAN_STEP_EXEC)
        return explain_exec(plan, sys_errno, err);
    if (step == PLAN_STEP_WORKDIR) {
        (void)brig_fail(err, BRIG_E_SETUP, sys_errno, "cannot enter '%s' in the jail",
                        plan->workdir);
        return brig_advise(
            err, BRIG_E_SETUP,
            "Grant it with brig_policy_grant(), or choose another with brig_policy_workdir()");
    }
    if (step == PLAN_STEP_CLONE && plan->enters)
        return explain_entering(sys_errno, err);
    int code = is_unsupported(plan, step, sys_errno) ? BRIG_E_UNSUPPORTED : BRIG_E_SETUP;
    (void)brig_fail(err, code, sys_errno, "cannot %s", step_text(plan, step));
    if (sys_errno == ESTALE)
        return brig_advise(err, code, "It was replaced while the jail was being built; try again");
    if (sys_errno == ELOOP)
        return brig_advise(err, code,
                           "A symbolic link in a writable directory is never followed; "
                           "name what it points to");
    if (step >= 0 && (size_t)step < plan->step_count && plan->steps[step].hint)
        return brig_advise(err, code, "%s", plan->steps[step].hint);
    if (step == PLAN_STEP_SECCOMP || step == PLAN_STEP_LANDLOCK || sys_errno == ENOSYS)
        return brig_advise(err, code,
                           "This kernel, or a filter around us, lacks it. Run `brig doctor`");
    if (code == BRIG_E_UNSUPPORTED && sys_errno == EACCES && geteuid() != 0 &&
        prctl(PR_GET_DUMPABLE) != 1)
        return brig_advise(
            err, code,
            "This process has changed its user id and is undumpable since, so that it "
            "cannot write to its own /proc. Call prctl(PR_SET_DUMPABLE, 1) after "
            "that");
    if (code == BRIG_E_UNSUPPORTED) {
        char remedy[512];
        probe_userns_remedy(remedy, sizeof remedy);
        return brig_advise(err, code, "%s", remedy);
    }
    return code;
}

void plan_note_soft_failure(struct plan *plan, int step, int sys_errno)
{
    char text[ERROR_TEXT_MAX];
    if (step == PLAN_STEP_KEYRING &&
        sys_errno != ENOSYS) /* without keyrings, there is no keyring to leave */
        unenforced_add(&plan->unenforced, "the session keyring stays the caller's (%s)",
                       error_text(sys_errno, text));
    if (step == PLAN_STEP_REDIRECT)
        unenforced_add(&plan->unenforced,
                       "nf_tables cannot be used (%s): only the usual ports go through the door",
                       error_text(sys_errno, text));
    if (step == PLAN_STEP_TRACE && plan->tells_all)
        unenforced_add(&plan->unenforced, "refused system calls are not listed (%s)",
                       error_text(sys_errno, text));
    if (step == PLAN_STEP_ROUTES)
        unenforced_add(&plan->unenforced, "only names go through the door, no addresses (%s)",
                       error_text(sys_errno, text));
    if (step < 0 || (size_t)step >= plan->step_count || !plan->steps[step].hint)
        return; /* without a hint there is no consequence to report */
    unenforced_add(&plan->unenforced, "%s (%s)", plan->steps[step].hint,
                   error_text(sys_errno, text));
}
