/* SPDX-License-Identifier: MIT */
/* The command's process, from its clone to its exec: streams, limits, restrictions. */
#include <asm/ioctls.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/keyctl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/time_types.h>

#include "jail/child/child_start.h"
#include "jail/sys.h"
#include "jail/wire.h"

/* SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, since 5.19: a signal does not restart a call that is
 * being answered, which would notify and count twice. */
#define WAIT_KILLABLE_RECEIVED (1U << 5)

/* Creates a process group in init's session and makes it the terminal's foreground group. Not a new
 * session: its process group would be orphaned, and Ctrl-Z would not stop it. */
static int set_group(int pty)
{
    long result = SYS(setpgid, 0, 0);
    if (result < 0 || pty < 0)
        return (int)result;
    int group = (int)SYS(getpid); /* with SIGTTOU blocked, a background group may set it */
    return (int)SYS(ioctl, pty, TIOCSPGRP, &group);
}

/* Moves an fd that is still needed above the numbers that the command uses. */
static int move_above(int *fd, int above)
{
    long moved = *fd < 0 ? -1 : SYS(fcntl, *fd, F_DUPFD_CLOEXEC, above);
    if (moved >= 0)
        *fd = (int)moved;
    return *fd >= 0 && moved < 0 ? (int)moved : 0;
}

/* Opens /dev/null for empty streams, before Landlock restricts paths; or returns -1. */
static int open_null(const struct plan *plan)
{
    bool wanted = false;
    for (size_t i = 0; i < plan->fd_count; i++)
        wanted = wanted || plan->fds[i].fd == PLAN_FD_NULL;
    return wanted ? (int)SYS(openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0) : -1;
}

/* Returns the lowest number above all fds of the command. */
static int first_above(const struct plan *plan)
{
    int above = 3;
    for (size_t i = 0; i < plan->fd_count; i++)
        if (plan->fds[i].number >= above)
            above = plan->fds[i].number + 1;
    return above;
}

/* Copies the command's fds, and the two of the start, above those numbers; all others close on
 * exec. */
static int copy_fds(struct start *own, int pty, int null, int copies[PLAN_FD_MAX])
{
    const struct plan *plan = own->plan;
    int above = first_above(plan);
    for (size_t i = 0; i < plan->fd_count; i++) {
        int fd = plan->fds[i].fd;
        if (fd == PLAN_FD_PTY)
            fd = pty;
        else if (fd == PLAN_FD_NULL)
            fd = null;
        if (fd < 0)
            return fd;
        long copy = SYS(fcntl, fd, F_DUPFD_CLOEXEC, above);
        if (copy < 0)
            return (int)copy;
        copies[i] = (int)copy;
    }
    int moved = move_above(&own->wire, above);
    if (moved < 0 || (moved = move_above(&own->gate[0], above)) < 0)
        return moved;
    child_close_on_exec(3);
    return 0;
}

/* Moves the copies to their numbers, which closes fds of the build at the same numbers. */
static int place_fds(const struct plan *plan, const int copies[PLAN_FD_MAX])
{
    for (size_t i = 0; i < plan->fd_count; i++) {
        long result = SYS(dup3, copies[i], plan->fds[i].number, 0);
        if (result < 0)
            return (int)result;
    }
    return 0;
}

_Static_assert(sizeof(struct rlimit) == 2 * sizeof(uint64_t), "prlimit64 takes 64-bit limits");

int child_set_rlimits(const struct plan *plan)
{
    for (size_t i = 0; i < plan->rlimit_count; i++) {
        int resource = plan->rlimits[i].resource;
        struct rlimit now, want = plan->rlimits[i].limit;
        long result = SYS(prlimit64, 0, resource, &want, &now);
        if (result >= 0 && want.rlim_max <= now.rlim_max)
            continue;
        if (result < 0 && (result = SYS(prlimit64, 0, resource, 0, &now)) < 0)
            return (int)result;
        if (want.rlim_max > now.rlim_max) /* brig may have raised it, and lowers it again */
            want.rlim_max = now.rlim_max;
        if (want.rlim_cur > want.rlim_max)
            want.rlim_cur = want.rlim_max;
        if ((result = SYS(prlimit64, 0, resource, &want, 0)) < 0)
            return (int)result;
    }
    return 0;
}

int child_set_caps(uint32_t low)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = low, .permitted = low, .inheritable = low}};
    return (int)SYS(capset, &header, data);
}

void child_drop_bounding_set(void)
{
    for (int cap = 0; SYS(prctl, PR_CAPBSET_DROP, cap, 0, 0, 0) >= 0; cap++)
        ; /* ends at the first number that is not a capability */
}

int child_settle_ids(void)
{
    unsigned uid[3], gid[3]; /* real, effective, saved */
    long result = SYS(getresgid, &gid[0], &gid[1], &gid[2]);
    if (result == 0 && (gid[0] != gid[1] || gid[2] != gid[1]))
        result = SYS(setresgid, gid[1], gid[1], gid[1]);
    if (result == 0)
        result = SYS(getresuid, &uid[0], &uid[1], &uid[2]);
    if (result == 0 && (uid[0] != uid[1] || uid[2] != uid[1]))
        result = SYS(setresuid, uid[1], uid[1], uid[1]);
    return (int)result;
}

static int drop_caps(void)
{
    (void)SYS(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return child_set_caps(0);
}

/* Keeps the capabilities across the exec, for a trusted program only: a zygote. */
static int keep_caps(void)
{
    long result = 0;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if ((result = SYS(capget, &header, data)) < 0)
        return (int)result;
    data[0].inheritable = data[0].permitted;
    data[1].inheritable = data[1].permitted;
    if ((result = SYS(capset, &header, data)) < 0)
        return (int)result;
    for (int cap = 0; cap < 64; cap++)
        if (data[cap / 32].permitted & 1U << cap % 32)
            result |= SYS(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
    return result < 0 ? -ERR_EPERM : 0;
}

static int make_ruleset(const struct plan *plan)
{
    long ruleset = SYS(landlock_create_ruleset, &plan->landlock_attr, plan->landlock_attr_size, 0);
    if (ruleset < 0)
        return (int)ruleset;
    for (size_t i = 0; i < plan->rule_count; i++) {
        const struct plan_rule *rule = &plan->rules[i];
        /* struct landlock_path_beneath_attr is packed. */
        struct {
            uint64_t access;
            int32_t fd;
        } __attribute__((packed)) beneath = {.access = rule->access};
        bool opened = rule->slot == PLAN_NO_SLOT;
        long fd = opened ? SYS(openat, AT_FDCWD, rule->path, O_PATH | O_CLOEXEC, 0)
                         : plan->slots[rule->slot];
        if (fd == -ERR_ENOENT || fd == -ERR_ENOTDIR || fd == -ERR_EACCES)
            continue; /* an unreachable path needs no rule */
        if (fd < 0)
            return (int)fd;
        beneath.fd = (int32_t)fd;
        long result = SYS(landlock_add_rule, ruleset, 1 /* PATH_BENEATH */, &beneath, 0);
        if (opened)
            (void)SYS(close, fd);
        if (result < 0)
            return (int)result;
    }
    return (int)ruleset;
}

static int restrict_landlock(const struct start *start)
{
    int ruleset = make_ruleset(start->plan);
    return ruleset < 0 ? ruleset : (int)SYS(landlock_restrict_self, ruleset, 0);
}

/* Tries the candidates in order, like execvp; returns the most informative error. */
static int execute(const struct plan *plan)
{
    long told = -ERR_ENOENT;
    for (size_t i = 0; plan->programs[i]; i++) {
        long result = SYS(execve, plan->programs[i], plan->argv, plan->envp);
        if (result == -ERR_ENOEXEC) {
            /* No interpreter line: by convention a shell script. */
            const char **script = (const char **)(uintptr_t)plan->script_argv;
            script[1] = plan->programs[i];
            result = SYS(execve, script[0], script, plan->envp);
        }
        if (result == -ERR_ENOENT || result == -ERR_ENOTDIR)
            continue;
        told = result;
        if (result != -ERR_EACCES)
            break;
    }
    return (int)told;
}

/* Joins a new session keyring: the caller's may hold keys. */
static int join_keyring(void)
{
    long result = SYS(keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0);
    return result < 0 ? (int)result : 0;
}

/* Installs the notifying filter. A process with its listener can answer for the kernel, so only the
 * supervisor keeps it, and it is closed here before untrusted code runs. A filter outside may
 * refuse a listener, or have one already: then the plain filter is installed. */
static int install_told(const struct start *start)
{
    const struct plan *plan = start->plan;
    long listener =
        SYS(seccomp, SECCOMP_SET_MODE_FILTER,
            SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE_RECEIVED, plan->seccomp_told);
    if (listener < 0) {
        child_say(start->wire, WIRE_SOFT, PLAN_STEP_TRACE, (int)-listener);
        return (int)SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, plan->seccomp);
    }
    int result = child_say_fd(start->wire, WIRE_DENIALS, 0, (int)listener);
    (void)SYS(close, listener);
    return result;
}

static int install_filter(const struct start *start)
{
    const struct plan *plan = start->plan;
    if (!plan->seccomp)
        return 0;
    return plan->seccomp_told ? install_told(start)
                              : (int)SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, plan->seccomp);
}

/* Applies all restrictions except Landlock, which needs paths. From here on only calls that every
 * profile allows can be made. */
static int raise_confine(const struct start *start, int pty)
{
    const struct plan *plan = start->plan;
    int result;
    /* Needs CAP_SETPCAP, which an unprivileged caller without a user namespace lacks: there the
     * bounding set stays, and no_new_privs makes it irrelevant. */
    if (plan->drop_caps && plan->rung == PLAN_FULL)
        child_drop_bounding_set();
    if ((result = join_keyring()) < 0)
        child_say(start->wire, WIRE_SOFT, PLAN_STEP_KEYRING, -result);
    if ((result = set_group(pty)) < 0)
        return child_failed(start, PLAN_STEP_SESSION, result);
    if (plan->rung != PLAN_FULL && (result = child_settle_ids()) < 0)
        return child_failed(start, PLAN_STEP_IDS, result);
    if (plan->drop_caps && (result = drop_caps()) < 0)
        return child_failed(start, PLAN_STEP_CAPS, result);
    if ((result = (int)SYS(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) < 0)
        return child_failed(start, PLAN_STEP_NO_NEW_PRIVS, result);
    if ((result = install_filter(start)) < 0)
        return child_failed(start, PLAN_STEP_SECCOMP, result);
    return 0;
}

/* No untrusted code runs before the first process has executed init: until then it shares the
 * caller's memory. */
static bool await_init(int gate)
{
    char word;
    return SYS(read, gate, &word, 1) == 1;
}

int child_command_main(void *argument)
{
    struct start *start = argument;
    const struct plan *plan = start->plan;
    int result;

    int pty = plan->wants_pty ? plan->slots[PLAN_PTY_SLOT] : plan->pty_fd;
    if ((result = raise_confine(start, pty)) != 0)
        return result;
    int null = open_null(plan);
    if (plan->landlock && (result = restrict_landlock(start)) < 0) /* uses the fds of the build */
        return child_failed(start, PLAN_STEP_LANDLOCK, result);
    (void)SYS(close, start->gate[1]); /* otherwise end of file would never be seen */
    (void)SYS(umask, start->umask);
    /* The fd numbers change from here on, and the first process still uses the old ones. */
    struct start own = {.plan = plan, .wire = start->wire, .gate = {start->gate[0], -1}};
    int copies[PLAN_FD_MAX];
    if ((result = copy_fds(&own, pty, null, copies)) < 0 || (result = place_fds(plan, copies)) < 0)
        return child_failed(&own, PLAN_STEP_FDS, result);
    if ((result = child_set_rlimits(plan)) < 0) /* late: the open fds may exceed the limit */
        return child_failed(&own, PLAN_STEP_RLIMIT, result);
    if (plan->keep_caps && (result = keep_caps()) < 0)
        return child_failed(&own, PLAN_STEP_CAPS, result);
    unsigned long none = 0;
    (void)SYS(rt_sigprocmask, 2 /* SIG_SETMASK */, &none, 0, sizeof none);
    if (!await_init(own.gate[0]))
        return 125; /* init is gone, and so is the jail */
    if (plan->workdir && (result = (int)SYS(chdir, plan->workdir)) < 0)
        return child_failed(&own, PLAN_STEP_WORKDIR, result);
    return child_failed(&own, PLAN_STEP_EXEC, execute(plan));
}

/* The same for a function, without the streams, which the caller sets up after libc's fork. */
int child_call_confine(const struct start *start)
{
    const struct plan *plan = start->plan;
    int result = raise_confine(start, -1);
    if (result != 0)
        return result;
    if (start->gate[1] >= 0)
        (void)SYS(close, start->gate[1]);
    (void)SYS(umask, start->umask);
    if (plan->landlock && (result = restrict_landlock(start)) < 0)
        return child_failed(start, PLAN_STEP_LANDLOCK, result);
    if ((result = child_set_rlimits(plan)) < 0)
        return child_failed(start, PLAN_STEP_RLIMIT, result);
    return 0;
}

int child_call_wait(const struct start *start)
{
    const struct plan *plan = start->plan;
    int result;
    if (!await_init(start->gate[0]))
        return 125; /* init is gone, and so is the jail */
    if (plan->workdir && (result = (int)SYS(chdir, plan->workdir)) < 0)
        return child_failed(start, PLAN_STEP_WORKDIR, result);
    return 0;
}
