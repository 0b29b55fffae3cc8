/* SPDX-License-Identifier: MIT */
/* Jails that are ready before it is known what they are for: built, walled and watched, with a command
 * that waits to be let go. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

struct zygote;

/* What comes with the release. The code is the content of the policy's late file (policy_late_file()),
 * the input that of BRIG_STDIO_BYTES where policy->late_input is set. */
struct job_late {
    const void *code;
    size_t code_length;
    const void *input;
    size_t input_length;
    uint64_t wall_ms; /* from now on; 0: no limit */
};

/* As brig_start(), but the command waits right before its exec. Without namespaces nothing is held:
 * BRIG_E_UNSUPPORTED. */
int job_start_held(const struct brig_policy *policy, const struct brig_command *command,
                   struct brig_job **ret_job, struct brig_error *err);
/* Whether a held command waits, with everything in place. */
bool job_is_waiting(const struct brig_job *job);
/* Whether it runs as far as to its late file, and waits for that. So it is with policy->late_open where the
 * kernel lets somebody wait for a file for long enough: it does for three quarters of a minute by default. What
 * has waited longer than JOB_AT_FILE_MS must not be let go any more; job_release() sees to that. */
#define JOB_AT_FILE_MS UINT64_C(30000)
bool job_is_at_file(const struct brig_job *job);
/* For who has others waiting: the result is there as soon as nobody is left in the jail; what remains of it
 * is cleared away by brig_job_free(), at once after job_is_gone(), of which brig_job_fd() tells. */
void job_answer_early(struct brig_job *job);
bool job_is_gone(const struct brig_job *job);
/* The zygote that should have made the jail, and for as long has made none at all; else NULL. */
const struct zygote *job_stuck_zygote(const struct brig_job *job, uint64_t patience_us);
/* The directory of brig_job_kept_dir(), from now on the caller's to close; -1: there is none. */
int job_take_kept(struct brig_job *job);
/* Fills what is late, starts the clock and lets the command go. Also for a job of brig_start() with
 * something late, whose command knows by itself how to wait for it. Once is all. */
int job_release(struct brig_job *job, const struct job_late *late, struct brig_error *err);
