/* SPDX-License-Identifier: MIT */
/* Keeping masks and protections in place. */
#include "jail/job/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/mountinfo.h"
#include "jail/confine/unenforced.h"
#include "jail/job/spawn.h"

#define MOUNTS_DELAY_US 10000
#define REST_DELAY_US 250000

/* Lets go of a directory that no name is in any more: who makes new ones must not have us use up what
 * the user can watch. */
static void drop_watch(const struct watch *watch, int descriptor)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->descriptors[i] == descriptor)
            return;
    (void)inotify_rm_watch(watch->fd, descriptor);
}

/* By name, and anew after each change: a directory that was replaced is another one to watch. Where
 * it is missing, nothing can be replaced in it. */
static bool add_watches(struct watch *watch, const struct plan *plan)
{
    bool all = true;
    for (size_t i = 0; i < watch->count; i++) {
        int before = watch->descriptors[i];
        watch->descriptors[i] = inotify_add_watch(watch->fd, plan->masks[i].host_dir,
                                                  IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
        all &= watch->descriptors[i] >= 0 || errno == ENOENT || errno == ENOTDIR;
        if (before >= 0 && before != watch->descriptors[i])
            drop_watch(watch, before);
    }
    return all;
}

/* Makes room for what has come to the plan. */
static int grow(struct watch *watch, const struct plan *plan, struct brig_error *err)
{
    size_t count = plan->mask_count;
    int *descriptors = reallocarray(watch->descriptors, count, sizeof *descriptors);
    watch->descriptors = descriptors ? descriptors : watch->descriptors;
    bool *tried = reallocarray(watch->tried, count, sizeof *tried);
    watch->tried = tried ? tried : watch->tried;
    if (!descriptors || !tried)
        return brig_fail_nomem(err);
    for (size_t i = watch->count; i < count; i++) {
        descriptors[i] = -1;
        tried[i] = false;
    }
    watch->count = count;
    return 0;
}

static int watch_names(struct watch *watch, const struct plan *plan, struct brig_error *err)
{
    if (watch->fd < 0)
        watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot watch the masked files. Raise fs.inotify.max_user_instances");
    int status = grow(watch, plan, err);
    if (status < 0)
        return status;
    if (!add_watches(watch, plan))
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot watch the masked files, which the host may replace. Raise "
                         "fs.inotify.max_user_watches");
    return 0;
}

/* A name in a directory that only root can change, such as /var/mail, is not replaced by the user's own
 * programs. It is watched with the rest a moment later, so that most runs need no inotify instance, of
 * which a jail can use up all that its user has. */
static bool user_can_replace(const struct plan_mask *mask)
{
    struct stat info;
    return stat(mask->host_dir, &info) < 0 || info.st_uid != 0 ||
           faccessat(AT_FDCWD, mask->host_dir, W_OK, AT_EACCESS) == 0;
}

int watch_start(struct watch *watch, const struct plan *plan, struct brig_error *err)
{
    for (size_t i = 0; i < plan->mask_count && plan->rung == PLAN_FULL; i++)
        if (plan->masks[i].cover == PLAN_COVER_MASK && user_can_replace(&plan->masks[i]))
            return watch_names(watch, plan, err);
    return 0;
}

static void open_table(struct watch *watch, const struct plan *plan, pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/mountinfo", pid);
    if (plan->mask_count > 0 && plan->rung == PLAN_FULL)
        watch->mounts = open(path, O_RDONLY | O_CLOEXEC);
}

void watch_mounts(struct watch *watch, const struct plan *plan, pid_t pid)
{
    if (watch->fd >= 0)
        open_table(watch, plan, pid);
}

uint64_t watch_delay_us(const struct watch *watch, const struct plan *plan)
{
    if (plan->mask_count == 0 || plan->rung != PLAN_FULL || watch->fd >= 0)
        return 0;
    return watch->mounts < 0 ? MOUNTS_DELAY_US : REST_DELAY_US;
}

void watch_done(struct watch *watch)
{
    watch_leave(watch);
    if (watch->fd >= 0)
        (void)close(watch->fd);
    free(watch->descriptors);
    free(watch->tried);
    *watch = WATCH_INIT;
}

/* Whether something is mounted at the path in the jail, and not below what is seen there: a home has
 * mounts of its own at the places of those in a grant that lies on it. */
static bool is_covered(const struct mountinfo_table *table, const char *path)
{
    const struct mountinfo *mount = mountinfo_at(table, path);
    return mount && strcmp(mount->point, path) == 0;
}

/* What the path is covered with: something empty, or itself. */
static void add_cover(struct plan *plan, const struct plan_mask *mask, bool directory, int cover,
                      int root)
{
    struct plan_step *step;
    if (mask->cover != PLAN_COVER_MASK) {
        if ((step = plan_add(plan, PLAN_SUBTREE, "open the path"))) {
            step->from = root;
            step->path = mask->path;
            step->flags = PLAN_ATTR_RECURSIVE;
            step->check_identity = true;
            step->data = mask->writable;
            step->length = strlen(mask->writable);
        }
    } else if (directory) {
        if ((step = plan_add(plan, PLAN_TMPFS, "make an empty directory")))
            step->path = "mode=0555\0size=4k\0";
    } else {
        if ((step = plan_add(plan, PLAN_TREE, "open /dev/null")))
            step->path = "/dev/null";
    }
    if (step)
        step->slot = cover;
    if (mask->cover == PLAN_COVER_PROTECT &&
        (step = plan_add(plan, PLAN_ATTR, "make it read-only"))) {
        step->slot = cover;
        step->flags = PLAN_ATTR_RDONLY | PLAN_ATTR_RECURSIVE;
    }
}

/* Enters the jail's user and mount namespace and covers one path; 1 once it is. A plan of its own,
 * run by the same child code, without a command. */
static int lay_again(const struct plan_mask *mask, pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    autoclose int userns = open(path, O_RDONLY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
    autoclose int mntns = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (userns < 0 || mntns < 0)
        return 0; /* the jail is over */
    /* As it is attached: below what the jail can write to no link is followed. */
    bool follows = mask->cover == PLAN_COVER_MASK && !mask->writable;
    if (fstatat(AT_FDCWD, mask->host_path, &info, follows ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* not there, or gone again */
    struct plan plan = PLAN_INIT;
    plan.rung = PLAN_FULL;
    plan.join_userns = userns;
    plan.join_mntns = mntns;
    plan.only_steps = true;
    int cover = plan_new_slot(&plan), root = plan_new_slot(&plan);
    struct plan_step *step = plan_add(&plan, PLAN_OPEN_ROOT, "open the jail's root");
    if (step)
        step->slot = root;
    add_cover(&plan, mask, S_ISDIR(info.st_mode), cover, root);
    if ((step = plan_add(&plan, PLAN_ATTACH, "cover the path"))) {
        step->slot = cover;
        step->from = root;
        step->path = mask->path;
        step->data = mask->writable;
        step->length = mask->writable ? strlen(mask->writable) : 0;
    }
    plan.slots = arena_alloc(&plan.arena, (size_t)plan.slot_count * sizeof *plan.slots);
    struct brig_error err = {0};
    int result = plan.arena.failed ? -ENOMEM : spawn_steps(&plan, &err);
    arena_done(&plan.arena);
    return result < 0 ? result : 1;
}

/* The end of a path tells more than its beginning. */
#define NOTICE_PATH_MAX 80
static const char *tail_of(const char *path)
{
    size_t length = strlen(path);
    return length > NOTICE_PATH_MAX ? path + length - NOTICE_PATH_MAX : path;
}

static void note_relaid(const struct plan_mask *mask, struct brig_unenforced *notices)
{
    unenforced_add(notices, "'%s' was replaced while it ran, and is %s again", tail_of(mask->path),
                   mask->cover == PLAN_COVER_MASK ? "hidden" : "protected");
}

/* A new directory may hold masked names before it is watched: look again once it is. */
static void relay_all(struct watch *watch, const struct plan *plan, pid_t pid,
                      struct brig_unenforced *notices)
{
    __attribute__((cleanup(mountinfo_done))) struct mountinfo_table table = {0};
    if (watch->fd >= 0)
        (void)add_watches(watch, plan);
    if (mountinfo_read(pid, &table) < 0 || table.count == 0)
        return; /* the jail is over */
    const char *last = NULL;
    for (size_t i = 0; i < plan->mask_count; i++) {
        if (last && strcmp(last, plan->masks[i].path) == 0)
            continue;
        last = plan->masks[i].path;
        if (is_covered(&table, last))
            continue;
        if (plan->masks[i].cover == PLAN_COVER_PRIVATE) { /* the real one would be seen */
            (void)kill(pid, SIGKILL);
            unenforced_add(notices, "'%s' was removed or replaced outside, so the run was ended",
                           tail_of(last));
            return;
        }
        int result = lay_again(&plan->masks[i], pid);
        if (result > 0)
            note_relaid(&plan->masks[i], notices);
        else if (result < 0)
            unenforced_add(notices, "'%s' was replaced while it ran, and could not be %s again",
                           tail_of(last),
                           plan->masks[i].cover == PLAN_COVER_MASK ? "hidden" : "protected");
    }
}

/* Whether an event is about X.lock, for the name X: so git and others announce that they are about
 * to replace X, which is seen also where they are not let. */
static bool is_lock_of(const struct inotify_event *event, const char *name)
{
    size_t length = strlen(name);
    return (event->mask & IN_CREATE) && strncmp(event->name, name, length) == 0 &&
           strcmp(event->name + length, ".lock") == 0;
}

static bool is_about_mask(struct watch *watch, const struct plan *plan,
                          const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW) /* anything may have happened */
        return true;
    bool about = false;
    for (size_t i = 0; i < watch->count; i++) {
        if (event->wd != watch->descriptors[i] || event->len == 0)
            continue;
        bool itself = strcmp(event->name, plan->masks[i].name) == 0;
        if (itself)
            watch->tried[i] = false; /* it was the host, and is done */
        else if (plan->masks[i].cover == PLAN_COVER_PROTECT)
            watch->tried[i] |= is_lock_of(event, plan->masks[i].name);
        about |= itself;
    }
    return about;
}

/* Reads some events; false if there are none. *ret_relay says whether something may be laid bare. */
static bool read_events(struct watch *watch, const struct plan *plan, bool *ret_relay)
{
    _Alignas(struct inotify_event) char buffer[8192];
    ssize_t length = read(watch->fd, buffer, sizeof buffer);
    *ret_relay = false;
    for (char *at = buffer; length > 0 && at < buffer + length;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
        at += sizeof *event + event->len;
        *ret_relay |= is_about_mask(watch, plan, event);
    }
    return length > 0;
}

void watch_process(struct watch *watch, const struct plan *plan, pid_t pid,
                   struct brig_unenforced *notices)
{
    bool relay = false;
    while (read_events(watch, plan, &relay))
        if (relay)
            relay_all(watch, plan, pid, notices);
}

void watch_mounts_changed(struct watch *watch, const struct plan *plan, pid_t pid,
                          struct brig_unenforced *notices)
{
    relay_all(watch, plan, pid, notices);
}

void watch_rest(struct watch *watch, const struct plan *plan, pid_t pid,
                struct brig_unenforced *notices)
{
    struct brig_error err = {0};
    if (watch->mounts < 0)
        open_table(watch, plan, pid);
    else if (watch_names(watch, plan, &err) < 0)
        unenforced_add(notices, "%s", err.message);
    relay_all(watch, plan, pid, notices);
}

int watch_more(struct watch *watch, const struct plan *plan, size_t from, pid_t pid,
               struct brig_error *err)
{
    struct brig_error local = {0}; /* of the watching: it is covered all the same */
    (void)watch_names(watch, plan, &local);
    if (watch->mounts < 0)
        open_table(watch, plan, pid);
    int result = 0;
    const char *last = NULL;
    for (size_t i = from; i < plan->mask_count && result >= 0; i++) {
        if (last && strcmp(last, plan->masks[i].path) == 0)
            continue;
        last = plan->masks[i].path;
        result = lay_again(&plan->masks[i], pid);
        if (result < 0)
            return brig_fail(err, BRIG_E_SETUP, -result, "cannot hide '%s' while it runs",
                             tail_of(last));
    }
    if (local.code < 0 && err)
        *err = local;
    return local.code < 0 ? local.code : 0;
}

void watch_leave(struct watch *watch)
{
    if (watch->mounts >= 0)
        (void)close(watch->mounts);
    watch->mounts = -1;
}

void watch_conclude(struct watch *watch, const struct plan *plan, struct brig_unenforced *notices)
{
    bool relay;
    while (watch->fd >= 0 && read_events(watch, plan, &relay)) { /* what came with the end */
    }
    for (size_t i = 0; i < watch->count; i++)
        if (watch->tried[i])
            unenforced_add(notices, "'%s' is protected and was not changed. See --unprotect",
                           tail_of(plan->masks[i].path));
}
