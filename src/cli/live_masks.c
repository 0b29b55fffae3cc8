/* SPDX-License-Identifier: MIT */
/* The masks of a run while it goes on. */
#include "cli/live_masks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "cli/identity.h"
#include "cli/settings.h"
#include "home/home.h"
#include "jail/job/job_hide.h"
#include "policy/policy.h"

/* A run that is over sooner is spared it: the kernel takes some milliseconds to end a watch. */
#define BEGIN_MS 250
#define BLIND_MS 2000
/* Whoever can make names in a granted directory could have any number of them hidden. */
#define ADDED_MAX 512

int live_masks_init(struct live_masks *live, const struct settings *settings,
                    const struct identity *identity, struct masks *masks,
                    struct path_aliases *path_aliases, struct brig_error *err)
{
    if (path_aliases->grant_count == 0 && settings->policy->view != BRIG_VIEW_HOST)
        return 0; /* nothing of the host shows */
    int status = settings->late_masks ? masks_resolve_late(settings, &live->late, err) : 0;
    if (status < 0)
        return status;
    live->identity = identity;
    live->masks = *masks;
    live->path_aliases = *path_aliases;
    *masks = (struct masks){0};
    *path_aliases = (struct path_aliases){0};
    settings->policy->mounts = &live->path_aliases.mounts; /* where they are now */
    return 0;
}

void live_masks_done(struct live_masks *live)
{
    masking_end(&live->masking);
    masks_done(&live->masks);
    masks_done(&live->late);
    path_aliases_done(&live->path_aliases);
    *live = LIVE_MASKS_INIT;
}

void live_masks_start(struct live_masks *live, int lease)
{
    live->lease = lease;
    live->due_ms = clock_now_ms() + BEGIN_MS;
    live->grants = live->identity ? live->path_aliases.policy->grant_count : 0;
}

/* ---- looking ---- */

/* Only notes it in the policy: the jail is entered with other rights than these. */
static int note_place(void *context, const struct hide_place *place, struct brig_error *err)
{
    struct live_masks *live = context;
    const struct path_aliases *path_aliases = &live->path_aliases;
    char path[PATH_LENGTH_MAX + 1];
    int length = place->outside
                     ? snprintf(path, sizeof path, "%s", place->path)
                     : snprintf(path, sizeof path, "%s/%s", path_aliases->home, place->path);
    if (length < 0 || (size_t)length >= sizeof path || live->full)
        return 0;
    size_t before = path_aliases->policy->grant_count;
    int status = path_aliases_hide(path_aliases, path, "masks, while it ran", err);
    live->added += path_aliases->policy->grant_count - before;
    live->full = live->added >= ADDED_MAX || status < 0;
    live->added += status < 0; /* so that it is said */
    return status;
}

static void hide_noted(struct live_masks *live, struct brig_job *job)
{
    const struct brig_policy *policy = live->path_aliases.policy;
    bool was_full = live->full;
    for (; live->grants < policy->grant_count; live->grants++) {
        struct brig_error err = {0};
        if (job_hide(job, policy, policy->grants[live->grants].dest, &err) < 0)
            job_note(job, err.message);
    }
    if (was_full && live->added > 0)
        job_note(job,
                 "too many new files matched masks during the run: some of them are not hidden");
    live->added = was_full ? 0 : live->added; /* it is said once */
}

static int add_rules(struct live_masks *live, const struct masks *masks, bool plain,
                     struct brig_error *err)
{
    const struct home_spec spec = {
        .user_home = live->path_aliases.home,
        .masks = masks->hidden,
        .mask_count = masks->hidden_count,
        .shown = masks->shown,
        .shown_count = masks->shown_count,
    };
    autofree struct home_message *message = NULL;
    const struct masking_set *set;
    int status = home_message_make(&spec, &message, err);
    if (status < 0 || masks->hidden_count == 0)
        return status;
    return plain ? masking_add_plain(&live->masking, message, err)
                 : masking_add(&live->masking, message, &set, err);
}

static int begin(struct live_masks *live, struct brig_error *err)
{
    const char *home = live->path_aliases.home;
    live->due_ms = 0;
    autoclose int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* there is nothing that could be hidden in it */
    int status = masking_begin(&live->masking, fd, home, false, err);
    live->masking.on_place = note_place;
    live->masking.context = live;
    live->masking.looking = true; /* what fails is passed over: the run has begun */
    if (status == 0)
        status = add_rules(live, &live->masks, false, err);
    if (status == 0)
        status = add_rules(live, &live->late, true, err);
    if (status == 0)
        masking_watch(&live->masking);
    return status;
}

/* What `brig mask` adds. False when there is no more to be heard. */
static bool take_masks(struct live_masks *live, struct brig_job *job, struct brig_error *err)
{
    autofree struct home_message *message = NULL;
    autoclose int done = -1; /* closed when all is hidden */
    int taken = home_receive_masks(live->lease, &message, &done);
    if (taken <= 0)
        return taken == 0;
    identity_enter(live->identity);
    int status = live->due_ms != 0 ? begin(live, err) : 0;
    if (status == 0 && live->masking.home.fd >= 0)
        status = masking_extend(&live->masking, message, err);
    if (status == 0 && live->masking.home.fd >= 0)
        masking_watch(&live->masking);
    identity_leave(live->identity);
    if (status < 0)
        job_note(job, err->message);
    hide_noted(live, job);
    return true;
}

/* ---- in the loop ---- */

static void shorten(int *timeout_ms, int wait_ms)
{
    if (*timeout_ms < 0 || wait_ms < *timeout_ms)
        *timeout_ms = wait_ms;
}

void live_masks_poll(const struct live_masks *live, struct pollfd fds[LIVE_MASKS_POLL],
                     int *timeout_ms)
{
    fds[0] = (struct pollfd){.fd = live->identity ? live->lease : -1, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = -1, .events = POLLIN};
    if (!live->identity)
        return;
    uint64_t now = clock_now_ms();
    if (live->due_ms != 0) {
        shorten(timeout_ms, now >= live->due_ms ? 0 : (int)(live->due_ms - now));
        return;
    }
    int wait_ms = masking_wait_ms(&live->masking);
    if (wait_ms > 0)
        shorten(timeout_ms, wait_ms);
    else
        fds[1].fd = live->masking.inotify;
    if (live->masking.blind)
        shorten(timeout_ms, BLIND_MS);
}

void live_masks_process(struct live_masks *live, struct brig_job *job,
                        const struct pollfd fds[LIVE_MASKS_POLL])
{
    struct brig_error err = {0};
    if (!live->identity)
        return;
    if (fds[0].revents && !take_masks(live, job, &err))
        live->lease = -1;
    bool due = live->due_ms != 0 && clock_now_ms() >= live->due_ms;
    if (!due && !(fds[1].revents & POLLIN) && !live->masking.blind)
        return;
    identity_enter(live->identity);
    if (due && begin(live, &err) < 0)
        job_note(job, err.message);
    else if (fds[1].revents & POLLIN)
        masking_process(&live->masking);
    else if (live->masking.blind)
        masking_refresh(&live->masking);
    identity_leave(live->identity);
    hide_noted(live, job);
}
