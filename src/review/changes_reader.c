/* SPDX-License-Identifier: MIT */
/* Builds the list of changes from the JSON of `brig status`. Members that are not known are
 * ignored, so a newer brig may print more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "review/changes.h"

/* Where values are: {"layers":[{"changes":[{"size":[…]}]}],"git":[{"commits":[{"files":[{}]}]}]} */
enum { DEPTH_TOP = 1, DEPTH_LAYER = 3, DEPTH_CHANGE = 5, DEPTH_PAIR = 6, DEPTH_FILE = 7 };

/* The keys that are used. A key that is read is replaced by the one here, or NULL. */
static const char *const known_keys[] = {
    "jail",
    "running",
    "layers",
    "held",
    "interrupted",
    "root",
    "root_bytes",
    "home",
    "changes",
    "path",
    "kind",
    "path_bytes",
    "type",
    "mode",
    "size",
    "owner",
    "xattrs",
    "target",
    "acl",
    "files",
    "bytes",
    "renamed_from",
    "renamed_from_bytes",
    "risk",
    "ignored",
    "conflict",
    "unreadable",
    "token",
    "class",
    "counts",
    "state",
    "git",
    "name",
    "count",
    "id",
    "author",
    "subject",
    "change",
};
static const char *const known_words[] = {
    "deleted",   "type", "modified", "metadata", "added",  "file",
    "directory", "link", "fifo",     "device",   "socket",
};

static const char *find_text(const char *const *texts, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(texts[i], text) == 0)
            return texts[i];
    return NULL;
}

static bool key_is(const struct changes_reader *reader, const char *key)
{
    const char *found = reader->keys[reader->depth];
    return found && strcmp(found, key) == 0;
}

/* Whether the value being read is in the array that the JSON calls `key` in the object around. */
static bool inside(const struct changes_reader *reader, unsigned depth, const char *key)
{
    const char *found = depth > 0 && depth <= reader->depth ? reader->keys[depth] : NULL;
    return found && strcmp(found, key) == 0;
}

static bool in_layer(const struct changes_reader *reader)
{
    return inside(reader, DEPTH_TOP, "layers") && reader->depth >= DEPTH_LAYER;
}

static bool in_change(const struct changes_reader *reader)
{
    return in_layer(reader) && inside(reader, DEPTH_LAYER, "changes") &&
           reader->depth >= DEPTH_CHANGE;
}

static bool in_git(const struct changes_reader *reader)
{
    return inside(reader, DEPTH_TOP, "git") && reader->depth >= DEPTH_LAYER;
}

/* ---- values ---- */

static const char *keep_text(struct changes *changes, const char *text)
{
    const char *known = find_text(known_words, ARRAY_LENGTH(known_words), text);
    return known ? known : arena_strdup(&changes->arena, text);
}

/* Reasons are few: most entries have the one of the entry before. */
static const char *keep_reason(struct changes *changes, const char *before, const char *text)
{
    return before && strcmp(before, text) == 0 ? before : arena_strdup(&changes->arena, text);
}

/* A reason with what brig status adds to it. */
static const char *with_class(struct changes *changes, const char *before, const char *reason,
                              const char *class)
{
    char text[512];
    const char *words = strcmp(class, "unasked") == 0    ? " (unasked)"
                        : strcmp(class, "when_run") == 0 ? " (when run)"
                                                         : "";
    (void)snprintf(text, sizeof text, "%s%s", reason, words);
    return keep_reason(changes, before, text);
}

/* The bytes of a name that is not UTF-8. */
static const char *keep_bytes(struct changes *changes, const char *text, size_t length)
{
    char *bytes = arena_alloc(&changes->arena, length / 4 * 3 + 1);
    size_t decoded = 0;
    if (!bytes || !base64_decode(text, length, bytes, &decoded))
        return NULL;
    bytes[decoded] = '\0';
    return bytes;
}

static bool set_change_text(struct changes_reader *reader, struct entry *entry, const char *text,
                            size_t length)
{
    struct changes *changes = reader->changes;
    const struct entry *before = changes->count > 1 ? entry - 1 : entry;
    if (key_is(reader, "path") && !entry->path)
        entry->path = keep_text(changes, text);
    else if (key_is(reader, "path_bytes"))
        return (entry->path = keep_bytes(changes, text, length)) != NULL;
    else if (key_is(reader, "kind"))
        entry->kind = keep_text(changes, text);
    else if (key_is(reader, "type"))
        entry->type = keep_text(changes, text);
    else if (key_is(reader, "renamed_from") && !entry->renamed_from)
        entry->renamed_from = keep_text(changes, text);
    else if (key_is(reader, "renamed_from_bytes"))
        return (entry->renamed_from = keep_bytes(changes, text, length)) != NULL;
    else if (key_is(reader, "token"))
        entry->token = arena_strdup(&changes->arena, text);
    else if (key_is(reader, "risk"))
        entry->risk = keep_reason(changes, before->risk, text);
    else if (key_is(reader, "conflict"))
        entry->conflict = keep_reason(changes, before->conflict, text);
    else if (key_is(reader, "unreadable"))
        entry->unreadable = keep_reason(changes, before->unreadable, text);
    else if (key_is(reader, "class") && entry->risk)
        entry->risk = with_class(changes, before->risk, entry->risk, text);
    return true;
}

/* A value of "mode", "size" or "target": before and after. */
static void set_pair(struct changes_reader *reader, struct entry *entry, enum json_event event,
                     const char *text)
{
    unsigned i = reader->index++;
    if (i > 1)
        return;
    bool has_text = event == JSON_STRING || event == JSON_NUMBER;
    if (inside(reader, DEPTH_CHANGE, "mode") && has_text)
        entry->mode[i] = (uint32_t)strtoul(text, NULL, 8);
    else if (inside(reader, DEPTH_CHANGE, "size") && has_text)
        entry->size[i] = strtoull(text, NULL, 10);
    else if (inside(reader, DEPTH_CHANGE, "target") && has_text)
        entry->target[i] = keep_text(reader->changes, text);
}

static bool set_change(struct changes_reader *reader, enum json_event event, const char *text,
                       size_t length)
{
    struct entry *entry = &reader->changes->entries[reader->changes->count - 1];
    if (reader->depth == DEPTH_PAIR && reader->arrays[DEPTH_PAIR])
        set_pair(reader, entry, event, text);
    else if (reader->depth != DEPTH_CHANGE)
        return true;
    else if (event == JSON_STRING)
        return set_change_text(reader, entry, text, length);
    else if (key_is(reader, "files"))
        entry->files = strtoull(text, NULL, 10);
    else if (key_is(reader, "bytes"))
        entry->bytes = strtoull(text, NULL, 10);
    else if (key_is(reader, "owner"))
        entry->owner = event == JSON_TRUE;
    else if (key_is(reader, "acl"))
        entry->acl = event == JSON_TRUE;
    else if (key_is(reader, "xattrs"))
        entry->xattrs = event == JSON_TRUE;
    else if (key_is(reader, "ignored"))
        entry->ignored = event == JSON_TRUE;
    return true;
}

static bool set_layer(struct changes_reader *reader, enum json_event event, const char *text,
                      size_t length)
{
    struct changes *changes = reader->changes;
    if (inside(reader, DEPTH_LAYER, "counts") && key_is(reader, "state"))
        changes->state += strtoull(text, NULL, 10);
    if (reader->depth != DEPTH_LAYER)
        return true;
    struct review_layer *layer = &changes->layers[changes->layer_count - 1];
    if (key_is(reader, "root") && event == JSON_STRING && !layer->root)
        layer->root = keep_text(changes, text);
    else if (key_is(reader, "root_bytes") && event == JSON_STRING)
        layer->root = keep_bytes(changes, text, length);
    else if (key_is(reader, "home"))
        layer->home = event == JSON_TRUE;
    return true;
}

/* The layer of what was done in git in a directory: the last one, or a new one. */
static bool set_git_layer(struct changes *changes, struct entry *entry, const char *root)
{
    autostr struct str text = {0};
    str_concat(&text, "git in ", root);
    if (text.failed)
        return false;
    const char *last =
        changes->layer_count > 0 ? changes->layers[changes->layer_count - 1].root : NULL;
    if (!last || strcmp(last, text.data) != 0) {
        if (changes->layer_count == CHANGES_LAYERS_MAX)
            return false;
        changes->layers[changes->layer_count++] =
            (struct review_layer){.root = arena_strdup(&changes->arena, text.data)};
    }
    entry->layer = (uint32_t)changes->layer_count - 1;
    return true;
}

/* A line for the item, one for each commit, and one for each file, from the order of the members. */
static bool set_git(struct changes_reader *reader, enum json_event event, const char *text,
                    size_t length)
{
    static const struct {
        unsigned depth;
        const char *key, *before, *after;
    } parts[] = {{DEPTH_LAYER, "kind", "", " "},
                 {DEPTH_LAYER, "name", "", ""},
                 {DEPTH_LAYER, "count", ", commits: ", ""},
                 {DEPTH_CHANGE, "id", "\n  commit ", ""},
                 {DEPTH_CHANGE, "author", "  ", ": "},
                 {DEPTH_CHANGE, "subject", "", ""},
                 {DEPTH_FILE, "change", "\n    ", "  "},
                 {DEPTH_FILE, "path", "", ""},
                 {DEPTH_FILE, "risk", "  ! ", ""}};
    struct entry *entry = &reader->changes->entries[reader->changes->count - 1];
    struct str *commits = &reader->commits;
    bool has_text = event == JSON_STRING || event == JSON_NUMBER;
    for (size_t i = 0; i < ARRAY_LENGTH(parts) && has_text; i++) {
        if (parts[i].depth != reader->depth || !key_is(reader, parts[i].key))
            continue;
        str_append(commits, parts[i].before);
        str_append_shown(commits, text, length, "");
        str_append(commits, parts[i].after);
    }
    if (reader->depth == DEPTH_CHANGE && key_is(reader, "id") && !has_text)
        str_append(commits, "\n  ");
    if (reader->depth != DEPTH_LAYER || !has_text)
        return !commits->failed;
    if (key_is(reader, "root"))
        return set_git_layer(reader->changes, entry, text);
    if (key_is(reader, "name"))
        entry->path = keep_text(reader->changes, *text ? text : "HEAD");
    return set_change_text(reader, entry, text, length);
}

static bool end_git(struct changes_reader *reader)
{
    struct changes *changes = reader->changes;
    str_append_char(&reader->commits, '\n');
    changes->entries[changes->count - 1].commits =
        reader->commits.failed ? NULL : arena_strdup(&changes->arena, reader->commits.data);
    reader->commits.length = 0;
    return !reader->commits.failed;
}

static void set_top(struct changes_reader *reader, enum json_event event, const char *text)
{
    struct changes *changes = reader->changes;
    if (reader->depth != DEPTH_TOP)
        return;
    if (key_is(reader, "jail") && event == JSON_STRING)
        changes->jail = keep_text(changes, text);
    else if (key_is(reader, "running"))
        changes->running = event == JSON_TRUE;
    else if (key_is(reader, "held"))
        changes->held = strtoull(text, NULL, 10);
    else if (key_is(reader, "interrupted"))
        changes->interrupted = strtoull(text, NULL, 10);
}

static bool set_value(struct changes_reader *reader, enum json_event event, const char *text,
                      size_t length)
{
    if (in_change(reader))
        return set_change(reader, event, text, length);
    if (in_git(reader))
        return set_git(reader, event, text, length);
    if (in_layer(reader))
        return set_layer(reader, event, text, length);
    set_top(reader, event, text);
    return true;
}

/* ---- objects ---- */

static bool add_entry(struct changes *changes)
{
    if (changes->count == CHANGES_MAX || !array_grow(&changes->entries, changes->count))
        return false;
    changes->entries[changes->count++] =
        (struct entry){.layer = (uint32_t)(changes->layer_count - 1)};
    return true;
}

static bool open_value(struct changes_reader *reader, bool array)
{
    reader->depth++;
    reader->keys[reader->depth] = NULL;
    reader->arrays[reader->depth] = array;
    reader->index = 0;
    struct changes *changes = reader->changes;
    if (!array && reader->depth == DEPTH_LAYER && in_layer(reader)) {
        if (changes->layer_count == CHANGES_LAYERS_MAX)
            return false;
        changes->layers[changes->layer_count++] = (struct review_layer){0};
    }
    if (!array && reader->depth == DEPTH_LAYER && in_git(reader))
        return add_entry(changes);
    return array || reader->depth != DEPTH_CHANGE || !in_change(reader) || add_entry(changes);
}

static bool visit(void *context, enum json_event event, const char *text, size_t length)
{
    struct changes_reader *reader = context;
    switch (event) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return open_value(reader, event == JSON_ARRAY);
    case JSON_OBJECT_END:
    case JSON_ARRAY_END: {
        bool git = reader->depth == DEPTH_LAYER && !reader->arrays[DEPTH_LAYER] && in_git(reader);
        reader->depth--;
        return !git || end_git(reader);
    }
    case JSON_KEY:
        reader->keys[reader->depth] = find_text(known_keys, ARRAY_LENGTH(known_keys), text);
        return true;
    case JSON_STRING:
    case JSON_NUMBER:
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        return set_value(reader, event, text, length) && !reader->changes->arena.failed;
    }
    return false;
}

void changes_reader_init(struct changes_reader *reader, struct changes *changes)
{
    *reader = (struct changes_reader){.changes = changes};
    json_reader_init(&reader->json, visit, reader);
}

void changes_reader_done(struct changes_reader *reader)
{
    json_reader_done(&reader->json);
    str_done(&reader->commits);
}

bool changes_reader_feed(struct changes_reader *reader, const char *bytes, size_t length)
{
    return json_reader_feed(&reader->json, bytes, length);
}

/* ---- the end ---- */

/* Checks what was read, and counts. */
static bool check_entries(struct changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        struct entry *entry = &changes->entries[i];
        if (!entry->path || !entry->path[0] || !entry->kind || !changes->layers[entry->layer].root)
            return false;
        const char *slash = strrchr(entry->path, '/');
        entry->name = slash ? (uint32_t)(slash + 1 - entry->path) : 0;
        entry->type = entry->type ? entry->type : "file";
        changes->flagged += entry->risk != NULL;
        changes->conflicts += entry->conflict != NULL;
    }
    return true;
}

bool changes_finish(struct changes_reader *reader)
{
    struct changes *changes = reader->changes;
    if (!json_reader_complete(&reader->json) || !check_entries(changes))
        return false;
    changes_sort(changes);
    return changes_filter(changes, changes->only_flagged);
}
