/* SPDX-License-Identifier: MIT */
/* Frames: what jails that begin cold have in common, made once for each runtime. A frame is a template
 * of libbrig's: namespaces in which all that no run can write to is mounted, and a few networks that
 * nobody has had. A run adds what is its own alone, a user namespace first of all. A request with
 * files, a network or a disk of its own has no frame, and is built from scratch. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct brig_policy;
struct brig_template;
struct runtime;
struct executor;

#define FRAMES_MAX 4 /* of as many runtimes, those that were used last */

struct frame {
    const struct runtime *runtime;  /* NULL: this place is free */
    struct brig_template *template; /* NULL: it is to be made, or was found not to work */
    struct timespec etc_changed;    /* the names in /etc, of which some are copied */
    uint64_t born_ms, used_ms;
    bool broken; /* until it would be too old */
};

struct frames {
    struct frame items[FRAMES_MAX];
    bool wanted; /* at least one is to be made */
};

/* The frame for a run with this policy; NULL: there is none. */
struct brig_template *executor_frame_find(struct executor *executor, const struct runtime *runtime,
                                          const struct brig_policy *policy);
/* A run could not be started in it. */
void executor_frame_failed(struct executor *executor, const struct brig_template *template);
/* Makes those that are wanted, and ends those that are too old or were not used for long. */
void executor_frames_settle(struct executor *executor, uint64_t now_ms);
void executor_frames_end(struct executor *executor);
