/* SPDX-License-Identifier: MIT */
/* Keeping masks in place. */
#include "jail/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "jail/spawn.h"

/* By name, and anew after each change: a directory that was replaced is another one to watch. Where
 * it is missing, nothing can be replaced in it. */
static bool add_watches(struct watch *watch, const struct plan *plan)
{
    bool all = true;
    for (size_t i = 0; i < watch->count; i++) {
        watch->descriptors[i] = inotify_add_watch(watch->fd, plan->masks[i].host_dir,
                                                  IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
        all &= watch->descriptors[i] >= 0 || errno == ENOENT || errno == ENOTDIR;
    }
    return all;
}

int watch_start(struct watch *watch, const struct plan *plan, struct brig_error *err)
{
    if (plan->mask_count == 0 || plan->rung != PLAN_FULL)
        return 0;
    autoclose int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch the masked files");
    int *descriptors = calloc(plan->mask_count, sizeof *descriptors);
    if (!descriptors)
        return brig_fail_nomem(err);
    watch->fd = take_fd(&fd);
    watch->descriptors = descriptors;
    watch->count = plan->mask_count;
    if (!add_watches(watch, plan))
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot watch the masked files, which the host may replace. Raise "
                         "fs.inotify.max_user_watches");
    return 0;
}

void watch_done(struct watch *watch)
{
    if (watch->fd >= 0)
        (void)close(watch->fd);
    free(watch->descriptors);
    *watch = (struct watch){.fd = -1};
}

/* Whether something is mounted at the path in the jail, from its table of mounts. */
static bool is_covered(pid_t pid, const char *path)
{
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/%d/mountinfo", pid);
    autofile FILE *file = fopen(name, "re");
    autofree char *line = NULL;
    size_t size = 0;
    while (file && getline(&line, &size, file) > 0) {
        char mountpoint[4096];
        if (sscanf(line, "%*d %*d %*s %*s %4095s", mountpoint) == 1 &&
            strcmp(mountpoint, path) == 0)
            return true;
    }
    return false;
}

/* Enters the jail's user and mount namespace and covers one path. A plan of its own, run by the
 * same child code, without a command. */
static int lay_again(const struct plan_mask *mask, pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    autoclose int userns = open(path, O_RDONLY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
    autoclose int mntns = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (userns < 0 || mntns < 0)
        return -errno;
    if (stat(mask->host_path, &info) < 0)
        return 0; /* not there, or gone again */
    struct plan plan = PLAN_INIT;
    plan.rung = PLAN_FULL;
    plan.join_userns = userns;
    plan.join_mntns = mntns;
    plan.only_steps = true;
    int cover = plan_new_slot(&plan), root = plan_new_slot(&plan);
    struct plan_step *step;
    if (S_ISDIR(info.st_mode)) {
        step = plan_add(&plan, PLAN_TMPFS, "make an empty directory");
        if (step)
            step->path = "mode=0555\0size=4k\0";
    } else {
        step = plan_add(&plan, PLAN_TREE, "open /dev/null");
        if (step)
            step->path = "/dev/null";
    }
    if (step)
        step->slot = cover;
    if ((step = plan_add(&plan, PLAN_OPEN_ROOT, "open the jail's root")))
        step->slot = root;
    if ((step = plan_add(&plan, PLAN_ATTACH, "cover the path"))) {
        step->slot = cover;
        step->from = root;
        step->path = mask->path;
    }
    plan.slots = arena_alloc(&plan.arena, (size_t)plan.slot_count * sizeof *plan.slots);
    struct brig_error err = {0};
    int result = plan.arena.failed ? -ENOMEM : spawn_steps(&plan, &err);
    arena_done(&plan.arena);
    return result;
}

/* A new directory may hold masked names before it is watched: look again once it is. */
static int relay_all(struct watch *watch, const struct plan *plan, pid_t pid)
{
    int laid = 0;
    (void)add_watches(watch, plan);
    const char *last = NULL;
    for (size_t i = 0; i < watch->count; i++) {
        if (last && strcmp(last, plan->masks[i].path) == 0)
            continue;
        last = plan->masks[i].path;
        if (!is_covered(pid, last) && lay_again(&plan->masks[i], pid) == 0)
            laid++;
    }
    return laid;
}

static bool is_about_mask(const struct watch *watch, const struct plan *plan,
                          const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW) /* anything may have happened */
        return true;
    for (size_t i = 0; i < watch->count; i++)
        if (event->wd == watch->descriptors[i] && event->len > 0 &&
            strcmp(event->name, plan->masks[i].name) == 0)
            return true;
    return false;
}

int watch_process(struct watch *watch, const struct plan *plan, pid_t pid)
{
    _Alignas(struct inotify_event) char buffer[8192];
    int laid = 0;
    for (;;) {
        bool relay = false;
        ssize_t length = read(watch->fd, buffer, sizeof buffer);
        if (length <= 0)
            return laid;
        for (char *at = buffer; at < buffer + length;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
            at += sizeof *event + event->len;
            relay |= is_about_mask(watch, plan, event);
        }
        if (relay)
            laid += relay_all(watch, plan, pid);
    }
}
