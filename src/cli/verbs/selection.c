/* SPDX-License-Identifier: MIT */
#include "cli/verbs/selection.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "changes/inventory.h"
#include "changes/layer/change.h"
#include "changes/show/risk.h"
#include "cli/verbs/layers.h"

#define GIT_PREFIX "git:"

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
    qsort(paths, count, sizeof *paths, path_compare_items);
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
        if (selections->shown)
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

/* ---- items that were shown ---- */

static int add_item(struct selection *selection, const char *typed, const char *path,
                    struct token token, struct brig_error *err)
{
    if (!array_grow(&selection->words, selection->count))
        return brig_fail_nomem(err);
    struct selected *word = &selection->words[selection->count];
    *word = (struct selected){.typed = typed, .token = token};
    int status = str_copy(path, &word->path, err);
    selection->count += status == 0;
    return status;
}

/* An ignored directory that was shown as one item. */
struct shown_group {
    struct selection *selection;
    const char *typed, *path;
    struct token token;
    bool fits;
};

static int check_group(void *context, const struct inventory_group *group, struct brig_error *err)
{
    struct shown_group *shown = context;
    (void)err;
    shown->fits = shown->fits || (group->whole && strcmp(group->path, shown->path) == 0 &&
                                  strcmp(group->token.text, shown->token.text) == 0);
    return 0;
}

static int add_of_group(void *context, const struct inventory_item *item, struct brig_error *err)
{
    struct shown_group *shown = context;
    bool inside = item->group > 0 && item->group == strlen(shown->path);
    return inside ? add_item(shown->selection, shown->typed, item->path, item->token, err) : 0;
}

/* Adds the items of an ignored directory, or notes that they are not what was shown. */
static int add_group(struct selections *selections, const struct layer *layer,
                     const struct git *git, struct shown_group *shown, struct brig_error *err)
{
    const struct inventory_options options = {
        .paths = &shown->path, .path_count = 1, .git = git, .tokens = true};
    struct inventory *inventory = NULL;
    int status = inventory_make(layer, &options, &inventory, err);
    if (status == 0)
        status = inventory_each_group(inventory, check_group, shown, err);
    if (status == 0 && shown->fits)
        status = inventory_each(inventory, add_of_group, shown, err);
    inventory_free(inventory);
    if (status == 0 && !shown->fits)
        str_list_add(&selections->changed, shown->typed);
    return status;
}

/* One "TOKEN PATH" or "TOKEN git:NAME", which is changed. */
static int add_shown(struct selections *selections, const struct verb_layers *layers,
                     const struct git *git, char *text, struct brig_error *err)
{
    struct token token = {{0}};
    const char *below, *typed = text + TOKEN_LENGTH + 1;
    size_t length = strlen(text);
    bool git_item = length > TOKEN_LENGTH && str_starts_with(typed, GIT_PREFIX);
    if (length < TOKEN_LENGTH + 2 || text[TOKEN_LENGTH] != ' ' || (*typed != '/' && !git_item) ||
        strspn(text, "0123456789abcdef") != TOKEN_LENGTH)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--shown: '%s' is not a token, a blank and an absolute path or git:NAME",
                         str_shown(text).text);
    memcpy(token.text, text, TOKEN_LENGTH);
    if (git_item)
        return add_item(&selections->git, typed + strlen(GIT_PREFIX), "", token, err);
    bool group = text[length - 1] == '/';
    if (group)
        text[length - 1] = '\0';
    const struct layer *layer = layers_find(&layers->layers, typed, &below);
    if (!layer)
        return brig_fail(err, BRIG_E_INVALID, 0, "--shown: the jail '%s' has no copy of '%s'",
                         layers->setup.settings.jail, str_shown(typed).text);
    struct selection *selection = &selections->items[layer - layers->layers.items];
    struct shown_group shown = {selection, typed, below, token, false};
    return group ? add_group(selections, layer, git, &shown, err)
                 : add_item(selection, typed, below, token, err);
}

int selections_read_shown(struct selections *ret_selections, const struct verb_layers *layers,
                          const struct git *git, struct brig_error *err)
{
    *ret_selections = (struct selections){.exact = true, .shown = true};
    struct str *text = &ret_selections->text;
    int failed = isatty(STDIN_FILENO) ? -EINVAL : read_all(STDIN_FILENO, STR_LENGTH_MAX / 2, text);
    str_append_char(text, '\0'); /* the last one may lack it */
    int status = 0;
    if (failed < 0 || text->failed || text->length > STR_LENGTH_MAX / 2)
        status = brig_fail(err, BRIG_E_INVALID, -failed,
                           "--shown reads at most 32 MiB of \"TOKEN PATH\", each ended by a NUL, "
                           "from standard input, which is not a terminal");
    for (char *at = text->data, *next; status == 0 && at < text->data + text->length; at = next) {
        next = at + strlen(at) + 1;
        if (*at)
            status = add_shown(ret_selections, layers, git, at, err);
    }
    if (status == 0)
        status = finish(ret_selections, err);
    if (status < 0)
        selections_done(ret_selections);
    return status;
}

static void selection_done(struct selection *selection)
{
    for (size_t i = 0; i < selection->count; i++)
        free(selection->words[i].path);
    free(selection->words);
    free(selection->paths);
}

void selections_done(struct selections *selections)
{
    for (size_t i = 0; i < LAYERS_MAX; i++)
        selection_done(&selections->items[i]);
    selection_done(&selections->git);
    str_done(&selections->text);
    str_done(&selections->changed);
    memset(selections, 0, sizeof *selections);
}

bool selection_is_empty(const struct selections *selections, size_t layer)
{
    return !selections->all && selections->items[layer].count == 0;
}

bool selection_has_root(const struct selections *selections, size_t layer)
{
    const struct selection *selection = &selections->items[layer];
    for (size_t i = 0; i < selection->count; i++)
        if (!*selection->words[i].path)
            return true;
    return selections->all;
}

bool selection_is_whole(const struct selections *selections, size_t layer)
{
    return selections->all || (!selections->shown && selection_has_root(selections, layer));
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

static bool is_shown(const struct selected *word, const struct change *change)
{
    return token_fits(word->token.text, change, risk_find(change), change->layer->running);
}

static bool has_shown(struct selection *selection, const struct change *change,
                      const char **ret_reason)
{
    struct selected *word = find_word(selection, change->path);
    if (!word)
        return selection->deleted && path_is_beneath(selection->deleted, change->path);
    word->matched = true;
    if (!is_shown(word, change)) {
        *ret_reason = SELECTION_CHANGED;
        return false;
    }
    if (S_ISDIR(change->before.st_mode) && !S_ISDIR(change->after.st_mode))
        selection->deleted = word->path;
    return true;
}

bool selection_fits(const struct selections *selections, size_t layer, const struct change *change)
{
    const struct selected *word = find_word(&selections->items[layer], change->path);
    return !word || is_shown(word, change);
}

bool selection_has(struct selections *selections, size_t layer, const struct change *change,
                   const char **ret_reason)
{
    struct selection *selection = &selections->items[layer];
    bool found = selections->all;
    if (selections->shown)
        return has_shown(selection, change, ret_reason);
    for (size_t i = 0; i < selection->count; i++) {
        struct selected *word = &selection->words[i];
        bool has = !*word->path || (word->pattern ? matches(word->path, change->path)
                                                  : path_is_beneath(word->path, change->path));
        word->matched = word->matched || has;
        found = found || has;
    }
    return found;
}

bool selections_have_git(struct selections *selections, const struct inventory_item *item)
{
    for (size_t i = 0; i < selections->git.count; i++) {
        struct selected *word = &selections->git.words[i];
        if (strcmp(word->token.text, item->token.text) == 0)
            return word->matched = true;
    }
    return false;
}

const char *selections_unmatched(const struct selections *selections)
{
    for (size_t i = 0; i < LAYERS_MAX; i++)
        for (size_t k = 0; k < selections->items[i].count; k++)
            if (!selections->items[i].words[k].matched && *selections->items[i].words[k].path)
                return selections->items[i].words[k].typed;
    return NULL;
}

void selections_describe(const struct selections *selections, struct str *out)
{
    const char *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < LAYERS_MAX; i++) {
        const struct selection *selection = &selections->items[i];
        count += selection->count;
        first = !first && selection->count > 0 ? selection->words[0].typed : first;
    }
    count += selections->git.count;
    first = !first && selections->git.count > 0 ? selections->git.words[0].typed : first;
    str_append(out, first ? first : "nothing");
    if (count > 1)
        str_appendf(out, " and %zu more", count - 1);
}
