/* SPDX-License-Identifier: MIT */
#include "cli/verbs/layers_git.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/inventory.h"
#include "changes/layer/layer.h"
#include "cli/jails.h"
#include "cli/verbs/git_print.h"
#include "git/guard.h"
#include "git/range.h"

static int open_git(const struct layers *layers, const char *storage)
{
    return layers->count == 0 ? -1 : jails_open_git(storage, layers->items[0].jail);
}

static struct guard_options options_of(const struct layer *layer, int git)
{
    return (struct guard_options){.storage = git,
                                  .jail = layer->jail,
                                  .user = GIT_USER_SELF,
                                  .environment = (const char *const *)environ};
}

struct listing {
    struct git_printer *printer;
    const struct layer *layer;
    bool begun;
};

static int list_item(void *data, const struct inventory_item *item, struct brig_error *err)
{
    struct listing *listing = data;
    const char *root = listing->layer->root;
    struct str *out = listing->printer->out;
    (void)err;
    if (out && !listing->begun) {
        str_append_shown(out, root, strlen(root), "");
        str_append(out, ", git\n");
        listing->begun = true;
    }
    git_print_item(listing->printer, root, item);
    return 0;
}

int layers_list_git(const struct layers *layers, const bool *wanted, const char *storage,
                    struct git_printer *printer, struct brig_error *err)
{
    autoclose int git = open_git(layers, storage);
    int status = 0;
    for (size_t i = 0; git >= 0 && i < layers->count && status == 0; i++) {
        const struct layer *layer = &layers->items[i];
        const struct guard_options options = options_of(layer, git);
        struct listing listing = {printer, layer, false};
        if (!layer_is_home(layer->name) && (!wanted || wanted[i]) &&
            guard_has_reviewed(&options, layer->root))
            status = inventory_each_git(&options, layer->root, list_item, &listing, err);
    }
    return status;
}

/* Calls one of the two for each wanted directory: `fetches`, or drops. Returns how many were dropped. */
static int each_reviewed(const struct layers *layers, const bool *wanted, const char *storage,
                         bool fetches, uint64_t id, struct str *notes, struct brig_error *err)
{
    autoclose int git = open_git(layers, storage);
    struct hand_over *h = NULL;
    int status = 0, dropped = 0;
    for (size_t i = 0; git >= 0 && i < layers->count && status >= 0; i++) {
        const struct layer *layer = &layers->items[i];
        const struct guard_options options = options_of(layer, git);
        if (layer_is_home(layer->name) || (wanted && !wanted[i]))
            continue;
        status = h ? 0 : hand_over_begin(&options, true, &h, err);
        if (status == 0)
            status = fetches ? hand_over_add(h, layer->root, err)
                             : hand_over_drop(h, layer->root, id, err);
        dropped += status > 0 ? status : 0;
    }
    if (status >= 0 && h && fetches)
        status = hand_over_fetch(h, notes, err);
    hand_over_free(h);
    return status < 0 ? status : dropped;
}

int layers_fetch_git(const struct layers *layers, const bool *wanted, const char *storage,
                     struct str *notes, struct brig_error *err)
{
    return each_reviewed(layers, wanted, storage, true, 0, notes, err);
}

int layers_discard_git(const struct layers *layers, const bool *wanted, const char *storage,
                       uint64_t id, struct str *notes, struct brig_error *err)
{
    int status = each_reviewed(layers, wanted, storage, false, id, notes, err);
    if (status > 0)
        str_append(notes, "git: the jail's branches are dropped; what was fetched is still "
                          "below refs/brig\n");
    return status < 0 ? status : 0;
}
