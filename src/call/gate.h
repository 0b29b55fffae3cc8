/* SPDX-License-Identifier: MIT */
/* Theory of operation: how a caller knows that a child was confined, and of a child it was not told of.
 *
 * The gates of a brig_caller are a file without a name with a slot for each call under way. No fork
 * inherits the caller's mapping of it: a function would have the gates of every other caller in
 * its memory. The child maps it by its fd, goes through, and unmaps it before the function runs; the
 * fd is closed by then, as all are.
 *
 * A slot is good for one turn. Who forked and never said so, as an exception of an interpreter came
 * between, gives the slot back: that ends the turn, and tells who has come through it. A child that
 * comes later finds that its turn is over, and ends. Both are one atomic word, so there is no moment
 * between. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "call/told.h"

struct gate {
    uint32_t taken;    /* the caller's */
    int32_t step;      /* what failed in the child, as plan_explain_failure() has it, */
    int32_t sys_errno; /* and its errno */
    uint32_t unused;
    uint64_t word; /* turn, whether the child is confined, its pid; see gate.c */
};
#define GATES 1024
#define GATES_BYTES (GATES * sizeof(struct gate))

struct gates {
    struct gate *slots; /* NULL: none were made */
    int fd;
};
#define GATES_INIT ((struct gates){.fd = -1})

int gates_init(struct gates *gates, struct brig_error *err);
void gates_done(struct gates *gates);

/* ---- the caller's side; safe among threads ---- */

/* A free slot and its turn; NULL if all are taken. */
struct gate *gate_take(const struct gates *gates, uint32_t *ret_turn);
/* How far the child came. */
struct told gate_read(const struct gate *gate);
/* Ends the turn. Returns the pid of who has come in, or 0: then nobody will any more. The slot stays
 * taken, so that who is there can be ended first. */
pid_t gate_close(struct gate *gate);
/* It can be taken again. */
void gate_return(struct gate *gate);

/* ---- the child's side ---- */

/* The slots, mapped in a child; NULL if they cannot be. */
struct gate *gates_map(const struct gates *gates);
/* Comes in, and is confined. False: the turn is over, and with it the call. */
bool gate_enter(struct gate *gate, uint32_t turn, pid_t pid);
bool gate_pass(struct gate *gate, uint32_t turn);
