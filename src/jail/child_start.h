/* SPDX-License-Identifier: MIT */
/* What the processes of one start share: the files that run between clone and exec. */
#pragma once

#include "jail/child.h"

/* Error and signal numbers live in headers that cannot be mixed with the kernel's. */
enum {
    ERR_EPERM = 1,
    ERR_ENOENT = 2,
    ERR_ENOEXEC = 8,
    ERR_EACCES = 13,
    ERR_ENOTDIR = 20,
    ERR_ENOSYS = 38,
    SIGNAL_PIPE = 13,
    SIGNAL_CHILD = 17,
    SIGNAL_FILE_SIZE = 25,
    SIGNAL_COUNT = 64,
};

/* On the caller's stack, or in a copy of its memory. */
struct start {
    const struct plan *plan;
    int wire;
    char *stack;           /* three of CHILD_STACK_BYTES: intermediate, first process, command */
    bool handlers_cleared; /* clone3 did it */
    bool no_fallback;      /* clone3 or nothing */
    unsigned umask;        /* the caller's, for the command */
    /* Cleared by the kernel when the process leaves this memory, by exec or by its end. */
    int command_here, builder_here;
    int pidfd;   /* of the first process, in the table of whoever cloned it */
    int gate[2]; /* a pipe: init writes, the command waits with its exec */
    int builder_result;
};

/* ---- child_clone.c ---- */

/* How to clone a process of a start. */
struct child_clone {
    unsigned long flags;
    int exit_signal;
    int stack; /* which of the three */
    int pid;   /* the one it shall have inside, or 0 */
    int *here; /* for CLONE_CHILD_CLEARTID, or NULL */
    int (*function)(void *);
};

/* clone3, or clone where clone3 is missing (old containers' filters answer ENOSYS or EPERM): the
 * pid, or -errno. The child calls function(start) and exits with what it returns. */
long child_clone(struct start *start, const struct child_clone *clone);
/* Waits until the process that `here` was given to has left this memory. */
void child_wait_until_gone(const int *here);
/* Reports a failed step; the exit status. */
int child_failed(const struct start *start, int step, long result);

/* ---- child_command.c ---- */

/* The command's process, from its clone to its exec. */
int child_command_main(void *start);
/* The same low 32 bits of all three sets, or -errno. */
int child_set_caps(uint32_t low);
void child_drop_bounding_set(void);
