/* SPDX-License-Identifier: MIT */
/* Keeps masks and protections mounted. */
#include "jail/job/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/mountinfo.h"
#include "jail/job/job.h"
#include "jail/job/result.h"
#include "jail/job/spawn.h"
#include "jail/view/view.h"
#include "policy/policy.h"

#define MOUNTS_DELAY_US 10000
#define REST_DELAY_US 250000

/* Watches by name, and again after each change: a replaced directory is a different one to
 * watch. */
static void add_watches(struct watch *watch, const struct plan *plan)
{
    mask_watch_begin(&watch->names);
    for (size_t i = 0; i < plan->mask_count; i++)
        mask_watch_add(&watch->names, AT_FDCWD, plan->masks[i].host_dir, plan->masks[i].name);
    mask_watch_end(&watch->names);
}

static int watch_names(struct watch *watch, const struct plan *plan, struct brig_error *err)
{
    int result = mask_watch_open(&watch->names);
    if (result < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -result,
                         "cannot watch the masked files. Raise fs.inotify.max_user_instances");
    bool *tried = reallocarray(watch->tried, plan->mask_count, sizeof *tried);
    if (!tried)
        return brig_fail_nomem(err);
    for (size_t i = watch->tried_count; i < plan->mask_count; i++)
        tried[i] = false;
    watch->tried = tried;
    watch->tried_count = plan->mask_count;
    add_watches(watch, plan);
    if (watch->names.blind)
        return brig_fail(err, BRIG_E_SYSTEM, watch->names.blind,
                         "cannot watch the masked files, which the host may replace. Raise "
                         "fs.inotify.max_user_watches");
    return 0;
}

/* The user's programs cannot replace a name in a directory that only root can change, such as
 * /var/mail. Such names are watched a moment later, so that most runs need no inotify instance; a
 * jail can use up all instances of its user. */
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
    if (watch->names.fd >= 0)
        open_table(watch, plan, pid);
}

uint64_t watch_delay_us(const struct watch *watch, const struct plan *plan)
{
    if (plan->mask_count == 0 || plan->rung != PLAN_FULL || watch->names.fd >= 0)
        return 0;
    return watch->mounts < 0 ? MOUNTS_DELAY_US : REST_DELAY_US;
}

void watch_done(struct watch *watch)
{
    watch_leave(watch);
    if (watch->names.fd >= 0)
        mask_watch_done(&watch->names);
    free(watch->tried);
    *watch = WATCH_INIT;
}

/* Returns whether a mount at the path in the jail is visible, and not hidden below another mount: a
 * home has mounts at the same paths as a grant that is mounted over it. */
static bool is_covered(const struct mountinfo_table *table, const char *path)
{
    const struct mountinfo *mount = mountinfo_at(table, path);
    return mount && strcmp(mount->point, path) == 0;
}

/* Adds the steps that cover a path: with an empty file or directory, or with itself. */
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

/* Enters the jail's user and mount namespaces and covers one path; returns 1 on success. Uses a
 * separate plan without a command, executed by the same child code. */
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
    /* Like PLAN_ATTACH: below a directory that the jail can write to, no symlink is followed. */
    bool follows = mask->cover == PLAN_COVER_MASK && !mask->writable;
    if (fstatat(AT_FDCWD, mask->host_path, &info, follows ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* missing, or removed again */
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

/* The end of a path says more than its beginning. */
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

/* A new directory may contain masked names before it is watched: check again afterwards. */
static void relay_all(struct watch *watch, const struct plan *plan, pid_t pid,
                      struct brig_unenforced *notices)
{
    __attribute__((cleanup(mountinfo_done))) struct mountinfo_table table = {0};
    if (watch->names.fd >= 0)
        add_watches(watch, plan);
    if (mountinfo_read(pid, &table) < 0 || table.count == 0)
        return; /* the jail is over */
    const char *last = NULL;
    for (size_t i = 0; i < plan->mask_count; i++) {
        if (last && strcmp(last, plan->masks[i].path) == 0)
            continue;
        last = plan->masks[i].path;
        if (is_covered(&table, last))
            continue;
        if (plan->masks[i].cover == PLAN_COVER_PRIVATE) { /* the real one would be visible */
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

/* Returns whether an event is about X.lock, for the name X: git and other programs create it before
 * they replace X, also where the replacement then fails. */
static bool is_lock_of(const struct inotify_event *event, const char *name)
{
    size_t length = strlen(name);
    return (event->mask & IN_CREATE) && strncmp(event->name, name, length) == 0 &&
           strcmp(event->name + length, ".lock") == 0;
}

/* Context for examining events. */
struct examining {
    struct watch *watch;
    const struct plan *plan;
    bool bare; /* a path may be uncovered */
};

static void examine(void *context, const struct mask_watch_directory *directory,
                    const struct inotify_event *event)
{
    struct examining *examining = context;
    const struct plan *plan = examining->plan;
    bool *tried = examining->watch->tried;
    if (!directory) { /* events were lost: check everything */
        examining->bare = true;
        return;
    }
    for (size_t i = 0; i < examining->watch->tried_count; i++) {
        const struct plan_mask *mask = &plan->masks[i];
        if (strcmp(mask->host_dir, directory->path) != 0)
            continue;
        bool itself = strcmp(event->name, mask->name) == 0;
        if (itself)
            tried[i] = false; /* the host replaced the file, so nothing was prevented */
        else if (mask->cover == PLAN_COVER_PROTECT)
            tried[i] |= is_lock_of(event, mask->name);
        examining->bare |= itself;
    }
}

void watch_process(struct watch *watch, const struct plan *plan, pid_t pid,
                   struct brig_unenforced *notices)
{
    struct examining examining = {.watch = watch, .plan = plan};
    while (mask_watch_read(&watch->names, examine, &examining)) {
        if (examining.bare)
            relay_all(watch, plan, pid, notices);
        examining.bare = false;
    }
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

void watch_leave(struct watch *watch)
{
    close_fd(&watch->mounts);
    watch->mounts = -1;
}

void watch_conclude(struct watch *watch, const struct plan *plan, struct brig_unenforced *notices)
{
    struct examining examining = {.watch = watch, .plan = plan};
    while (watch->names.fd >= 0 && mask_watch_read(&watch->names, examine, &examining)) {
        /* read events that came with the end */
    }
    for (size_t i = 0; i < watch->tried_count; i++)
        if (watch->tried[i])
            unenforced_add(notices, "'%s' is protected and was not changed. See BRIG_PROTECT",
                           tail_of(plan->masks[i].path));
}

/* ---- hiding more in a running jail ---- */

/* Covers the plan's masks from an index on, and watches them. */
static int cover_more(struct watch *watch, const struct plan *plan, size_t from, pid_t pid,
                      struct brig_error *err)
{
    struct brig_error local = {0}; /* errors of watching are ignored: the path is covered */
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

/* Returns the place of the jail that a path is in; of several at one path, the last. */
static const struct plan_place *place_above(const struct plan *plan, const char *path)
{
    const struct plan_place *best = NULL;
    size_t most = 0, path_length = strlen(path);
    for (size_t i = 0; i < plan->place_count; i++) {
        const struct plan_place *place = &plan->places[i];
        size_t length = place->dest[1] ? strlen(place->dest) : 0;
        if (length < path_length && strncmp(place->dest, path, length) == 0 &&
            path[length] == '/' && length >= most) {
            most = length;
            best = place;
        }
    }
    return best;
}

static bool is_hidden(const struct plan *plan, const char *path)
{
    for (size_t i = 0; i < plan->mask_count; i++)
        if (plan->masks[i].cover == PLAN_COVER_MASK && strcmp(plan->masks[i].path, path) == 0)
            return true;
    return false;
}

/* Adds a path of the jail to the masks of the plan, if it shows the host. */
static int add_path(struct plan *plan, const char *path, struct brig_error *err)
{
    const struct plan_place *place = place_above(plan, path);
    if (!place || !place->host || is_hidden(plan, path))
        return 0;
    const char *rest = place->dest[1] ? path + strlen(place->dest) : path;
    const char *dest = arena_strdup(&plan->arena, path);
    const char *host = arena_concat(&plan->arena, place->host, rest);
    if (dest && host)
        plan_watch_cover(plan, PLAN_COVER_MASK, place, host, dest);
    return plan->arena.failed ? brig_fail_nomem(err) : 0;
}

/* As in a plan, a path that is granted under another name is hidden there, too. */
static int add_paths(struct plan *plan, const struct brig_policy *policy, const char *path,
                     struct brig_error *err)
{
    bool frame = policy->view == BRIG_VIEW_SYSTEM || policy->view == BRIG_VIEW_EMPTY;
    const char *real = frame ? view_without_alias(&plan->arena, path) : path;
    int status = real ? add_path(plan, real, err) : brig_fail_nomem(err);
    for (size_t i = 0; i < policy->grant_count && status == 0; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        size_t length = strlen(grant->source);
        if (grant->access == BRIG_MASK || strcmp(grant->source, grant->dest) == 0 ||
            strncmp(path, grant->source, length) != 0 || path[length] != '/')
            continue;
        const char *dest = arena_concat(&plan->arena, grant->dest, path + length);
        if (dest && frame)
            dest = view_without_alias(&plan->arena, dest);
        status = dest ? add_path(plan, dest, err) : brig_fail_nomem(err);
    }
    return status;
}

static void poll_for(const struct brig_job *job, int before, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (before < 0 && fd >= 0)
        (void)epoll_ctl(job->epoll, EPOLL_CTL_ADD, fd, &event);
}

int job_hide(struct brig_job *job, const struct brig_policy *policy, const char *path,
             struct brig_error *err)
{
    struct plan *plan = &job->plan;
    size_t from = plan->mask_count;
    if (plan->rung != PLAN_FULL || job->state == JOB_OVER)
        return 0;
    int status = add_paths(plan, policy, path, err);
    if (status < 0 || plan->mask_count == from)
        return status;
    int names = job->watch.names.fd, mounts = job->watch.mounts;
    status = cover_more(&job->watch, plan, from, job->pid, err);
    poll_for(job, names, job->watch.names.fd, EPOLLIN);
    poll_for(job, mounts, job->watch.mounts, EPOLLPRI);
    job->watch_due_us = 0; /* everything is watched now */
    return status;
}

void job_note(struct brig_job *job, const char *text)
{
    unenforced_add(&job->notices, "%s", text);
}
