/* SPDX-License-Identifier: MIT */
/* Runs a job to its end: signals, the terminal, stopping and continuing. */
#pragma once

#include <brig/brig.h>

#include "cli/credentials/oauth.h"
#include "cli/network/ask.h"
#include "cli/network/net_watch.h"
#include "cli/run/masks.h"
#include "cli/run/terminal.h"
#include "git/guard.h"

#define RUN_LOOP_RELAYS 2

/* Zero-initialise, except for signal_fd, which is -1. */
struct run_loop {
    int signal_fd;
    uint64_t grace_ms;        /* between the first request to end and SIGKILL */
    struct relay *relays;     /* borrowed: RUN_LOOP_RELAYS of them, or NULL */
    struct net_watch *net;    /* borrowed; receives the network events */
    struct ask *ask;          /* borrowed, or NULL: destinations that wait for the user's answer */
    struct oauth *oauth;      /* borrowed, or NULL: refreshes tokens during the run */
    struct live_masks *masks; /* borrowed, or NULL */
    struct guard *guard;      /* borrowed, or NULL: fetches git commits during the run */

    /* Internal to the loop: */
    bool has_terminal;    /* brig was started with a controlling terminal */
    bool hang_up_ignored; /* SIGHUP was ignored at the start, as under nohup */
    struct brig_job *job;
    struct terminal *terminal; /* NULL: the job has none */
    uint64_t asked_ms;         /* when the end was first requested, or 0 */
    bool hung_up;              /* the terminal hung up, and the command got SIGHUP */
    uint64_t hang_up_ms;       /* when to kill the remaining processes after a hangup, or 0 */
    uint64_t stop_asked_ms;    /* when a signal or a key requested a stop, or 0 */
    uint64_t fetch_ms;         /* when to look for new commits next */
};

/* Called before the job starts: blocks signals, for the loop to read. Release with
 * run_loop_done. */
int run_loop_init(struct run_loop *loop, struct brig_error *err);

/* Runs a job to its end, if it was started (status is 0), and frees it. *ret_result is always
 * filled in. The host's terminal is then restored. A second SIGINT or SIGTERM within grace_ms of
 * the first kills the job. When the terminal hangs up, the command gets SIGHUP, and remaining
 * processes are killed after grace_ms, unless SIGHUP was ignored when brig was started. */
void run_loop_finish(struct run_loop *loop, struct brig_job *job, int status,
                     struct brig_result *ret_result, struct brig_error *err);

/* Moves brig into a systemd scope of its own: in a login session, cgroups can be created only with
 * systemd's help, which takes some milliseconds. If it fails, the engine later reports what is
 * missing. */
void run_loop_enter_scope(void);
