/* SPDX-License-Identifier: MIT */
/* The watcher: tells by inotify when a new name on the host can change what is to be hidden or protected.
 *
 * Directories are watched for names that appear in them. All are added again after each change, because a
 * directory that was replaced is another one to watch. To close an inotify instance takes the kernel 7 ms:
 * callers open it only for runs that last. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>

#include "base/str.h"
#include "jail/view/mask.h"

/* A directory under one of its names. */
struct mask_watch_directory {
    int descriptor; /* of inotify, or -1: it does not exist */
    int before;     /* before mask_watch_begin() */
    char *path;
    struct str names; /* that matter, each ended by a NUL; they may have wildcards */
    bool wanted;      /* it was added since mask_watch_begin() */
};

struct mask_watch {
    int fd; /* of inotify, or -1 */
    struct mask_watch_directory *directories;
    size_t count, room;
    size_t limit;       /* of directories: a user can watch only so many; 0: none */
    int blind;          /* errno: not everything could be watched, look again now and then; or 0 */
    uint64_t began_ms;  /* mask_watch_begin() */
    uint64_t looked_ms; /* mask_watch_end() */
    uint64_t next_ms;   /* when events should be read again */
};

#define MASK_WATCH_INIT                                                                            \
    (struct mask_watch)                                                                            \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Does nothing if it is open; 0 or -errno, which leaves it blind. */
int mask_watch_open(struct mask_watch *watch);
void mask_watch_done(struct mask_watch *watch);

/* Everything that is watched is added between these two; the second lets go of the rest. */
void mask_watch_begin(struct mask_watch *watch);
void mask_watch_end(struct mask_watch *watch);
/* A directory, relative to `at` or absolute, and a name in it. One that does not exist is left out. */
void mask_watch_add(struct mask_watch *watch, int at, const char *directory, const char *name);

/* Reads some events, and tells each of them for every name its directory goes by (NULL: events were
 * lost). False if there were none. */
typedef void (*mask_watch_visit)(void *context, const struct mask_watch_directory *directory,
                                 const struct inotify_event *event);
bool mask_watch_read(struct mask_watch *watch, mask_watch_visit visit, void *context);

/* Reads all events: whether a name that was added has appeared. Waits until mask_watch_wait_ms() is 0. */
bool mask_watch_has_news(struct mask_watch *watch);
/* How long events should be left alone: a process that makes many files must not keep us busy. */
int mask_watch_wait_ms(const struct mask_watch *watch);
