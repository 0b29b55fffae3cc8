/* SPDX-License-Identifier: MIT */
/* The masks of a copy-on-write home, as its holder keeps them. There is one way to hide: a whiteout in a
 * layer of the overlay, between the home and the changes. It also hides what does not exist yet, and is
 * never mistaken for a deletion by the jail. After the overlay is mounted, a run may have seen the file
 * already, or have changed it, which puts a copy above all whiteouts: such a path is covered by a mount,
 * which the kernel passes on to all runs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "home/wire.h"
#include "jail/view/mask.h"
#include "jail/view/mask_watch.h"
#include "policy/startup.h"

#define OVERLAY_MASKS_SETS_MAX 256

/* The masks of one or more runs, or those that came while the jail ran. */
struct overlay_mask_set {
    struct home_message *message; /* they came with it */
    const char **texts;
    struct mask_rules rules;
    const char **own; /* brig's own directories: hidden for good */
    size_t own_count;
    struct startup_filter filter;
};

struct overlay_masks {
    struct mask_home home;
    char *path, *real; /* of the home */
    int layer;         /* the directory with the whiteouts */
    int changes;       /* the upper directory of the overlay, once it is mounted; else -1 */
    bool looking;      /* again: failures are ignored, so that one does not prevent the others */
    bool covered;      /* something is hidden until the overlay is mounted again */
    struct mask_watch watch;
    struct overlay_mask_set sets[OVERLAY_MASKS_SETS_MAX];
    size_t set_count;
};

#define OVERLAY_MASKS_INIT                                                                         \
    (struct overlay_masks)                                                                         \
    {                                                                                              \
        .home = {.fd = -1}, .layer = -1, .changes = -1, .watch = {                                 \
            .fd = -1,                                                                              \
            .limit = OVERLAY_MASKS_WATCHES_MAX                                                     \
        }                                                                                          \
    }
#define OVERLAY_MASKS_WATCHES_MAX 512

/* Starts again for another mount, with copies of the home's fd and path. */
int overlay_masks_begin(struct overlay_masks *masks, int home, const char *path,
                        struct brig_error *err);
void overlay_masks_end(struct overlay_masks *masks);
/* The overlay is mounted, with this upper directory, which may be new. */
int overlay_masks_mounted(struct overlay_masks *masks, int changes, bool created,
                          struct brig_error *err);

/* Whether the masks of a message are in force. */
bool overlay_masks_have(const struct overlay_masks *masks, const struct home_message *message);
/* Puts the masks of a message into effect, besides those in force. */
int overlay_masks_add(struct overlay_masks *masks, const struct home_message *message,
                      struct brig_error *err);
/* Hides one path relative to the home, before the overlay is mounted. */
int overlay_masks_hide(struct overlay_masks *masks, const char *path, struct brig_error *err);

/* Hides a path that mask_each() has found; of a file that a run may have seen, also by a cover. `masks` is the
 * context. */
int overlay_masks_hide_path(void *masks, const struct mask_path *path, struct brig_error *err);

/* For entries of the layer: creates the parents of a path like those in the home. Returns 1, or 0 if a parent is
 * missing in the home or is a link, or -errno. */
int overlay_masks_make_parents(const struct overlay_masks *masks, const char *path);
/* After an entry was made: gives its parents the times of those in the home. */
void overlay_masks_settle_parents(const struct overlay_masks *masks, const char *path);

/* Resolves all masks again. */
void overlay_masks_look(struct overlay_masks *masks);
/* The same, and from then on watches for names that masks are for. */
void overlay_masks_watch(struct overlay_masks *masks);
/* After events on watch.fd. */
void overlay_masks_process(struct overlay_masks *masks);
/* Resolves all masks again, if that was not done a short time ago. */
void overlay_masks_refresh(struct overlay_masks *masks);
