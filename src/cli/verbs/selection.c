/* SPDX-License-Identifier: MIT */
#include "cli/verbs/selection.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "changes/layer/base.h"
#include "changes/layer/change.h"
#include "cli/verbs/layers.h"

static bool exists(const struct layer *layer, const char *path)
{
    struct stat info;
    const char *name = *path ? path : ".";
    if (layer->lower >= 0 && fstatat(layer->lower, name, &info, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    for (size_t i = 0; i < layer->upper_count; i++)
        if (fstatat(layer->uppers[i], name, &info, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

static int add_word(struct selections *selections, const struct verb_layers *layers,
                    const char *typed, struct brig_error *err)
{
    char *path = NULL;
    const struct layer *layer = verb_layers_find(layers, typed, &path, err);
    if (!layer)
        return err->code;
    struct selection *selection = &selections->items[layer - layers->layers.items];
    if (!array_grow(&selection->words, selection->count)) {
        free(path);
        return brig_fail_nomem(err);
    }
    selection->words[selection->count++] = (struct selected){
        .typed = typed,
        .path = path,
        .whole = selections->exact && str_ends_with(typed, "/"),
        .pattern = !selections->exact && strpbrk(path, "*?[") != NULL && !exists(layer, path)};
    return 0;
}

/* The paths that the walk is limited to: sorted, and none below another. */
static int make_paths(struct selection *selection, struct brig_error *err)
{
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < selection->count; i++)
        if (selection->words[i].pattern)
            return 0;
    const char **paths = calloc(selection->count + 1, sizeof *paths);
    if (!paths)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < selection->count; i++)
        paths[count++] = selection->words[i].path;
    qsort(paths, count, sizeof *paths, base_compare_items);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || (*paths[kept - 1] && !path_is_beneath(paths[kept - 1], paths[i])))
            paths[kept++] = paths[i];
    selection->paths = paths;
    selection->path_count = kept;
    return 0;
}

static int compare_words(const void *left, const void *right)
{
    return strcmp(((const struct selected *)left)->path, ((const struct selected *)right)->path);
}

static int finish(struct selections *selections, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < LAYERS_MAX && status == 0; i++) {
        struct selection *selection = &selections->items[i];
        if (selection->count == 0)
            continue;
        status = make_paths(selection, err);
        if (selections->exact)
            qsort(selection->words, selection->count, sizeof *selection->words, compare_words);
    }
    return status;
}

int selections_make(struct selections *ret_selections, const struct verb_layers *layers, bool exact,
                    int count, char **words, struct brig_error *err)
{
    struct brig_error error = {0};
    int status = 0;
    *ret_selections = (struct selections){.all = count == 0, .exact = exact};
    for (int i = 0; i < count && status == 0; i++)
        status = add_word(ret_selections, layers, words[i], &error);
    if (status == 0)
        status = finish(ret_selections, &error);
    if (status < 0) {
        selections_done(ret_selections);
        if (err)
            *err = error;
    }
    return status;
}

int selections_make_both(struct selections ret_both[static 2], struct verb_layers *const *layers,
                         int count, char **words, struct brig_error *err)
{
    int status = 0;
    for (size_t side = 0; side < 2; side++)
        ret_both[side] = (struct selections){.all = count == 0, .exact = true};
    for (int i = 0; i < count && status == 0; i++) {
        struct brig_error first = {0}, second = {0};
        status = add_word(&ret_both[0], layers[0], words[i], &first);
        int other = add_word(&ret_both[1], layers[1], words[i], &second);
        if (status < 0 && other < 0 && err)
            *err = first;
        status = status < 0 && other < 0 ? status : 0;
    }
    for (size_t side = 0; side < 2 && status == 0; side++)
        status = finish(&ret_both[side], err);
    for (size_t side = 0; side < 2 && status < 0; side++)
        selections_done(&ret_both[side]);
    return status;
}

void selections_done(struct selections *selections)
{
    for (size_t i = 0; i < LAYERS_MAX; i++) {
        struct selection *selection = &selections->items[i];
        for (size_t k = 0; k < selection->count; k++)
            free(selection->words[k].path);
        free(selection->words);
        free(selection->paths);
    }
    memset(selections, 0, sizeof *selections);
}

bool selection_is_empty(const struct selections *selections, size_t layer)
{
    return !selections->all && selections->items[layer].count == 0;
}

bool selection_is_whole(const struct selections *selections, size_t layer)
{
    const struct selection *selection = &selections->items[layer];
    for (size_t i = 0; i < selection->count && !selections->exact; i++)
        if (!*selection->words[i].path)
            return true;
    return selections->all;
}

/* Whether a pattern matches the path or a directory above it. */
static bool matches(const char *pattern, const char *path)
{
    char above[PATH_LENGTH_MAX + 1];
    for (const char *end = path; *end;) {
        end = strchrnul(end + 1, '/');
        size_t length = (size_t)(end - path);
        memcpy(above, path, length);
        above[length] = '\0';
        if (fnmatch(pattern, above, FNM_NOESCAPE) == 0)
            return true;
    }
    return false;
}

static struct selected *find_word(const struct selection *selection, const char *path)
{
    const struct selected key = {.path = (char *)(uintptr_t)path};
    return selection->count == 0 ? NULL
                                 : bsearch(&key, selection->words, selection->count,
                                           sizeof *selection->words, compare_words);
}

/* Whether a directory above the path was given with everything below it. */
static bool is_in_whole(const struct selection *selection, const char *path)
{
    char above[PATH_LENGTH_MAX + 1];
    (void)str_fill(above, sizeof above, path);
    for (char *slash; (slash = strrchr(above, '/'));) {
        *slash = '\0';
        struct selected *word = find_word(selection, above);
        if (word && word->whole) {
            word->matched = true;
            return true;
        }
    }
    return false;
}

static bool has_exactly(struct selection *selection, const struct change *change)
{
    struct selected *word = find_word(selection, change->path);
    if (!word && is_in_whole(selection, change->path))
        return true;
    if (!word)
        return selection->deleted && path_is_beneath(selection->deleted, change->path);
    word->matched = true;
    if (S_ISDIR(change->before.st_mode) && !S_ISDIR(change->after.st_mode))
        selection->deleted = word->path;
    return true;
}

bool selection_has(struct selections *selections, size_t layer, const struct change *change)
{
    struct selection *selection = &selections->items[layer];
    bool found = selections->all;
    if (selections->exact && !found)
        return has_exactly(selection, change);
    for (size_t i = 0; i < selection->count; i++) {
        struct selected *word = &selection->words[i];
        bool has = !*word->path || (word->pattern ? matches(word->path, change->path)
                                                  : path_is_beneath(word->path, change->path));
        word->matched = word->matched || has;
        found = found || has;
    }
    return found;
}

const char *selections_unmatched(const struct selections *selections)
{
    for (size_t i = 0; i < LAYERS_MAX; i++)
        for (size_t k = 0; k < selections->items[i].count; k++)
            if (!selections->items[i].words[k].matched && *selections->items[i].words[k].path)
                return selections->items[i].words[k].typed;
    return NULL;
}
