/* SPDX-License-Identifier: MIT */
/* The watcher: reports by inotify when a new name on the host can change the set of paths to hide
 * or protect.
 *
 * Directories are watched for new names. All are added again after each change, because a replaced
 * directory has to be watched instead of the old one. Closing an inotify instance takes the kernel
 * 7 ms, so callers open it only for runs that last. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>

#include "base/str.h"
#include "jail/view/mask.h"

/* A directory under one of its paths. */
struct mask_watch_directory {
    int descriptor; /* inotify watch, or -1 if the directory does not exist */
    int before;     /* the watch before mask_watch_begin() */
    char *path;
    struct str names; /* names to report, each ended by a NUL; may have wildcards */
    bool wanted;      /* added since mask_watch_begin() */
};

struct mask_watch {
    int fd; /* the inotify instance, or -1 */
    struct mask_watch_directory *directories;
    size_t count, room;
    size_t limit;       /* of directories, as a user's inotify watches are limited; 0: none */
    int blind;          /* errno if not all could be watched: rescan now and then; or 0 */
    uint64_t began_ms;  /* time of mask_watch_begin() */
    uint64_t looked_ms; /* time of mask_watch_end() */
    uint64_t next_ms;   /* when to read events again */
};

#define MASK_WATCH_INIT                                                                            \
    (struct mask_watch)                                                                            \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Does nothing if already open. Returns 0 or -errno; on error the watch is blind. */
int mask_watch_open(struct mask_watch *watch);
void mask_watch_done(struct mask_watch *watch);

/* Callers add all directories between these two calls; mask_watch_end() removes the others. */
void mask_watch_begin(struct mask_watch *watch);
void mask_watch_end(struct mask_watch *watch);
/* Adds a directory, absolute or relative to `at`, and a name in it. A missing directory is
 * skipped. */
void mask_watch_add(struct mask_watch *watch, int at, const char *directory, const char *name);

/* Reads some events and calls `visit` for each of them, once per path of its directory (NULL:
 * events were lost). Returns false if there were none. */
typedef void (*mask_watch_visit)(void *context, const struct mask_watch_directory *directory,
                                 const struct inotify_event *event);
bool mask_watch_read(struct mask_watch *watch, mask_watch_visit visit, void *context);

/* Reads all events; returns whether a watched name was created. Sleeps until mask_watch_wait_ms()
 * is 0. */
bool mask_watch_has_news(struct mask_watch *watch);
/* Returns how long to leave events unread, so that a process that creates many files does not keep
 * the supervisor busy. */
int mask_watch_wait_ms(const struct mask_watch *watch);
