/* SPDX-License-Identifier: MIT */
#include "changes/operation/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/layer/change.h"
#include "changes/operation/operation_files.h"

struct live_entry {
    char *path;
    struct ident entry; /* mode 0: a mark of fuse-overlayfs */
    uint64_t objects;   /* the operation that has its objects */
    uint32_t number;
};

struct live {
    const struct layer *layer;
    struct live_entry *items; /* sorted by path, and those of newer operations first */
    size_t count;
};

static int live_compare(const void *left, const void *right)
{
    const struct live_entry *a = left, *b = right;
    int order = strcmp(a->path, b->path);
    return order != 0 ? order : a->objects > b->objects ? -1 : a->objects < b->objects;
}

static int live_add(struct live *live, const struct operation *operation, const struct step *step,
                    struct brig_error *err)
{
    char *path = array_grow(&live->items, live->count) ? strdup(step->path) : NULL;
    if (!path)
        return brig_fail_nomem(err);
    live->items[live->count++] = (struct live_entry){.path = path,
                                                     .entry = step->entry,
                                                     .objects = operation->info.objects,
                                                     .number = step->number};
    return 0;
}

static int live_list_operation(void *context, const struct operation_info *info,
                               struct brig_error *err)
{
    static const struct layers none = {0};
    struct live *live = context;
    struct operation *operation = NULL;
    autojournal struct journal journal = {.fd = -1};
    struct step step;
    if (!info->live || info->undone_by ||
        operation_open(&none, live->layer->record, info->id, &operation, NULL) < 0)
        return 0;
    int status = journal_open(operation->dir, false, &journal, err);
    while (status == 0 && (status = journal_next(&journal, &step, err)) > 0) {
        bool applied = (step.flags & (STEP_APPLIED | STEP_REVERSED)) == STEP_APPLIED;
        const char *name = operation->steps.trees[step.tree].name;
        status = applied && strcmp(name, live->layer->name) == 0
                     ? live_add(live, operation, &step, err)
                     : 0;
    }
    operation_free(operation);
    return status;
}

int live_list(const struct layer *layer, struct live **ret_live, struct brig_error *err)
{
    struct live *live = calloc(1, sizeof *live);
    if (!live)
        return brig_fail_nomem(err);
    live->layer = layer;
    int status = operations_each(layer->record, live_list_operation, live, err);
    if (live->count > 0)
        qsort(live->items, live->count, sizeof *live->items, live_compare);
    if (status < 0)
        live_free(live);
    else
        *ret_live = live;
    return status;
}

void live_free(struct live *live)
{
    for (size_t i = 0; live && i < live->count; i++)
        free(live->items[i].path);
    if (live)
        free(live->items);
    free(live);
}

/* A rename of one of its names changes the time of change of a file. */
static bool live_is_same(const struct ident *applied, const struct ident *now)
{
    return applied->mode == now->mode && applied->inode == now->inode &&
           applied->size == now->size && applied->mtime_ns == now->mtime_ns;
}

/* The first one of a path, which is that of the newest operation; NULL: none. */
static const struct live_entry *live_find(const struct live *live, const char *path)
{
    size_t from = 0, to = live->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(live->items[middle].path, path) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from < live->count && strcmp(live->items[from].path, path) == 0 ? &live->items[from]
                                                                           : NULL;
}

bool live_take(const struct live *live, const struct change *change, const char *name)
{
    const struct live_entry *found = live_find(live, change->path);
    char objects[64], entry[STEP_NAME_MAX];
    if (!found || !live_is_same(&found->entry, &change->upper))
        return false;
    (void)snprintf(objects, sizeof objects, OPERATIONS "/%ju/" OPERATION_OBJECTS,
                   (uintmax_t)found->objects);
    step_object_name(entry, found->number, STEP_ENTRY);
    autoclose int dir = files_open_dir(live->layer->record, objects);
    return dir >= 0 && path_rename_new(change->upper_dir, name, dir, entry) == 0;
}
