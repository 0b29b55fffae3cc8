/* SPDX-License-Identifier: MIT */
/* The public functions about results, whole runs, and what a job has: thin, over what the library uses
 * itself. */
#include <stdlib.h>

#include <brig/brig.h>

#include "base/clock.h"
#include "base/error.h"
#include "jail/job/job.h"
#include "jail/job/result.h"

void brig_text_free(char *text)
{
    free(text);
}

/* ---- runs ---- */

/* The result of a run that did not start. */
static void fill_failed(struct brig_result *ret_result, const struct brig_error *error)
{
    *ret_result =
        (struct brig_result){.outcome = BRIG_SETUP_FAILED, .exit_code = -1, .error = *error};
}

int job_run(const struct brig_policy *policy, const struct brig_command *command,
            struct brig_result *ret_result, struct brig_error *err)
{
    struct brig_error local = {0};
    struct brig_job *job = NULL;
    int result = brig_start(policy, command, &job, &local);
    if (result == 0)
        result = brig_job_wait(job, &local);
    if (result == 0)
        result = job_take_result(job, ret_result, &local);
    if (result < 0) {
        fill_failed(ret_result, &local);
        if (err)
            *err = local;
    }
    brig_job_free(job);
    return result;
}

/* Refuses streams of which the caller would need an end: there is no job to ask for it. */
static int refuse_ends(const struct brig_command *command, struct brig_error *err)
{
    for (int i = 0; i < 3; i++)
        if (command->stdio[i].kind == BRIG_STDIO_PIPE || command->stdio[i].kind == BRIG_STDIO_PTY)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "stdio %d of brig_run() cannot be a pipe or a terminal: use "
                             "brig_start()",
                             i);
    return 0;
}

int brig_run(const struct brig_policy *policy, const struct brig_command *command,
             struct brig_result **ret_result, struct brig_error *err)
{
    struct brig_error local = {0};
    struct brig_result *made = calloc(1, sizeof *made);
    if (ret_result)
        *ret_result = made;
    if (!made)
        return brig_fail_nomem(err);
    struct brig_command known;
    int result = streams_read(command, &known, &local);
    if (result == 0)
        result = refuse_ends(&known, &local);
    if (result < 0)
        fill_failed(made, &local);
    else
        result = job_run(policy, &known, made, &local);
    if (result < 0 && err)
        *err = local;
    if (!ret_result)
        brig_result_free(made);
    return result;
}

int brig_job_result(struct brig_job *job, struct brig_result **ret_result, struct brig_error *err)
{
    struct brig_result *made = calloc(1, sizeof *made);
    if (!made)
        return brig_fail_nomem(err);
    int result = job_take_result(job, made, err);
    if (result < 0)
        free(made);
    else
        *ret_result = made;
    return result;
}

int brig_job_fd(const struct brig_job *job)
{
    return job->epoll;
}

pid_t brig_job_pid(const struct brig_job *job)
{
    return job->pid;
}

int brig_job_terminal(const struct brig_job *job)
{
    return job->terminal;
}

int brig_job_kept_dir(const struct brig_job *job)
{
    return job->kept;
}

void job_pause_clock(struct brig_job *job, bool paused)
{
    uint64_t now = clock_now_us();
    if (job->state == JOB_OVER)
        return;
    if (paused && job->wall_deadline_us) {
        job->wall_left_us = job->wall_deadline_us > now ? job->wall_deadline_us - now : 1;
        job->wall_deadline_us = 0;
    } else if (!paused && job->wall_left_us) {
        job->wall_deadline_us = now + job->wall_left_us;
        job->wall_left_us = 0;
    }
    job_arm_timer(job);
}

int brig_job_take_stop(struct brig_job *job)
{
    int signal = job->stop_signal;
    job->stop_signal = 0;
    return signal;
}

const struct brig_net_event *brig_job_take_net_event(struct brig_job *job)
{
    return job_take_net_event(job, &job->taken_event) ? &job->taken_event : NULL;
}

/* ---- results ---- */

void brig_result_free(struct brig_result *result)
{
    result_done(result);
    free(result);
}

enum brig_outcome brig_result_outcome(const struct brig_result *result)
{
    return result->outcome;
}

int brig_result_exit_code(const struct brig_result *result)
{
    return result->exit_code;
}

int brig_result_signal(const struct brig_result *result)
{
    return result->signal;
}

const struct brig_usage *brig_result_usage(const struct brig_result *result)
{
    return &result->usage;
}

const char *brig_result_output(const struct brig_result *result, int stream, size_t *ret_length,
                               int *ret_truncated)
{
    const struct brig_capture *capture = stream == 1   ? &result->out
                                         : stream == 2 ? &result->err
                                                       : NULL;
    return capture_text(capture, ret_length, ret_truncated);
}

const struct brig_error *brig_result_error(const struct brig_result *result)
{
    return &result->error;
}

size_t brig_result_unenforced_count(const struct brig_result *result)
{
    return result->unenforced.count;
}

const char *brig_result_unenforced(const struct brig_result *result, size_t index)
{
    return unenforced_line(&result->unenforced, index);
}

size_t brig_result_notice_count(const struct brig_result *result)
{
    return result->notices.count;
}

const char *brig_result_notice(const struct brig_result *result, size_t index)
{
    return unenforced_line(&result->notices, index);
}

int brig_result_traced(const struct brig_result *result)
{
    return result->denials.traced;
}

size_t brig_result_denial_count(const struct brig_result *result)
{
    return result->denials.count;
}

const struct brig_denial *brig_result_denial(const struct brig_result *result, size_t index)
{
    return index < result->denials.count ? &result->denials.items[index] : NULL;
}

size_t brig_result_net_count(const struct brig_result *result)
{
    return result->net.count;
}

const struct brig_net_event *brig_result_net_event(const struct brig_result *result, size_t index)
{
    return index < result->net.count ? &result->net.events[index] : NULL;
}

const struct brig_net_totals *brig_result_net_totals(const struct brig_result *result)
{
    return &result->net.totals;
}

int brig_result_inside_jail(const struct brig_result *result)
{
    return result->inside_jail;
}
