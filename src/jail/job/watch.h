/* SPDX-License-Identifier: MIT */
/* Keeps masks and protections mounted. When the host replaces or creates a masked file below a
 * granted directory, the kernel drops the mount over it in the jail; this module notices and mounts
 * it again.
 *
 * A change of the jail's mount table shows that a mount is gone. Only inotify shows that a name was
 * created that had nothing to mount on, or that a parent directory was replaced. Closing an inotify
 * descriptor takes the kernel 7 ms, so without masks it is opened only once the run has lasted a
 * while. An open mount table keeps the mounts alive until it is closed, and closing it then pays
 * for the unmount; so it, too, is opened only for runs that last. */
#pragma once

#include "jail/job/result.h"
#include "jail/plan/plan.h"
#include "jail/view/mask_watch.h"

struct watch {
    struct mask_watch names; /* not open if there is nothing to watch, or not yet */
    int mounts;              /* the jail's table of mounts, for EPOLLPRI, or -1 */
    bool *tried;             /* per mask of the plan: a replacement was prevented */
    size_t tried_count;
};

#define WATCH_INIT                                                                                 \
    (struct watch)                                                                                 \
    {                                                                                              \
        .names = {.fd = -1}, .mounts = -1                                                          \
    }

/* Called before the jail starts, so that no change is missed. */
int watch_start(struct watch *watch, const struct plan *plan, struct brig_error *err);
/* Watches the mount table of the started jail, if there are masks. */
void watch_mounts(struct watch *watch, const struct plan *plan, pid_t pid);
/* Returns how long after the start the next watch is to be opened; 0 if none is missing. */
uint64_t watch_delay_us(const struct watch *watch, const struct plan *plan);
/* Called after watch_delay_us(): opens watch->mounts the first time and watch->names.fd the second
 * time, and mounts again what was lost before. */
void watch_rest(struct watch *watch, const struct plan *plan, pid_t pid,
                struct brig_unenforced *notices);
/* Called after events on watch->names.fd or watch->mounts: mounts again what is missing in the jail
 * of `pid`, and adds a line about it to *notices. */
void watch_process(struct watch *watch, const struct plan *plan, pid_t pid,
                   struct brig_unenforced *notices);
void watch_mounts_changed(struct watch *watch, const struct plan *plan, pid_t pid,
                          struct brig_unenforced *notices);
/* Called when no process is left in the jail: stops watching. */
void watch_leave(struct watch *watch);
/* Called when the jail is over: adds the prevented replacements to *notices. */
void watch_conclude(struct watch *watch, const struct plan *plan, struct brig_unenforced *notices);
void watch_done(struct watch *watch);

/* Hides a host path in a running jail, wherever its grants show it, also if it does not exist yet.
 * `policy` is the one the jail was started with. Files that are open stay open. */
int job_hide(struct brig_job *job, const struct brig_policy *policy, const char *path,
             struct brig_error *err);
/* Adds a line to the notices of the job's result. */
void job_note(struct brig_job *job, const char *text);
