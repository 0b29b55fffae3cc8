/* SPDX-License-Identifier: MIT */
/* The masks of a run while it goes on: what comes to match one, or what one comes to lead to by a
 * symbolic link, is hidden in what the run has of the host. The home of a jail is its holder's affair
 * (home/masking.h), which also passes on what `brig mask` adds. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/masks.h"
#include "cli/path_aliases.h"
#include "home/masking.h"

struct brig_job;
struct identity;
struct settings;

struct live_masks {
    const struct identity
        *identity; /* whose rights are used to look; NULL: there is nothing to do */
    struct masks masks;
    struct masks late; /* the default ones that hold in grants only */
    struct path_aliases path_aliases;
    struct masking masking;
    int lease;       /* the connection to the jail's holder, borrowed, or -1 */
    uint64_t due_ms; /* when it begins; 0: it has */
    size_t grants;   /* of the policy, that the job knows */
    size_t added;    /* so many were hidden while it ran */
    bool full;       /* and more are not */
};

#define LIVE_MASKS_INIT                                                                            \
    (struct live_masks)                                                                            \
    {                                                                                              \
        .masking = MASKING_INIT, .lease = -1                                                       \
    }

enum { LIVE_MASKS_POLL = 2 };

/* Takes over what a run hides, for the time it goes on. */
int live_masks_init(struct live_masks *live, const struct settings *settings,
                    const struct identity *identity, struct masks *masks,
                    struct path_aliases *path_aliases, struct brig_error *err);
void live_masks_done(struct live_masks *live);

/* When the run has been started. */
void live_masks_start(struct live_masks *live, int lease);
/* What is to be waited for, and at most how long: *timeout_ms may become less. */
void live_masks_poll(const struct live_masks *live, struct pollfd fds[LIVE_MASKS_POLL],
                     int *timeout_ms);
/* After that. */
void live_masks_process(struct live_masks *live, struct brig_job *job,
                        const struct pollfd fds[LIVE_MASKS_POLL]);
