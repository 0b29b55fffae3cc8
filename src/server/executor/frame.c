/* SPDX-License-Identifier: MIT */
/* What jails that begin cold have in common: see frame.h. */
#include "server/executor/frame.h"

#include <sys/stat.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/prepare/template.h"
#include "server/config.h"
#include "server/executor/executor.h"

#define REST_MS 60000 /* unused for this, one makes room for another */

static void drop(struct frame *frame)
{
    brig_template_free(take_ptr(&frame->template));
    *frame = (struct frame){0};
}

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

/* ---- which there are ---- */

static struct frame *find(struct frames *frames, const struct runtime *runtime)
{
    for (size_t i = 0; i < FRAMES_MAX; i++)
        if (frames->items[i].runtime == runtime)
            return &frames->items[i];
    return NULL;
}

/* A free place, or that of the one that was unused longest, if it was for long: who takes turns with
 * more would make them all the time. */
static struct frame *make_room(struct frames *frames)
{
    struct frame *oldest = &frames->items[0];
    for (size_t i = 1; i < FRAMES_MAX; i++)
        if (frames->items[i].used_ms < oldest->used_ms)
            oldest = &frames->items[i];
    if (oldest->runtime && clock_now_ms() < oldest->used_ms + REST_MS)
        return NULL;
    drop(oldest);
    return oldest;
}

/* An agent has a door, a home and a credential of its own; and as root the frame needs an id. */
static bool may_have_one(const struct executor *executor, const struct runtime *runtime)
{
    return !runtime->agent && !runtime->allow[0] &&
           (!executor->as_root || executor->has_spare_id) && !executor->draining;
}

struct brig_template *executor_frame_find(struct executor *executor, const struct runtime *runtime,
                                          const struct brig_policy *policy)
{
    struct frames *frames = &executor->frames;
    struct frame *frame = find(frames, runtime);
    if (!frame && may_have_one(executor, runtime))
        frame = make_room(frames);
    if (!frame)
        return NULL;
    frames->wanted = frames->wanted || !frame->runtime;
    frame->runtime = runtime;
    frame->used_ms = clock_now_ms();
    if (frame->template && !is_current(frame)) {
        brig_template_free(take_ptr(&frame->template));
        frames->wanted = true;
    }
    return frame->template && template_fits(frame->template, policy) ? frame->template : NULL;
}

void executor_frame_failed(struct executor *executor, const struct brig_template *template)
{
    for (size_t i = 0; i < FRAMES_MAX; i++) {
        struct frame *frame = &executor->frames.items[i];
        if (frame->template != template)
            continue;
        brig_template_free(take_ptr(&frame->template));
        frame->broken = true;
    }
}

/* ---- looking after them ---- */

static int make_template(const struct executor *executor, struct frame *frame,
                         struct brig_error *err)
{
    struct jail jail;
    struct template_ids ids = {0};
    if (executor->as_root) { /* each slot's, and the one behind them */
        ids.first = executor->config->sandbox.uid_first;
        ids.count = (uint32_t)executor->slot_count + 1;
    }
    uid_t host_uid = executor->as_root ? ids.first : (uid_t)-1;
    int result = executor_jail_make_common(&executor->ground, frame->runtime, host_uid, &jail, err);
    if (result == 0)
        result = template_new(jail.policy, PLAN_NESTED, &ids, &frame->template, err);
    executor_jail_done(&jail);
    return result;
}

/* Without one, runs are built from scratch: nothing anybody has to be told of. */
static void make(const struct executor *executor, struct frame *frame, uint64_t now_ms)
{
    struct brig_error err = {0};
    frame->etc_changed = etc_changed();
    frame->born_ms = now_ms;
    frame->broken = make_template(executor, frame, &err) < 0;
}

static bool is_over(const struct frame *frame, const struct server_config *config, uint64_t now_ms)
{
    return now_ms >= frame->born_ms + config->sandbox.pool.age_ms ||
           now_ms >= frame->used_ms + config->sandbox.pool.idle_ms;
}

void executor_frames_settle(struct executor *executor, uint64_t now_ms)
{
    struct frames *frames = &executor->frames;
    for (size_t i = 0; i < FRAMES_MAX; i++) {
        struct frame *frame = &frames->items[i];
        bool made = frame->template || frame->broken;
        if (frame->runtime && made && is_over(frame, executor->config, now_ms))
            drop(frame);
        else if (frames->wanted && frame->runtime && !made && !executor->draining)
            make(executor, frame, now_ms);
    }
    frames->wanted = false;
}

void executor_frames_end(struct executor *executor)
{
    for (size_t i = 0; i < FRAMES_MAX; i++)
        drop(&executor->frames.items[i]);
}
