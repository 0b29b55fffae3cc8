/* SPDX-License-Identifier: MIT */
/* Drives a job to its end: signals, the terminal, stopping and going on. */
#pragma once

#include <brig/brig.h>

#include "cli/masks.h"
#include "cli/net.h"
#include "cli/terminal.h"
#include "guard/guard.h"

#define RUN_LOOP_RELAYS 2

/* Zero-initialise, but for signal_fd, which is -1. */
struct run_loop {
    int signal_fd;
    uint64_t grace_ms;        /* between the first request to end and the kill */
    struct relay *relays;     /* borrowed: RUN_LOOP_RELAYS of them, or NULL */
    struct net_watch *net;    /* borrowed; who is told of the network */
    struct live_masks *masks; /* borrowed, or NULL */
    struct guard *guard;      /* borrowed, or NULL: fetches git commits while the job goes on */

    /* The loop's own: */
    bool has_terminal;    /* brig was started with a controlling terminal */
    bool hang_up_ignored; /* SIGHUP was ignored then, as by nohup */
    struct brig_job *job;
    struct terminal *terminal; /* NULL: the job has none */
    uint64_t asked_ms;         /* when an end was first asked for, or 0 */
    bool hung_up;              /* the terminal is gone, and the command was told */
    uint64_t hang_up_ms;       /* when what is left of the command is to be ended, or 0 */
    uint64_t stop_asked_ms;    /* when a signal or a key asked us to stop, or 0 */
    uint64_t fetch_ms;         /* when commits are looked for next */
};

/* Before the job is started: from now on signals wait for the loop. Release with run_loop_done. */
int run_loop_init(struct run_loop *loop, struct brig_error *err);
void run_loop_done(struct run_loop *loop);

/* Drives a job to its end, if it was started (status is 0), and frees it. *ret_result is always
 * filled. The host's terminal is then as it was. A second SIGINT or SIGTERM within grace_ms of the
 * first ends the job. When the terminal hangs up, the command gets SIGHUP, and what is left grace_ms
 * later is ended, unless SIGHUP was ignored when brig was started. */
void run_loop_finish(struct run_loop *loop, struct brig_job *job, int status,
                     struct brig_result *ret_result, struct brig_error *err);

/* From a login's session cgroups can be made only with systemd's help, which takes some milliseconds.
 * If it fails, the engine says what is missing. */
void run_loop_enter_scope(void);
