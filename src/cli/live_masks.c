/* SPDX-License-Identifier: MIT */
/* The masks of a run while it goes on. */
#include "cli/live_masks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/settings.h"
#include "home/home.h"
#include "home/wire.h"
#include "jail/job/watch.h"
#include "policy/policy.h"

/* A run that is over sooner is spared it: the kernel takes some milliseconds to end a watch. */
#define BEGIN_MS 250
#define BLIND_MS 2000
/* Whoever can make names in a granted directory could have any number of them hidden. */
#define ADDED_MAX 512

void live_masks_init(struct live_masks *live, const struct settings *settings,
                     const struct identity *identity, struct masks *masks, struct mask_names *names)
{
    if (names->grant_count == 0 && settings->policy->view != BRIG_VIEW_HOST)
        return; /* nothing of the host shows */
    live->identity = identity;
    live->masks = *masks;
    live->names = *names;
    *masks = (struct masks){0};
    *names = (struct mask_names){0};
    settings->policy->mounts = &live->names.mounts; /* where they are now */
}

void live_masks_done(struct live_masks *live)
{
    mask_watch_done(&live->watch);
    if (live->home >= 0)
        (void)close(live->home);
    masks_done(&live->masks);
    mask_names_done(&live->names);
    *live = LIVE_MASKS_INIT;
}

void live_masks_start(struct live_masks *live, int lease)
{
    live->lease = lease;
    live->due_ms = clock_now_ms() + BEGIN_MS;
    live->grants = live->identity ? live->names.policy->grant_count : 0;
}

/* ---- looking ---- */

/* Only notes it in the policy: the jail is entered with other rights than these. A failure must not
 * keep other files from being hidden. */
static int note_path(void *context, const struct mask_path *path, struct brig_error *err)
{
    struct live_masks *live = context;
    const struct mask_names *names = &live->names;
    char whole[PATH_LENGTH_MAX + 1];
    bool fits = path->outside ? str_fill(whole, sizeof whole, path->path)
                              : str_fill(whole, sizeof whole, names->home, "/", path->path);
    if (!fits || live->full)
        return 0;
    size_t before = names->policy->grant_count;
    int status = mask_names_hide(names, whole, "masks, while it ran", err);
    live->added += names->policy->grant_count - before;
    live->full = live->added >= ADDED_MAX || status < 0;
    live->added += status < 0; /* so that it is said */
    return 0;
}

static void hide_noted(struct live_masks *live, struct brig_job *job)
{
    const struct brig_policy *policy = live->names.policy;
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

/* With the rights of the user. */
static void look(struct live_masks *live)
{
    const struct mask_home home = {
        .fd = live->home, .path = live->names.home, .real = live->names.real_home};
    mask_watch_begin(&live->watch);
    if (live->home >= 0) /* else nothing can be hidden in it */
        (void)mask_watch_each(&live->watch, &home, &live->masks.rules, note_path, live, NULL);
    mask_watch_end(&live->watch);
}

static void start(struct live_masks *live)
{
    if (live->due_ms == 0)
        return;
    live->due_ms = 0;
    live->home = open(live->names.home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)mask_watch_open(&live->watch); /* without it all is looked at now and then */
}

static bool has_rule(const struct masks *masks, const char *path)
{
    for (size_t i = 0; i < masks->rules.hidden_count; i++)
        if (strcmp(masks->rules.hidden[i], path) == 0)
            return true;
    return false;
}

/* The masks of a message; its first string is the home's path. */
static int add_rules(struct masks *masks, const struct home_message *message,
                     struct brig_error *err)
{
    const char *text = message->text, *end = text + message->head.length;
    int status = 0;
    text += strlen(text) + 1;
    for (size_t i = 0; i < message->head.mask_count && text < end && status == 0; i++) {
        if (mask_is_path(text) && !has_rule(masks, text))
            status = masks_add(masks, text, NULL, err);
        text += strlen(text) + 1;
    }
    return status;
}

/* What `brig mask` adds. False when there is no more to be heard. */
static bool take_masks(struct live_masks *live, struct brig_job *job)
{
    struct brig_error err = {0};
    autofree struct home_message *message = NULL;
    autoclose int done = -1; /* closed when all is hidden */
    int taken = home_receive_masks(live->lease, &message, &done);
    if (taken <= 0)
        return taken == 0;
    if (add_rules(&live->masks, message, &err) < 0)
        job_note(job, err.message);
    identity_enter(live->identity);
    start(live);
    look(live);
    identity_leave(live->identity);
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
    int wait_ms = mask_watch_wait_ms(&live->watch);
    if (wait_ms > 0)
        shorten(timeout_ms, wait_ms);
    else
        fds[1].fd = live->watch.fd;
    if (live->watch.blind)
        shorten(timeout_ms, BLIND_MS);
}

void live_masks_process(struct live_masks *live, struct brig_job *job,
                        const struct pollfd fds[LIVE_MASKS_POLL])
{
    if (!live->identity)
        return;
    if (fds[0].revents && !take_masks(live, job))
        live->lease = -1;
    uint64_t now = clock_now_ms();
    bool due = live->due_ms != 0 && now >= live->due_ms;
    bool stale = live->watch.blind && now - live->watch.looked_ms >= BLIND_MS;
    if (!due && !stale && !(fds[1].revents & POLLIN))
        return;
    identity_enter(live->identity);
    start(live);
    if (due || stale || mask_watch_has_news(&live->watch))
        look(live);
    identity_leave(live->identity);
    hide_noted(live, job);
}
