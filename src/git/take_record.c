/* SPDX-License-Identifier: MIT */
/* Reading a git record, and turning it around. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/record.h"
#include "git/taking.h"

#define RECORD_OF "of"
#define RECORD_REVERSED "reversed"

static const char *const kinds[] = {
    [TAKE_REF] = "ref",       [TAKE_HEAD] = "head",       [TAKE_INDEX] = "index",
    [TAKE_STAGED] = "staged", [TAKE_STASHES] = "stashes", [TAKE_CONFIG] = "config"};

/* ---- reading the record ---- */

static int take_refuse(struct brig_error *err)
{
    return brig_fail(
        err, BRIG_E_SETUP, 0,
        "the record of what is to be moved in git is damaged, or was removed (brig gc)");
}

static bool take_add_entry(struct git_taking *t, enum take_kind kind, const char *name)
{
    if (t->tree_count == 0 || !array_grow(&t->entries, t->entry_count))
        return false;
    t->entries[t->entry_count++] = (struct take_entry){
        .kind = kind, .tree = t->tree_count - 1, .name = name, .first = t->value_count};
    return true;
}

static bool take_add_value(struct git_taking *t, enum git_direction side, const char *text)
{
    if (t->entry_count == 0 || !array_grow(&t->values, t->value_count))
        return false;
    t->values[t->value_count++] = (struct take_value){side, text};
    t->entries[t->entry_count - 1].count++;
    return true;
}

static bool take_add_repo(struct git_taking *t, const char *path)
{
    if (!array_grow(&t->repos, t->repo_count))
        return false;
    t->repos[t->repo_count++] = (struct take_repo){.path = path, .common = -1};
    return true;
}

static bool take_add_tree(struct git_taking *t, const char *path)
{
    if (t->repo_count == 0 || !array_grow(&t->trees, t->tree_count))
        return false;
    t->trees[t->tree_count++] =
        (struct take_tree){.repo = t->repo_count - 1, .path = path, .git_dir = -1};
    return true;
}

enum git_direction take_other(enum git_direction towards)
{
    return towards == GIT_TO_NEW ? GIT_TO_OLD : GIT_TO_NEW;
}

/* The operation with the copies, beside this one; false if it was removed. */
static bool take_open_copies(struct git_taking *t, const char *name)
{
    autofree char *path = NULL;
    if (strchr(name, '/') || str_make(&path, NULL, "../", name) < 0)
        return false;
    own_close(&t->copies);
    t->copies = openat(t->record, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return t->copies >= 0;
}

/* A line about a repository or a working tree; false if it is damaged. */
static bool take_read_place(struct git_taking *t, const char *key, const char *value)
{
    struct take_repo *repo = t->repo_count ? &t->repos[t->repo_count - 1] : NULL;
    struct take_tree *tree = t->tree_count ? &t->trees[t->tree_count - 1] : NULL;
    bool of_tree = tree && tree->repo + 1 == t->repo_count;
    if (strcmp(key, "repo") == 0)
        return take_add_repo(t, value);
    if (strcmp(key, "tree") == 0)
        return take_add_tree(t, value);
    if (strcmp(key, "pins") == 0 && repo)
        repo->pins = value;
    else if (strcmp(key, "gitdir") == 0 && of_tree)
        tree->git_path = value;
    else if (strcmp(key, "private") == 0 && of_tree)
        tree->folder = value;
    else if (strcmp(key, PLACE_KEY) == 0)
        return repo && place_read(value, of_tree ? &tree->place : &repo->place);
    return true;
}

/* A line about a new repository: 1, 0 if it is about something else, -1 if it is damaged. */
static int take_read_placed(struct git_taking *t, const char *key, const char *value)
{
    struct take_placed *placed = t->placed_count ? &t->placed[t->placed_count - 1] : NULL;
    if (strcmp(key, "placed") == 0) {
        if (!array_grow(&t->placed, t->placed_count))
            return -1;
        t->placed[t->placed_count++] = (struct take_placed){.path = value, .top = -1};
        return 1;
    }
    if (!placed || t->repo_count > 0) /* they come first */
        return 0;
    if (strcmp(key, "from") == 0)
        placed->folder = value;
    else if (strcmp(key, "new") == 0)
        placed->hash = value;
    else
        return strcmp(key, PLACE_KEY) != 0 ? 0 : place_read(value, &placed->place) ? 1 : -1;
    return 1;
}

static bool take_read_line(struct git_taking *t, const char *key, const char *value)
{
    int placed = take_read_placed(t, key, value);
    if (placed != 0)
        return placed > 0;
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (strcmp(key, kinds[i]) == 0)
            return take_add_entry(t, (enum take_kind)i, value);
    if (strcmp(key, "old") == 0)
        return take_add_value(t, GIT_TO_OLD, value);
    if (strcmp(key, "new") == 0)
        return take_add_value(t, GIT_TO_NEW, value);
    if (strcmp(key, RECORD_OF) == 0)
        return take_open_copies(t, value);
    if (strcmp(key, RECORD_REVERSED) == 0)
        t->towards = take_other(t->towards);
    return take_read_place(t, key, value);
}

int take_read(struct git_taking *t, struct brig_error *err)
{
    struct record_place at = {0};
    const char *key, *value;
    int status = record_read(t->record, GIT_RECORD, &t->text, err);
    if (status <= 0)
        return status;
    if (!record_next(&t->text, &at, &key, &value) || strcmp(key, "version") != 0 ||
        record_number(value) != GIT_RECORD_VERSION)
        return take_refuse(err);
    while (record_next(&t->text, &at, &key, &value))
        if (!take_read_line(t, key, value))
            return take_refuse(err);
    for (size_t i = 0; i < t->tree_count; i++)
        if (!t->trees[i].git_path)
            return take_refuse(err);
    return at.damaged ? take_refuse(err) : 0;
}

int take_open(struct git_taking *t, struct brig_error *err)
{
    for (size_t i = 0; i < t->placed_count; i++) {
        struct take_placed *placed = &t->placed[i];
        placed->top = placed->folder && placed->hash ? place_open(placed->path, &placed->place, err)
                                                     : take_refuse(err);
        if (placed->top < 0)
            return placed->top;
    }
    for (size_t i = 0; i < t->repo_count; i++) {
        struct take_repo *repo = &t->repos[i];
        repo->common = place_open(repo->path, &repo->place, err);
        if (repo->common < 0)
            return repo->common;
    }
    for (size_t i = 0; i < t->tree_count; i++) {
        struct take_tree *tree = &t->trees[i];
        tree->git_dir = place_open(tree->git_path, &tree->place, err);
        if (tree->git_dir < 0)
            return tree->git_dir;
    }
    return 0;
}

/* A value of an entry on one side: the Nth, or NULL. */
const char *take_value(const struct git_taking *t, const struct take_entry *entry,
                       enum git_direction side, size_t n)
{
    for (size_t i = entry->first; i < entry->first + entry->count; i++)
        if (t->values[i].side == side && n-- == 0)
            return t->values[i].text;
    return NULL;
}

const char *take_from(const struct git_taking *t, const struct take_entry *entry)
{
    return take_value(t, entry, take_other(t->towards), 0);
}

const char *take_to(const struct git_taking *t, const struct take_entry *entry)
{
    return take_value(t, entry, t->towards, 0);
}

const struct take_entry *take_find(const struct git_taking *t, size_t tree, enum take_kind kind)
{
    for (size_t i = 0; i < t->entry_count; i++)
        if (t->entries[i].tree == tree && t->entries[i].kind == kind)
            return &t->entries[i];
    return NULL;
}

/* ---- undo ---- */

/* Whether the copies of each index that differs are there: those of runs are kept for a while. */
static bool take_has_copies(const struct git_taking *t)
{
    for (size_t i = 0; i < t->entry_count; i++) {
        const struct take_entry *entry = &t->entries[i];
        char old[32], new[32];
        (void)snprintf(old, sizeof old, "index-%zu.old", entry->tree);
        (void)snprintf(new, sizeof new, "index-%zu.new", entry->tree);
        if (entry->kind == TAKE_INDEX && !files_exists(t->copies, old) &&
            !files_exists(t->copies, new) && !str_equal(take_from(t, entry), take_to(t, entry)))
            return false;
    }
    return true;
}

static int take_check_copies(int record, struct brig_error *err)
{
    struct git_taking *t = calloc(1, sizeof *t);
    if (!t)
        return brig_fail_nomem(err);
    *t = (struct git_taking){.record = record,
                             .storage = -1,
                             .copies = fcntl(record, F_DUPFD_CLOEXEC, 3),
                             .partly = true}; /* nothing of it is touched */
    int status = take_read(t, err);
    if (status == 0 && !take_has_copies(t))
        status =
            brig_fail(err, BRIG_E_STATE, 0, "the copy of the index before is not kept any more");
    git_taking_end(t);
    return status;
}

bool git_record_names_tree(const char *key)
{
    return strcmp(key, "tree") == 0 || strcmp(key, "placed") == 0;
}

int git_record_reverse(int from, const char *name, int to, struct brig_error *err)
{
    autostr struct str text = {0}, record = {0};
    const char *rest = NULL, *of = "";
    int status = record_read(from, GIT_RECORD, &text, err);
    if (status > 0)
        status = take_check_copies(from, err);
    if (status < 0 || !text.data)
        return status;
    size_t length = 0;
    rest = strchr(text.data, '\n');
    if (rest && str_starts_with(++rest, RECORD_OF " ")) {
        of = rest;
        length = strcspn(rest, "\n") + 1;
        rest += length;
    }
    bool reversed = rest && str_starts_with(rest, RECORD_REVERSED " ");
    if (reversed)
        rest = strchr(rest, '\n') + 1;
    record_add_number(&record, "version", GIT_RECORD_VERSION);
    if (length > 0)
        str_append_bytes(&record, of, length);
    else
        record_add(&record, RECORD_OF, name);
    if (!reversed)
        record_add_number(&record, RECORD_REVERSED, 1);
    str_append(&record, rest ? rest : "");
    status = record_write(to, GIT_RECORD, &record, true, err);
    return status < 0 ? status : 1;
}
