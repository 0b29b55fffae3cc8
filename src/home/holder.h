/* SPDX-License-Identifier: MIT */
/* What the files of the holder share: holder.c (who comes and goes), holder_home.c (the home it keeps),
 * and holder_disk.c (limits). */
#pragma once

#include "home/disk.h"
#include "home/home.h"
#include "home/overlay_masks.h"
#include "home/pins.h"
#include "home/storage.h"
#include "home/wire.h"

#define HOLDER_RUNS_MAX 1024

struct holder_run {
    int socket;
    pid_t pid;
    struct private_limits disk;
    bool unwelcome;
    char *mount_points; /* see wire.h */
    size_t mount_points_length;
    bool has_overlay;
    bool joined; /* it has the mounts, and hears of new masks */
};

struct holder {
    char name[HOME_NAME_MAX + 1];
    char key[STORAGE_KEY_MAX]; /* of its socket and its lock */
    char socket_name[STORAGE_KEY_MAX + 8];
    int sockets, storage, listener, lock;
    bool has_overlay, has_home;
    struct place place;         /* of the directory below the overlay */
    struct overlay_masks masks; /* of the overlay */
    struct private_limits disk; /* as it is now */
    struct pins pins;           /* the mount points of runs */
    struct holder_run runs[HOLDER_RUNS_MAX];
    size_t run_count;
};

/* What came with a request. */
struct holder_given {
    int fds[HOME_GIVEN_COUNT]; /* -1: nothing */
    pid_t from;
};

/* What is found out for an answer. */
struct holder_answer {
    bool created;                  /* the home is new */
    bool news;                     /* there are masks to be watched */
    char notice[BRIG_MESSAGE_MAX]; /* what the user should know of it */
};

/* The next string of a request; NULL when there is none. */
const char *holder_next_text(const struct home_message *request, size_t *at);

/* Sees to it that there is an overlay with the masks of a request, or the home of the jail's own for
 * runs without one. */
int holder_need_overlay(struct holder *holder, const struct home_message *request,
                        const struct holder_given *given, struct holder_answer *answer,
                        struct brig_error *err);
int holder_need_home(struct holder *holder, const struct home_message *request,
                     const struct holder_given *given, bool *ret_created, struct brig_error *err);

/* All runs have the same private directories, so the least that one of them asks for holds for all.
 * What a run asks for, and what came of it; and after one is gone. */
void holder_limit_disk(struct holder *holder, struct holder_run *run,
                       const struct home_request *head, struct home_reply *reply);
void holder_relax_disk(struct holder *holder);

/* Holds the mount points of a run in place, which a request ends with: they are taken off it. Lets go of
 * those that no run needs any more. */
int holder_take_points(struct holder_run *run, struct home_message *request,
                       struct brig_error *err);
int holder_pin(struct holder *holder, const struct holder_run *run, struct brig_error *err);
void holder_unpin(struct holder *holder);

/* Hides what a request names, and passes it on to the runs, with the fd that came with it. */
int holder_mask(struct holder *holder, const struct holder_run *asking,
                const struct home_message *request, const struct holder_given *given,
                uint32_t *ret_told, struct brig_error *err);
