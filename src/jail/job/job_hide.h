/* SPDX-License-Identifier: MIT */
/* Hiding more of the host in a jail that runs, in watch.c. */
#pragma once

#include <brig/brig.h>

/* Hides a path of the host in a jail that runs, wherever its grants show it, also if it does not exist
 * yet. `policy` is the one it was started with. Files that are open stay open. */
int job_hide(struct brig_job *job, const struct brig_policy *policy, const char *path,
             struct brig_error *err);

/* Adds a line to the notices of its result. */
void job_note(struct brig_job *job, const char *text);
