/* SPDX-License-Identifier: MIT */
/* Theory of operation: how a caller knows that a child was confined, and of a child it was not told of.
 *
 * The statuses of a brig_caller are a file without a name with a slot for each call under way. No fork
 * inherits the caller's mapping of it: a function would have the statuses of every other call in
 * its memory. The child maps it by its fd, says that it is confined, and unmaps it before the function runs;
 * the fd is closed by then, as all are.
 *
 * A slot is used for one turn at a time. If an exception of an interpreter comes between the fork and
 * brig_call_started(), the caller frees the call: that ends the turn, and returns the pid of a child that has
 * entered. A child that enters later finds that its turn is over, and ends. Turn and pid are one atomic word,
 * so there is no moment in between. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct brig_error;

/* How far a child came. */
struct child_told {
    bool passed; /* it was confined: what came after is the function's doing */
    int step;    /* what failed, as plan_explain_failure() has it, */
    int sys_errno;
};

struct child_status {
    uint32_t taken;    /* the caller's */
    int32_t step;      /* what failed in the child, as plan_explain_failure() has it, */
    int32_t sys_errno; /* and its errno */
    uint32_t unused;
    uint64_t word; /* turn, whether the child is confined, its pid; see child_status.c */
};
#define CHILD_STATUSES 1024
#define CHILD_STATUS_BYTES (CHILD_STATUSES * sizeof(struct child_status))

struct child_statuses {
    struct child_status *slots; /* NULL: none were made */
    int fd;
};
#define CHILD_STATUSES_INIT ((struct child_statuses){.fd = -1})

int child_statuses_init(struct child_statuses *statuses, struct brig_error *err);
void child_statuses_done(struct child_statuses *statuses);

/* ---- the caller's side; safe among threads ---- */

/* A free slot and its turn; NULL if all are taken. */
struct child_status *child_status_take(const struct child_statuses *statuses, uint32_t *ret_turn);
/* How far the child came. */
struct child_told child_status_read(const struct child_status *status);
/* Ends the turn. Returns the pid of the child that has entered, or 0: no child can enter any more. The slot
 * stays taken, so that the child can be killed first. */
pid_t child_status_close(struct child_status *status);
/* It can be taken again. */
void child_status_return(struct child_status *status);

/* ---- the child's side ---- */

/* The slots, mapped in a child; NULL if they cannot be. */
struct child_status *child_status_map(const struct child_statuses *statuses);
/* Comes in, and is confined. False: the turn is over, and with it the call. */
bool child_status_enter(struct child_status *status, uint32_t turn, pid_t pid);
bool child_status_pass(struct child_status *status, uint32_t turn);
