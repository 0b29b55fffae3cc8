/* SPDX-License-Identifier: MIT */
/* A call under way: what its birth (start.c), the child's side (enter.c, child.c), its supervision
 * (call.c) and its end (outcome.c) share. */
#pragma once

#include <brig/call.h>

#include "call/caller.h"
#include "call/child_status.h"
#include "call/memory.h"
#include "jail/cgroup/limits.h"
#include "jail/child/child_start.h"
#include "jail/job/streams.h"
#include "jail/plan/plan.h"
#include "jail/wire.h"

/* The function's end; in the child only. */
struct brig_call_child {
    struct memory_head *head; /* mapped, with MEMORY_SMALL_BYTES */
    char *small;              /* the room behind it */
    int fd;
    uint64_t limit;
    void *large; /* a value that does not fit there */
    size_t large_length;
    bool used; /* the room holds something already */
};

enum call_state {
    CALL_BEGUN, /* to be forked */
    CALL_RUNNING,
    CALL_ENDING, /* TERM was sent, the grace runs */
    CALL_KILLED,
    CALL_OVER,
};

struct brig_call {
    struct brig_caller *caller;
    enum call_state state;
    struct child_status *slot; /* where the child tells how far it came; NULL at first */
    uint32_t turn;             /* whose turn this is there */
    int memory;                /* see memory.h */
    struct plan *own; /* in the full jail, or with a group; NULL: the plan is the caller's */
    int network;      /* full: the namespace taken from the template, or -1 */
    struct limits limits;
    int wire, wire_child; /* full: to init */
    int keep_fds[BRIG_CALL_KEEP_MAX];
    size_t keep_count;
    int stdio_child[3]; /* what 0 to 2 shall be in the child; -1: as they are */
    bool has_terminal;  /* one of them is the caller's */
    struct capture captures[2];
    /* Tracing: a socketpair for the listener; then, if listening, trace is that: */
    int trace, trace_child;
    bool listening;
    struct sock_fprog trace_filter;  /* ours */
    const struct sock_fprog *traced; /* what it stands for; NULL: there is no tracing */
    struct brig_call_denial *denials;
    size_t denial_count;
    pid_t parent; /* us */
    pid_t pid;
    int pidfd;
    int init_pidfd;   /* full: of the jail's first process, or -1 */
    int epoll, timer; /* for brig_call_fd() */
    uint64_t started_us, ended_us;
    uint64_t wall_deadline_us, cpu_check_us, kill_deadline_us; /* 0: none */
    bool has_reason;                                           /* we ended it, and this is why */
    enum brig_call_outcome reason;
    /* What was observed of its end: */
    bool status_known;
    int status; /* as wait() packs it */
    struct wire_message end;
    uint64_t cpu_user_us, cpu_sys_us, peak_kb;
    struct cgroup_usage group_usage;
    int failed_step, failed_errno; /* full: said over the wire, before anything ran */
    struct child_told told;
    struct brig_call_child child;
};

static inline const struct plan *call_plan(const struct brig_call *call)
{
    return call->own ? call->own : &call->caller->plan;
}

/* The call's process is over: reaps it and keeps all that is to be known of it. */
void call_conclude(struct brig_call *call);

/* In start.c: brig_call_begin() and brig_call_free() of a call in memory of the caller's. On failure there is
 * nothing to be done with. */
int call_init(struct brig_call *call, struct brig_caller *caller, struct brig_error *err);
void call_done(struct brig_call *call);

/* ---- enter.c and child.c: in the child ---- */

/* For a function that returned a number and said nothing. */
int child_fail_number(struct brig_call_child *child, int number);

/* Ends a child that could not be confined; its status tells why. */
void enter_failed(struct brig_call *call, int step, int error) __attribute__((noreturn));

/* ---- group.c: the processes of a call without namespaces, which are one process group ---- */

void group_kill(const struct brig_call *call, int signal);

/* ---- outcome.c ---- */

/* The result of a call that did not come to be. */
void outcome_nothing_ran(struct brig_call_result *ret, const struct brig_error *error);
/* Adds to the list. 0 or BRIG_E_NOMEM. */
int outcome_keep_denial(struct brig_call *call, const struct brig_call_denial *denial);
/* What became of a call that is over. If that cannot be told, *ret is all zero. */
int outcome_fill(struct brig_call *call, struct brig_call_result *ret, struct brig_error *err);

/* ---- denial.c ---- */

struct memory_failure;

/* Whether the jail is why a function failed as it says; fills *ret if so. */
bool denial_check(const struct brig_caller *caller, const struct memory_failure *failure,
                  struct brig_call_denial *ret);

/* ---- terminal.c ---- */

/* In the child: what the caller's terminal is asked from here on, it does not do. 0 or -errno. */
int terminal_guard(void);

/* ---- trace.c ---- */

/* The filter with its denials turned into questions, and the socket the listener comes through. */
int trace_open(struct brig_call *call, struct brig_error *err);
/* In the child, in place of the plain filter: 0 or -errno. */
int trace_install(struct brig_call *call);
/* Takes the listener, then answers what it asks. */
void trace_serve(struct brig_call *call, bool hung_up);
void trace_done(struct brig_call *call);
