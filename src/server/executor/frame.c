/* SPDX-License-Identifier: MIT */
/* Frames: the common part of cold jails, one for each runtime. See pool.h. */
#include <sys/stat.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/prepare/template.h"
#include "server/config.h"
#include "server/executor/executor.h"

static struct timespec etc_changed(void)
{
    struct stat info = {0};
    (void)stat("/etc", &info);
    return info.st_mtim;
}

static bool is_current(const struct frame *frame)
{
    struct timespec now = etc_changed();
    return now.tv_sec == frame->etc_changed.tv_sec && now.tv_nsec == frame->etc_changed.tv_nsec &&
           template_is_current(frame->template);
}

static struct frame *frame_of(struct executor *executor, const struct runtime *runtime)
{
    return &executor->frames[runtime - executor->config->runtimes];
}

struct brig_template *executor_frame_find(struct executor *executor, const struct runtime *runtime,
                                          const struct brig_policy *policy)
{
    struct frame *frame = frame_of(executor, runtime);
    /* Agents have their own network, home and credential. As root the frame needs a spare uid. */
    if (runtime->agent || runtime->allow[0] || (executor->as_root && !executor->has_spare_id))
        return NULL;
    frame->used_ms = clock_now_ms();
    if (frame->template && !is_current(frame))
        brig_template_free(take_ptr(&frame->template));
    return frame->template && template_fits(frame->template, policy) ? frame->template : NULL;
}

void executor_frame_failed(struct executor *executor, const struct runtime *runtime)
{
    struct frame *frame = frame_of(executor, runtime);
    brig_template_free(take_ptr(&frame->template));
    frame->broken = true;
}

static int make_template(const struct executor *executor, const struct runtime *runtime,
                         struct brig_template **ret_template, struct brig_error *err)
{
    struct jail jail;
    struct template_ids ids = {0};
    if (executor->as_root) { /* the uids of all slots, and the spare one */
        ids.first = executor->config->sandbox.uid_first;
        ids.count = (uint32_t)executor->slot_count + 1;
    }
    uid_t host_uid = executor->as_root ? ids.first : (uid_t)-1;
    int result =
        executor_jail_make(&executor->ground, runtime, NULL, JAIL_COMMON, host_uid, &jail, err);
    if (result == 0)
        result = template_new(jail.policy, PLAN_NESTED, &ids, ret_template, err);
    executor_jail_done(&jail);
    return result;
}

static void drop(struct frame *frame)
{
    brig_template_free(frame->template);
    *frame = (struct frame){0};
}

void executor_frames_settle(struct executor *executor, uint64_t now_ms)
{
    const struct server_config *config = executor->config;
    for (size_t i = 0; i < config->runtime_count; i++) {
        struct frame *frame = &executor->frames[i];
        bool over = now_ms >= frame->born_ms + config->sandbox.pool.age_ms ||
                    now_ms >= frame->used_ms + config->sandbox.pool.idle_ms;
        if (frame->template || frame->broken) {
            if (over)
                drop(frame);
        } else if (frame->used_ms && !executor->draining) {
            frame->etc_changed = etc_changed();
            frame->born_ms = now_ms;
            /* Not logged: without a frame, runs are built from scratch. */
            frame->broken =
                make_template(executor, &config->runtimes[i], &frame->template, NULL) < 0;
        }
    }
}

void executor_frames_end(struct executor *executor)
{
    for (size_t i = 0; i < executor->config->runtime_count; i++)
        drop(&executor->frames[i]);
}
