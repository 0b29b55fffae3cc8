/* SPDX-License-Identifier: MIT */
/* Watches directories of the host by inotify. */
#include "jail/view/mask_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"

/* Minimum pause between two rescans; the pause is also at least this many times a rescan's
 * duration. */
#define PAUSE_MS 10
#define PAUSE_LOOKS 10
#define PAUSE_MAX_MS 500
#define READS_MAX 256   /* reads of events at a time: more than the kernel queues */
#define EXAMINED_MAX 64 /* events: beyond this, a full rescan is as cheap as examining more */

int mask_watch_open(struct mask_watch *watch)
{
    if (watch->fd < 0)
        watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    watch->blind = watch->fd < 0 ? errno : 0;
    return -watch->blind;
}

static void drop_directory(struct mask_watch *watch, size_t which)
{
    free(watch->directories[which].path);
    str_done(&watch->directories[which].names);
    watch->directories[which] = watch->directories[--watch->count];
}

void mask_watch_done(struct mask_watch *watch)
{
    while (watch->count > 0)
        drop_directory(watch, watch->count - 1);
    free(watch->directories);
    if (watch->fd >= 0)
        (void)close(watch->fd);
    size_t limit = watch->limit;
    *watch = MASK_WATCH_INIT;
    watch->limit = limit;
}

/* ---- watches ---- */

void mask_watch_begin(struct mask_watch *watch)
{
    watch->began_ms = clock_now_ms();
    watch->blind = watch->fd < 0 ? EBADF : 0;
    for (size_t i = 0; i < watch->count; i++) {
        struct mask_watch_directory *directory = &watch->directories[i];
        directory->before = directory->descriptor;
        directory->wanted = false;
        str_done(&directory->names);
    }
}

/* Searches backwards: names of one directory are usually added one after the other. */
static struct mask_watch_directory *find(const struct mask_watch *watch, const char *path)
{
    for (size_t i = watch->count; i-- > 0;)
        if (strcmp(watch->directories[i].path, path) == 0)
            return &watch->directories[i];
    return NULL;
}

static struct mask_watch_directory *add_directory(struct mask_watch *watch, const char *path)
{
    if (watch->limit > 0 && watch->count >= watch->limit)
        return NULL;
    if (watch->count == watch->room) {
        size_t room = watch->room ? 2 * watch->room : 16;
        void *grown = reallocarray(watch->directories, room, sizeof *watch->directories);
        if (!grown)
            return NULL;
        watch->directories = grown;
        watch->room = room;
    }
    char *copy = strdup(path);
    if (!copy)
        return NULL;
    struct mask_watch_directory *directory = &watch->directories[watch->count++];
    *directory = (struct mask_watch_directory){.descriptor = -1, .before = -1, .path = copy};
    return directory;
}

/* Returns the inotify watch, or -1 if the directory is missing or cannot be watched. */
static int watch_directory(struct mask_watch *watch, int at, const char *path)
{
    autoclose int fd = openat(at, *path ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
        watch->blind = errno;
    if (fd < 0)
        return -1;
    int descriptor =
        inotify_add_watch(watch->fd, path_proc(fd).text, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    if (descriptor < 0)
        watch->blind = errno;
    return descriptor;
}

void mask_watch_add(struct mask_watch *watch, int at, const char *path, const char *name)
{
    struct mask_watch_directory *directory = find(watch, path);
    if (!directory)
        directory = add_directory(watch, path);
    if (!directory || watch->fd < 0) {
        watch->blind = ENOSPC;
        return;
    }
    if (!directory->wanted)
        directory->descriptor = watch_directory(watch, at, path);
    directory->wanted = true;
    if (!str_list_has(&directory->names, name))
        str_append_bytes(&directory->names, name, strlen(name) + 1);
    if (directory->names.failed)
        watch->blind = ENOMEM;
}

static bool is_used(const struct mask_watch *watch, int descriptor)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->directories[i].wanted && watch->directories[i].descriptor == descriptor)
            return true;
    return false;
}

/* Removes watches that are no longer used: a process that creates new directories must not use up
 * the user's inotify watches. */
void mask_watch_end(struct mask_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        struct mask_watch_directory *directory = &watch->directories[i];
        if (directory->before >= 0 && !is_used(watch, directory->before))
            (void)inotify_rm_watch(watch->fd, directory->before);
        directory->before = -1;
    }
    for (size_t i = watch->count; i-- > 0;)
        if (!watch->directories[i].wanted)
            drop_directory(watch, i);
    watch->looked_ms = clock_now_ms();
    uint64_t pause = (watch->looked_ms - watch->began_ms) * PAUSE_LOOKS;
    watch->next_ms = watch->looked_ms + (pause < PAUSE_MS       ? PAUSE_MS
                                         : pause > PAUSE_MAX_MS ? PAUSE_MAX_MS
                                                                : pause);
}

/* ---- events ---- */

static void tell(struct mask_watch *watch, const struct inotify_event *event,
                 mask_watch_visit visit, void *context)
{
    if (event->mask & IN_Q_OVERFLOW)
        visit(context, NULL, event);
    for (size_t i = 0; i < watch->count; i++) {
        struct mask_watch_directory *directory = &watch->directories[i];
        if (directory->descriptor != event->wd)
            continue;
        if (event->mask & IN_IGNORED) /* the kernel may reuse the watch number */
            directory->descriptor = -1;
        else if (event->len > 0)
            visit(context, directory, event);
    }
}

bool mask_watch_read(struct mask_watch *watch, mask_watch_visit visit, void *context)
{
    _Alignas(struct inotify_event) char buffer[8192];
    ssize_t length = read(watch->fd, buffer, sizeof buffer);
    for (char *at = buffer; length > 0 && at < buffer + length;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
        at += sizeof *event + event->len;
        tell(watch, event, visit, context);
    }
    return length > 0;
}

struct news {
    unsigned examined;
    bool found;
};

static void examine(void *context, const struct mask_watch_directory *directory,
                    const struct inotify_event *event)
{
    struct news *news = context;
    news->found = news->found || !directory || ++news->examined > EXAMINED_MAX;
    for (size_t at = 0; !news->found && at < directory->names.length;
         at += strlen(directory->names.data + at) + 1)
        news->found = strcmp(directory->names.data + at, event->name) == 0 ||
                      fnmatch(directory->names.data + at, event->name, 0) == 0;
}

int mask_watch_wait_ms(const struct mask_watch *watch)
{
    uint64_t now = clock_now_ms();
    return now < watch->next_ms ? (int)(watch->next_ms - now) : 0;
}

/* Reads all events: none were read while no process ran in the jail, and a run that joins now must
 * not start before they are handled. */
bool mask_watch_has_news(struct mask_watch *watch)
{
    int wait_ms = mask_watch_wait_ms(watch);
    if (wait_ms > 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = wait_ms * 1000000L}, NULL);
    struct news news = {0};
    int reads = 0;
    while (reads < READS_MAX && mask_watch_read(watch, examine, &news))
        reads++;
    return news.found || reads == READS_MAX;
}
