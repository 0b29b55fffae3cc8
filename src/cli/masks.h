/* SPDX-License-Identifier: MIT */
/* The masks of a run: from the settings' rules to what its policy hides. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "jail/view/mask.h"
#include "jail/view/mask_names.h"
#include "jail/view/mask_watch.h"

struct brig_job;
struct identity;
struct settings;

/* The rules that are left of all in their order. Release with masks_done. Texts are borrowed from the
 * settings, but for the owned ones. */
struct masks {
    struct mask_rules rules;
    const char **origins; /* of each hidden one, where the rule comes from */
    char **owned;
    size_t owned_count;
};

/* With the default masks before them where the settings want these for grants only. */
int masks_resolve(const struct settings *settings, struct masks *ret_masks, struct brig_error *err);
void masks_done(struct masks *masks);

/* Notes in settings->masks which of them hide something that is in the home directory now. */
int masks_mark_found(struct settings *settings, const char *home, struct brig_error *err);

/* Adds masks to the policy wherever it shows what the rules hide. With the rights of the user. */
int masks_apply(const struct masks *masks, const struct mask_names *names, struct brig_error *err);

/* Adds rules for the paths in the home directory that links lead to. */
int masks_follow_links(struct masks *masks, const char *home, struct brig_error *err);

/* ---- While the run goes on ----
 *
 * A new file that matches a rule, or that a rule leads to by a new symbolic link, is hidden in what the
 * run has of the host. The copy-on-write home is its holder's task (home/overlay_masks.h); the holder
 * also passes on what `brig mask` adds. */

#define LIVE_MASKS_WATCHES_MAX 512

struct live_masks {
    const struct identity
        *identity; /* with whose rights files are looked up; NULL: nothing to do */
    struct masks masks;
    struct mask_names names;
    struct mask_watch watch;
    int home;        /* its directory, or -1 */
    int lease;       /* the connection to the jail's holder, borrowed, or -1 */
    uint64_t due_ms; /* when it starts; 0: it has */
    size_t grants;   /* of the policy, that the job knows */
    size_t added;    /* so many were hidden while it ran */
    bool full;       /* and more are not */
};

#define LIVE_MASKS_INIT                                                                            \
    (struct live_masks)                                                                            \
    {                                                                                              \
        .watch = {.fd = -1, .limit = LIVE_MASKS_WATCHES_MAX}, .home = -1, .lease = -1              \
    }

enum { LIVE_MASKS_POLL = 2 };

/* Takes over what a run hides, for the time it goes on. */
void live_masks_init(struct live_masks *live, const struct settings *settings,
                     const struct identity *identity, struct masks *masks,
                     struct mask_names *names);
void live_masks_done(struct live_masks *live);

/* When the run has been started. */
void live_masks_start(struct live_masks *live, int lease);
/* What is to be waited for, and at most how long: *timeout_ms may become less. */
void live_masks_poll(const struct live_masks *live, struct pollfd fds[LIVE_MASKS_POLL],
                     int *timeout_ms);
/* After that. */
void live_masks_process(struct live_masks *live, struct brig_job *job,
                        const struct pollfd fds[LIVE_MASKS_POLL]);
