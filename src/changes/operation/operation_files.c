/* SPDX-License-Identifier: MIT */
/* The log of operations: the directory of each, its info and its marks. */
#include "changes/operation/operation_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/parse.h"
#include "base/record.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/checkpoint/checkpoint.h"
#include "changes/checkpoint/restore.h"
#include "changes/layer/layer.h"
#include "git/take.h"

#define INFO "info"
#define MARK_MAX 64
#define ID_MAX (UINT64_MAX / 2)
#define TRIES_MAX 1000

int operations_open(int record, struct brig_error *err)
{
    if (mkdirat(record, OPERATIONS, 0700) < 0 && errno != EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create the log of operations");
    int fd = files_open_dir(record, OPERATIONS);
    return fd < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the log of operations") : fd;
}

struct operation *operation_new(const struct layers *layers, int record)
{
    struct operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return NULL;
    operation->layers = layers;
    operation->record = record;
    operation->dir = -1;
    record_jail(record, operation->jail);
    operation->steps.objects = -1;
    return operation;
}

void operation_info_done(struct operation_info *info)
{
    free(take_ptr(&info->fields));
    str_done(&info->roots);
}

/* ---- marks ---- */

static uint64_t number_of(const char *value)
{
    uint64_t number = 0;
    return parse_uint(value, ID_MAX, PARSE_ZERO_OK, &number, NULL) < 0 ? 0 : number;
}

int operation_mark(int dir, const char *name, const char *text, struct brig_error *err)
{
    autoclose int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int failed = fd < 0 ? -errno : text ? write_all(fd, text, strlen(text)) : 0;
    if (failed < 0 || fsync(fd) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, failed < 0 ? -failed : errno,
                         "cannot write to the log of operations");
    files_sync(dir, ".");
    return 0;
}

/* The number of the operation in a mark; 0 if there is none. */
static uint64_t read_mark(int dir, const char *name)
{
    autostr struct str text = {0};
    return files_read(dir, name, &text) && text.data ? number_of(text.data) : 0;
}

/* ---- info ---- */

static const char *const effects[] = {
    [OPERATION_NONE] = "none", [OPERATION_LISTED] = "listed", [OPERATION_UNKNOWN] = "unknown"};

const char *operation_effect_word(enum operation_effect effect)
{
    return effects[effect];
}

static const struct info_number {
    const char *key;
    size_t offset; /* of a number of 64 bits */
} info_numbers[] = {{"time", offsetof(struct operation_info, time_ns)},
                    {"end", offsetof(struct operation_info, end_ns)},
                    {"changes", offsetof(struct operation_info, changes)},
                    {"skipped", offsetof(struct operation_info, skipped)},
                    {"settled", offsetof(struct operation_info, settled_ns)},
                    {"special", offsetof(struct operation_info, special)},
                    {"undoes", offsetof(struct operation_info, undoes)},
                    {"objects", offsetof(struct operation_info, objects)}};

static const struct info_text {
    const char *key;
    size_t offset, size;
} info_texts[] = {
    {"kind", offsetof(struct operation_info, kind), OPERATION_KIND_MAX},
    {"text", offsetof(struct operation_info, text), OPERATION_TEXT_MAX},
    {"run", offsetof(struct operation_info, run), OPERATION_RUN_MAX},
    {"did", offsetof(struct operation_info, did), OPERATION_TEXT_MAX},
    {"path", offsetof(struct operation_info, path), OPERATION_TEXT_MAX},
    {"program", offsetof(struct operation_info, program), OPERATION_TEXT_MAX},
};

bool operation_is_durable(const struct operation_info *info)
{
    return strcmp(info->kind, OPERATION_RUN) != 0 || info->files == OPERATION_LISTED;
}

int operation_write_info(const struct operation *operation, struct brig_error *err)
{
    const struct operation_info *info = &operation->info;
    autostr struct str text = {0};
    record_add_number(&text, "version", 1);
    for (size_t i = 0; i < ARRAY_LENGTH(info_texts); i++)
        if (*((const char *)info + info_texts[i].offset))
            record_add(&text, info_texts[i].key, (const char *)info + info_texts[i].offset);
    record_add(&text, "fields", info->fields);
    for (size_t i = 0; i < ARRAY_LENGTH(info_numbers); i++) {
        uint64_t value;
        memcpy(&value, (const char *)info + info_numbers[i].offset, sizeof value);
        if (value)
            record_add_number(&text, info_numbers[i].key, value);
    }
    record_add(&text, "files", effects[info->files]);
    record_add(&text, "git", effects[info->git]);
    if (info->whole)
        record_add_number(&text, "whole", 1);
    if (info->live)
        record_add_number(&text, "live", 1);
    for (const char *at = NULL; (at = str_list_next(&info->roots, at));)
        record_add(&text, "wrote", at);
    for (size_t i = 0; i < operation->steps.tree_count; i++) {
        record_add(&text, "layer", operation->steps.trees[i].name);
        place_add(&text, &operation->steps.trees[i].place);
        record_add(&text, "root", operation->steps.trees[i].root);
    }
    return record_write(operation->dir, INFO, &text, operation_is_durable(info), err);
}

/* A layer as an operation recorded it. */
struct recorded {
    const char *name, *root;
    struct place place;
};

/* The root may have been moved to another path. */
static const struct layer *find_layer(const struct layers *layers, const struct recorded *recorded)
{
    const struct place *place = &recorded->place;
    for (size_t i = 0; layers && i < layers->count; i++) {
        const struct layer *layer = &layers->items[i];
        if (strcmp(layer->name, recorded->name) == 0 &&
            (strcmp(layer->root, recorded->root) == 0 ||
             (place->inode && layer->place.inode && place_equal(place, &layer->place))))
            return layer;
    }
    return NULL;
}

struct step_tree *operation_add_tree(struct operation *operation, const struct layer *layer,
                                     const char *name, const char *root)
{
    struct step_context *steps = &operation->steps;
    if (!array_grow(&steps->trees, steps->tree_count))
        return NULL;
    struct step_tree *tree = &steps->trees[steps->tree_count++];
    memset(tree, 0, sizeof *tree);
    tree->layer = layer;
    tree->lower = layer ? layer->lower : -1;
    tree->upper = layer && layer->upper_count > 0 ? layer->uppers[0] : -1;
    tree->remote = tree->lower_at.fd = tree->upper_at.fd = -1;
    (void)str_fill(tree->name, sizeof tree->name, name);
    (void)str_fill(tree->root, sizeof tree->root, root);
    return tree;
}

/* Adds a layer that the operation was made with. If it does not exist any more, only its root is used. */
static int read_tree(struct operation *operation, const struct recorded *recorded,
                     struct brig_error *err)
{
    const struct layer *layer = find_layer(operation->layers, recorded);
    struct step_tree *tree =
        operation_add_tree(operation, layer, recorded->name, layer ? layer->root : recorded->root);
    if (!tree)
        return brig_fail_nomem(err);
    tree->place = recorded->place;
    tree->owns_lower = !layer;
    if (!layer)
        tree->lower = files_open_dir(AT_FDCWD, recorded->root);
    return 0;
}

static bool take_text(struct operation_info *info, const char *key, const char *value)
{
    for (size_t i = 0; i < ARRAY_LENGTH(info_texts); i++)
        if (strcmp(key, info_texts[i].key) == 0) {
            (void)str_fill((char *)info + info_texts[i].offset, info_texts[i].size, value);
            return true;
        }
    return false;
}

static bool take_number(struct operation_info *info, const char *key, const char *value)
{
    for (size_t i = 0; i < ARRAY_LENGTH(info_numbers); i++)
        if (strcmp(key, info_numbers[i].key) == 0) {
            uint64_t number = record_number(value);
            memcpy((char *)info + info_numbers[i].offset, &number, sizeof number);
            return true;
        }
    return false;
}

static enum operation_effect effect_of(const char *value)
{
    for (size_t i = 0; i < ARRAY_LENGTH(effects); i++)
        if (strcmp(value, effects[i]) == 0)
            return (enum operation_effect)i;
    return OPERATION_UNKNOWN;
}

/* One line. The root of a layer comes last. */
static int take_value(struct operation_info *info, struct operation *operation, const char *key,
                      const char *value, struct recorded *recorded, struct brig_error *err)
{
    if (take_number(info, key, value) || take_text(info, key, value))
        return 0;
    if (strcmp(key, "fields") == 0 && !info->fields)
        return str_copy(value, &info->fields, err);
    else if (strcmp(key, "files") == 0)
        info->files = effect_of(value);
    else if (strcmp(key, "git") == 0)
        info->git = effect_of(value);
    else if (strcmp(key, "whole") == 0)
        info->whole = true;
    else if (strcmp(key, "live") == 0)
        info->live = true;
    else if (strcmp(key, "wrote") == 0)
        str_list_add(&info->roots, value);
    else if (strcmp(key, "layer") == 0)
        *recorded = (struct recorded){.name = value};
    else if (strcmp(key, PLACE_KEY) == 0)
        (void)place_read(value, &recorded->place);
    else if (strcmp(key, "root") == 0)
        recorded->root = value;
    return recorded->root && operation ? read_tree(operation, recorded, err) : 0;
}

/* Makes a record of the info of an earlier version. A run without a checkpoint was not always in the log, so nothing is
 * said about its files. */
static void convert_info(struct str *text, const struct operation_info *marks)
{
    autostr struct str record = {0};
    bool git = false;
    record_add_number(&record, "version", 1);
    str_append_char(text, '\0');
    for (char *at = text->data; !text->failed && at < text->data + text->length - 1;) {
        char *next = at + strlen(at) + 1, *equals = strchr(at, '=');
        if (equals) {
            *equals = '\0';
            git = git || (strcmp(at, "kind") == 0 && strcmp(equals + 1, OPERATION_GIT) == 0);
            record_add(&record, strcmp(at, "files") == 0 ? "changes" : at, equals + 1);
        }
        at = next;
    }
    bool listed = marks->has_steps || marks->has_checkpoint;
    record_add(&record, "files", effects[listed ? OPERATION_LISTED : OPERATION_NONE]);
    record_add(&record, "git", effects[git ? OPERATION_UNKNOWN : OPERATION_NONE]);
    str_done(text);
    *text = record;
    record = (struct str){0};
}

static int parse_info(struct str *text, struct operation_info *info, struct operation *operation,
                      struct brig_error *err)
{
    struct recorded recorded = {.name = ""};
    struct record_place place = {0};
    const char *key, *value;
    int status = 0;
    while (status == 0 && record_next(text, &place, &key, &value)) {
        status = take_value(info, operation, key, value, &recorded, err);
        recorded.root = NULL;
    }
    return status == 0 && place.damaged
               ? brig_fail(err, BRIG_E_SYSTEM, 0, "operation %ju of the log is damaged",
                           (uintmax_t)info->id)
               : status;
}

int operation_read_dir(int dir, struct operation_info *info, struct operation *operation,
                       struct brig_error *err)
{
    autostr struct str text = {0};
    int status = record_read(dir, INFO, &text, err);
    if (status < 0)
        return status;
    bool done = files_exists(dir, OPERATION_DONE);
    info->has_steps = files_exists(dir, OPERATION_READY);
    info->has_checkpoint =
        files_exists(dir, "0" CHECKPOINT_BEFORE) || files_exists(dir, "0" CHECKPOINT_AFTER);
    info->has_git = files_exists(dir, GIT_RECORD);
    info->interrupted = info->has_steps && !done;
    info->undone_by = read_mark(dir, OPERATION_UNDONE);
    if (text.data && str_starts_with(text.data, "kind=")) {
        convert_info(&text, info);
        if (done) /* nothing else writes it any more */
            (void)record_write(dir, INFO, &text, true, NULL);
    }
    return parse_info(&text, info, operation, err);
}

int operation_read_info(int operations, uint64_t id, struct operation_info *ret_info,
                        struct operation *operation, struct brig_error *err)
{
    struct operation_info info = {.id = id};
    autoclose int dir = files_open_dir(operations, str_number(id).text);
    if (dir < 0) {
        autoclose int record = openat(operations, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return brig_fail(err, BRIG_E_INVALID, 0, "there is no operation %ju. See brig log%s",
                         (uintmax_t)id, record_option(record).text);
    }
    int status = operation_read_dir(dir, &info, operation, err);
    if (status < 0)
        operation_info_done(&info);
    else
        *ret_info = info;
    return status;
}

int operation_find(int record, uint64_t id, struct operation_info *ret_info, struct brig_error *err)
{
    autoclose int operations = operations_open(record, err);
    return operations < 0 ? operations : operation_read_info(operations, id, ret_info, NULL, err);
}

int operation_open(const struct layers *layers, int record, uint64_t id,
                   struct operation **ret_operation, struct brig_error *err)
{
    struct operation *operation = operation_new(layers, record);
    autoclose int operations = operations_open(record, err);
    int status = !operation ? brig_fail_nomem(err) : operations < 0 ? operations : 0;
    if (status == 0)
        status = operation_read_info(operations, id, &operation->info, operation, err);
    if (status == 0) {
        char objects[MARK_MAX];
        uint64_t owner = operation->info.objects ? operation->info.objects : id;
        operation->info.objects = owner;
        (void)snprintf(objects, sizeof objects, "%ju/" OPERATION_OBJECTS, (uintmax_t)owner);
        operation->dir = files_open_dir(operations, str_number(id).text);
        operation->steps.objects = files_open_dir(operations, objects);
        if (operation->dir < 0 || operation->steps.objects < 0)
            status =
                brig_fail(err, BRIG_E_STATE, 0, "the files of operation %ju were removed (brig gc)",
                          (uintmax_t)owner);
    }
    if (status < 0)
        operation_free(operation);
    else
        *ret_operation = operation;
    return status;
}

int operation_check_roots(const struct operation *operation, bool any, struct brig_error *err)
{
    for (size_t i = 0; i < operation->steps.tree_count; i++) {
        const struct step_tree *tree = &operation->steps.trees[i];
        struct place now;
        if (tree->lower < 0)
            return brig_fail(err, BRIG_E_STATE, 0, "'%s' does not exist any more",
                             str_shown(tree->root).text);
        int status = place_of(tree->lower, &now, err);
        if (status < 0)
            return status;
        if (!any && !place_equal(&tree->place, &now))
            return brig_fail(err, BRIG_E_STATE, 0,
                             "'%s' is not the directory that operation %ju has changed: it was "
                             "replaced by another one since",
                             str_shown(tree->root).text, (uintmax_t)operation->info.id);
    }
    return 0;
}

/* ---- steps ---- */

static const char *word_of(const struct step *step)
{
    switch ((enum step_lower)step->lower) {
    case STEP_SWAP:
        return !step->other.mode ? "delete" : step->before.mode ? "replace" : "add";
    case STEP_MODE:
    case STEP_META:
        return "set";
    case STEP_TIME:
    case STEP_LOWER_NONE:
        break;
    }
    return step->flags & STEP_REVERSED ? "restore" : "discard";
}

int operation_steps(int record, uint64_t id, operation_step_visit visit, void *context,
                    struct brig_error *err)
{
    autojournal struct journal journal = {.fd = -1};
    struct operation *operation;
    struct operation_info info;
    struct step step;
    int status = operation_find(record, id, &info, err);
    if (status < 0)
        return status;
    bool hold = strcmp(info.kind, OPERATION_HOLD) == 0;
    operation_info_done(&info);
    if (info.has_checkpoint)
        return restore_steps(record, id, visit, context, err);
    if (!info.has_steps)
        return 0;
    status = operation_open(NULL, record, id, &operation, err);
    if (status < 0)
        return status;
    status = journal_open(operation->dir, false, &journal, err);
    while (status == 0 && (status = journal_next(&journal, &step, err)) > 0) {
        bool helps = (step.flags & STEP_HELPER) || step.upper == STEP_PRUNE ||
                     step.upper == STEP_OPAQUE || step.tree >= operation->steps.tree_count;
        status = helps ? 0
                       : visit(context, operation->steps.trees[step.tree].root, step.path,
                               hold ? "hold back" : word_of(&step), err);
    }
    operation_free(operation);
    return status;
}

/* ---- listing ---- */

struct id_list {
    uint64_t *items;
    size_t count;
};

static int compare_ids(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? 1 : a > b ? -1 : 0;
}

/* All IDs, the greatest first. */
static int list_ids(int operations, struct id_list *ret_list, struct brig_error *err)
{
    struct id_list list = {0};
    autodir DIR *dir = files_list(operations, ".");
    for (const struct dirent *item; dir && (item = readdir(dir));) {
        uint64_t id;
        if (parse_uint(item->d_name, ID_MAX, 0, &id, NULL) < 0)
            continue;
        if (!array_grow(&list.items, list.count)) {
            free(list.items);
            return brig_fail_nomem(err);
        }
        list.items[list.count++] = id;
    }
    if (list.count > 0)
        qsort(list.items, list.count, sizeof *list.items, compare_ids);
    *ret_list = list;
    return 0;
}

int operations_each_id(int record, operation_id_visit visit, void *context, struct brig_error *err)
{
    struct id_list list;
    autoclose int operations = operations_open(record, err);
    int status = operations < 0 ? operations : list_ids(operations, &list, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < list.count && status == 0; i++)
        status = visit(context, operations, list.items[i], err);
    free(list.items);
    return status;
}

struct reading {
    operation_visit visit;
    void *context;
};

static int visit_read(void *context, int operations, uint64_t id, struct brig_error *err)
{
    const struct reading *reading = context;
    struct operation_info info;
    if (operation_read_info(operations, id, &info, NULL, NULL) < 0)
        return 0;
    int status = reading->visit(reading->context, &info, err);
    operation_info_done(&info);
    return status;
}

int operations_each(int record, operation_visit visit, void *context, struct brig_error *err)
{
    struct reading reading = {visit, context};
    return operations_each_id(record, visit_read, &reading, err);
}

static int find_interrupted(void *context, const struct operation_info *info,
                            struct brig_error *err)
{
    (void)err;
    if (!info->interrupted)
        return 0;
    *(uint64_t *)context = info->id;
    return 1;
}

uint64_t operation_interrupted(int record)
{
    uint64_t id = 0;
    (void)operations_each(record, find_interrupted, &id, NULL);
    return id;
}

/* ---- new operations ---- */

uint64_t operations_last(int operations)
{
    struct id_list list;
    if (list_ids(operations, &list, NULL) < 0)
        return 0;
    uint64_t last = list.count > 0 ? list.items[0] : 0;
    free(list.items);
    return last;
}

int operation_number(int operations, const char *name, uint64_t *ret_id, struct brig_error *err)
{
    uint64_t id = operations_last(operations) + 1;
    int moved = -1;
    for (int try = 0; moved < 0 && try < TRIES_MAX; try++, id += moved < 0)
        moved = path_rename_new(operations, name, operations, str_number(id).text);
    if (moved < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -moved, "cannot write to the log of operations");
    *ret_id = id;
    return 0;
}
