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
    for (size_t i = 0; i < plan->mask_count; i++) {
        /* Where the directory is missing nothing can be replaced in it. */
        descriptors[i] = inotify_add_watch(fd, plan->masks[i].host_dir,
                                           IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    }
    watch->fd = take_fd(&fd);
    watch->descriptors = descriptors;
    watch->count = plan->mask_count;
    return 0;
}

void watch_done(struct watch *watch)
{
    if (watch->fd >= 0)
        (void)close(watch->fd);
    free(watch->descriptors);
    *watch = (struct watch){.fd = -1};
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
    (void)snprintf(path, sizeof path, "%s/%s", mask->host_dir, mask->name);
    struct stat info;
    if (userns < 0 || mntns < 0)
        return -errno;
    if (stat(path, &info) < 0)
        return 0; /* gone again */
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

int watch_process(struct watch *watch, const struct plan *plan, pid_t pid)
{
    _Alignas(struct inotify_event) char buffer[8192];
    int laid = 0;
    for (;;) {
        ssize_t length = read(watch->fd, buffer, sizeof buffer);
        if (length <= 0)
            return laid;
        for (char *at = buffer; at < buffer + length;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
            at += sizeof *event + event->len;
            for (size_t i = 0; i < watch->count; i++) {
                if (event->wd != watch->descriptors[i] || event->len == 0 ||
                    strcmp(event->name, plan->masks[i].name) != 0)
                    continue;
                if (lay_again(&plan->masks[i], pid) == 0)
                    laid++;
            }
        }
    }
}
