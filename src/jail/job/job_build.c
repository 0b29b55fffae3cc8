/* SPDX-License-Identifier: MIT */
/* A job whose jail is made by a zygote meanwhile: what is heard of that, and what waits for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "jail/job/job.h"
#include "jail/prepare/held.h"
#include "jail/prepare/zygote_parts.h"

void job_building_free(struct job_building *building)
{
    if (!building)
        return;
    zygote_free(building->zygote);
    free(building->late);
    free(building);
}

/* One piece of memory: the structure, the code, the input. */
static struct job_late *copy_late(const struct job_late *late)
{
    struct job_late *copy = malloc(sizeof *copy + late->code_length + late->input_length);
    if (!copy)
        return NULL;
    char *code = (char *)(copy + 1), *input = code + late->code_length;
    if (late->code_length > 0)
        memcpy(code, late->code, late->code_length);
    if (late->input_length > 0)
        memcpy(input, late->input, late->input_length);
    *copy = *late;
    copy->code = code;
    copy->input = input;
    return copy;
}

int job_build_release(struct brig_job *job, const struct job_late *late, struct brig_error *err)
{
    struct job_building *building = job->building;
    if (building->late)
        return brig_fail(err, BRIG_E_STATE, 0, "the command does not wait");
    building->late = copy_late(late);
    return building->late ? 0 : brig_fail_nomem(err);
}

static int take_pid(struct brig_job *job, pid_t pid, int *pidfd, struct brig_error *err)
{
    if (job->pidfd >= 0)
        return 0;
    job->pidfd = fds_keep_high(take_fd(pidfd));
    job->pid = pid;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = job->pidfd};
    if (job->pidfd < 0 || epoll_ctl(job->epoll, EPOLL_CTL_ADD, job->pidfd, &event) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch the job");
    return 0;
}

/* The steps are in the zygote's plan: the job's own was trimmed. */
static void note_soft_failure(struct brig_job *job, const struct wire_message *message)
{
    struct plan told = job->building->zygote->plan;
    told.unenforced = job->plan.unenforced;
    plan_note_soft_failure(&told, message->a, message->b);
    job->plan.unenforced = told.unenforced;
}

/* Both words have come: that init runs, and which process it is. */
static int finish(struct brig_job *job, struct brig_error *err)
{
    struct job_building *building = job->building;
    if (!building->started || job->pid <= 0)
        return 0;
    building->zygote->answered_us = clock_now_us();
    struct job_late *late = take_ptr(&building->late);
    job_building_free(take_ptr(&job->building));
    /* What was given up meanwhile is not let go. */
    int result = late && job->state == JOB_RUNNING ? job_release(job, late, err) : 0;
    free(late);
    return result;
}

int job_build(struct brig_job *job, const struct wire_message *message, int fd,
              struct brig_error *err)
{
    autoclose int own = fd;
    struct job_building *building = job->building;
    int result = 0;
    switch (message->type) {
    case WIRE_FAILED:
        return plan_explain_failure(&building->zygote->plan, message->a, message->b, err);
    case WIRE_SOFT:
        note_soft_failure(job, message);
        break;
    case WIRE_PID:
        result = take_pid(job, message->a, &own, err);
        break;
    case WIRE_KEPT:
        job->kept = fds_keep_high(take_fd(&own));
        break;
    case WIRE_GATE:
        job->gate = fds_keep_high(take_fd(&own));
        break;
    case WIRE_LATE:
        job->late = fds_keep_high(take_fd(&own));
        break;
    case WIRE_DENIALS:
        result = denials_listen(&job->denials, take_fd(&own), job->epoll, err);
        break;
    case WIRE_STARTED:
        building->started = true;
        break;
    default:
        break;
    }
    return result < 0 ? result : finish(job, err);
}

/* One that has many orders makes one after the other. */
const struct zygote *job_stuck_zygote(const struct brig_job *job, uint64_t patience_us)
{
    const struct zygote *zygote = job->building ? job->building->zygote : NULL;
    if (!zygote)
        return NULL;
    uint64_t since = zygote->answered_us > job->started_us ? zygote->answered_us : job->started_us;
    return clock_now_us() >= since + patience_us ? zygote : NULL;
}

int job_build_lost(struct brig_job *job, struct brig_error *err)
{
    (void)job;
    return brig_fail(err, BRIG_E_SETUP, 0,
                     "the zygote or the jail's first process ended before the command was started");
}
