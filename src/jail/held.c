/* SPDX-License-Identifier: MIT */
/* Letting a command go that was held: see held.h. */
#include "jail/held.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/write.h"
#include "jail/job.h"
#include "jail/streams.h"

bool job_is_waiting(const struct brig_job *job)
{
    return job->state == JOB_RUNNING && job->waiting && !job->building;
}

int job_take_kept(struct brig_job *job)
{
    return take_fd(&job->kept);
}

static int fill(struct brig_job *job, const struct job_late *late, struct brig_error *err)
{
    int result = job->late < 0 ? 0 : write_all(job->late, late->code, late->code_length);
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot write the code into its jail");
    if (job->late >= 0)
        (void)close(take_fd(&job->late));
    if (job->late_input < 0)
        return 0;
    result = streams_fill_input(job->late_input, late->input, late->input_length, err);
    (void)close(take_fd(&job->late_input));
    return result;
}

int job_release(struct brig_job *job, const struct job_late *late, struct brig_error *err)
{
    if (job->state != JOB_RUNNING || (!job->waiting && !job_is_awaited(job)))
        return brig_fail(err, BRIG_E_STATE, 0, "the command does not wait");
    if (job->building)
        return job_build_release(job, late, err);
    int result = fill(job, late, err);
    if (result < 0)
        return result;
    job->started_us = clock_now_us();
    job_start_clock(job, late->wall_ms);
    if (job->waiting && send(job->gate, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        return brig_fail(err, BRIG_E_STATE, 0, "the jail is gone");
    if (job->gate >= 0)
        (void)close(take_fd(&job->gate));
    job->waiting = false;
    return job_arm_timer(job, err);
}
