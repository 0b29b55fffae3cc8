/* SPDX-License-Identifier: MIT */
/* Declarations shared by the files that run between clone and exec. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "jail/child/child.h"

/* The libc headers with error and signal numbers conflict with the kernel's headers. */
enum {
    ERR_EPERM = 1,
    ERR_ENOENT = 2,
    ERR_ENOEXEC = 8,
    ERR_EACCES = 13,
    ERR_EINVAL = 22,
    ERR_ENOSPC = 28,
    ERR_ENOTDIR = 20,
    ERR_ENOSYS = 38,
    ERR_EPROTO = 71,
    SIGNAL_KILL = 9,
    SIGNAL_PIPE = 13,
    SIGNAL_CHILD = 17,
    SIGNAL_FILE_SIZE = 25,
    SIGNAL_COUNT = 64,
};

/* State of one start, placed above the stacks, in the caller's memory or in a copy of it. */
struct start {
    const struct plan *plan;
    int wire;
    char *stack;    /* three of CHILD_STACK_BYTES: intermediate, first process, command */
    bool by_clone3; /* clone3 reset the signal handlers and set the cgroup */
    unsigned umask; /* the caller's, for the command */
    /* Cleared by the kernel when the command's process leaves this memory, by exec or exit. */
    int command_here;
    int first;            /* set by an intermediate: the first process's pid outside */
    int pidfd;            /* of the first process, in the fd table of the process that cloned it */
    int gate[2];          /* a pipe that the command's process reads from until init writes */
    long (*fork)(void *); /* for child_fork_jail(); returns the pid or -errno in the parent */
    void *fork_argument;
};

/* ---- child_clone.c ---- */

/* Arguments of child_clone(). */
struct child_clone {
    unsigned long flags;
    int exit_signal;
    int stack;         /* index of one of the three stacks */
    int *here;         /* for CLONE_CHILD_CLEARTID, or NULL */
    int *pid;          /* receives the pid before the child runs, or NULL; clone3 only */
    const int *cgroup; /* fd of the cgroup to start in, or NULL */
    int (*function)(void *);
};

/* Calls clone3, or clone where clone3 is missing (the filters of old containers return ENOSYS or
 * EPERM). Returns the pid or -errno. The child calls function(start) and exits with its return
 * value. */
long child_clone(struct start *start, const struct child_clone *clone);
/* Waits until the process that was cloned with `here` has left this memory. */
void child_wait_until_gone(const int *here);
/* Reports a failed step; returns the exit status. */
int child_failed(const struct start *start, int step, long result);
/* Sets close-on-exec on every fd from `first` on. */
void child_close_on_exec(int first);
/* Closes every fd from `first` on except the kept ones; a kept fd of -1 is ignored. */
void child_close_all_but(int first, const int *kept, size_t count);

/* ---- child.c ---- */

/* Configures the network namespace that the clone created, and opens its door. Returns 0, or the
 * exit status after it reported the failure. */
int child_make_network(const struct start *start);
/* ---- child_net.c ---- */

/* Creates the door of plan->door in the current network namespace. Returns 0, or the exit status
 * after it reported the failure. */
int child_open_door(const struct start *start);

/* ---- child_clone.c: joining ---- */

/* Returns whether the child has to enter a cgroup before it creates its cgroup namespace. */
bool child_is_grouped(const struct plan *plan);
/* Makes a child of a real-time process an ordinary one: it would keep a CPU for itself, and where
 * cgroups have shares of real time (CONFIG_RT_GROUP_SCHED) it cannot join the jail's. */
void child_leave_real_time(void);
/* Does so, and enters the v2 cgroup if clone could not start the child in it; this is slower. Returns 0
 * or -errno. */
int child_enter_group(const struct start *start);
/* Joins the v1 cgroups, or the leaf cgroup of a tool, and then creates the cgroup namespace there.
 * Returns 0 or -errno. */
int child_join_groups(const struct plan *plan);

/* Joins the namespaces of a running jail, whose processes may be hostile. Returns 0 or -errno. */
int child_enter(const struct start *start);

/* ---- child_command.c ---- */

/* The command's process, from its clone to its exec. */
int child_command_main(void *start);
/* Sets the low 32 bits of all three capability sets. Returns 0 or -errno. */
int child_set_caps(uint32_t low);
void child_drop_bounding_set(void);
/* Without a user namespace: makes the effective ids the real and saved ones, to which the process could
 * return otherwise, if the caller has only laid down its privileges with seteuid(). Returns 0 or
 * -errno. */
int child_settle_ids(void);
/* Lowers limits only: a tighter limit is kept. Returns 0 or -errno. */
int child_set_rlimits(const struct plan *plan);

/* ---- for a function instead of a command: src/call/enter.c ---- */

/* The same start in parts, between which the caller forks with libc, so that the function runs in a
 * complete process. Each part is called in a different process and returns 0, or the exit status
 * after it reported the failure. The first part runs outside: ids, namespaces to join and to
 * create. */
int child_call_outside(struct start *start);
/* In the first process of the pid namespace: builds the jail; then, after the function's process
 * was forked, becomes init. */
int child_call_build(struct start *start);
int child_call_init(struct start *start, long command);
/* In the function's process: applies the restrictions, then waits for init. */
int child_call_confine(const struct start *start);
int child_call_wait(const struct start *start);

/* All parts in one call, for a process that waits in a template's namespaces to be forked (a
 * zygote). Makes a jail whose first process calls `fork_function` in the caller's memory. The
 * forked child must not return from it, and still has to call child_call_confine() with *ret_start.
 * Returns the pid of the process that made the jail, which the caller reaps, or -errno. */
long child_fork_jail(const struct plan *plan, int wire_fd, void *memory,
                     long (*fork_function)(void *), void *argument, struct start **ret_start);

/* ---- messages: child_clone.c ---- */

/* The host terminal's settings and size: struct termios and struct winsize of the kernel, as
 * bytes. */
struct child_terminal {
    bool has_settings, has_size;
    char settings[64];
    char size[8];
};

/* Sends a message with write(2), which every seccomp profile allows. A failure is ignored: the
 * parent sees the end of the socket. */
void child_say(int wire, int type, int a, int b);
/* Sends a message with an fd; returns 0 or -errno. */
int child_say_fd(int wire, int type, int a, int fd);
