/* SPDX-License-Identifier: MIT */
/* What the processes of one start share: the files that run between clone and exec. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "jail/child/child.h"

/* Error and signal numbers live in headers that cannot be mixed with the kernel's. */
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

/* Above the stacks, in the caller's memory or in a copy of it. */
struct start {
    const struct plan *plan;
    int wire;
    char *stack;    /* of CHILD_STACK_BYTES each: intermediate, first process, command */
    bool by_clone3; /* which has cleared the handlers, and put us into the group */
    unsigned umask; /* the caller's, for the command */
    /* Cleared by the kernel when the command's process leaves this memory, by exec or by its end. */
    int command_here;
    int first;            /* the first process, outside; of an intermediate */
    int pidfd;            /* of the first process, in the table of whoever cloned it */
    int gate[2];          /* a pipe that the command's process reads from until init writes */
    long (*fork)(void *); /* who forks, in child_fork_…(): the pid or -errno, in the parent */
    void *fork_argument;
};

/* ---- child_clone.c ---- */

/* How to clone a process of a start. */
struct child_clone {
    unsigned long flags;
    int exit_signal;
    int stack;         /* which of the three */
    int *here;         /* for CLONE_CHILD_CLEARTID, or NULL */
    int *pid;          /* gets the pid as soon as there is one, or NULL; only clone3 does it */
    const int *cgroup; /* fd of the group to be born in, or NULL */
    int (*function)(void *);
};

/* clone3, or clone where clone3 is missing (old containers' filters answer ENOSYS or EPERM): the
 * pid, or -errno. The child calls function(start) and exits with what it returns. */
long child_clone(struct start *start, const struct child_clone *clone);
/* Waits until the process that `here` was given to has left this memory. */
void child_wait_until_gone(const int *here);
/* Reports a failed step; the exit status. */
int child_failed(const struct start *start, int step, long result);
/* Every fd from this one on is closed by an exec. */
void child_close_on_exec(int first);
/* Closes every fd from `first` on but these; those that are -1 are passed over. */
void child_close_all_but(int first, const int *kept, size_t count);

/* ---- child.c ---- */

/* Brings the network up that the clone made, and opens its door. 0, or the exit status after the
 * failure was reported. */
int child_make_network(const struct start *start);
/* ---- child_door.c ---- */

/* What plan->door asks for, in the network namespace we are in. 0, or the exit status after the
 * failure was reported. */
int child_open_door(const struct start *start);

/* ---- child_group.c ---- */

/* Whether there is a group to be in before the jail's view of groups begins. */
bool child_is_grouped(const struct plan *plan);
/* Enters the group of v2 where clone could not put us there, which takes longer. 0 or -errno. */
int child_enter_group(const struct start *start);
/* Joins the groups of v1, or the leaf of a tool; then what the jail sees of groups begins where it
 * is. 0 or -errno. */
int child_join_groups(const struct plan *plan);
/* ---- child_enter.c ---- */

/* Joins the namespaces of a jail that runs, where hostile processes are waiting. 0 or -errno. */
int child_enter(const struct start *start);

/* ---- child_command.c ---- */

/* The command's process, from its clone to its exec. */
int child_command_main(void *start);
/* The same low 32 bits of all three sets, or -errno. */
int child_set_caps(uint32_t low);
void child_drop_bounding_set(void);
/* Only ever lowers: a limit that is tighter already stays. 0 or -errno. */
int child_set_rlimits(const struct plan *plan);

/* ---- for a function instead of a command: src/call/enter.c ---- */

/* The way in has the same parts, but between them libc forks, so that the function finds a whole
 * process. Each is called in a process of its own and returns 0, or the exit status after the
 * failure was reported. First, outside: ids, namespaces to join and to make. */
int child_call_outside(struct start *start);
/* In the namespace's first process: builds the jail; then, with the function's process forked,
 * becomes init. */
int child_call_build(struct start *start);
int child_call_init(struct start *start, long command);
/* In the function's own process: the restrictions, and then waiting for init. */
int child_call_confine(const struct start *start);
int child_call_wait(const struct start *start);

/* All of it for who waits in a template's namespaces to be forked: makes a jail in which `fork_function`
 * is called, by its first process and in our memory. In the child that must not return; what is left to
 * do there is child_call_confine() with *ret_start. The pid of who has made it, to be reaped, or -errno. */
long child_fork_jail(const struct plan *plan, int wire_fd, void *memory,
                     long (*fork_function)(void *), void *argument, struct start **ret_start);

/* ---- child say ---- */

/* What the child says on its socket, and the host terminal's state it is handed. */

/* The host terminal as the kernel described it: struct termios and struct winsize as bytes. */
struct child_terminal {
    bool has_settings, has_size;
    char settings[64];
    char size[8];
};

/* By write(2), which every seccomp profile allows. Nothing to do if it fails: the parent sees the
 * end of the socket. */
void child_say(int wire, int type, int a, int b);
/* The same with an fd; 0 or -errno. */
int child_say_fd(int wire, int type, int a, int fd);
