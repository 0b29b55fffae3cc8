/* SPDX-License-Identifier: MIT */
/* Keeping masks and protections in place: when the host replaces or creates such a file below a
 * granted directory, the kernel drops the mount over it in the jail; this notices and puts it back.
 *
 * The jail's table of mounts tells that a mount is gone. That a name appears which had nothing to
 * mount on, or that a directory further up is replaced, only inotify tells, and to close that takes
 * the kernel 7 ms: so where there are no masks, it is begun with when the run has lasted a while. Who
 * has the table open keeps the mounts alive, and takes them down in the end; so it, too, is left to
 * runs that last. */
#pragma once

#include "jail/plan/plan.h"

struct watch {
    int fd;           /* inotify, or -1 where there is nothing to watch, or not yet */
    int mounts;       /* the jail's table of mounts, for EPOLLPRI, or -1 */
    int *descriptors; /* of the plan's masks, in their order */
    bool *tried;      /* the same: somebody was about to replace it, and has not */
    size_t count;
};

#define WATCH_INIT                                                                                 \
    (struct watch)                                                                                 \
    {                                                                                              \
        .fd = -1, .mounts = -1                                                                     \
    }

/* Begins before the jail is started, so that no change is missed. */
int watch_start(struct watch *watch, const struct plan *plan, struct brig_error *err);
/* Once it is, and if there are masks. */
void watch_mounts(struct watch *watch, const struct plan *plan, pid_t pid);
/* How long after its start a run is to be watched more closely; 0 if nothing is left to do. */
uint64_t watch_delay_us(const struct watch *watch, const struct plan *plan);
/* That long after: first the mounts are watched, the next time the names; and lays again what was
 * missed. Afterwards watch->mounts, then watch->fd is there. */
void watch_rest(struct watch *watch, const struct plan *plan, pid_t pid,
                struct brig_unenforced *notices);
/* After events on watch->fd or on watch->mounts: lays again what is missing in the jail of `pid`, and
 * says so in *notices. */
void watch_process(struct watch *watch, const struct plan *plan, pid_t pid,
                   struct brig_unenforced *notices);
void watch_mounts_changed(struct watch *watch, const struct plan *plan, pid_t pid,
                          struct brig_unenforced *notices);
/* Covers what has come to the plan's masks from an index on, and watches it as well. */
int watch_more(struct watch *watch, const struct plan *plan, size_t from, pid_t pid,
               struct brig_error *err);
/* When nobody is left in the jail: no mount matters any more. */
void watch_leave(struct watch *watch);
/* When the jail is over: adds what was tried in vain. */
void watch_conclude(struct watch *watch, const struct plan *plan, struct brig_unenforced *notices);
void watch_done(struct watch *watch);
