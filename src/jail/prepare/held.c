/* SPDX-License-Identifier: MIT */
/* Letting a command go that was held: see held.h. */
#include "jail/prepare/held.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/proc.h"
#include "base/write.h"
#include "jail/job/job.h"
#include "jail/job/streams.h"

bool job_is_waiting(const struct brig_job *job)
{
    return job->state == JOB_RUNNING && job->waiting && !job->building;
}

bool job_is_at_file(const struct brig_job *job)
{
    return job->at_file;
}

int job_take_kept(struct brig_job *job)
{
    return take_fd(&job->kept);
}

/* ---- at the file ---- */

#define LEASE_FILE "/proc/sys/fs/lease-break-time"
#define LEASE_SECONDS 40 /* that the kernel must have patience for at least; 0 is for ever */
#define TOO_LONG_US (JOB_AT_FILE_MS * 1000 + 5000000)

static bool lease_lasts(void)
{
    bool whole;
    autofree char *text = proc_read(LEASE_FILE, 64, &whole);
    if (!text || !whole || text[0] < '0' || text[0] > '9')
        return false;
    unsigned long seconds = strtoul(text, NULL, 10);
    return seconds == 0 || seconds >= LEASE_SECONDS;
}

static bool open_gate(struct brig_job *job)
{
    bool opened = send(job->gate, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
    (void)close(take_fd(&job->gate));
    return opened;
}

void job_let_in(struct brig_job *job)
{
    if (!job->waiting || !job->leased || job->building || job->gate < 0 || !lease_lasts())
        return;
    job->at_file = true;
    (void)open_gate(job); /* if it is gone, that is heard of */
}

/* The kernel lets nobody wait for ever: then it would have read a file without code. */
static int check_patience(const struct brig_job *job, uint64_t since_us, struct brig_error *err)
{
    if (!job->at_file || clock_now_us() < since_us + TOO_LONG_US)
        return 0;
    return brig_fail(err, BRIG_E_STATE, 0, "the jail has waited too long");
}

/* ---- the release ---- */

static int fill_input(struct brig_job *job, const struct job_late *late, struct brig_error *err)
{
    if (job->late_input < 0)
        return 0;
    int result = streams_fill_input(job->late_input, late->input, late->input_length, err);
    (void)close(take_fd(&job->late_input));
    return result;
}

/* With the last of it, who waits at the file goes on. A copy of the fd may be on its way to an exec of
 * somebody else: so the lease is given back, where we may, and not only closed. */
static int fill_file(struct brig_job *job, const struct job_late *late, uint64_t since_us,
                     struct brig_error *err)
{
    if (job->late < 0)
        return 0;
    int result = write_all(job->late, late->code, late->code_length);
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot write the code into its jail");
    result = check_patience(job, since_us, err);
    if (result == 0 && job->leased)
        (void)fcntl(job->late, F_SETLEASE, F_UNLCK);
    (void)close(take_fd(&job->late));
    return result < 0 ? result : check_patience(job, since_us, err);
}

int job_release(struct brig_job *job, const struct job_late *late, struct brig_error *err)
{
    if (job->state != JOB_RUNNING || (!job->waiting && !job_is_awaited(job)))
        return brig_fail(err, BRIG_E_STATE, 0, "the command does not wait");
    if (job->building)
        return job_build_release(job, late, err);
    uint64_t since_us = job->started_us;
    int result = fill_input(job, late, err);
    if (result < 0)
        return result;
    job->started_us = clock_now_us();
    if ((result = fill_file(job, late, since_us, err)) < 0)
        return result;
    job_start_clock(job, late->wall_ms);
    if (job->gate >= 0 && !open_gate(job))
        return brig_fail(err, BRIG_E_STATE, 0, "the jail is gone");
    job->waiting = job->at_file = false;
    return job_arm_timer(job, err);
}
