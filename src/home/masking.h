/* SPDX-License-Identifier: MIT */
/* The masks that are in force in a jail's home, as the holder keeps them: put into effect, and watched
 * for as long as the home is mounted.
 *
 * Before the overlay is mounted, names are hidden in a layer of it. Afterwards that has no effect on
 * what a run has seen already: then what still shows is covered by a mount, which the kernel passes
 * on to all runs. New names that a mask is for are told by inotify. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "base/str.h"
#include "home/hide.h"
#include "home/wire.h"

#define MASKING_SETS_MAX 16
#define MASKING_WATCHES_MAX 512

/* The masks of one or more runs. */
struct masking_set {
    struct home_message *message; /* they came with it */
    const char **texts;
    struct hide_rules rules;
    struct str places; /* that they lead to by links, for the runs to cover */
    bool extra;        /* it is what was added while the jail ran, see masking_extend() */
    bool plain;        /* links are not followed */
};

struct masking_watch {
    int descriptor;
    char *directory; /* relative to the home */
};

struct masking {
    struct links_home home;
    char *path, *real;   /* of the home */
    bool hides;          /* in a layer of an overlay; else only places are found */
    hide_visit on_place; /* is told of each, unless it is NULL, with this: */
    void *context;
    bool looking;       /* once more: what fails is passed over */
    bool live;          /* which is mounted, */
    bool covered;       /* with a mount on it, above which nothing is looked up again */
    int changes;        /* with this upper directory */
    uint64_t looked;    /* when everything was looked at, in milliseconds, */
    uint64_t next_look; /* and when it may be again for the sake of new names */
    bool blind;         /* not everything could be watched: look again now and then */
    int inotify;
    struct masking_set sets[MASKING_SETS_MAX];
    size_t set_count;
    struct masking_watch *watches; /* MASKING_WATCHES_MAX, or NULL: none yet */
    size_t watch_count;
};

#define MASKING_INIT                                                                               \
    (struct masking)                                                                               \
    {                                                                                              \
        .home = {.fd = -1}, .changes = -1, .inotify = -1                                           \
    }

/* Begins anew, with copies of the home's fd and path. Without `hides` only places are found that
 * masks lead to by links. */
int masking_begin(struct masking *masking, int home, const char *path, bool hides,
                  struct brig_error *err);
/* Forgets all, for another mount. */
void masking_end(struct masking *masking);
/* The overlay is mounted, with this upper directory, which may be new. */
int masking_mounted(struct masking *masking, int changes, bool created, struct brig_error *err);

/* The set with the masks of a message, or NULL. */
const struct masking_set *masking_find(const struct masking *masking,
                                       const struct home_message *message);
/* Puts the masks of a message into effect, beside those that are. */
int masking_add(struct masking *masking, const struct home_message *message,
                const struct masking_set **ret_set, struct brig_error *err);

/* The same, following no links. */
int masking_add_plain(struct masking *masking, const struct home_message *message,
                      struct brig_error *err);
/* The same with masks that came while the jail ran: all of them are one set. */
int masking_extend(struct masking *masking, const struct home_message *message,
                   struct brig_error *err);
/* Looks at everything again. */
void masking_look(struct masking *masking);

/* Watches for names that are missing yet, and hides what came in between. It takes a while. */
void masking_watch(struct masking *masking);
/* After events. Waits until masking_wait_ms() is 0. */
void masking_process(struct masking *masking);
/* How long events should be left alone, so that who makes many does not keep us busy. */
int masking_wait_ms(const struct masking *masking);
/* Looks at everything again, if that was not done a short time ago. */
void masking_refresh(struct masking *masking);
