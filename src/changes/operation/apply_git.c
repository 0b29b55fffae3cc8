/* SPDX-License-Identifier: MIT */
#include "changes/operation/apply_git.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/inventory.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/operation/operation_files.h"
#include "git/guard.h"

/* Absolute paths, sorted. */
struct paths {
    char **items;
    size_t count;
};

static void paths_done(struct paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    free(paths->items);
}
#define autopaths __attribute__((cleanup(paths_done)))

static int paths_add(struct paths *paths, const char *root, const char *path,
                     struct brig_error *err)
{
    char *whole = NULL;
    int status = str_make(&whole, err, strcmp(root, "/") == 0 ? "" : root, "/", path);
    if (status < 0)
        return status;
    if (!array_grow(&paths->items, paths->count)) {
        free(whole);
        return brig_fail_nomem(err);
    }
    paths->items[paths->count++] = whole;
    return 0;
}

static int paths_compare(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void paths_sort(struct paths *paths)
{
    if (paths->count > 0)
        qsort(paths->items, paths->count, sizeof *paths->items, paths_compare);
}

static bool paths_has(const struct paths *paths, const char *path)
{
    return paths->count > 0 &&
           bsearch(&path, paths->items, paths->count, sizeof *paths->items, paths_compare);
}

/* The path in the list that is this one or is above it, or the first below it; NULL. */
static const char *paths_meet(const struct paths *paths, char *path)
{
    size_t from = 0, to = paths->count, length = strlen(path);
    for (size_t end = length; end > 0; end--) {
        char cut = path[end];
        if (cut && cut != '/')
            continue;
        path[end] = '\0';
        bool found = paths_has(paths, path);
        path[end] = found ? '\0' : cut;
        if (found)
            return path;
    }
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const char *item = paths->items[middle];
        int order = strncmp(item, path, length);
        if (order < 0 || (order == 0 && item[length] < '/'))
            from = middle + 1;
        else
            to = middle;
    }
    return from < paths->count && path_is_beneath(path, paths->items[from]) ? paths->items[from]
                                                                            : NULL;
}

/* ---- what is left ---- */

/* The paths of the steps that are planned. */
static int list_planned(struct operation *operation, struct paths *planned, struct brig_error *err)
{
    autojournal struct journal journal = {.fd = -1};
    struct step step;
    if (fflush(operation->journal) != 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write the journal");
    int status = journal_open(operation->dir, false, &journal, err);
    while (status == 0 && (status = journal_next(&journal, &step, err)) > 0)
        status = paths_add(planned, operation->steps.trees[step.tree].root, step.path, err);
    paths_sort(planned);
    return status;
}

struct leaving {
    const struct paths *planned;
    struct paths *left;
};

static int add_left(void *context, const struct change *change, struct brig_error *err)
{
    struct leaving *leaving = context;
    autofree char *whole = NULL;
    bool is_file = (change->after.st_mode && !S_ISDIR(change->after.st_mode)) ||
                   (change->before.st_mode && !S_ISDIR(change->before.st_mode)) ||
                   change->kind == CHANGE_DELETED;
    int status = is_file ? str_make(&whole, err, change->layer->root, "/", change->path) : 0;
    if (status < 0 || !is_file || paths_has(leaving->planned, whole))
        return status;
    return paths_add(leaving->left, change->layer->root, change->path, err);
}

/* ---- deciding ---- */

struct choosing {
    const struct apply_git *options;
    const struct layers *layers;
    struct paths left; /* file items of the reviewed directories that stay in the jail */
    const char *top;   /* of the item that is looked at */
    struct str found;
};

static bool meets_left(void *data, const char *path, size_t length)
{
    struct choosing *choosing = data;
    autofree char *whole = NULL;
    (void)length;
    const char *found = str_make(&whole, NULL, choosing->top, "/", path) == 0
                            ? paths_meet(&choosing->left, whole)
                            : NULL;
    if (choosing->found.length == 0)
        str_append(&choosing->found, found ? found : "");
    return true;
}

/* Looks for a path among what differs between two commits or trees, of which one may be missing. */
static int meet_between(struct choosing *choosing, const struct git_item *item, const char *old,
                        const char *new, struct brig_error *err)
{
    const char *const both[] = {"diff-tree",    "-r", "-z", "--name-only",
                                "--no-renames", old,  new,  NULL};
    const char *const one[] = {"ls-tree", "-r", "-z", "--name-only", old ? old : new, NULL};
    struct git_call call = item->outside;
    call.words = old && new ? both : one;
    call.each = meets_left;
    call.data = choosing;
    if (str_equal(old, new))
        return 0;
    int status = git_run(item->git, &call, err);
    return status > 0 ? brig_fail(err, BRIG_E_SYSTEM, 0, "git cannot compare two commits in '%s'",
                                  str_shown(item->top).text)
                      : status;
}

/* Git outside would show a file that is left as one in which the user has reverted the commit. */
static int choose_tree(struct choosing *choosing, const struct git_item *item, struct str *reason,
                       struct brig_error *err)
{
    if (item->kind != GIT_ITEM_WORKTREE || choosing->left.count == 0)
        return 1;
    choosing->top = item->top;
    choosing->found.length = 0;
    int status = meet_between(choosing, item, item->old, item->new, err);
    if (status == 0 && item->new_tree)
        status = meet_between(choosing, item, item->old_tree, item->new_tree, err);
    bool found = choosing->found.length > 0;
    if (status == 0 && found)
        str_concat(reason, str_shown(choosing->found.data).text,
                   " is left in the jail: apply or discard it");
    return status < 0 ? status : !found;
}

/* The reviewed directory that a working tree is in, or one in it. */
static const struct layer *layer_of(const struct layers *layers, const char *top)
{
    for (size_t i = 0; i < layers->count; i++) {
        const struct layer *layer = &layers->items[i];
        if (!layer_is_home(layer->name) &&
            (path_is_beneath(layer->root, top) || path_is_beneath(top, layer->root)))
            return layer;
    }
    return &layers->items[0];
}

/* What is flagged needs a word more. */
static bool choose_risk(const struct choosing *choosing, const struct inventory_item *item,
                        struct str *reason)
{
    const struct apply_git *options = choosing->options;
    if (!item->risk || options->risky || (options->ask && options->ask(options->data, item)))
        return true;
    const struct layer *layer = layer_of(choosing->layers, item->git->top);
    str_concat(reason, item->risk, ". To take it all the same: brig apply",
               record_option(layer->record).text, " --risky ");
    str_append_word(reason, layer->root);
    return false;
}

static int choose(void *data, const struct git_item *git, struct str *reason,
                  struct brig_error *err)
{
    struct choosing *choosing = data;
    const struct apply_git *options = choosing->options;
    struct inventory_git judged;
    if (options->risky && !options->chosen)
        return choose_tree(choosing, git, reason, err);
    int status = inventory_judge_git(git, &judged, err);
    if (status < 0)
        return status;
    if (!options->chosen || options->chosen(options->data, &judged.item))
        status = choose_tree(choosing, git, reason, err);
    if (status > 0)
        status = choose_risk(choosing, &judged.item, reason);
    inventory_git_done(&judged);
    return status;
}

/* ---- the plan ---- */

/* A directory that is not wanted, of which no file is left. */
static void tell_waiting(const struct layer *layer, const struct apply_git *options)
{
    str_appendf(options->git.notes,
                "git: the jail's commits wait: brig apply%s --all moves branches, HEAD and index\n",
                record_option(layer->record).text);
}

static int plan_layers(struct hand_over **ret, const bool *wanted,
                       const struct guard_options *guard, struct choosing *choosing,
                       const struct paths *planned, struct brig_error *err)
{
    static const struct change_options quick = {.quick = true};
    struct leaving leaving = {planned, &choosing->left};
    int status = 0;
    for (size_t i = 0; i < choosing->layers->count && status == 0; i++) {
        const struct layer *layer = &choosing->layers->items[i];
        size_t before = choosing->left.count;
        bool takes = !wanted || wanted[i];
        if (layer_is_home(layer->name) || !guard_has_reviewed(guard, layer->root))
            continue;
        status = changes_walk(layer, &quick, add_left, &leaving, err);
        if (status == 0 && takes && !*ret)
            status = hand_over_begin(guard, false, ret, err);
        if (status == 0 && takes)
            status = hand_over_add(*ret, layer->root, err);
        else if (status == 0 && choosing->left.count == before)
            tell_waiting(layer, choosing->options);
    }
    paths_sort(&choosing->left);
    return status;
}

int apply_git_plan(struct operation *operation, const struct layers *layers, const bool *wanted,
                   const struct apply_git *options, struct hand_over **ret_hand_over,
                   struct brig_error *err)
{
    autopaths struct paths planned = {0};
    struct choosing choosing = {.options = options, .layers = layers};
    const struct git_chooser chooser = {choose, &choosing};
    const struct guard_options guard = {.storage = options->git.storage,
                                        .jail = layers->items[0].jail,
                                        .user = GIT_USER_SELF,
                                        .environment = (const char *const *)environ,
                                        .chooser = &chooser};
    struct hand_over *h = NULL;
    *ret_hand_over = NULL;
    if (options->git.storage < 0 || !options->git.git->program)
        return 0;
    int status = list_planned(operation, &planned, err);
    if (status == 0)
        status = plan_layers(&h, wanted, &guard, &choosing, &planned, err);
    if (status == 0 && h)
        status = hand_over_plan(h, operation_use_git(operation, &options->git), err);
    paths_done(&choosing.left);
    str_done(&choosing.found);
    if (status < 0)
        hand_over_free(h);
    else
        *ret_hand_over = h;
    return status < 0 ? status : 0;
}
