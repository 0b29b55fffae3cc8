/* SPDX-License-Identifier: MIT */
/* Theory of operation: an execution whose language has a compiler.
 *
 * The executor makes a jail for the execution and holds it, like a sandbox. Each stage is a command
 * that is started in it (jail/attach), so /workspace and /tmp stay from one to the next, and nothing
 * else does: processes that a stage leaves behind end with it. A stage has its own cgroup below the
 * jail's, with its own limits, and pipes of its own. The jail ends with the last stage.
 *
 * An execution without a compiler has one stage, in a jail of its own or a waiting one: run.c. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/attach/attach.h"
#include "jail/job/job.h"
#include "policy/policy.h"
#include "server/config/runtime.h"
#include "server/executor/executor.h"
#include "server/executor/jail_check.h"

#define MEBIBYTE (UINT64_C(1) << 20)

/* What the compile stage left. */
struct compiled {
    bool known;
    struct execution_result result;
    struct str kept[2];
    struct execution_piece *order;
};

struct stages {
    struct run *run;
    enum execution_stage now;
    struct brig_job *jail;
    struct attach attach;
    struct executor_source source; /* of the jail; fd -1: it is over */
    struct compiled compiled;
    struct arena arena; /* policies and commands */
};

bool executor_stages_wanted(const struct runtime *runtime)
{
    return runtime->compile[0] != NULL;
}

enum execution_stage executor_stage(const struct run *run)
{
    return run->stages ? run->stages->now : STAGE_RUN;
}

const struct execution_result *executor_stages_compiled(const struct run *run)
{
    return run->stages && run->stages->compiled.known ? &run->stages->compiled.result : NULL;
}

struct brig_job *executor_stages_jail(const struct run *run)
{
    return run->stages ? run->stages->jail : NULL;
}

void executor_stage_tell(const struct run *run, const struct execution_result *result)
{
    const struct message_stage stage = {
        .stage = executor_stage(run),
        .ended = result != NULL,
        .exit_code = result ? result->exit_code : -1,
        .signal = result ? (uint32_t)result->signal : 0,
    };
    if (run->request.stream && (run->stages || run->request.interactive))
        executor_tell_http(run->executor, run->http, MESSAGE_STAGE, run->tag, &stage, sizeof stage);
}

/* ---- the jail ---- */

/* It ends by itself only if its init is killed, and then so is the stage. */
static void jail_ready(void *owner, uint32_t events)
{
    struct stages *stages = owner;
    (void)events;
    if (stages->source.fd < 0 || brig_job_process(stages->jail, NULL) == 0)
        return;
    executor_unwatch(stages->run->executor, &stages->source);
    stages->source.fd = -1;
}

static int hold_jail(struct stages *stages, struct brig_error *err)
{
    struct run *run = stages->run;
    struct executor *executor = run->executor;
    struct brig_command command = BRIG_COMMAND_INIT;
    struct jail jail;
    int result = executor_jail_make(&executor->ground, run->runtime, &run->request, JAIL_STAGED,
                                    run->host_uid, &jail, err);
    command.argv = jail.argv;
    if (jail.field) {
        run->fault = FAULT_REQUEST;
        run->field = jail.field;
    }
    if (result == 0)
        result = brig_start(jail.policy, &command, &stages->jail, err);
    executor_jail_done(&jail);
    if (result < 0 || (result = attach_own(stages->jail->entry_fd, &stages->attach, err)) < 0)
        return result;
    close_fd(&stages->jail->entry_fd);
    executor_instance_note(&executor->instance, run->slot, brig_job_pid(stages->jail));
    run->noted = true;
    stages->source = (struct executor_source){jail_ready, stages, brig_job_fd(stages->jail)};
    return executor_watch(executor, &stages->source, EPOLLIN, err);
}

/* ---- a stage ---- */

/* The jail's policy with the limits of the stage. */
static struct brig_policy *stage_policy(struct stages *stages,
                                        const struct execution_stage_limits *limits)
{
    const struct brig_policy *of = stages->attach.record.policy;
    struct brig_policy *policy = arena_copy(&stages->arena, of, sizeof *of);
    const struct {
        enum brig_limit limit;
        uint64_t value;
    } rows[] = {
        {BRIG_LIMIT_WALL_MS, limits->timeout_ms},
        {BRIG_LIMIT_CPU_MS, limits->cpu_ms},
        {BRIG_LIMIT_MEMORY_BYTES, limits->memory_mb * MEBIBYTE},
    };
    for (size_t i = 0; policy && i < ARRAY_LENGTH(rows); i++)
        if (rows[i].value) {
            policy->limits[rows[i].limit] = rows[i].value;
            policy->limits_asked |= 1U << rows[i].limit;
        }
    if (policy) {
        if (stages->now == STAGE_RUN)
            executor_jail_rlimits(policy, &stages->run->request);
        policy->on_unsupported = BRIG_UNSUPPORTED_WARN;
        policy->trace = true;
    }
    return policy;
}

static int start_stage(struct stages *stages, enum execution_stage stage, struct brig_error *err)
{
    struct run *run = stages->run;
    int ends[3] = {-1, -1, -1};
    struct execution_stage_limits limits = jail_stage_limits(run->runtime, &run->request, stage);
    stages->now = stage;
    int result = executor_output_open(run, ends, err);
    struct brig_command command = BRIG_COMMAND_INIT;
    if (result == 0)
        result = executor_run_streams(run, ends, &command, err);
    autoclose int out = ends[0], error = ends[1], in = ends[2];
    const struct job_source source = {
        .policy = stage_policy(stages, &limits), .attach = &stages->attach, .jail = stages->jail};
    command.argv =
        runtime_command(run->runtime, stage, &run->request, limits.memory_mb, &stages->arena);
    if (result == 0 && (!source.policy || !command.argv))
        result = brig_fail_nomem(err);
    if (result == 0)
        result = job_start(&source, &command, &run->job, err);
    (void)out;
    (void)error;
    (void)in;
    if (result < 0)
        return result;
    executor_stage_tell(run, NULL);
    return executor_run_watch_stage(run, err);
}

int executor_stages_start(struct run *run, struct brig_error *err)
{
    struct stages *stages = calloc(1, sizeof *stages);
    if (!stages)
        return brig_fail_nomem(err);
    *stages = (struct stages){.run = run, .attach = ENTRY_INIT, .source = {.fd = -1}};
    run->stages = stages;
    int result = hold_jail(stages, err);
    return result < 0 ? result : start_stage(stages, STAGE_COMPILE, err);
}

/* Keeps the result of the compile stage with the output that it points to. */
static void keep_compiled(struct stages *stages, struct execution_result *result)
{
    struct run *run = stages->run;
    struct compiled *compiled = &stages->compiled;
    compiled->known = true;
    compiled->result = *result;
    *result = (struct execution_result){0};
    for (int i = 0; i < 2; i++) {
        compiled->kept[i] = run->streams[i].kept;
        run->streams[i].kept = (struct str){0};
    }
    compiled->order = take_ptr(&run->order);
    run->order_count = 0;
    run->output_bytes = 0;
}

int executor_stages_next(struct run *run, struct execution_result *result, struct brig_error *err)
{
    struct stages *stages = run->stages;
    result->stage = stages->now;
    executor_stage_tell(run, result);
    if (stages->now == STAGE_RUN || result->status != EXECUTION_OK || run->state != RUN_RUNNING)
        return 0;
    keep_compiled(stages, result);
    executor_unwatch(run->executor, &run->source);
    brig_job_free(take_ptr(&run->job));
    int started = start_stage(stages, STAGE_RUN, err);
    if (started == 0)
        return 1;
    executor_output_close(run);
    if (started != BRIG_E_NOT_FOUND && started != BRIG_E_NOT_EXEC)
        return started;
    /* The compiler made no program, for instance because of its arguments; exit codes of a shell. */
    executor_outcome_so_far(run, result);
    result->status = EXECUTION_ERROR;
    result->exit_code = started == BRIG_E_NOT_FOUND ? 127 : 126;
    result->message = arena_strdup(&result->arena, err->message);
    executor_stage_tell(run, result);
    return 0;
}

/* ---- the end ---- */

void executor_stages_end(struct run *run)
{
    struct stages *stages = run->stages;
    if (stages && stages->jail)
        (void)brig_job_cancel(stages->jail, NULL); /* fails if the jail is over already */
}

bool executor_stages_linger(const struct run *run)
{
    return run->stages && run->stages->jail && !job_is_gone(run->stages->jail);
}

int executor_stages_free(struct run *run)
{
    struct stages *stages = take_ptr(&run->stages);
    if (!stages)
        return -1;
    if (stages->source.fd >= 0)
        executor_unwatch(run->executor, &stages->source);
    int kept = stages->jail ? job_take_kept(stages->jail) : -1;
    attach_done(&stages->attach);
    brig_job_free(stages->jail);
    execution_result_done(&stages->compiled.result);
    for (int i = 0; i < 2; i++)
        str_done(&stages->compiled.kept[i]);
    free(stages->compiled.order);
    arena_done(&stages->arena);
    free(stages);
    return kept;
}
