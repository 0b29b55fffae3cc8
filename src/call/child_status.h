/* SPDX-License-Identifier: MIT */
/* Theory of operation: how a caller learns that a child was confined, and finds a child whose pid
 * it was never given.
 *
 * The statuses of a brig_caller are a memfd with one slot per call in progress. The caller's
 * mapping is MADV_DONTFORK: otherwise a function would have the statuses of all other calls in its
 * memory. The child maps the memfd by its fd, marks its slot as confined, and unmaps it before the
 * function runs; by then the fd is closed like all others.
 *
 * A slot serves one turn at a time. If an interpreter raises an exception between the fork and
 * brig_call_started(), the caller frees the call: this ends the turn and returns the pid of a child
 * that has already entered. A child that enters later sees that its turn is over, and exits. Turn
 * and pid are one atomic word, so there is no race between the two.
 *
 * A program that forks by itself, such as a server that forks its workers, does not have the mapping
 * in the forked process. `mark` tells: its page is filled with zeros there (MADV_WIPEONFORK), and
 * child_statuses_renew() then makes statuses of this process. No lock is used, because another thread
 * may have held it during the fork. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct brig_error;

/* How far the child got. */
struct child_told {
    bool passed; /* the child was confined: the function is responsible for everything later */
    int step;    /* failed step, for plan_explain_failure() */
    int sys_errno;
};

struct child_status {
    uint32_t taken;    /* used by the caller's side only */
    int32_t step;      /* failed step in the child, for plan_explain_failure() */
    int32_t sys_errno; /* its errno */
    uint32_t unused;
    uint64_t word; /* turn, confined flag and pid; see child_status.c */
};
#define CHILD_STATUSES 1024
#define CHILD_STATUS_BYTES (CHILD_STATUSES * sizeof(struct child_status))

struct child_statuses {
    struct child_status *slots; /* NULL: not initialised */
    int fd;
    uint32_t *mark; /* whether the slots are of this process: see child_status.c */
};
#define CHILD_STATUSES_INIT ((struct child_statuses){.fd = -1})

int child_statuses_init(struct child_statuses *statuses, struct brig_error *err);
void child_statuses_done(struct child_statuses *statuses);

/* ---- the caller's side; thread-safe ---- */

/* Makes new statuses if this process was forked from the one that made them. */
int child_statuses_renew(struct child_statuses *statuses, struct brig_error *err);
/* Takes a free slot and returns its turn; NULL if all slots are taken. */
struct child_status *child_status_take(const struct child_statuses *statuses, uint32_t *ret_turn);
struct child_told child_status_read(const struct child_status *status);
/* Ends the turn: no child can enter any more. Returns the pid of a child that has entered, or 0.
 * The slot stays taken, so that the caller can kill the child first. */
pid_t child_status_close(struct child_status *status);
/* Frees the slot. */
void child_status_return(struct child_status *status);

/* ---- the child's side ---- */

/* Maps the slots in a child; NULL on failure. */
struct child_status *child_status_map(const struct child_statuses *statuses);
/* Marks the slot as entered, and later as confined. Return false if the turn is over: the call was
 * freed. */
bool child_status_enter(struct child_status *status, uint32_t turn, pid_t pid);
bool child_status_pass(struct child_status *status, uint32_t turn);
