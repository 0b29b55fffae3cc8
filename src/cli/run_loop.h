/* SPDX-License-Identifier: MIT */
/* Drives a job to its end: signals, the terminal, stopping and going on. */
#pragma once

#include <brig/brig.h>

#include "cli/masks.h"
#include "cli/net.h"
#include "cli/terminal.h"
#include "guard/guard.h"

struct run_loop {
    int signal_fd;
    bool has_terminal;        /* brig was started with a controlling terminal */
    bool hang_up_ignored;     /* SIGHUP was ignored then, as by nohup */
    struct relay *relays;     /* borrowed: RUN_LOOP_RELAYS of them, or NULL */
    struct net_watch *net;    /* borrowed; who is told of the network */
    struct live_masks *masks; /* borrowed, or NULL */
    struct guard *guard;      /* borrowed, or NULL: fetches git commits while the job goes on */
};
#define RUN_LOOP_RELAYS 2

/* Before the job is started: from now on signals wait for the loop. Release with run_loop_done. */
int run_loop_init(struct run_loop *loop, struct brig_error *err);
void run_loop_done(struct run_loop *loop);

/* Returns 0 when the job is over. The host's terminal is then as it was. A second SIGINT or SIGTERM
 * within grace_ms of the first ends the job. When the terminal hangs up, the command gets SIGHUP, and
 * what is left grace_ms later is ended, unless SIGHUP was ignored when brig was started. */
int run_loop_run(const struct run_loop *loop, struct brig_job *job, uint64_t grace_ms,
                 struct brig_error *err);
