/* SPDX-License-Identifier: MIT */
#include "changes/inventory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/layer/layer.h"
#include "changes/show/ignored.h"
#include "changes/show/renames.h"
#include "changes/show/risk.h"
#include "changes/show/spool.h"
#include "held/risk_text.h"

#define RISK_REASON_MAX 96 /* of one that is kept in memory; longer ones are truncated */

struct inventory {
    const struct layer *layer;
    bool tokens, quick;
    const struct str *state;
    struct inventory_counts counts;
    FILE *kinds[INVENTORY_KINDS];
    struct ignored ignored;
    struct renames renames;
};

void inventory_free(struct inventory *inventory)
{
    if (!inventory)
        return;
    for (size_t i = 0; i < INVENTORY_KINDS; i++)
        own_fclose(&inventory->kinds[i]);
    ignored_done(&inventory->ignored);
    renames_done(&inventory->renames);
    free(inventory);
}

const struct inventory_counts *inventory_counts(const struct inventory *inventory)
{
    return &inventory->counts;
}

/* ---- collecting ---- */

bool inventory_is_state(const struct str *state, const char *path)
{
    for (const char *at = NULL; state && (at = str_list_next(state, at));) {
        size_t length = strlen(at);
        if (strncmp(path, at, length) == 0 && (path[length] == '/' || !path[length]))
            return true;
    }
    return false;
}

/* The target of a link, in `target`, or NULL. */
static const char *read_target(int dir, const char *name, mode_t mode,
                               char target[static PATH_LENGTH_MAX + 1])
{
    ssize_t length =
        S_ISLNK(mode) && dir >= 0 ? readlinkat(dir, name, target, PATH_LENGTH_MAX) : -1;
    if (length < 0)
        return NULL;
    target[length] = '\0';
    return target;
}

/* Files of a program's state are not judged by their names, such as "-home-user-project", and a conflict is the program's
 * own business. What something outside executes is listed. */
static void find_state(const struct inventory *inventory, struct inventory_item *item)
{
    bool option = item->risk && strcmp(item->risk, RISK_OPTION) == 0;
    item->state = layer_is_home(inventory->layer->name) && (!item->risk || option) &&
                  !item->unreadable && inventory_is_state(inventory->state, item->path);
    if (item->state)
        item->risk = item->conflict = NULL;
}

static void count(struct inventory_counts *counts, const struct inventory_item *item)
{
    uint32_t mode = item->mode_after ? item->mode_after : item->mode_before;
    if (item->state) {
        counts->state += S_ISDIR(mode) ? item->files : 1;
        return;
    }
    counts->kinds[item->kind]++;
    counts->conflicts += item->conflict != NULL;
    counts->risky += item->risk != NULL;
    counts->unreadable += item->unreadable != NULL;
    if (S_ISREG(item->mode_after) && item->kind != CHANGE_METADATA)
        counts->bytes += item->size_after;
}

/* The reason of a file of state counts, too: a decision about it finds it. */
static void set_token(const struct inventory *inventory, const struct change *change,
                      const char *reason, struct inventory_item *item)
{
    item->token = token_of_change(change, reason, inventory->layer->running);
    if (item->token.text[0])
        return;
    item->risk = TOKEN_NOT_JUDGED;
    item->class = NAMES_NOT_JUDGED;
}

static int collect(void *context, const struct change *change, struct brig_error *err)
{
    struct inventory *inventory = context;
    char before[PATH_LENGTH_MAX + 1], after[PATH_LENGTH_MAX + 1];
    struct names_mark mark = {0};
    if (!inventory->quick)
        (void)risk_judge(change, &mark);
    struct inventory_item item = {
        .kind = change->kind,
        .meta = change->meta,
        .mode_before = change->before.st_mode,
        .mode_after = change->after.st_mode,
        .size_before = change->before.st_mode ? (uint64_t)change->before.st_size : 0,
        .size_after = change->after.st_mode ? (uint64_t)change->after.st_size : 0,
        .files = change->files,
        .bytes = change->bytes,
        .inode = change->after.st_mode ? change->upper.inode : 0,
        .asked = ignored_can_ask(&inventory->ignored, change),
        .path = change->path,
        .conflict = change->conflict,
        .unreadable = change->unreadable,
        .risk = mark.reason,
        .class = mark.class,
        .target_before =
            read_target(change->lower_dir, change->name, change->before.st_mode, before),
        .target_after = read_target(change->upper_dir, change->name, change->after.st_mode, after),
    };
    find_state(inventory, &item);
    if (inventory->tokens)
        set_token(inventory, change, mark.reason, &item);
    count(&inventory->counts, &item);
    int result = inventory->quick ? 0 : renames_add(&inventory->renames, change, err);
    if (result == 0 && item.asked)
        result = ignored_add(&inventory->ignored, item.path, S_ISDIR(item.mode_after), err);
    return result < 0 ? result : spool_write(inventory->kinds[item.kind], &item, err);
}

/* Copies the added files to a new list, with what is only known now: renames and ignored files. */
static int complete_added(struct inventory *inventory, struct brig_error *err)
{
    struct spool from = {.file = inventory->kinds[CHANGE_ADDED]};
    autofile FILE *to = NULL;
    struct inventory_item item;
    int result = spool_file(inventory->layer->record, &to, err), more = 0;
    if (result == 0)
        result = spool_rewind(from.file, err);
    while (result == 0 && (more = spool_read(&from, &item, err)) > 0) {
        if (item.asked)
            result = ignored_find(&inventory->ignored, &item, err);
        inventory->counts.ignored += item.ignored && !S_ISDIR(item.mode_after);
        item.renamed_from = renames_find(&inventory->renames, inventory->layer, &item);
        if (result == 0)
            result = spool_write(to, &item, err);
    }
    str_done(&from.text);
    if (result == 0 && more == 0) {
        (void)fclose(inventory->kinds[CHANGE_ADDED]);
        inventory->kinds[CHANGE_ADDED] = take_ptr(&to);
    }
    return result < 0 ? result : more;
}

static int collect_all(struct inventory *inventory, const struct inventory_options *options,
                       struct brig_error *err)
{
    struct change_options walk = {
        .paths = options->paths, .path_count = options->path_count, .quick = options->quick};
    int result = ignored_begin(&inventory->ignored, inventory->layer, err);
    for (size_t i = 0; i < INVENTORY_KINDS && result == 0; i++)
        result = spool_file(inventory->layer->record, &inventory->kinds[i], err);
    if (result == 0)
        result = changes_walk(inventory->layer, &walk, collect, inventory, err);
    if (result == 0)
        result = renames_prepare(&inventory->renames, inventory->layer, err);
    if (result == 0)
        result = ignored_ask(&inventory->ignored, inventory->layer, options->git, err);
    return result < 0 ? result : complete_added(inventory, err);
}

int inventory_make(const struct layer *layer, const struct inventory_options *options,
                   struct inventory **ret_inventory, struct brig_error *err)
{
    struct inventory *inventory = calloc(1, sizeof *inventory);
    if (!inventory)
        return brig_fail_nomem(err);
    inventory->layer = layer;
    inventory->tokens = options->tokens;
    inventory->quick = options->quick;
    inventory->state = options->state;
    int result = collect_all(inventory, options, err);
    if (result < 0)
        inventory_free(inventory);
    else
        *ret_inventory = inventory;
    return result;
}

/* ---- visiting ---- */

static int each_of_kind(FILE *file, inventory_visit visit, void *context, struct brig_error *err)
{
    struct spool spool = {.file = file};
    struct inventory_item item;
    int result = spool_rewind(file, err), more = 0;
    while (result == 0 && (more = spool_read(&spool, &item, err)) > 0)
        result = visit(context, &item, err);
    str_done(&spool.text);
    return result != 0 ? result : more;
}

int inventory_each(struct inventory *inventory, inventory_visit visit, void *context,
                   struct brig_error *err)
{
    int result = 0;
    for (size_t i = 0; i < INVENTORY_KINDS && result == 0; i++)
        result = each_of_kind(inventory->kinds[i], visit, context, err);
    return result;
}

/* ---- groups of ignored files ---- */

/* The open groups are directories of `last`, the innermost one last. */
struct grouping {
    inventory_group_visit visit;
    void *context;
    char last[PATH_LENGTH_MAX + 1];
    struct open_group {
        size_t length; /* of the directory in `last` */
        struct inventory_group group;
        char first[PATH_COMPONENT_MAX + 1]; /* the name of the first file */
        char risk[RISK_REASON_MAX];
        struct token_maker maker;
        bool unjudged; /* an item has no token */
    } * open;
    size_t count;
};

/* Visits the innermost group and closes it. */
static int close_group(struct grouping *grouping, struct brig_error *err)
{
    struct open_group *inner = &grouping->open[--grouping->count];
    char path[PATH_LENGTH_MAX + 1];
    bool single = inner->group.files == 1 && !inner->group.whole;
    (void)snprintf(path, sizeof path, "%.*s%s%s", (int)inner->length, grouping->last,
                   single && inner->length > 0 ? "/" : "", single ? inner->first : "");
    inner->group.path = path;
    inner->group.single = single;
    inner->group.risk = inner->risk[0] ? inner->risk : NULL;
    if (!inner->unjudged)
        inner->group.token = token_end(&inner->maker);
    return grouping->visit(grouping->context, &inner->group, err);
}

static int close_others(struct grouping *grouping, const char *path, struct brig_error *err)
{
    int result = 0;
    while (result == 0 && grouping->count > 0) {
        size_t length = grouping->open[grouping->count - 1].length;
        if (length == 0 || (strncmp(grouping->last, path, length) == 0 && path[length] == '/'))
            break;
        result = close_group(grouping, err);
    }
    return result;
}

static struct open_group *open_group(struct grouping *grouping, const struct inventory_item *item)
{
    const char *slash = strrchr(item->path, '/');
    size_t length = item->group > 0 ? item->group : slash ? (size_t)(slash - item->path) : 0;
    if (grouping->count > 0 && grouping->open[grouping->count - 1].length == length)
        return &grouping->open[grouping->count - 1];
    if (!array_grow(&grouping->open, grouping->count))
        return NULL;
    struct open_group *inner = &grouping->open[grouping->count++];
    *inner = (struct open_group){.length = length, .group.whole = item->group > 0};
    (void)str_fill(inner->first, sizeof inner->first, slash ? slash + 1 : item->path);
    token_begin(&inner->maker);
    return inner;
}

static int add_to_group(void *context, const struct inventory_item *item, struct brig_error *err)
{
    struct grouping *grouping = context;
    if (!item->ignored || S_ISDIR(item->mode_after))
        return 0;
    int result = close_others(grouping, item->path, err);
    if (result < 0)
        return result;
    (void)str_fill(grouping->last, sizeof grouping->last, item->path);
    struct open_group *inner = open_group(grouping, item);
    if (!inner)
        return brig_fail_nomem(err);
    inner->group.files++;
    inner->group.bytes += item->size_after;
    inner->unjudged = inner->unjudged || !item->token.text[0];
    token_add(&inner->maker, item->path);
    token_add(&inner->maker, item->token.text);
    inner->group.risky += item->risk != NULL;
    if (item->risk && !inner->risk[0])
        (void)str_fill(inner->risk, sizeof inner->risk, item->risk);
    return 0;
}

int inventory_each_group(struct inventory *inventory, inventory_group_visit visit, void *context,
                         struct brig_error *err)
{
    struct grouping grouping = {.visit = visit, .context = context};
    int result = each_of_kind(inventory->kinds[CHANGE_ADDED], add_to_group, &grouping, err);
    while (result == 0 && grouping.count > 0)
        result = close_group(&grouping, err);
    free(grouping.open);
    return result;
}

/* ---- the end of a run ---- */

struct line {
    int64_t since_ns;
    const struct str *state; /* paths that are not counted, or NULL */
    uint64_t changed, added, deleted, risky, conflicts, seen;
};

static int count_in_line(void *context, const struct change *change, struct brig_error *err)
{
    struct line *line = context;
    (void)err;
    if (line->seen++ == INVENTORY_LINE_MAX)
        return CHANGE_STOP;
    bool deleted = change->kind == CHANGE_DELETED;
    int64_t changed_ns = deleted ? change->deleted_ns : change->upper.ctime_ns;
    /* The time of the directory is later if something else was written to it. */
    if (deleted && change->has_base && !change->base.applied.mode && change->base.applied.ctime_ns)
        changed_ns = change->base.applied.ctime_ns;
    if (S_ISDIR(change->after.st_mode) || (changed_ns != 0 && changed_ns < line->since_ns) ||
        inventory_is_state(line->state, change->path))
        return 0;
    uint64_t files = deleted && S_ISDIR(change->before.st_mode) ? change->files : 1;
    line->changed += files;
    line->deleted += deleted ? files : 0;
    line->added += change->kind == CHANGE_ADDED;
    line->conflicts += change->conflict != NULL;
    line->risky += risk_find_quickly(change) != NULL;
    return 0;
}

static void append_part(struct str *out, uint64_t number, const char *word)
{
    if (number > 0)
        str_appendf(out, ", %" PRIu64 " %s", number, word);
}

static void append_layer(struct str *out, const struct layer *layer, const struct line *line)
{
    str_appendf(out, "%s%" PRIu64 " file%s changed in ",
                line->seen > INVENTORY_LINE_MAX ? "more than " : "", line->changed,
                line->changed == 1 ? "" : "s");
    if (layer_is_home(layer->name))
        str_append(out, "the jail's copy of your home");
    else
        str_append_shown(out, layer->root, strlen(layer->root), "");
    append_part(out, line->added, "new");
    append_part(out, line->deleted, "deleted");
    append_part(out, line->risky, "flagged");
    append_part(out, line->conflicts, line->conflicts == 1 ? "conflict" : "conflicts");
    str_append(out, "; ");
}

int inventory_line(const struct layers *layers, int64_t since_ns, const struct str *state,
                   struct str *out, struct brig_error *err)
{
    static const struct change_options options = {.quick = true};
    bool some = false;
    for (size_t i = 0; i < layers->count; i++) {
        bool home = layer_is_home(layers->items[i].name);
        struct line line = {.since_ns = since_ns, .state = home ? state : NULL};
        int result = changes_walk(&layers->items[i], &options, count_in_line, &line, err);
        if (result < 0)
            return result;
        if (line.changed > 0)
            append_layer(out, &layers->items[i], &line);
        some = some || line.changed > 0;
    }
    if (some)
        str_append(out, "see brig status");
    return 0;
}
