/* SPDX-License-Identifier: MIT */
#include "changes/show/ignored_trees.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "changes/inventory.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/show/ignored.h"
#include "changes/show/spool.h"

struct finding {
    struct ignored ignored;
    FILE *items; /* the files that git was asked about */
};

static int ask_about(void *context, const struct change *change, struct brig_error *err)
{
    struct finding *finding = context;
    const struct inventory_item item = {.kind = change->kind,
                                        .mode_after = change->after.st_mode,
                                        .size_after = (uint64_t)change->after.st_size,
                                        .path = change->path};
    if (!ignored_can_ask(&finding->ignored, change))
        return 0;
    int status = ignored_add(&finding->ignored, item.path, S_ISDIR(item.mode_after), err);
    return status < 0 ? status : spool_write(finding->items, &item, err);
}

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

static int read_answers(struct finding *finding, const char *const *paths, size_t path_count,
                        struct ignored_trees *trees, struct brig_error *err)
{
    struct spool spool = {.file = finding->items};
    struct inventory_item item;
    int status = spool_rewind(finding->items, err), more = 0;
    while (status == 0 && (more = spool_read(&spool, &item, err)) > 0) {
        char tree[PATH_LENGTH_MAX + 1];
        status = ignored_find(&finding->ignored, &item, err);
        if (status < 0 || item.group == 0)
            continue;
        (void)snprintf(tree, sizeof tree, "%.*s", (int)item.group, item.path);
        if (!is_named(tree, paths, path_count))
            status = add_item(trees, &item, err);
    }
    str_done(&spool.text);
    return status < 0 ? status : more;
}

int ignored_trees_find(const struct layer *layer, const char *const *paths, size_t path_count,
                       const struct git *git, struct ignored_trees *trees, struct brig_error *err)
{
    const struct change_options options = {.paths = paths, .path_count = path_count, .quick = true};
    autofree struct finding *finding = calloc(1, sizeof *finding);
    if (!finding)
        return brig_fail_nomem(err);
    int status = ignored_begin(&finding->ignored, layer, err);
    if (status == 0)
        status = spool_file(layer->record, &finding->items, err);
    if (status == 0)
        status = changes_walk(layer, &options, ask_about, finding, err);
    if (status == 0)
        status = ignored_ask(&finding->ignored, layer, git, err);
    if (status == 0)
        status = read_answers(finding, paths, path_count, trees, err);
    ignored_done(&finding->ignored);
    own_fclose(&finding->items);
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
