/* SPDX-License-Identifier: MIT */
#include "review/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void changes_done(struct changes *changes)
{
    free(changes->entries);
    free(changes->rows);
    arena_done(&changes->arena);
    *changes = (struct changes){0};
}

/* ---- entries ---- */

static bool is_flagged(const struct entry *entry)
{
    return entry->risk || entry->conflict || entry->unreadable;
}

bool entry_is_directory(const struct entry *entry)
{
    return strcmp(entry->type, "directory") == 0;
}

char entry_letter(const struct entry *entry)
{
    static const char *const kinds[] = {"deleted", "type", "modified", "metadata", "added"};
    static const char letters[] = "DTMmA";
    if (entry->commits)
        return 'G';
    if (entry->renamed_from)
        return 'R';
    for (size_t i = 0; i + 1 < sizeof letters; i++)
        if (strcmp(entry->kind, kinds[i]) == 0)
            return letters[i];
    return '?';
}

uint64_t entry_size(const struct entry *entry)
{
    if (entry_letter(entry) != 'D')
        return entry_is_directory(entry) ? 0 : entry->size[1];
    return entry_is_directory(entry) ? entry->bytes : entry->size[0];
}

void entry_append_path(const struct changes *changes, const struct entry *entry, struct str *out)
{
    const char *root = changes->layers[entry->layer].root;
    if (entry->commits)
        return str_concat(out, "git:", entry->path);
    str_concat(out, strcmp(root, "/") == 0 ? "" : root, "/", entry->path,
               entry->ignored && entry->files > 0 ? "/" : "");
}

void entry_list_path(const struct changes *changes, const struct entry *entry, struct str *list)
{
    entry_append_path(changes, entry, list);
    str_append_char(list, '\0');
}

bool entry_is_same(const struct entry *a, const struct entry *b)
{
    return a->token && b->token && strcmp(a->token, b->token) == 0;
}

void entry_list_item(const struct changes *changes, const struct entry *entry, struct str *list)
{
    static const char none[] = "00000000000000000000000000000000";
    str_concat(list, entry->token ? entry->token : none, " ");
    entry_list_path(changes, entry, list);
}

#define MODE_BITS 07777U

static void describe_size(const struct entry *entry, struct str *out)
{
    bool directory = entry_is_directory(entry);
    if (entry->files > 0)
        str_appendf(out, ", %ju files, %ju bytes", (uintmax_t)entry->files,
                    (uintmax_t)entry->bytes);
    else if (!directory && entry->mode[0] && entry->mode[1] && entry->size[0] != entry->size[1])
        str_appendf(out, ", %ju to %ju bytes", (uintmax_t)entry->size[0],
                    (uintmax_t)entry->size[1]);
    else if (!directory && !entry->target[0] && !entry->target[1])
        str_appendf(out, ", %ju bytes", (uintmax_t)entry_size(entry));
}

void entry_describe(const struct entry *entry, struct str *out)
{
    bool both = entry->mode[0] && entry->mode[1];
    if (entry->commits)
        return str_append_bytes(out, entry->commits, strcspn(entry->commits, "\n"));
    str_concat(out, strcmp(entry->kind, "type") == 0 ? "type changed" : entry->kind, " ",
               entry->type);
    if (entry->renamed_from)
        str_concat(out, ", renamed from ", entry->renamed_from);
    if (entry->target[0] || entry->target[1])
        str_concat(out, ", link to ", entry->target[entry->target[1] ? 1 : 0]);
    describe_size(entry, out);
    if (both && (entry->mode[0] & MODE_BITS) != (entry->mode[1] & MODE_BITS))
        str_appendf(out, ", mode %o to %o", entry->mode[0] & MODE_BITS, entry->mode[1] & MODE_BITS);
    else if (!both && (entry->mode[1] & 0111) && !entry_is_directory(entry) && !entry->target[1])
        str_append(out, ", executable");
    str_append(out, entry->owner ? ", owner" : "");
    str_append(out, entry->acl ? ", ACL" : "");
    str_append(out, entry->xattrs ? ", extended attributes" : "");
    str_append(out, entry->ignored ? ", ignored by git" : "");
}

struct size_text size_text(uint64_t bytes)
{
    static const char units[] = "BKMGTPE";
    struct size_text text;
    size_t unit = 0;
    uint64_t whole = bytes, tenths = 0;
    while (whole >= 1000 && unit + 2 < sizeof units) {
        tenths = whole % 1024 * 10 / 1024;
        whole /= 1024;
        unit++;
    }
    if (unit == 0)
        (void)snprintf(text.text, sizeof text.text, "%u", (unsigned)whole);
    else if (whole < 10)
        (void)snprintf(text.text, sizeof text.text, "%u.%u%c", (unsigned)whole, (unsigned)tenths,
                       units[unit]);
    else
        (void)snprintf(text.text, sizeof text.text, "%u%c", (unsigned)whole, units[unit]);
    return text;
}

/* ---- order ---- */

/* Compares with a path; its last component begins at `name`. By layer, then by directory, such that
 * all that is below a directory follows it, then by name. */
static int compare_path(const struct entry *entry, uint32_t layer, const char *path, size_t name)
{
    if (entry->layer != layer)
        return entry->layer < layer ? -1 : 1;
    size_t length = entry->name < name ? entry->name : name;
    for (size_t i = 0; i < length; i++) {
        unsigned char x = (unsigned char)entry->path[i], y = (unsigned char)path[i];
        if (x != y)
            return x == '/' ? -1 : y == '/' ? 1 : x < y ? -1 : 1;
    }
    if (entry->name != name)
        return entry->name < name ? -1 : 1;
    return strcmp(entry->path + entry->name, path + name);
}

/* 0 if the entry is in a directory, which has a path of `length` bytes, or below; else whether its
 * directory sorts before or after. */
static int compare_inside(const struct entry *entry, const struct entry *directory, size_t length)
{
    if (entry->layer != directory->layer)
        return entry->layer < directory->layer ? -1 : 1;
    for (size_t i = 0; i <= length; i++) {
        unsigned char x = i < entry->name ? (unsigned char)entry->path[i] : 0;
        unsigned char y = i < length ? (unsigned char)directory->path[i] : '/';
        if (x != y)
            return x == 0 ? -1 : x == '/' ? -1 : y == '/' ? 1 : x < y ? -1 : 1;
    }
    return 0;
}

static int compare_entries(const void *left, const void *right)
{
    const struct entry *b = right;
    return compare_path(left, b->layer, b->path, b->name);
}

void changes_sort(struct changes *changes)
{
    if (changes->count > 0)
        qsort(changes->entries, changes->count, sizeof *changes->entries, compare_entries);
}

/* ---- rows ---- */

bool changes_shown(const struct changes *changes, const struct entry *entry)
{
    return !changes->only_flagged || is_flagged(entry);
}

static bool same_directory(const struct entry *a, const struct entry *b)
{
    return a->layer == b->layer && a->name == b->name && memcmp(a->path, b->path, a->name) == 0;
}

bool changes_filter(struct changes *changes, bool only_flagged)
{
    changes->only_flagged = only_flagged;
    /* At most a layer, a directory and itself for each entry. */
    struct row *rows = reallocarray(NULL, changes->count * 3 + 1, sizeof *rows);
    if (!rows)
        return false;
    size_t count = 0, layer = 0, directory = 0;
    const struct entry *last = NULL;
    for (uint32_t i = 0; i < changes->count; i++) {
        const struct entry *entry = &changes->entries[i];
        if (!changes_shown(changes, entry))
            continue;
        bool new_layer = !last || last->layer != entry->layer;
        if (new_layer) {
            layer = directory = count;
            rows[count++] = (struct row){.entry = i, .kind = ROW_LAYER};
        }
        if (entry->name > 0 && (new_layer || !same_directory(last, entry))) {
            directory = count;
            rows[count++] = (struct row){.entry = i, .kind = ROW_DIRECTORY};
        }
        rows[count++] = (struct row){.entry = i, .kind = ROW_ENTRY};
        rows[layer].count++;
        rows[directory].count += directory != layer;
        last = entry;
    }
    free(changes->rows);
    changes->rows = rows;
    changes->row_count = count;
    return true;
}

static bool is_below(const struct entry *entry, const struct entry *first)
{
    return entry->layer == first->layer && entry->name >= first->name &&
           memcmp(entry->path, first->path, first->name) == 0;
}

void changes_directory(const struct changes *changes, size_t entry, size_t *ret_from,
                       size_t *ret_to)
{
    const struct entry *first = &changes->entries[entry];
    size_t from = entry, to = entry + 1;
    while (from > 0 && is_below(&changes->entries[from - 1], first))
        from--;
    while (to < changes->count && is_below(&changes->entries[to], first))
        to++;
    *ret_from = from;
    *ret_to = to;
}

void changes_range(const struct changes *changes, size_t row, size_t *ret_from, size_t *ret_to)
{
    size_t entry = changes->rows[row].entry;
    switch (changes->rows[row].kind) {
    case ROW_DIRECTORY:
        changes_directory(changes, entry, ret_from, ret_to);
        return;
    case ROW_LAYER:
        *ret_from = *ret_to = entry;
        while (*ret_from > 0 &&
               changes->entries[*ret_from - 1].layer == changes->entries[entry].layer)
            --*ret_from;
        while (*ret_to < changes->count &&
               changes->entries[*ret_to].layer == changes->entries[entry].layer)
            ++*ret_to;
        return;
    case ROW_ENTRY:
        *ret_from = entry;
        *ret_to = entry + 1;
        return;
    }
}

void changes_inside(const struct changes *changes, size_t entry, size_t *ret_from, size_t *ret_to)
{
    const struct entry *directory = &changes->entries[entry];
    char letter = entry_letter(directory);
    *ret_from = *ret_to = entry;
    if (!entry_is_directory(directory) || (letter != 'A' && letter != 'T'))
        return;
    /* What is directly in it sorts as "PATH/" does, and the rest of its entries follow. */
    size_t length = strlen(directory->path), low = entry + 1, high = changes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_inside(&changes->entries[middle], directory, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_from = *ret_to = low;
    while (*ret_to < changes->count &&
           compare_inside(&changes->entries[*ret_to], directory, length) == 0)
        ++*ret_to;
}

void changes_mark(struct changes *changes, size_t entry, bool marked)
{
    struct entry *e = &changes->entries[entry];
    if (e->marked != marked)
        changes->marked += marked ? 1 : (size_t)-1;
    e->marked = marked;
}

/* ---- finding ---- */

static uint32_t find_layer(const struct changes *changes, const char *root)
{
    uint32_t layer = 0;
    while (layer < changes->layer_count && strcmp(changes->layers[layer].root, root) != 0)
        layer++;
    return layer;
}

static size_t name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

size_t changes_count_before(const struct changes *changes, const char *root, const char *path)
{
    uint32_t layer = find_layer(changes, root);
    size_t name = name_of(path), low = 0, high = changes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_path(&changes->entries[middle], layer, path, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct entry *changes_find(const struct changes *changes, const char *root, const char *path)
{
    size_t at = changes_count_before(changes, root, path);
    const struct entry *entry = &changes->entries[at];
    bool found = at < changes->count && entry->layer == find_layer(changes, root) &&
                 strcmp(entry->path, path) == 0;
    return found ? entry : NULL;
}

size_t changes_find_row(const struct changes *changes, const char *root, const char *path)
{
    uint32_t layer = find_layer(changes, root);
    size_t name = name_of(path), low = 0, high = changes->row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct row *row = &changes->rows[middle];
        int order = compare_path(&changes->entries[row->entry], layer, path, name);
        /* The rows of a layer and of a directory come before their first entry. */
        if (order < 0 || (order == 0 && row->kind != ROW_ENTRY))
            low = middle + 1;
        else
            high = middle;
    }
    return low < changes->row_count || low == 0 ? low : low - 1;
}

size_t changes_search(const struct changes *changes, size_t row, const char *text, bool backwards)
{
    size_t count = changes->row_count;
    for (size_t i = 1; i <= count; i++) {
        size_t at = (row + (backwards ? count - i : i)) % count;
        if (changes->rows[at].kind == ROW_ENTRY &&
            strcasestr(changes->entries[changes->rows[at].entry].path, text))
            return at;
    }
    return SIZE_MAX;
}
