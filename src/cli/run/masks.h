/* SPDX-License-Identifier: MIT */
/* The masks of a run: from the rules of the settings to the paths that the policy hides. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "base/path.h"
#include "changes/layer/layer.h"
#include "cli/settings/settings.h"
#include "jail/view/mask.h"
#include "jail/view/mask_names.h"
#include "jail/view/mask_watch.h"

struct brig_job;
struct identity;

/* The effective rules, in order. Release with masks_done. Texts are borrowed from the settings,
 * except for `owned`. */
struct masks {
    struct mask_rules rules;
    const char **origins; /* the origin of the rule of each hidden path */
    char **owned;
    size_t owned_count;
};

/* Computes the effective rules. The default masks come first if the settings apply them to grants
 * only (late_masks). */
int masks_resolve(const struct settings *settings, struct masks *ret_masks, struct brig_error *err);
void masks_done(struct masks *masks);

/* Marks the rules in settings->masks that hide something that is in the home directory now. */
int masks_mark_found(struct settings *settings, const char *home, struct brig_error *err);

/* Adds masks to the policy wherever it shows paths that the rules hide. Uses the ids of the
 * user. */
int masks_apply(const struct masks *masks, const struct mask_names *names, struct brig_error *err);

/* Adds masks for start-up files of shells that are links to files outside the home directory, if these have lines that
 * would be hidden. The copy-on-write home shows such lines of its own files blanked (home/overlay_startup.h); a file of
 * the host is hidden as a whole. Uses the ids of the user. */
int masks_apply_startup(const struct brig_policy *policy, const struct mask_names *names,
                        struct brig_error *err);

/* Adds rules for the paths in the home directory that masked symbolic links lead to. */
int masks_follow_links(struct masks *masks, const char *home, struct brig_error *err);

/* ---- Changes of the jail ---- */

/* What a run hides, for layers_open(): the masks, brig's own directories and files of credentials. Borrows from the
 * settings and from itself, so it must not be moved. */
struct masks_hidden {
    struct masks masks;
    struct layer_masks layer;
    char home[PATH_LENGTH_MAX + 1]; /* without links; "" if there is none */
    const char *paths[SETTINGS_SECRETS_MAX + 2];
};
/* `home` is the user's home directory, or NULL. Release with masks_hidden_done(), also after a failure. */
int masks_find_hidden(const struct settings *settings, const char *home,
                      struct masks_hidden *ret_hidden, struct brig_error *err);
void masks_hidden_done(struct masks_hidden *hidden);

/* ---- During the run ----
 *
 * A new file that matches a rule, or that a new symbolic link at a masked path leads to, is hidden
 * in the host directories that the run sees. The holder does the same for the copy-on-write home
 * (home/overlay_masks.h), and passes on the masks that `brig mask` adds. */

#define LIVE_MASKS_WATCHES_MAX 512

struct live_masks {
    const struct identity *identity; /* whose ids are used to look up files; NULL: inactive */
    struct masks masks;
    struct mask_names names;
    struct mask_watch watch;
    int home;        /* the home directory, or -1 */
    int lease;       /* the connection to the jail's holder, borrowed, or -1 */
    uint64_t due_ms; /* when watching starts; 0: it has started */
    size_t grants;   /* grants of the policy that the job knows */
    size_t added;    /* how many paths were hidden during the run */
    bool full;       /* the limit of added masks is reached */
};

#define LIVE_MASKS_INIT                                                                            \
    (struct live_masks)                                                                            \
    {                                                                                              \
        .watch = {.fd = -1, .limit = LIVE_MASKS_WATCHES_MAX}, .home = -1, .lease = -1              \
    }

enum { LIVE_MASKS_POLL = 2 };

/* Takes over the masks of a run, to apply them during the run. */
void live_masks_init(struct live_masks *live, const struct settings *settings,
                     const struct identity *identity, struct masks *masks,
                     struct mask_names *names);
void live_masks_done(struct live_masks *live);

/* Called when the run has started. */
void live_masks_start(struct live_masks *live, int lease);
/* Fills in the descriptors to poll; may reduce *timeout_ms. */
void live_masks_poll(const struct live_masks *live, struct pollfd fds[LIVE_MASKS_POLL],
                     int *timeout_ms);
/* Called after poll(). */
void live_masks_process(struct live_masks *live, struct brig_job *job,
                        const struct pollfd fds[LIVE_MASKS_POLL]);
