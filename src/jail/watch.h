/* SPDX-License-Identifier: MIT */
/* Keeping masks in place: when the host replaces or creates a masked file below a granted directory,
 * the kernel drops the mount over it in the jail; this notices and puts it back. */
#pragma once

#include "jail/plan.h"

struct watch {
    int fd;           /* inotify, or -1 where there is nothing to watch */
    int *descriptors; /* of the plan's masks, in their order */
    size_t count;
};

/* Begins before the jail is started, so that no change is missed. */
int watch_start(struct watch *watch, const struct plan *plan, struct brig_error *err);
/* After events: lays again what is missing in the jail of `pid`. The number laid, or negative. */
int watch_process(struct watch *watch, const struct plan *plan, pid_t pid);
void watch_done(struct watch *watch);
