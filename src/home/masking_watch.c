/* SPDX-License-Identifier: MIT */
/* Watching for names that masks are for, by inotify. */
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "home/masking.h"
#include "home/mounts.h"

#define EVENTS (IN_CREATE | IN_MOVED_TO | IN_ONLYDIR)
#define PART_MAX 256
#define READS_MAX 256   /* of events, at a time: more than the kernel keeps */
#define EXAMINED_MAX 64 /* of them: to look at everything takes no longer than at more of these */
#define DEPTH_MAX 32

/* ---- which directories ---- */

static bool is_watched(const struct masking *masking, const char *directory)
{
    for (size_t i = 0; i < masking->watch_count; i++)
        if (strcmp(masking->watches[i].directory, directory) == 0)
            return true;
    return false;
}

/* Whether the directory is there; it is watched then, or everything is looked at now and then. */
static bool watch_directory(struct masking *masking, const char *directory)
{
    char path[64];
    if (is_watched(masking, directory))
        return true;
    autoclose int fd =
        openat(masking->home.fd, *directory ? directory : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!masking->watches)
        masking->watches = calloc(MASKING_WATCHES_MAX, sizeof *masking->watches);
    bool room = masking->watches && masking->watch_count < MASKING_WATCHES_MAX;
    char *copy = room ? strdup(directory) : NULL;
    int descriptor = copy ? inotify_add_watch(masking->inotify, path, EVENTS) : -1;
    if (descriptor < 0) {
        free(copy);
        masking->blind = true;
        return true;
    }
    masking->watches[masking->watch_count++] =
        (struct masking_watch){.descriptor = descriptor, .directory = copy};
    return true;
}

static bool is_wild(const char *part)
{
    return strpbrk(part, "*?[") != NULL;
}

struct part {
    char text[PART_MAX];
    const char *rest; /* NULL: it was the last */
};

static struct part next_part(const char *pattern)
{
    struct part part = {0};
    size_t length = strcspn(pattern, "/");
    (void)snprintf(part.text, sizeof part.text, "%.*s", (int)length, pattern);
    part.rest = pattern[length] ? pattern + length + 1 : NULL;
    return part;
}

static void watch_below(struct masking *masking, const char *directory, const char *pattern,
                        int depth);

static void watch_matches(struct masking *masking, const char *directory, const struct part *part,
                          int depth)
{
    int fd =
        openat(masking->home.fd, *directory ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    while (dir && (item = readdir(dir))) {
        char path[LINKS_PATH_MAX];
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0 ||
            fnmatch(part->text, item->d_name, 0) != 0)
            continue;
        int length =
            snprintf(path, sizeof path, "%s%s%s", directory, *directory ? "/" : "", item->d_name);
        if (length > 0 && (size_t)length < sizeof path)
            watch_below(masking, path, part->rest, depth + 1);
    }
}

/* Every directory on the way to what a pattern stands for: it can be made, or replaced. */
static void watch_below(struct masking *masking, const char *directory, const char *pattern,
                        int depth)
{
    if (depth > DEPTH_MAX || !watch_directory(masking, directory))
        return;
    const struct part part = next_part(pattern);
    if (!part.rest)
        return;
    if (is_wild(part.text)) {
        watch_matches(masking, directory, &part, depth);
        return;
    }
    char path[LINKS_PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s%s", directory, *directory ? "/" : "", part.text);
    if (length > 0 && (size_t)length < sizeof path)
        watch_below(masking, path, part.rest, depth + 1);
}

/* Of a place that is not in the home, where it may become a link to yet another one. */
static void watch_outside(struct masking *masking, const char *place)
{
    char directory[LINKS_PATH_MAX];
    const char *slash = strrchr(place, '/');
    int length = snprintf(directory, sizeof directory, "%.*s", (int)(slash - place), place);
    if (length > 0 && (size_t)length < sizeof directory)
        (void)watch_directory(masking, directory);
}

static void watch_set(struct masking *masking, const struct masking_set *set)
{
    for (size_t i = 0; i < set->rules.hidden_count; i++)
        watch_below(masking, "", set->rules.hidden[i], 0);
    for (size_t i = 0; i < set->rules.shown_count; i++) /* beside it all is hidden */
        watch_below(masking, "", set->rules.shown[i], 0);
    for (size_t at = 0; at < set->places.length; at += strlen(set->places.data + at) + 1)
        if (set->places.data[at] != '/')
            watch_below(masking, "", set->places.data + at, 0);
        else
            watch_outside(masking, set->places.data + at);
}

void masking_watch(struct masking *masking)
{
    if (masking->inotify < 0)
        masking->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    masking->blind = masking->inotify < 0;
    for (size_t i = 0; i < masking->set_count && masking->inotify >= 0; i++)
        watch_set(masking, &masking->sets[i]);
    masking_look(masking);
}

/* ---- events ---- */

/* Whether a path is on the way to what a pattern stands for, or is it, or lies in it. */
static bool concerns(const char *pattern, const char *path)
{
    while (pattern && path) {
        const struct part wanted = next_part(pattern), is = next_part(path);
        if (strcmp(wanted.text, is.text) != 0 && fnmatch(wanted.text, is.text, 0) != 0)
            return false;
        pattern = wanted.rest;
        path = is.rest;
    }
    return true;
}

static bool is_about_set(const struct masking_set *set, const char *path)
{
    for (size_t i = 0; i < set->rules.hidden_count; i++)
        if (concerns(set->rules.hidden[i], path))
            return true;
    for (size_t at = 0; at < set->places.length; at += strlen(set->places.data + at) + 1)
        if (concerns(set->places.data + at, path))
            return true;
    return false;
}

/* One directory may be known by several names. Who makes new ones must not have us use up what the user
 * can watch. */
static void forget_watch(struct masking *masking, size_t which)
{
    int descriptor = masking->watches[which].descriptor;
    free(masking->watches[which].directory);
    masking->watches[which] = masking->watches[--masking->watch_count];
    for (size_t i = 0; i < masking->watch_count; i++)
        if (masking->watches[i].descriptor == descriptor)
            return;
    (void)inotify_rm_watch(masking->inotify, descriptor);
}

static void forget_all(struct masking *masking)
{
    while (masking->watch_count > 0)
        forget_watch(masking, masking->watch_count - 1);
}

/* A directory that was replaced is another one to watch, and so is all below it. */
static void forget_below(struct masking *masking, const char *path)
{
    for (size_t i = masking->watch_count; i-- > 0;) {
        const char *directory = masking->watches[i].directory;
        size_t length = strlen(path);
        if (strncmp(directory, path, length) == 0 &&
            (!directory[length] || directory[length] == '/'))
            forget_watch(masking, i);
    }
}

/* Whether a new name may be about masks. One directory may be known by several names. */
static bool is_about_masks(struct masking *masking, const struct inotify_event *event)
{
    bool about = event->mask & IN_Q_OVERFLOW;
    for (size_t w = masking->watch_count; w-- > 0 && event->len > 0;) {
        char path[LINKS_PATH_MAX + PART_MAX];
        const char *directory = masking->watches[w].directory;
        if (masking->watches[w].descriptor != event->wd)
            continue;
        (void)snprintf(path, sizeof path, "%s%s%s", directory, *directory ? "/" : "", event->name);
        for (size_t s = 0; s < masking->set_count; s++)
            about = about || is_about_set(&masking->sets[s], path);
        forget_below(masking, path);
        w = w < masking->watch_count ? w : masking->watch_count;
    }
    return about;
}

static void forget_gone(struct masking *masking, int descriptor)
{
    for (size_t i = masking->watch_count; i-- > 0;)
        if (masking->watches[i].descriptor == descriptor)
            forget_watch(masking, i);
}

/* Reads some events; false if there are no more. */
static bool read_events(struct masking *masking, unsigned *examined, bool *about)
{
    _Alignas(struct inotify_event) char buffer[8192];
    ssize_t length = read(masking->inotify, buffer, sizeof buffer);
    for (char *at = buffer; length > 0 && at < buffer + length && *examined <= EXAMINED_MAX;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
        at += sizeof *event + event->len;
        ++*examined;
        if (event->mask & IN_IGNORED)
            forget_gone(masking, event->wd);
        else
            *about = is_about_masks(masking, event) || *about;
    }
    return length > 0;
}

/* All there are: while nobody was in the jail none were read, and who joins now must not be served
 * before. Who makes many has everything looked at instead, and watched anew. */
void masking_process(struct masking *masking)
{
    int wait_ms = masking_wait_ms(masking);
    if (wait_ms > 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = wait_ms * 1000000L}, NULL);
    bool about = false;
    unsigned examined = 0;
    int reads = 0;
    while (reads < READS_MAX && read_events(masking, &examined, &about))
        reads++;
    if (examined > EXAMINED_MAX)
        forget_all(masking);
    if (about || examined > EXAMINED_MAX || reads == READS_MAX) {
        mounts_forget(); /* a directory that was replaced would stay the old one, without its files */
        masking_watch(masking);
    }
}
