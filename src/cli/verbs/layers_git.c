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
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/operation/operation.h"
#include "cli/jails.h"
#include "cli/verbs/git_print.h"
#include "git/guard.h"
#include "git/range.h"

/* Opens NAME.git; -1 if there is none. */
static int open_git(const struct layers *layers, const char *storage)
{
    autoclose int dir = open(storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return layers->count == 0 || dir < 0
               ? -1
               : jails_open_part(dir, layers->items[0].jail, JAILS_GIT_PART, false);
}

static struct guard_options options_of(const struct layer *layer, int git, struct git_user user)
{
    return (struct guard_options){.storage = git,
                                  .jail = layer->jail,
                                  .user = user,
                                  .environment = (const char *const *)environ};
}

/* Records the transfer in the log, by the first line about it. */
static void note(const struct layer *layer, const struct str *notes, size_t before)
{
    char text[OPERATION_TEXT_MAX];
    const char *line = notes->data ? notes->data + before : "";
    (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
    (void)operation_note(layer->record, OPERATION_GIT, *text ? text : layer->root, NULL, NULL,
                         NULL);
}

struct choosing {
    const struct layers_git_choice *choice;
    const struct layer *layer;
};

/* Judges what an item would make reachable. */
static int choose(void *data, const struct git_item *item, struct str *reason,
                  struct brig_error *err)
{
    const struct choosing *choosing = data;
    const struct layers_git_choice *choice = choosing->choice;
    struct range range;
    if (choice->risky || item->kind == GIT_ITEM_CONFIG || !(item->new || item->new_tree))
        return 1;
    int status = range_judge(item, &range, err);
    const struct range_mark *mark = status == 0 ? range_stops(&range) : NULL;
    bool taken = !mark || (choice->ask && choice->ask(choice->data, item, &range));
    if (mark && !taken) {
        range_append_mark(reason, mark);
        str_concat(reason, ". To take it all the same: brig apply",
                   jails_option(choosing->layer->jail).text, " --risky ");
        str_append_word(reason, choosing->layer->root);
    }
    range_done(&range);
    return status < 0 ? status : taken;
}

static int apply_layer(const struct layer *layer, bool wanted, int git, struct git_user user,
                       const struct layers_git_choice *choice, struct str *notes,
                       struct brig_error *err)
{
    static const struct change_options quick = {.quick = true};
    struct choosing choosing = {choice, layer};
    const struct git_chooser chooser = {choose, &choosing};
    struct guard_options options = options_of(layer, git, user);
    options.chooser = &chooser;
    bool left_out = false;
    size_t before = notes->length;
    if (layer_is_home(layer->name) || !guard_has_reviewed(&options, layer->root))
        return 0;
    int left = changes_walk(layer, &quick, change_stop, NULL, err);
    if (left < 0)
        return left;
    if (left == CHANGE_STOP) {
        if (wanted)
            str_append(notes, "git: branches, HEAD and index move when no change is left: apply or "
                              "discard the others\n");
        return 0;
    }
    if (!wanted) {
        str_appendf(notes,
                    "git: the jail's commits wait: brig apply%s --all moves branches, HEAD "
                    "and index\n",
                    jails_option(layer->jail).text);
        return 0;
    }
    int status = guard_apply(&options, layer->root, &left_out, notes, err);
    if (status > 0)
        note(layer, notes, before);
    return status < 0 ? status : left_out;
}

int layers_apply_git(const struct layers *layers, const bool *wanted, const char *storage,
                     struct git_user user, const struct layers_git_choice *choice,
                     struct str *notes, struct brig_error *err)
{
    autoclose int git = open_git(layers, storage);
    int status = 0;
    bool left = false;
    for (size_t i = 0; git >= 0 && i < layers->count && status >= 0; i++) {
        status =
            apply_layer(&layers->items[i], !wanted || wanted[i], git, user, choice, notes, err);
        left = left || status > 0;
    }
    return status < 0 ? status : left;
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
        const struct guard_options options = options_of(layer, git, GIT_USER_SELF);
        struct listing listing = {printer, layer, false};
        if (!layer_is_home(layer->name) && (!wanted || wanted[i]) &&
            guard_has_reviewed(&options, layer->root))
            status = inventory_each_git(&options, layer->root, list_item, &listing, err);
    }
    return status;
}

int layers_fetch_git(const struct layers *layers, const bool *wanted, const char *storage,
                     struct str *notes, struct brig_error *err)
{
    autoclose int git = open_git(layers, storage);
    int status = 0;
    for (size_t i = 0; git >= 0 && i < layers->count && status == 0; i++) {
        const struct layer *layer = &layers->items[i];
        const struct guard_options options = options_of(layer, git, GIT_USER_SELF);
        if (!layer_is_home(layer->name) && (!wanted || wanted[i]) &&
            guard_has_reviewed(&options, layer->root))
            status = guard_fetch_remotes(&options, layer->root, notes, err);
    }
    return status;
}

int layers_discard_git(const struct layers *layers, const bool *wanted, const char *storage,
                       struct str *notes, struct brig_error *err)
{
    autoclose int git = open_git(layers, storage);
    int status = 0;
    for (size_t i = 0; git >= 0 && i < layers->count && status >= 0; i++) {
        const struct guard_options options = options_of(&layers->items[i], git, GIT_USER_SELF);
        status = layer_is_home(layers->items[i].name) || (wanted && !wanted[i])
                     ? 0
                     : guard_discard(&options, layers->items[i].root, err);
        if (status > 0)
            str_append(notes, "git: the jail's branches are dropped; what was fetched is still "
                              "below refs/brig\n");
    }
    return status < 0 ? status : 0;
}
