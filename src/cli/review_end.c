/* SPDX-License-Identifier: MIT */
/* The end of a run that wrote to layers: what it has written, in one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/base.h"
#include "changes/status.h"
#include "changes/upper.h"
#include "cli/identity.h"
#include "cli/masks.h"
#include "cli/report.h"
#include "cli/review.h"
#include "cli/settings.h"

/* Of a large home the base is completed later: that walks through all its changes. */
#define HOME_ENTRIES_MAX 2000
/* A home may have any number of changes of earlier runs. The search for those of this run takes at
 * most this part of the time that the run took, or as long as this number of entries. */
#define SEARCH_PART 20
#define SEARCH_ENTRIES 1000

static bool is_home(const struct review_root *root)
{
    return strcmp(root->name, LAYER_HOME) == 0;
}

/* ---- whether the run has written anything ---- */

struct search {
    struct timespec since;
    uint64_t until_ms; /* 0: no limit */
    size_t entries;
    bool found;
};

static int look_at(void *context, const struct upper_entry *entry, struct brig_error *err)
{
    struct search *search = context;
    const struct timespec *changed = &entry->upper.st_ctim;
    (void)err;
    search->found =
        changed->tv_sec > search->since.tv_sec ||
        (changed->tv_sec == search->since.tv_sec && changed->tv_nsec >= search->since.tv_nsec);
    bool late = ++search->entries % SEARCH_ENTRIES == 0 && search->until_ms != 0 &&
                clock_now_ms() >= search->until_ms;
    return search->found || late ? UPPER_STOP : 0;
}

/* The walk reads no file, and does not look at the user's. */
static bool has_written(const struct review *review, const struct review_root *root,
                        const struct layer *layer)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    uint64_t took_ms = (uint64_t)(now.tv_sec - review->began.tv_sec) * 1000;
    struct search search = {.since = review->began,
                            .until_ms = is_home(root) ? clock_now_ms() + took_ms / SEARCH_PART : 0};
    (void)upper_walk(layer, false, look_at, &search, NULL);
    return search.found;
}

/* ---- the bases ---- */

/* Returns whether the run has written to the layer. */
static bool end_layer(const struct review *review, const struct settings *settings,
                      struct review_root *root)
{
    struct layer layer;
    struct brig_error err = {0};
    autoclose int record = record_open(settings->storage, settings->jail, &err);
    autoclose int lock = record < 0 ? -1 : record_lock(record, &err);
    if (lock < 0 ||
        layer_open(settings->storage, settings->jail, root->name, root->root, &layer, &err) < 0)
        return false; /* the next run does it */
    bool written = has_written(review, root, &layer);
    if (base_end(&layer, take_fd(&root->run), is_home(root) ? HOME_ENTRIES_MAX : SIZE_MAX, &err) <
        0)
        message_warning("%s", err.message);
    layer_done(&layer);
    return written;
}

/* ---- the line ---- */

/* What is hidden: never a change. */
struct hidden {
    struct masks masks;
    struct layer_masks layer;
    char home[PATH_LENGTH_MAX + 1];
    const char *paths[SETTINGS_SECRETS_MAX + 2];
};

static int find_hidden(const struct settings *settings, const struct identity *identity,
                       struct hidden *hidden, struct brig_error *err)
{
    bool home = identity->host_home && path_resolve(identity->host_home, hidden->home);
    int status = masks_resolve(settings, &hidden->masks, err);
    if (status == 0 && home)
        status = masks_follow_links(&hidden->masks, hidden->home, err);
    size_t count = 0;
    hidden->paths[count++] = settings->storage;
    hidden->paths[count++] = settings->config_dir;
    for (size_t i = 0; i < settings->secret_count; i++)
        hidden->paths[count++] = settings->secrets[i].path;
    hidden->layer = (struct layer_masks){.home = home ? hidden->home : NULL,
                                         .rules = &hidden->masks.rules,
                                         .paths = hidden->paths,
                                         .path_count = count};
    return status;
}

/* Keeps the layers that this run has written to. */
static void keep_written(struct layers *layers, const struct review *review, const bool *written)
{
    size_t kept = 0;
    for (size_t i = 0; i < layers->count; i++) {
        bool keep = false;
        for (size_t j = 0; j < review->count; j++)
            keep =
                keep || (written[j] && strcmp(review->roots[j].name, layers->items[i].name) == 0);
        if (keep)
            layers->items[kept++] = layers->items[i];
        else
            layer_done(&layers->items[i]);
    }
    layers->count = kept;
}

static int append_line(const struct review *review, const struct settings *settings,
                       const struct identity *identity, const bool *written, struct str *notes,
                       struct brig_error *err)
{
    autofree struct layers *layers = calloc(1, sizeof *layers);
    autofree struct hidden *hidden = calloc(1, sizeof *hidden);
    if (!layers || !hidden)
        return brig_fail_nomem(err);
    int status = find_hidden(settings, identity, hidden, err);
    if (status == 0)
        status = layers_open(settings->storage, settings->jail, identity->host_home, &hidden->layer,
                             layers, err);
    if (status == 0) {
        size_t before = notes->length;
        keep_written(layers, review, written);
        status = status_line(layers, &review->began, notes, err);
        if (notes->length > before)
            str_append_char(notes, '\n');
        layers_done(layers);
    }
    masks_done(&hidden->masks);
    return status;
}

bool review_end(struct review *review, const struct settings *settings,
                const struct identity *identity, struct str *notes)
{
    bool written[REVIEW_ROOTS_MAX + 1] = {false}, any = false, reviewed = false;
    struct brig_error err = {0};
    identity_enter(identity);
    for (size_t i = 0; i < review->count; i++) {
        struct review_root *root = &review->roots[i];
        written[i] = root->run >= 0 && end_layer(review, settings, root);
        any = any || written[i];
        reviewed = reviewed || (written[i] && !is_home(root));
    }
    if (any && append_line(review, settings, identity, written, notes, &err) < 0)
        message_warning("%s", err.message);
    identity_leave(identity);
    return reviewed;
}
