/* SPDX-License-Identifier: MIT */
#include "changes/show/ignored_trees.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "changes/inventory.h"
#include "changes/layer/change.h"

struct finding {
    struct ignored_trees *trees;
    const char *const *paths; /* that were named */
    size_t path_count;
};

static bool is_named(const char *tree, const char *const *paths, size_t path_count)
{
    for (size_t i = 0; paths && i < path_count; i++)
        if (*paths[i] && path_is_beneath(tree, paths[i]))
            return true;
    return false;
}

/* The tree of an ignored item, which is the last one or a new one. */
static int add_item(struct ignored_trees *trees, const struct inventory_item *item,
                    struct brig_error *err)
{
    struct ignored_tree *last = trees->count > 0 ? &trees->items[trees->count - 1] : NULL;
    if (!last || strlen(last->path) != item->group ||
        memcmp(last->path, item->path, item->group) != 0) {
        char *path = strndup(item->path, item->group);
        if (!path || !array_grow(&trees->items, trees->count)) {
            free(path);
            return brig_fail_nomem(err);
        }
        last = &trees->items[trees->count++];
        *last = (struct ignored_tree){.path = path};
    }
    if (!S_ISDIR(item->mode_after)) {
        last->files++;
        last->bytes += item->size_after;
    }
    return 0;
}

static int find_item(void *context, const struct inventory_item *item, struct brig_error *err)
{
    const struct finding *finding = context;
    char tree[PATH_LENGTH_MAX + 1];
    (void)snprintf(tree, sizeof tree, "%.*s", (int)item->group, item->path);
    return item->group == 0 || is_named(tree, finding->paths, finding->path_count)
               ? 0
               : add_item(finding->trees, item, err);
}

int ignored_trees_find(const struct layer *layer, const char *const *paths, size_t path_count,
                       const struct git *git, struct ignored_trees *trees, struct brig_error *err)
{
    const struct inventory_options options = {
        .paths = paths, .path_count = path_count, .git = git, .quick = true};
    struct finding finding = {trees, paths, path_count};
    struct inventory *inventory = NULL;
    int status = inventory_make(layer, &options, &inventory, err);
    if (status == 0)
        status = inventory_each(inventory, find_item, &finding, err);
    inventory_free(inventory);
    return status;
}

void ignored_trees_done(struct ignored_trees *trees)
{
    for (size_t i = 0; i < trees->count; i++)
        free(trees->items[i].path);
    free(trees->items);
    *trees = (struct ignored_trees){0};
}

struct ignored_tree *ignored_trees_at(const struct ignored_trees *trees,
                                      const struct change *change)
{
    size_t low = 0, high = change->kind == CHANGE_ADDED ? trees->count : 0;
    while (low < high) { /* the last one that is not after the path */
        size_t middle = low + (high - low) / 2;
        if (path_compare(trees->items[middle].path, change->path) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && path_is_beneath(trees->items[low - 1].path, change->path)
               ? &trees->items[low - 1]
               : NULL;
}
