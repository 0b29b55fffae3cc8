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

struct brig_error;

struct gate {
    uint32_t taken;    /* the caller's */
    int32_t step;      /* what failed in the child, as plan_explain_failure() has it, */
    int32_t sys_errno; /* and its errno */
    uint32_t rules;    /* enum gate_rules */
    uint64_t word; /* turn, whether the child is confined, its pid; see gate.c */
};
#define GATES 1024
#define GATES_BYTES (GATES * sizeof(struct gate))

/* Whether the rules of a call without a caller object are made, which is done after its fork. */
enum gate_rules { GATE_RULES_AWAITED, GATE_RULES_MADE, GATE_RULES_NONE };

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
/* Whether the child was confined: what came after is the function's doing. */
bool gate_was_passed(const struct gate *gate);
/* Ends the turn. Returns the pid of who has come in, or 0: then nobody will any more. The slot stays
 * taken, so that who is there can be ended first. */
pid_t gate_close(struct gate *gate);
/* It can be taken again. */
void gate_return(struct gate *gate);
/* Tells the child that its rules are there, or will never be. */
void gate_tell_rules(struct gate *gate, enum gate_rules rules);

/* ---- the child's side ---- */

/* The slots, mapped in a child; NULL if they cannot be. */
struct gate *gates_map(const struct gates *gates);
/* Comes in, and is confined. False: the turn is over, and with it the call. */
bool gate_enter(struct gate *gate, uint32_t turn, pid_t pid);
bool gate_pass(struct gate *gate, uint32_t turn);
/* Waits for the caller's word; whether there are rules. */
bool gate_await_rules(const struct gate *gate);
