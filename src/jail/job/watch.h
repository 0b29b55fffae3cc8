/* SPDX-License-Identifier: MIT */
/* Keeping masks and protections in place: when the host replaces or creates such a file below a
 * granted directory, the kernel drops the mount over it in the jail; this notices and puts it back.
 *
 * The jail's table of mounts tells that a mount is gone. That a name appears which had nothing to
 * mount on, or that a directory further up is replaced, only inotify tells, and to close that takes
 * the kernel 7 ms: so where there are no masks, it starts when the run has lasted a while. An open table
 * keeps the mounts alive, and they are unmounted when it is closed; so it, too, is left to runs that
 * last. */
#pragma once

#include "jail/plan/plan.h"
#include "jail/view/mask_watch.h"

struct watch {
    struct mask_watch names; /* not open where there is nothing to watch, or not yet */
    int mounts;              /* the jail's table of mounts, for EPOLLPRI, or -1 */
    bool *
        tried; /* of the plan's masks, in their order: something was about to replace it, and has not */
    size_t tried_count;
};

#define WATCH_INIT                                                                                 \
    (struct watch)                                                                                 \
    {                                                                                              \
        .names = {.fd = -1}, .mounts = -1                                                          \
    }

/* Begins before the jail is started, so that no change is missed. */
int watch_start(struct watch *watch, const struct plan *plan, struct brig_error *err);
/* Once it is, and if there are masks. */
void watch_mounts(struct watch *watch, const struct plan *plan, pid_t pid);
/* How long after its start a run is to be watched more closely; 0 if nothing is left to do. */
uint64_t watch_delay_us(const struct watch *watch, const struct plan *plan);
/* That long after: first the mounts are watched, the next time the names; and lays again what was
 * missed. Afterwards watch->mounts, then watch->names.fd is there. */
void watch_rest(struct watch *watch, const struct plan *plan, pid_t pid,
                struct brig_unenforced *notices);
/* After events on watch->names.fd or on watch->mounts: lays again what is missing in the jail of `pid`, and
 * says so in *notices. */
void watch_process(struct watch *watch, const struct plan *plan, pid_t pid,
                   struct brig_unenforced *notices);
void watch_mounts_changed(struct watch *watch, const struct plan *plan, pid_t pid,
                          struct brig_unenforced *notices);
/* When nobody is left in the jail: no mount matters any more. */
void watch_leave(struct watch *watch);
/* When the jail is over: adds what was tried in vain. */
void watch_conclude(struct watch *watch, const struct plan *plan, struct brig_unenforced *notices);
void watch_done(struct watch *watch);

/* Hides a path of the host in a jail that runs, wherever its grants show it, also if it does not exist
 * yet. `policy` is the one it was started with. Files that are open stay open. */
int job_hide(struct brig_job *job, const struct brig_policy *policy, const char *path,
             struct brig_error *err);
/* Adds a line to the notices of its result. */
void job_note(struct brig_job *job, const char *text);
