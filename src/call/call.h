/* SPDX-License-Identifier: MIT */
/* A call in progress: the state shared by its setup (start.c), the child (enter.c, child.c),
 * supervision (call.c) and the result (outcome.c). */
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

/* How the function hands back its result; used in the child only. */
struct brig_call_child {
    struct memory_head *head; /* the mapping, MEMORY_SMALL_BYTES long */
    char *small;              /* the bytes after the head */
    int fd;
    uint64_t limit;
    void *large; /* a separate mapping for a value too large for `small` */
    size_t large_length;
    bool used; /* `small` already holds a value */
};

enum call_state {
    CALL_BEGUN, /* not forked yet */
    CALL_RUNNING,
    CALL_ENDING, /* SIGTERM was sent, the grace period runs */
    CALL_KILLED,
    CALL_OVER,
};

struct brig_call {
    struct brig_caller *caller;
    enum call_state state;
    struct child_status *slot; /* slot in which the child reports its progress; NULL until taken */
    uint32_t turn;             /* turn number of this call in the slot */
    int memory;                /* fd of the shared file, see memory.h */
    struct plan *own; /* full jail or cgroup: plan of this call; NULL: use the caller's plan */
    int network;      /* full: network namespace taken from the template, or -1 */
    struct limits limits;
    int wire, wire_child; /* full: socket pair to init */
    int keep_fds[BRIG_CALL_KEEP_MAX];
    size_t keep_count;
    int stdio_child[3]; /* fds to become 0 to 2 in the child; -1: leave unchanged */
    bool has_terminal;  /* one of 0 to 2 is the caller's terminal */
    struct capture captures[2];
    /* Tracing: a socket pair over which the child sends the seccomp listener. Once `listening` is
     * set, `trace` is the listener itself. */
    int trace, trace_child;
    bool listening;
    struct sock_fprog trace_filter;  /* owned */
    const struct sock_fprog *traced; /* the filter that trace_filter replaces; NULL: no tracing */
    struct brig_call_denial *denials;
    size_t denial_count;
    pid_t parent; /* pid of the calling process */
    pid_t pid;
    int pidfd;
    int init_pidfd;   /* full: pidfd of the jail's init, or -1 */
    int epoll, timer; /* for brig_call_fd() */
    uint64_t started_us, ended_us;
    uint64_t wall_deadline_us, cpu_check_us, kill_deadline_us; /* 0: not set */
    bool has_reason; /* the supervisor ended the call; `reason` says why */
    enum brig_call_outcome reason;
    /* Filled in when the process has ended. */
    bool status_known;
    int status; /* wait status */
    struct wire_message end;
    uint64_t cpu_user_us, cpu_sys_us, peak_kb;
    struct cgroup_usage group_usage;
    int failed_step, failed_errno; /* full: setup failure reported over the wire */
    struct child_told told;
    bool is_taken; /* the result was moved out */
    struct brig_call_child child;
};

static inline const struct plan *call_plan(const struct brig_call *call)
{
    return call->own ? call->own : &call->caller->plan;
}

/* Reaps the call's process after its end and records its status and usage. */
void call_conclude(struct brig_call *call);

/* In start.c: brig_call_begin() and brig_call_free() for a struct brig_call that the caller
 * allocated. If call_init() fails there is nothing to release. */
int call_init(struct brig_call *call, struct brig_caller *caller, struct brig_error *err);
void call_done(struct brig_call *call);

/* ---- enter.c and child.c: in the child ---- */

/* Records a failure for a function that returned nonzero without reporting a value or a failure. */
int child_fail_number(struct brig_call_child *child, int number);

/* ---- call.c: a call without namespaces is one process group ---- */

void group_kill(const struct brig_call *call, int signal);

/* ---- outcome.c ---- */

/* Fills in the result of a call that could not be started. */
void outcome_nothing_ran(struct brig_call_result *ret, const struct brig_error *error);
/* Adds a denial that tracing has seen to the call's list, unless it is known or there is no room. */
void outcome_note_traced(struct brig_call *call, const struct brig_call_denial *denial);
/* Fills in the result of a call that is over. If the outcome cannot be determined, *ret is all
 * zero. */
int outcome_fill(struct brig_call *call, struct brig_call_result *ret, struct brig_error *err);

/* ---- outcome.c: denials ---- */

struct memory_failure;

/* Returns whether the jail caused the reported failure; if so, fills in *ret. */
bool denial_check(const struct brig_caller *caller, const struct memory_failure *failure,
                  struct brig_call_denial *ret);
/* Says why a path was refused, and why the filter refused a system call. */
const char *denial_path_rule(bool write);
const char *denial_syscall_rule(const struct brig_caller *caller, int number);

/* ---- enter.c: terminal ---- */

/* In the child: installs a filter that refuses ioctls which change the caller's terminal. Returns 0
 * or -errno. */
int terminal_guard(void);

/* ---- trace.c ---- */

/* Copies the filter with every refusal turned into a user notification, and makes the socket pair
 * for the listener. */
int trace_open(struct brig_call *call, struct brig_error *err);
/* In the child: installs the tracing filter instead of the plain one. Returns 0 or -errno. */
int trace_install(struct brig_call *call);
/* Receives the listener; after that, answers its notifications. */
void trace_serve(struct brig_call *call, bool hung_up);
void trace_done(struct brig_call *call);

/* ---- trace_files.c ---- */

struct notice;

/* Instructions to put before the filter of a traced call: system calls with a path cause a
 * notification. Returns their number, TRACE_FILES_FILTER. */
#define TRACE_FILES_FILTER 25
size_t trace_files_filter(struct sock_filter *room);
/* Records the paths of a system call that are not granted. */
void trace_files_look(struct brig_call *call, const struct notice *notice);
